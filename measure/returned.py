"""What does a call return? Form and digest of every tensor, and its numbers in a file, which another release's are held to.

A result is taken apart as tuples, lists and dictionaries hold it, these in the order of their keys: tensors, NumPy's arrays
and Python's numbers. What else it holds is left out.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

MOST_BYTES = 4 * 2**20
"""Bytes that are kept of a result; of a larger one every nth number of each tensor."""

MOST_ROWS = 64
REST = ("others", (), ())
"""Rows that a result is described in, and the form of the last where there would be more: all that is left."""

MOST_LEAVES = 4096
"""Tensors, arrays and numbers of a result that are looked at, the first."""

AT_ONCE = 2**18
"""Numbers that are turned into another type at once, which costs memory."""

SLOW = 10.0
"""Seconds of a call with its inputs, beyond which it is not called again to see whether it returns the same."""


def told(build: Callable[[], Callable[[], Any]], folder: Path) -> dict:
    """What the call that `build` makes returns: `tensors`, rows of neighbours of one form, each with its dtype, shape,
    strides, how many they are, a digest of their numbers and how many of these are not finite; `items`, the numbers that are
    kept of each row; and `files` in `folder`, of this and of another call on equal inputs.

    The other is made with the same object, and where it returns something else with one that is built anew: then the call
    changes its own state, or what it returns is left to chance.
    """
    began = time.perf_counter()
    call = build()
    found, file = described(call(), folder)
    files = [file]
    if time.perf_counter() - began < SLOW:
        again = described(call(), folder)[1]
        files.append(again if again == file else described(build()(), folder)[1])
    return {**found, "files": files}


def described(result: Any, folder: Path) -> tuple:
    """`tensors` and `items` as `told` has them, and the name of the file in `folder` with the numbers, float64 one after
    another, real and imaginary parts too. Results with the same digests have one file."""
    leaves = list(itertools.islice(_leaves(result), MOST_LEAVES))
    every = math.ceil(8 * sum(len(flat) for _, flat in leaves) / MOST_BYTES) | 1
    rows: list[dict] = []
    items: list[int] = []
    kept = [np.empty(0)]
    for form, same in itertools.groupby(leaves, key=lambda leaf: leaf[0]):
        flats = [flat for _, flat in same]
        if len(rows) < MOST_ROWS:
            digest = hashlib.sha256()
            rows.append({**dict(zip(("dtype", "shape", "strides"), form)), "count": len(flats), "not_finite": 0})
            items.append(0)
        elif len(rows) == MOST_ROWS:
            rows[-1].update({**dict(zip(("dtype", "shape", "strides"), REST)), "count": 1})
        for flat in flats:
            for at in range(0, len(flat), AT_ONCE):
                part = _numbers(flat[at : at + AT_ONCE])
                digest.update(part.tobytes())
                rows[-1]["not_finite"] += int(np.count_nonzero(~np.isfinite(part)))
            kept.append(_numbers(flat[::every]).astype(np.float64))
            items[-1] += len(kept[-1])
        rows[-1]["digest"] = digest.hexdigest()[:16]
    name = hashlib.sha256(repr(rows).encode()).hexdigest()[:16]
    (folder / name).write_bytes(np.concatenate(kept).tobytes())
    return {"tensors": rows, "items": items}, name


def of_forms(forms: Iterable[str]) -> dict:
    """`told` of tensors whose dtype and shape alone are known, as `float32 [2, 3]`: the recorder has no numbers."""
    found: list[dict] = []
    for form, same in itertools.groupby(forms):
        dtype, shape = form.split(" ", 1)
        found.append(
            {"dtype": dtype, "shape": json.loads(shape), "strides": [], "digest": "", "count": len(list(same))}
        )
    return {"tensors": found[:MOST_ROWS]}


def _leaves(value: Any) -> Iterator[tuple]:
    """The form of each tensor, array and number, which is dtype, shape and strides, and its numbers in one row."""
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _leaves(value[key])
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, torch.Tensor):
        value, dtype = value.detach(), str(value.dtype).rpartition(".")[2]
        is_strided = value.layout == torch.strided
        dtype, strides = (dtype, value.stride()) if is_strided else (f"{dtype} {value.layout}", ())
        dense = value if is_strided else value.to_dense()
        dense = dense.dequantize() if dense.is_quantized else dense
        yield (dtype, tuple(value.shape), tuple(strides)), dense.reshape(-1)
    elif isinstance(value, (bool, int, float, complex, np.ndarray, np.generic)):
        array = np.asarray(value)
        dtype = f"numpy.{array.dtype}" if hasattr(value, "dtype") else type(value).__name__
        if array.dtype.kind in "biufc":
            yield (dtype, array.shape, tuple(step // array.itemsize for step in array.strides)), array.reshape(-1)


def _numbers(flat: Any) -> np.ndarray:
    """A row of numbers as float64 or int64, which every number of a smaller type is in exactly; complex ones as two."""
    if isinstance(flat, torch.Tensor):
        flat = flat.cpu()
        flat = flat.resolve_conj().resolve_neg() if hasattr(flat, "resolve_neg") else flat
        flat = (flat.double() if flat.is_floating_point() else flat).numpy()
    if flat.dtype.kind == "c":
        return np.ascontiguousarray(flat, np.complex128).view(np.float64)
    return flat.astype(np.float64 if flat.dtype.kind == "f" else np.int64)
