"""What does a maintainer of PyTorch need to know? The text of an issue, from evidence alone; nothing is sent anywhere."""

from __future__ import annotations

from typing import Any

from ..analysis.verdicts import Series, human
from ..store.causes import Evidence, Place

COMMITS = "https://github.com/pytorch/pytorch/compare"

ROWS = 6
"""Of each table."""

FACTS = ("torch", "python", "numpy", "cuda", "onednn", "mkl", "compiler", "cpu_capability", "libc", "threads")


def text(evidence: Evidence, machine: dict[str, Any]) -> str:
    """Markdown: title, numbers, script, where the time went, what was ruled out, the commits, both environments."""
    series = Series(evidence.environment, evidence.benchmark, evidence.parameters)
    more = "slower" if evidence.ratio > 1 else "faster"
    factor = max(evidence.ratio, 1 / evidence.ratio)
    parts = [
        f"# {series.words}: {factor:.2f} times as {'slow' if more == 'slower' else 'fast'} in {evidence.new} as in "
        f"{evidence.old} (CPU)",
        _numbers(evidence, machine),
        _script(evidence),
        _tables(evidence),
        _levers(evidence),
        _commits(evidence),
        _environments(evidence),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _numbers(evidence: Evidence, machine: dict[str, Any]) -> str:
    old, new = (min(side) for side in evidence.numbers)
    lines = [
        f"A call takes {human(old, 'seconds')} with {evidence.old} and {human(new, 'seconds')} with {evidence.new}: "
        f"{evidence.ratio:.3f} times the time ({evidence.low:.3f} to {evidence.high:.3f} with a confidence of 99.9 %), in "
        f"{len(evidence.numbers[0])} turns, each with a fresh process of either release, on {machine.get('cpu', 'a CPU')}.",
        "",
        f"**{evidence.verdict}**: {evidence.words}.",
    ]
    return "\n".join(lines)


def _script(evidence: Evidence) -> str:
    if not evidence.script:
        return ""
    said = ""
    if evidence.reproduced:
        old, new = (human(value, "seconds") for value in evidence.reproduced)
        said = f"It prints the seconds of a call: {old} with {evidence.old}, {new} with {evidence.new}."
    return f"## To reproduce\n\n{said}\n\n```python\n{evidence.script.rstrip()}\n```"


def _tables(evidence: Evidence) -> str:
    parts = ["## Where the time went"]
    for kind in ("operator", "function", "symbol", "library"):
        rows = [row for row in evidence.places if row.kind == kind]
        if rows:
            rows = [*rows[:-1][:ROWS], rows[-1]]
            lines = [f"| {kind} | {evidence.old} | {evidence.new} | difference (95 %) | |", "|---|---:|---:|---:|---|"]
            parts.append("\n".join([*lines, *map(_row, rows)]))
    parts += [f"There is {note}." for note in evidence.notes]
    return "\n\n".join(parts)


def _row(row: Place) -> str:
    chance = "could be chance" if row.low <= 0 <= row.high else row.verdict if row.verdict in ("CAUSE", "PART") else ""
    ends = f"{row.low * 1e6:+.3g} to {row.high * 1e6:+.3g}"
    name = row.name.replace("|", "\\|")
    sides = f"{row.old * 1e6:.3g} µs | {row.new * 1e6:.3g} µs"
    return f"| `{name}` | {sides} | {1e6 * (row.new - row.old):+.3g} µs ({ends}) | {chance} |"


def _levers(evidence: Evidence) -> str:
    lines = ["## What was tried", ""]
    for lever in evidence.levers:
        if not lever.refused:
            ends = f"{100 * lever.low:.0f} to {100 * lever.high:.0f} %"
            lines.append(f"- with {lever.words}: removes {100 * lever.removed:.0f} % ({ends}); {lever.verdict}")
    return "\n".join(lines) if len(lines) > 2 else ""


def _commits(evidence: Evidence) -> str:
    if not all(evidence.commits):
        return ""
    old, new = evidence.commits
    return f"## Commits\n\nThe wheels name their commits: {COMMITS}/{old}...{new}"


def _environments(evidence: Evidence) -> str:
    old, new = evidence.environments
    names = [name for name in FACTS if name in old or name in new]
    rows = [f"| {name} | {old.get(name)} | {new.get(name)} |" for name in names]
    return (
        "\n".join(["## Environments", "", f"| | {evidence.old} | {evidence.new} |", "|---|---|---|", *rows])
        if rows
        else ""
    )
