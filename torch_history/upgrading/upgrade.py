"""What does an upgrade change in a file of one's own, and since which release? Both ends first, then a search between them.

Whoever asks brings a `Laboratory`, which measures a few releases against each other and keeps what it measured.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..analysis.causes import Known
from ..analysis.compare import Comparison, compared
from ..analysis.series import Series, Verdict, history
from ..analysis.verdicts import Change
from ..errors import UserError
from ..store.launches import Launch
from .room import NoRoom
from .search import Look, Moved, Search, Span, Task, expected_releases

Case = tuple[str, ...]
"""Parameters of a series as they are stored: a function and a size."""

DRIVING = ("worse", "better")
"""Kinds of verdicts for whose sake releases are installed. Operators and allocations change at nearly every release and cost
nothing by themselves; they are told as clues."""

MOST_REFUSED = 2
"""Releases in a row that could not be installed, after which the fault is taken to lie with this machine or its network."""


class NotInstalled(UserError):
    """A release that could not be installed; the text says why. `tag` names it."""

    def __init__(self, tag: str, sentence: str) -> None:
        super().__init__(sentence)
        self.tag = tag


class Laboratory(Protocol):
    """Measures releases against each other, and keeps the launches."""

    @property
    def machine(self) -> str: ...

    @property
    def environment(self) -> str: ...

    @property
    def device(self) -> str: ...

    def measure(self, tags: tuple[str, ...], cases: Collection[Case]) -> None:
        """Measures `cases`, all where there are none, on releases in one session, unless that is stored. Raises
        NotInstalled, and KeyboardInterrupt, after which the same call goes on."""

    def launches(self, tags: tuple[str, ...], cases: Collection[Case]) -> Sequence[Launch]:
        """What the session of `measure` has stored so far."""

    def facts(self, tag: str) -> Mapping[str, Any]:
        """What is known of a release's environment."""

    def evidence(self) -> Sequence[Known]:
        """What `torch-history explain` has found of the file's changes."""

    def not_there(self) -> Mapping[tuple[Series, tuple[str, str]], Known]:
        """Series and the two releases between which `explain` did not see its change again -> what it says of that."""


@dataclass(frozen=True)
class Place:
    """Where a series changed: after release `old`, at `new` at the latest, by `change`, which was seen between the two
    releases `seen`. `sentence` says so with what may be the cause."""

    old: str
    new: str
    is_exact: bool
    seen: tuple[str, str]
    change: Change
    sentence: str
    because: str = ""
    """The cause that the sentence ends with, empty where none is known."""


@dataclass
class Upgrade:
    """An upgrade over `tags`, oldest first, of which the first and the last are its ends. `most` is the number of releases
    that may be measured, the ends counted in; None for as many as the changes need by halving."""

    tags: tuple[str, ...]
    laboratory: Laboratory
    tell: Callable[[str], None] = lambda words: None
    most: int | None = None
    ends: Comparison | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    """Release that could not be measured -> why."""
    without_room: str = ""
    """Why no further release between the ends could be measured; empty where the disk was large enough."""
    is_complete: bool = False
    """Whether nothing interrupted it."""

    def __post_init__(self) -> None:
        self.search = Search(len(self.tags), self._measure, self._look)
        self._between: dict[tuple[int, int], list[Comparison]] = defaultdict(list)
        self._asked: list[tuple[tuple[int, int], tuple[str, ...], list[Case]]] = []
        self._refused = 0

    def run(self) -> None:
        """Measures what is needed and not stored. What is interrupted leaves what is known so far. Raises UserError where an
        end cannot be measured, or several releases between them cannot be installed."""
        ends = self.tags[0], self.tags[-1]
        self.tell(f"Measuring both ends, {ends[0]} and {ends[1]}.")
        try:
            self.laboratory.measure(ends, ())
        finally:
            self.ends = self._compared(ends, ends, ())
        driving = self.driving
        self.search.most = self.most or expected_releases(len(self.tags), max(1, len(driving)))
        try:
            self.search.run(change.series for change in driving)
        except NoRoom as error:
            self.without_room = str(error)
        self.is_complete = True

    @property
    def driving(self) -> list[Change]:
        """What changed between the ends for better or worse, or was broken."""
        return [change for change in (self.ends.changes if self.ends else []) if change.verdict.kind in DRIVING]

    @property
    def measured(self) -> list[str]:
        """Releases of which there is something, oldest first."""
        ends = {0, len(self.tags) - 1} if self.ends and self.ends.changes else set()
        return [self.tags[at] for at in sorted(self.search.measured | ends)]

    @property
    def open(self) -> bool:
        """Whether some change is known less closely than it could be, because only so many releases may be measured."""
        most, self.search.most = self.search.most, None
        try:
            return self.search.best() is not None
        finally:
            self.search.most = most

    def places(self, series: Series) -> list[Place]:
        """Where it changed, oldest first, as far as that is known."""
        return [
            self._place(series, span) for span in sorted(self.search.spans.get(series, []), key=lambda span: span.new)
        ]

    def _place(self, series: Series, span: Span) -> Place:
        comparison, change = self._seen(series, *span.seen)
        return Place(
            self.tags[span.old],
            self.tags[span.new],
            span.is_exact,
            (self.tags[span.seen[0]], self.tags[span.seen[1]]),
            change,
            comparison.sentence(change),
            comparison.why.get(series, ""),
        )

    def _seen(self, series: Hashable, old: int, new: int) -> tuple[Comparison, Change]:
        """Raises LookupError where the two were not compared."""
        of_pair = self._between[old, new]
        if (old, new) == (0, len(self.tags) - 1) and self.ends:
            of_pair = [self.ends]
        for one in of_pair:
            for change in one.changes:
                if change.series == series:
                    return one, change
        raise LookupError(f"{series} was not compared")

    def _look(self, series: Hashable, old: int, new: int) -> Look:
        try:
            return look(self._seen(series, old, new)[1])
        except LookupError:
            return Look(Moved.UNKNOWN, 0.0)

    def _measure(self, middle: int, task: Task) -> bool:
        """Whether the release could be measured against the ends of each span that it divides."""
        for (old, _, new), series in task.items():
            tags = self.tags[old], self.tags[middle], self.tags[new]
            cases = sorted({one.parameters for one in series if isinstance(one, Series)})
            self.tell(self._step(tags, cases))
            try:
                self.laboratory.measure(tags, cases)
            except NotInstalled as error:
                self._pass_over(error)
                return False
            for pair in ((old, middle), (middle, new)):
                self._asked.append((pair, tags, cases))
                self._compare(pair, tags, cases)
        self._refused = 0
        return True

    def tell_again(self) -> None:
        """Compares all that was measured once more, with the evidence that has come since."""
        ends = self.tags[0], self.tags[-1]
        self.ends = self._compared(ends, ends, ())
        self._between.clear()
        for pair, tags, cases in self._asked:
            self._compare(pair, tags, cases)

    def _compare(self, pair: tuple[int, int], tags: tuple[str, ...], cases: Collection[Case]) -> None:
        self._between[pair].append(self._compared((self.tags[pair[0]], self.tags[pair[1]]), tags, cases))

    def _step(self, tags: tuple[str, ...], cases: Sequence[Case]) -> str:
        names = ", ".join(" ".join(part.strip("'") for part in case).strip() for case in cases)
        number, most = len(self.search.measured) + 1, self.search.most
        return f"Release {number} of at most {most}: {tags[1]}, between {tags[0]} and {tags[2]}, for {names}."

    def _pass_over(self, error: NotInstalled) -> None:
        self._refused += 1
        if self._refused >= MOST_REFUSED:
            raise UserError(f"{self._refused} releases in a row could not be installed. {error}") from error
        self.left_out[error.tag] = str(error)
        self.tell(f"{error.tag} is passed over: {error}")

    def _compared(self, pair: tuple[str, str], tags: tuple[str, ...], cases: Collection[Case]) -> Comparison:
        """Two releases by the launches of one session. What was asked again because it had changed would bias it."""
        laboratory = self.laboratory
        found = history(laboratory.launches(tags, cases))
        facts = {tag: laboratory.facts(tag) for tag in pair}
        known = laboratory.evidence()
        return compared(laboratory.machine, laboratory.environment, *pair, found, facts, laboratory.device, known=known)


def look(change: Change) -> Look:
    """What a verdict says to the search."""
    if change.verdict in (Verdict.BROKE, Verdict.FIXED):
        return Look(Moved.YES, math.inf)
    size = abs(math.log(change.ratio)) if change.ratio and change.ratio > 0 else 0.0
    if change.verdict in (Verdict.SAME, Verdict.NEVER_RAN):
        return Look(Moved.NO, size)
    if change.verdict is Verdict.CANT_TELL:
        return Look(Moved.UNKNOWN, size)
    return Look(Moved.YES, size if change.ratio else math.inf)
