"""What does an upgrade change in a user's file, and since which release? Both ends first, then a search between them."""

import math
import shlex
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from contract.metrics import METRICS

from ...analysis.causes import Known
from ...analysis.compare import Comparison, compared
from ...analysis.results import results
from ...analysis.series import Series, Verdict, history
from ...analysis.verdicts import Change
from ...explaining.counting import COUNTED, GROWTH
from ...explaining.explanation import TIMES_ONCE
from ...explaining.finding import ONCE, TIMES
from ...store.causes import NOT_LOOKED_INTO
from ...system.errors import UserError
from ..budget import Effort
from ..reuse import taken_words
from .search import Look, Moved, Search, Task, expected_releases
from .sessions import Case, NotInstalled, Sessions, Spent

DRIVING = ("worse", "better")
"""Verdicts for whose sake releases are installed: operators and allocations change nearly everywhere at no cost."""

MOST_REFUSED = 2
"""Releases in a row that could not be installed, after which the fault is taken to lie with this machine or its network."""

ENDS = 0.5
"""Share of the budget that the ends get: the search has the rest. What both leave is shared again, and then the ends'."""

LONGEST_ONCE = 300.0
"""Seconds that explaining what a process does only once may take beside others."""

EXPLAINED = ((*COUNTED[:2], *GROWTH), TIMES, ONCE)
"""Metrics whose causes are looked for: bytes first, for they are exact and take seconds."""

Pair = tuple[str, str]
"""Tags of an old and a new release."""


@dataclass(frozen=True)
class Place:
    """A `change` after release `old`, at `new` at the latest, `seen` between these two, `because` of a cause."""

    old: str
    new: str
    seen: Pair
    is_exact: bool
    change: Change
    because: str = ""


@dataclass(frozen=True)
class Row:
    """One series that changed between the ends, and where."""

    change: Change
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Answer:
    """All that is known of an upgrade. `file` is as the caller named it; `left` is what each session left undecided;
    `unfinished` says that something interrupted it, `spent` that its budget was over before the search, `reused` which
    counts were stored. `packages` are those that differ between the ends, as (name, old, new) versions; None where the file
    asks for none besides torch. `looked` has what `explain` found, by series and pair."""

    file: str
    lane: str
    device: str
    tags: tuple[str, ...]
    measured: tuple[str, ...]
    comparison: Comparison
    rows: tuple[Row, ...]
    left_out: dict[str, str]
    is_open: bool
    left: Sequence[Effort]
    unfinished: bool
    spent: bool = False
    reused: str = ""
    packages: Sequence[tuple[str, str, str]] | None = None
    looked: Mapping[tuple[Series, Pair], Known] = field(default_factory=dict)

    @property
    def ends(self) -> Pair:
        return self.tags[0], self.tags[-1]

    @property
    def ran(self) -> bool:
        """Whether any function gave a number on a release."""
        return any(change.old is not None or change.new is not None for change in self.comparison.changes)

    def absent(self, place: Place) -> str:
        """What `explain` said where it did not see a change again; empty where it has not looked, or saw it."""
        found = self.looked.get((place.change.series, place.seen))
        return found.words if found and found.verdict in NOT_LOOKED_INTO else ""

    def cause(self, place: Place) -> str:
        """The command that looks for the cause of what rose; empty where none can, or where one looked and could tell."""
        series, looked = place.change.series, self.looked.get((place.change.series, place.seen))
        rose = place.change.verdict in (Verdict.SLOWER, Verdict.HUNGRIER) and place.change.factor
        is_new = looked is None or looked.verdict == "INCONCLUSIVE"
        if not (rose and is_new and self.device == "cpu" and any(series.metric in of for of in EXPLAINED)):
            return ""
        metric = "" if series.metric in TIMES else METRICS[series.metric].words
        name = " ".join(part for part in (*series.plain, metric) if part)
        return shlex.join(["torch-history", "explain", *place.seen, name, "--workload", self.file, "--lane", self.lane])

    @property
    def unexplained(self) -> list[Place]:
        """Where a call became slower, or takes more memory, and nobody has looked for the cause: what is counted first, and
        the largest change of each kind; last what was looked for while times scattered too much. What a process does only
        once is left out where it takes seconds."""

        def is_quick(place: Place) -> bool:
            return place.change.series.metric not in ONCE or TIMES_ONCE * (place.change.new or 0.0) <= LONGEST_ONCE

        def order(place: Place) -> tuple[bool, int, float]:
            kind = next(i for i, metrics in enumerate(EXPLAINED) if place.change.series.metric in metrics)
            return self.absent(place) != "", kind, -(place.change.ratio or 1.0)

        places = [place for row in self.rows for place in row.places if self.cause(place) and is_quick(place)]
        return sorted({(place.change.series, place.seen): place for place in places}.values(), key=order)


@dataclass
class Upgrade:
    """An upgrade over `tags`, oldest first. `most` releases may be measured; None for as many as halving needs."""

    tags: tuple[str, ...]
    laboratory: Sessions
    tell: Callable[[str], None] = lambda words: None
    most: int | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    """Release that could not be measured -> why."""
    is_complete: bool = False
    """Whether nothing interrupted it."""
    is_spent: bool = False
    """Whether the budget was over before the search."""

    def __post_init__(self) -> None:
        self.search = Search(len(self.tags), self._measure, self._look)
        self._told: dict[tuple[tuple[int, int], tuple[str, ...], tuple[Case, ...]], Comparison] = {}
        self._refused = 0

    def run(self) -> None:
        """Measures what is needed and not stored. Raises UserError, and UserError where too many releases are refused."""
        both = self.tags[0], self.tags[-1]
        self.tell(f"Measuring both ends, {both[0]} and {both[1]}.")
        try:
            for share in (1.0,) if 2 in (len(self.tags), self.most) else (ENDS, ENDS, 1.0):
                try:
                    self.laboratory.measure(both, (), share)
                finally:
                    self._compare((0, len(self.tags) - 1), both, ())
                changed = [one.series for one in self.ends.results if one.changed] if self.ends else []
                driving = [*(one.series for one in self.driving), *changed]
                self.search.most = self.most or expected_releases(len(self.tags), max(1, len(driving)))
                self.search.run(driving)
        except Spent:
            self.is_spent = self.search.best() is not None
        self.is_complete = True

    @property
    def ends(self) -> Comparison | None:
        """What changed between the ends; None before they were compared."""
        return next(iter(self._compared(0, len(self.tags) - 1)), None)

    @property
    def driving(self) -> list[Change]:
        """What changed between the ends for better or worse, or was broken."""
        return [change for change in (self.ends.changes if self.ends else []) if change.verdict.kind in DRIVING]

    def answer(self, file: str, lane: str, packages: Sequence[tuple[str, str, str]] | None = None) -> Answer | None:
        """What is known so far; None where nothing is."""
        if self.ends is None or not self.ends.changes:
            return None
        known = [*self.laboratory.evidence(), *self.laboratory.not_there()]
        looked = {(Series(one.environment, one.benchmark, one.parameters), (one.old, one.new)): one for one in known}
        rows = [Row(change, tuple(self._places(change.series))) for change in self.driving]
        measured = self.search.measured | {0, len(self.tags) - 1}
        sessions = list(dict.fromkeys((tags, cases) for _, tags, cases in self._told))
        every = [launch for one in sessions for launch in self.laboratory.launches(*one)]
        returned, reused = results(history(every), self.tags[0], self.tags[-1]), taken_words(every)
        left = [self.laboratory.effort(*one) for one in sessions]
        left_out = dict(self.left_out)
        for at in {at for _, at in self.search.silent}:
            names = sorted(getattr(series, "words", "") for series, of in self.search.silent if of == at)
            left_out[self.tags[at]] = f"it was measured, and gave no number of {'; '.join(names)}."
        return Answer(
            file, lane, self.laboratory.device, self.tags, tuple(self.tags[at] for at in sorted(measured)),
            replace(self.ends, file=file, results=returned, axis=self.tags), tuple(rows), left_out,
            replace(self.search, most=None).best() is not None, left, not self.is_complete, self.is_spent, reused,
            packages, looked,
        )  # fmt: skip

    def tell_again(self) -> None:
        """Compares all that was measured once more, with the evidence that has come since."""
        for asked in list(self._told):
            self._compare(*asked)

    def _places(self, series: Series) -> list[Place]:
        """Where it changed, oldest first, as far as that is known."""
        found = []
        for span in sorted(self.search.spans.get(series, []), key=lambda span: span.new):
            both = self._compared(*span.seen)
            comparison, change = next((one, of) for one in both for of in one.changes if of.series == series)
            seen, because = (self.tags[span.seen[0]], self.tags[span.seen[1]]), comparison.because(series)
            found.append(Place(self.tags[span.old], self.tags[span.new], seen, span.is_exact, change, because))
        return found

    def _compared(self, old: int, new: int) -> list[Comparison]:
        """How the releases at two positions were compared, in each session of both."""
        return [found for (at, _, _), found in self._told.items() if at == (old, new)]

    def _look(self, series: Hashable, old: int, new: int) -> Look:
        both = self._compared(old, new)
        for result in (of for one in both for of in one.results if of.series == series):
            is_known = result.changed or (result.difference is not None and not result.by_chance)
            moved = Moved.YES if result.changed else Moved.NO if is_known else Moved.UNKNOWN
            return Look(moved, LEAST * result.changed)
        changes = (of for one in both for of in one.changes if of.series == series)
        return next(map(look, changes), Look(Moved.NOTHING, 0.0))

    def _measure(self, middle: int, task: Task) -> bool:
        """Whether the release could be measured against the ends of each span that it divides."""
        for (old, _, new), series in task.items():
            tags, pairs = (self.tags[old], self.tags[middle], self.tags[new]), ((old, middle), (middle, new))
            begun = [cases for at, measured, cases in self._told if (at, measured) == (pairs[0], tags)]
            known = {case for cases in begun for case in cases}
            rest = sorted({one.parameters for one in series if isinstance(one, Series)} - known)
            number, most = len(self.search.measured | {middle}), self.search.most
            first = f"Release {number} of at most {most}", rest, 1 / max(1, (most or number) - number + 1)
            again = [("Once more", cases, ENDS) for cases in begun if self.laboratory.can_go_on(tags, cases)]
            for said, cases, share in [*again, *([first] if rest else [])]:
                names = ", ".join(" ".join(part.strip("'") for part in case).strip() for case in cases)
                self.tell(f"{said}: {tags[1]}, between {tags[0]} and {tags[2]}, for {names}.")
                if not self._could_measure(tags, cases, share):
                    return False
                for pair in pairs:
                    self._compare(pair, tags, cases)
        self._refused = 0
        return True

    def _could_measure(self, tags: tuple[str, ...], cases: Collection[Case], share: float) -> bool:
        """Whether the releases could be installed; says which one could not. Raises UserError, and Spent."""
        try:
            for part in (share, ENDS):  # on a busy machine its first part may be over before it is measured
                self.laboratory.measure(tags, cases, part)
                if any(launch.release == tags[1] for launch in self.laboratory.launches(tags, cases)):
                    return True
            raise Spent
        except NotInstalled as error:
            self._refused += 1
            if self._refused >= MOST_REFUSED:
                raise UserError(f"{self._refused} releases in a row could not be installed. {error}") from error
            self.left_out[error.tag] = str(error)
            self.tell(f"{error.tag} is passed over: {error}")
        return False

    def _compare(self, at: tuple[int, int], tags: tuple[str, ...], cases: Collection[Case]) -> None:
        """Compares the releases at two positions by the session of `tags` and `cases`."""
        pair, laboratory = (self.tags[at[0]], self.tags[at[1]]), self.laboratory
        found = history(laboratory.launches(tags, cases))
        if not found:
            return
        facts, known = {tag: laboratory.facts(tag) for tag in pair}, laboratory.evidence()
        told = compared(laboratory.machine, laboratory.environment, *pair, found, facts, laboratory.device, known=known)
        self._told[at, tags, tuple(cases)] = told


LEAST = 0.01
"""The size of a change of a result: where it changed is looked for after what costs more."""


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
