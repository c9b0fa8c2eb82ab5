"""What do matrix products and convolutions cost, by dtype, shape and layout?

oneDNN, MKL or PyTorch's own loops answer, and which of them does may change with a release. Compare the times of a variant,
which is a dtype, between releases, and with float32. The environment's fact `libraries` names who answered each case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from . import Unavailable, WrongResult
from .dtypes import DTYPES, off, tried

METRICS = ("time", "peak_memory", "retained", "operators", "allocations", "kernels", "host_syncs")

WARM_UP_CALLS = 1
"""Nothing here is compiled by PyTorch; a library generates its code at the first call."""

NAMES_LIBRARIES = True
"""The libraries that answer are a fact of the environment."""

SIDE = 28
"""Pixels of a convolution's result, so that each stride takes as many sums."""

sizes: dict = {
    "square": {"left": (256, 256), "right": (256, 256)},
    "transposed": {"left": (256, 256), "right": (256, 256), "transposed": True},
    "tall": {"left": (4_096, 64), "right": (64, 64)},
    "batched": {"left": (512, 32, 32), "right": (512, 32, 32)},
    **{
        f"convolution stride {stride}": {
            "left": (2, 32, SIDE * stride, SIDE * stride),
            "right": (64, 32, 3, 3),
            "stride": stride,
        }
        for stride in (1, 2, 3)
    },
}
"""Shapes of both operands. `transposed`: both are the transposed views of what lies in memory."""

TOLERANCE = {torch.float32: 1e-3, torch.float16: 2**-7, torch.bfloat16: 2**-4, torch.int8: 0.0}
"""Of the largest expected number, by dtype. Sums have at most 288 products, each near 1 and of either sign. Where they are
kept in float16, one is off by about 0.6 x 288**0.5 x 2**-12 of its usual size, and the worst of 100,000 by three times that;
in bfloat16 by eight times as much. A GPU rounds the operands of a float32 convolution to TF32, by 2**-11."""


class Arguments(NamedTuple):
    """Both operands, float32; `stride` of the convolution, 0 of a product; whether both are `transposed` before."""

    left: torch.Tensor
    right: torch.Tensor
    stride: int
    transposed: bool


class Product(NamedTuple):
    """The result, and the dtype of the operands."""

    values: torch.Tensor
    dtype: torch.dtype


def inputs(size: str, device: str, seed: int) -> Arguments:
    """Normal numbers, drawn with NumPy, so that every release sees the same."""
    numbers, random = sizes[size], np.random.RandomState(seed)
    drawn = (random.standard_normal(numbers[name]).astype(np.float32) for name in ("left", "right"))
    left, right = (torch.from_numpy(array).to(device) for array in drawn)
    return Arguments(left, right, numbers.get("stride", 0), numbers.get("transposed", False))


def operands(arguments: Arguments, dtype: torch.dtype) -> tuple:
    """Both in `dtype`. int8: thirty times the number, to the nearest whole one, from -127 to 127."""
    if dtype == torch.int8:
        return tuple((30 * of).round().clamp(-127, 127).to(dtype) for of in arguments[:2])
    return tuple(of.to(dtype) for of in arguments[:2])


def expected(left: np.ndarray, right: np.ndarray, stride: int, transposed: bool) -> np.ndarray:
    """The product, or where there is a stride the convolution with a border of one zero, in float64 by NumPy."""
    if not stride:
        return left.T @ right.T if transposed else left @ right
    padded = np.pad(left, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, right.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    return np.moveaxis(np.tensordot(windows, right, ((1, 4, 5), (1, 2, 3))), 3, 1)


def check(arguments: Arguments, result: Product) -> None:
    """Raises WrongResult unless the result is that of NumPy for the operands as their dtype holds them: int32 of int8, which
    is exact, and else of the same dtype."""
    left, right = (of.cpu().to(torch.float64).numpy() for of in operands(arguments, result.dtype))
    want = expected(left, right, arguments.stride, arguments.transposed)
    values = torch.int32 if result.dtype == torch.int8 else result.dtype
    if tuple(result.values.shape) != want.shape or result.values.dtype != values:
        raise WrongResult(
            f"the result is {result.values.dtype} {tuple(result.values.shape)}, not {values} {want.shape}"
        )
    share = off(result.values, want)
    if not share <= TOLERANCE[result.dtype]:
        raise WrongResult(f"the result in {result.dtype} is off by {share:.3g} of the largest expected number")


def _multiply(arguments: Arguments) -> Callable:
    if arguments.stride:
        return lambda left, right: torch.nn.functional.conv2d(left, right, stride=arguments.stride, padding=1)
    return torch.matmul


def _multiply_int8(arguments: Arguments) -> Callable:
    if arguments.stride:
        raise Unavailable("a convolution in int8 needs quantised tensors, which are another interface")
    if arguments.left.dim() != 2:
        raise Unavailable("torch._int_mm multiplies two matrices and no batches of them")
    if not hasattr(torch, "_int_mm"):
        raise Unavailable("torch._int_mm, the product in int8, needs torch >= 2.1")
    return torch._int_mm


def _in(dtype: torch.dtype) -> Callable:
    """A builder of the product in `dtype`; the operands are converted before."""

    def build(arguments: Arguments) -> Callable[[], Product]:
        multiply = (_multiply_int8 if dtype == torch.int8 else _multiply)(arguments)
        left, right = operands(arguments, dtype)
        if arguments.transposed:
            left, right = left.t(), right.t()
        return tried(lambda: Product(multiply(left, right), dtype), dtype)

    return build


variants = {**{name: _in(dtype) for name, dtype in DTYPES.items()}, "int8": _in(torch.int8)}
"""Name of a variant -> what builds its zero-argument callable from `inputs`; building is not part of any measurement."""
