"""How long does one call take, in steady state?

A sample is a block of calls long enough to be timed, with the device idle at both ends: its seconds / its calls.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

from . import device

WARM_UP_CALLS = 3
"""Calls before anything is measured: TorchScript profiles the first, compiles at the second and has settled at the third."""

BLOCK_SECONDS = 0.02
"""Least length of a block of calls: 20 ms makes the clock's own reads and one scheduler tick small beside it."""

MOST_SAMPLES = 5
LEAST_SAMPLES = 2
SAMPLING_SECONDS = 0.5
"""Sampling ends after MOST_SAMPLES, or once it has lasted so long and there are LEAST_SAMPLES. A launch gives one number,
their median, and evidence comes from more launches: samples of one process say little about the next."""


def warm_up(call: Callable[[], object], on: str, calls: int = WARM_UP_CALLS) -> object:
    """Makes `calls` calls and returns the last one's result, the device idle."""
    result = None
    for _ in range(calls):
        result = None
        result = call()
    device.synchronize(on)
    return result


def samples(call: Callable[[], object], on: str) -> list[float]:
    """Seconds per call of an already warm `call`, one number per block; all blocks have the same number of calls."""
    calls = 1
    found: list[float] = []
    began = time.perf_counter()
    while len(found) < MOST_SAMPLES:
        seconds = _block(call, calls, on)
        if not found and seconds < BLOCK_SECONDS:
            calls = max(calls + 1, int(calls * min(10.0, 1.2 * BLOCK_SECONDS / max(seconds, 1e-9))))
            continue
        found.append(seconds / calls)
        if len(found) >= LEAST_SAMPLES and time.perf_counter() - began > SAMPLING_SECONDS:
            break
    return found


def _block(call: Callable[[], object], calls: int, on: str) -> float:
    """Seconds that `calls` calls take together, results dropped."""
    device.synchronize(on)
    begin = time.perf_counter()
    for _ in itertools.repeat(None, calls):
        call()
    device.synchronize(on)
    return time.perf_counter() - begin
