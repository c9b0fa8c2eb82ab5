"""What would one call allocate, launch, copy and wait for on a GPU? Asked of the recorder, on which this process must run:
with the caching allocator, as PyTorch runs for everybody, and without it, where each tensor is an allocation of its own."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch

from . import Refused
from .record import Recording, caching, explained, recording, unfinished

Count = TypeVar("Count")


class Launched(NamedTuple):
    """What one call does with the caching allocator, whose cache was emptied before. `peak_allocated`: bytes in blocks that
    tensors hold, above those at the beginning; `peak_reserved`: bytes of all segments, which a GPU must have: both the same
    only after the same calls. `kernels` and `library_calls`: names in order. `copied`: bytes of each copy by direction.
    `waits`: how often the host waited. `assumptions`: answers that depended on registers that the recorder does not know."""

    peak_allocated: int
    peak_reserved: int
    kernels: list
    library_calls: list
    copied: dict
    waits: int
    assumptions: int


class Requested(NamedTuple):
    """What one call asks for without the caching allocator, to the byte. `peak`: bytes at the highest point above those at
    the beginning; `retained`: bytes above them once it has returned, its result alive. `allocations`: how many. `kernels`:
    names in order."""

    peak: int
    retained: int
    allocations: int
    kernels: list


def launched(call: Callable[[], object], reads_by_design: str = "") -> Launched:
    """One call of an already warm `call`, which returns with its result alive. Raises Refused where the process has no
    caching allocator, or the counts are not what a GPU would show."""
    if not caching():
        raise Refused("The caching allocator is switched off, so it has no peaks: start the process with caching.")
    return agreed(lambda: _launched(call, reads_by_design))


def _launched(call: Callable[[], object], reads_by_design: str) -> Launched:
    empty_cache()
    torch.cuda.reset_peak_memory_stats()
    allocated = torch.cuda.memory_allocated()
    seen = recorded(call, reads_by_design)
    copied: dict = {}
    for copy in seen.copies:
        copied.setdefault(copy.direction, []).append(copy.bytes)
    return Launched(
        peak_allocated=torch.cuda.max_memory_allocated() - allocated,
        peak_reserved=torch.cuda.max_memory_reserved(),
        kernels=seen.kernels,
        library_calls=seen.library_calls,
        copied=copied,
        waits=sum(seen.waits.values()),
        assumptions=sum(seen.assumptions.values()),
    )


def requested(call: Callable[[], object], reads_by_design: str = "") -> Requested:
    """One call of an already warm `call`, which returns with its result alive. Raises Refused where the caching allocator is
    not switched off, or the counts are not what a GPU would show."""
    if caching():
        raise Refused(
            "Requested bytes can be counted only without the caching allocator: start the process without it "
            "(PYTORCH_NO_CUDA_MEMORY_CACHING=1)."
        )
    return agreed(lambda: _requested(call, reads_by_design))


def agreed(count: Callable[[], Count]) -> Count:
    """What `count` returns, counted again where the answer may depend on how far the device is. Raises Refused where it is
    another if the device never finishes before the host waits."""
    with recording() as seen:
        found = count()
    if seen.queries:
        with unfinished():
            other = count()
        if other != found:
            asked = ", ".join(seen.queries)
            raise Refused(
                f"{asked} asked whether the device had finished, and the counts depend on the answer, which only a GPU "
                "knows: a block that another stream used, or pinned memory after a copy, is free when it has. Wait for "
                "the device before that is freed, or leave this case out."
            )
    return found


def _requested(call: Callable[[], object], reads_by_design: str) -> Requested:
    empty_cache()
    seen = recorded(call, reads_by_design)
    return Requested(seen.peak, seen.retained, len(seen.allocations), seen.kernels)


def recorded(call: Callable[[], object], reads_by_design: str) -> Recording:
    """What one call asked of CUDA, its result no longer alive. Raises Refused where that is not what a GPU would show."""
    with explained(), recording() as seen:
        result = call()
    del result
    seen.sound(reads_by_design)
    return seen


def empty_cache() -> None:
    """Empties the caching allocator's cache, once nothing holds a block that could be free."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
