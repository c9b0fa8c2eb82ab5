"""How sure is the median of a release's launches? What a chart shows around it; history.js does the same."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from scipy import special

CONFIDENCE = 0.95
"""Of the interval of a release's launches: Student's, of the mean of their logarithms."""

ENOUGH = 3
"""Launches from which there is such an interval; of fewer, the range is shown."""


def interval(numbers: Sequence[float]) -> tuple[float, float]:
    """What is shown around a release's median: Student's interval of the mean logarithm from ENOUGH launches on, else their
    range, which it also is where they are all the same or one is no positive number."""
    low, high = min(numbers), max(numbers)
    if len(numbers) < ENOUGH or low <= 0 or low == high:
        return low, high
    logs = [math.log(number) for number in numbers]
    quantile = float(special.stdtrit(len(logs) - 1, (1 + CONFIDENCE) / 2))
    half = quantile * statistics.stdev(logs) / math.sqrt(len(logs))
    middle = statistics.fmean(logs)
    return math.exp(middle - half), math.exp(middle + half)
