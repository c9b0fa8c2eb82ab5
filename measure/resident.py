"""How much memory does a process hold after many calls, and what does each of them leave?

Memory is what the system counts as the process's own (RssAnon in proc(5)). It holds what no profiler of torch sees: leaks in
Python, in C++ and in libraries. It is read between blocks of calls, after the garbage collector has run. The growth is the
slope of Theil (1950) and Sen (1968): the median of the slopes of all pairs of readings, with the interval that Kendall's
statistic gives.

The system counts pages, and a leak that fits into memory that lay free in the process moves none for a while. So what is in
use is counted as well, exactly: objects, and what Python's allocator and the C library's have given out. Each number comes
with the least growth that would have been told.
"""

from __future__ import annotations

import ctypes
import gc
import math
import re
import statistics
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import torch

WARM_UP_CALLS = 10
READINGS = 25

SECONDS = 2.0
MOST_SECONDS = 10.0
CALLS = 2000
"""All readings together take SECONDS. Where that is too little for so many calls they go on, to MOST_SECONDS: a growth is
seen by what all calls leave together. A call that takes longer than a reading may is made once for each."""

DEVICE_READINGS = 15
"""Of the device's memory, each after one call. The first third is left out, and between the others there are nine calls."""

MOST_BYTES = 2**30
"""Where all calls together would leak more, fewer are made, so that a large leak does not take the machine's memory."""

Z = 3.29
"""Of a normal distribution: one interval in two thousand is above zero where nothing grows."""

LEAST_BYTES = 2**20
"""The readings must rise by more than so much together. Less is what allocators keep and what Python caches."""

LASTING = 0.6
"""The second half must rise by this share of what the first one does. What settles rises less and less, and is no leak."""

EVEN = 0.6
"""What calls leave rises evenly, and what caches and free lists take up, now more and now less."""

RISING = 0.8
"""The share of the readings that must lie above the one before."""


def resident() -> int:
    """Bytes of this process that no file holds."""
    with open("/proc/self/status", encoding="ascii") as stream:
        found = re.search(r"^RssAnon:\s*(\d+) kB", stream.read(), re.MULTILINE)
    if not found:
        raise RuntimeError("this system does not say how much memory a process holds: /proc/self/status has no RssAnon")
    return int(found[1]) * 1024


class _Mallinfo(ctypes.Structure):
    """`struct mallinfo2` of mallinfo(3): ten numbers, of which two are needed."""

    _fields_ = (
        ("before", 4 * ctypes.c_size_t),
        ("hblkhd", ctypes.c_size_t),
        ("between", 2 * ctypes.c_size_t),
        ("uordblks", ctypes.c_size_t),
        ("after", 2 * ctypes.c_size_t),
    )


NO_COUNT = "only the allocator of glibc 2.33 or later tells what it has given out, and memory comes from another here"


def in_use() -> Callable[[], int] | None:
    """What counts the bytes that the C library's allocator has given out, in all its arenas and in blocks of their own; None
    where it cannot, or where memory comes from another allocator."""
    mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo is None:
        return None
    mallinfo.restype = _Mallinfo

    def count() -> int:
        told = mallinfo()
        return int(told.uordblks + told.hblkhd)

    before, block = count(), bytearray(2**20)
    return count if count() - before >= len(block) else None


def _give_back() -> None:
    """Gives what lies free to the system, where the C library can: a leak would fill that before the process grew."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def measured(call: Callable[[], object]) -> dict[str, Any]:
    """`resident_memory`, bytes after many calls, unavailable where it grows at each of them; and what each call leaves:
    `resident_growth` and `kept_bytes`, bytes; `kept_objects` and `kept_blocks`, how many. Of these each is {"value":,
    "detectable":}: a whole number, 0 where it is not above zero for certain, and the least that would have been told.

    Calls `call` from 36 times to as often as ten seconds allow.
    """
    began = time.perf_counter()
    for _ in range(WARM_UP_CALLS):
        call()
    each = max((time.perf_counter() - began) / WARM_UP_CALLS, 1e-7)
    calls = max(1, int(min(MOST_SECONDS, max(SECONDS, CALLS * each)) / READINGS / each))
    count = in_use()
    counters: dict[str, Callable[[], int]] = {
        "resident_growth": resident,
        "kept_objects": lambda: len(gc.get_objects()),
        "kept_blocks": sys.getallocatedblocks,
        **({} if count is None else {"kept_bytes": count}),
    }
    # Written over, never added to: what is read must not be what was kept of the readings before.
    readings = {name: array("q", [0]) * (READINGS + 1) for name in counters}

    def read(at: int, calls: int) -> None:
        for _ in range(calls):
            call()
        gc.collect()
        for name, counter in counters.items():
            readings[name][at] = counter()

    _give_back()
    call()
    gc.collect()
    before, held = resident(), readings["resident_growth"]
    read(0, calls)
    leaked = (held[0] - before) * READINGS
    calls = max(1, calls * MOST_BYTES // leaked) if leaked > MOST_BYTES else calls
    for at in range(1, READINGS + 1):
        read(at, calls)
    found: dict[str, Any] = {name: _of_a_call(name, readings[name], calls) for name in counters}
    found.setdefault("kept_bytes", {"unavailable": NO_COUNT})
    grows = found["resident_growth"]["value"]
    level = {"unavailable": f"it grows by {grows:,} B at each call, so it has no level"} if grows else held[-1]
    return {"resident_memory": level, **found}


def on_device(call: Callable[[], object]) -> dict[str, int]:
    """`kept_on_device`, bytes of tensors on the GPU that each call leaves, from 25 calls."""
    for _ in range(WARM_UP_CALLS):
        call()
    counts = []
    for _ in range(DEVICE_READINGS):
        call()
        gc.collect()
        counts.append(torch.cuda.memory_allocated())
    return {"kept_on_device": round(kept(counts)[0])}


def _of_a_call(name: str, readings: Sequence[int], calls: int) -> dict[str, int]:
    """What of a counter is told as the growth at each of so many calls between two readings."""
    by, seen_from = growth(readings) if name == "resident_growth" else kept(readings)
    return {"value": round(by / calls), "detectable": max(1, math.ceil(seen_from / calls))}


def _settled(readings: Sequence[float]) -> Sequence[float]:
    return readings[len(readings) // 3 :]


def growth(readings: Sequence[float]) -> tuple[float, float]:
    """By how much each reading is above the one before it, 0 where that is not above zero for certain; and from how much on
    these readings would have told it."""
    later = _settled(readings)
    n = len(later)
    slopes = sorted((b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(later), 2))
    half = Z * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    rises = sorted(b - a for a, b in zip(later, later[1:]))
    half_way = n // 2
    first, last = later[half_way] - later[0], later[-1] - later[-1 - half_way]
    # What would have to be added from each reading to the next for all that is asked of a growth to hold.
    lacking = max(
        -slopes[max(0, math.floor((len(slopes) - half) / 2))],
        (LEAST_BYTES - (later[-1] - later[0])) / (n - 1),
        -rises[n - 1 - math.ceil(RISING * (n - 1))],
        (LASTING * first - last) / ((1 - LASTING) * half_way),
    )
    return _told(statistics.median(slopes), lacking)


def kept(counts: Sequence[int]) -> tuple[float, float]:
    """As `growth`, of what is counted exactly: it grows where the least rise is EVEN of the median one."""
    later = _settled(counts)
    rises = [b - a for a, b in zip(later, later[1:])]
    usual = statistics.median(rises)
    return _told(usual, (EVEN * usual - min(rises)) / (1 - EVEN))


def _told(by: float, lacking: float) -> tuple[float, float]:
    return (by if lacking < 0 else 0.0), max(by, 0.0) + lacking
