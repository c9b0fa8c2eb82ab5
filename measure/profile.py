"""What did one call dispatch, allocate and launch? Deterministic counts that explain a time and double-check it.

Bytes on a GPU come from the allocator's own counters, all else from PyTorch's profiler, whose interface moved several
times between 1.8 and today.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import NamedTuple

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

    Raises RuntimeError where the profiler recorded nothing: a count of zero would then mean nothing.
    """
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
        result = call()
        if device == "cuda":
            torch.cuda.synchronize()
    recorded = profiler.profiler.kineto_results
    events = recorded.events()
    if not events:
        raise RuntimeError(f"the profiler of torch {torch.__version__} recorded nothing")
    host = [event.name() for event in events if not _on_gpu(event)]
    launched = [event.name() for event in events if _on_gpu(event)]
    no_kernel = ("Memcpy", "Memset", "[memory]")
    annotations = set(host)
    del result
    peak, retained, allocations = _cuda_memory(call) if device == "cuda" else _cpu_memory(recorded, events)
    return Profile(
        peak_memory=peak,
        retained=retained,
        allocations=allocations,
        operators=sum("::" in name for name in host),
        kernels=sum(name not in annotations and not name.startswith(no_kernel) for name in launched),
        host_syncs=sum(name in _WAITS for name in host),
    )


def _on_gpu(event) -> bool:
    return "CUDA" in str(event.device_type())


def _cpu_memory(recorded, events) -> tuple[int, int, int]:
    """Peak bytes, retained bytes and number of allocations from the profiler's record of all allocations, in order.

    From torch 1.10 on these are the raw events called [memory]; before, the profiler's older records hold them. The
    summarised `profiler.events()` will not do: frees inside operators are missing there.
    """
    if hasattr(recorded, "legacy_events"):
        records = [record for thread in recorded.legacy_events() for record in thread]
        changes = [record.cpu_memory_usage() for record in records if record.kind() == "memory_alloc"]
    else:
        memory = [event for event in events if event.name() == "[memory]" and not _on_gpu(event)]
        changes = [event.nbytes() for event in memory]
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
