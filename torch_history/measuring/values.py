"""How much do the results of two releases differ? Told from the numbers that their processes leave in a folder."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import convert
from numpy.typing import NDArray

from ..store.launches import Differences
from ..system.files import read_bytes
from .recording import Kept

Numbers = NDArray[np.float64]

OPPOSITE = 2.0
"""The largest difference: that of a number and its opposite, or of one that is not finite on one side alone."""


def compare(folder: Path, told: Mapping[str, dict[str, Any]]) -> None:
    """Adds how much each release, oldest first, differs from older ones and itself, and removes the files."""
    kept = {tag: convert(found, Kept) for tag, found in told.items()}
    numbers = {tag: [_numbers(folder / file, of.items) for file in of.files] for tag, of in kept.items()}
    for number, (tag, found) in enumerate(told.items()):
        of, own = kept[tag], numbers[tag]
        older = itertools.islice(kept, number)
        found["differences"] = {one: _differences(kept[one], numbers[one][:1], of, own[:1]) for one in older}
        if len(set(of.files)) > 1:
            found["again"] = _differences(of, own[1:], of, own[:1])
    for file in {file for of in kept.values() for file in of.files}:
        (folder / file).unlink(missing_ok=True)


def _numbers(path: Path, items: tuple[int, ...]) -> Numbers | None:
    """What a process has kept; None where it has not, or has kept another number of them."""
    try:
        found = np.frombuffer(read_bytes(path), "<f8")
    except ValueError:
        return None
    return found if len(found) == sum(items) else None


def _differences(older: Kept, before: list[Numbers | None], newer: Kept, now: list[Numbers | None]) -> Differences:
    """Of each of the newer tensors, that of the most different one of its row."""
    leaves = itertools.zip_longest(_leaves(older, before), _leaves(newer, now))
    found = []
    for tensor in newer.tensors:
        of_row = [_difference(*pair) for pair in itertools.islice(leaves, tensor.count)]
        known = [one for one in of_row if one is not None]
        found.append(max(known) if of_row and len(known) == len(of_row) else None)
    return tuple(found)


Leaf = tuple[tuple[int, ...], Numbers]
"""The shape of a tensor, and the numbers that were kept of it."""


def _leaves(of: Kept, numbers: list[Numbers | None]) -> Iterator[Leaf | None]:
    """Every tensor in order; nothing where its numbers are not known."""
    if len(of.tensors) != len(of.items) or not numbers or numbers[0] is None:
        return
    for tensor, part in zip(of.tensors, np.split(numbers[0], np.cumsum(of.items)[:-1]), strict=True):
        for leaf in np.split(part, tensor.count):
            yield tensor.shape, leaf


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
