"""Would the suite see it? A change of known size, put into a call to find out how often it is found.

`torch-history calibrate` sets TORCH_HISTORY_PLANTED for the processes of one arm; nothing is planted without it. Time is
planted on the host: on a GPU, a call that keeps the queue full hides it.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable
from typing import Any

import torch

from contract.request import Request

from . import device

TURNS = 5
"""Blocks of calls, of which the quickest sets the length of what is planted: it was not interrupted."""

BYTES = 4096

SLOWER = 0.1
"""Share of its time that every case of a node gets that is slowed on purpose."""

IN_CALLS = 10
"""Calls that are made once get so many times what steady ones get, 50 to 200 %: they are judged at a margin of 25 %."""


class PlantedFailure(RuntimeError):
    """The failure that was asked for."""


class _Planted:
    """A call that also does what was planted; everything else of it is the call's own."""

    def __init__(self, call: Callable[..., object], beside: Callable[[], object]) -> None:
        self._call = call
        self._beside = beside

    def __call__(self, *arguments: object) -> object:
        kept = self._beside()
        result = self._call(*arguments)
        del kept
        return result

    def __getattr__(self, name: str) -> object:
        return getattr(self._call, name)


def into(call: Callable[[], object], case: str, on: str) -> Any:
    """`call`, or `call` with what TORCH_HISTORY_PLANTED names: more `time` in some cases (see `share`) or `slower` in all of
    them, one `operator` more, 4 KiB more at its `peak`, or a `failure`. `case` is variant and size.

    Raises ValueError where it names something else, PlantedFailure for a failure."""
    what = Request.of(os.environ).planted
    if what == "failure":
        raise PlantedFailure("this failure was planted")
    if what == "operator":
        number = torch.zeros((), device=on)
        return _Planted(call, lambda: number.fill_(1.0))
    if what == "peak":
        return _Planted(call, lambda: torch.empty(BYTES, dtype=torch.uint8, device=on))
    if what == "time":
        return _longer(call, share(case), on) if share(case) else call
    if what == "slower":
        return _longer(call, SLOWER, on)
    if what:
        raise ValueError(f"nothing is known of planting '{what}'")
    return call


def into_each(call: Callable[[object], object], case: str) -> Callable[[object], object]:
    """As `into`, for a call whose every turn takes another time: each becomes longer by IN_CALLS times the share, or by
    SLOWER."""
    what = Request.of(os.environ).planted
    if what == "failure":
        raise PlantedFailure("this failure was planted")
    if what not in ("time", "slower"):
        return call
    more = SLOWER if what == "slower" else IN_CALLS * share(case)

    def planted(argument: object) -> object:
        began = time.perf_counter()
        result = call(argument)
        end = began + (time.perf_counter() - began) * (1 + more)
        while time.perf_counter() < end:
            pass
        return result

    return planted


def share(case: str) -> float:
    """How much time is planted in `case`, as a share of its own: 5 %, 10 % or 20 % in a sixth of all cases each, chosen by a
    checksum of its name, and nothing in the other half. An upgrade does not change everything either."""
    return (0.05, 0.1, 0.2, 0.0, 0.0, 0.0)[zlib.crc32(case.encode()) % 6]


def _longer(call: Callable[[], object], share: float, on: str) -> Callable[[], object]:
    """`call`, longer by `share` of what it takes now: the host waits, what the waiting itself costs counted in."""
    waits = _Waits()

    def nothing() -> None: ...

    beside_nothing = _Planted(nothing, waits)
    overhead = min(_seconds(beside_nothing, on) - _seconds(nothing, on) for _ in range(TURNS))
    waits.each = max(0.0, share * min(_seconds(call, on) for _ in range(TURNS)) - overhead)
    return _Planted(call, waits)


class _Waits:
    """Keeps the host busy for `each` seconds a call; what is too short for the clock is saved up over calls."""

    LEAST = 2e-5

    def __init__(self) -> None:
        self.each = 0.0
        self._owed = 0.0

    def __call__(self) -> None:
        self._owed += self.each
        if self._owed > self.LEAST:
            began = time.perf_counter()
            waited = 0.0
            while waited < self._owed:
                waited = time.perf_counter() - began
            self._owed -= waited


def _seconds(call: Callable[[], object], on: str) -> float:
    """Seconds a call, of as many calls as take a millisecond."""
    calls, seconds = 1, 0.0
    while True:
        device.synchronize(on)
        began = time.perf_counter()
        for _ in range(calls):
            call()
        device.synchronize(on)
        seconds = time.perf_counter() - began
        if seconds > 1e-3 or calls > 10_000:
            return seconds / calls
        calls *= 4
