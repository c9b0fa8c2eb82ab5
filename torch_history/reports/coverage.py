"""How much was measured, what ran where, and why not? Tables for docs/generated/coverage.md, made from results/."""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..analysis.markdown import code, escape
from ..analysis.series import History, Verdict, history
from ..analysis.verdicts import NOT_MEASURED, compare_history
from ..releases.axis import Axis
from ..store.launches import Launch

HEADER = """\
# What was measured, and what ran on which release

`torch-history document` writes this page from `results/`.

## How much

Each row compares a release with the one before it in the same lane. `rounds` counts the rounds that contain both releases.
`inconclusive` is the share of the times of both releases that these rounds do not decide. If a row has no times, no session
has timed the two releases together yet.
"""

WHERE = """
## What ran

`ran` means that the newest launch gave a number in every size. A number in parentheses refers to a reason below the table.
An empty cell was not measured.
"""


@dataclass
class _Cell:
    """One variant on one release: for each size, whether any metric has a number, and the reasons given."""

    ran: dict[tuple[str, ...], bool] = field(default_factory=lambda: defaultdict(bool))
    reasons: dict[tuple[str, ...], str] = field(default_factory=dict)


def coverage(launches_of: Mapping[str, Iterable[Launch]], axis: Axis) -> str:
    """The document for the launches of each machine: machine, then environment, then question."""
    known = {machine: history(launches) for machine, launches in launches_of.items()}
    parts = [HEADER, *(_how_much(machine, found, axis) for machine, found in known.items()), WHERE]
    for machine, found in known.items():
        tables: dict[tuple[str, str], dict[str, dict[str, _Cell]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(_Cell))
        )
        for series, releases in found.items():
            rows = tables[series.environment, series.benchmark.partition(".")[0]]
            variant, *rest = series.parameters or ("",)
            for release, pairs in releases.items():
                cell, size = rows[variant.strip("'")][release], tuple(rest)
                case = pairs[-1][1]
                cell.ran[size] |= case.number is not None
                cell.reasons[size] = case.reason or cell.reasons.get(size, "")
        for (environment, question), rows in sorted(tables.items()):
            names = (question.replace("_", " "), machine, environment)
            parts.append(f"\n### {', '.join(map(escape, names))}\n\n{_table(rows, axis)}")
    return "".join(parts)


def _how_much(machine: str, found: History, axis: Axis) -> str:
    """A table for each lane of a machine: what is known of each release against the one before."""
    parts = []
    for environment in sorted({series.environment for series in found}):
        of_lane = History((series, of) for series, of in found.items() if series.environment == environment)
        tags = sorted({tag for of in of_lane.values() for tag in of if tag in axis}, key=axis.position)
        rows, times, untold = [], 0, 0
        for old, new in itertools.pairwise(tags):
            changes = [change for change in compare_history(of_lane, old, new) if change.reason != NOT_MEASURED]
            timed = [c for c in changes if c.series.varies and c.old is not None and c.new is not None and not c.reason]
            exact = [c for c in changes if c.series.is_counted and c.verdict is not Verdict.NEVER_RAN]
            unclear = sum(change.verdict is Verdict.CANT_TELL for change in timed)
            changed = sum(change.verdict is not Verdict.SAME for change in exact)
            rounds = f"{statistics.median(min(change.launches) for change in timed):g}" if timed else ""
            share = f"{unclear / len(timed):.0%}" if timed else ""
            rows.append(f"| {old} → {new} | {rounds} | {len(timed) or ''} | {share} | {len(exact)} | {changed} |\n")
            times, untold = times + len(timed), untold + unclear
        said = f"{times} times compared with the release before"
        said += f", {untold / times:.1%} inconclusive (aim: at most a third)" if times else ""
        parts.append(
            f"\n### {escape(machine)}, {escape(environment)}: {len(tags)} releases, {said}\n\n"
            "| releases | rounds (median) | times | inconclusive | counts and bytes | of which changed |\n"
            "|---|---:|---:|---:|---:|---:|\n" + "".join(rows)
        )
    return "".join(parts)


def _table(rows: dict[str, dict[str, _Cell]], axis: Axis) -> str:
    releases = sorted({release for cells in rows.values() for release in cells if release in axis}, key=axis.position)
    reasons: dict[str, int] = {}
    lines = ["| variant | " + " | ".join(release.removeprefix("v") for release in releases) + " |"]
    lines.append("|---" * (len(releases) + 1) + "|")
    for variant, cells in rows.items():
        words = [_words(cells[release], reasons) if release in cells else "" for release in releases]
        lines.append(f"| {code(variant)} | " + " | ".join(words) + " |")
    notes = "".join(f"{number}. “{escape(reason)}”\n" for reason, number in reasons.items())
    return "\n".join(lines) + "\n" + (f"\n{notes}" if notes else "")


def _words(cell: _Cell, reasons: dict[str, int]) -> str:
    missing = [cell.reasons[size] for size, ran in cell.ran.items() if not ran]
    numbers = sorted({reasons.setdefault(reason, len(reasons) + 1) for reason in missing})
    noted = ", ".join(f"({number})" for number in numbers)
    return noted if len(missing) == len(cell.ran) else " ".join(filter(None, ["ran", noted]))
