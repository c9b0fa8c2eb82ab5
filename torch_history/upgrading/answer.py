"""What an upgrade changes, in words: each function, by how much, since which release, and how to find the cause."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from contract.metrics import METRICS

from ..analysis.causes import Known, is_evidence
from ..analysis.compare import Comparison, by, by_case, of_case, summary
from ..analysis.series import Series, Verdict
from ..analysis.verdicts import Change
from ..explaining.explanation import TIMES_ONCE
from ..explaining.finding import ONCE, TIMES
from ..measuring.budget import Effort
from ..store.launches import moved_words
from .upgrade import DRIVING, Place, Upgrade

LONGEST_ONCE = 300.0
"""Seconds that explaining what a process does only once may take beside others."""

BYTES = ("peak_memory", "retained")
"""What takes bytes and is counted by operator."""

UNCHANGED = "Nothing became slower or faster, or took more or less memory, as far as this can be seen."
UNSURE = "No change is certain."
NOT_AGAIN = "What follows was seen once, and not when its cause was looked for:"
UNTOLD = "Nothing can be told yet: it was interrupted before there was enough evidence of a change."
"""Where no series changed: all numbers told, some inconclusive, and some inconclusive because it was interrupted. Before
changes that were not seen again."""


@dataclass(frozen=True)
class Row:
    """One series that changed between the ends, and where."""

    change: Change
    sentence: str
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Answer:
    """All that is said of an upgrade. `file` is as the caller named it; `effort` is what would decide the times between the
    ends that are inconclusive; `unfinished` says that something interrupted it. `packages` are those that differ between the
    ends, as (name, old, new) versions; None where the file asks for none besides torch."""

    file: str
    lane: str
    device: str
    tags: tuple[str, ...]
    measured: tuple[str, ...]
    comparison: Comparison
    rows: tuple[Row, ...]
    left_out: dict[str, str]
    is_open: bool
    effort: Effort
    unfinished: bool
    packages: tuple[tuple[str, str, str], ...] | None = None
    without_room: str = ""
    """Why releases between the ends were not measured, where the disk was too small for them."""
    not_there: Mapping[tuple[Series, tuple[str, str]], Known] = field(default_factory=dict)
    """As `Laboratory.not_there`."""

    @property
    def ends(self) -> tuple[str, str]:
        return self.tags[0], self.tags[-1]

    @property
    def nothing(self) -> str:
        """What is said where no series changed, or none was seen again."""
        if self.rows:
            return UNSURE
        every = self.comparison.changes
        unsure = sum(change.verdict is Verdict.CANT_TELL for change in every)
        if self.unfinished and unsure:
            return UNTOLD
        return f"{UNSURE} {unsure} of {len(every)} series are inconclusive, listed below." if unsure else UNCHANGED

    @property
    def told(self) -> list[Row]:
        """The rows, those of all metrics that a case lacks for one reason as one. What was not seen again comes last. A
        cause is told once, at its release."""
        of = {row.change.series: row for row in self.rows}
        at_a_place = {series for series, row in of.items() for place in row.places if self._tells(place)}
        why = {series: words for series, words in self.comparison.why.items() if series not in at_a_place}
        comparison = replace(self.comparison, why=why)
        cases = by_case([row.change for row in self.rows])
        rows = [replace(of[first.series], sentence=of_case([first, *rest], comparison)) for first, *rest in cases]
        return sorted(rows, key=self.is_unconfirmed)

    def _tells(self, place: Place) -> bool:
        """Whether `where` says the cause of a change."""
        return bool(place.because) and (place.is_exact or (place.old, place.new) != self.ends)

    @property
    def unchanged(self) -> list[Change]:
        return [change for change in self.comparison.changes if change.verdict.kind not in DRIVING]

    @property
    def unexplained(self) -> list[Place]:
        """Where a call became slower, or takes more memory, and nobody has looked for the cause: what is counted first, for
        it is exact and takes seconds, then times, and of each kind the largest change. What was looked for while the times
        scattered too much comes last. What a process does only once is left out where it takes seconds: it is done again
        for each number."""
        places = [place for row in self.rows for place in row.places if self.cause(place)]
        quick = [
            place
            for place in places
            if place.change.series.metric not in ONCE or TIMES_ONCE * (place.change.new or 0.0) <= LONGEST_ONCE
        ]
        found = {(place.change.series, place.seen): place for place in quick}
        return sorted(
            found.values(),
            key=lambda place: (self.absent(place) != "", _order(place), -(place.change.ratio or 1.0)),
        )

    def absent(self, place: Place) -> str:
        """What `explain` said where it did not see a change again; empty where it has not looked, or saw it."""
        found = self.not_there.get((place.change.series, place.seen))
        return found.words if found else ""

    def is_unconfirmed(self, row: Row) -> bool:
        """Whether `explain` looked for a change wherever it was seen, and saw it nowhere again."""
        return bool(row.places) and all(self.absent(place) for place in row.places)

    def cause(self, place: Place) -> str:
        """The command that looks for the cause of a change; empty where none can, or where one has looked."""
        series = place.change.series
        rose = place.change.verdict in (Verdict.SLOWER, Verdict.HUNGRIER) and place.change.ratio
        can_be = series.metric in (*TIMES, *ONCE, *BYTES) and self.device == "cpu"
        looked = self.not_there.get((series, place.seen))
        if not rose or not can_be or is_evidence(place.sentence) or (looked and looked.verdict == "NOT THERE"):
            return ""
        metric = "" if series.metric in TIMES else METRICS[series.metric].words
        name = " ".join(part for part in (*(part.strip("'") for part in series.parameters), metric) if part)
        words = ["torch-history", "explain", place.seen[0], place.seen[1], name, "--workload", self.file]
        return shlex.join([*words, "--lane", self.lane])


def _order(place: Place) -> int:
    metric = place.change.series.metric
    return 0 if metric in BYTES else 1 if metric in TIMES else 2


def answer(
    upgrade: Upgrade,
    file: str,
    lane: str,
    effort: Effort,
    packages: Sequence[tuple[str, str, str]] | None = None,
) -> Answer | None:
    """What is known so far; None where nothing is."""
    if upgrade.ends is None or not upgrade.ends.changes:
        return None
    ends = replace(upgrade.ends, file=file)
    rows = [
        Row(change, upgrade.ends.sentence(change), tuple(upgrade.places(change.series))) for change in upgrade.driving
    ]
    return Answer(
        file,
        lane,
        upgrade.laboratory.device,
        upgrade.tags,
        tuple(upgrade.measured),
        ends,
        tuple(rows),
        dict(upgrade.left_out),
        upgrade.open,
        effort,
        not upgrade.is_complete,
        None if packages is None else tuple(packages),
        upgrade.without_room,
        upgrade.laboratory.not_there(),
    )


def where(place: Place, ends: tuple[str, str]) -> str:
    """`at v2.4.0 (v2.3.1 -> v2.4.0): SLOWER 1.10 times (1.09 to 1.11)`, or between which releases."""
    change = place.change
    said = place.sentence.partition(": ")[2].rstrip(".") if change.new is not None else change.verdict.shown
    if not place.is_exact:
        if (place.old, place.new) == ends:
            return "somewhere between the two"
        return f"after {place.old}, at {place.new} at the latest: {said}"
    if place.seen == (place.old, place.new):
        return f"at {place.new} (after {place.old}): {said}"
    return f"probably at {place.new} (after {place.old}), shown between {place.seen[0]} and {place.seen[1]}: {said}"


def text(found: Answer, failed: Sequence[Change] = ()) -> str:
    """For a terminal; `failed` are the series that --fail-on names."""
    old, new = found.ends
    lines = [f"{found.file}, {old} -> {new}:"]
    told = found.told
    sure = sum(not found.is_unconfirmed(row) for row in told)
    if not sure:
        lines += ["", found.nothing]
    for number, row in enumerate(told):
        lines += ["", NOT_AGAIN] if number == sure else []
        lines += ["", row.sentence]
        for place in row.places:
            lines.append(f"  {where(place, found.ends)}.")
            if absent := found.absent(place):
                lines.append(f"  Looked for again: {absent}.")
            if cause := found.cause(place):
                lines.append(f"  To find the cause: {cause}")
    lines += ["", *rest(found)]
    return "\n".join([*lines, "", *notes(found), *failure(failed)])


def _times(count: int) -> str:
    return "1 time is" if count == 1 else f"{count} times are"


def failure(failed: Sequence[Change]) -> list[str]:
    """What --fail-on found, in a line; nothing where that is nothing."""
    names = "; ".join(change.series.words for change in failed)
    return [f"Failed by --fail-on: {names}."] if names else []


def rest(found: Answer, only_times: bool = False) -> list[str]:
    """A sentence for each series that did not change for better or worse; with `only_times` without what is exact."""
    shown = [change for change in found.unchanged if change.series.margin or not only_times]
    return [found.comparison.sentence(change).rstrip(".") + seen(change) + "." for change in shown]


def seen(change: Change) -> str:
    """How small a change would have been seen, where the sentence does not say so itself; and that a time is the same only
    within its margin, where its interval says that it differs."""
    if change.verdict is not Verdict.SAME or change.detectable is None:
        return ""
    differs = change.low is not None and change.high is not None and not change.low <= 1 <= change.high
    margin = f", within the margin of {change.series.margin:.0%}".replace("%", " %") if differs else ""
    return f"{margin}; a change of {by(change.detectable)} would have been seen"


def notes(found: Answer) -> list[str]:
    """What was measured, what is left open, and with what the verdicts were made."""
    count = len(found.tags)
    lines = [f"{len(found.measured)} of {count} releases were measured: {', '.join(found.measured)}."]
    lines += [f"{tag} was passed over: {why}" for tag, why in found.left_out.items()]
    lines += [] if found.packages is None else [moved_words(found.packages)]
    if found.unfinished:
        lines.append("This is not finished. The same command continues from here.")
    elif found.without_room:
        lines.append(f"Which release changed it was not looked for any further. {found.without_room}")
    elif found.is_open:
        lines.append(f"More releases would tell more closely. Allow them with --most {count}.")
    if (left := found.effort.undecided) and not found.unfinished:
        minutes = math.ceil(found.effort.seconds / 60)
        lines.append(f"{_times(left)} inconclusive between the ends. --budget {minutes}m would probably decide that.")
    if (noisy := found.effort.hopeless) and not found.unfinished:
        lines.append(f"{_times(noisy)} too noisy to be decided. Measure again with --again when the machine is quiet.")
    return [*lines, *summary(found.comparison)]
