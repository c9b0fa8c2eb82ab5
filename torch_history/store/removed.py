"""Which launches were committed once and are no longer there? Read from the git history of a folder of results.

A commit that rewrites lines, moves them to another machine's folder or computes the ids of environments again loses nothing:
a launch is told by its session, its round, its start and its benchmark, and its cases by their parameters.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from msgspec import Meta, MsgspecError, Struct, ValidationError, convert, structs
from msgspec.json import Decoder

from ..errors import UserError
from ..system.files import LONGEST_NAME, parse, read_bytes, sealed, unsealed
from .launches import Launch

CALIBRATION = "calibration"
"""Folder of a machine with the launches of a calibration, which no verdict on releases uses."""


class NoHistory(UserError):
    """The history of the results cannot be read; the text says why and what to do."""


class Identity(Struct, frozen=True):
    """What tells a launch and benchmark from all others, whatever a later version of the program adds to its line."""

    session: str
    round: int
    launch: str
    release: str
    environment: str
    benchmark: str
    started_at: str


Name = Annotated[str, Meta(max_length=LONGEST_NAME)]


class Exclusion(Struct, frozen=True):
    """A line of exclusions.jsonl: how many launches, and cases of them, a commit took out, and why."""

    machine: Name
    session: Name
    benchmark: Name
    releases: tuple[Name, ...]
    launches: int
    cases: int
    rule: Name
    reason: str
    commit: Name
    calibration: bool = False

    @classmethod
    def from_json(cls, line: bytes) -> Exclusion:
        """Raises ValueError where `line` says no such thing."""
        try:
            return convert(parse(line), cls)
        except ValidationError as error:
            raise ValueError(f"it is no exclusion: {error}") from error


@dataclass(frozen=True)
class Removal:
    """One launch that a commit removed, or of which it removed some cases; `launch` holds those cases alone. `machine` is
    the folder in which it lay, `now` the one that other launches of that folder were moved to."""

    commit: str
    machine: str
    calibration: bool
    launch: Launch
    now: str


class _Parameters(Struct):
    parameters: tuple[str, ...]


class _Line(Identity, frozen=True):
    """A stored line: what tells it from all others, and the parameters of its cases."""

    cases: tuple[_Parameters, ...]


_LINE = Decoder(_Line)

_Cases = Counter[tuple[Identity, tuple[str, ...]]]
"""How often a launch has a case."""


@dataclass
class _Commit:
    """The lines of launches that one commit removed and added, each with its file, relative to the folder of results."""

    name: str
    removed: list[tuple[str, bytes]] = field(default_factory=list)
    added: list[tuple[str, bytes]] = field(default_factory=list)


def removals(results: Path) -> list[Removal]:
    """Every launch that was removed and is not in `results` today, oldest commit first. Raises NoHistory."""
    _require_history(results)
    found: list[Removal] = []
    moved: dict[str, str] = {}
    for commit in _commits(results):
        found += _removed_by(commit, moved)
    present = _present(results, {one.launch.session for one in found})
    left = [_without(one, present) for one in reversed(found)]
    return [_today(one, moved) for one in reversed(left) if one.launch.cases]


def _today(removal: Removal, moved: dict[str, str]) -> Removal:
    """`removal` with the folder in which the launches beside it lie today."""
    now, seen = removal.machine, set[str]()
    while now in moved and now not in seen:
        seen.add(now)
        now = moved[now]
    return replace(removal, now=now)


def _require_history(results: Path) -> None:
    """Raises NoHistory where git does not know all that was ever committed to `results`."""
    advice = "Ask in a full clone of the repository."
    try:
        shallow = _git(results, "rev-parse", "--is-shallow-repository").strip()
        tracked = _git(results, "log", "-1", "--format=%H", "--", ".").strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoHistory(f"{results} has no git history, so what was removed from it is not known. {advice}") from error
    if shallow == b"true":
        raise NoHistory(f"{results} is in a shallow clone, which lacks the history of what was removed. {advice}")
    if not tracked:
        raise NoHistory(f"No file of {results} was ever committed, so what was removed from it is not known. {advice}")


_ALL_LINES = ("-p", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--relative", "--text")


_HARMLESS = ("core.quotePath=false", "core.fsmonitor=false", "log.showSignature=false")
"""Settings of git's for a folder that may hold a repository of a stranger's: nothing that it names is run."""


def _git(results: Path, *arguments: str) -> bytes:
    """What git prints in `results`. Raises CalledProcessError and OSError."""
    quiet = {**os.environ, "LC_ALL": "C", "GIT_PAGER": "cat"}
    command = ["git", *(word for name in _HARMLESS for word in ("-c", name)), *arguments]
    return subprocess.run(command, cwd=results, env=quiet, capture_output=True, check=True).stdout


def _commits(results: Path) -> Iterator[_Commit]:
    """The commits that removed lines of launches, oldest first; a merge removes nothing by itself."""
    try:
        text = _git(results, "log", "--reverse", "--topo-order", "--format=commit %H", *_ALL_LINES, "--", "*.jsonl")
    except subprocess.CalledProcessError as error:
        raise NoHistory(f"git cannot read the history of {results}: {error.stderr.decode(errors='replace')}") from error
    commit, path, inside = _Commit(""), "", False
    for line in text.split(b"\n"):
        if line.startswith(b"commit "):
            if commit.removed:
                yield commit
            commit, inside = _Commit(line[7:].decode()), False
        elif line.startswith(b"diff --git "):
            inside = False
        elif not inside and line[:6] in (b"--- a/", b"+++ b/"):
            path = line[6:].decode(errors="replace").strip('"\t')
        elif line.startswith(b"@@ "):
            inside = path.count("/") >= 1  # files beside the machines' folders hold no launches
        elif inside and line[:1] in (b"-", b"+"):
            (commit.removed if line[:1] == b"-" else commit.added).append((path, line[1:]))
    if commit.removed:
        yield commit


def _removed_by(commit: _Commit, moved: dict[str, str]) -> Iterator[Removal]:
    """What one commit removed. Notes in `moved` which folder's lines it moved to which."""
    again: dict[bytes, list[str]] = defaultdict(list)
    for path, line in commit.added:
        again[line].append(path)
    rest = []
    for path, line in commit.removed:
        if again.get(line):
            to = again[line].pop()
            if _machine(to) != _machine(path):
                moved[_machine(path)] = _machine(to)
        else:
            rest.append((path, line))
    added = _cases(line for line, paths in again.items() for _ in paths)
    for path, line in rest:
        try:
            launch = Launch.from_json(unsealed(line))
        except ValueError:
            continue  # `check` lists what is damaged; such a line never was a result
        gone = _without(Removal(commit.name, _machine(path), f"/{CALIBRATION}/" in path, launch, ""), added)
        if gone.launch.cases:
            yield gone


def _machine(path: str) -> str:
    return path.partition("/")[0]


def _without(removal: Removal, present: _Cases) -> Removal:
    """`removal` without the cases that are `present`, each of which is taken from there."""
    launch, left = removal.launch, []
    identity = _identity(launch)
    for case in launch.cases:
        if present[identity, case.parameters] > 0:
            present[identity, case.parameters] -= 1
        else:
            left.append(case)
    gone = launch if len(left) == len(launch.cases) else structs.replace(launch, cases=tuple(left))
    return replace(removal, launch=gone)


def _identity(line: Launch | _Line) -> Identity:
    return Identity(*(getattr(line, name) for name in Identity.__struct_fields__))


def _cases(lines: Iterable[bytes]) -> _Cases:
    found: _Cases = Counter()
    for line in lines:
        try:
            read = _LINE.decode(line)
        except (MsgspecError, RecursionError):
            continue
        identity = _identity(read)
        for case in read.cases:
            found[identity, case.parameters] += 1
    return found


def _present(results: Path, sessions: Collection[str]) -> _Cases:
    """The cases of `sessions` that `results` holds."""
    marks = [session.encode() for session in sessions]
    found: _Cases = Counter()
    folders = [folder for folder in sorted(results.glob("*/")) if not folder.is_symlink()]
    for path in (path for folder in folders for path in sorted(folder.glob("**/*.jsonl"))):
        try:
            text = read_bytes(path)
        except ValueError:
            continue  # `check` says what is wrong with a file
        if any(mark in text for mark in marks):
            found += _cases(line for line in text.split(b"\n") if any(mark in line for mark in marks))
    return found


def put_back(results: Path, machine: str, removed: Iterable[Removal]) -> int:
    """Appends to the files of `machine` in `results`, which is a copy, what was removed from them. Returns how many launches
    that were; those of a calibration are left out."""
    count = 0
    for one in removed:
        if one.now == machine and not one.calibration:
            path = results / machine / f"{one.launch.release}-{one.launch.environment}.jsonl"
            with path.open("a", encoding="utf-8") as stream:
                stream.write(sealed(one.launch.to_json()) + "\n")
            count += 1
    return count
