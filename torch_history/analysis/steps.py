"""What happened to a series over the whole axis? Steps that last, spikes that recovered, slow drifts; newest first.

A logarithm of a launch's number is the level of its release, plus what its session adds, plus noise. The level is a sum of
shapes (a step, a spike, a drift), found one by one; how the method was chosen and how often it errs: docs/steps.md.
"""

from __future__ import annotations

import enum
import functools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special
from threadpoolctl import threadpool_limits

from ..releases.axis import Axis
from ..store.launches import Case, Launch
from .verdicts import ERROR_RATE, RANK, History, Series, Verdict, history

NEWEST_ERROR = 0.01
"""Chance that a series without any change shows a step at its newest release: asked once for each release that comes out."""

HISTORY_ERROR = 0.05
"""The same for all the rest of the axis. Half of it goes to steps, which are asked for most, a quarter each to spikes and
drifts; Bonferroni's correction divides each by the number of places that are tried, of drifts by that number / ALIKE."""

SMALLEST = 0.02
"""A change below 2 % is not shown: two builds of the same source differ by that much. It is the same for every kind: a step
that noise makes look like a drift must not be hidden for it."""

SPIKE = 2
"""Releases that a spike lasts at most: a minor release and its patch; what lasts longer was a step, and its end another."""

DRIFT = 8
"""Releases that a drift takes at least, about a year of PyTorch; what is faster is told as steps."""

DRIFT_GRID = 4
"""Drifts are tried from and to every fourth release: where a slow change begins cannot be told to the release."""

ALIKE = 2
"""Drifts that count as one place: they overlap so much that 15 of them err as seldom as 6 independent ones at most, and 44
as 13. Not three, since sessions that differ as much as launches do make drifts out of little."""

WINDOW = 64
"""Releases of a time that are looked at, the newest: all of PyTorch's and a decade more. The shapes that are tried grow with
the square of their number, and what lies farther back was told when it was new. Counts are followed over the whole axis."""

OUTLYING = 0.1
"""Share of launches that are moved closer to the median of their release and session where some lie far out. With a larger
share the second of two values, where every fifth launch has it, would be an outlier."""

FAR = 2.0
"""Some lie far out where moving them makes the variance of a release's level this many times smaller. Of normal noise it
makes it larger by a twentieth, and that of only ten launches this much smaller in 2 series of 100."""

SCATTERED = 2.0
"""A release whose launches in a session scatter more than twice as much as usual even without the farthest of them was
disturbed more than once, and none of them says which are right: it counts for as much less as its own variance is larger."""

TIE = 1e-6
"""Logarithms of likelihoods that differ by less are of shapes that explain the same beside those already found: of two steps
in a row the first is as well a spike that ends where the second begins. Steps come first in `all_shapes`, and are told."""

EXACT = 1e-12
"""Least variance of a launch's logarithm: seven digits are stored."""

SINGLE = 1 / 3
"""Degrees of freedom that a further release of a session adds where no launch is repeated: noise is then only seen as what
the shapes leave, which were chosen to leave little. Repeated launches, which no shape explains, count in full."""

SESSION_TO_LAUNCH = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Spread between sessions in spreads between launches of one session. What the data say of each weighs the answer it gives;
0 says that sessions do not matter, 16 that only launches of the same session can be compared."""

CONFIDENCE = 1 - ERROR_RATE
"""Of the interval of a step's ratio."""

Array = NDArray[np.float64]


class Kind(enum.Enum):
    STEP = "step"
    SPIKE = "spike"
    DRIFT = "drift"


@dataclass(frozen=True)
class Step:
    """What happened to a series: a step between the neighbours `old` and `new`, a spike from `new` to `until`, or a drift
    from `old` to `new`. `before` and `after` are the levels at `old` and `new` in the series' unit; `ratio` is after /
    before without what else happened there, None from zero, with its interval at `CONFIDENCE`."""

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

    @property
    def verdict(self) -> Verdict:
        """The direction in the words of a verdict: slower or faster, hungrier or leaner, more or fewer."""
        return self.series.direction(self.ratio is None or self.ratio > 1)


def regressions(launches: Iterable[Launch], axis: Axis, environment: str) -> list[Step]:
    """Everything that happened to any series of `environment` (`release-py3.11`), newest first, then what costs, most first.

    Releases without a number are passed over: what follows is compared with the last one that has any."""
    found = history(launches)
    return of_history({series: of for series, of in found.items() if series.environment == environment}, axis)


def of_history(history: History, axis: Axis) -> list[Step]:
    """`regressions` on what `verdicts.history` gives, of one environment."""
    found = []
    # These matrices are so small that threads of a library wait for each other longer than they compute.
    with threadpool_limits(1):
        for series, releases in history.items():
            numbers = _numbers(releases, axis)
            found += find_steps(series, numbers) if series.varies else _exact(series, numbers)
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
    known: list[tuple[str, float]] = []
    least = 1 if series.is_counted else 2
    for release, sessions in numbers.items():
        values = [value for of_session in sessions.values() for value in of_session]
        if len(set(values)) == 1 and len(values) >= least:
            known.append((release, values[0]))
    found = []
    i = 1
    while i < len(known):
        (old, before), (new, after) = known[i - 1], known[i]
        if after != before:
            back = [k for k in range(i + 1, min(i + 1 + SPIKE, len(known))) if known[k][1] == before]
            kind, until = (Kind.SPIKE, known[back[0] - 1][0]) if back else (Kind.STEP, new)
            ratio = after / before if before else None
            found.append(Step(series, kind, old, new, until, before, after, ratio, ratio, ratio))
            i = back[0] if back else i
        i += 1
    return found


def find_steps(series: Series, numbers: Numbers) -> list[Step]:
    """Steps, spikes and drifts of a time, part by part where sessions do not tie all releases together."""
    found = []
    for part in _parts(dict(list(numbers.items())[-WINDOW:])):
        cells = _Cells.of([numbers[release] for release in part])
        shapes = find_shapes(cells)
        level = cells.levels(shapes)
        for shape in shapes:
            fit = cells.fit([other for other in shapes if other != shape], [shape])
            effect, half = float(fit.effect[0]), float(fit.half[0])
            if abs(effect) < math.log1p(SMALLEST):
                continue
            old, new, until = (part[i] for i in shape.ends)
            before, after = (math.exp(level[i]) for i in shape.ends[:2])
            ratio, low, high = (math.exp(x) for x in (effect, effect - half, effect + half))
            found.append(Step(series, shape.kind, old, new, until, before, after, ratio, low, high))
    return found


def _parts(numbers: Numbers) -> list[list[str]]:
    """The releases that sessions tie together, directly or by others, in the axis' order."""
    parts: list[tuple[set[str], set[str]]] = []
    for release, sessions in numbers.items():
        tied = [part for part in parts if part[1] & sessions.keys()]
        parts = [part for part in parts if part not in tied]
        parts.append(({release}.union(*(part[0] for part in tied)), set(sessions).union(*(part[1] for part in tied))))
    found = [[release for release in numbers if release in releases] for releases, _ in parts]
    return sorted(found, key=lambda part: list(numbers).index(part[0]))


@dataclass(frozen=True)
class Shape:
    """A change of level by one unit: from position `first` on, or until `last` is back, or evenly from `first` to `last`."""

    kind: Kind
    first: int
    last: int

    def column(self, releases: int) -> Array:
        position = np.arange(releases)
        if self.kind is Kind.DRIFT:
            return np.clip((position - self.first) / (self.last - self.first), 0.0, 1.0)
        return ((position >= self.first) & (position < self.last)).astype(float)

    @property
    def ends(self) -> tuple[int, int, int]:
        """Positions of the releases before it, of the first it changed (a drift: its end), and of its last one."""
        if self.kind is Kind.DRIFT:
            return self.first, self.last, self.last
        return self.first - 1, self.first, self.first if self.kind is Kind.STEP else self.last - 1


def all_shapes(releases: int) -> list[Shape]:
    """Every shape that is tried on so many releases; the step at the newest is the first."""
    steps = [Shape(Kind.STEP, i, releases) for i in range(releases - 1, 0, -1)]
    spikes = [Shape(Kind.SPIKE, i, i + n) for n in range(1, SPIKE + 1) for i in range(1, releases - n)]
    grid = sorted({*range(releases - 1, -1, -DRIFT_GRID), 0})
    drifts = [Shape(Kind.DRIFT, i, k) for i in grid for k in grid if k - i >= DRIFT]
    return steps + spikes + drifts


@dataclass(frozen=True)
class _Fit:
    """Of each candidate: its effect on the logarithm, half of its interval, chance of such an effect without it, and the
    logarithm of the likelihood with it."""

    effect: Array
    half: Array
    chance: Array
    likelihood: Array


@dataclass(frozen=True)
class _Design:
    """Where and how often a series was measured, the same for many: the release of each cell, all shapes as values there,
    and for each of SESSION_TO_LAUNCH the matrix that makes the cells' means independent with the variance of one launch, the
    logarithm of the determinant of their covariance, and the shapes' values multiplied by that matrix."""

    release: NDArray[np.int_]
    columns: dict[Shape, Array]
    spread: tuple[tuple[Array, float, Array], ...]


@functools.lru_cache(maxsize=16)
def _design(releases: int, cells: tuple[tuple[int, str], ...], worth: tuple[float, ...]) -> _Design:
    """`cells` are release and session of each, `worth` the launches that each counts for."""
    release = np.array([i for i, _ in cells])
    columns = {shape: shape.column(releases)[release] for shape in all_shapes(releases)}
    every = np.stack(list(columns.values()), axis=1) if columns else np.empty((len(cells), 0))
    same = np.equal.outer([session for _, session in cells], [session for _, session in cells])
    spread = []
    for ratio in SESSION_TO_LAUNCH:
        triangle = np.linalg.cholesky(np.diag([1 / launches for launches in worth]) + ratio**2 * same)
        independent = np.linalg.inv(triangle)
        spread.append((independent, 2 * float(np.log(np.diag(triangle)).sum()), independent @ every))
    return _Design(release, columns, tuple(spread))


@dataclass(frozen=True)
class _Cells:
    """A series as the mean logarithm of each release and session, with the number of its launches; `within` is the sum of
    squares around these means, `freedom` the degrees of freedom of what they say of noise."""

    releases: int
    mean: Array
    launches: int
    within: float
    freedom: float
    design: _Design

    @classmethod
    def of(cls, releases: Sequence[Mapping[str, Sequence[float]]]) -> _Cells:
        """`releases` in their order, each session -> seconds of its launches; all positive."""
        keys = [(i, session) for i, sessions in enumerate(releases) for session in sessions]
        logs, worth = _robust([np.log(releases[i][session]) for i, session in keys])
        mean = np.array([values.mean() for values in logs])
        within = sum(n * float(values.var()) for values, n in zip(logs, worth, strict=True))
        launches = sum(len(values) for values in logs)
        sessions = len({session for _, session in keys})
        freedom = max(launches - len(releases) - sessions + 1, SINGLE * (len(keys) - sessions), 1e-9)
        design = _design(len(releases), tuple(keys), tuple(worth))
        return cls(len(releases), mean, launches, within, freedom, design)

    def fit(self, shapes: Sequence[Shape], candidates: Sequence[Shape] | None = None) -> _Fit:
        """Each of `candidates`, by default of all shapes, added to `shapes`: generalised least squares with a random effect
        of the session, averaged over SESSION_TO_LAUNCH with the weights that restricted likelihood gives (Patterson and
        Thompson 1971)."""
        columns = self.design.columns
        known = np.column_stack([np.ones(len(self.mean)), *(columns[shape] for shape in shapes)])
        tried = None if candidates is None else np.stack([columns[shape] for shape in candidates], axis=1)
        free = self.launches - known.shape[1] - 1
        if free < 1:
            none = np.zeros(len(columns if candidates is None else candidates))
            return _Fit(none, none + math.inf, none + 1, none)
        effects, errors, full, restricted = [], [], [], []
        for independent, determinant, every in self.design.spread:
            basis, triangle = np.linalg.qr(independent @ known)
            added = every if tried is None else independent @ tried
            rest, added = (x - basis @ (basis.T @ x) for x in (independent @ self.mean, added))
            length = np.maximum((added**2).sum(axis=0), 1e-9)
            effect = added.T @ rest / length
            squares = np.maximum(rest @ rest - effect**2 * length, 0.0) + self.within + EXACT * self.launches
            effects.append(effect)
            errors.append(np.sqrt(squares / free / length))
            full.append(-(self.launches * np.log(squares) + determinant) / 2)
            seen = 2 * np.log(np.abs(np.diag(triangle))).sum() + np.log(length)
            restricted.append(-(free * np.log(squares) + determinant + seen) / 2)
        weights = special.softmax(restricted, axis=0)
        chance = (weights * 2 * special.stdtr(self.freedom, -np.abs(effects) / errors)).sum(axis=0)
        effect = (weights * effects).sum(axis=0)
        error = np.sqrt((weights * (np.square(errors) + np.square(effects))).sum(axis=0) - effect**2)
        half = special.stdtrit(self.freedom, (1 + CONFIDENCE) / 2) * error
        return _Fit(effect, half, chance, special.logsumexp(full, axis=0))

    def levels(self, shapes: Sequence[Shape]) -> Array:
        """The logarithm of each release's level, in a typical session."""
        change = np.zeros(self.releases)
        for shape in shapes:
            effect = self.fit([other for other in shapes if other != shape], [shape]).effect[0]
            change += effect * shape.column(self.releases)
        return change + statistics.fmean(self.mean - change[self.design.release])


def _robust(cells: Sequence[Array]) -> tuple[list[Array], list[float]]:
    """`cells` with OUTLYING launches moved closer where some lie far out, and how many launches each is worth.

    The moved are pseudo-observations (Bickel 1976): their mean is Huber's estimate, in one step from the median, and their
    variance says how much it varies. A cell that was disturbed more than once stays as it is, with its own variance."""
    medians = [np.median(values) for values in cells]
    far = [values - median for values, median in zip(cells, medians, strict=True)]
    limit = np.quantile(np.abs(np.concatenate(far)), 1 - OUTLYING)
    moved = [median + np.clip(each, -limit, limit) / (1 - OUTLYING) for median, each in zip(medians, far, strict=True)]
    if not 0 < FAR * _variance(moved) <= _variance(cells):
        moved = list(cells)
    nearest = [
        values[np.argsort(np.abs(each))[: max(2, len(each) - 1)]] for values, each in zip(cells, far, strict=True)
    ]
    most = SCATTERED**2 * _variance(moved)
    scattered = [_variance([values]) > most for values in nearest]
    usual = max(_variance([values for values, disturbed in zip(moved, scattered, strict=True) if not disturbed]), EXACT)
    worth = [float(len(values)) for values in cells]
    for i, values in enumerate(cells):
        if scattered[i]:
            moved[i], worth[i] = values, len(values) * usual / _variance([values])
    return moved, worth


def _variance(cells: Sequence[Array]) -> float:
    """Of launches around the mean of their cell."""
    freedom = sum(len(values) - 1 for values in cells)
    return sum(float(((values - values.mean()) ** 2).sum()) for values in cells) / max(freedom, 1)


def _drift_over(shape: Shape, other: Shape) -> bool:
    """Whether both are drifts over some of the same releases: two that undo each other in part would each be told as more
    than what happened."""
    return (
        shape != other
        and shape.kind is other.kind is Kind.DRIFT
        and shape.first < other.last
        and other.first < shape.last
    )


def find_shapes(cells: _Cells) -> list[Shape]:
    """The shapes that explain a series: the likeliest of those that chance does not explain is added, those already found
    are judged again beside it, until none is left to add."""
    candidates = all_shapes(cells.releases)
    if not candidates:
        return []
    kinds = [shape.kind for shape in candidates]
    share = {Kind.STEP: 0.5, Kind.SPIKE: 0.25, Kind.DRIFT: 0.25 * ALIKE}
    allowed = np.array([HISTORY_ERROR * share[kind] / kinds.count(kind) for kind in kinds])
    allowed[0] = NEWEST_ERROR

    def likeliest(beside: list[Shape]) -> list[Shape]:
        fit = cells.fit(beside)
        free = np.array([not any(_drift_over(shape, other) for other in beside) for shape in candidates])
        likelihood = np.where((fit.chance <= allowed) & free, fit.likelihood, -math.inf)
        best = int(np.argmax(likelihood >= likelihood.max() - TIE))
        return [candidates[best]] if likelihood[best] > -math.inf and candidates[best] not in beside else []

    shapes: list[Shape] = []
    for _ in range(cells.releases):
        if not (added := likeliest(shapes)):
            break
        shapes += added
        for shape in list(shapes):
            others = [other for other in shapes if other != shape]
            shapes = others + likeliest(others)
    return shapes
