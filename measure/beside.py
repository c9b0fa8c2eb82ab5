"""What do many small works answer, each in a process of its own and none for too long? No torch."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from contract.words import of_error

NO_TIME = "the time for all cases was over before it was asked"
TOO_LONG = "it took longer than"


class _Child(NamedTuple):
    """A process that does some work and sends what that returns; it leads a process group of its own."""

    name: str
    until: float
    pipe: Any
    process: Any

    def answer(self, why: str = "") -> dict:
        """Ends the process and what it started. Returns its answer, or `failed` with `why`, or with how it ended."""
        told = {"failed": why} if why else None
        with contextlib.suppress(EOFError, OSError):  # of an answer that has not begun, or has not ended
            told = told or self.pipe.recv()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()  # also one that does not lead its group yet
        self.process.join()
        self.pipe.close()
        ended = f"its process ended with status {self.process.exitcode} and no answer"
        return {"failed": ended} if told is None else told


def _started(name: str, work: Callable[[], dict], until: float) -> _Child:
    fork: Any = multiprocessing.get_context("fork")
    pipe, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_answer, args=(work, sender))
    process._start_method = None  # else code of a user's own could not choose how its processes start
    process.start()
    sender.close()
    return _Child(name, until, pipe, process)


def _answer(work: Callable[[], dict], sender: Any) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        told = work()
    except (Exception, SystemExit) as error:
        told = {"failed": of_error(error)}
    sender.send(told)


def answers(work: list, beside: int, each: float, within: float) -> Iterator[tuple]:
    """(name, answer) of each of `work`, a list of (name, function), as they end; `beside` processes at a time, each for at
    most `each` seconds, all of them for `within` seconds."""
    ends = time.monotonic() + within
    waiting = list(work)
    running: list = []
    try:
        while waiting or running:
            while waiting and len(running) < beside and time.monotonic() < ends:
                name, function = waiting.pop(0)
                running.append(_started(name, function, min(ends, time.monotonic() + each)))
            if not running:
                break
            left = max(0.0, min(child.until for child in running) - time.monotonic())
            ready = multiprocessing.connection.wait([child.pipe for child in running], min(left, 1.0))
            late = f"{TOO_LONG} the {each:.0f} seconds of a case, or than what was left for all"
            for child in [one for one in running if one.pipe in ready or time.monotonic() >= one.until]:
                running.remove(child)
                yield child.name, child.answer("" if child.pipe in ready else late)
    finally:
        for child in running:
            child.answer("it was interrupted")
    yield from ((name, {"failed": NO_TIME}) for name, _ in waiting)
