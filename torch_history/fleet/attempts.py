"""How does a job go on after a kill, a requeue or a node's failure without a launch lost or counted twice?

Each start of a job is an attempt with a folder of its own, which nobody else writes to. It begins with a copy of what the
attempt before it had on disk. Exactly one attempt of a job is collected: the first to say that it is done. A process that is
thought dead and lives on, as on a node that lost its network, therefore harms nothing, and no lock has to hold between
nodes: making a folder and linking a file are single steps on every shared file system.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..system.files import parse, read_bytes, read_object, write_atomically

DONE, BEGAN, ENDED = "done.json", "began.json", "ended.json"
RESULTS, SESSIONS = "results", "sessions"


@dataclass(frozen=True)
class Attempt:
    """One start of a job. `began.json` is written last of its beginning, so an attempt without it holds half a copy."""

    folder: Path

    @property
    def number(self) -> int:
        return int(self.folder.name)

    @property
    def results(self) -> Path:
        return self.folder / RESULTS

    @property
    def sessions(self) -> Path:
        return self.folder / SESSIONS

    @property
    def began(self) -> dict[str, Any]:
        """Where and when it began; empty where it has not yet."""
        path = self.folder / BEGAN
        return read_object(path) if path.exists() else {}

    @property
    def last_words(self) -> str:
        """What it said when it failed; empty where it said nothing."""
        path = self.folder / ENDED
        return str(read_object(path).get("words", "")) if path.exists() else ""

    def fail(self, words: str) -> None:
        """Keeps what went wrong for whoever looks after the job."""
        write_atomically(self.folder / ENDED, json.dumps({"words": words}))

    @property
    def forgiven(self) -> bool:
        """Whether somebody asked for the job again after it had failed."""
        path = self.folder / ENDED
        return path.exists() and bool(read_object(path).get("forgiven"))

    def forgive(self) -> None:
        """Lets a failure count no longer."""
        if self.last_words:
            write_atomically(self.folder / ENDED, json.dumps({"words": self.last_words, "forgiven": True}))

    def round(self) -> int:
        """The last round of which it holds a launch, 0 where it holds none."""
        last = 0
        for path in self.results.glob("*/*.jsonl"):
            lines = path.read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[2:]
            found = re.search(rb'"round":(\d+)', lines[-1]) if lines else None
            last = max(last, int(found[1]) if found else 0)
        return last

    def lines(self, machine: str = "*") -> int:
        """How many lines of launches it holds, those that it began with included; all, or those of one machine's folder."""
        return sum(path.read_bytes().count(b"\n") for path in self.results.glob(f"{machine}/*.jsonl"))

    @property
    def seconds(self) -> float:
        """From its beginning to the last time that it wrote anything."""
        written = (path.stat().st_mtime for path in self.folder.rglob("*") if path.is_file())
        return max(0.0, max(written, default=0.0) - self.began.get("began_at", math.inf))


@dataclass(frozen=True)
class JobFolder:
    """The folder of one job of a fleet."""

    folder: Path

    @property
    def attempts(self) -> list[Attempt]:
        """Those that have begun, in order."""
        found = [Attempt(path.parent) for path in self.folder.glob(f"attempts/*/{BEGAN}")]
        return sorted(found, key=lambda attempt: attempt.number)

    @property
    def newest(self) -> Attempt | None:
        return attempts[-1] if (attempts := self.attempts) else None

    @property
    def done(self) -> dict[str, Any]:
        """Which `attempt` counts, and whether it `finished` or was closed before; empty while the job is open."""
        path = self.folder / DONE
        return read_object(path) if path.exists() else {}

    @property
    def seconds(self) -> float:
        """What all attempts took together, waiting between them left out."""
        return sum(attempt.seconds for attempt in self.attempts)

    @property
    def counted(self) -> Attempt | None:
        """The attempt whose results count; None while the job is open, or where it was closed before any began."""
        number = self.done.get("attempt")
        return Attempt(self._attempt(number)) if number else None

    def begin(self, about: dict[str, Any]) -> Attempt:
        """A new attempt, which holds what the last one had on disk. `about` says where it runs."""
        before = self.newest
        number = before.number if before else 0
        while True:
            number += 1
            try:
                self._attempt(number).mkdir(parents=True)
                break
            except FileExistsError:
                continue
        attempt = Attempt(self._attempt(number))
        if before:
            for name in (RESULTS, SESSIONS):
                _copy(before.folder / name, attempt.folder / name)
        write_atomically(attempt.folder / BEGAN, json.dumps({**about, "lines": attempt.lines()}))
        return attempt

    def finish(self, attempt: Attempt | None, finished: bool = True) -> bool:
        """Says that this attempt counts, and no other will. Returns False where another one was first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        scratch = self.folder / f".{DONE}.{attempt.number if attempt else 0}.{os.getpid()}"
        write_atomically(scratch, json.dumps({"attempt": attempt.number if attempt else 0, "finished": finished}))
        try:
            os.link(scratch, self.folder / DONE)
        except FileExistsError:
            return bool(attempt) and self.done.get("attempt") == getattr(attempt, "number", 0)
        finally:
            scratch.unlink()
        return True

    def _attempt(self, number: int) -> Path:
        return self.folder / "attempts" / f"{number:03}"


def job_folder(fleet: Path, number: int) -> JobFolder:
    """That of job `number` of a fleet."""
    return JobFolder(fleet / "jobs" / f"{number:04}")


def _copy(source: Path, target: Path) -> None:
    """Copies a folder to which somebody who is thought dead may still be adding: whole lines of what is appended to, and of
    the rest, which is replaced in one step, what can be read."""
    for path in sorted(source.rglob("*")) if source.is_dir() else []:
        if not path.is_file() or path.name.startswith("."):
            continue
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in (".jsonl", ".environments"):
            text = read_bytes(path)
            write_atomically(copy, text[: text.rfind(b"\n") + 1])
        elif _is_whole(path):
            shutil.copy(path, copy)


def _is_whole(path: Path) -> bool:
    """Whether a file of JSON was written to its end."""
    try:
        parse(read_bytes(path))
    except ValueError:
        return False
    return True
