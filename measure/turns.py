"""How do processes of several releases measure one case within the same milliseconds? Each takes one stretch at a time.

What slows a machine lasts for milliseconds to minutes, and it slows what is measured a moment later as well. So the program
that started these processes lets them take turns: in one turn each release takes one stretch of `clock`, while the others
wait. What is compared are the stretches of one turn.
"""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from contract.request import END, TAKE, TURNS

from . import clock, stopwatch

_NAMED = os.environ.pop(TURNS, "").split(":")
_ASKS = int(_NAMED[0].split("/")[2]) if _NAMED[0] else 0
"""The program that started this process, whose pipes they are."""

_PIPES = [os.open(path, mode) for path, mode in zip(_NAMED, (os.O_RDONLY, os.O_WRONLY)) if path]
"""What this process is told, and what it answers; none where it takes no turns."""


LONG_BLOCK = 0.02
"""Seconds of a block beside which filling the caches is nothing: a tenth of a millisecond for two megabytes."""


BUILDING = 0.5
LEAST_OF_A_BUILD = 4
"""A call is built anew after so many turns, once that takes no more than half as long as they took. The addresses of its
inputs make a call slower or faster than the same call in another process."""


class Anew(NamedTuple):
    """How a call is built anew on inputs of its own, and the seconds that this takes."""

    build: Callable[[], Any]
    seconds: float

    def of(self, name: str) -> Anew:
        """As it is for a part of the call."""
        return Anew(lambda: getattr(self.build(), name), self.seconds)


def wanted() -> bool:
    """Whether this process takes turns with others."""
    return bool(_PIPES)


def measured(call: Callable[[], object], on: str, anew: Anew | None, before: Any = None, busy: bool = False) -> dict:
    """`samples`, in seconds per call of an already warm `call`, as `clock.samples` has them, and `turns`: the seconds per
    call of each stretch, in order of turns; without `turns` where no other release took any. Seconds are those that
    processors were kept `busy` where that is asked. Some turns after the other the call is built `anew`, where that is known
    how. What is done `before` each call is not timed.

    First it tells how many bytes this process holds, then in each turn what it found. Whoever asks says when to end; what
    is counted afterwards is counted on the processors that this process began on.
    """
    began_on = os.sched_getaffinity(0)
    calls = clock._calls_of_a_block(call if before is None else lambda: (before(), call()), on)
    _say(_resident())
    found: list = []
    samples: list = []
    taken, quickest = 0.0, float("inf")
    block, since, spent = 0.0, 0, 0.0
    while (told := os.read(_PIPES[0], 1)) == TAKE:
        there = os.sched_getaffinity(_ASKS)
        if there != os.sched_getaffinity(0):  # whoever asks has looked for a quiet processor
            os.sched_setaffinity(0, there)
        if anew and since >= LEAST_OF_A_BUILD and spent * BUILDING > anew.seconds:
            call, since, spent = anew.build(), 0, 0.0
        if block < LONG_BLOCK and not before:  # what other releases drove out of the caches comes back in a block
            clock._block(call, calls, on)
        seconds, whole = (_kept_busy if busy else _stretch)(call, before, calls, on)
        since, spent = since + 1, spent + whole
        found.append(float(f"{seconds:.5g}"))
        _say(seconds)
        block = seconds * calls
        taken, quickest = taken + whole, min(quickest, seconds)
        if taken >= clock.SAMPLE_SECONDS:
            samples.append(quickest)
            taken, quickest = 0.0, float("inf")
    if not told:
        raise SystemExit("whoever asked for this case has ended")
    os.sched_setaffinity(0, began_on)
    samples = samples or [quickest]
    return {"samples": samples, "turns": found} if told == END else {"samples": samples}


def _kept_busy(call: Callable[[], object], before: Any, calls: int, on: str) -> tuple:
    """Seconds per call that processors were kept busy, and all the seconds that it took. Some systems count in steps: it
    lasts for `least` of them, and of a call that mostly waits, for ten times as long once there are any."""
    together, least = call if before else lambda: clock._block(call, calls, on), stopwatch.CPU_BLOCK_SECONDS
    made, busy, began = 0, 0.0, time.perf_counter()
    while busy < least and not (busy and time.perf_counter() - began > 10 * least):
        if before:
            before()
        at_work = stopwatch.cpu_seconds()
        together()
        busy += stopwatch.cpu_seconds() - at_work
        made += 1 if before else calls
    return busy / made, time.perf_counter() - began


def _stretch(call: Callable[[], object], before: Any, calls: int, on: str) -> tuple:
    """Seconds per call of one stretch, and all the seconds that it took. Where the system gave the processor to others
    meanwhile, and this thread never waited by itself, its time on the processor is what the calls took."""
    was, at_work = resource.getrusage(resource.RUSAGE_THREAD), time.thread_time()
    blocks, worked = _blocks(call, before, calls) if before else (clock._stretch(call, calls, on), 0.0)
    worked = worked if before else time.thread_time() - at_work
    now = resource.getrusage(resource.RUSAGE_THREAD)
    seconds = statistics.median(blocks)
    if now.ru_nivcsw > was.ru_nivcsw and now.ru_nvcsw == was.ru_nvcsw:
        seconds = min(seconds, worked / len(blocks))
    return seconds / calls, sum(blocks)


def _blocks(call: Callable[[], object], before: Callable[[], object], calls: int) -> tuple:
    """Seconds of each block, each call timed by itself, and those that this thread worked in them. Calls may take little of
    the time: for so long no stretch lasts."""
    found: list = []
    worked, ends = 0.0, time.perf_counter() + 10 * clock.STRETCH_SECONDS
    while not found or (sum(found) < clock.STRETCH_SECONDS and time.perf_counter() < ends):
        found.append(0.0)
        for _ in range(calls):
            before()
            at_work, began = time.thread_time(), time.perf_counter()
            call()
            found[-1] += time.perf_counter() - began
            worked += time.thread_time() - at_work
    return found, worked


def _resident() -> int:
    """Bytes that this process holds in memory."""
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * resource.getpagesize()


def _say(number: float) -> None:
    os.write(_PIPES[1], f"{number!r}\n".encode())
