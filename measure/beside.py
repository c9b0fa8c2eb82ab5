"""What do many small works answer, each in a process of its own and none for too long? No torch."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Callable, Iterator

from contract.words import of_error

NO_TIME = "the time for all cases was over before it was asked"
TOO_LONG = "it took longer than"


class _Child:
    """A process that does `work` and writes what it returns, as JSON, into a pipe; it leads a process group of its own."""

    def __init__(self, name: str, work: Callable[[], dict], until: float) -> None:
        self.name, self.until, self._text = name, until, b""
        self.pipe, writer = os.pipe()
        self._id = os.fork()
        if self._id == 0:
            try:
                os.setsid()
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                os.close(self.pipe)
                with os.fdopen(writer, "w", encoding="ascii") as stream:
                    stream.write(json.dumps(_answer(work)))
            finally:
                os._exit(0)
        os.close(writer)

    def read(self) -> bool:
        """Takes what there is, and says whether the process has ended."""
        part = os.read(self.pipe, 2**16)
        self._text += part
        return not part

    def answer(self, why: str = "") -> dict:
        """Ends the process and what it started. Returns its answer, or `failed` with `why`, or with how it ended."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._id, signal.SIGKILL)
        status = os.waitpid(self._id, 0)[1]
        os.close(self.pipe)
        if why:
            return {"failed": why}
        try:
            return json.loads(self._text)
        except ValueError:
            return {"failed": f"its process ended with status {status} and no answer"}


def _answer(work: Callable[[], dict]) -> dict:
    try:
        return work()
    except (Exception, SystemExit) as error:
        return {"failed": of_error(error)}


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
                running.append(_Child(name, function, min(ends, time.monotonic() + each)))
            if not running:
                break
            yield from _ended(running, each)
    finally:
        for child in running:
            child.answer("it was interrupted")
    yield from ((name, {"failed": NO_TIME}) for name, _ in waiting)


def _ended(running: list, each: float) -> list:
    """Waits for something to happen, and takes those that have ended, or had to, out of `running`."""
    left = max(0.0, min(child.until for child in running) - time.monotonic())
    ready = set(select.select([child.pipe for child in running], [], [], min(left, 1.0))[0])
    found = []
    for child in list(running):
        why = ""
        if child.pipe in ready:
            if not child.read():
                continue
        elif time.monotonic() >= child.until:
            why = f"{TOO_LONG} the {each:.0f} seconds of a case, or than what was left for all"
        else:
            continue
        running.remove(child)
        found.append((child.name, child.answer(why)))
    return found
