"""Are a case's inputs drawn once for all processes that count it? On the host, before they are forked, which then copy them.

Drawing the largest inputs of saved_tensors takes two seconds and 2 GB, and each of two processes would. What it asks of the
device is the same: one copy of each tensor, in order.
"""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

WORKLOADS = ("saved_tensors",)
"""Workloads whose inputs hold all their tensors in `tensors`, drawn by NumPy and then copied to the device one by one."""


def once(workload: ModuleType, size: str, seed: int) -> Any:
    """`workload`, with an `inputs` that copies to the device what was drawn here; itself where it is none of WORKLOADS."""
    if workload.__name__.rpartition(".")[2] not in WORKLOADS:
        return workload
    drawn = workload.inputs(size, "cpu", seed)

    def inputs(size: str, device: str, seed: int) -> Any:
        tensors = [of.detach().to(device).requires_grad_(of.requires_grad) for of in drawn.tensors]
        return drawn._replace(tensors=tuple(tensors))

    return SimpleNamespace(**{**vars(workload), "inputs": inputs})
