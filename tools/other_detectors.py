"""What do other detectors say of the same series? Run by a Python that has NumPy, apache-otava and ruptures.

Each line of standard input is a series, a JSON list of levels, oldest first. Each line of standard output holds, of each
detector, the places of its changes for each strictness, the detector's usual one first: {"Otava": [[12], []]}.
Arguments name the detectors that are asked; without any, all are.
"""

from __future__ import annotations

import functools
import itertools
import json
import sys

import numpy as np
import ruptures
from otava.analysis import compute_change_points

SIGNIFICANCE = (1e-3, 1e-5, 1e-7)
"""Otava's, its default first."""

PENALTIES = (2, 4, 8, 16, 32, 64)
"""Of a change in PELT, in noise**2 * log(releases): 2 is the usual one, of Bayes' information criterion."""

CHANCES = (0.01, 0.003, 0.001)
"""Of circular binary segmentation: that noise alone splits a stretch. Olshen and others (2004) use 0.01."""

DRAWS = 5_000
"""Stretches of noise from which the statistic's distribution is taken; only its last thousandths count."""


def otava(levels: np.ndarray, significance: float) -> list[int]:
    points, _ = compute_change_points(levels.tolist(), max_pvalue=significance, min_magnitude=0.0)
    return sorted(int(point.index) for point in points)


def pelt(levels: np.ndarray, penalty: float) -> list[int]:
    logarithms = np.log(levels)
    moved = np.diff(logarithms)
    noise = max(1.4826 * float(np.median(np.abs(moved - np.median(moved)))) / 2**0.5, 1e-4)
    search = ruptures.Pelt(model="l2", min_size=1, jump=1).fit(logarithms[:, None])
    found = search.predict(pen=penalty * noise**2 * np.log(len(levels)))
    return [int(place) for place in found[:-1]]


def circular(levels: np.ndarray, chance: float) -> list[int]:
    found = []
    stretches = [(0, len(levels))]
    logarithms = np.log(levels)
    while stretches:
        first, last = stretches.pop()
        if last - first < 3:
            continue
        begin, end, statistic = arc(logarithms[None, first:last])
        if statistic[0] <= limits(last - first)[CHANCES.index(chance)]:
            continue
        places = sorted({first, first + int(begin[0]), first + int(end[0]), last})
        found += places[1:-1]
        stretches += list(itertools.pairwise(places))
    return sorted(set(found))


def arc(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each row the stretch that differs most from the rest: its begin, its end, and the square of Student's t."""
    length = rows.shape[1]
    summed = np.concatenate(
        [np.zeros((len(rows), 1)), np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1)], axis=1
    )
    begin, end = np.triu_indices(length + 1, 1)
    inside = (end - begin) < length
    begin, end = begin[inside], end[inside]
    size = end - begin
    between = (summed[:, end] - summed[:, begin]) ** 2 * (1 / size + 1 / (length - size))
    best = between.argmax(axis=1)
    most = between[np.arange(len(rows)), best]
    left = np.maximum(((rows - rows.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) - most, 1e-12)
    return begin[best], end[best], most / left * (length - 2)


@functools.cache
def limits(length: int) -> list[float]:
    random = np.random.default_rng(length)
    drawn = [arc(random.normal(size=(500, length)))[2] for _ in range(DRAWS // 500)]
    return [float(limit) for limit in np.quantile(np.concatenate(drawn), [1 - chance for chance in CHANCES])]


METHODS = {
    "Otava": (otava, SIGNIFICANCE),
    "PELT (ruptures)": (pelt, PENALTIES),
    "circular binary segmentation": (circular, CHANCES),
}


def main() -> None:
    asked = sys.argv[1:] or list(METHODS)
    for line in sys.stdin:
        levels = np.array(json.loads(line))
        print(json.dumps({name: [METHODS[name][0](levels, each) for each in METHODS[name][1]] for name in asked}))


if __name__ == "__main__":
    main()
