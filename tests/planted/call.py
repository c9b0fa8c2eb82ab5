"""The call between two 'releases' that are one torch: operators, Python functions and objects in about equal parts."""

from __future__ import annotations

import torch
from release import OBJECTS, entered  # type: ignore[import-not-found]  # the file beside this one


def inputs(seed: int, size: str) -> tuple:
    torch.manual_seed(seed)
    return torch.randn(256, 256), torch.randn(256, 64)


def mixed(x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    x = entered(x)
    objects = [[number, str(number)] for number in range(OBJECTS)]
    y = torch.relu(x) * len(objects)
    return torch.mm(y, weights).sigmoid().sum()


sizes = {"one": 1}
functions = {"mixed": mixed}
