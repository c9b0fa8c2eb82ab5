"""What do releases ask of CUDA, and what changed from each to the next? Tables of what the recorder counted."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..analysis.markdown import code, escape
from ..analysis.series import History, Verdict, history
from ..analysis.verdicts import Change, compare_history, human
from ..releases.axis import Axis
from ..store.certificates import Certificate
from ..store.details import DETAILS, read_details
from ..store.launches import Launch
from ..store.machines import record_of
from ..system.files import warn

HEADER = """\
# What releases ask of CUDA

Made from `results/` by `torch-history document`; not edited by hand. **Recorded: no kernel ran.** Every number is a count
of what a release asks of a pretended card; no time and no result comes from it. [How it is counted, and what is
refused](../recorder.md).
"""

COUNTED, REFUSED, FAILED, DIFFERS = "counted", "refused", "failed", "differs"


def is_recorded(results: Path, machine: str) -> bool:
    """Whether the numbers in that machine's folder are counts of the recorder."""
    return record_of(results / machine).get("device") == "recorder"


def document(
    results: Path, launches_of: Mapping[str, Iterable[Launch]], axis: Axis, certificates: Sequence[Certificate] = ()
) -> str:
    """docs/generated/recorded.md: for each pretended card what was counted, refused and failed, what a certificate compared
    with a real card, and every change between neighbours."""
    parts = [HEADER]
    for machine, launches in launches_of.items():
        if not is_recorded(results, machine):
            continue
        found = history(launches)
        parts.append(f"\n## {escape(machine)}\n")
        card = record_of(results / machine).get("card")
        parts += [f"\n{_certified(each)}\n" for each in certificates if each.card == card]
        for environment in sorted({series.environment for series in found}):
            of_lane = History((series, of) for series, of in found.items() if series.environment == environment)
            tags = sorted({tag for of in of_lane.values() for tag in of if tag in axis}, key=axis.position)
            details = {tag: _details(results / machine / f"{tag}-{environment}{DETAILS}") for tag in tags}
            parts += [
                f"\n### {escape(environment)}\n",
                _not_counted(axis, tags),
                _coverage(of_lane, details, tags),
                _changes(of_lane, details, tags),
            ]
    return "".join(parts)


def _details(path: Path) -> dict[str, dict[str, Any]]:
    """The details of a release; none where the file is damaged, which a warning says."""
    try:
        return read_details(path)
    except ValueError as error:
        warn(f"{path} is skipped: {error}.")
        return {}


def _certified(certificate: Certificate) -> str:
    """How many cases a certificate found equal, and which were not."""
    said = f"{len(certificate.equal)} cases are equal to {escape(certificate.words)}"
    different = ", ".join(
        escape(f"{case} ({', '.join(sorted(what))})") for case, what in sorted(certificate.different.items())
    )
    return f"{said}; {len(certificate.different)} are not: {different}." if different else f"{said}; none differs."


def _not_counted(axis: Axis, tags: Sequence[str]) -> str:
    """Which releases of the axis this lane lacks, as a sentence; empty where it has all."""
    missing = [release.tag for release in axis.releases if release.tag not in tags]
    return f"\nNot counted yet: {', '.join(missing)}.\n" if missing else ""


def _coverage(found: History, details: Mapping[str, Mapping[str, Any]], tags: Sequence[str]) -> str:
    """Releases x questions x variants, and the reasons."""
    states: dict[tuple[str, str], dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    reasons: dict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for series, releases in found.items():
        if series.metric != "host_waits" or len(series.parameters) != 2:
            continue
        row = series.question, series.parameters[0].strip("'")
        for tag, pairs in releases.items():
            name = " ".join((series.benchmark.rpartition(".")[0], *series.parameters))
            state, reason = _state([case for _, case in pairs], details.get(tag, {}).get(name, {}))
            states[row][tag][state] += 1
            totals[series.question][state] += 1
            if reason:
                reasons[row][state, reason] += 1
    said = [
        f"{escape(question.replace('_', ' '))}: {of[COUNTED]} of {of.total()} cases counted ({of[COUNTED] / of.total():.0%})"
        for question, of in sorted(totals.items())
    ]
    lines = [f"\n{'; '.join(said)}.\n\n" if said else "\nNothing was counted.\n\n"]
    lines.append(
        "A cell says how many sizes were counted; r are refused, f failed, d differed between two launches.\n\n"
    )
    lines.append("| question | variant | " + " | ".join(tag.removeprefix("v") for tag in tags) + " |\n")
    lines.append("|---" * (len(tags) + 2) + "|\n")
    for (question, variant), of in sorted(states.items()):
        cells = [_cell(of[tag]) if tag in of else "" for tag in tags]
        lines.append(f"| {escape(question)} | {code(variant)} | " + " | ".join(cells) + " |\n")
    lines.append("\nWhy not:\n\n")
    for (question, variant), counted in sorted(reasons.items()):
        lines += [
            f"- {escape(question)} {code(variant)}, {many} times {_quoted(*reason)}\n"
            for reason, many in counted.most_common()
        ]
    return "".join(lines)


def _state(cases: Sequence[Any], details: Mapping[str, Any]) -> tuple[str, str]:
    # What an older recorder refused, and a later launch counted, is counted.
    numbers = {
        case.number for case in itertools.dropwhile(lambda case: case.number is None and case.unavailable, cases)
    }
    if len(numbers) > 1 or details.get("differs"):
        return DIFFERS, "two launches of the same release did not count the same, so it is not published"
    case = cases[-1]
    if case.number is not None:
        return COUNTED, ""
    return FAILED if case.failed else REFUSED, case.reason


def _cell(states: Counter[str]) -> str:
    letters = {REFUSED: "r", FAILED: "f", DIFFERS: "d"}
    parts = [str(states[COUNTED])] if states[COUNTED] else []
    return " ".join(parts + [f"{states[state]}{letter}" for state, letter in letters.items() if states[state]])


def _quoted(state: str, reason: str) -> str:
    """`failed: “RuntimeError: no”`."""
    return f"{state}: “{_plain(reason)}”"


def _plain(text: str) -> str:
    """A reason on one line of Markdown, without an address that differs from process to process."""
    return escape(re.sub(r"0x[0-9a-f]+", "0x…", " ".join(text.split()))[:300])


def _changes(found: History, details: Mapping[str, Mapping[str, Any]], tags: Sequence[str]) -> str:
    """Every change of a count between neighbours, the largest of bytes first, and of kernels by name."""
    lines = ["\n#### What changed from each release to the next\n"]
    for old, new in itertools.pairwise(tags):
        compared = [change for change in compare_history(found, old, new) if change.verdict is not Verdict.CANT_TELL]
        changed = [c for c in compared if c.old is not None and c.new is not None and c.old != c.new]
        names = _of_names(details[old], details[new])
        if not changed and not names:
            continue
        lines.append(f"\n**{old} → {new}**\n\n")
        lines += [f"- {_sentence(change)}\n" for change in sorted(changed, key=_rank)]
        lines += [f"- {sentence}\n" for sentence in names]
    if len(lines) == 1:
        lines.append("\nNothing.\n")
    return "".join(lines)


def _rank(change: Change) -> tuple[bool, float, str]:
    assert change.old is not None
    assert change.new is not None
    return change.series.unit != "bytes", -abs(change.new - change.old), change.series.words


def _sentence(change: Change) -> str:
    unit = change.series.unit
    return f"{escape(change.series.words)}: {human(change.old, unit)} → {human(change.new, unit)}"


def _of_names(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """By variant which kernels of another family are launched, or how often; template arguments, which change with every
    compiler, are left out. Cases that change alike stand together."""
    alike: dict[str, list[str]] = defaultdict(list)
    for case in sorted(old.keys() & new.keys()):
        before, after = (_families(of[case]["kernels"]) for of in (old, new))
        gone, come = before - after, after - before
        if gone or come:
            said = "; ".join(filter(None, [_listed("no longer", gone), _listed("now", come)]))
            alike[said].append(case.partition(".")[0] + " " + case.partition(" ")[2].replace("'", ""))
    return [
        f"{escape(', '.join(sorted(cases)))}: {said}" for said, cases in sorted(alike.items(), key=lambda item: item[1])
    ]


def _families(kernels: Mapping[str, int]) -> Counter[str]:
    families: Counter[str] = Counter()
    for name, count in kernels.items():
        families[family(name)] += count
    return families


def family(kernel: str) -> str:
    """A kernel's name without what it returns, its template arguments and its own; of generated ones without the digest."""
    plain = re.sub(r"^void ", "", re.split(r"[<(]", kernel)[0] or kernel)
    functors = re.findall(r"\b(\w*(?:Functor|_kernel_cuda|_kernel_impl|_kernel))\b", kernel)
    named = next((name for name in functors[1:] if name not in plain), "")
    return re.sub(r"_?\d{6,}$", "", plain) + (f"({named})" if named else "")


def _listed(how: str, kernels: Counter[str]) -> str:
    if not kernels:
        return ""
    named = [code(name) + (f" x {count}" if count > 1 else "") for name, count in sorted(kernels.items())]
    return f"{how} " + ", ".join(named)
