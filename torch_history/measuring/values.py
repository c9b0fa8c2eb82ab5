"""How much do the results of two releases differ? Told from the numbers that their processes leave in a folder."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import convert
from numpy.typing import NDArray

from ..store.launches import Differences
from ..system.files import read_bytes
from .recording import Kept

Leaf = tuple[tuple[int, ...], NDArray[np.float64]]
"""The shape of a tensor, and the numbers that were kept of it."""

OPPOSITE = 2.0
"""The largest difference: that of a number and its opposite, or of one that is not finite on one side alone."""


def compare(folder: Path, told: Mapping[str, dict[str, Any]]) -> None:
    """Adds how much each release, oldest first, differs from older ones and itself, and removes the files."""
    kept = {tag: convert(found, Kept) for tag, found in told.items()}
    leaves = {tag: [_leaves(of, folder / file) for file in of.files] or [[]] for tag, of in kept.items()}
    for number, (tag, found) in enumerate(told.items()):
        of, own = kept[tag], leaves[tag]
        older = itertools.islice(kept, number)
        found["differences"] = {one: _differences(leaves[one][0], own[0], of) for one in older}
        if len(set(of.files)) > 1:
            found["again"] = _differences(own[1], own[0], of)
    for file in {file for of in kept.values() for file in of.files}:
        (folder / file).unlink(missing_ok=True)


def _leaves(of: Kept, path: Path) -> list[Leaf]:
    """Every tensor in order; none where a process has not kept its numbers, or another number of them."""
    try:
        numbers = np.frombuffer(read_bytes(path), "<f8")
    except ValueError:
        return []
    if len(of.tensors) != len(of.items) or len(numbers) != sum(of.items):
        return []
    parts = zip(of.tensors, np.split(numbers, np.cumsum(of.items)[:-1]), strict=False)
    return [(tensor.shape, leaf) for tensor, part in parts for leaf in np.split(part, tensor.count)]


def _differences(older: list[Leaf], newer: list[Leaf], of: Kept) -> Differences:
    """Of each tensor of the newer, that of the most different one of its row."""
    leaves = itertools.zip_longest(older, newer)
    found = []
    for tensor in of.tensors:
        of_row = [_difference(*pair) for pair in itertools.islice(leaves, tensor.count)]
        known = [one for one in of_row if one is not None]
        found.append(max(known) if of_row and len(known) == len(of_row) else None)
    return tuple(found)


def _difference(before: Leaf | None, now: Leaf | None) -> float | None:
    """The largest one as a share of the largest number of both; None where the shapes differ, or one is not known."""
    if before is None or now is None or before[0] != now[0] or len(before[1]) != len(now[1]):
        return None
    one, other = before[1], now[1]
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.isfinite(one) & np.isfinite(other)
        if (~finite & (one != other) & ~(np.isnan(one) & np.isnan(other))).any():
            return OPPOSITE
        one, other = one[finite], other[finite]
        largest = max(np.abs(one).max(initial=0.0), np.abs(other).max(initial=0.0))
        return float(f"{np.abs(one / largest - other / largest).max(initial=0.0):.3g}") if largest else 0.0
