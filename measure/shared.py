"""What does a case ask of a GPU that takes no device memory? Counted on the recorder in one process, unlike in `counted`.

PyTorch can share only what its caching allocator handed out. So where memory is shared there is no process without that
allocator, and requested bytes come from it. What another process does is in that process's own log, and is not included:
neither PyTorch's counters nor its profiler see it on a GPU.
"""

from __future__ import annotations

from types import ModuleType

import torch

from recorder import Refused, record
from recorder.counts import launched
from recorder.record import explained

from . import device
from .clock import WARM_UP_CALLS
from .counted import form, in_process

ON_HOST = ("numpy",)
"""Variants that compute on the host what was copied there before. They are not warmed up: there is nothing on the device
that a call could find ready, and a call takes half a minute."""

VARIANTS = ("subprocess", "subprocess_start", *ON_HOST)
"""Variants that take no device memory: those that start a process which opens their inputs where they lie, and ON_HOST."""


def counts(workload: ModuleType, variant: str, size: str, seed: int) -> dict:
    """The counts of a case by metric, as `counted.counts` has them. Raises what that raises, and Refused where this
    process takes device memory itself: how many bytes were requested cannot be told then."""
    return in_process(lambda: _counts(workload, variant, size, seed))


def _counts(workload: ModuleType, variant: str, size: str, seed: int) -> dict:
    device.require_code_for(record.capability())
    with explained():
        call = workload.variants[variant](workload.inputs(size, "cuda", seed))
        for _ in range(0 if variant in ON_HOST else getattr(workload, "WARM_UP_CALLS", WARM_UP_CALLS)):
            call()
    results: list = []
    before = _handed_out()
    found = launched(lambda: results.append(call()))
    if _handed_out() != before:
        raise Refused(
            "The call takes device memory, and is counted with the caching allocator alone, because it may share memory "
            "with another process. So the bytes that were requested cannot be told. Leave this case out."
        )
    return {
        "peak_memory": 0,  # no block was handed out, so no byte was requested
        "retained": 0,
        "allocations": 0,
        "kernels": len(found.kernels),
        "host_syncs": found.waits,
        "gradients": call.gradients,
        "peak_allocated": found.peak_allocated,
        "peak_reserved": found.peak_reserved,
        "kernel_names": found.kernels,
        "library_calls": found.library_calls,
        "copied": found.copied,
        "assumptions": found.assumptions,
        "form": form(results),
    }


def _handed_out() -> int:
    """How many blocks the caching allocator handed out since the process began."""
    return int(torch.cuda.memory_stats()["allocation.all.allocated"])
