"""What is measured? One row per metric, with all that anybody has to know of it. A benchmark's name ends in
`track_<metric>`; `metric_of` finds its row."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

STEADY, SEQUENCE, RESIDENT, PROCESS, START = "steady", "sequence", "resident", "process", "start"
"""How a metric is measured: of one call that is made again and again, of the first calls of a process, of the memory that a
process holds while it makes many calls, of a whole process from its start to its end, or of one step of a new process."""

TIMES, COUNTS = "times", "counts"
"""What a session is asked for: what differs from launch to launch and is measured in every round, or what does not."""

MARGIN = 0.04
"""A time within 4 % is called the same. Two builds of one source differ by up to 2 % in where code and data lie, and a user
feels nothing of it; a change of 5 %, which must be found, lies beyond. Half of it would take four times the rounds."""

CALL_MARGIN = 0.25
"""The margin of calls that a fresh process makes once. Two processes of one release differ by 10 % there and often by a
quarter, since nothing can be repeated within one; what is asked of them is whether they stall: a factor."""

PROCESS_MARGIN = 0.1
"""The margin of the processor's time that a whole process takes, and of what a step of a new process takes.
They are started a few times in each launch."""

MEMORY_MARGIN = 0.05
GROWTH_MARGIN = 0.25
NO_GROWTH = 1e-3
"""The margins of what the system counts of a process: its resident memory, and by how much that grows at each call. Pages
and the allocator's reserves differ from launch to launch by a few per cent. Of no growth so much makes a ratio."""

ROUNDING = {"float16": 1e-3, "bfloat16": 1.6e-2, "float32": 1.3e-6, "float64": 1e-7, "complex64": 1.3e-6}
ROUNDING.update(dict.fromkeys(("complex128", "float", "complex"), ROUNDING["float64"]))
"""dtype -> by how much results may differ that are the same but for rounding, as a share of the largest number: the relative
difference that torch.testing.assert_close allows. Whole numbers have none, and what is not listed has the largest."""

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

    `unit` is that of its numbers; `kind` is TIMES or COUNTS. One that does not vary and has a `margin` all the same has
    changed where every launch of one release lies beyond it from every launch of the other. `measured` is STEADY, SEQUENCE,
    RESIDENT, PROCESS or START; `source` names the module of `measure` that takes the number; `explains` are the words by
    which a change of it may explain a changed time, empty where it may not; `devices` are those that it is measured on;
    `missing` says why a case that ran may have no such number; one that is `everywhere` is measured in every workload with
    such calls, others in those that name it.
    """

    name: str
    unit: str
    kind: str
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
    def varies(self) -> bool:
        """Whether launches of one release differ, so that two releases are compared by an interval with the margin, and not
        exactly. So do times and their ratios, whose numbers are above zero and have a logarithm."""
        return self.unit in ("seconds", "ratio")

    @property
    def is_growth(self) -> bool:
        """Whether its numbers are what each call leaves, so that 0 is usual and a ratio says little."""
        return self.measured == RESIDENT and self.margin == GROWTH_MARGIN

    @property
    def shown_unit(self) -> str:
        """The unit that is printed beside a number: a bare count has none."""
        return self.unit if self.unit in ("seconds", "ratio", "stalls", "bytes") else ""

    @property
    def more_and_less(self) -> tuple[str, str]:
        """The words of a verdict where a number rose and where it fell."""
        if self.varies:
            return "SLOWER", "FASTER"
        return ("HUNGRIER", "LEANER") if self.unit == "bytes" or self.measured == RESIDENT else ("MORE", "FEWER")


_time = partial(Metric, unit="seconds", kind=TIMES)
_call = partial(_time, measured=SEQUENCE, source="sequence", margin=CALL_MARGIN)
_held = partial(Metric, unit="bytes", kind=TIMES)
_kept = partial(Metric, kind=TIMES, measured=RESIDENT, source="resident", margin=GROWTH_MARGIN, everywhere=True)
_count = partial(Metric, kind=COUNTS, measured=STEADY, source="profile", devices=EVERYWHERE)
_recorded = partial(
    Metric, kind=COUNTS, measured=STEADY, source="counted", devices=("recorder",), missing=RECORDER_ONLY
)

NO_BACKWARD = "there is no backward here, so the time is the forward's"
NO_GRAPH = "only TorchScript has a graph to ask for fused groups"
NO_DEVICE = "only a GPU has memory of its own"

_ALL = (
    _time("time", measured=STEADY, source="clock", margin=MARGIN),
    _time("cpu_time", measured=STEADY, source="stopwatch", margin=MARGIN),
    _time("forward_time", measured=STEADY, source="clock", margin=MARGIN, missing=NO_BACKWARD),
    _count("peak_memory", "bytes", explains="its peak memory"),
    _count("retained", "bytes", explains="its retained memory"),
    _count("operators", "operators", explains="the number of operators", devices=RUNNING),
    _count("allocations", "allocations", explains="the number of allocations"),
    _count("kernels", "kernels", explains="the number of kernels", devices=ON_CUDA, missing=GPU_ONLY),
    _count(
        "host_syncs", "synchronisations", explains="the number of waits for the GPU", devices=ON_CUDA, missing=GPU_ONLY
    ),
    _count("gradients", "gradients"),
    _count("fusion_groups", "groups", explains="the number of fused groups", missing=NO_GRAPH),
    _recorded("peak_allocated", "bytes"),
    _recorded("peak_reserved", "bytes"),
    _recorded("host_waits", "waits", explains="the number of waits for the device"),
    _recorded("library_calls", "calls", explains="the number of library calls"),
    _recorded("copies", "copies", explains="the number of copies"),
    _recorded("copied_to_device", "bytes"),
    _recorded("copied_to_host", "bytes"),
    _recorded("copied_on_device", "bytes"),
    _call("first_call"),
    _call("second_call"),
    _call("median_call"),
    _call("worst_call"),
    _call("worst_over_median")._replace(unit="ratio"),
    Metric("stalls", "stalls", TIMES, SEQUENCE, "sequence"),
    _call("compile_time"),
    _held("resident_memory", measured=RESIDENT, source="resident", margin=MEMORY_MARGIN),
    _held("resident_growth", measured=RESIDENT, source="resident", margin=GROWTH_MARGIN),
    _kept("kept_objects", "objects"),
    _kept("kept_blocks", "blocks"),
    _kept("kept_bytes", "bytes"),
    Metric("kept_on_device", "bytes", COUNTS, RESIDENT, "resident", 0.0, "", ON_CUDA, NO_DEVICE, True),
    _time("process_time", measured=PROCESS, source="process", margin=CALL_MARGIN),
    _time("process_cpu_time", measured=PROCESS, source="process", margin=PROCESS_MARGIN),
    _held("process_peak_memory", measured=PROCESS, source="process", margin=MEMORY_MARGIN),
    _time("start_time", measured=START, source="start_up", margin=PROCESS_MARGIN),
    _time("start_cpu_time", measured=START, source="start_up", margin=PROCESS_MARGIN),
    _held("start_memory", measured=START, source="start_up", margin=MEMORY_MARGIN),
    _held("start_resident", measured=START, source="start_up", margin=MEMORY_MARGIN),
)

METRICS = {metric.name: metric for metric in _ALL}
"""Name -> metric, in the order in which they are shown."""

RECORDED = tuple(metric.name for metric in _ALL if metric.source == "counted")
"""Names of what every question with calls is asked on the recorder, whatever else its workload names."""

HAS_RECORDED = frozenset((STEADY, SEQUENCE))
"""How the metrics of a question are measured that has RECORDED ones as well: it has calls, which a recorder can count."""

UNKNOWN = Metric("", "", COUNTS, STEADY, "")
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
    name = benchmark.rpartition(".")[2].removeprefix("track_")
    return METRICS[name] if name in METRICS else UNKNOWN._replace(name=name)
