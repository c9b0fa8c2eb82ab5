"""What does a maintainer of PyTorch need to know? The text of an issue, from evidence alone; nothing is sent anywhere."""

from __future__ import annotations

from typing import Any

from ..analysis.markdown import code, escape, fenced
from ..analysis.series import Series
from ..analysis.verdicts import difference, human
from ..store.causes import Evidence, Place
from .verdict import KINDS

COMMITS = "https://github.com/pytorch/pytorch/compare"

ROWS = 6
"""Of each table."""

FACTS = ("torch", "python", "numpy", "cuda", "onednn", "mkl", "compiler", "cpu_capability", "libc", "threads")


def text(evidence: Evidence, machine: dict[str, Any]) -> str:
    """Markdown: title, numbers, script, where the time went, what was ruled out, the commits, both environments."""
    series = Series(evidence.environment, evidence.benchmark, evidence.parameters)
    parts = [
        f"# {escape(series.words)}: {_factor(evidence)} in {escape(evidence.new)} as in {escape(evidence.old)} (CPU)",
        _numbers(evidence, machine, series),
        _script(evidence, series),
        _tables(evidence, series),
        _levers(evidence),
        _commits(evidence),
        _environments(evidence),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _factor(evidence: Evidence) -> str:
    """How many times as slow or fast, or of counts as much."""
    if evidence.clock == "none":
        return f"{evidence.ratio:.2f} times as much"
    factor = max(evidence.ratio, 1 / evidence.ratio)
    return f"{factor:.2f} times as {'slow' if evidence.ratio > 1 else 'fast'}"


def _numbers(evidence: Evidence, machine: dict[str, Any], series: Series) -> str:
    old, new = (human(min(side), series.unit) for side in evidence.numbers)
    if evidence.clock == "none":
        counted = f"{series.measure.words} of a call: {old} with {evidence.old} and {new} with {evidence.new}"
        return f"{counted}, equal in every launch.\n\n**{evidence.verdict}**: {escape(evidence.words)}."
    cpu = escape(str(machine.get("cpu", "a CPU")))
    lines = [
        f"A call takes {old} with {evidence.old} and {new} with {evidence.new}: "
        f"{evidence.ratio:.3f} times the time ({evidence.low:.3f} to {evidence.high:.3f} with a confidence of 99.9 %), in "
        f"{len(evidence.numbers[0])} turns, each with a fresh process of either release, on {cpu}.",
        "",
        f"**{evidence.verdict}**: {escape(evidence.words)}.",
    ]
    return "\n".join(lines)


def _script(evidence: Evidence, series: Series) -> str:
    if not evidence.script:
        return ""
    said = ""
    if evidence.reproduced:
        old, new = (human(value, series.unit) for value in evidence.reproduced)
        what = "what a call counts" if evidence.clock == "none" else "the seconds of a call"
        said = f"It prints {what}: {old} with {evidence.old}, {new} with {evidence.new}."
        said += "" if evidence.is_reproduced else " So it does not show the difference by itself."
    return f"## To reproduce\n\n{said}\n\n{fenced(evidence.script.rstrip(), 'python')}"


def _tables(evidence: Evidence, series: Series) -> str:
    parts = ["## Where the difference is" if evidence.clock == "none" else "## Where the time went"]
    for kind in KINDS:
        rows = [row for row in evidence.places if row.kind == kind]
        if rows:
            rows = [*rows[:-1][:ROWS], rows[-1]]
            head = "difference" if evidence.clock == "none" else "difference (95 %)"
            lines = [
                f"| {kind} | {escape(evidence.old)} | {escape(evidence.new)} | {head} | |",
                "|---|---:|---:|---:|---|",
            ]
            parts.append("\n".join([*lines, *(_row(row, series.unit) for row in rows)]))
    parts += [f"{code(each.symbol)}: {each.words}." for each in evidence.code]
    parts += [f"There is {escape(note)}." for note in evidence.notes]
    return "\n\n".join(parts)


def _row(row: Place, unit: str) -> str:
    if unit != "seconds":
        verdict = row.verdict if row.verdict in ("CAUSE", "PART") else ""
        sides = f"{human(row.old, unit)} | {human(row.new, unit)}"
        return f"| {code(row.name)} | {sides} | {row.new - row.old:+,.0f} | {verdict} |"
    chance = "could be chance" if row.low <= 0 <= row.high else row.verdict if row.verdict in ("CAUSE", "PART") else ""
    ends = f"{difference(row.low)} to {difference(row.high)}"
    sides = f"{human(row.old, unit)} | {human(row.new, unit)}"
    return f"| {code(row.name)} | {sides} | {difference(row.new - row.old)} ({ends}) | {chance} |"


def _levers(evidence: Evidence) -> str:
    lines = ["## What was tried", ""]
    for lever in evidence.levers:
        if not lever.refused:
            lines.append(f"- with {escape(f'{lever.words}: {lever.said}')}; {lever.verdict}")
    return "\n".join(lines) if len(lines) > 2 else ""


def _commits(evidence: Evidence) -> str:
    if not all(evidence.commits):
        return ""
    old, new = evidence.commits
    return f"## Commits\n\nThe wheels name their commits: {COMMITS}/{escape(old)}...{escape(new)}"


def _environments(evidence: Evidence) -> str:
    old, new = evidence.environments
    names = [name for name in FACTS if name in old or name in new]
    rows = [f"| {name} | {escape(str(old.get(name)))} | {escape(str(new.get(name)))} |" for name in names]
    return (
        "\n".join(
            ["## Environments", "", f"| | {escape(evidence.old)} | {escape(evidence.new)} |", "|---|---|---|", *rows]
        )
        if rows
        else ""
    )
