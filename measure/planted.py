"""Would the suite see it? A change of known size, put into a call to find out how often it is found.

`torch-history run --calibrate` sets TORCH_HISTORY_PLANTED for the processes of one arm; nothing is planted without it. Time
is planted on the host: on a GPU, a call that keeps the queue full hides it.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable
from typing import Any

import torch

from contract.request import Request

from . import clock

TURNS = 5
"""Blocks of calls, of which the quickest tells what planting costs: it was not interrupted."""

BYTES = 4096

FACT = "planted"
"""Begin of the name of a launch's fact that says what was really planted into a case."""

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
    """`call`, or `call` with what TORCH_HISTORY_PLANTED names: more `time` in some cases (see `share`), one `operator`
    more, 4 KiB more at its `peak`, or a `failure`, which is raised. `case` is variant and size. Raises ValueError for what
    is none of these."""
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
    if what:
        raise ValueError(f"nothing is known of planting '{what}'")
    return call


def into_each(call: Callable[[object], object], case: str) -> Callable[[object], object]:
    """As `into`, for a call whose every turn takes another time: each becomes longer by IN_CALLS times the share.
    What begins after a wait begins colder, so these calls also take longer themselves."""
    what = Request.of(os.environ).planted
    return _Longer(call, IN_CALLS * share(case)) if what == "time" and share(case) else call


def share(case: str) -> float:
    """How much time is planted in `case`, as a share of its own: 5 %, 10 % or 20 % in a sixth of all cases each, chosen by a
    checksum of its name, and nothing in the other half. An upgrade does not change everything either."""
    return (0.05, 0.1, 0.2, 0.0, 0.0, 0.0)[zlib.crc32(case.encode()) % 6]


def _longer(call: Callable[[], object], share: float, on: str) -> _Longer:
    """`call`, longer by `share` of what each call takes, what the waiting itself costs counted in. A call on a GPU returns
    before its work is done, so there the share is of what it took when this was made."""
    each = share * min(_seconds(call, on) for _ in range(TURNS)) if on == "cuda" else None

    def nothing() -> None: ...

    free = _Longer(nothing, 0.0)
    overhead = min(_seconds(free, on) - _seconds(nothing, on) for _ in range(TURNS))
    return _Longer(call, share, max(0.0, overhead), each)


class _Longer:
    """A call after which the host is kept busy for `share` of the time that it took, or for `each` seconds, less the
    `overhead` of doing so; what is too short for the clock is saved up over calls.

    A share of what a call took once, before it was measured, is not that share of what the clock sees: processes and the
    calls within one differ by more than is planted."""

    LEAST = 2e-5

    def __init__(
        self, call: Callable[..., object], share: float, overhead: float = 0.0, each: float | None = None
    ) -> None:
        self._call, self._share, self._overhead, self._each = call, share, overhead, each
        self._calls, self._own, self._waited, self._owed = 0, 0.0, 0.0, 0.0

    def __call__(self, *arguments: object) -> object:
        began = time.perf_counter()
        result = self._call(*arguments)
        took = time.perf_counter() - began
        self._calls += 1
        self._own += took
        self._owed += (self._share * took if self._each is None else self._each) - self._overhead
        if self._owed > self.LEAST:
            self._wait()
        return result

    def __getattr__(self, name: str) -> object:
        return getattr(self._call, name)

    @property
    def ratio(self) -> float | None:
        """How many times as long the calls were, by the clock around the call and around what was added; None where that is
        not known: of a GPU, and before a call."""
        if self._each is not None or not self._own:
            return None
        return 1 + (self._waited + self._overhead * self._calls) / self._own

    def _wait(self) -> None:
        """What the clock's steps add to a wait is taken off the next. A wait that was interrupted is not: the calls after it
        would go without, and those are the quickest, which are what counts."""
        began = time.perf_counter()
        waited = 0.0
        while waited < self._owed:
            waited = time.perf_counter() - began
        waited = min(waited, self._owed + self.LEAST)
        self._owed -= waited
        self._waited += waited


def told(call: object, case: str) -> dict[str, float]:
    """What was really planted into `call`, as a fact of its launch: `planted CASE` -> how many times as long its calls were.
    Empty where nothing was, or where it is not known."""
    ratio = call.ratio if isinstance(call, _Longer) else None
    return {f"{FACT} {case}": round(ratio, 6)} if ratio else {}


def _seconds(call: Callable[[], object], on: str) -> float:
    """Seconds a call."""
    calls = clock._calls_of_a_block(call, on)
    return clock._block(call, calls, on) / calls
