"""Are a case's inputs drawn once for all processes that count it? On the host, before they are forked, which then copy them.

Drawing the largest inputs of saved_tensors takes three seconds of a processor, more than all the rest of a case. So the
first case that needs them leaves them to the other cases, which are forked from the same interpreter. What a case asks of
the device is the same: one copy of each tensor, in order.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from types import ModuleType, SimpleNamespace
from typing import Any

WORKLOAD = "workloads.saved_tensors"
"""Its inputs hold all their tensors in `tensors`, drawn by NumPy and then copied to the device one by one."""

_FILES = [os.memfd_create(WORKLOAD) for _ in range(32)] if hasattr(os, "memfd_create") else []
"""Files in memory, one for each size, made here so that every process forked from this one has them. They end with the last.
Pythons that are built for an old glibc, as uv's are, have none."""


def once(workload: ModuleType, size: str, seed: int) -> Any:
    """`workload`, with an `inputs` that copies to the device what was drawn on the host; itself where it is not WORKLOAD."""
    if workload.__name__ != WORKLOAD:
        return workload
    files = _FILES[list(workload.sizes).index(size) :][:1]
    drawn = next((_read(file, seed) for file in files), None)
    if drawn is None:
        drawn = workload.inputs(size, "cpu", seed)
        for file in files:
            _write(file, seed, drawn)

    def inputs(size: str, device: str, seed: int) -> Any:
        tensors = [of.detach().to(device).requires_grad_(of.requires_grad) for of in drawn.tensors]
        return drawn._replace(tensors=tuple(tensors))

    return SimpleNamespace(**{**vars(workload), "inputs": inputs})


def _write(file: int, seed: int, inputs: Any) -> None:
    arrays = [(of.detach().numpy(), of.requires_grad) for of in inputs.tensors]
    with open(f"/proc/self/fd/{file}", "wb") as stream:
        pickle.dump((seed, inputs._replace(tensors=()), arrays), stream, protocol=pickle.HIGHEST_PROTOCOL)


def _read(file: int, seed: int) -> Any:
    """What was kept of this seed; None where nothing was, or whoever wrote it was killed before its end."""
    import torch  # here, because the rest is tested where there is none

    with open(f"/proc/self/fd/{file}", "rb") as stream, contextlib.suppress(EOFError, pickle.UnpicklingError):
        kept, inputs, arrays = pickle.load(stream)
        if kept == seed:
            tensors = [torch.from_numpy(array).requires_grad_(needs) for array, needs in arrays]
            return inputs._replace(tensors=tuple(tensors))
    return None
