"""How long does one call take, in steady state?

asv reads `seconds_per_call` at both ends of a sample and the sample is a block of calls, so a difference is seconds
for one call: (end - begin) / calls per block, with the device idle at both ends.
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


class Clock:
    """A clock that counts seconds per call of the block it was calibrated for.

    One process measures one callable, so there is one clock per process; before calibration it counts plain seconds.
    """

    def __init__(self) -> None:
        self.calls = 1
        self.device = "cpu"

    def __call__(self) -> float:
        device.synchronize(self.device)
        return time.perf_counter() / self.calls

    def calibrate(self, call: Callable[[], object], on: str) -> Callable[[], None]:
        """A function that makes one block of calls of an already warm `call`, long enough to be timed."""
        self.device = on
        calls = 1
        while True:
            seconds = self._seconds(call, calls)
            if seconds >= BLOCK_SECONDS:
                break
            calls = max(calls + 1, int(calls * min(10.0, 1.2 * BLOCK_SECONDS / max(seconds, 1e-9))))
        self.calls = calls
        return _block(call, calls)

    def _seconds(self, call: Callable[[], object], calls: int) -> float:
        self.calls = 1
        block = _block(call, calls)
        begin = self()
        block()
        return self() - begin


def _block(call: Callable[[], object], calls: int) -> Callable[[], None]:
    def block() -> None:
        for _ in itertools.repeat(None, calls):
            call()

    return block


def warm_up(call: Callable[[], object], on: str) -> object:
    """Makes WARM_UP_CALLS calls and returns the last one's result, the device idle."""
    result = None
    for _ in range(WARM_UP_CALLS):
        result = call()
    device.synchronize(on)
    return result


seconds_per_call = Clock()
