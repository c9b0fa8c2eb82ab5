"""Which dtypes does a release compute in? A call is tried, and what the release lacks is said in a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from . import Unavailable

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

LACKING = re.compile(
    r"not implemented for '|needs the cpu support|Could not run '|could not create a primitive|does not support bfloat16"
)
"""What a release says of an operator that it has, and not for that dtype or device."""


def tried(call: Callable[[], Any], dtype: torch.dtype) -> Callable[[], Any]:
    """`call`, which is made once. Raises Unavailable where this release lacks an operator of it in `dtype`."""
    try:
        call()
    except RuntimeError as error:
        if not LACKING.search(str(error)):
            raise
        name, said = str(dtype).rpartition(".")[2], str(error).splitlines()[0]
        raise Unavailable(f"torch {torch.__version__} cannot compute this in {name} here: {said[:200]}") from None
    return call


def rounded(array: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    """float32 numbers as `dtype` holds them, float64."""
    return torch.from_numpy(array).to(dtype).to(torch.float64).numpy()


def off(got: torch.Tensor, want: np.ndarray) -> float:
    """The largest difference, as a share of the largest number of `want`; infinite where the shapes differ."""
    if tuple(got.shape) != want.shape:
        return float("inf")
    return float(np.abs(got.detach().cpu().to(torch.float64).numpy() - want).max() / np.abs(want).max())
