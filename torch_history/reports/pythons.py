"""What did Python do, and what PyTorch? Counts and bytes of one release under several Pythons, which should agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..analysis.markdown import escape
from ..analysis.series import Series, history
from ..analysis.verdicts import human
from ..releases.axis import Axis
from ..store.launches import Launch

HEADER = """\
# Effects of the Python version

`torch-history document` writes this page from `results/`. Releases are only compared within one Python version. If a release
was measured in two, its counts and bytes show whether the version matters. Numbers that are equal in both are caused by
PyTorch. Times are not compared, because no session measures both versions.
"""

Facts = Callable[[str, str, str], Mapping[str, Any]]
"""Machine, tag and environment -> the facts of that environment."""


def pythons(launches_of: Mapping[str, Iterable[Launch]], facts: Facts, axis: Axis) -> str:
    """The document: for each machine and release the counts that agree, and each that does not with both numbers."""
    parts = [HEADER]
    for machine, launches in launches_of.items():
        counts = _counts(launches)
        rows, notes = [], []
        for tag in sorted((tag for tag in counts if tag in axis), key=axis.position):
            shared = {series: of for series, of in counts[tag].items() if len(of) > 1}
            if not shared:
                continue
            environments = sorted({name for of in shared.values() for name in of}, key=_by_python)
            differing = {series: of for series, of in shared.items() if len(set(of.values())) > 1}
            rows.append(
                f"| {tag} | {escape(', '.join(environments))} | {len(shared)} | {len(shared) - len(differing)} |"
            )
            if differing:
                notes.append(_note(tag, differing, {name: facts(machine, tag, name) for name in environments}))
        table = ["| release | measured in | counts and bytes in both | equal |", "|---|---|---:|---:|", *rows]
        shown = "\n".join(table) + "\n" if rows else "No release was measured in two Python versions.\n"
        parts.append(f"\n## {escape(machine)}\n\n{shown}" + "".join(f"\n{note}" for note in notes))
    return "".join(parts)


def _counts(launches: Iterable[Launch]) -> dict[str, dict[Series, dict[str, float]]]:
    """Tag -> series, its environment left empty -> environment -> the newest number."""
    counts: dict[str, dict[Series, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for series, releases in history(launches).items():
        if not series.is_counted:
            continue
        anywhere = Series("", series.benchmark, series.parameters)
        for tag, pairs in releases.items():
            numbers = [case.number for _, case in pairs if case.number is not None]
            if numbers:
                counts[tag][anywhere][series.environment] = numbers[-1]
    return counts


def _by_python(environment: str) -> tuple[str, list[int]]:
    """`release-py3.9` comes before `release-py3.11`."""
    kind, _, python = environment.rpartition("-py")
    return kind, [int(part) for part in python.split(".") if part.isdigit()]


def _note(tag: str, differing: Mapping[Series, Mapping[str, float]], facts: Mapping[str, Mapping[str, Any]]) -> str:
    """What differs on a release, and what else the environments differ in."""
    lines = [f"These numbers of {tag} differ:\n"]
    for series, of in differing.items():
        numbers = ", ".join(
            f"{human(of[environment], series.unit)} in {escape(environment)}"
            for environment in sorted(of, key=_by_python)
        )
        lines.append(f"- {escape(series.words)}: {numbers}")
    packages = [set(of.get("packages") or []) for of in facts.values()]
    apart = sorted(set.union(*packages) - set.intersection(*packages))
    lines.append(f"\nPackages in only one of the environments: {escape(', '.join(apart)) or 'none'}.\n")
    return "\n".join(lines)
