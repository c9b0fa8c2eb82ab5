"""What changed in the new 'release': causes that tests/test_planted_causes.py plants, by the name in the environment.

It stands for a release's own code, so it is no part of the workload's file. Much of a cause is planted, because tests run
beside other work.
"""

from __future__ import annotations

import os

import torch

OBJECTS = 1500
"""How many objects a call makes in Python."""

PLANTED = os.environ.get("PLANTED_CAUSE", "")
KEPT: list[object] = []


def slow_relu(x: torch.Tensor) -> torch.Tensor:
    found = torch.empty_like(x)
    for _ in range(56):
        torch.clamp_min(x, 0.0, out=found)
    return found


def checks(x: torch.Tensor) -> int:
    seen = 0
    for number in range(24_000):
        seen += number % 7
    return seen


def entered(x: torch.Tensor) -> torch.Tensor:
    """`x` as the new release takes it in."""
    if PLANTED == "loop":
        checks(x)
    if PLANTED == "copy":
        for _ in range(48):
            x = x.clone()
    if PLANTED in ("tensor", "dict"):
        KEPT.append(x + 1 if PLANTED == "tensor" else {"x": [x]})
    return x


if PLANTED == "operator":
    overrides = torch.library.Library("aten", "IMPL")
    overrides.impl("relu", slow_relu, "CPU")
