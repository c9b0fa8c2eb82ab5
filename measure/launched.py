"""What does one call launch on a GPU, copy and wait for? Read from PyTorch's profiler, event by event.

A fuser's kernel often has the name of the host's event that launched it, and so has the mark that a user's annotation leaves
on the GPU. Where a release says which is which, that decides. Before, such a kernel cannot be told from a mark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.profiler

from . import profile

COPIES = {"HtoD": "host to device", "DtoH": "device to host", "DtoD": "device to device"}
"""How the profiler names a direction -> how the recorder does."""


class Launched(NamedTuple):
    """`kernels`: names in order. `copies`: direction -> how many. `waits`: how often the host waited for the device."""

    kernels: list
    copies: dict
    waits: int


def launched(call: Callable[[], object]) -> Launched:
    """What one call of an already warm `call` launches, the device idle at its end."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with profile._raw_events_only(), torch.profiler.profile(activities=activities) as profiler:
        result = call()
        torch.cuda.synchronize()
    del result
    events = profiler.profiler.kineto_results.events()
    host = [event.name() for event in events if not profile._on_gpu(event)]
    on_gpu = [event.name() for event in events if profile._on_gpu(event) and not _is_mark(event, host)]
    copies = [name.split()[1] for name in on_gpu if name.startswith("Memcpy")]
    return Launched(
        kernels=[name for name in on_gpu if not name.startswith(("Memcpy", "Memset", "[memory]"))],
        copies=dict(Counter(COPIES.get(direction, direction) for direction in copies)),
        waits=sum(name in profile._WAITS for name in host),
    )


def _is_mark(event, host: list) -> bool:
    """Whether an event on the GPU is the mark of an annotation, and nothing that ran there."""
    if hasattr(event, "is_user_annotation"):
        return event.is_user_annotation()
    return event.name() in host
