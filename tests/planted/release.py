"""What changed in the new 'release': causes that `python -m research.planted_causes` plants, by the name in the environment.

It stands for a release's own code, so it is no part of the workload's file.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable

import torch

CAUSE = "PLANTED_CAUSE"
LIBRARY = "PLANTED_LIBRARY"
"""The variable that names a cause, and the one that names a library with the loop that is moved."""

TIMES = "PLANTED_TIMES"
"""The variable that says how many times as much of a cause is planted, for machines that others disturb."""

OBJECTS = 1500 * int(os.environ.get("PLANTED_OBJECTS", "1"))
"""How many objects a call makes in Python. A collector that runs more often costs little where there are few."""

LOOPS = 40
"""How often a call runs the loop that is moved: once would be a hundredth of its time."""

PLANTED = os.environ.get(CAUSE, "")
OFTEN = int(os.environ.get(TIMES, "1"))


def slow_relu(x: torch.Tensor) -> torch.Tensor:
    found = torch.empty_like(x)
    for _ in range(14 * OFTEN):
        torch.clamp_min(x, 0.0, out=found)
    return found


def checks(x: torch.Tensor) -> int:
    seen = 0
    for number in range(6000 * OFTEN):
        seen += number % 7
    return seen


def entered(x: torch.Tensor) -> torch.Tensor:
    """`x` as the new release takes it in."""
    if PLANTED == "loop":
        checks(x)
    if PLANTED == "copy":
        for _ in range(12 * OFTEN):
            x = x.clone()
    return x


def _no_loop() -> None:
    pass


def _from_library(path: str) -> Callable[[], object]:
    """The loop over some thousand numbers that lies at another address in the new release."""
    numbers = (ctypes.c_int * 20_000)(*range(20_000))
    function = ctypes.CDLL(path).planted_loop

    def run() -> None:
        for _ in range(LOOPS):
            function(numbers, len(numbers))

    return run


loop = _from_library(os.environ[LIBRARY]) if LIBRARY in os.environ else _no_loop

if PLANTED == "operator":
    overrides = torch.library.Library("aten", "IMPL")
    overrides.impl("relu", slow_relu, "CPU")
if PLANTED == "collector":
    gc.set_threshold(1, 1, 1000)
