"""How long does one call take where `clock` cannot say: by the processor's clock, or with something to do before each call?

Like there, a sample is the quickest of stretches of blocks. A block is as many calls as take a millisecond, and each of them
is timed by itself, so that what is done before it is left out.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable

from . import clock, device

CPU_BLOCK_SECONDS = 0.02
"""Least length of a block by the processor's clock, which some systems count in steps of a millisecond or more."""


def cpu_seconds() -> float:
    """Seconds that this process kept processors busy so far, with its threads and its children that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def nothing() -> None:
    """What is done before a call that needs nothing."""


def samples(call: Callable[[], object], before: Callable[[], object], on: str) -> list[float]:
    """Seconds per call of an already warm `call`, one number per sample, without what `before` takes."""

    def block(calls: int) -> float:
        seconds = 0.0
        for _ in range(calls):
            before()
            device.synchronize(on)
            begin = time.perf_counter()
            call()
            device.synchronize(on)
            seconds += time.perf_counter() - begin
        return seconds

    return _sampled(block, clock.BLOCK_SECONDS[on])


def cpu_samples(call: Callable[[], object], before: Callable[[], object]) -> list[float]:
    """As `samples`, in seconds of processors. Where something is done before each call, each is read by itself."""

    def together(calls: int) -> float:
        begin = cpu_seconds()
        for _ in range(calls):
            call()
        return cpu_seconds() - begin

    def apart(calls: int) -> float:
        seconds = 0.0
        for _ in range(calls):
            before()
            seconds += together(1)
        return seconds

    return _sampled(together if before is nothing else apart, CPU_BLOCK_SECONDS)


def _sampled(block: Callable[[int], float], least: float) -> list[float]:
    """Samples, one after another for as long as `clock` takes them."""
    calls, seconds = 1, block(1)
    while seconds < least:
        calls = max(calls + 1, int(calls * min(10.0, 1.2 * least / max(seconds, 1e-9))))
        seconds = block(calls)
    found: list[float] = []
    began = time.perf_counter()
    while len(found) < clock.MOST_SAMPLES:
        found.append(_quickest(block, calls) / calls)
        if len(found) >= clock.LEAST_SAMPLES and time.perf_counter() - began > clock.SAMPLING_SECONDS:
            break
    return found


def _quickest(block: Callable[[int], float], calls: int) -> float:
    """Seconds of the quickest stretch of a sample."""
    taken, quickest = 0.0, float("inf")
    while taken < clock.SAMPLE_SECONDS:
        stretch = [block(calls)]
        while sum(stretch) < clock.STRETCH_SECONDS:
            stretch.append(block(calls))
        taken += sum(stretch)
        quickest = min(quickest, statistics.median(stretch))
    return quickest
