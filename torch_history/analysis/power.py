"""How large a change of a time is found, how often do intervals hold what two lanes differ by, and what does a lane deny?

Changes are planted into the evidence of patch releases: into one time while nothing else changes, as a person meets it most,
and into a fifth and a half of the times of a question at once. A planted change moves the estimate of one series by its
logarithm and leaves its error alone, because all launches of a release move together. So no lane is fitted again; a test
holds that against a lane that was.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contract.metrics import STEADY

from ..releases.axis import Axis
from ..releases.builds import NOTHING_NEW, ONE_BINARY, OTHER_BUILDS
from . import special
from .calibration import IN_SINGLE, NOMINAL
from .levels import Array, Fitted
from .series import History, Series, Verdict
from .verdicts import TOLD, Evidence, error_rates, error_rates_if_told, evidence_between

SIZES = (0.05, 0.1)
"""Of planted changes, as shares; calls that are made once get IN_SINGLE times as much, as in a calibration."""

SHARES = (0.2, 0.5)
"""Of the series of a question that a change is planted into at once."""

DRAWS = 20
"""Times that these series are drawn for each question and pair."""

FAR = 16
"""Releases by which two that are far apart differ, at least."""

ALL = "all steady times"

Pair = tuple[str, str]
Flags = NDArray[np.bool_]


def steady(series: Iterable[Series]) -> Flags:
    """Of each series whether a process can repeat its calls, and does not make them only once."""
    return np.array([each.measure.measured == STEADY for each in series], dtype=bool)


def moves(series: Sequence[Series], size: float) -> Array:
    """The logarithm of a planted change of each series (series x 1)."""
    moved: Array = np.log1p(np.where(steady(series), size, IN_SINGLE * size))[:, None]
    return moved


def directions(evidence: Evidence, rates: Array | None = None) -> NDArray[np.int_]:
    """1 where evidence is told as slower, -1 where as faster, else 0 (series x pairs)."""
    code = evidence.judged(error_rates(evidence) if rates is None else rates).code
    return np.select([code == TOLD.index(Verdict.SLOWER), code == TOLD.index(Verdict.FASTER)], [1, -1], 0)


def moved(evidence: Evidence, by: NDArray[Any]) -> Evidence:
    """That of one pair with changes planted: logarithms, of each series in each of several cases (series x cases)."""
    return replace(evidence, shift=evidence.shift + by)


def lone(evidence: Evidence, by: Array) -> Flags:
    """Of one pair of releases, whether a change of one series, and of no other, would be told in its direction: `by` are
    logarithms (series x sizes), slower and then faster (series x twice as many)."""
    rates = error_rates_if_told(evidence)
    return np.hstack([directions(moved(evidence, way * by), rates) == way for way in (1, -1)])


@dataclass(frozen=True)
class Alone:
    """Size of a change, a share -> the share of the times in which it would be found if one changed and nothing else did; of
    times that are `steady`, or of calls that a process makes once. Empty where nothing compares them."""

    shares: Mapping[float, float]
    steady: bool = True

    @property
    def words(self) -> str:
        """A sentence, empty where nothing is compared."""
        if not self.shares:
            return ""
        (size, share), *rest = ((f"{100 * size:.0f} %", f"{100 * share:.0f} %") for size, share in self.shares.items())
        more = "".join(f", one of {size} in {share}" for size, share in rest)
        times = f"{share} of the {'steady times' if self.steady else 'times of single calls'}{more}"
        return f"If one time changed and nothing else did, a change of {size} would be found in {times}."


NOTHING_ALONE = Alone({})


def found_alone(fits: Iterable[Fitted], pair: Pair, wanted: Collection[Series]) -> Alone:
    """`alone_in` a pair of releases."""
    return alone_in((known(fit, pair) for fit in fits), wanted)


def alone_in(of_questions: Iterable[tuple[list[Series], Evidence]], wanted: Collection[Series]) -> Alone:
    """Of those series that are wanted, by the evidence of a pair (series x 1): of steady times, or of the others where there
    are only those. What is told of the pair is taken away first. Slower and faster are counted alike."""
    wanted = {*wanted}
    found: dict[bool, list[Flags]] = {True: [], False: []}
    for series, evidence in of_questions:
        if wanted.isdisjoint(series):
            continue
        quiet = replace(evidence, shift=np.where(directions(evidence) == 0, evidence.shift, 0.0))
        told = lone(quiet, np.hstack([moves(series, size) for size in SIZES])).reshape(-1, 2, len(SIZES))
        asked, is_steady = [one in wanted for one in series], steady(series)
        for kind, of in found.items():
            of.append(told[asked & (is_steady == kind)])
    for kind, of in found.items():
        every = np.vstack(of) if of else np.zeros((0, 2, len(SIZES)))
        if every.size:
            sizes = SIZES if kind else [IN_SINGLE * size for size in SIZES]
            return Alone(dict(zip(sizes, every.mean(axis=(0, 1)).tolist(), strict=True)), kind)
    return NOTHING_ALONE


def known(fit: Fitted, pair: Pair) -> tuple[list[Series], Evidence]:
    """The series of a question that rounds tie on both releases, and their evidence (series x 1)."""
    return tied(fit.levels, evidence_between(fit, [pair]), 0)


def tied(series: Iterable[Series], evidence: Evidence, at: int) -> tuple[list[Series], Evidence]:
    """Those of `series` that rounds tie on pair number `at`, and their evidence of it (series x 1)."""
    rows = ~np.isnan(evidence.shift[:, at])
    return [*itertools.compress(series, rows)], part(evidence, rows, [at])


def part(evidence: Evidence, rows: Any, columns: Any = slice(None)) -> Evidence:
    """Some series and pairs of it, by numbers or flags."""
    shape = evidence.shift.shape
    every = (np.broadcast_to(getattr(evidence, name), shape) for name in Evidence.__dataclass_fields__)
    return Evidence(*(of[rows][:, columns] for of in every))


@dataclass
class Shares:
    """Question and what is counted -> how often it was so, of how many. Steady times count for ALL, too."""

    counts: dict[tuple[str, str], tuple[int, int]] = field(default_factory=lambda: defaultdict(lambda: (0, 0)))

    def add(self, series: Sequence[Series], what: str, so: Flags, of: Flags | bool = True) -> None:
        """Counts of series of one question (series x cases), those that `of` says."""
        of = np.broadcast_to(of, so.shape)
        rows = steady(series)
        for name, counted in ((series[0].question, of), (ALL, of[rows])) if series else ():
            if name == ALL and not rows.any():
                continue
            hits, number = self.counts[name, what]
            within = so if name != ALL else so[rows]
            self.counts[name, what] = hits + int(within[counted].sum()), number + int(counted.sum())

    @property
    def questions(self) -> list[str]:
        """Those of which anything was counted, ALL last."""
        return sorted({name for (name, _), (_, of) in self.counts.items() if of}, key=lambda name: (name == ALL, name))

    def share(self, question: str, what: str) -> float:
        """NaN of none."""
        hits, of = self.counts.get((question, what), (0, 0))
        return hits / of if of else math.nan


@dataclass(frozen=True)
class LaneEvidence:
    """What a lane says of its times on pairs of releases: `series` and `evidence` (series x pairs) by question."""

    environment: str
    pairs: list[Pair]
    series: dict[str, list[Series]]
    evidence: dict[str, Evidence]

    def quiet(self) -> Iterator[tuple[Pair, list[Series], Evidence]]:
        """Of each patch release and question the times that rounds tie, without pairs of OTHER_BUILDS."""
        for (at, pair), question in itertools.product(enumerate(self.pairs), self.series):
            if is_patch(pair) and not {*pair} & OTHER_BUILDS:
                series, evidence = tied(self.series[question], self.evidence[question], at)
                if series:
                    yield pair, series, evidence


def lane_evidence(found: History, environment: str, pairs: list[Pair]) -> LaneEvidence:
    """Of one lane."""
    fits = {question: fit for (lane, question), fit in found.fits.items() if lane == environment}
    series = {question: list(fit.levels) for question, fit in fits.items()}
    every = {question: evidence_between(fit, pairs) for question, fit in fits.items()}
    return LaneEvidence(environment, pairs, series, every)


def neighbours(found: History, environment: str, axis: Axis) -> list[Pair]:
    """Each release of which a lane has times, and the next."""
    of_lane = (of for series, of in found.items() if series.varies and series.environment == environment)
    return [*itertools.pairwise(sorted({tag for of in of_lane for tag in of if tag in axis}, key=axis.position))]


def far(pairs: Sequence[Pair]) -> list[Pair]:
    """Of neighbours those that are FAR apart."""
    tags = list(dict.fromkeys(itertools.chain(*pairs)))
    return [(old, new) for i, old in enumerate(tags) for new in tags[i + FAR :]]


def is_patch(pair: Pair) -> bool:
    """Whether both are of one line, as 2.1.1 and 2.1.2."""
    return pair[0].rpartition(".")[0] == pair[1].rpartition(".")[0]


def planted_alone(lane: LaneEvidence, found: Shares, words: str = "") -> None:
    """Of changes of one time in patch releases of which nothing else is told, how many are told in their direction."""
    for _, series, evidence in lane.quiet():
        told = directions(evidence) != 0
        for size in SIZES:
            found.add(series, f"{size:+.0%}{words}", lone(evidence, moves(series, size)), told.sum() - told == 0)


def planted_together(lane: LaneEvidence, found: Shares) -> None:
    """Of changes of a share of a question's times in patch releases of which nothing is told, how many are told in their
    direction, and how many of the others are told; and what is told of patch releases that hold nothing new."""
    random = np.random.default_rng(0)
    for pair, series, evidence in lane.quiet():
        told = directions(evidence) != 0
        for share, size in itertools.product(SHARES, SIZES) if not told.any() else ():
            ways = drawn(len(told), share, random)
            after = directions(moved(evidence, ways * moves(series, size)))
            found.add(series, f"{size:+.0%} in {share:.0%}", after == ways, ways != 0)
            found.add(series, FALSE_BESIDE, after != 0, ways == 0)
        if pair in NOTHING_NEW:
            found.add(series, FALSE_IN_QUIET, told)


FALSE_BESIDE, FALSE_IN_QUIET = "false among the others", "false if nothing is new"


def drawn(series: int, share: float, random: np.random.Generator) -> NDArray[np.int_]:
    """DRAWS times a share of the series, each slower (1) or faster (-1); the others are 0 (series x draws)."""
    chosen = np.argsort(random.random((series, DRAWS)), axis=0) < round(share * series)
    return chosen * random.choice([-1, 1], (series, DRAWS))


def verdicts(lane: LaneEvidence, found: Shares) -> None:
    """The verdicts on times."""
    for question, series in lane.series.items():
        evidence = lane.evidence[question]
        code = evidence.judged(error_rates(evidence)).code
        for words, of in (("SAME", (1,)), ("INCONCLUSIVE", (2,)), ("changed", (3, 4))):
            found.add(series, f"{words}, {lane.environment}", np.isin(code, of), code != 0)


@dataclass(frozen=True)
class Both:
    """What two lanes say of the same series of a question (rows) and pairs of releases (columns)."""

    series: list[Series]
    pairs: list[Pair]
    here: Evidence
    there: Evidence

    @property
    def compared(self) -> Flags:
        """What both have."""
        return ~np.isnan(self.here.shift + self.there.shift)

    @property
    def agree(self) -> Flags:
        """Whether the difference of the two lies in its interval, of Welch's degrees of freedom."""
        one, other = self.here.error**2, self.there.error**2
        freedom = (one + other) ** 2 / (one**2 / self.here.freedom + other**2 / self.there.freedom)
        half = special.stdtrit(freedom, (1 + NOMINAL) / 2) * np.sqrt(one + other)
        return np.abs(self.here.shift - self.there.shift) <= half

    @property
    def other_builds(self) -> Flags:
        """Of each pair."""
        return np.array([bool({*pair} & OTHER_BUILDS) for pair in self.pairs], dtype=bool)

    @property
    def one_binary(self) -> Flags:
        """Of each pair."""
        return np.array([{*pair} <= ONE_BINARY for pair in self.pairs], dtype=bool)


def both(here: LaneEvidence, there: LaneEvidence) -> Iterator[Both]:
    """By question, of what both have."""
    pairs = [pair for pair in here.pairs if pair in there.pairs]
    columns = [[lane.pairs.index(pair) for pair in pairs] for lane in (here, there)]
    for question in sorted(here.series.keys() & there.series.keys()):
        places = [
            {(one.benchmark, one.parameters): i for i, one in enumerate(lane.series[question])}
            for lane in (here, there)
        ]
        rows = [[of[key] for key in places[0] if key in places[1]] for of in places]
        every = [lane.evidence[question] for lane in (here, there)]
        parts = [part(of, row, column) for of, row, column in zip(every, rows, columns, strict=True)]
        yield Both([here.series[question][row] for row in rows[0]], pairs, *parts)


def coverage(of_both: Iterable[Both], found: Shares, words: str) -> None:
    """How often intervals of two lanes hold their difference."""
    for of in of_both:
        found.add(of.series, words, of.agree, of.compared & ~of.other_builds)


def one_binary(of_both: Iterable[Both], found: Shares, words: str) -> None:
    """`coverage` where both wheels hold the same code."""
    for of in of_both:
        found.add(of.series, words, of.agree, of.compared & of.one_binary)


def denials(of_both: Iterable[Both], found: Shares) -> None:
    """Of changes that a lane tells and the other decides, how many that denies: it says SAME or the opposite."""
    for of in of_both:
        codes = [each.judged(error_rates(each)).code for each in (of.here, of.there)]
        changed = [np.isin(code, [TOLD.index(Verdict.SLOWER), TOLD.index(Verdict.FASTER)]) for code in codes]
        decided = [each | (code == TOLD.index(Verdict.SAME)) for each, code in zip(changed, codes, strict=True)]
        for words, columns in (
            (DENIED, ~of.other_builds),
            ("of one binary", of.one_binary),
            ("of other builds", of.other_builds),
        ):
            for i in (0, 1):
                found.add(of.series, words, codes[0] != codes[1], changed[i] & decided[1 - i] & columns)


DENIED = "neighbours"
