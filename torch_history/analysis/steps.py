"""What happened to a series over the whole axis? Steps that last, excursions that came back, slow drifts: one function
that is constant between jumps, fitted to all pairs of neighbours. Why so, and how often it errs: docs/verdicts.md."""

import enum
import functools
import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..releases.axis import Axis
from . import special
from .levels import LEAST_VARIANCE, Array, Fitted, on_one_thread
from .series import RANK, TIMES, History, Pairs, Series, Verdict
from .verdicts import ERROR_RATE, LEAST_LIKE, Change, verdicts_of

NEWEST_ERROR = 0.01  # chance that an unchanged series shows a jump at its newest release: asked once for each
HISTORY_ERROR = 0.03  # of the rest of the axis: half each for jumps and drifts, divided by the places that are tried
SMALLEST = 0.02  # a change below 2 % is not told: two builds of the same source differ by that much
EXCURSION = 8  # releases that an excursion lasts at most, about a year; what lasts longer was two steps
BACK = 0.5  # an excursion has come back where what is left of it is less than half of it, and chance explains that
DRIFT = 8  # releases that a drift takes at least, about a year of PyTorch; what is faster is told as steps
DRIFT_GRID = 4  # drifts are tried from and to every fourth release: where they begin cannot be told
CARRIED = 0.5  # a drift of which one pair of neighbours carries this share or more is none
CONFIDENCE = 1 - ERROR_RATE  # of the interval of a change's ratio


class Kind(enum.Enum):
    STEP = "step"
    EXCURSION = "excursion"
    DRIFT = "drift"


@dataclass(frozen=True)
class Net:
    """What a series did over the axis: its levels at both ends, their `ratio`, and of each told step between which releases
    it is, and its share; `wide` are the later ones of those between which others lie."""

    first: str
    before: float
    after: float
    ratio: float | None
    parts: tuple[tuple[str, str, float], ...] = ()
    slowly: bool = False
    low: float | None = None
    high: float | None = None
    wide: Sequence[str] = ()


@dataclass(frozen=True)
class Step:
    """A step between `old` and `new`, an excursion from `new` to `until`, or a drift. `before` and `after` are levels in
    the series' unit; `ratio` is what this alone made of it, None from zero, at `CONFIDENCE`. `is_wide`: whether
    releases lie between `old` and `new`, so that any of them may have made the step."""

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
    is_wide: bool = False

    @property
    def verdict(self) -> Verdict:
        """The direction in the words of a verdict: slower or faster, hungrier or leaner, more or fewer."""
        return self.series.direction(self.after > self.before if self.ratio is None else self.ratio > 1)

    @property
    def change(self) -> Change:
        """From `old` to `new`."""
        return Change(self.series, self.verdict, self.before, self.after, self.ratio, self.low, self.high)


def of_history(history: History, axis: Axis) -> list[Step]:
    """All that happened in one environment, newest first, then what costs. Releases without a number are left out."""
    exact = ((series, _numbers(of, axis)) for series, of in history.items() if not series.varies)
    found = [step for series, numbers in exact for step in _exact(series, numbers)]
    with on_one_thread():
        found += [step for fit in history.fits.values() for chain in chains(fit, axis) for step in _told(chain, fit)]
    found = [_with_what_is_wide(step, axis) for step in found]
    return sorted(found, key=lambda step: (-axis.position(step.until), RANK[step.verdict.kind], -_size(step)))


def _with_what_is_wide(step: Step, axis: Axis) -> Step:
    def is_wide(old: str, new: str) -> bool:
        return axis.position(new) - axis.position(old) > 1

    net = step.net and replace(step.net, wide=[new for old, new, _ in step.net.parts if is_wide(old, new)])
    return replace(step, is_wide=is_wide(step.old, step.new), net=net)


def costliest(found: Iterable[Step]) -> list[Step]:
    """The rise in time or peak memory by the largest factor, one of each question, most first."""
    rises = [step for step in found if step.series.metric in ("time", "peak_memory") and step.ratio and step.ratio > 1]
    most = {step.series.question: step for step in sorted(rises, key=_size)}
    return sorted(most.values(), key=_size, reverse=True)


def largest(found: Iterable[Step]) -> list[Step]:
    """The largest change of each question at each release, of times, bytes and each count apart; none of zero."""
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
    for fit in history.fits.values():
        for series, parts in _parts(fit, axis):
            tags = (tuple(fit.releases[fit.levels[series].releases[place]] for place in part) for part in parts)
            found.update(tags if len(parts) > 1 else ())
    return [
        f"No session ties {', '.join(part)} to other releases in {count} series: times there are compared separately."
        for part, count in sorted(found.items(), key=lambda item: axis.position(item[0][0]))
    ]


def _numbers(releases: Mapping[str, Pairs], axis: Axis) -> dict[str, list[float]]:
    """Those of each release that has any, in the axis' order."""
    tags = sorted((tag for tag in releases if tag in axis), key=axis.position)
    told = {tag: [case.number for _, case in releases[tag] if case.number is not None] for tag in tags}
    return {tag: of for tag, of in told.items() if of}


def _exact(series: Series, numbers: Mapping[str, Sequence[float]]) -> list[Step]:
    """Every change of what does not vary. A release whose launches disagree is passed over, as one without a number is."""
    if series.margin:
        known = _within(numbers, series.margin)
    else:  # releases of which enough launches give one number
        least = 1 if series.is_counted else 2
        known = [(tag, of[0], tag) for tag, of in numbers.items() if len(set(of)) == 1 and len(of) >= least]
    tags, levels, medians_of = zip(*known, strict=True) if known else ((), (), ())
    jumps = [k for k in range(len(levels) - 1) if levels[k] != levels[k + 1]]
    shapes = _shapes(jumps, lambda pair, back: levels[back + 1] == levels[pair])
    if not shapes:
        return []
    ratios = [
        levels[new] / levels[old] if levels[old] > 0 and levels[new] >= 0 else None for _, (old, new, _) in shapes
    ]
    made = zip(shapes, ratios, strict=True)
    told = ((*at, of) for (kind, at), of in made if kind is Kind.STEP and of is not None)
    parts = tuple((medians_of[old], tags[new], of) for old, new, _, of in told)
    is_product = all(level > 0 for level in levels)  # what passed through zero is none of its steps
    net = Net(tags[0], levels[0], levels[-1], levels[-1] / levels[0] if is_product else None, parts)
    return [
        Step(series, kind, medians_of[old], tags[new], tags[end], levels[old], levels[new], of, of, of, net)
        for (kind, (old, new, end)), of in zip(shapes, ratios, strict=True)
    ]


def _within(numbers: Mapping[str, Sequence[float]], margin: float) -> list[tuple[str, float, str]]:
    """Releases with their level, and the release of which that is the median: one before if all launches lie within
    `margin` of it, a new one if all lie beyond."""
    known: list[tuple[str, float, str]] = []
    limit = 1 + margin
    for release, values in numbers.items():
        if len(values) < 2:
            continue
        levels = list(dict.fromkeys((level, of) for _, level, of in reversed(known)))[:2]
        same = [one for one in levels if max(values) <= one[0] * limit and min(values) * limit >= one[0]]
        if same:
            known.append((release, *same[0]))
        elif not levels or min(values) > levels[0][0] * limit or max(values) * limit < levels[0][0]:
            known.append((release, statistics.median(values), release))
    return known


@dataclass(frozen=True)
class Chain:
    """A time on releases that rounds tie, in the axis' order: `tags` and `level` (n, logarithms), `covariance` and
    `freedom` of differences (n x n), and the verdict on each pair of neighbours (n - 1). Its levels are a sum of shapes
    (jumps, drifts), by generalised least squares beside one free height."""

    series: Series
    tags: list[str]
    level: Array
    covariance: Array
    freedom: Array
    verdicts: list[Verdict]

    @functools.cached_property
    def information(self) -> Array:
        """What the levels tell beside the height (n x n)."""
        whole = np.linalg.pinv(self.covariance, hermitian=True).astype(float)
        ones = np.ones(len(self.tags))
        height = whole @ ones
        return np.asarray(whole - np.outer(height, height) / (ones @ height))

    @functools.cached_property
    def jumps(self) -> Array:
        """A jump at each pair as a shape (n x n - 1)."""
        return np.tri(len(self.tags), len(self.tags) - 1, -1)

    @functools.cached_property
    def prices(self) -> Array:
        """What a jump at each pair must explain, as a squared normal deviate: nothing if its verdict is a change."""
        pairs = len(self.verdicts)
        asked = np.full(pairs, special.ndtri(HISTORY_ERROR / 4 / max(pairs - 1, 1)) ** 2)
        asked[-1] = special.ndtri(NEWEST_ERROR / 2) ** 2
        asked[[verdict in TIMES for verdict in self.verdicts]] = 0.0
        asked[[verdict is Verdict.SAME for verdict in self.verdicts]] = math.inf
        return asked

    def explained(self, shapes: Array) -> tuple[Array, Array]:
        """Sizes of shapes (n x k), and their covariance (k x k)."""
        inner = shapes.T @ self.information @ shapes
        covariance = np.linalg.pinv(inner, hermitian=True).astype(float)
        return covariance @ (shapes.T @ self.information @ self.level), covariance

    def gain(self, shapes: Array, more: Array) -> Array:
        """What each of `more` (n x m) would explain beside `shapes`, and in which direction: a signed squared deviate."""
        right, cross = more.T @ self.information @ self.level, more.T @ self.information @ shapes
        own = np.einsum("nm,nk,km->m", more, self.information, more)
        if shapes.shape[1]:
            sizes, covariance = self.explained(shapes)
            right = right - cross @ sizes
            own = own - np.einsum("mk,kl,ml->m", cross, covariance, cross)
        return np.where(own > 1e-9, right * np.abs(right) / np.maximum(own, 1e-9), 0.0)

    def cost(self, shapes: Array, jumps: Sequence[int]) -> float:
        """What shapes leave unexplained, and the price of the jumps among them."""
        left = self.level - (shapes @ self.explained(shapes)[0] if shapes.shape[1] else 0.0)
        return float(left @ self.information @ left) + float(self.prices[list(jumps)].sum())

    def contrast(self, weights: Array) -> tuple[float, float]:
        """Of the levels, and its standard error."""
        return float(weights @ self.level), math.sqrt(max(float(weights @ self.covariance @ weights), LEAST_VARIANCE))

    def between(self, old: int, new: int) -> Array:
        """The weights of the difference of two levels."""
        weights = np.zeros(len(self.tags))
        weights[new], weights[old] = 1.0, -1.0
        return weights

    def ramp(self, first: int, last: int) -> Array:
        """A drift as a shape (n x 1)."""
        return np.clip((np.arange(len(self.tags)) - first) / (last - first), 0, 1)[:, None]


def _parts(fit: Fitted, axis: Axis, least: float = 0.0) -> Iterator[tuple[Series, list[list[int]]]]:
    """Of each series of a question the places, in its levels and in the axis' order, of releases that rounds tie together,
    directly or by others; their launches are worth `least` at least."""
    on_axis = (i for i, tag in enumerate(fit.releases) if tag in axis)
    order = sorted(on_axis, key=lambda i: axis.position(fit.releases[i]))
    for (series, of), like in zip(fit.levels.items(), fit.like_launches, strict=True):
        places, parts = [int(np.searchsorted(of.releases, i)) for i in order if 0 < like[i] >= least], []
        while places:
            parts.append([place for place in places if of.tied[places[0], place]])
            places = [place for place in places if place not in parts[-1]]
        yield series, parts


def chains(fit: Fitted, axis: Axis) -> Iterator[Chain]:
    """The chains of each series of a question; releases whose launches tell no noise (`LEAST_LIKE`) are passed over."""
    judged = functools.cache(functools.partial(verdicts_of, fit))
    for series, parts in _parts(fit, axis, LEAST_LIKE):
        of = fit.levels[series]
        for part in parts:
            if len(part) > 1:
                tags, block = [fit.releases[of.releases[place]] for place in part], np.ix_(part, part)
                verdicts = [judged(*pair)[series] or Verdict.CANT_TELL for pair in itertools.pairwise(tags)]
                yield Chain(series, tags, of.level[part], of.covariance[block], of.freedom[block], verdicts)


def as_normal(t: float, freedom: float) -> float:
    """The squared normal deviate that is as unlikely as Student's `t`."""
    return float(special.ndtri(special.stdtr(freedom, -abs(t)))) ** 2


def jumps_of(chain: Chain, beside: Array) -> list[int]:
    """The pairs at which the level jumps, beside other shapes (n x k): changes, then what explains its price."""
    pairs, direct = len(chain.verdicts), np.diff(chain.level)
    chosen = [k for k in range(pairs) if chain.prices[k] == 0]
    for _ in range(2 * pairs):
        gain = chain.gain(np.hstack([beside, chain.jumps[:, chosen]]), chain.jumps)
        enough = [
            as_normal(math.sqrt(abs(of)), chain.freedom[k, k + 1]) - price if of * direct[k] > 0 else -math.inf
            for k, (of, price) in enumerate(zip(gain, chain.prices, strict=True))
        ]
        best = max((k for k in range(pairs) if k not in chosen), key=lambda k: enough[k], default=None)
        if best is None or enough[best] <= 0:
            break
        chosen.append(best)
        chosen = _still_needed(chain, beside, chosen)
    return sorted(chosen)


def _still_needed(chain: Chain, beside: Array, chosen: list[int]) -> list[int]:
    """`chosen` without the jumps that the others explain."""
    kept = [*chosen]
    for k in chosen:
        others = [other for other in kept if other != k]
        (gain,) = chain.gain(np.hstack([beside, chain.jumps[:, others]]), chain.jumps[:, [k]])
        if as_normal(math.sqrt(abs(gain)), chain.freedom[k, k + 1]) < chain.prices[k]:
            kept = others
    return kept


def drift_of(chain: Chain) -> tuple[int, int] | None:
    """The ends of the drift, whose slow change explains more than its price and more than jumps would."""
    n = len(chain.tags)
    grid = sorted({*range(n - 1, -1, -DRIFT_GRID), 0})
    windows = [(first, last) for first in grid for last in grid if last - first >= DRIFT]
    decided = [k for k, verdict in enumerate(chain.verdicts) if verdict in TIMES]
    price = special.ndtri(HISTORY_ERROR / 4 / max(len(windows), 1)) ** 2
    windows = [window for window in windows if _is_drift(chain, *window, decided, price)]
    if not windows:
        return None
    jumps = jumps_of(chain, np.zeros((n, 0)))
    best, most = None, chain.cost(chain.jumps[:, jumps], jumps)
    for first, last in windows:
        ramp = chain.ramp(first, last)
        within = jumps_of(chain, ramp)
        if not _is_drift(chain, first, last, within, price):
            continue
        spent = price + chain.cost(np.hstack([ramp, chain.jumps[:, within]]), within)
        if spent < most:
            best, most = (first, last), spent
    return best


def drift_weights(chain: Chain, first: int, last: int, jumps: Iterable[int]) -> Array:
    """The difference of a drift's ends less that of each pair within it at which the level jumps."""
    inside = [chain.between(k, k + 1) for k in jumps if first <= k < last]
    return chain.between(first, last) - sum(inside, np.zeros(len(chain.tags)))


def _is_drift(chain: Chain, first: int, last: int, jumps: Iterable[int], price: float) -> bool:
    """Whether a drift is large and sure beside these jumps, no pair carries CARRIED of it, no verdict denies it."""
    total, error = chain.contrast(drift_weights(chain, first, last, jumps))
    size, pairs = abs(total), np.diff(chain.level)[first:last]
    against = Verdict.FASTER if total > 0 else Verdict.SLOWER
    return (
        size >= math.log1p(SMALLEST)
        and as_normal(total / error, float(chain.freedom[first, last])) >= price
        and float(np.abs(pairs).max()) < CARRIED * size
        and against not in chain.verdicts[first:last]
    )


def _told(chain: Chain, fit: Fitted) -> list[Step]:
    """What happened to a series on a chain of releases."""
    drift = drift_of(chain)
    n = len(chain.tags)
    ramp = np.zeros((n, 0)) if drift is None else chain.ramp(*drift)
    sizes = _sizes(chain, jumps_of(chain, ramp), ramp)
    shapes = _shapes(sizes, functools.partial(_came_back, chain, sizes))
    found = [(kind, at, *sizes[at[0]]) for kind, at in shapes]
    if drift:
        total, error = chain.contrast(drift_weights(chain, *drift, sizes))
        found.append((Kind.DRIFT, (*drift, drift[1]), total, _half(chain, error, *drift)))
    if not found:
        return []
    shown = [fit.shown(chain.series, tag) for tag in chain.tags]
    total, error = chain.contrast(chain.between(0, n - 1))
    half = _half(chain, error, 0, n - 1)
    ends = math.exp(total - half), math.exp(total + half)
    jumps = [(*at[:2], math.exp(moved)) for kind, at, moved, _ in found if kind is Kind.STEP]
    parts = tuple((chain.tags[old], chain.tags[new], ratio) for old, new, ratio in jumps)
    slowly = any(kind is Kind.DRIFT for kind, *_ in found)  # excursions left nothing of themselves
    net = Net(chain.tags[0], shown[0], shown[-1], math.exp(total), parts, slowly, *ends)
    made = []
    for kind, (old, new, until), moved, half in found:
        tags = chain.tags[old], chain.tags[new], chain.tags[until]
        ratio = math.exp(moved), math.exp(moved - half), math.exp(moved + half)
        made.append(Step(chain.series, kind, *tags, shown[old], shown[new], *ratio, net))
    return made


def _half(chain: Chain, error: float, old: int, new: int) -> float:
    """Half of an interval at CONFIDENCE."""
    return float(special.stdtrit(chain.freedom[old, new], (1 + CONFIDENCE) / 2)) * error


Sizes = dict[int, tuple[float, float]]  # pair of neighbours -> logarithm of the jump, half its interval


def _sizes(chain: Chain, jumps: Sequence[int], ramp: Array) -> Sizes:
    """Of each jump, from all releases that it parts; where these deny a pair's own verdict, from the pair alone."""
    if not jumps:
        return {}
    moved, covariance = chain.explained(np.hstack([chain.jumps[:, list(jumps)], ramp]))
    found: Sizes = {}
    for at, k in enumerate(jumps):
        of, error = float(moved[at]), math.sqrt(max(float(covariance[at, at]), LEAST_VARIANCE))
        changed = chain.verdicts[k] in TIMES
        if changed and of * (chain.level[k + 1] - chain.level[k]) <= 0:
            of, error = chain.contrast(chain.between(k, k + 1))
        if changed or abs(of) >= math.log1p(SMALLEST):
            found[k] = (of, _half(chain, error, k, k + 1))
    return found


def _shapes(jumps: Iterable[int], came_back: Callable[[int, int], bool]) -> list[tuple[Kind, tuple[int, int, int]]]:
    """Jumps at pairs of neighbours as they are told, with the places of old, new and until: two of which the second, soon
    after, takes back the first are one excursion."""
    found: list[tuple[Kind, tuple[int, int, int]]] = []
    pairs = sorted(jumps)
    while pairs:
        pair = pairs.pop(0)
        if pairs and pairs[0] - pair <= EXCURSION and came_back(pair, pairs[0]):
            found.append((Kind.EXCURSION, (pair, pair + 1, pairs.pop(0))))
        else:
            found.append((Kind.STEP, (pair, pair + 1, pair + 1)))
    return found


def _came_back(chain: Chain, sizes: Sizes, pair: int, back: int) -> bool:
    """Whether the jump at `back` takes that at `pair` back: less than BACK is left, and chance explains that."""
    there, again = sizes[pair][0], sizes[back][0]
    if there * again >= 0:
        return False
    left, error = chain.contrast(chain.between(pair, back + 1))
    least = BACK * min(abs(there), abs(again))
    return abs(left) < least and abs(left) <= max(_half(chain, error, pair, back + 1), math.log1p(chain.series.margin))
