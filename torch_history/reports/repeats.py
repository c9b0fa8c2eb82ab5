"""Does a second session say what the first one said? The verdicts of both on the releases that both measured."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..analysis.markdown import escape
from ..analysis.series import Series, Verdict, history
from ..analysis.verdicts import Change, compare_history, human
from ..releases.axis import Axis
from ..store.launches import Launch
from ..store.sources import that_count

HEADER = """\
# Repeated sessions

`torch-history document` writes this page from `results/`. If two sessions measured the same two releases, each session is
compared by itself, with the current version of the benchmarks. Counts and exact bytes must be equal.

Times, resident memory and growth differ a little from process to process, so their verdicts have a margin. They are compared
if both sessions are conclusive. Most verdicts must be equal. Two times may be on different sides of the margin if their
intervals overlap. Hardly any may **contradict**: their intervals do not overlap, or, of memory, their verdicts differ. Two
verdicts of SAME never contradict, because both are within the margin. [Calibration](calibration.md) measures how often
verdicts are right.
"""

FIRST = 20
"""Contradictions that are written out for each pair of sessions."""


@dataclass
class Agreement:
    """What two sessions say of the change from `old` to `new`: how many exact numbers both have, how many numbers with a
    margin both decide and how many of those alike, and those that contradict, each as the first and the second have it."""

    sessions: tuple[str, str]
    old: str
    new: str
    counts: int = 0
    decided: int = 0
    alike: int = 0
    contradictions: list[tuple[Change, Change]] = field(default_factory=list)


def document(launches_of: Mapping[str, Iterable[Launch]], axis: Axis) -> str:
    """The page: for each machine and lane the pairs that were measured twice, and each contradiction."""
    parts = [HEADER]
    for machine, launches in launches_of.items():
        of_lane: dict[str, list[Launch]] = defaultdict(list)
        for launch in launches:
            of_lane[launch.environment].append(launch)
        for environment, measured in sorted(of_lane.items()):
            found = agreements(measured, axis)
            if found:
                parts.append(f"\n## {escape(machine)}, {escape(environment)}\n\n{_table(found)}")
    return "".join(parts) if len(parts) > 1 else f"{HEADER}\nNo two releases were measured in more than one session.\n"


def agreements(launches: Iterable[Launch], axis: Axis) -> list[Agreement]:
    """For every two sessions of one lane: their verdicts on neighbours among the releases that both measured."""
    launches = sorted(launches, key=lambda launch: launch.started_at)
    newest = that_count((one.environment, one.benchmark, one.version, one.started_at) for one in launches)
    sessions: dict[str, list[Launch]] = defaultdict(list)
    for launch in launches:
        if launch.release in axis and newest[launch.environment, launch.benchmark] == launch.version:
            sessions[launch.session].append(launch)
    found = []
    known = {name: history(of) for name, of in sessions.items()}
    for one, other in itertools.combinations(sessions, 2):
        shared = {launch.release for launch in sessions[one]} & {launch.release for launch in sessions[other]}
        for old, new in itertools.pairwise(sorted(shared, key=axis.position)):
            said = (compare_history(known[name], old, new) for name in (one, other))
            agreement = _agreement((one, other), old, new, *said)
            if agreement.counts or agreement.decided:
                found.append(agreement)
    return found


def _agreement(
    sessions: tuple[str, str], old: str, new: str, before: Iterable[Change], after: Iterable[Change]
) -> Agreement:
    said = Agreement(sessions, old, new)
    again: dict[Series, Change] = {change.series: change for change in after}
    for first in before:
        second = again.get(first.series)
        verdicts = {first.verdict, second.verdict} if second else set()
        if second is None or Verdict.CANT_TELL in verdicts or verdicts == {Verdict.NEVER_RAN}:
            continue
        if first.series.unit == "stalls":
            continue  # counted, but not exact: a busy machine adds one
        if first.series.margin:
            said.decided += 1
            said.alike += first.verdict is second.verdict
            meet = _meet(first, second)
        else:
            said.counts += 1
            meet = (first.verdict, first.old, first.new) == (second.verdict, second.old, second.new)
        if not meet:
            said.contradictions.append((first, second))
    return said


def _meet(one: Change, other: Change) -> bool:
    """Whether the intervals of both have a ratio in common, or the verdicts are equal: both SAME, or one has no interval."""
    if one.verdict is other.verdict is Verdict.SAME:
        return True
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return one.verdict is other.verdict
    return max(one.low, other.low) <= min(one.high, other.high)


def _table(found: Iterable[Agreement]) -> str:
    lines = [
        "| releases | sessions | exact numbers in both | with a margin, conclusive in both | equal | contradict |",
        "|---|---|---:|---:|---:|---:|",
    ]
    notes = []
    for said in found:
        sessions = escape(" and ".join(said.sessions))
        lines.append(
            f"| {said.old} → {said.new} | {sessions} | {said.counts} | {said.decided} | {said.alike} "
            f"| {len(said.contradictions)} |"
        )
        if said.contradictions:
            notes.append(f"\n{said.old} → {said.new}, {sessions}:\n\n")
            notes += [f"- {_sentence(*pair)}\n" for pair in said.contradictions[:FIRST]]
            if len(said.contradictions) > FIRST:
                notes.append(f"- and {len(said.contradictions) - FIRST} more\n")
    return "\n".join(lines) + "\n" + "".join(notes)


def _sentence(first: Change, second: Change) -> str:
    return f"{escape(first.series.words)}: {_words(first)}, then {_words(second)}"


def _words(change: Change) -> str:
    if change.series.varies and change.low is not None and change.high is not None:
        return f"{change.verdict.shown} ({change.low:.3f} to {change.high:.3f})"
    numbers = [human(number, change.series.unit) or "none" for number in (change.old, change.new)]
    return f"{change.verdict.shown} ({' → '.join(numbers)})"
