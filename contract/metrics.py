"""What is measured? One row per metric, with all that anybody has to know of it.

A benchmark's name ends in `track_<metric>`; `metric_of` finds its row. A metric that a process cannot measure is missing
from what it reports, for the reason given here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

STEADY, SEQUENCE = "steady", "sequence"
"""How a metric is measured: of one call that is made again and again, or of the first calls of a process."""

TIMES, COUNTS = "times", "counts"
"""What a session is asked for: what differs from launch to launch and is measured in every round, or what does not."""

MARGIN = 0.04
"""A time within 4 % is called the same. Two builds of one source differ by up to 2 % in where code and data lie, and a user
feels nothing of it; a change of 5 %, which must be found, lies beyond. Half of it would take four times the rounds."""

CALL_MARGIN = 0.25
"""The margin of calls that a fresh process makes once. Two processes of one release differ by 10 % there and often by a
quarter, since nothing can be repeated within one; what is asked of them is whether they stall: a factor."""

MISSING = "this case has no such number"
GPU_ONLY = "kernels and waits of the host exist on a GPU only"
RECORDER_ONLY = "only the recorder counts this"
NEVER_RECORDED = "the recorder counts and runs no kernel, so it has no time: measure on cpu or cuda"

EVERYWHERE = ("cpu", "cuda", "recorder")
RUNNING = ("cpu", "cuda")
ON_CUDA = ("cuda", "recorder")
"""Devices that a metric may be measured on: all, those that run what is measured, those of CUDA."""


class Metric(NamedTuple):
    """One metric.

    `unit` is that of its numbers; `kind` is TIMES or COUNTS; `varies` says that launches of one release differ, so that two
    releases are compared by an interval with `margin`, and not exactly; `measured` is STEADY or SEQUENCE; `source` names the
    module of `measure` that takes the number; `explains` are the words by which a change of it may explain a changed time,
    empty where it may not; `devices` are those that it is measured on; `missing` says why a case that ran may have no such
    number; one that is `everywhere` is measured in every workload with such calls, others in those that name it.
    """

    name: str
    unit: str
    kind: str
    varies: bool
    measured: str
    source: str
    margin: float = 0.0
    explains: str = ""
    devices: tuple[str, ...] = RUNNING
    missing: str = MISSING
    everywhere: bool = False

    @property
    def words(self) -> str:
        """As a person says it: `peak memory`."""
        return self.name.replace("_", " ")

    @property
    def is_positive(self) -> bool:
        """Whether its numbers are above zero and have a logarithm."""
        return self.unit in ("seconds", "ratio")

    @property
    def shown_unit(self) -> str:
        """The unit that is printed beside a number: a bare count has none."""
        return self.unit if self.unit in ("seconds", "ratio", "stalls", "bytes") else ""

    @property
    def more_and_less(self) -> tuple[str, str]:
        """The words of a verdict where a number rose and where it fell."""
        if self.varies:
            return "SLOWER", "FASTER"
        return ("HUNGRIER", "LEANER") if self.unit == "bytes" else ("MORE", "FEWER")

    def as_data(self) -> dict[str, object]:
        """What pages need of it, as JSON has it: all but which workloads have it, which the data say."""
        row = {**self._asdict(), "more_and_less": self.more_and_less}
        del row["everywhere"]
        return row


def _call(name: str, unit: str = "seconds") -> Metric:
    return Metric(name, unit, TIMES, True, SEQUENCE, "sequence", CALL_MARGIN)


def _count(
    name: str,
    unit: str,
    explains: str = "",
    devices: tuple[str, ...] = EVERYWHERE,
    missing: str = MISSING,
    everywhere: bool = False,
) -> Metric:
    return Metric(name, unit, COUNTS, False, STEADY, "profile", 0.0, explains, devices, missing, everywhere)


def _recorded(name: str, unit: str, explains: str = "") -> Metric:
    return Metric(name, unit, COUNTS, False, STEADY, "counted", 0.0, explains, ("recorder",), RECORDER_ONLY)


_ALL = (
    Metric("time", "seconds", TIMES, True, STEADY, "clock", MARGIN),
    Metric(
        *("forward_time", "seconds", TIMES, True, STEADY, "clock", MARGIN),
        missing="there is no backward here, so the time is the forward's",
    ),
    _count("peak_memory", "bytes", "its peak memory"),
    _count("retained", "bytes", "its retained memory"),
    _count("operators", "operators", "the number of operators", RUNNING),
    _count("allocations", "allocations", "the number of allocations"),
    _count("kernels", "kernels", "the number of kernels", ON_CUDA, GPU_ONLY),
    _count("host_syncs", "synchronisations", "the number of waits for the GPU", ON_CUDA, GPU_ONLY),
    _count("gradients", "gradients"),
    _count(
        "fusion_groups",
        "groups",
        "the number of fused groups",
        missing="only TorchScript has a graph to ask for fused groups",
    ),
    _recorded("peak_allocated", "bytes"),
    _recorded("peak_reserved", "bytes"),
    _recorded("host_waits", "waits", "the number of waits for the device"),
    _recorded("library_calls", "calls", "the number of library calls"),
    _recorded("copies", "copies", "the number of copies"),
    _recorded("copied_to_device", "bytes"),
    _recorded("copied_to_host", "bytes"),
    _recorded("copied_on_device", "bytes"),
    _call("first_call"),
    _call("second_call"),
    _call("median_call"),
    _call("worst_call"),
    _call("worst_over_median", "ratio"),
    Metric("stalls", "stalls", TIMES, False, SEQUENCE, "sequence"),
)

METRICS = {metric.name: metric for metric in _ALL}
"""Name -> metric, in the order in which they are shown."""

RECORDED = tuple(metric.name for metric in _ALL if metric.source == "counted")
"""Names of what every question is asked on the recorder, whatever else its workload names."""

UNKNOWN = Metric("", "", COUNTS, False, STEADY, "")
"""What stands for a metric that this version does not know: a bare count."""


def metrics_of(named: Iterable[str]) -> tuple[str, ...]:
    """The metrics of a workload: those that it has `named`, then those of the same kind of calls that are everywhere. Raises
    KeyError where it names one that has no row."""
    own = tuple(named)
    kinds = {METRICS[name].measured for name in own}
    others = [metric.name for metric in METRICS.values() if metric.everywhere and metric.measured in kinds]
    return (*own, *(name for name in others if name not in own))


def metric_of(benchmark: str) -> Metric:
    """The metric of a benchmark (`intersection.Intersection.track_peak_memory`), of one not known UNKNOWN under its name."""
    name = benchmark.rpartition(".")[2]
    name = name[len("track_") :] if name.startswith("track_") else name
    return METRICS[name] if name in METRICS else UNKNOWN._replace(name=name)
