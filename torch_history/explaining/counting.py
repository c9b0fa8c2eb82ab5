"""How is a changed number of bytes, allocations or operators explained? Both releases are counted, operator by operator.

Counts are exact, so a launch of each release says all, and a second one that it is so. What the operators hold adds up to
the number. Levers within a process are pulled as for times; those that need a process of their own are about time alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..store.causes import Place, Pulled
from . import places, verdict
from .estimates import Group, Ratio, Share
from .explanation import CannotExplain, Found, Open, Say
from .launching import Launch, Side, Subject
from .levers import Lever

COUNTED = ("peak_memory", "retained", "allocations", "operators")
"""Metrics that are counted by operator, as `by_allocation` of measure/explain.py names them."""

WENT = "the difference is in"
"""What is said of where a count is higher, where nothing is its cause."""

LAUNCHES = 2
"""Of each release, to see that a launch counts what another one counts."""

Answer = Mapping[str, Any]


class Counting:
    """Explains one counted series of `subject` between two releases."""

    def __init__(
        self, subject: Subject, sides: tuple[Side, Side], levers: Sequence[Lever], say: Say, opened: Open = Launch
    ) -> None:
        """`opened` gives a launch: tests give one that answers what they want."""
        self._subject, self._sides, self._say, self._opened = subject, sides, say, opened
        self._levers = [lever for lever in levers if lever.within]

    def explain(self) -> Found:
        """All steps. Raises CannotExplain where a release cannot run the case, counts 0, or counts now this and now that."""
        began = time.monotonic()
        found = Found(clock="none")
        metric = self._subject.metric
        self._say(f"Where is it? {LAUNCHES} launches of each release are counted by operator.")
        answers = (self._counted(self._sides[0]), self._counted(self._sides[1]))
        old, new = (float(answer[metric]) for answer in answers)
        self._check(old, new)
        found.base = Group([old] * LAUNCHES, [new] * LAUNCHES)
        found.ratio = Ratio(new / old, new / old, new / old)
        found.environments = (answers[0]["environment"], answers[1]["environment"])
        found.commits = (answers[0]["commit"], answers[1]["commit"])
        if old == new:
            found.words = f"the difference is not there: both count {old:,.0f}"
        else:
            found.places = table(metric, answers[0]["rows"], answers[1]["rows"])
            found.levers = [self._pulled(lever, answers, new - old) for lever in self._levers]
            because = {lever.name: lever.because for lever in self._levers}
            found.verdict, found.words = verdict.of_all(found.levers, because, found.places, went=WENT)
        found.took = round(time.monotonic() - began, 1)
        found.steps = {"counting by operator": found.took}
        return found

    def _check(self, old: float, new: float) -> None:
        for side, number in zip(self._sides, (old, new), strict=True):
            if number <= 0:
                raise CannotExplain(f"{side.tag} counts {number:,.0f}, so there is no ratio to explain.")

    def _counted(self, side: Side) -> dict[str, Any]:
        """What launches of one release count, with its environment and commit and what the call uses."""
        counted: list[dict[str, Any]] = []
        for _ in range(LAUNCHES):
            launch = self._opened(side, self._subject)
            try:
                facts, traces = launch.ask({"do": "facts"}), launch.ask({"do": "traces"})
                answer = launch.ask({"do": "allocations"})
                under = {
                    lever.name: launch.ask({"do": "allocations", "set": list(lever.set)})
                    for lever in self._levers
                    if not counted and not lever.refusal(set(traces.get("traces", [])))
                }
            finally:
                launch.close()
            if "failed" in answer:
                raise CannotExplain(f"{side.tag} cannot run it: {answer['failed']}.")
            counted.append({**facts, **traces, **answer, "under": under})
        metric = self._subject.metric
        if len({answer[metric] for answer in counted}) > 1:
            numbers = " and ".join(f"{answer[metric]:,}" for answer in counted)
            raise CannotExplain(f"Launches of {side.tag} count {numbers}: what varies cannot be explained by counting.")
        return counted[0]

    def _pulled(self, lever: Lever, answers: Sequence[Answer], difference: float) -> Pulled:
        """What a lever does to the difference, exactly."""
        under = [answer["under"].get(lever.name, {}) for answer in answers]
        failed = next((each["failed"] for each in under if "failed" in each), "")
        if failed or not all(under):
            refused = (
                failed or lever.refusal({*answers[0]["traces"], *answers[1]["traces"]}) or "a release does not use it"
            )
            return Pulled(lever.name, lever.words, lever.proves, refused=refused[:500])
        old, new = (float(each[self._subject.metric]) for each in under)
        share = 1 - (new - old) / difference
        return Pulled(
            lever.name,
            lever.words,
            lever.proves,
            verdict=verdict.of_lever(Share(share, share, share)),
            old=(old,),
            new=(new,),
            removed=share,
            low=share,
            high=share,
        )


def table(metric: str, old: Mapping[str, Answer], new: Mapping[str, Answer]) -> list[Place]:
    """Operators that hold most of the difference, and one row of all that is left over: they add up to it."""
    rows = [_place(name, _of(old, name, metric), _of(new, name, metric), old, new) for name in {*old, *new}]
    rows.sort(key=lambda row: (-abs(row.new - row.old), row.name))
    shown = [row for row in rows[: places.MOST_ROWS] if row.new != row.old]
    left = [row for row in rows if row not in shown]
    before, now = sum(row.old for row in left), sum(row.new for row in left)
    rest = Place(kind="operator", name=places.LEFT, old=before, new=now, low=now - before, high=now - before)
    difference = sum(row.new - row.old for row in rows)
    return [places.judged(row, [*shown, rest], difference) for row in (*shown, rest)]


def _of(rows: Mapping[str, Answer], name: str, metric: str) -> float:
    return float(rows.get(name, {}).get(metric, 0))


def _place(name: str, before: float, now: float, old: Mapping[str, Answer], new: Mapping[str, Answer]) -> Place:
    calls = (_of(old, name, "operators"), _of(new, name, "operators"))
    shown = places.shortened(name)
    return Place(kind="operator", name=shown, old=before, new=now, low=now - before, high=now - before, calls=calls)
