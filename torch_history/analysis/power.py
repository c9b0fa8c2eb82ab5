"""How large a change of a time is found, what is told where nothing is new, and how often intervals of two lanes agree. A
planted change moves the estimate of its series and leaves its error alone, because all launches of a release move together:
so no lane is fitted again, and a test holds that against a lane that was."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..releases.axis import Axis
from . import code, special
from .calibration import IN_SINGLE, NOMINAL
from .levels import Array, Fitted
from .series import History, Series, Verdict
from .verdicts import TOLD, Evidence, error_rates, error_rates_if_told, evidence_between

SIZES = (0.05, 0.1)  # of planted changes, as shares; of calls that are made once IN_SINGLE times as much
FAR = 16  # releases by which two that are far apart differ, at least

ALL = "all steady times"

Pair = tuple[str, str]
Flags = NDArray[np.bool_]


def steady(series: Iterable[Series]) -> Flags:
    return np.array([each.is_steady for each in series], dtype=bool)


def moves(series: Sequence[Series], size: float) -> Array:
    """The logarithm of a planted change of each series (series x 1)."""
    return np.log1p(np.where(steady(series), size, IN_SINGLE * size))[:, None]


def directions(evidence: Evidence, rates: Array | None = None) -> NDArray[np.int_]:
    """1 where evidence is told as slower, -1 where as faster, else 0 (series x pairs)."""
    code = evidence.judged(error_rates(evidence) if rates is None else rates).code
    return np.select([code == TOLD.index(Verdict.SLOWER), code == TOLD.index(Verdict.FASTER)], [1, -1], 0)


def lone(evidence: Evidence, by: Array) -> Flags:
    """Whether a change of one series alone would be told: `by` are logarithms (series x sizes), slower, then faster."""
    rates = error_rates_if_told(evidence)
    return np.hstack([directions(replace(evidence, shift=evidence.shift + way * by), rates) == way for way in (1, -1)])


@dataclass(frozen=True)
class Alone:
    """Size of a change, a share -> the share of times in which it alone would be found; empty if none are compared."""

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
        return f"A single change of {size} would be found in {times}."


NOTHING_ALONE = Alone({})


def found_alone(fits: Iterable[Fitted], pair: Pair, wanted: Collection[Series]) -> Alone:
    """`alone_in` a pair of releases, of the series of each question that rounds tie on both."""
    return alone_in((tied(fit.levels, evidence_between(fit, [pair]), 0) for fit in fits), wanted)


def alone_in(of_questions: Iterable[tuple[list[Series], Evidence]], wanted: Collection[Series]) -> Alone:
    """Of wanted series (series x 1), steady ones or else single calls, less what is told; slower and faster alike."""
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

    counts: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    def add(self, series: Sequence[Series], what: str, so: Flags, of: Flags) -> None:
        """Counts of series of one question (series x cases), those that `of` says."""
        rows, of = steady(series), np.broadcast_to(of, so.shape)
        for name, counted in ((series[0].question, of), (ALL, of & rows[:, None])):
            if name != ALL or rows.any():
                hits, number = self.counts.get((name, what), (0, 0))
                self.counts[name, what] = hits + int((so & counted).sum()), number + int(counted.sum())

    @property
    def questions(self) -> list[str]:
        """Those of which anything was counted, ALL last."""
        return sorted({name for (name, _), (_, of) in self.counts.items() if of}, key=lambda name: (name == ALL, name))


@dataclass(frozen=True)
class LaneEvidence:
    """Of a lane's times between neighbours and FAR apart: `evidence` (series x pairs, near first) by question."""

    environment: str
    near: list[Pair]
    far: list[Pair]
    series: dict[str, list[Series]]
    evidence: dict[str, Evidence]


def lane_evidence(found: History, environment: str, axis: Axis) -> LaneEvidence:
    """Of one lane, on the releases of the axis."""
    of_lane = (of for series, of in found.items() if series.varies and series.environment == environment)
    tags = sorted({tag for of in of_lane for tag in of if tag in axis}, key=axis.position)
    near = [*itertools.pairwise(tags)]
    far = [(old, new) for i, old in enumerate(tags) for new in tags[i + FAR :]]
    fits = {question: fit for (lane, question), fit in found.fits.items() if lane == environment}
    every = {question: evidence_between(fit, near + far) for question, fit in fits.items()}
    return LaneEvidence(environment, near, far, {question: list(fit.levels) for question, fit in fits.items()}, every)


NEW, HELD, HELD_FAR = "reported if nothing is new", "intervals hold between neighbours", "intervals hold far apart"


def counted(lanes: Sequence[LaneEvidence]) -> Shares:
    """Of patch releases in each lane of a machine: of changes of one time, where nothing else is told, how many are told in
    their direction, and how much is told where nothing is NEW. Of every two lanes: how often their difference is HELD."""
    found = Shares()
    for lane in lanes:
        for (at, pair), question in itertools.product(enumerate(lane.near), lane.series):
            series, evidence = tied(lane.series[question], lane.evidence[question], at)
            lines = {tag.rpartition(".")[0] for tag in pair}  # one of patch releases, as of 2.1.1 and 2.1.2
            if not series or len(lines) > 1 or any(map(code.is_built_apart, pair)):
                continue
            told = directions(evidence) != 0
            for size in SIZES:
                alone = lone(evidence, moves(series, size))
                found.add(series, f"{size:+.0%}, {lane.environment}", alone, told.sum() - told == 0)
            if code.is_nothing_new(lane.environment, *pair):
                found.add(series, f"{NEW}, {lane.environment}", told, np.ones_like(told))
    for here, there in itertools.combinations(lanes, 2) if found.counts else ():
        for what, pairs in ((HELD, here.near), (HELD_FAR, here.far)):
            for of_both in agreement(here, there, [pair for pair in pairs if not any(map(code.is_built_apart, pair))]):
                found.add(of_both[0], what, *of_both[1:])
    return found


def agreement(
    here: LaneEvidence, there: LaneEvidence, pairs: Sequence[Pair]
) -> Iterator[tuple[list[Series], Flags, Flags]]:
    """Series of two lanes, whether they differ by less than NOMINAL's interval (Welch), and whether both say it."""
    shared = [pair for pair in pairs if pair in there.near + there.far]
    columns = [[(lane.near + lane.far).index(pair) for pair in shared] for lane in (here, there)]
    for question in sorted(here.series.keys() & there.series.keys()):
        both = here.series[question], there.series[question]
        places = [{(one.benchmark, one.parameters): i for i, one in enumerate(of)} for of in both]
        rows = [[of[key] for key in places[0] if key in places[1]] for of in places]
        if not rows[0]:
            continue
        one, other = (
            part(lane.evidence[question], row, column)
            for lane, row, column in zip((here, there), rows, columns, strict=True)
        )
        variances = one.error**2, other.error**2
        total, below = sum(variances), variances[0] ** 2 / one.freedom + variances[1] ** 2 / other.freedom
        compared = np.isfinite(one.shift - other.shift) & np.isfinite(total)
        freedom = np.divide(total**2, below, out=np.ones_like(below), where=compared & (below > 0))
        half = special.stdtrit(freedom, (1 + NOMINAL) / 2) * np.sqrt(total)
        yield [both[0][row] for row in rows[0]], np.abs(one.shift - other.shift) <= half, compared
