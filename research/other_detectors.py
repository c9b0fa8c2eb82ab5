"""What do Otava and PELT say of a series? Run by a Python that has them. Each line of standard input is a JSON list of
levels, oldest first, each of standard output the places of changes by setting: {"otava": {"0.001": [12]}, "pelt": {"2":
[12]}}."""

import json
import sys

import numpy as np
import ruptures
from otava.analysis import compute_change_points

SIGNIFICANCE = (1e-3, 1e-5, 1e-7)
"""Otava's, its default first."""

PENALTIES = (2, 4, 8, 16, 32, 64)
"""Of a change in PELT, in noise**2 * log(releases): 2 is the usual one, of Bayes' information criterion."""


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


for line in sys.stdin:
    series = np.array(json.loads(line))
    answers = {
        "otava": {str(setting): otava(series, setting) for setting in SIGNIFICANCE},
        "pelt": {str(setting): pelt(series, setting) for setting in PENALTIES},
    }
    print(json.dumps(answers))
