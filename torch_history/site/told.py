"""What is told of a pair of releases of a lane? What `torch-history compare` tells; docs/site.md lists the keys."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ..analysis import answer, causes, compare
from ..analysis.causes import Basis
from ..analysis.code import of_times, pair_of
from ..analysis.findings import Finding
from ..analysis.replication import NO_PLACES, OtherPlaces
from ..analysis.series import Series, Verdict
from . import typical
from .rivals import Rivals, sentence

if TYPE_CHECKING:
    from .data import Lane

SCHEMA = 1  # of the file of a pair; it grows by one when a key goes or changes its meaning, not when one is added


def compared(lane: Lane, number: int, elsewhere: OtherPlaces = NO_PLACES) -> compare.Comparison:
    """A pair, by its number, as `compare.compared` has it but for the counts of launches, held against `elsewhere`."""
    every, (old, new) = lane.every, lane.every.pairs[number]
    changes = sorted(every.changes(number), key=compare.place)
    changed = [one for one in changes if one.verdict.kind in compare.SAID_FIRST]
    facts, asked = (lane.facts[old], lane.facts[new]), (lane.name, lane.environment, old, new)
    code = of_times(changes, pair_of(lane.environment, old, new, lane.device))
    why, moved = causes.why(changed, *facts, lane.evidence, code), causes.moved(*facts, lane.device)
    about: dict[str, Any] = {"device": lane.device, "threads": lane.threads, "alone": every.alone[number], "code": code}
    found = compare.Comparison(*asked, changes, why, moved, every.one_sided(number), **about)
    return found.beside(lane.unconfirmed, elsewhere)


def told(lane: Lane, number: int, elsewhere: OtherPlaces = NO_PLACES) -> dict[str, Any]:
    """All that a page says of a pair, by its number, held against what was measured `elsewhere`."""
    found = compared(lane, number, elsewhere)
    overall, questions = typical.of_pair(lane.every.typical, number)
    line, instead = typical.bottom_line(overall, found.changes, lane.main), lane.rivals[found.new]
    changes = _columns(lane, found)
    return {
        "schema": SCHEMA,
        **{name: getattr(found, name) for name in ("machine", "environment", "device", "old", "new")},
        "main": lane.main,
        "instead": lane.advice[found.new],
        "typical": overall and overall.as_data(),
        "questions": {name: each.as_data() for name, each in questions.items()},
        "tally": Counter(change.verdict.words for change in found.changes),
        **{name: lane.place[of] if isinstance(of, Series) else of for name, of in line.items()},
        "findings": [_finding(lane, one, instead, found.new) for one in found.findings],
        "unchanged": answer.unchanged(found.changes),
        "again": answer.once(found),
        "sure": found.sure,
        "environments": found.environments,
        "not_measured": answer.not_measured(found),
        "counted": (
            f"The typical change is over {overall.cases if overall else 0:,} cases, each by its main time. In all, "
            f"{found.looked_at:,} times were compared. With memory and the counts that changed "
            f"{len(changes['series']):,} series are listed."
        ),
        "changes": changes,
    }


def _finding(lane: Lane, finding: Finding, instead: Rivals, new: str) -> dict[str, Any]:
    series = [row.series for row in finding.rows]
    costs = finding.verdict.kind == "worse" and finding.verdict is not Verdict.BROKE
    return {
        "title": finding.title,
        "words": finding.words,
        "because": finding.because.words if finding.because else "",
        "class": finding.code.kind.value if finding.code else "",
        "verdict": finding.verdict.words,
        "kind": finding.verdict.kind,
        "evidence": _evidence(finding),
        "series": [lane.place[one] for one in series],
        "instead": sentence(series, instead, new) if costs else "",
    }


def _evidence(finding: Finding) -> str:
    """Where the evidence of its cause is: `explain`, or the page and the item of one found by hand; empty for none."""
    if finding.because is None:
        return ""
    if finding.because.basis is Basis.EVIDENCE:
        return "explain"
    return next((f"{row.link}#{row.item}" for row in finding.because.by_hand), "")


def _columns(lane: Lane, found: compare.Comparison) -> dict[str, Any]:
    """The changes, the worst first, a list for each of what is known of them; `verdicts`, `reasons` and `causes` are listed
    once, and a change has their places. What has no number on either release, or the same exact one, is counted alone, but
    for memory that a picture shows."""
    seen, shown = [one for one in found.changes if one.verdict is not Verdict.NEVER_RAN], lane.main["memory"]
    is_same = {one.series for one in seen if one.verdict is Verdict.SAME and not one.series.varies}
    changes = [one for one in seen if one.series not in is_same or one.series.benchmark in shown]
    words = {"verdict": [one.verdict.words for one in changes], "reason": [one.reason for one in changes]}
    words["why"] = [found.because(one.series) for one in changes]
    listed = {name: {each: place for place, each in enumerate(dict.fromkeys(of))} for name, of in words.items()}
    numbers = ("old", "new", "ratio", "low", "high")
    return {
        "series": [lane.place[one.series] for one in changes],
        **{name: [_shown(getattr(one, name)) for one in changes] for name in numbers},
        **{name: [listed[name][each] for each in of] for name, of in words.items()},
        **dict(zip(("verdicts", "reasons", "causes"), map(list, listed.values()), strict=True)),
    }


def _shown(number: float | None) -> float | None:
    """Times and ratios with five digits, exact numbers as they are."""
    return number if number is None or number == int(number) else typical.rounded(number)
