"""Does scripting keep intermediates out of memory?

Pairwise overlap area of N boxes with M boxes, as in matching anchors to ground truth. Eager PyTorch makes every
intermediate a tensor of [N, M]; a compiler that fuses needs only the result. Lower is better; the limit is the result.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from . import WrongResult
from .compilers import compiled, scripted, traced

METRICS = ("time", "peak_memory", "operators", "allocations", "kernels", "fusion_groups")

sizes = {
    "small": {"boxes": 30_000, "others": 500},
    "paper": {"boxes": 242_991, "others": 500},
}

ROWS_CHECKED = 997
"""Rows of the result that are compared with NumPy before a measurement; all 242,991 in float64 would need 4 GB."""


TOLERANCE = 0.05
"""Square pixels. Each side, below 400, is off by at most 2**-16 in float32, and their product is rounded by 2**-7 at most:
400 x 2**-16 x 2 + 2**-7 = 0.02."""


def inputs(size: str, device: str, seed: int) -> tuple:
    """Two float32 tensors of corners (x_min, y_min, x_max, y_max), [N, 4] and [M, 4], in pixels of a 1,000 x 1,000 picture.

    About a quarter of the pairs overlap. Drawn with NumPy, so that every release sees the same numbers.
    """
    random = np.random.RandomState(seed)
    return tuple(
        torch.from_numpy(_corners(random, count)).to(device) for count in (sizes[size]["boxes"], sizes[size]["others"])
    )


def _corners(random: np.random.RandomState, count: int) -> np.ndarray:
    start = random.uniform(0, 600, (count, 2))
    extent = random.uniform(1, 400, (count, 2))
    return np.concatenate([start, start + extent], axis=1).astype(np.float32)


def expected(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Overlap areas [N, M] in float64 by NumPy, for corners [N, 4] and [M, 4]."""
    boxes = boxes.astype(np.float64)[:, None, :]
    others = others.astype(np.float64)[None, :, :]
    low = np.maximum(boxes[..., :2], others[..., :2])
    high = np.minimum(boxes[..., 2:], others[..., 2:])
    return np.prod(np.maximum(high - low, 0), axis=-1)


def check(arguments: tuple, result: torch.Tensor) -> None:
    """Raises WrongResult where `result`, [N, M] float32, is not the overlap of `arguments` in ROWS_CHECKED rows."""
    boxes, others = arguments
    shape = (boxes.shape[0], others.shape[0])
    if tuple(result.shape) != shape or result.dtype != torch.float32:
        raise WrongResult(f"the result is {result.dtype} {tuple(result.shape)}, not float32 {shape}")
    rows = np.unique(np.linspace(0, shape[0] - 1, ROWS_CHECKED).astype(np.int64))
    index = torch.from_numpy(rows).to(result.device)
    want = expected(boxes[index].cpu().numpy(), others.cpu().numpy())
    got = result[index].cpu().numpy()
    worst = float(np.abs(got - want).max())
    if not worst <= TOLERANCE:
        raise WrongResult(f"an overlap area is off by {worst:.3g} square pixels")


def overlap(boxes: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """The note's form: columns, then minimum and maximum of every pair by broadcasting. [N, 4], [M, 4] -> [N, M]."""
    x_min, y_min, x_max, y_max = boxes.split(1, dim=1)
    other_x_min, other_y_min, other_x_max, other_y_max = others.split(1, dim=1)
    width = (torch.min(x_max, other_x_max.t()) - torch.max(x_min, other_x_min.t())).clamp(min=0)
    height = (torch.min(y_max, other_y_max.t()) - torch.max(y_min, other_y_min.t())).clamp(min=0)
    return width * height


def stacked_overlap(boxes: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """The other common form: corners stacked as [N, M, 2]. [N, 4], [M, 4] -> [N, M]."""
    low = torch.max(boxes[:, None, :2], others[None, :, :2])
    high = torch.min(boxes[:, None, 2:], others[None, :, 2:])
    extent = (high - low).clamp(min=0)
    return extent[:, :, 0] * extent[:, :, 1]


def in_place_overlap(boxes: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """What a careful engineer writes without a compiler: three buffers of [N, M]. [N, 4], [M, 4] -> [N, M]."""
    x_min, y_min, x_max, y_max = boxes.split(1, dim=1)
    other_x_min, other_y_min, other_x_max, other_y_max = others.split(1, dim=1)
    area = torch.min(x_max, other_x_max.t())
    scratch = torch.max(x_min, other_x_min.t())
    area.sub_(scratch).clamp_(min=0)
    height = torch.min(y_max, other_y_max.t())
    torch.max(y_min, other_y_min.t(), out=scratch)
    height.sub_(scratch).clamp_(min=0)
    return area.mul_(height)


def _bound(function: Callable, arguments: tuple) -> Callable[[], torch.Tensor]:
    boxes, others = arguments
    return lambda: function(boxes, others)


variants = {
    "eager": lambda arguments: _bound(overlap, arguments),
    "scripted": lambda arguments: _bound(scripted(overlap), arguments),
    "traced": lambda arguments: _bound(traced(overlap, arguments), arguments),
    "compiled": lambda arguments: _bound(compiled(overlap, arguments[0].device.type), arguments),
    "in_place": lambda arguments: _bound(in_place_overlap, arguments),
    "stacked_eager": lambda arguments: _bound(stacked_overlap, arguments),
    "stacked_scripted": lambda arguments: _bound(scripted(stacked_overlap), arguments),
}
"""Name of a variant -> what builds its zero-argument callable from `inputs`; building is not part of any measurement."""
