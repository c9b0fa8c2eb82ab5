"""How does a workload become asv benchmarks? A subclass of `_Question` names its workload and gets every metric of it.

    class Intersection(_Question, workload=intersection):
        '''Variants x sizes.'''

A metric is a method (`time_call`, `track_peak_memory`, ...) with the parameters variant and size, strings both. A
variant that cannot run here is skipped and a wrong result fails, each with a sentence kept beside the result.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, NoReturn

import torch
from asv_runner.benchmarks.mark import SkipNotImplemented

from measure import THREADS, clock, device, profile
from workloads import Unavailable

if hasattr(torch, "compile"):
    # The profiler and every compiled variant load it; once before the fork saves a second in each of dozens of processes.
    import torch._dynamo

SEED = 20240229
"""Every release draws its inputs from this seed, with NumPy."""


class _Metric(NamedTuple):
    method: str
    function: Callable
    unit: str
    source: ModuleType


def _time_call(self, variant, size):
    _case(self._workload, variant, size).block()


def _track_peak_memory(self, variant, size):
    return _profile(self._workload, variant, size).peak_memory


def _track_retained(self, variant, size):
    return _profile(self._workload, variant, size).retained


def _track_operators(self, variant, size):
    return _profile(self._workload, variant, size).operators


def _track_allocations(self, variant, size):
    return _profile(self._workload, variant, size).allocations


def _track_kernels(self, variant, size):
    if device.name() != "cuda":
        _skip("unavailable", "kernels are launched on a GPU only")
    return _profile(self._workload, variant, size).kernels


def _track_host_syncs(self, variant, size):
    if device.name() != "cuda":
        _skip("unavailable", "the host waits for a GPU only where there is one")
    return _profile(self._workload, variant, size).host_syncs


def _track_fusion_groups(self, variant, size):
    groups = profile.fusion_groups(_case(self._workload, variant, size).call)
    if groups is None:
        _skip("unavailable", "only TorchScript has a graph to ask for fused groups")
    return groups


_METRICS = {
    "time": _Metric("time_call", _time_call, "seconds", clock),
    "peak_memory": _Metric("track_peak_memory", _track_peak_memory, "bytes", profile),
    "retained": _Metric("track_retained", _track_retained, "bytes", profile),
    "operators": _Metric("track_operators", _track_operators, "operators", profile),
    "allocations": _Metric("track_allocations", _track_allocations, "allocations", profile),
    "kernels": _Metric("track_kernels", _track_kernels, "kernels", profile),
    "host_syncs": _Metric("track_host_syncs", _track_host_syncs, "synchronisations", profile),
    "fusion_groups": _Metric("track_fusion_groups", _track_fusion_groups, "groups", profile),
}

_SHARED = tempfile.TemporaryFile()  # noqa: SIM115
"""A nameless file, opened before asv's server forks: what one metric's process found in its one profiled call, the others'
read. A process that is spawned opens a file of its own and shares with none."""


class _Question:
    """The metrics of one workload over its variants and sizes; see the module's text for how to make one."""

    _workload: ModuleType
    params: list
    param_names = ["variant", "size"]
    timer = staticmethod(clock.seconds_per_call)
    rounds = 2
    repeat = (3, 5, 10.0)
    warmup_time = 0.1

    def __init_subclass__(cls, workload: ModuleType) -> None:
        cls._workload = workload
        cls.params = [list(workload.variants), list(workload.sizes)]
        for name in workload.METRICS:
            metric = _METRICS[name]
            function: Any = FunctionType(metric.function.__code__, metric.function.__globals__, metric.method)
            function.unit = metric.unit
            function.version = version(workload, metric.source)
            function.pretty_name = "{}: {}".format(cls.__name__, name.replace("_", " "))
            if metric.source is clock:
                function.setup = _setup_of(workload)
            setattr(cls, metric.method, function)

    def setup(self, variant, size):
        """Says what is measured with, and skips where nobody asked for `size` or the device cannot be used."""
        _begin(size)


def _setup_of(workload: ModuleType) -> Callable:
    """What asv calls before each sample of a time: the case is built and warm before the clock is read."""

    def setup(variant, size):
        _case(workload, variant, size)

    return setup


class _Case(NamedTuple):
    """A variant that is built, warm and found right: its call, and a block of calls long enough to be timed."""

    call: Callable[[], object]
    block: Callable[[], None]


@functools.cache
def _begin(size: str) -> str:
    """Once per process: prints the facts, makes the device ready and returns its name."""
    _say(torch=torch.__version__, python=sys.version.split()[0], threads=THREADS)
    with contextlib.suppress(OSError):
        # Where memory runs out, the system ends this process and not the ones that keep the results.
        Path("/proc/self/oom_score_adj").write_text("900", encoding="ascii")
    try:
        scale = size.rpartition(" ")[2]
        if scale in device.DEFAULT_SIZES.values() and scale not in device.asked_sizes():
            _skip("not_asked", f"size {size} was not asked for: set TORCH_HISTORY_SIZES={scale}")
        name = device.name()
        _say(device=name)
        device.ready(name)
    except device.DeviceUnavailable as reason:
        _skip("unavailable", str(reason))
    return name


@functools.lru_cache(maxsize=1)
def _case(workload: ModuleType, variant: str, size: str) -> _Case:
    """Once per process: builds, warms up and checks the variant; asv asks for it before every sample."""
    on = _begin(size)
    try:
        arguments = workload.inputs(size, on, SEED)
        call = workload.variants[variant](arguments)
        result = clock.warm_up(call, on)
    except Unavailable as reason:
        _skip("unavailable", str(reason))
    workload.check(arguments, result)
    del result
    return _Case(call, clock.seconds_per_call.calibrate(call, on))


def _profile(workload: ModuleType, variant: str, size: str) -> profile.Profile:
    def measured() -> list:
        return list(profile.profile(_case(workload, variant, size).call, _begin(size)))

    return profile.Profile(*_shared(f"{workload.__name__}-{variant}-{size}", measured))


def _shared(name: str, measured: Callable[[], list]) -> list:
    """What `measured` returns, measured once for all metrics of a launch."""
    file = _SHARED.fileno()
    known = dict(json.loads(line) for line in os.pread(file, os.fstat(file).st_size, 0).splitlines())
    if name not in known:
        known[name] = measured()
        os.write(file, json.dumps([name, known[name]]).encode() + b"\n")
    return known[name]


def version(workload: ModuleType, metric: ModuleType) -> str:
    """The identity of what is measured: a digest of the source of the workload, of the modules of `workloads` that it
    uses and of the metric's module, and of the protocol. An edit changes it, another torch does not."""
    package = workload.__name__.rpartition(".")[0]
    owners = [inspect.getmodule(value) or value for value in vars(workload).values()]
    used = {owner for owner in owners if getattr(owner, "__name__", "").startswith(package + ".")}
    digest = hashlib.sha256()
    for module in [*sorted(used | {workload}, key=lambda module: module.__name__), metric]:
        digest.update(Path(str(module.__file__)).read_bytes())
    protocol = [SEED, clock.WARM_UP_CALLS, _Question.repeat, _Question.warmup_time]
    digest.update(repr(protocol).encode())
    return digest.hexdigest()


def _skip(kind: str, sentence: str) -> NoReturn:
    _say(**{kind: sentence})
    raise SkipNotImplemented(sentence)


def _say(**facts) -> None:
    """Tells whoever started this process something about the measurement; asv hands on what is printed."""
    print("torch-history: " + json.dumps(facts), flush=True)
