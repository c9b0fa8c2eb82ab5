"""What did one call dispatch, allocate and launch? Deterministic counts that explain a time and double-check it.

Bytes on a GPU come from the allocator's own counters, all else from PyTorch's profiler, whose interface moved several
times between 1.8 and today.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.profiler


class Profile(NamedTuple):
    """Counts of one call.

    `peak_memory`: bytes at the highest point above what was allocated when the call began. `retained`: bytes above it
    when the call has returned, its result alive. `allocations`: how often memory was taken. `operators`: host events of
    the form namespace::name. `kernels`: device events that are no copy, no fill and no annotation. `host_syncs`: how
    often the host waited for the device's queue.
    """

    peak_memory: int
    retained: int
    allocations: int
    operators: int
    kernels: int
    host_syncs: int


_WAITS = ("cudaStreamSynchronize", "cuStreamSynchronize", "cudaEventSynchronize", "cuEventSynchronize")


def profile(call: Callable[[], object], device: str) -> Profile:
    """Profiles one call of an already warm `call`. The result is alive until the end, so it is part of the peak.

    Raises RuntimeError where the profiler recorded nothing, or sees no memory at all: a zero would then mean nothing.
    """
    recorded = _record(call, device)
    if not recorded.host:
        raise RuntimeError(f"the profiler of torch {torch.__version__} recorded nothing")
    if device == "cpu" and not recorded.memory and not _record(lambda: torch.empty(1), device).memory:
        raise RuntimeError(f"the profiler of torch {torch.__version__} records no memory")
    no_kernel = ("Memcpy", "Memset", "[memory]")
    annotations = set(recorded.host)
    peak, retained, allocations = _cuda_memory(call) if device == "cuda" else _cpu_memory(recorded.memory)
    return Profile(
        peak_memory=peak,
        retained=retained,
        allocations=allocations,
        operators=sum("::" in name for name in recorded.host),
        kernels=sum(name not in annotations and not name.startswith(no_kernel) for name in recorded.launched),
        host_syncs=sum(name in _WAITS for name in recorded.host),
    )


class _Recorded(NamedTuple):
    """Names of the events on the host and on the GPU, and every change of the CPU's allocated bytes, in order."""

    host: list
    launched: list
    memory: list


_RAW_MEMORY = not any(
    hasattr(getattr(torch._C._autograd, name, None), "legacy_events") for name in ("ProfilerResult", "_ProfilerResult")
)
"""From torch 1.10 on changes of memory are raw events called [memory]; before, the older profiler's records hold them. The
class has the first name in torch 1.8 and the second in 1.9."""


def _record(call: Callable[[], object], device: str) -> _Recorded:
    return _recorded(call, device) if _RAW_MEMORY or device == "cuda" else _recorded_before_kineto(call)


def _recorded(call: Callable[[], object], device: str) -> _Recorded:
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with _raw_events_only(), torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
        result = call()
        if device == "cuda":
            torch.cuda.synchronize()
    events = profiler.profiler.kineto_results.events()
    del result
    host = [event for event in events if not _on_gpu(event)]
    return _Recorded(
        host=[event.name() for event in host],
        launched=[event.name() for event in events if _on_gpu(event)],
        memory=[event.nbytes() for event in host if event.name() == "[memory]"],
    )


def _recorded_before_kineto(call: Callable[[], object]) -> _Recorded:
    """The same from the older profiler, which in torch 1.8 and 1.9 is 40 times as fast and agrees."""
    config = torch.autograd.profiler.profile(profile_memory=True).config()
    torch.autograd._enable_profiler_legacy(config)
    try:
        result = call()
    finally:
        records = [record for thread in torch.autograd._disable_profiler_legacy() for record in thread]
    del result
    return _Recorded(
        host=[record.name() for record in records if record.kind() == "push"],
        launched=[],
        memory=[record.cpu_memory_usage() for record in records if record.kind() == "memory_alloc"],
    )


@contextlib.contextmanager
def _raw_events_only() -> Iterator[None]:
    """Keeps the profiler from making a table of all events when it stops, which nobody reads here: for 100,000 events that
    takes seconds, and minutes in torch 1.8. From about 2.6 on it is made on demand only."""
    owner: Any = torch.autograd.profiler.profile
    name = "_parse_kineto_results"
    if not hasattr(owner, name):
        owner, name = torch.autograd.profiler, "parse_kineto_results"
    if not hasattr(owner, name):
        yield
        return
    made = getattr(owner, name)
    setattr(owner, name, lambda *_: [])
    try:
        yield
    finally:
        setattr(owner, name, made)


def _on_gpu(event) -> bool:
    return "CUDA" in str(event.device_type())


def _cpu_memory(changes: list) -> tuple[int, int, int]:
    """Peak bytes, retained bytes and number of allocations from every change of allocated bytes, in order.

    The summarised `profiler.events()` would not do: frees inside operators are missing there.
    """
    level = peak = 0
    for change in changes:
        level += change
        peak = max(peak, level)
    return peak, level, sum(change > 0 for change in changes)


def _cuda_memory(call: Callable[[], object]) -> tuple[int, int, int]:
    """Peak bytes, retained bytes and number of allocations of one more call, from the caching allocator's counters.

    cuBLAS's workspace counts as allocated from torch 2.0 on; a warm `call` has taken it before, so it is in neither.
    """
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    bytes_before = torch.cuda.memory_allocated()
    count_before = torch.cuda.memory_stats()["allocation.all.allocated"]
    result = call()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - bytes_before
    retained = torch.cuda.memory_allocated() - bytes_before
    allocations = torch.cuda.memory_stats()["allocation.all.allocated"] - count_before
    del result
    return peak, retained, allocations


def fusion_groups(call: Callable[[], object]) -> int | None:
    """How many fused groups the TorchScript graph holds that `call` executed last; None where it executed none.

    The executed graph is asked, because whether a wheel can fuse changed between releases.
    """
    call()
    graph = torch.jit.last_executed_optimized_graph()
    if graph is None:
        return None
    nodes = ("prim::TensorExprGroup", "prim::CudaFusionGroup", "prim::FusionGroup")
    return sum(any("= " + node in line for node in nodes) for line in str(graph).splitlines())
