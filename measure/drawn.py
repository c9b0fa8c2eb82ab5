"""Are a case's inputs drawn once for all processes that count it? On the host, before they are forked, which then copy them.

Drawing the largest inputs of saved_tensors takes three seconds of a processor, more than all the rest of a case. So the
first case that needs them leaves them to the other cases, which are forked from the same interpreter. What a case asks of
the device is the same: one copy of each tensor, in order.
"""

from __future__ import annotations

import mmap
import os
import pickle
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

WORKLOADS = ("saved_tensors",)
"""Workloads whose inputs hold all their tensors in `tensors`, drawn by NumPy and then copied to the device one by one."""

MOST_SIZES = 32
"""Sizes of a workload that inputs are kept of."""

HEAD = 16 * mmap.PAGESIZE
"""Bytes before the first tensor's numbers, for what the inputs are without them."""

_FILES = {
    name: [os.memfd_create(name) for _ in range(MOST_SIZES)] if hasattr(os, "memfd_create") else []
    for name in WORKLOADS
}
"""Files in memory, one for each size, made here so that every process forked from this one has them. They end with the last;
only Linux has them."""


def once(workload: ModuleType, size: str, seed: int) -> Any:
    """`workload`, with an `inputs` that copies to the device what was drawn on the host; itself where it is none of
    WORKLOADS."""
    name = workload.__name__.rpartition(".")[2]
    if name not in WORKLOADS:
        return workload
    number = list(workload.sizes).index(size)
    if number >= len(_FILES[name]):
        return _copying(workload, workload.inputs(size, "cpu", seed))
    drawn = _read(_FILES[name][number], seed)
    if drawn is None:
        drawn = workload.inputs(size, "cpu", seed)
        _write(_FILES[name][number], seed, drawn)
    return _copying(workload, drawn)


def _copying(workload: ModuleType, drawn: Any) -> Any:
    def inputs(size: str, device: str, seed: int) -> Any:
        tensors = [of.detach().to(device).requires_grad_(of.requires_grad) for of in drawn.tensors]
        return drawn._replace(tensors=tuple(tensors))

    return SimpleNamespace(**{**vars(workload), "inputs": inputs})


def _write(file: int, seed: int, inputs: Any) -> None:
    """Keeps `inputs`: what it is without its numbers, then each tensor's numbers from the begin of a page on."""
    arrays = [of.detach().numpy() for of in inputs.tensors]
    begins, end = [], HEAD
    for array in arrays:
        begins.append(end)
        end += -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    forms = [(array.dtype.str, array.shape, of.requires_grad) for array, of in zip(arrays, inputs.tensors)]
    os.ftruncate(file, 0)  # all of it is zero until the numbers are there
    os.ftruncate(file, end)
    with mmap.mmap(file, end) as memory:
        for array, begin in zip(arrays, begins):
            np.ndarray(array.shape, array.dtype, memory, begin)[...] = array
    # Last, so that where a process is killed before, nothing is kept.
    os.pwrite(file, pickle.dumps((seed, inputs._replace(tensors=()), list(zip(begins, forms)))), 0)


def _read(file: int, seed: int) -> Any:
    """What was kept of this seed; None where nothing was."""
    import torch  # here, because the rest is tested where there is none

    head = os.pread(file, HEAD, 0)
    if not head.strip(b"\0"):
        return None
    kept, inputs, places = pickle.loads(head)
    if kept != seed:
        return None
    memory = mmap.mmap(file, 0, access=mmap.ACCESS_COPY)
    tensors = [
        torch.from_numpy(np.ndarray(shape, dtype, memory, begin)).requires_grad_(needs)
        for begin, (dtype, shape, needs) in places
    ]
    return inputs._replace(tensors=tuple(tensors))
