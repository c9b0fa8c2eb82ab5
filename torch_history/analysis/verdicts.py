"""What does an upgrade from A to B cost? A verdict per series, from rounds that measured both: docs/verdicts.md."""

import functools
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from asv_runner.util import human_time
from numpy.typing import NDArray

from contract.metrics import MARGIN, NO_GROWTH, RESIDENT
from contract.own_file import CLASSES

from ..store.launches import Launch
from . import special
from .levels import Array, Fitted
from .series import RANK, TIMES, History, Pairs, Series, Verdict, history, observations

FALSE_RATE = 0.01  # share of false ones among changes: low, as sessions look at what is undecided again and again
ERROR_RATE = 0.05  # a series that lies on the margin is called SAME this often. One in twenty, as is usual.
POWER = 0.8  # how often a change of the size `detectable` would have been told, as is usual in planning
LATE_SHARE = 0.5  # look k after the first has this over k of the error rate: each is a chance of a false change
LEAST_LIKE = 1.5  # launches of one weight that those of a release must be worth to tell anything
BOUND = 1e12  # ends of an interval beyond this ratio are given as this: nothing is known. No bytes rise by as much
SINGLE = "a single launch is no evidence of a time; measure at least two"  # of a time that a release has once
ONE = "a single launch of a release cannot be confirmed"  # of a number that is no count
UNTIED = "no round has a number for both, and no chain of rounds with common releases connects them"
NOT_MEASURED = "it was not measured"  # of a series that nobody asked for in one release, such as another size


@dataclass(frozen=True)
class Change:
    """`old` and `new` are levels as shown; `ratio` (new / old) has an interval that holds the truth with `confidence`;
    `detectable` is the smallest ratio that would have been told from SAME; `disturbed` counts launches. `difference` is
    the interval of new - old, and `least_growth` what each call would have had to leave, of growth alone."""

    series: Series
    verdict: Verdict
    old: float | None = None
    new: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    launches: tuple[int, int] = (0, 0)
    reason: str = ""
    confidence: float | None = None
    detectable: float | None = None
    disturbed: int = 0
    difference: tuple[float, float] | None = None
    least_growth: float | None = None

    @property
    def factor(self) -> float | None:
        """The ratio, of growth as evidence has it."""
        return max(self.new or 0.0, NO_GROWTH) / max(self.old or 0.0, NO_GROWTH) if self.difference else self.ratio

    @property
    def within_builds(self) -> bool:
        """Whether it is a changed time that two builds of one source may differ by."""
        changed, build = self.verdict in TIMES, self.series.build
        return changed and build is not None and self.ratio is not None and max(self.ratio, 1 / self.ratio) <= build


@dataclass(frozen=True)
class Evidence:
    """What launches say about log(new / old): estimate, error, Student's degrees of freedom, margin, and how often it
    was looked at. Each a number or an array (series x pairs of releases), NaN where nothing compares two releases."""

    shift: Array
    error: Array
    freedom: Array
    margin: Array | float = MARGIN
    looks: Array | int = 1

    @property
    def p_value(self) -> Array:
        """Of the hypothesis that nothing changed: Student's two-sided test, corrected for how often it was looked at."""
        chance: Array = 2 * special.stdtr(self.freedom, -np.abs(self.shift) / self.error)
        return np.minimum(1.0, chance * penalty(self.looks))

    @property
    def beyond(self) -> NDArray[np.bool_]:
        """Whether the estimate lies beyond the margin."""
        return np.abs(self.shift) > np.log1p(self.margin)

    def half(self, confidence: Array | float) -> Array:
        """Of the interval that holds the logarithm of the ratio with this confidence."""
        return special.stdtrit(self.freedom, (1 + np.asarray(confidence)) / 2) * self.error

    def interval(self, confidence: float) -> tuple[Array, Array]:
        """Of the ratio new / old."""
        half = self.half(confidence)
        return bounded(self.shift - half), bounded(self.shift + half)

    def judged(self, error_rate: Array | float) -> "Judged":
        """Changed at this error rate, SAME by two one-sided tests, or neither, by intervals that are rounded up."""
        of_look = error_rate / penalty(self.looks)
        exact, margin = self.half(1 - of_look), np.log1p(self.margin)
        half, half_of_same = rounded_up(exact), rounded_up(self.half(1 - 2 * ERROR_RATE))
        changed = self.beyond & (np.abs(self.shift) > half)
        same = ~changed & (np.abs(self.shift) + half_of_same <= margin)
        way = np.where(self.shift > 0, TOLD.index(Verdict.SLOWER), TOLD.index(Verdict.FASTER))
        code = np.where(changed, way, np.where(same, TOLD.index(Verdict.SAME), TOLD.index(Verdict.CANT_TELL)))
        often = special.ndtri(POWER) * np.sqrt(self.error**2 + exact**2 / (2 * self.freedom))  # Johnson and Welch 1940
        return Judged(
            np.where(np.isnan(self.shift), 0, code).astype(np.uint8),
            self.shift,
            np.where(same, half_of_same, half),
            np.where(same, 1 - 2 * ERROR_RATE, 1 - of_look),
            bounded(np.maximum(margin, exact) + often),
        )


TOLD = (None, Verdict.SAME, Verdict.CANT_TELL, Verdict.SLOWER, Verdict.FASTER)
"""Verdicts on times by their codes; None where nothing compares two releases."""


@dataclass(frozen=True)
class Judged:
    """Of `Evidence`'s shape, with its `shift`: `code` in TOLD, `half` of the interval, `confidence` and `detectable`."""

    code: NDArray[np.uint8]
    shift: Array
    half: Array
    confidence: Array
    detectable: Array

    @functools.cached_property
    def ratio(self) -> tuple[Array, Array, Array]:
        """new / old, and the ends of its interval."""
        return bounded(self.shift), bounded(self.shift - self.half), bounded(self.shift + self.half)

    def change(self, at: tuple[int, int], series: Series, old: float, new: float) -> Change | None:
        """Of the series in a row on the releases in a column, with their levels; None where nothing compares the two."""
        if verdict := TOLD[self.code[at]]:
            ratio, low, high = (float(of[at]) for of in self.ratio)
            return Change(series, verdict, old, new, ratio, low, high, confidence=float(self.confidence[at]))
        return None


LEAST_STEP, STEP, STEPS = 0.002, 0.03, 255  # of halves of intervals: the least, how much more the next is, how many


def rounded_up(half: Array) -> Array:
    """The least step that is no less, infinite beyond the last one and where nothing is known."""
    with np.errstate(invalid="ignore", divide="ignore"):
        steps = np.maximum(np.ceil(np.log(half / LEAST_STEP) / STEP), 0)
    return np.where(steps < STEPS, LEAST_STEP * np.exp(STEP * np.minimum(steps, STEPS)), math.inf)


def penalty(looks: Array | int) -> Array:
    """By how much a look's error rate is divided. Looks share their rounds: 25 together spend 1.2 to 1.7 times what one
    does (simulated by tests/test_verdicts.py; Armitage, McPherson and Rowe 1969)."""
    return np.where(np.equal(looks, 1), 1.0, np.asarray(looks) / LATE_SHARE)


def bounded(logarithm: Array) -> Array:
    """The factor, BOUND at most."""
    limit = math.log(BOUND)
    return np.exp(np.clip(logarithm, -limit, limit))


def compare(launches: Iterable[Launch], old: str, new: str) -> list[Change]:
    """A verdict for every series of either release, what costs first; each makes the intervals of the others wider."""
    return compare_history(history(launches), old, new)


def compare_history(found: History, old: str, new: str) -> list[Change]:
    """`compare` on what `history` gives, which holds whole questions: their series tell each other of noise."""
    judged = {series: change for fit in found.fits.values() for series, change in _timed(fit, found, old, new)}
    changes = [judged.get(one) or untied(found, one, old, new) for one, of in found.items() if old in of or new in of]
    return sorted(changes, key=lambda change: RANK[change.verdict.kind])


def untied(found: History, series: Series, old: str, new: str) -> Change:
    """The verdict on an exact number, or on a time that no rounds tie on both releases, at its levels."""
    of = found[series]
    change = judge(series, of.get(old, []), of.get(new, []))
    fit = found.fits.get((series.environment, series.question))
    if not series.varies or fit is None:
        return change
    before, now = (fit.shown(series, tag) if one else one for one, tag in ((change.old, old), (change.new, new)))
    return at_levels(change, before, now)


def at_levels(change: Change, before: float | None, now: float | None) -> Change:
    """A change of a time at the levels of its two releases; None of one without a number."""
    return replace(change, old=before, new=now, ratio=now / before if before and now else None)


def evidence_between(fit: Fitted, pairs: Sequence[tuple[str, str]]) -> Evidence:
    """Of each series of a question, in the order of `fit.levels`, and each pair (series x pairs). A series was looked at
    again after each round beyond those that all have, one of an own file after each beyond two. A single launch is no
    evidence: NaN; nor is one beside which the others weigh next to nothing: an infinite error."""
    olds, news = (fit.places(pair[side] for pair in pairs) for side in (0, 1))
    found = [of.contrasts(olds, news) for of in fit.levels.values()]
    shift, error, freedom, rounds = map(np.array, zip(*found, strict=True))
    launches = np.array([np.bincount(of.release, minlength=len(fit.releases)) for of in fit.launches.values()])
    shift = np.where(np.minimum(launches[:, olds], launches[:, news]) < 2, math.nan, shift)
    like = fit.like_launches
    error = np.where(np.minimum(like[:, olds], like[:, news]) < LEAST_LIKE, math.inf, error)
    least = np.min(np.where((rounds > 0) & ~np.isnan(shift), rounds, np.iinfo(rounds.dtype).max), axis=0)
    is_own = next(iter(fit.levels)).benchmark.partition(".")[2].partition(".")[0] in CLASSES.values()
    least = np.minimum(least, 2) if is_own else least
    looks = np.where(rounds > 0, np.maximum(1, 1 + rounds - least), 1)
    return Evidence(shift, error, freedom, np.array([[series.margin] for series in fit.levels]), looks)


def ratios_of(fit: Fitted, own: Series, others: Sequence[Series]) -> Evidence:
    """How many times as much each of `others` takes as `own` on each release (others x releases), NaN without evidence.
    Sessions and rounds are not shared, so errors add up (degrees of freedom: Satterthwaite 1946)."""
    level, variance, freedom = (np.array(of) for of in zip(*(fit.alone(one) for one in (own, *others)), strict=True))
    like = fit.like_launches[[[*fit.levels].index(one) for one in (own, *others)]]
    level = np.where(like < LEAST_LIKE, math.nan, level)
    both = variance[1:] + variance[0]
    below = variance[1:] ** 2 / freedom[1:] + variance[0] ** 2 / freedom[0]
    return Evidence(level[1:] - level[0], np.sqrt(both), both**2 / below, own.margin)


def error_rates(evidence: Evidence) -> Array:
    """The error rate of a series that keeps the false among those called changed to FALSE_RATE, of each pair: Benjamini
    and Hochberg (1995). What lies within the margin is no discovery: true changes of 1 % would pay for false ones of 10
    %. A verdict can be read off an interval at this rate (Benjamini and Yekutieli 2005)."""
    return _error_rates(_chances(evidence))


def error_rates_if_told(evidence: Evidence) -> Array:
    """Of one pair: the error rate of each series (series x 1) if it is told, which is as if its chance were 0."""
    chances = _chances(evidence)
    return _error_rates(np.where(np.eye(len(chances), dtype=bool), 0.0, chances))[:, None]


def _chances(evidence: Evidence) -> Array:
    """What `_error_rates` counts: of estimates within the margin 1, NaN of none."""
    return np.where(np.isnan(evidence.shift) | evidence.beyond, evidence.p_value, 1.0)


def _error_rates(chances: Array) -> Array:
    """Of each column (series x columns)."""
    count, rank = (~np.isnan(chances)).sum(axis=0), np.arange(1, len(chances) + 1)[:, None]
    with np.errstate(invalid="ignore"):
        within = np.sort(chances, axis=0) * count <= FALSE_RATE * rank  # NaN comes last, and is never within
    changed = np.where(within, rank, 0).max(axis=0, initial=1)
    return FALSE_RATE * changed / np.maximum(1, count)


def verdicts_of(fit: Fitted, old: str, new: str) -> dict[Series, Verdict | None]:
    """On each series of a question, None where no chain of rounds ties the two releases."""
    evidence = evidence_between(fit, [(old, new)])
    codes = evidence.judged(error_rates(evidence)).code[:, 0]
    return {series: TOLD[code] for series, code in zip(fit.levels, codes, strict=True)}


def _timed(fit: Fitted, found: History, old: str, new: str) -> Iterator[tuple[Series, Change]]:
    """The changes of the times of a question that rounds tie on two releases."""
    evidence = evidence_between(fit, [(old, new)])
    said = evidence.judged(error_rates(evidence))
    for i, series in enumerate(fit.levels):
        seen = [observations(found[series], tag) for tag in (old, new)]
        if all(seen) and (change := said.change((i, 0), series, fit.shown(series, old), fit.shown(series, new))):
            disturbed = sum(one.disturbed for side in seen for one in side)
            counts, detectable = (len(seen[0]), len(seen[1])), float(said.detectable[i, 0])
            yield series, replace(change, launches=counts, disturbed=disturbed, detectable=detectable)


def judge(series: Series, before: Pairs, after: Pairs) -> Change:
    """The verdict on an exact number, or on a series that no round gave in both releases."""
    olds, news = ([case.number for _, case in side if case.number is not None] for side in (before, after))
    if not olds or not news:
        return _missing(series, before, after, olds, news)
    if series.varies:
        old, new, counts = statistics.median(olds), statistics.median(news), (len(olds), len(news))
        said = SINGLE if min(counts) < 2 else UNTIED
        return Change(series, Verdict.CANT_TELL, old, new, new / old, launches=counts, reason=said)
    if not series.margin:
        return _exact(series, olds, news)
    least = [case.detectable for _, case in (*before, *after) if case.detectable is not None]
    return replace(_held(series, olds, news), least_growth=max(least, default=None))


def _exact(series: Series, olds: list[float], news: list[float]) -> Change:
    old, new = olds[-1], news[-1]
    ratio = new / old if old > 0 and new >= 0 else (1.0 if new == old else None)
    found = Change(series, Verdict.CANT_TELL, old, new, ratio, launches=(len(olds), len(news)))
    if len(set(olds)) > 1 or len(set(news)) > 1:
        values = [", ".join(f"{value:.15g}" for value in sorted(set(side))) for side in (olds, news)]
        return replace(found, reason=f"the count differs between launches: [{values[0]}] and [{values[1]}]")
    if not series.is_counted and min(found.launches) < 2:
        return replace(found, reason=ONE)
    verdict = Verdict.SAME if new == old else series.direction(new > old)
    return replace(found, verdict=verdict, low=ratio, high=ratio)


def _held(series: Series, olds: list[float], news: list[float]) -> Change:
    """Of what is no time: changed where all launches lie beyond the margin, SAME where all lie within."""
    old, new, limit = statistics.median(olds), statistics.median(news), 1 + series.margin
    found = Change(series, Verdict.CANT_TELL, old, new, new / old if old else None, launches=(len(olds), len(news)))
    if min(found.launches) < 2:
        return replace(found, reason=ONE)
    if series.measure.is_growth:
        found = replace(found, difference=(min(news) - max(olds), max(news) - min(olds)))
    if min(news) > limit * max(olds) or min(olds) > limit * max(news):
        return replace(found, verdict=series.direction(new > old))
    if max(*olds, *news) <= limit * min(*olds, *news):
        return replace(found, verdict=Verdict.SAME)
    values = [", ".join(f"{value:,.0f}" for value in sorted(side)) for side in (olds, news)]
    return replace(found, reason=f"the launches scatter too much: [{values[0]}] and [{values[1]}]")


def _missing(series: Series, before: Pairs, after: Pairs, olds: list[float], news: list[float]) -> Change:
    if not before or not after:
        return Change(series, Verdict.CANT_TELL, reason=NOT_MEASURED)
    lacking = after if olds else before
    said = _unmeasured(lacking) or ("" if olds or news else _unmeasured(after))
    launch, case = lacking[-1]
    if not said and (olds or news) and case.unavailable and not case.failed:
        if series.measure.measured == RESIDENT:  # it grows at each call, so it has no level; its growth is told apart
            said = case.unavailable
        elif launch.facts.get("device") == "recorder":  # a limit of that neither breaks a release nor mends one
            said = f"{launch.release} was not counted: {case.unavailable}"
    is_exact = not series.varies and not series.margin
    old, new = ((side[-1] if is_exact else statistics.median(side)) if side else None for side in (olds, news))
    verdict = Verdict.CANT_TELL if said else Verdict.BROKE if olds else Verdict.FIXED if news else Verdict.NEVER_RAN
    reason = said or (before if news else after)[-1][1].reason
    return Change(series, verdict, old, new, launches=(len(olds), len(news)), reason=reason)


def _unmeasured(pairs: Pairs) -> str:
    """That the suite failed to measure a release, with its reason: the release is neither broken by it nor mended."""
    launch, case = pairs[-1]
    return f"{launch.release} was {case.reason}" if case.unmeasured else ""


def difference(seconds: float) -> str:
    """A difference as a person reads it, with its sign: `+950μs`, `-1.20s`."""
    return f"{'-' if seconds < 0 else '+'}{human_time(abs(seconds))}"


def times(factor: float) -> str:
    """A factor as all that is told of a change has it: `1.09`, `12`, `1,240`; of one that has no bound, `any`."""
    if factor >= BOUND / 10:
        return "any"
    return f"{factor:.2f}" if factor < 10 else f"{factor:,.0f}"


def bound(factor: float) -> str:
    """An end of an interval as `times`, with the digits that keep it apart from no change: `1.07`, `1.003`."""
    said = times(factor)
    for digits in (3, 4):
        if said in ("1.00", "1.000") and factor != 1:
            said = f"{factor:.{digits}f}"
    return said


def human(value: float | None, unit: str) -> str:
    """A number with its unit as a person reads it: `57.9ms`, `240,000,000 B`, `53`."""
    if value is None:
        return ""
    if unit == "seconds":
        return str(human_time(value))
    if unit == "ratio":
        return f"{value:.2f}"
    return f"{value:,.0f} B" if unit == "bytes" else f"{value:,.1f}".removesuffix(".0")
