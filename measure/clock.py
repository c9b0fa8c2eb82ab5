"""How long does one call take, in steady state?

A block is some calls between two readings of the clock, the device idle at both ends: its seconds / its calls. A stretch is
the median of a few neighbouring blocks, and a sample the quickest stretch of 30 milliseconds.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable

from . import device

WARM_UP_CALLS = 3
"""Calls before anything is measured: TorchScript profiles the first, compiles at the second and has settled at the third."""

BLOCK_SECONDS = {"cpu": 0.001, "cuda": 0.02}
"""Least length of a block. On a CPU a millisecond: the clock's own reads are a ten-thousandth of it, and it is shorter than
the turn that a scheduler gives to somebody else, so that a median leaves such blocks out; blocks of 20 ms all held one. On a
GPU each end waits for the queue to run empty, which must be small beside the block."""

STRETCH_SECONDS = 0.003
"""A stretch takes blocks for so long, at least one; of three blocks one may be out of line. On shared processors a neighbour
makes everything 1.6 times slower in bursts of some milliseconds, up to half of the time: between two of them there is a
quiet stretch nearly always."""

SAMPLE_SECONDS = 0.03
"""A sample takes stretches for so long, at least one."""

MOST_SAMPLES = 5
LEAST_SAMPLES = 2
SAMPLING_SECONDS = 0.15
"""Sampling ends after MOST_SAMPLES, or once it has lasted so long and there are LEAST_SAMPLES. A launch gives one number,
the quickest of them, and evidence comes from more launches: what disturbs lasts for seconds, so samples of one process
say little about the next."""

LONG_CALL = 0.1
"""A single call that takes so many seconds is long; a shorter one may only have been interrupted, and is tried again."""


def warm_up(call: Callable[[], object], on: str, calls: int = WARM_UP_CALLS) -> object:
    """Makes `calls` calls and returns the last one's result, the device idle."""
    result = None
    for _ in range(calls):
        result = None
        result = call()
    device.synchronize(on)
    return result


def samples(call: Callable[[], object], on: str) -> list[float]:
    """Seconds per call of an already warm `call`, one number per sample; all blocks have the same number of calls."""
    calls = _calls_of_a_block(call, on)
    found: list[float] = []
    began = time.perf_counter()
    while len(found) < MOST_SAMPLES:
        found.append(_sample(call, calls, on))
        if len(found) >= LEAST_SAMPLES and time.perf_counter() - began > SAMPLING_SECONDS:
            break
    return found


def _calls_of_a_block(call: Callable[[], object], on: str) -> int:
    calls = 1
    while True:
        seconds = _block(call, calls, on)
        if BLOCK_SECONDS[on] <= seconds < LONG_CALL:
            seconds = min(seconds, _block(call, calls, on))
        if seconds >= BLOCK_SECONDS[on]:
            return calls
        calls = max(calls + 1, int(calls * min(10.0, 1.2 * BLOCK_SECONDS[on] / max(seconds, 1e-9))))


def _sample(call: Callable[[], object], calls: int, on: str) -> float:
    taken, quickest = 0.0, float("inf")
    while taken < SAMPLE_SECONDS:
        blocks = _stretch(call, calls, on)
        taken += sum(blocks)
        quickest = min(quickest, statistics.median(blocks))
    return quickest / calls


def _stretch(call: Callable[[], object], calls: int, on: str) -> list[float]:
    """Seconds of each of its blocks."""
    blocks = [_block(call, calls, on)]
    while sum(blocks) < STRETCH_SECONDS:
        blocks.append(_block(call, calls, on))
    return blocks


def _block(call: Callable[[], object], calls: int, on: str) -> float:
    """Seconds that `calls` calls take together, results dropped."""
    device.synchronize(on)
    begin = time.perf_counter()
    for _ in itertools.repeat(None, calls):
        call()
    device.synchronize(on)
    return time.perf_counter() - begin
