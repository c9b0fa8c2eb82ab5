"""How does a workload become asv benchmarks? A subclass of `_Question` names its workload and gets every metric of it.

    class Intersection(_Question, workload=intersection):
        '''Variants x sizes.'''

A metric is a method (`time_call`, `track_peak_memory`, ...) with the parameters variant and size, strings both. A
variant that cannot run here is skipped and a wrong result fails, each with a sentence kept beside the result.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

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
    self._block()


def _track_peak_memory(self, variant, size):
    return self._profile().peak_memory


def _track_operators(self, variant, size):
    return self._profile().operators


def _track_allocations(self, variant, size):
    return self._profile().allocations


def _track_kernels(self, variant, size):
    if self._device != "cuda":
        _skip("unavailable", "kernels are launched on a GPU only")
    return self._profile().kernels


def _track_fusion_groups(self, variant, size):
    groups = profile.fusion_groups(self._call)
    if groups is None:
        _skip("unavailable", "only TorchScript has a graph to ask for fused groups")
    return groups


_METRICS = {
    "time": _Metric("time_call", _time_call, "seconds", clock),
    "peak_memory": _Metric("track_peak_memory", _track_peak_memory, "bytes", profile),
    "operators": _Metric("track_operators", _track_operators, "operators", profile),
    "allocations": _Metric("track_allocations", _track_allocations, "allocations", profile),
    "kernels": _Metric("track_kernels", _track_kernels, "kernels", profile),
    "fusion_groups": _Metric("track_fusion_groups", _track_fusion_groups, "groups", profile),
}


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
            setattr(cls, metric.method, function)

    def setup(self, variant, size):
        """Builds, warms up and checks the variant, once per process: asv calls this again before every sample."""
        if hasattr(self, "_call"):
            return
        _say(torch=torch.__version__, python=sys.version.split()[0], threads=THREADS)
        try:
            if size not in device.asked_sizes():
                _skip("not_asked", f"size {size} was not asked for: set TORCH_HISTORY_SIZES={size}")
            self._device = device.name()
            _say(device=self._device)
            device.ready(self._device)
            arguments = self._workload.inputs(size, self._device, SEED)
            call = self._workload.variants[variant](arguments)
            result = clock.warm_up(call, self._device)
        except (Unavailable, device.DeviceUnavailable) as reason:
            _skip("unavailable", str(reason))
        self._workload.check(arguments, result)
        del result
        self._block = clock.seconds_per_call.calibrate(call, self._device)
        self._call = call

    def _profile(self):
        return profile.profile(self._call, self._device)


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


def _skip(kind: str, sentence: str) -> None:
    _say(**{kind: sentence})
    raise SkipNotImplemented(sentence)


def _say(**facts) -> None:
    """Tells whoever started this process something about the measurement; asv hands on what is printed."""
    print("torch-history: " + json.dumps(facts), flush=True)
