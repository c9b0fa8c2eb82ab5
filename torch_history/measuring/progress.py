"""How far is a session? A line from time to time, and nothing that moves: that would be a thread beside what is timed."""

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console

TELLING = 30.0
"""Seconds after which it is said again how far something is."""


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


class Shown:
    """How far a session is in its round: of `total` cases, each on one release, so many are `done`."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.done = self.total = 0
        self._told = time.monotonic()

    def begin(self, words: str, total: int, done: int) -> None:
        self.done, self.total = done, total
        self.console.print(words)

    def advance(self) -> None:
        self.done += 1
        now = time.monotonic()
        if now - self._told >= TELLING:
            self._told = now
            self.console.print(f"{self.done} of {self.total} cases")


@contextlib.contextmanager
def shown_installing(console: Console, step: str) -> Iterator[None]:
    with console.status(step):
        if not console.is_terminal:
            console.print(step)
        yield
