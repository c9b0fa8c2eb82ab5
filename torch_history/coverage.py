"""What ran where, and why not? A Markdown table of variants x releases for docs/coverage.md, made from what was measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .axis import Axis
from .launches import Launch
from .verdicts import history

HEADER = """\
# What ran on which release

Made from the launches in `results/` by `torch-history document`; not edited by hand. A cell says `ran` where the newest
launch of every size gave numbers, otherwise the number of a reason below the table; an empty cell was not measured.
"""


@dataclass
class _Cell:
    """One variant on one release: for each size, whether any metric has a number, and the reasons given."""

    ran: dict[tuple[str, ...], bool] = field(default_factory=lambda: defaultdict(bool))
    reasons: dict[tuple[str, ...], str] = field(default_factory=dict)


def coverage(launches_of: Mapping[str, Iterable[Launch]], axis: Axis) -> str:
    """The document for the launches of each machine: machine, then environment, then question."""
    parts = [HEADER]
    for machine, launches in launches_of.items():
        tables: dict[tuple[str, str], dict[str, dict[str, _Cell]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(_Cell))
        )
        for series, releases in history(launches).items():
            rows = tables[series.environment, series.benchmark.partition(".")[0]]
            variant, *rest = series.parameters or ("",)
            for release, pairs in releases.items():
                cell, size = rows[variant.strip("'")][release], tuple(rest)
                case = pairs[-1][1]
                cell.ran[size] |= case.number is not None
                cell.reasons[size] = case.failed or case.unavailable or cell.reasons.get(size, "")
        for (environment, question), rows in sorted(tables.items()):
            parts.append(f"\n## {question.replace('_', ' ')}, {machine}, {environment}\n\n{_table(rows, axis)}")
    return "".join(parts)


def _table(rows: dict[str, dict[str, _Cell]], axis: Axis) -> str:
    releases = sorted({release for cells in rows.values() for release in cells if release in axis}, key=axis.position)
    reasons: dict[str, int] = {}
    lines = ["| variant | " + " | ".join(release.removeprefix("v") for release in releases) + " |"]
    lines.append("|---" * (len(releases) + 1) + "|")
    for variant, cells in rows.items():
        words = [_words(cells[release], reasons) if release in cells else "" for release in releases]
        lines.append(f"| `{variant}` | " + " | ".join(words) + " |")
    notes = "".join(f"{number}. {reason}\n" for reason, number in reasons.items())
    return "\n".join(lines) + "\n" + (f"\n{notes}" if notes else "")


def _words(cell: _Cell, reasons: dict[str, int]) -> str:
    missing = [cell.reasons[size] for size, ran in cell.ran.items() if not ran]
    numbers = sorted({reasons.setdefault(reason, len(reasons) + 1) for reason in missing})
    noted = ", ".join(f"({number})" for number in numbers)
    return noted if len(missing) == len(cell.ran) else " ".join(filter(None, ["ran", noted]))
