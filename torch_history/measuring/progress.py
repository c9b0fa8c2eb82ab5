"""How far is a session? A bar, or a line from time to time where the output is no terminal."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

TELLING = 60.0
"""Seconds after which it is said again how far something is, where the output is no terminal."""


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


class Shown:
    """How far a session is in its round."""

    def __init__(self, console: Console) -> None:
        self.console = console
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("cases,"),
            TimeElapsedColumn(),
            TextColumn("and"),
            TimeRemainingColumn(),
            TextColumn("left"),
        )
        self.progress = Progress(*columns, console=console, refresh_per_second=2)
        self._id = self.progress.add_task("", total=0)
        self._told = time.monotonic()

    @property
    def _task(self) -> Task:
        return self.progress.tasks[self._id]

    def begin(self, words: str, total: int) -> None:
        """Begins a round of `total` cases, each on one release."""
        self.progress.reset(self._id, description=words, total=total)
        if not self.console.is_terminal:
            self.console.print(words)

    def again(self, count: int) -> None:
        """So many are asked once more in this round."""
        self.progress.update(self._id, total=(self._task.total or 0) + count)

    def skip(self, count: int) -> None:
        """Of what is stored already nothing is said."""
        self.progress.advance(self._id, count)

    def advance(self) -> None:
        self.progress.advance(self._id)
        now = time.monotonic()
        if not self.console.is_terminal and now - self._told >= TELLING:
            self._told = now
            self.console.print(f"{self._task.completed:.0f} of {self._task.total:.0f} cases")


@contextlib.contextmanager
def shown_installing(console: Console, step: str) -> Iterator[None]:
    """Says `step` while the block installs something."""
    with console.status(step):
        if not console.is_terminal:
            console.print(step)
        yield
