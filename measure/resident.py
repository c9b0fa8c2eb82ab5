"""How much memory does a process hold after many calls, and does it grow with each of them?

Memory is what the system counts as the process's own (RssAnon in proc(5)). It holds what no profiler of torch sees: leaks in
Python, in C++ and in libraries. It is read between blocks of calls, after the garbage collector has run. The growth is the
slope of Theil (1950) and Sen (1968): the median of the slopes of all pairs of readings, with the interval that Kendall's
statistic gives.
"""

from __future__ import annotations

import gc
import math
import re
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

WARM_UP_CALLS = 10
READINGS = 25
SECONDS = 2.0
"""All readings together take so long at most, unless a single call takes longer than a reading may."""

MOST_BYTES = 2**30
"""Where all calls together would leak more, fewer are made, so that a large leak does not take the machine's memory."""

Z = 3.29
"""Of a normal distribution: one interval in two thousand is above zero where nothing grows."""

LEAST_BYTES = 2**20
"""The readings must rise by so much together. Less is what allocators keep and what Python caches."""

LASTING = 0.6
"""The second half must rise by this share of what the first one does. What settles rises less and less, and is no leak."""


def resident() -> int:
    """Bytes of this process that no file holds."""
    with open("/proc/self/status", encoding="ascii") as stream:
        found = re.search(r"^RssAnon:\s*(\d+) kB", stream.read(), re.MULTILINE)
    if not found:
        raise RuntimeError("this system does not say how much memory a process holds: /proc/self/status has no RssAnon")
    return int(found[1]) * 1024


def measured(call: Callable[[], object]) -> dict[str, Any]:
    """`resident_memory`, bytes after many calls, unavailable where it grows at each of them; and `resident_growth`, bytes
    per call, 0 where it is not above zero for certain. Calls `call` from ten times to as often as two seconds allow."""
    began = time.perf_counter()
    for _ in range(WARM_UP_CALLS):
        call()
    each = (time.perf_counter() - began) / WARM_UP_CALLS
    calls = max(1, int(SECONDS / READINGS / max(each, 1e-7)))
    before, after = (_after(call, number) for number in (0, calls))
    leaked = (after - before) * READINGS
    calls = max(1, calls * MOST_BYTES // leaked) if leaked > MOST_BYTES else calls
    readings = [after, *(_after(call, calls) for _ in range(READINGS))]
    grows = round(growth(readings) / calls)
    level = {"unavailable": f"it grows by {grows:,} B at each call, so it has no level"} if grows else readings[-1]
    return {"resident_memory": level, "resident_growth": grows}


def _after(call: Callable[[], object], calls: int) -> int:
    """Bytes that the process holds after so many calls more."""
    for _ in range(calls):
        call()
    gc.collect()
    return resident()


def growth(readings: Sequence[float]) -> float:
    """By how much each reading is above the one before it: 0 where that is not above zero for certain."""
    later = readings[len(readings) // 3 :]
    slopes = sorted((b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(later), 2))
    n = len(later)
    half = Z * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    lowest = slopes[max(0, math.floor((len(slopes) - half) / 2))]
    rises = sum(b > a for a, b in zip(later, later[1:]))
    if lowest <= 0 or later[-1] - later[0] < LEAST_BYTES or rises < 0.8 * (n - 1):
        return 0.0
    half_way = n // 2
    first, last = later[half_way] - later[0], later[-1] - later[-1 - half_way]
    return statistics.median(slopes) if last > LASTING * first else 0.0
