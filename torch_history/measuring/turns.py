"""How are several releases measured within the same milliseconds? Each has one process for a case, and in each turn every
one of them takes one stretch (measure/turns.py), in an order of chance; no two run at the same time."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import random
import re
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from contract.request import ALONE, END, TAKE

from ..analysis.turned import CLUSTERED, PROCESS
from .conditions import Quiet, texts

if TYPE_CHECKING:
    from .server import Server

_Item = TypeVar("_Item")

LEAST_TURNS = 6
LEAST_SECONDS = 0.5
MOST_TURNS = 200
MOST_SECONDS = 3.0
"""Of all turns of a metric in a round; LEAST_TURNS are taken in any case. What few turns show of their scatter may be small
by chance."""

SHORT = 0.05
PATIENCE = 2.0
"""Seconds of a turn that is short, and for which all turns of a metric wait at most until the core is quiet: then another
round may be luckier. Neighbours come and go within tens of milliseconds."""

MEMORY_SHARE = 0.5
"""Share of the memory that is free which processes that wait for their turn may hold together."""

MOST_HELD = 5 * 2**30
"""Bytes that must be free for each process that is made ready beside others: no case of the suite takes more."""


def ask_in_turns(
    servers: Sequence[Server],
    benchmark: dict[str, Any],
    index: int,
    quiet: Quiet,
    processors: Sequence[int] = (),
    untimed: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
) -> float:
    """Measures case `index` of `benchmark` on all `servers`, a process of each, in turns, short ones when it is `quiet`.
    Where there is memory, what is not timed happens on all `processors` at once, each time within what `untimed` gives.
    Returns the seconds until the last turn: what is counted afterwards is counted once. Raises what one of them raised."""
    began = time.monotonic()
    with ThreadPoolExecutor(len(servers)) as asking:
        try:
            at_once = int(min(_available() / MOST_HELD, len(servers), len(processors)))
            apart = processors[:at_once] if at_once > 1 else ()
            with untimed():
                waiting = _ready(servers, apart, lambda server: asking.submit(_ask, server, benchmark, index), quiet)
            overhead, over = time.monotonic() - began, time.monotonic()
            while waiting:
                _take(waiting, overhead, quiet)
                over = time.monotonic()
                word = END if len(waiting) > 1 else ALONE
                with untimed():
                    waiting = _finish(waiting, word, max(1, len(apart)))
            return over - began
        except BaseException:
            for server in servers:
                server.stop()
            raise


def _ready(
    servers: Sequence[Server], processors: Sequence[int], ask: Callable[[Server], object], quiet: Quiet
) -> list[Server]:
    """Begins to `ask` each server, on each of `processors` one at a time. Returns those whose processes wait for their turn;
    for which there is no memory at once, those take all their turns alone."""
    waiting, left = [], len(servers)
    for batch in _batches(servers, max(1, len(processors))):
        with contextlib.ExitStack() as moved:
            for server, processor in itertools.zip_longest(batch, processors[: len(batch)]):
                if processor is not None:
                    moved.enter_context(server.on(processor))
                ask(server)
            held = [server.turns.next() for server in batch]
        left -= len(batch)
        for server, of in zip(batch, held, strict=True):
            if of is not None and of * left > MEMORY_SHARE * _available():
                alone = [server]
                while alone:
                    _take(alone, 0.0, quiet)
                    alone = _finish(alone, ALONE)
            elif of is not None:
                waiting.append(server)
    return waiting


def _batches(items: Sequence[_Item], size: int) -> list[Sequence[_Item]]:
    return [items[first : first + size] for first in range(0, len(items), size)]


def _ask(server: Server, benchmark: dict[str, Any], index: int) -> None:
    """`Server.ask`, whose end is told where its turns are."""
    failure: BaseException | None = None
    try:
        server.ask(benchmark, index)
    except BaseException as error:
        failure = error
    server.turns.end(failure)


def _finish(servers: Sequence[Server], word: bytes, at_once: int = 1) -> list[Server]:
    """Tells processes that they have had their turns. Returns the servers of those that are ready for another metric's."""
    ready = []
    for batch in _batches(servers, at_once):
        for server in batch:
            server.turns.tell(word)
        ready += [server for server in batch if server.turns.next() is not None]
    return ready


def _take(servers: list[Server], overhead: float, quiet: Quiet) -> None:
    """All turns of one metric, whose processes took `overhead` seconds to be ready. Ended ones go out of `servers`."""
    taken: list[list[float]] = [[] for _ in servers]
    seconds_of_turns = waited = 0.0
    while not _is_enough(taken, overhead, seconds_of_turns):
        if seconds_of_turns <= SHORT * len(taken[0]):
            waited += quiet.wait(PATIENCE - waited)
            if waited >= PATIENCE and len(taken[0]) >= LEAST_TURNS:
                return
        began = time.monotonic()
        gone = []
        for place, server in random.sample([*enumerate(servers)], len(servers)):
            server.turns.tell(TAKE)
            seconds = server.turns.next()
            if seconds is None:
                gone.append(place)
            else:
                taken[place].append(max(seconds, 1e-12))
        for place in sorted(gone, reverse=True):
            del servers[place], taken[place]
        if not servers:
            return
        seconds_of_turns += time.monotonic() - began


def _is_enough(taken: Sequence[Sequence[float]], overhead: float, seconds: float) -> bool:
    """Whether other processes would tell more in the seconds that further turns take: after sqrt(overhead / seconds of a
    turn x variance of turns / of processes) turns (Cochran 1977, "Sampling Techniques", 10.6)."""
    count = len(taken[0])
    if count < LEAST_TURNS or seconds < LEAST_SECONDS:
        return False
    if count >= MOST_TURNS or seconds >= MOST_SECONDS:
        return True
    within = max(map(_scatter, taken[:-1], taken[1:]), default=_scatter(taken[0], [1.0] * count))
    return count >= math.sqrt(overhead / (seconds / count) * CLUSTERED / 2) * within / PROCESS


def _scatter(olds: Sequence[float], news: Sequence[float]) -> float:
    """The standard deviation of the logarithms of the ratios of two releases' turns, wild ones left out of account."""
    shifts = [math.log(new / old) for old, new in zip(olds, news, strict=True)]
    middle = statistics.median(shifts)
    return 1.4826 * statistics.median(abs(shift - middle) for shift in shifts)


def _available() -> float:
    """Bytes of memory that processes may still take; infinite where the system does not say."""
    found = re.search(r"^MemAvailable: *(\d+) kB", "".join(texts("/proc", "meminfo")), re.MULTILINE)
    return 1024.0 * int(found[1]) if found else math.inf


class Turns:
    """The two pipes of one interpreter, which the processes that it forks open: what they are told, and what they answer."""

    def __init__(self) -> None:
        self._told, self._tells = os.pipe()
        answers, self._answered = os.pipe()
        self.paths = ":".join(f"/proc/{os.getpid()}/fd/{pipe}" for pipe in (self._told, self._answered))
        os.set_blocking(self._told, False)
        self._answers = os.fdopen(answers, encoding="ascii", errors="replace")
        self._failure: BaseException | None = None

    def tell(self, word: bytes) -> None:
        os.write(self._tells, word)

    def next(self) -> float | None:
        """The next number that a process answers; None once `end` was called. No other is taken. Raises its failure."""
        for line in self._answers:
            if line == _ENDED:
                with contextlib.suppress(BlockingIOError):  # it may not have heard all that it was told
                    os.read(self._told, 4096)
                if self._failure:
                    raise self._failure
                return None
            with contextlib.suppress(ValueError):
                return float(line)
        return None

    def end(self, failure: BaseException | None) -> None:
        """Says that the process which was asked has ended, and how asking it failed."""
        self._failure = failure
        os.write(self._answered, _ENDED.encode())

    def close(self) -> None:
        self._answers.close()
        for pipe in (self._told, self._tells, self._answered):
            os.close(pipe)


_ENDED = "ended\n"
