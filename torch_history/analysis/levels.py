"""What are the levels of all releases, and how surely do they differ? One model of all times of a lane.

The logarithm of a launch's number is

    level of the release + what its session does to the question + what that does to this series besides
    + what its round does + what the session does to this series on this release + noise,

where the first two are numbers that are estimated and the rest is random, with variances that the lane's own launches show.
Whatever is told of times is a difference of these levels, with the error that their covariance gives it. Series of different
questions say nothing of each other, so a lane is fitted question by question.

Estimation is generalised least squares with rounds and sessions random (recovery of inter-block information: Yates 1940).
"""

import contextlib
import functools
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import special
from .series import History, Observation, Series, observations
from .turned import PROCESS, Array

Indices = NDArray[np.intp]

REPEATED = 0.0055
"""What a session does to one steady series on one release, as a standard deviation of logarithms: another place in
memory, another process. It was seen on lane 3.9, whose sessions share more than one release."""

SINGLE = 0.015
"""The same of calls that a process makes once. By how much sessions of lane 3.9's warm_up differ says 0.025 in the median;
with 0.015, intervals hold the difference of two lanes as often as they say (docs/generated/calibration.md)."""

REPEATED_FREEDOM = 20.0  # degrees of freedom that either counts for: a choice, since it rests on few sessions
LEAST_VARIANCE = 1e-8  # of a launch's logarithm: a clock's own 0.01 %; that launches agree to the last digit is chance
ROUNDING = 1e-20  # of a variance: what lies below is left by rounding, and tells nothing of noise
MOST_LENT = 20.0  # degrees of freedom at most that a question lends a series: its own noise must still be heard
LENDERS = 10  # variances of a series in a session that a question must have to lend: of fewer the usual ones are


class Usual(NamedTuple):
    """Standard deviations of logarithms: of a launch, of what a `round` and a `session` do; and the `freedom` lent."""

    noise: float
    freedom: float
    round: float
    session: float


USUAL = {True: Usual(0.013, 3.0, 0.024, 0.019), False: Usual(0.08, 2.5, 0.15, 0.09)}
"""Whether calls are steady -> what is usual, from lane 3.9 of the machine with the longest history."""

USUAL_COUNTS = 10  # rounds, or sessions of series, that the usual variance of what they do counts for
BEYOND_CHANCE = 0.3  # variance of logarithms of noise beyond chance, for weights alone: within a factor of two
TURNS = 2  # of estimating what rounds and sessions do from what the levels leave, and the levels again
WIDE = 1e3  # a variance beside which nothing is known of a round or a session


@dataclass(frozen=True)
class Launches:
    """The launches of one series: places of release, session and round (one of one session), logarithm and `weight`."""

    release: Indices
    session: Indices
    round: Indices
    logarithm: Array
    weight: Array | float = 1.0


@dataclass(frozen=True)
class Cells:
    """A cell is a release in a session: `of_launch` is the cell of each launch, `weights` what the launches of each
    round weigh in each cell (rounds x cells), and `session_of_round` the session of each round."""

    of_launch: Indices
    release: Indices
    session: Indices
    weights: Array
    session_of_round: Indices


@dataclass(frozen=True)
class Noise:
    """The variance of a launch in each session, and its degrees of freedom, of which so many are `lent`."""

    variance: Array
    freedom: Array
    lent: float = 0.0


@dataclass(frozen=True)
class Random:
    """Variances of logarithms: of what a round, and a session to one series and to one of its releases, does."""

    round: float
    session: float
    repeated: float


class Contrasts(NamedTuple):
    """Differences of levels, in logarithms, with Student's degrees of freedom; NaN where no chain of rounds ties."""

    shift: Array
    error: Array
    freedom: Array
    rounds: Indices


@dataclass(frozen=True)
class Levels:
    """The levels of a series on `releases` (places on the axis): `level` (n), logarithms up to a common number,
    `covariance`, `freedom` of each difference, `tied` by rounds, and `both`, rounds with both (n x n)."""

    releases: Indices
    level: Array
    covariance: Array
    freedom: Array
    tied: NDArray[np.bool_]
    both: Indices

    def contrasts(self, olds: Indices, news: Indices) -> Contrasts:
        """From each release of `olds` to that of `news`, by their places on the axis."""
        a, b = (np.minimum(np.searchsorted(self.releases, of), len(self.releases) - 1) for of in (olds, news))
        known = (self.releases[a] == olds) & (self.releases[b] == news) & self.tied[a, b]
        own = np.diag(self.covariance)
        variance = np.maximum(own[a] + own[b] - 2 * self.covariance[a, b], LEAST_VARIANCE)
        shift, error = self.level[b] - self.level[a], np.sqrt(variance)
        shift, error, freedom = (np.where(known, of, math.nan) for of in (shift, error, self.freedom[a, b]))
        return Contrasts(shift, error, freedom, np.where(known, self.both[a, b], 0))

    @property
    def alone(self) -> tuple[Array, Array]:
        """The variance of each level by itself and its degrees of freedom; of series that are not compared."""
        return np.maximum(np.diag(self.covariance), LEAST_VARIANCE), np.diag(self.freedom)


@dataclass(frozen=True)
class Fitted:
    """One question of a lane: `levels` to be compared, `by_itself` what is known of each without another, `shifts` what
    each session does to all of it (logarithms), `random` the rest by metric, and `noise` of a launch."""

    releases: list[str]
    sessions: list[str]
    levels: Mapping[Series, Levels]
    by_itself: Mapping[Series, Levels]
    shifts: Array
    random: Mapping[str, Random]
    launches: Mapping[Series, Launches]
    noise: Mapping[Series, Noise]
    times: float = 1.0  # of rounds, see `with_rounds`

    def with_rounds(self, times: float) -> "Fitted":
        """As if each round had been measured so many times: noise and rounds average out, sessions and levels stay."""

        def more(series: Series, launches: Launches) -> Levels:
            cells, noise, random = cells_of(launches), self.noise[series], self.random[series.metric]
            own = times * (noise.freedom - noise.lent)
            averaged = Noise(noise.variance / times, noise.lent + own, noise.lent)
            of = levels(launches, cells, averaged, replace(random, round=random.round / times), self.shifts)
            return _kept(replace(of, level=self.levels[series].level), launches, cells, noise, random, times)

        with on_one_thread():
            found = {series: more(series, of) for series, of in self.launches.items()}
        return replace(self, levels=found, times=times)

    @functools.cached_property
    def like_launches(self) -> Array:
        """How many like launches those of each release are worth (series x releases): Kish 1965, "Survey Sampling"."""
        found = np.zeros((len(self.launches), len(self.releases)))
        for row, of in zip(found, self.launches.values(), strict=True):
            weights = np.broadcast_to(of.weight, of.release.shape)
            sums = [np.bincount(of.release, weights**power, minlength=len(row)) for power in (1, 2)]
            row[:] = self.times * np.divide(sums[0] ** 2, sums[1], out=np.zeros(len(row)), where=sums[1] > 0)
        return found

    def cleared(self, series: Series, release: str) -> Array:
        """The numbers of the launches of a release, in their unit, less what their sessions do to the whole question."""
        of = self.launches[series]
        here = of.release == self.releases.index(release)
        return np.exp(of.logarithm[here] - self.shifts[of.session[here]])

    def shown(self, series: Series, release: str) -> float:
        """The level of a release as a person sees it, in the series' unit: the median of its launches, cleared."""
        bits = np.float32(np.median(self.cleared(series, release))).view(np.uint32) + np.uint32(0x40)
        return float((bits & np.uint32(0xFFFFFF80)).view(np.float32))  # to 16 binary digits, as the site has it

    def alone(self, series: Series) -> tuple[Array, Array, Array]:
        """The level of each release by itself, its variance and degrees of freedom; NaN where it was not measured."""
        level, variance, freedom = np.full((3, len(self.releases)), math.nan)
        of = self.by_itself[series]
        level[of.releases] = self.levels[series].level
        variance[of.releases], freedom[of.releases] = of.alone
        return level, variance, freedom

    def places(self, tags: Iterable[str]) -> Indices:
        """Of releases on the axis; of those that are not there -1."""
        return np.array([self.releases.index(tag) if tag in self.releases else -1 for tag in tags], dtype=np.intp)


def fitted(found: History) -> dict[tuple[str, str], Fitted]:
    """(environment, question) -> the levels of its times: 3 to 5 s for 436 series on 30 releases."""
    of_question: dict[tuple[str, str], dict[Series, list[Observation]]] = defaultdict(dict)
    for series, of in found.items():
        if series.varies and (seen := observations(of, *sorted(of))):
            of_question[series.environment, series.question][series] = sorted(seen)
    releases = sorted({tag for of in found.values() for tag in of})
    with on_one_thread():
        return {key: _fitted(every, releases) for key, every in of_question.items()}


def _launches(seen: Sequence[Observation], releases: Mapping[str, int], sessions: Mapping[str, int]) -> Launches:
    rounds = {block: i for i, block in enumerate(sorted({one.block for one in seen}))}
    return Launches(
        np.array([releases[one.release] for one in seen]),
        np.array([sessions[one.block[0]] for one in seen]),
        np.array([rounds[one.block] for one in seen]),
        np.log([one.number for one in seen]),
        np.array([weight(one.variance) for one in seen]),
    )


def weight(variance: float) -> float:
    """Of a launch: 1 without turns, else how much more it tells than a usual one if its turns tell this `variance`."""
    return 1.0 if not variance else USUAL[True].noise ** 2 / (PROCESS**2 + variance)


def on_one_thread() -> contextlib.AbstractContextManager[object]:
    """Within, NumPy keeps to one thread: these matrices are so small that threads wait longer than they compute."""
    variables = dict(os.environ)
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:  # an installation without it computes the same, and takes longer
        return contextlib.nullcontext()
    for name in os.environ.keys() - variables:  # what it sets for Intel's OpenMP, which is none of the user's
        del os.environ[name]
    return threadpool_limits(1)


def _fitted(seen: Mapping[Series, Sequence[Observation]], releases: list[str]) -> Fitted:
    """Whatever the order in which launches were read, the same to the last digit: places are in alphabetical order."""
    sessions = sorted({one.block[0] for of in seen.values() for one in of})
    places = [{name: i for i, name in enumerate(names)} for names in (releases, sessions)]
    measured = {series: _launches(of, *places) for series, of in seen.items()}
    cells = {series: cells_of(of) for series, of in measured.items()}
    members: dict[str, list[Series]] = defaultdict(list)
    for series in seen:
        members[series.metric].append(series)
    noise: dict[Series, Noise] = {}
    for alike in members.values():
        within = [within_sessions(measured[one], cells[one], len(sessions)) for one in alike]
        noise |= zip(alike, noises(within, USUAL[alike[0].is_steady]), strict=True)
    random = {one.metric: Random(WIDE, WIDE, (REPEATED if one.is_steady else SINGLE) ** 2) for one in seen}
    shifts = np.zeros(len(sessions))

    def every(last: bool) -> dict[Series, Levels]:
        return {
            one: levels(of, cells[one], noise[one], random[one.metric], shifts, last) for one, of in measured.items()
        }

    found = every(last=False)
    for turn in range(TURNS):
        left = {one: _left(of, found[one]) for one, of in measured.items()}
        shifts, besides = sessions_do([*measured.values()], [*left.values()], len(sessions))
        for metric, alike in members.items():
            usual = USUAL[alike[0].is_steady]
            rounds = rounds_do([(measured[one], cells[one], left[one], noise[one]) for one in alike], usual.round**2)
            scatter = scatter_of_sessions(besides[[one.metric == metric for one in seen]], usual.session**2)
            random[metric] = replace(random[metric], round=rounds, session=scatter)
        found = every(turn == TURNS - 1)
    by_itself = found
    if of_sessions(besides) < LENDERS:  # too little to tell what they do: only what one session measured is compared
        random = {metric: replace(known, session=WIDE) for metric, known in random.items()}
        found = every(last=True)
    kept = {one: _kept(of, measured[one], cells[one], noise[one], random[one.metric]) for one, of in found.items()}
    return Fitted(releases, sessions, kept, by_itself, shifts, random, measured, noise)


def _kept(of: Levels, launches: Launches, cells: Cells, noise: Noise, random: Random, times: float = 1.0) -> Levels:
    """Levels as the site has them, as sure as sessions agree (Birge 1932) and no surer: what varies by REPEATED must
    not lend its degrees of freedom to noise that is small by chance."""
    squares, freedom = disagreement(launches, cells, noise, random)
    own = (noise.freedom[np.unique(cells.session)] - noise.lent).sum()
    factor = (noise.lent + own + squares) / (noise.lent + own + freedom)
    return replace(
        of,
        level=of.level.astype(np.float32).astype(float),
        covariance=of.covariance * factor,
        freedom=np.minimum(of.freedom, noise.lent + times * own + freedom),
    )


def disagreement(launches: Launches, cells: Cells, noise: Noise, random: Random) -> tuple[float, int]:
    """By how much sessions disagree on differences: a sum of squares in units of noise, and its degrees of freedom."""
    freedom = len(cells.release) - len(np.unique(cells.release)) - len(np.unique(cells.session)) + 1
    if freedom < 1:
        return 0.0, 0
    apart = replace(random, session=WIDE)
    precision, right = information(launches, cells, noise, apart, np.zeros(len(noise.variance)))
    design = np.equal.outer(cells.release, np.unique(cells.release)).astype(float)
    mixed = np.eye(len(precision)) + random.repeated * precision
    weight = np.linalg.solve(mixed, precision)
    inverse = np.linalg.pinv(design.T @ weight @ design, hermitian=True, rcond=1e-10)
    level = inverse @ design.T @ np.linalg.solve(mixed, right)
    left = right - precision @ design @ level
    of_cells = np.linalg.pinv(precision, hermitian=True, rcond=1e-9)
    return float(left @ of_cells @ np.linalg.solve(mixed, left)), freedom


def cells_of(launches: Launches) -> Cells:
    """The cells and rounds of a series' launches."""
    pairs, of_launch = np.unique(np.column_stack([launches.session, launches.release]), axis=0, return_inverse=True)
    of_launch = of_launch.ravel()
    weights = np.zeros((launches.round.max() + 1, len(pairs)))
    np.add.at(weights, (launches.round, of_launch), launches.weight)
    session_of_round = np.zeros(len(weights), dtype=np.intp)
    session_of_round[launches.round] = launches.session
    return Cells(of_launch, pairs[:, 1], pairs[:, 0], weights, session_of_round)


Seen = tuple[int, str, float]  # the place of a launch's release, its session, and the logarithm of its number


def by_themselves(seen: Sequence[Sequence[Seen]], usual: Usual, repeated: float) -> list[Levels]:
    """The levels of series each by itself, such as ratios of two variants within rounds; they tell each other of noise
    and of what sessions do, which is random here, as rounds are noise. `repeated` is a variance."""
    sessions = {session: i for i, session in enumerate(dict.fromkeys(session for of in seen for _, session, _ in of))}
    whole = []
    for of in seen:
        releases, names, logarithms = zip(*of, strict=True)
        session = np.array([sessions[name] for name in names])
        rounds = np.unique(session, return_inverse=True)[1]  # a session is one round
        whole.append(Launches(np.array(releases), session, rounds, np.array(logarithms)))
    cells = [cells_of(one) for one in whole]
    noise = noises([within_sessions(*both, len(sessions)) for both in zip(whole, cells, strict=True)], usual)
    random = Random(0.0, WIDE, repeated)

    def every(last: bool) -> list[Levels]:
        return [levels(*of, random, np.zeros(len(sessions)), last) for of in zip(whole, cells, noise, strict=True)]

    found = every(last=False)
    for turn in range(TURNS):
        common, besides = sessions_do(whole, [_left(*both) for both in zip(whole, found, strict=True)], len(sessions))
        squares, counts = float(np.nansum((common + besides) ** 2)), int((~np.isnan(besides)).sum()) - len(whole)
        random = replace(random, session=(squares + USUAL_COUNTS * usual.session**2) / (counts + USUAL_COUNTS))
        found = every(turn == TURNS - 1)
    return found


def within_sessions(launches: Launches, cells: Cells, sessions: int) -> tuple[Array, Array]:
    """What cells and rounds leave of a series in each session: the sum of squares, and its degrees of freedom."""
    sizes, weight = cells.weights.sum(axis=1), launches.weight

    def apart(values: Array) -> Array:
        """What is left when the mean of each round is taken off."""
        return values - (np.bincount(launches.round, weight * values) / sizes)[launches.round]

    laplacian = np.diag(cells.weights.sum(axis=0)) - cells.weights.T @ (cells.weights / sizes[:, None])
    sums = np.bincount(cells.of_launch, weight * apart(launches.logarithm))
    of_cell = np.linalg.pinv(laplacian, hermitian=True) @ sums
    left = apart(launches.logarithm - of_cell[cells.of_launch])
    squares = np.bincount(launches.session, weight * left**2, minlength=sessions).astype(float)
    together = tied((cells.weights.T @ cells.weights > 0).astype(np.intp)).sum(axis=1)
    # Levels are cells less what rounds tie together.
    levels_of_each = np.bincount(cells.session, 1 - 1 / together, minlength=sessions)
    launches_of_each = np.bincount(launches.session, minlength=sessions)
    rounds_of_each = np.bincount(cells.session_of_round, minlength=sessions)
    freedom: Array = np.round(launches_of_each - rounds_of_each - levels_of_each)
    return squares, freedom


def noises(within: Sequence[tuple[Array, Array]], usual: Usual) -> list[Noise]:
    """The noise of each series in each session, moderated by its other sessions and other series (after Smyth 2004)."""
    sums, freedom = (np.array(of) for of in zip(*within, strict=True))
    prior, lent = expected_noise(sums, freedom, usual)
    variance = np.maximum((lent * prior + sums) / (lent + freedom), LEAST_VARIANCE)
    return [Noise(*of, lent) for of in zip(variance, lent + freedom, strict=True)]


def expected_noise(sums: Array, freedom: Array, usual: Usual = USUAL[True]) -> tuple[Array, float]:
    """The variance that each series (row) is expected to have in each session (column), and its degrees of freedom
    beside its own, from sums of squares and theirs. The logarithm of a variance is a series' number, shrunk by how much
    series differ, plus a session's, shrunk by BEYOND_CHANCE, and chance; of one session, or of fewer than LENDERS, it
    is what is `usual` or common."""
    known = (freedom > 0) & (sums > ROUNDING * np.maximum(freedom, 1))
    if known.sum() < LENDERS:
        own = np.where(known, sums / np.maximum(freedom, 1), math.inf)
        seen = float(np.median(own[known])) if known.any() else 0.0
        return np.maximum(usual.noise**2, np.minimum(own, seen)), usual.freedom
    half = np.maximum(freedom, 1) / 2
    logs = np.log(np.maximum(sums, 1e-300) / np.maximum(freedom, 1)) - special.digamma(half) + np.log(half)
    chance = special.polygamma(1, half)
    weight = np.where(known, 1 / (chance + BEYOND_CHANCE), 0.0)
    logs = np.where(known, logs, 0.0)
    rows, columns = int(known.any(axis=1).sum()), int(known.any(axis=0).sum())
    one_session = np.full(len(logs), np.average(logs, weights=weight)), np.zeros(logs.shape[1])
    of_series, of_session = _two_ways(logs, weight) if columns > 1 else one_session
    expected = of_series[:, None] + of_session
    scatter = (logs - expected)[known]
    spent = 0.9 * rows + columns if columns > 1 else 1
    seen = float(np.mean(scatter**2)) * len(scatter) / max(len(scatter) - spent, 0.3 * len(scatter))
    unsure = math.sqrt(max(float(np.mean(scatter**4) - np.mean(scatter**2) ** 2), 0.0) / len(scatter))
    unsure += seen / len(scatter)
    half_weight = where_trigamma(max(seen - float(chance[known].mean()), 1e-6) + unsure)
    lent = min(2 * half_weight, MOST_LENT)
    return np.exp(expected + float(special.digamma(lent / 2)) - math.log(lent / 2)), lent


def where_trigamma(value: float) -> float:
    """Where trigamma is `value`: Newton's method on its reciprocal, which is nearly a line (Smyth 2004, appendix)."""
    x, step = 0.5 + 1 / value, math.inf
    while abs(step) > 1e-9 * x:
        trigamma = float(special.polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, x))
        x += step
    return x


def _two_ways(logs: Array, weight: Array) -> tuple[Array, Array]:
    """What rows and columns add to a table, each shrunk; `weight` is 0 where there is no entry."""
    of_row, of_column = np.zeros(logs.shape[0]), np.zeros(logs.shape[1])
    row_weight, column_weight = weight.sum(axis=1), weight.sum(axis=0)
    for _ in range(30):
        mean = (weight * (logs - of_column)).sum(axis=1) / np.maximum(row_weight, 1e-9)
        middle = np.average(mean, weights=row_weight)
        by_chance = 1 / np.maximum(row_weight, 1e-9)
        differ = np.average((mean - middle) ** 2, weights=row_weight) - np.average(by_chance, weights=row_weight)
        differ = max(float(differ), 1e-3)
        of_row = middle + (mean - middle) * differ / (differ + by_chance)
        of_column = (weight * (logs - of_row[:, None])).sum(axis=0) / (column_weight + 1 / BEYOND_CHANCE)
    return of_row, of_column


def information(launches: Launches, cells: Cells, noise: Noise, random: Random, shifts: Array) -> tuple[Array, Array]:
    """What the launches of a series say of its cells: the precision matrix (cells x cells), and it times their means."""
    values = launches.weight * (launches.logarithm - shifts[launches.session])
    weights, variance = cells.weights, noise.variance[cells.session_of_round]
    share = random.round / (variance + weights.sum(axis=1) * random.round) / variance
    of_cell = noise.variance[cells.session]
    precision = np.diag(weights.sum(axis=0) / of_cell) - weights.T @ (share[:, None] * weights)
    right = np.bincount(cells.of_launch, values) / of_cell
    right = right - weights.T @ (share * np.bincount(launches.round, values))
    for session in np.unique(cells.session):
        mine = np.flatnonzero(cells.session == session)
        block = np.ix_(mine, mine)
        sums = precision[block].sum(axis=1)
        share_of_session = random.session / (1 + random.session * sums.sum())
        precision[block] -= share_of_session * np.outer(sums, sums)
        right[mine] -= share_of_session * sums * right[mine].sum()
    return precision, right


def levels(launches: Launches, cells: Cells, noise: Noise, random: Random, shifts: Array, last: bool = True) -> Levels:
    """Generalised least squares on the cells, each of which is its release's level and what the session does to it. Degrees
    of freedom take half of the time: they are NaN where levels are estimated again, and this estimate is not the last."""
    precision, right = information(launches, cells, noise, random, shifts)
    releases = np.unique(cells.release)
    design = np.equal.outer(cells.release, releases).astype(float)
    mixed = np.eye(len(precision)) + random.repeated * precision
    weight = np.linalg.solve(mixed, precision)
    inner = design.T @ weight @ design
    inner = (inner + inner.T) / 2
    covariance = np.linalg.pinv(inner, hermitian=True, rcond=1e-10)
    level = covariance @ (design.T @ np.linalg.solve(mixed, right))
    held = (cells.weights @ design > 0).astype(np.intp)  # rounds x releases
    both = held.T @ held
    freedom = np.full_like(covariance, math.nan)
    if last:
        freedom = _freedom(weight @ design @ covariance, precision, cells, noise, random, covariance)
    return Levels(releases, level, covariance, freedom, tied(both), both)


def _freedom(leverage: Array, precision: Array, cells: Cells, noise: Noise, random: Random, covariance: Array) -> Array:
    """Degrees of freedom of each difference and of each level by itself: Satterthwaite (1946), a share of its variance for
    each session and one for what sessions do on releases. `leverage` (cells x releases) is by how much each cell weighs."""
    spread = random.repeated * _between(leverage.T @ leverage)
    below = spread**2 / REPEATED_FREEDOM
    for session in np.unique(cells.session):
        mine = np.flatnonzero(cells.session == session)
        of = leverage[mine]
        share = np.maximum(_between(of.T @ np.linalg.pinv(precision[np.ix_(mine, mine)], hermitian=True) @ of), 0.0)
        below += share**2 / max(noise.freedom[session], 1.0)
    variance = np.maximum(_between(covariance), 0.0)
    return np.minimum(variance**2 / np.maximum(below, 1e-300), 1e4)


def _between(covariance: Array) -> Array:
    """The variance of each difference and, on the diagonal, of each level by itself."""
    own = np.diag(covariance)
    return own[:, None] + own - 2 * covariance + np.diag(own)


def tied(both: Indices) -> NDArray[np.bool_]:
    """Which releases a chain of rounds ties, one to the next: nothing else compares them."""
    reached = both > 0
    while (further := reached @ reached).sum() > reached.sum():
        reached = further
    return reached


def _left(launches: Launches, of: Levels) -> Array:
    """What the levels leave of each launch's logarithm."""
    return launches.logarithm - of.level[np.searchsorted(of.releases, launches.release)]


def sessions_do(launches: Sequence[Launches], left: Sequence[Array], sessions: int) -> tuple[Array, Array]:
    """What each session does to the question, the median over series, and besides to each (series x sessions, NaN)."""
    means = np.full((len(launches), sessions), np.nan)
    for i, one in enumerate(launches):
        count = np.bincount(one.session, minlength=sessions)
        mean = np.bincount(one.session, left[i], minlength=sessions)[count > 0] / count[count > 0]
        means[i, count > 0] = mean - mean.mean()
    measured = ~np.isnan(means).all(axis=0)
    shifts = np.zeros(sessions)
    shifts[measured] = np.nanmedian(means[:, measured], axis=0)
    return shifts, means - shifts


def of_sessions(besides: Array) -> int:
    """How many numbers tell what sessions do to single series: one of each session and series tells what is common."""
    measured = ~np.isnan(besides)
    return max(int(measured.sum() - measured.any(axis=0).sum() - measured.any(axis=1).sum()), 0)


def scatter_of_sessions(besides: Array, usual: float) -> float:
    """The variance of what sessions do to single series: that of most, or of all but the farthest if it is larger."""
    values = besides[~np.isnan(besides)]
    squares = values**2
    typical = 1.4826 * float(np.median(np.abs(values)))
    seen = max(typical**2, float(np.mean(np.minimum(squares, np.quantile(squares, 0.97)))))
    counts = of_sessions(besides)
    return (counts * seen + USUAL_COUNTS * usual) / (counts + USUAL_COUNTS)


def rounds_do(of_metric: Sequence[tuple[Launches, Cells, Array, Noise]], usual: float) -> float:
    """The variance of what rounds do: that of their means within sessions, less what noise adds to it."""
    squares, noise = [], []
    for launches, cells, left, known in of_metric:
        sizes, session = cells.weights.sum(axis=1), cells.session_of_round
        means = np.bincount(launches.round, launches.weight * left) / sizes
        rounds = np.bincount(session)
        of_session = np.bincount(session, means) / np.maximum(rounds, 1)
        use = (rounds[session] > 1) & (np.bincount(launches.round) > 1)
        of_each = rounds[session][use]
        squares.append((means - of_session[session])[use] ** 2 * of_each / (of_each - 1))
        noise.append(known.variance[session][use] / sizes[use])
    every = np.concatenate(squares)
    if not len(every):
        return usual
    within = np.minimum(every, np.quantile(every, 0.98))
    seen = max(float(within.mean() - np.concatenate(noise).mean()), LEAST_VARIANCE)
    return (len(every) * seen + USUAL_COUNTS * usual) / (len(every) + USUAL_COUNTS)
