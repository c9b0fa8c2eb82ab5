"""What does it cost to look again? Sessions whose truth is known, gone on with as `torch-history run --budget` does.

Two releases, two rounds of every case; then rounds of what `effort` calls undecided, up to MOST of them. The verdicts and
the choice of cases are the program's own. Beside it stand fixed sessions of six rounds, and sessions whose verdicts do not
know how often a case was looked at. Run it with `python -m tools.bench_looking --write`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import numpy as np

from torch_history.analysis import verdicts
from torch_history.analysis.series import Verdict
from torch_history.analysis.verdicts import Change, compare
from torch_history.measuring.budget import effort
from torch_history.store.launches import Case, Launch

PAGE = Path(__file__).resolve().parents[1] / "docs" / "generated" / "looking.md"
OLD, NEW = "old", "new"
TRUTHS = {0.0: 60, 0.01: 10, 0.02: 10, 0.03: 10, 0.05: 10, 0.1: 10}
"""Planted change -> cases of a session that have it."""

NOISE, DIFFERING = 0.02, 0.5
"""The standard deviation of a launch's logarithm in a typical case, and how much its own logarithm differs between cases."""

FIRST, MOST, FIXED = 2, 14, 6
"""Rounds of everything at first, rounds of a session at most, and those of a fixed one."""

SESSIONS = 60

HEADER = """\
# Looking again and again

Made by `python -m tools.bench_looking --write`; not edited by hand. Simulated sessions whose truth is known: two rounds of
every case, then rounds of what is undecided, chosen and judged by the program's own code. `too large` is the ratio of the
reported change to the planted one, as logarithms, on average. `told late` is that of changes that a later look found.

Only estimates beyond the margin of 4 % are reported. So a smaller change is too large whenever it is reported, whatever the
number of looks. The aim is that larger changes are at most 1.2 times too large.
"""


@dataclass
class Told:
    """How one planted change fared."""

    cases: int = 0
    changes: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    undecided: int = 0


def launches_of(
    turn: int, planted: Mapping[str, float], noise: Mapping[str, float], random: np.random.Generator
) -> list[Launch]:
    """One round of some cases on both releases."""
    return [
        Launch(
            "s", turn, f"{turn} {release}", release, "release-py3.11", "q.Q.track_time", "1",
            f"2026-01-01T00:{turn:02}:00+00:00", 1.0, {},
            tuple(
                Case((case,), samples=((1 + change if release == NEW else 1.0) * math.exp(random.normal(0, noise[case])),))
                for case, change in planted.items()
            ),
        )
        for release in (OLD, NEW)
    ]  # fmt: skip


def session(random: np.random.Generator, fixed: int = 0) -> tuple[dict[str, float], list[Change]]:
    """What was planted in a session, and what it says in the end: after `fixed` rounds, or where nothing is left to tell."""
    planted = {f"{change} {i}": change for change, cases in TRUTHS.items() for i in range(cases)}
    noise = {case: NOISE * math.exp(random.normal(0, DIFFERING)) for case in planted}
    launches = [one for turn in range(1, FIRST + 1) for one in launches_of(turn, planted, noise, random)]
    for turn in range(FIRST + 1, (fixed or MOST) + 1):
        left = [case for _, (case,) in effort(launches, [(OLD, NEW)]).cases] if not fixed else list(planted)
        if not left:
            break
        launches += launches_of(turn, {case: planted[case] for case in left}, noise, random)
    return planted, compare(launches, OLD, NEW)


def simulate(fixed: int = 0, sessions: int = SESSIONS) -> dict[float, Told]:
    """Planted change -> how it fared in so many sessions."""
    random, found = np.random.default_rng(22), {change: Told() for change in TRUTHS}
    for _ in range(sessions):
        planted, changes = session(random, fixed)
        for change in changes:
            told = found[planted[change.series.parameters[0]]]
            told.cases += 1
            told.undecided += change.verdict is Verdict.CANT_TELL
            if change.verdict in (Verdict.SLOWER, Verdict.FASTER):
                told.changes.append(math.log(change.ratio or 1.0))
                if not fixed and min(change.launches) > FIRST:
                    told.late.append(told.changes[-1])
    return found


def table(words: str, found: Mapping[float, Told]) -> str:
    """The rows of one design."""
    lines = [
        f"\n## {words}\n",
        "| planted | cases | told as changed | too large | told late | INCONCLUSIVE |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for planted, told in found.items():
        cells = [f"{100 * len(told.changes) / told.cases:.2f} %"]
        for changes in (told.changes, told.late):
            cells.append(f"{np.mean(changes) / math.log1p(planted):.2f}" if planted and changes else "")
        lines.append(
            f"| {planted:+.0%} | {told.cases} | {' | '.join(cells)} | {100 * told.undecided / told.cases:.0f} % |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name} instead of printing it")
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    asked = parser.parse_args()
    parts = [HEADER, table(f"{FIXED} rounds of everything", simulate(FIXED, asked.sessions))]
    with mock.patch.object(verdicts, "penalty", return_value=1.0):
        parts.append(
            table(
                "Rounds of what is undecided, every look judged as if it were the only one", simulate(0, asked.sessions)
            )
        )
    parts.append(table("Rounds of what is undecided, as the program judges them", simulate(0, asked.sessions)))
    if asked.write:
        PAGE.write_text("".join(parts), encoding="utf-8")
    else:
        print("".join(parts))


if __name__ == "__main__":
    main()
