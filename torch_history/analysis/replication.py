"""Does another wheel of the same releases say the same? A release is built once for each Python, and a lane holds one build.

Two builds of one source differ in where loops and data lie, which can move a time by a few per cent and now and then by a
third. So a change that one lane tells is held against the verdict of every other lane that measured the same two releases.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .verdicts import Change, Series, Verdict

TOLD = (Verdict.SLOWER, Verdict.FASTER)
"""Verdicts on a time that has changed."""

LANES = "release-py"
"""How the environments begin that hold a build of their own for each Python."""


class Standing(enum.Enum):
    """Whether a change of a time was seen in the wheels of another lane, too."""

    REPLICATED = "replicated"
    NOT_REPLICATED = "not replicated"
    NOT_TESTABLE = "not testable"


class Replication(NamedTuple):
    """The standing of a change, the lane that gives it and what that lane says, both empty where no lane can."""

    standing: Standing
    lane: str = ""
    verdict: str = ""

    @property
    def words(self) -> str:
        """As the sentence of the change says it, empty where nothing is known."""
        if self.standing is Standing.NOT_TESTABLE:
            return ""
        if self.standing is Standing.REPLICATED:
            return f"replicated in {self.lane}"
        return f"this wheel only: {self.verdict} in {self.lane}"


UNTESTED = Replication(Standing.NOT_TESTABLE)


def replications(changes: Iterable[Change], elsewhere: Mapping[str, Iterable[Change]]) -> dict[Series, Replication]:
    """Each told change of a time -> what the other lanes say of it. `elsewhere` are lane -> its changes of the same two
    releases. One lane that decides otherwise is enough for NOT_REPLICATED."""
    others = {lane: {_anywhere(change.series): change for change in of} for lane, of in elsewhere.items()}
    found = {}
    for change in changes:
        if change.verdict in TOLD:
            of_lane = {lane: of.get(_anywhere(change.series)) for lane, of in others.items()}
            found[change.series] = replication(change, of_lane)
    return found


def replication(change: Change, of_lane: Mapping[str, Change | None]) -> Replication:
    """What other lanes say of one change; `of_lane` has None where a lane lacks the series."""
    decided = {
        lane: other.verdict for lane, other in of_lane.items() if other and other.verdict in (*TOLD, Verdict.SAME)
    }
    for lane, verdict in decided.items():
        if verdict is not change.verdict:
            return Replication(Standing.NOT_REPLICATED, lane, verdict.words)
    for lane, verdict in decided.items():
        return Replication(Standing.REPLICATED, lane, verdict.words)
    return UNTESTED


def _anywhere(series: Series) -> tuple[str, tuple[str, ...]]:
    """A series without its lane."""
    return series.benchmark, series.parameters
