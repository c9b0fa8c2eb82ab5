"""What happened to a series over the whole axis? Steps that last, excursions that came back, slow drifts; newest first.

Each pair of neighbours has a ratio with a standard error, the same that a verdict on the pair rests on. One function that is
constant between jumps is fitted to all of them at once. Why so, and how often it errs: docs/steps.md.
"""

from __future__ import annotations

import enum
import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..releases.axis import Axis
from ..store.launches import Case, Launch
from . import special
from .levels import on_one_thread
from .verdicts import (
    ERROR_RATE,
    LEAST_VARIANCE,
    RANK,
    ROBUST_FROM,
    Estimate,
    Evidence,
    History,
    Series,
    Verdict,
    comparable,
    crossed,
    error_rate_of_each,
    estimate,
    history,
    looked_at,
    paired,
    unbalanced,
    weigh,
)

NEWEST_ERROR = 0.01
"""Chance that a series without any change shows a jump at its newest release: asked once for each release that comes out."""

HISTORY_ERROR = 0.03
"""The same for all the rest of the axis. Jumps and drifts each get half, divided by the number of places that are tried."""

SMALLEST = 0.02
"""A change below 2 % is not told: two builds of the same source differ by that much."""

EXCURSION = 8
"""Releases that an excursion lasts at most, about a year of PyTorch; what lasts longer was a step, and its end another."""

BACK = 0.5
"""An excursion has come back where what is left of it is less than half of it, and chance explains that."""

DRIFT = 8
"""Releases that a drift takes at least, about a year of PyTorch; what is faster is told as steps."""

DRIFT_GRID = 4
"""Drifts are tried from and to every fourth release: where a slow change begins cannot be told to the release."""

CARRIED = 0.5
"""A drift of which one pair of neighbours carries this share or more is none."""

WINDOW = 64
"""Releases of a time that are looked at, the newest: all of PyTorch's and a decade more. What lies farther back was told
when it was new. Counts are followed over the whole axis."""

UNEQUAL = 0.01
"""Chance at most at which rounds of a pair that differ more than its session's others do are judged by themselves."""

NOTHING_KNOWN = 1e6
"""Variance of a pair whose launches say nothing of it."""

CONFIDENCE = 1 - ERROR_RATE
"""Of the interval of a change's ratio."""

Array = NDArray[np.float64]


class Kind(enum.Enum):
    STEP = "step"
    EXCURSION = "excursion"
    DRIFT = "drift"


@dataclass(frozen=True)
class Net:
    """What a series did over the whole axis: its levels at the `first` and the `last` release, their `ratio`, and of that
    the share of each step and drift that is told: (its releases in words, its ratio)."""

    first: str
    last: str
    before: float
    after: float
    ratio: float | None
    parts: tuple[tuple[str, float], ...] = ()
    slowly: bool = False


@dataclass(frozen=True)
class Step:
    """What happened to a series: a step between the neighbours `old` and `new`, an excursion from `new` to `until`, or a
    drift from `old` to `new`. `before` and `after` are the levels at `old` and `new` in the series' unit; `ratio` is what
    this change alone made of the level, None from zero, with its interval at `CONFIDENCE`."""

    series: Series
    kind: Kind
    old: str
    new: str
    until: str
    before: float
    after: float
    ratio: float | None
    low: float | None
    high: float | None
    net: Net | None = None

    @property
    def verdict(self) -> Verdict:
        """The direction in the words of a verdict: slower or faster, hungrier or leaner, more or fewer."""
        return self.series.direction(self.ratio is None or self.ratio > 1)


def regressions(launches: Iterable[Launch], axis: Axis, environment: str) -> list[Step]:
    """Everything that happened to any series of `environment` (`release-py3.11`), newest first, then what costs, most first.

    Releases without a number are passed over: what follows is compared with the last one that has any."""
    return of_history(history(launch for launch in launches if launch.environment == environment), axis)


def of_history(history: History, axis: Axis) -> list[Step]:
    """`regressions` on what `verdicts.history` gives, of one environment."""
    found = []
    for series, releases in history.items():
        if not series.varies:
            found += _exact(series, _numbers(releases, axis))
    with on_one_thread():
        found += _timed(Lane.of(history, axis))
    return sorted(found, key=lambda step: (-axis.position(step.until), RANK[step.verdict.kind], -_size(step)))


def costliest(found: Iterable[Step]) -> list[Step]:
    """The rise in time or peak memory by the largest factor, one of each question, most first."""
    rises = [step for step in found if step.series.metric in ("time", "peak_memory") and step.ratio and step.ratio > 1]
    most = {step.series.question: step for step in sorted(rises, key=_size)}
    return sorted(most.values(), key=_size, reverse=True)


def largest(found: Iterable[Step]) -> list[Step]:
    """The change by the largest factor of each question from one release to another, of times, bytes and each count apart;
    largest first. What began at zero or ended there has no factor and is left out."""
    most: dict[tuple[str, ...], Step] = {}
    for step in sorted(found, key=_size, reverse=True):
        if math.isfinite(_size(step)):
            what = "time" if step.series.varies else step.series.unit
            most.setdefault((step.series.question, what, step.old, step.new), step)
    return list(most.values())


def _size(step: Step) -> float:
    return abs(math.log(step.ratio)) if step.ratio and step.ratio > 0 else math.inf


def unconnected(history: History, axis: Axis) -> list[str]:
    """A sentence for each part of the axis that no chain of sessions ties to the rest: times are judged within parts."""
    found: Counter[tuple[str, ...]] = Counter()
    for series, releases in history.items():
        parts = _parts(_numbers(releases, axis)) if series.varies else []
        found.update(tuple(part) for part in parts if len(parts) > 1)
    return [
        f"No session ties {', '.join(part)} to other releases in {count} series: times there are compared separately."
        for part, count in sorted(found.items(), key=lambda item: axis.position(item[0][0]))
    ]


Numbers = dict[str, dict[str, list[float]]]
"""Release in the axis' order -> session -> the numbers of its launches, in seconds, bytes or counts."""


def _numbers(releases: Mapping[str, Sequence[tuple[Launch, Case]]], axis: Axis) -> Numbers:
    numbers: Numbers = {}
    for release in sorted((tag for tag in releases if tag in axis), key=axis.position):
        for launch, case in releases[release]:
            if case.number is not None:
                numbers.setdefault(release, {}).setdefault(launch.session, []).append(case.number)
    return numbers


def _exact(series: Series, numbers: Numbers) -> list[Step]:
    """Every change of what does not vary. A release whose launches disagree is passed over, as one without a number is."""
    known = _within(numbers, series.margin) if series.margin else _equal(numbers, 1 if series.is_counted else 2)
    moves = [i for i in range(1, len(known)) if known[i][1] != known[i - 1][1]]
    shapes = []
    while moves:
        i = moves.pop(0)
        until = i
        if moves and known[moves[0]][1] == known[i - 1][1] and moves[0] - i <= EXCURSION:
            until = moves.pop(0) - 1
            shapes.append((Kind.EXCURSION, i, until))
        else:
            shapes.append((Kind.STEP, i, i))
    if not shapes:
        return []
    ratio = [known[i][1] / known[i - 1][1] if known[i - 1][1] else None for _, i, _ in shapes]
    parts = tuple(
        (known[i][0], factor)
        for (kind, i, _), factor in zip(shapes, ratio, strict=True)
        if kind is Kind.STEP and factor is not None
    )
    (first, before), (last, after) = known[0], known[-1]
    net = Net(first, last, before, after, after / before if before else None, parts)
    return [
        Step(
            series,
            kind,
            known[i - 1][0],
            known[i][0],
            known[until][0],
            known[i - 1][1],
            known[i][1],
            factor,
            factor,
            factor,
            net,
        )
        for (kind, i, until), factor in zip(shapes, ratio, strict=True)
    ]


def _equal(numbers: Numbers, least: int) -> list[tuple[str, float]]:
    """Releases of which at least so many launches give one number, with that."""
    known = []
    for release, sessions in numbers.items():
        values = [value for of_session in sessions.values() for value in of_session]
        if len(set(values)) == 1 and len(values) >= least:
            known.append((release, values[0]))
    return known


def _within(numbers: Numbers, margin: float) -> list[tuple[str, float]]:
    """Releases with their level, of what differs a little from launch to launch. A release is at the level of one before
    where all of its launches lie within `margin` of that. It begins another, their median, where all lie beyond."""
    known: list[tuple[str, float]] = []
    limit = 1 + margin
    for release, sessions in numbers.items():
        values = [value for of_session in sessions.values() for value in of_session]
        if len(values) < 2:
            continue
        levels = list(dict.fromkeys(level for _, level in reversed(known)))[:2]
        same = [level for level in levels if max(values) <= level * limit and min(values) * limit >= level]
        if same:
            known.append((release, same[0]))
        elif not levels or min(values) > levels[0] * limit or max(values) * limit < levels[0]:
            known.append((release, statistics.median(values)))
    return known


def _parts(numbers: Numbers) -> list[list[str]]:
    """The releases that sessions tie together, directly or by others, in the axis' order."""
    parts: list[tuple[set[str], set[str]]] = []
    for release, sessions in numbers.items():
        tied = [part for part in parts if part[1] & sessions.keys()]
        parts = [part for part in parts if part not in tied]
        parts.append(({release}.union(*(part[0] for part in tied)), set(sessions).union(*(part[1] for part in tied))))
    found = [[release for release in numbers if release in releases] for releases, _ in parts]
    return sorted(found, key=lambda part: list(numbers).index(part[0]))


# --- pairs


_Round = tuple[str, int]
"""A session and the round in it."""


@dataclass(frozen=True)
class _Rounds:
    """Series that were measured in the same rounds: logarithms as series x rounds x releases, NaN where one is missing."""

    series: list[Series]
    logarithms: Array
    seen: NDArray[np.bool_]
    column: dict[str, int]


@dataclass
class Lane:
    """The times of one environment: of each series its releases in the axis' order, and the evidence of pairs of them, the
    same as `verdicts.compare_history` judges by."""

    history: dict[Series, dict[str, list[tuple[Launch, Case]]]]
    tags: dict[Series, list[str]]
    alike: list[_Rounds]
    alone: list[Series]
    rounds: dict[Series, dict[str, dict[_Round, float]]]
    known: dict[tuple[str, str], tuple[dict[Series, Evidence], float]] = field(default_factory=dict)

    @classmethod
    def of(cls, history: History, axis: Axis) -> Lane:
        """Raises nothing; what does not vary is left out."""
        kept: dict[Series, dict[str, list[tuple[Launch, Case]]]] = {}
        rounds: dict[Series, dict[str, dict[_Round, float]]] = {}
        groups: dict[object, list[tuple[Series, list[float]]]] = defaultdict(list)
        alone = []
        for series, releases in history.items():
            if not series.varies:
                continue
            having = {
                tag: [(launch, case, number) for launch, case in releases[tag] if (number := case.number)]
                for tag in sorted((tag for tag in releases if tag in axis), key=axis.position)
            }
            tags = [tag for tag, pairs in having.items() if pairs][-WINDOW:]
            kept[series] = {tag: list(releases[tag]) for tag in tags}
            rounds[series] = {
                tag: {(launch.session, launch.round): number for launch, _, number in having[tag]} for tag in tags
            }
            if any(len(rounds[series][tag]) < len(having[tag]) for tag in tags):
                alone.append(series)
            else:
                cells = {(tag, *each): number for tag in tags for each, number in rounds[series][tag].items()}
                places = sorted(cells)
                groups[tuple(places)].append((series, [cells[place] for place in places]))
        tags_of = {series: list(releases) for series, releases in kept.items()}
        alike = [_rounds(places, of) for places, of in groups.items()]  # type: ignore[arg-type]
        return cls(kept, tags_of, alike, alone, rounds)

    def evidence(self, old: str, new: str) -> tuple[dict[Series, Evidence], float]:
        """Of every series that has both, with the error rate of each."""
        if (old, new) not in self.known:
            found = self._estimates(old, new)
            evidence = weigh({series: said for series, said in found.items() if said.freedom})
            rounds = {series: len(self.rounds[series][old].keys() & self.rounds[series][new]) for series in evidence}
            evidence = looked_at(evidence, rounds)
            self.known[old, new] = evidence, error_rate_of_each(evidence.values())
        return self.known[old, new]

    def verdict(self, series: Series, old: str, new: str) -> Verdict:
        """Of a time, as `verdicts.compare_history` gives it."""
        evidence, error_rate = self.evidence(old, new)
        said = evidence.get(series)
        if said is None:
            return Verdict.CANT_TELL
        if said.beyond and said.p_value <= error_rate:
            return Verdict.SLOWER if said.shift > 0 else Verdict.FASTER
        return Verdict.SAME if said.inside else Verdict.CANT_TELL

    def together(self, series: Series, old: str, new: str) -> bool:
        """Whether a round measured both."""
        return bool(self.rounds[series][old].keys() & self.rounds[series][new].keys())

    def _estimates(self, old: str, new: str) -> dict[Series, Estimate]:
        together: dict[object, list[tuple[list[Series], Array]]] = defaultdict(list)
        alone = [series for series in self.alone if old in self.tags[series] and new in self.tags[series]]
        for group in self.alike:
            if old not in group.column or new not in group.column:
                continue
            i, k = group.column[old], group.column[new]
            both = group.seen[:, i] & group.seen[:, k]
            beside = np.array(group.seen[both].any(axis=0))
            if both.sum() > ROBUST_FROM:
                beside[:] = False
            beside[[i, k]] = False
            columns = [i, k, *np.flatnonzero(beside)]
            cells = group.logarithms[:, both][:, :, columns]
            if both.any():
                whole = bool(group.seen[both][:, columns].all())
                pattern = group.seen[both][:, columns].tobytes()
                together[cells.shape[1:] if whole else (cells.shape[1:], pattern)].append((group.series, cells))
            else:
                alone += group.series
        found: dict[Series, Estimate] = {}
        for of in together.values():
            cells = np.concatenate([each for _, each in of])
            names = [series for each, _ in of for series in each]
            if cells.shape[2] == 2:
                said = paired(cells[:, :, 1] - cells[:, :, 0])
            else:
                said = unbalanced(cells) if np.isnan(cells).any() else crossed(cells)
            found.update(zip(names, said, strict=True))
        for series in alone:
            if seen := comparable(self.history[series], old, new):
                found[series] = estimate(seen, old, new)
        return {series: found[series] for series in self.tags if series in found}


def _rounds(places: Sequence[tuple[str, str, int]], of: Sequence[tuple[Series, list[float]]]) -> _Rounds:
    column = {tag: i for i, tag in enumerate(dict.fromkeys(tag for tag, *_ in places))}
    row = {
        block: i for i, block in enumerate(dict.fromkeys(block for _, *block_ in places for block in [tuple(block_)]))
    }
    at = [row[session, turn] for _, session, turn in places], [column[tag] for tag, *_ in places]
    logarithms = np.full((len(of), len(row), len(column)), math.nan)
    logarithms[:, at[0], at[1]] = np.log([numbers for _, numbers in of])
    return _Rounds([series for series, _ in of], logarithms, ~np.isnan(logarithms[0]), column)


# --- the fit


@dataclass(frozen=True)
class Ratios:
    """Neighbours' ratios of several series, each a row: the logarithm, its variance, Student's degrees of freedom, and its
    covariance with the next one, since both share a release. `changed` and `same` are verdicts, `apart` pairs that no
    chain of rounds ties; rows are filled up with pairs that say nothing and may not jump."""

    shift: Array
    variance: Array
    freedom: Array
    covariance: Array
    changed: NDArray[np.bool_]
    same: NDArray[np.bool_]
    apart: NDArray[np.bool_]
    pairs: NDArray[np.int_]

    def rows(self, rows: object) -> Ratios:
        return Ratios(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def normal(t: Array, freedom: Array) -> Array:
    """The square of the normal deviate that is as unlikely as Student's `t`."""
    return np.asarray(special.ndtri(np.maximum(special.stdtr(freedom, -np.abs(t)), 1e-300)) ** 2)


def runs(ratios: Ratios) -> Array:
    """Series x first x last: how far the pairs from first to last are from all being 1, as a chi-square. The pairs'
    covariance is a band of three, so each is judged by what the one before it left (Cholesky's decomposition)."""
    series, pairs = ratios.shift.shape
    costs = np.zeros((series, pairs, pairs))
    cost, left, variance = np.zeros((3, series, pairs))
    variance += 1
    for last in range(pairs):
        shared = np.zeros((series, pairs))
        if last:
            shared[:, :last] = ratios.covariance[:, last - 1, None]
        gain = shared / variance
        left = ratios.shift[:, last, None] - gain * left
        variance = np.maximum(ratios.variance[:, last, None] - gain * shared, LEAST_VARIANCE)
        upto = slice(0, last + 1)
        cost[:, upto] += normal((left / np.sqrt(variance))[:, upto], ratios.freedom[:, last, None])
        costs[:, upto, last] = cost[:, upto]
    return costs


def _held(ratios: Ratios) -> Ratios:
    """`changed` only where it holds at the error rate of the whole axis, too: a verdict looks at one pair of it."""
    asked = prices(replace(ratios, changed=np.zeros_like(ratios.changed)))
    return replace(
        ratios, changed=ratios.changed & (normal(ratios.shift / np.sqrt(ratios.variance), ratios.freedom) >= asked)
    )


def prices(ratios: Ratios) -> Array:
    """What a jump at each pair must explain to be one. It costs nothing where a verdict says it and `_held` confirms it."""
    series, pairs = ratios.shift.shape
    chance = np.broadcast_to(HISTORY_ERROR / 2 / np.maximum(ratios.pairs, 1)[:, None], (series, pairs)).copy()
    chance[np.arange(series), np.maximum(ratios.pairs - 1, 0)] = NEWEST_ERROR
    price = special.ndtri(chance / 2) ** 2
    price[ratios.same | (np.arange(pairs) >= ratios.pairs[:, None])] = math.inf
    price[ratios.changed | ratios.apart] = 0.0
    return np.asarray(price)


def partition(ratios: Ratios, price: Array) -> tuple[NDArray[np.bool_], Array]:
    """Where each series jumps, and what that costs: optimal partitioning (Jackson and others 2005). Where a pair may jump
    its ratio is free, so what lies before and after it is judged apart, and a dynamic program is exact."""
    series, pairs = ratios.shift.shape
    costs = runs(ratios)
    held = ratios.changed | ratios.apart
    # upto[:, k]: least cost of all before pair k where k jumps; pair -1 stands before the first, `pairs` after the last.
    upto = np.full((series, pairs + 1), math.inf)
    came = np.zeros((series, pairs + 1), int)
    fixed = np.concatenate([np.zeros((series, 1), int), np.cumsum(held, axis=1)], axis=1)
    for k in range(pairs + 1):
        starts = np.zeros((series, k + 1))
        starts[:, 1:] = upto[:, :k] + price[:, :k]
        if k:
            starts[:, :k] += costs[:, :k, k - 1]
        starts[fixed[:, : k + 1] < fixed[:, k, None]] = math.inf
        came[:, k] = starts.argmin(axis=1)
        upto[:, k] = starts.min(axis=1)
    jumps = np.zeros((series, pairs), bool)
    at = np.full(series, pairs)
    for _ in range(pairs):
        at = np.where(at > 0, came[np.arange(series), at] - 1, -1)
        here = at >= 0
        jumps[np.flatnonzero(here), at[here]] = True
        at = np.where(here, at, 0)
    return jumps, upto[:, pairs]


def sizes(ratios: Ratios, row: int, jumps: Sequence[int]) -> tuple[Array, Array]:
    """Logarithm and variance of each jump of a series, from its own pair and what the runs beside it say of the releases
    that they share with it; covariances of jumps are left out."""
    shift, variance, shared = ratios.shift[row], ratios.variance[row], ratios.covariance[row]
    effect, error = shift[list(jumps)].copy(), variance[list(jumps)].copy()
    for number, jump in enumerate(jumps):
        before = range(jumps[number - 1] + 1 if number else 0, jump)
        after = range(jumps[number + 1] - 1 if number + 1 < len(jumps) else int(ratios.pairs[row]) - 1, jump, -1)
        for run, step in ((before, 1), (after, -1)):
            left, of = 0.0, math.inf
            for pair in run:
                common = shared[min(pair, pair - step)] if of < math.inf else 0.0
                gain = common / of
                left = shift[pair] - gain * left
                of = max(variance[pair] - gain * common, LEAST_VARIANCE)
            if len(run):
                common = shared[min(jump, run[-1])]
                effect[number] -= common / of * left
                error[number] = max(error[number] - common**2 / of, LEAST_VARIANCE)
    return effect, error


@dataclass
class Fit:
    """Of one series: its jumps (place of the pair -> logarithm, half of its interval) and its drift: first release, last
    one, the total's logarithm and half of its interval."""

    jumps: dict[int, tuple[float, float]]
    drift: tuple[int, int, float, float] | None = None


def fit(ratios: Ratios, smallest: float = SMALLEST) -> list[Fit]:
    """The jumps and the drift of each series. A jump that its own test does not confirm may not be one, and the rest is
    fitted again."""
    decided, ratios = ratios.changed, _held(ratios)
    price = prices(ratios)
    drifts = _drifts(ratios, price, decided & ~ratios.changed)
    level = ratios.shift.copy()
    for row, (first, last, total, _) in drifts.items():
        level[row, first:last] -= total / (last - first)
    ratios = replace(ratios, shift=level)
    fits = [Fit({}, drifts.get(row)) for row in range(len(level))]
    again = np.arange(len(level))
    while len(again):
        jumps, _ = partition(ratios.rows(again), price[again])
        failed = []
        for row, of in zip(again.tolist(), jumps, strict=True):
            places = np.flatnonzero(of).tolist()
            found, bad = _confirmed(ratios, price, int(row), places, smallest)
            fits[row].jumps = found
            price[row, bad] = math.inf
            failed += [row] if bad else []
        again = np.array(failed, dtype=np.int_)
    return fits


def _confirmed(
    ratios: Ratios, price: Array, row: int, places: list[int], smallest: float
) -> tuple[dict[int, tuple[float, float]], list[int]]:
    """The jumps of a series, and those that are too small or that chance explains."""
    effect, error = sizes(ratios, row, places)
    found, bad = {}, []
    for place, moved, variance in zip(places, effect, error, strict=True):
        if ratios.apart[row, place]:
            continue
        freedom, told = ratios.freedom[row, place], bool(ratios.changed[row, place])
        if told and moved * ratios.shift[row, place] <= 0:
            moved, variance = ratios.shift[row, place], ratios.variance[row, place]
        explained = float(normal(np.array(moved / math.sqrt(variance)), freedom))
        if not told and (explained < price[row, place] or abs(moved) < math.log1p(smallest)):
            bad.append(place)
        else:
            half = float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)
            found[place] = (float(moved), half)
    return found, bad


def _drifts(ratios: Ratios, price: Array, untold: NDArray[np.bool_]) -> dict[int, tuple[int, int, float, float]]:
    """Row -> first release, last one, total and half of its interval, where a slow change explains a series better than
    jumps, no pair of neighbours carries CARRIED of it, and it does not run against what the pairs say together, nor against
    a verdict within it that is `untold`: decided, and no jump of its own."""
    series, pairs = ratios.shift.shape
    grid = sorted({*range(pairs, -1, -DRIFT_GRID), 0})
    windows = [(first, last) for first in grid for last in grid if last - first >= DRIFT]
    if not windows or not series:
        return {}
    cover = np.array([[first <= pair < last for pair in range(pairs)] for first, last in windows], float)
    free = ratios.changed | ratios.apart
    variance = np.where(free, NOTHING_KNOWN, ratios.variance)
    covariance = np.where(free[:, :-1] | free[:, 1:], 0.0, ratios.covariance)
    matrix = np.zeros((series, pairs, pairs))
    each = np.arange(pairs)
    matrix[:, each, each] = variance
    matrix[:, each[:-1], each[1:]] = matrix[:, each[1:], each[:-1]] = covariance
    inverse = np.linalg.inv(matrix)
    slope = cover / np.array([[last - first] for first, last in windows])
    weighed = np.einsum("wp,spq->swq", slope, inverse)
    information = np.einsum("swq,wq->sw", weighed, slope)
    total = np.einsum("swq,sq->sw", weighed, np.where(free, 0.0, ratios.shift)) / information
    error = 1 / np.sqrt(information)
    freedom = np.einsum("sq,wq->sw", ratios.freedom, cover) / cover.sum(axis=1)
    asked = special.ndtri(HISTORY_ERROR / 4 / len(windows)) ** 2
    explained = normal(total / error, freedom)
    largest = np.zeros((series, len(windows)))
    for number, (first, last) in enumerate(windows):
        inside = np.where(free, 0.0, np.abs(ratios.shift))[:, first:last]
        largest[:, number] = inside.max(axis=1)
    together = ratios.shift @ cover.T
    allowed = (explained >= asked) & (np.abs(total) >= math.log1p(SMALLEST)) & (largest < CARRIED * np.abs(total))
    most = np.einsum("sp,wp->swp", np.where(ratios.changed, np.abs(ratios.shift), 0.0), cover).max(axis=2)
    tied = (ratios.variance >= NOTHING_KNOWN).astype(float) @ cover.T == 0
    allowed &= (together * total > 0) & tied & (most < CARRIED * np.abs(total))
    allowed &= np.array([last for _, last in windows]) <= ratios.pairs[:, None]
    rose, fell = (np.where(untold, sign * ratios.shift > 0, False).astype(float) @ cover.T > 0 for sign in (1, -1))
    allowed &= ~np.where(total > 0, fell, rose)
    rows = np.flatnonzero(allowed.any(axis=1))
    if not len(rows):
        return {}
    _, plain = partition(ratios.rows(rows), price[rows])
    best: dict[int, tuple[float, tuple[int, int, float, float] | None]] = {
        int(row): (float(cost), None) for row, cost in zip(rows, plain, strict=True)
    }
    for number, (first, last) in enumerate(windows):
        of = rows[allowed[rows, number]]
        if len(of):
            tried = ratios.rows(of)
            level = tried.shift - total[of, number, None] * slope[number]
            _, costs = partition(replace(tried, shift=level), price[of])
            for row, cost in zip(of.tolist(), costs, strict=True):
                if cost + asked < best[row][0]:
                    half = float(special.stdtrit(freedom[row, number], (1 + CONFIDENCE) / 2)) * error[row, number]
                    best[row] = (cost + asked, (first, last, float(total[row, number]), float(half)))
    return {row: drift for row, (_, drift) in best.items() if drift}


# --- in words


def _ratios(lane: Lane) -> tuple[list[Series], Ratios]:
    names = [series for series, tags in lane.tags.items() if len(tags) > 1]
    pairs = max((len(lane.tags[series]) - 1 for series in names), default=0)
    shape = (len(names), pairs)
    shift, covariance = np.zeros((2, *shape))
    variance, freedom = np.full(shape, NOTHING_KNOWN), np.full(shape, 1.0)
    own, alone = np.zeros((2, *shape))
    changed, same, apart = np.zeros((3, *shape), bool)
    counts = np.array([len(lane.tags[series]) - 1 for series in names], int)
    for row, series in enumerate(names):
        rounds = list(lane.rounds[series].values())
        both = [one.keys() & other.keys() for one, other in itertools.pairwise(rounds)]
        for pair, (old, new) in enumerate(itertools.pairwise(lane.tags[series])):
            said = lane.evidence(old, new)[0].get(series)
            if said is None:
                apart[row, pair] = not both[pair] and not comparable(lane.history[series], old, new)
                continue
            shift[row, pair], variance[row, pair], freedom[row, pair] = said.shift, said.error**2, said.freedom
            own[row, pair], alone[row, pair] = _own(rounds[pair], rounds[pair + 1], both[pair])
            verdict = lane.verdict(series, old, new)
            same[row, pair] = verdict is Verdict.SAME
            changed[row, pair] = verdict in (Verdict.SLOWER, Verdict.FASTER)
            if pair and both[pair] and both[pair - 1] and variance[row, pair - 1] < NOTHING_KNOWN:
                share = len(both[pair] & both[pair - 1]) / math.sqrt(len(both[pair]) * len(both[pair - 1]))
                covariance[row, pair - 1] = -0.5 * share * math.sqrt(variance[row, pair] * variance[row, pair - 1])
    unequal = (alone > 0) & (special.fdtrc(np.maximum(alone, 1), freedom, own / variance) < UNEQUAL)
    variance, freedom = np.where(unequal, own, variance), np.where(unequal, alone, freedom)
    return names, Ratios(shift, variance, freedom, covariance[:, : max(pairs - 1, 0)], changed, same, apart, counts)


def _own(old: Mapping[_Round, float], new: Mapping[_Round, float], both: Collection[_Round]) -> tuple[float, float]:
    """Variance of a pair's mean ratio from its own rounds alone, and its degrees of freedom; zero where too few."""
    if len(both) < 2:
        return 0.0, 0.0
    differences = [math.log(new[each] / old[each]) for each in both]
    freedom, mean = len(both) - 1.0, sum(differences) / len(both)
    return sum((each - mean) ** 2 for each in differences) / freedom / len(both), freedom


def _timed(lane: Lane) -> list[Step]:
    """Steps, excursions and drifts of all times of a lane."""
    names, ratios = _ratios(lane)
    if not names or not ratios.shift.size:
        return []
    found = []
    for row, (series, of) in enumerate(zip(names, fit(ratios), strict=True)):
        if of.jumps or of.drift:
            found += _told(lane, series, ratios, row, of)
    return found


def _told(lane: Lane, series: Series, ratios: Ratios, row: int, of: Fit) -> list[Step]:
    tags = lane.tags[series]
    level = np.zeros(len(tags))
    for pair, (moved, _) in of.jumps.items():
        level[pair + 1 :] += moved
    if of.drift:
        first, last, total, _ = of.drift
        level += total * np.clip((np.arange(len(tags)) - first) / (last - first), 0, 1)
    seen = [math.log(number) - level[i] for i, tag in enumerate(tags) for number in lane.rounds[series][tag].values()]
    level = np.exp(level + np.mean(seen))
    found = _shapes(lane, series, of)
    total = float(ratios.shift[row].sum()) if not ratios.apart[row].any() else float(np.log(level[-1] / level[0]))
    net = _net(tags, float(level[0]), total, found)
    return [
        Step(
            series,
            kind,
            tags[old],
            tags[new],
            tags[until],
            float(level[old]),
            float(level[new]),
            math.exp(moved),
            math.exp(moved - half),
            math.exp(moved + half),
            net,
        )
        for kind, (old, new, until), moved, half in found
    ]


_Shape = tuple[Kind, tuple[int, int, int], float, float]
"""Kind, places of `Step`'s old, new and until, logarithm of the ratio and half of its interval."""


def _shapes(lane: Lane, series: Series, of: Fit) -> list[_Shape]:
    """A fit as it is told: two jumps of which the second takes back the first are one excursion."""
    found: list[_Shape] = []
    places = sorted(of.jumps)
    while places:
        pair = places.pop(0)
        moved, half = of.jumps[pair]
        if places and _came_back(lane, series, of, pair, places[0]):
            found.append((Kind.EXCURSION, (pair, pair + 1, places.pop(0)), moved, half))
        else:
            found.append((Kind.STEP, (pair, pair + 1, pair + 1), moved, half))
    if of.drift:
        first, last, total, half = of.drift
        found.append((Kind.DRIFT, (first, last, last), total, half))
    return found


def _came_back(lane: Lane, series: Series, of: Fit, pair: int, back: int) -> bool:
    """Whether the jump at `back` takes that at `pair` back, and no verdict on two releases that were measured together says
    otherwise: the releases between must differ from those around them, and those around must not differ."""
    (there, half), (again, other) = of.jumps[pair], of.jumps[back]
    left = abs(there + again)
    if there * again >= 0 or back - pair > EXCURSION or left >= BACK * min(abs(there), abs(again)):
        return False
    if left > max(math.hypot(half, other), math.log1p(series.margin)):
        return False
    tags = lane.tags[series]
    old, during, new = tags[pair], tags[pair + 1 : back + 1], tags[back + 1]
    rise, fall = (Verdict.SLOWER, Verdict.FASTER) if there > 0 else (Verdict.FASTER, Verdict.SLOWER)
    asked = [(old, new, (Verdict.SAME, Verdict.CANT_TELL))]
    for tag in during:
        asked += [(old, tag, (rise, Verdict.CANT_TELL)), (tag, new, (fall, Verdict.CANT_TELL))]
    return all(
        not lane.together(series, one, two) or lane.verdict(series, one, two) in agreeing
        for one, two, agreeing in asked
    )


def _net(tags: Sequence[str], before: float, total: float, found: Iterable[_Shape]) -> Net:
    """The whole axis, of a time: excursions left nothing of themselves."""
    parts = tuple((tags[places[1]], math.exp(moved)) for kind, places, moved, _ in found if kind is Kind.STEP)
    slowly = any(kind is Kind.DRIFT for kind, *_ in found)
    return Net(tags[0], tags[-1], before, before * math.exp(total), math.exp(total), parts, slowly)
