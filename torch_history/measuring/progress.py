"""How far is a session, and when will it end? A bar, or a line from time to time where the output is no terminal."""

from __future__ import annotations

import contextlib
import datetime
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from ..releases import environments, installing, wheels
from ..releases.axis import Release

TELLING = 60.0
"""Seconds after which it is said again how far something is, where the output is no terminal."""


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


class Clock(TimeElapsedColumn):
    """The clock of the whole session: rich's stands still for good where a bar was full once."""

    def render(self, task: Task) -> Text:
        return Text(str(datetime.timedelta(seconds=int(task.elapsed or 0))), style="progress.elapsed")


class Shown:
    """How far a session is that ends at `ends` at the latest, by `time.monotonic`."""

    def __init__(self, console: Console, ends: float = math.inf) -> None:
        self.console, self._ends = console, ends
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("cases,"),
            Clock(),
            TextColumn("{task.fields[left]}{task.fields[note]}"),
        )
        self.progress = Progress(*columns, console=console, refresh_per_second=2)
        self._id = self.progress.add_task("", total=0, note="", left="")
        self._began = self._told = time.monotonic()
        self._asked = self._later = 0

    @property
    def _task(self) -> Task:
        return self.progress.tasks[self._id]

    def note(self, words: str) -> None:
        self.progress.update(self._id, note=f", {words}" if words else "")

    def begin(self, words: str, total: int, later: int = 0) -> None:
        """Begins a round of `total` cases, each on one release, after which `later` ones come in other rounds."""
        self._later = later
        self.progress.update(self._id, description=words, completed=0, total=total, left=self.left)
        if not self.console.is_terminal:
            self.console.print(words)

    def again(self, count: int) -> None:
        """So many are asked once more in this round."""
        self.progress.update(self._id, total=(self._task.total or 0) + count)

    def skip(self) -> None:
        """Of what is stored already nothing is said."""
        self.progress.advance(self._id)

    def advance(self) -> None:
        self._asked += 1
        self.progress.update(self._id, advance=1, left=self.left)
        now = time.monotonic()
        if not self.console.is_terminal and now - self._told >= TELLING:
            self._told = now
            self.console.print(f"{self._task.completed:.0f} of {self._task.total:.0f} cases, {self.left}")

    @property
    def left(self) -> str:
        """`about 7 min left`, by what the cases took so far; the end that was set where that comes first."""
        now = time.monotonic()
        if not self._asked:
            return f"at most {minutes(self._ends - now)} left" if self._ends < math.inf else ""
        cases = (self._task.total or 0) - self._task.completed + self._later
        needed = cases * (now - self._began) / self._asked
        bounded = needed > self._ends - now
        return f"{'at most' if bounded else 'about'} {minutes(max(0.0, min(needed, self._ends - now)))} left"


@contextlib.contextmanager
def shown_installing(console: Console, step: str, environment: Any, release: Release, repo: str) -> Iterator[None]:
    """Says `step`, and while the block installs `release` how many gigabytes of it are on the disk; `repo` is the list of
    releases, beside which the sizes of their wheels are."""
    told = time.monotonic()

    def tell(words: str) -> None:
        nonlocal told
        status.update(f"{step}: {words}")
        if not console.is_terminal and time.monotonic() - told >= TELLING:
            told = time.monotonic()
            console.print(f"{step}: {words}", highlight=False)

    with console.status(step) as status:
        if not console.is_terminal:
            console.print(step)
        root = getattr(environment, "root", None)
        if root is None:
            yield
            return
        is_whole = type(environment) is environments.ReleaseEnvironment
        wheel = wheels.load(Path(repo).with_name(wheels.FILE)).get(release.tag) if is_whole else None
        with installing.watched(root, wheel, tell):
            yield
