"""What does an upgrade from A to B cost? One verdict per series, from the rounds in which both were measured.

A launch is one number, the median of its samples. Counts and bytes do not vary, so any difference is real. Times are
compared on logarithms of launches, never of samples, and corrected for the number of series looked at: docs/verdicts.md.
"""

from __future__ import annotations

import enum
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from asv import util
from scipy import stats

from .launches import Case, Launch, unit_of

MARGIN = 0.05
"""A time within 5 % is called the same: below it, on a shared machine, the interpreter's own speed wanders."""

ERROR_RATE = 0.05
"""Of the series of one comparison called FASTER or SLOWER, at most this share is expected to lie within the margin; and one
series that lies on the margin is called SAME this often. One in twenty, as is usual: the margin does the rest, since a
series that did not change at all lies far inside it."""

POWER = 0.8
"""How often a change of the size `detectable` would have been told: four times of five, as is usual in planning."""

PAIRED_FROM = 6
"""Rounds of one session from which each is compared with itself. Pairs have half the degrees of freedom: at an error rate of
0.1 %, 3 pairs ask for a shift of 31.6 standard errors, 3 launches against 3 for 8.6; at 6 it is 6.9 against 4.6, which pays
where the rounds' own drift makes half of the spread between launches."""

TRIMMED_FROM = 12
"""Rounds from which the fastest and the slowest are left out: there it costs 8 % of the critical value, at 8 rounds 27 %."""

BOUND = 1e6
"""Ends of an interval beyond this ratio are given as this: they say that nothing is known."""

NOT_MEASURED = "it was not measured"
"""The reason of a series that nobody asked for in one of the two releases, such as another size."""

VARYING_UNITS = ("seconds", "ratio", "stalls")
"""Units of what differs from launch to launch and is measured in each; all else is exact. Stalls are counted, so they are
not compared by an interval: they changed where all launches agree on that."""


class Verdict(enum.Enum):
    """A verdict and the word of its class: better, worse, same or can't tell."""

    FASTER = ("FASTER", "better")
    SLOWER = ("SLOWER", "worse")
    LEANER = ("LEANER", "better")
    HUNGRIER = ("HUNGRIER", "worse")
    FEWER = ("FEWER", "changed")
    MORE = ("MORE", "changed")
    SAME = ("SAME", "same")
    CANT_TELL = ("CAN'T TELL", "can't tell")
    BROKE = ("BROKE", "worse")
    FIXED = ("FIXED", "better")
    NEVER_RAN = ("NEVER RAN", "never ran")

    @property
    def words(self) -> str:
        return self.value[0]

    @property
    def kind(self) -> str:
        return self.value[1]


RANK = {"worse": 0, "better": 1, "changed": 2, "can't tell": 3, "same": 4, "never ran": 5}
"""Order of kinds of verdicts where they are listed."""


@dataclass(frozen=True, order=True)
class Series:
    """What is followed over releases: one benchmark with one set of parameters in one environment."""

    environment: str
    benchmark: str
    parameters: tuple[str, ...]

    @property
    def words(self) -> str:
        """As a person says it: `intersection peak memory, eager small`."""
        question, _, metric = self.benchmark.partition(".")
        metric = metric.rpartition(".")[2].removeprefix("track_").replace("_", " ")
        parameters = " ".join(parameter.strip("'") for parameter in self.parameters)
        return f"{question.replace('_', ' ')} {metric}, {parameters}".rstrip()

    @property
    def unit(self) -> str:
        return unit_of(self.benchmark)

    @property
    def varies(self) -> bool:
        """Whether launches of the same release differ: times do, counts and bytes do not."""
        return self.unit in ("seconds", "ratio")


@dataclass(frozen=True)
class Change:
    """One series from one release to another. `ratio` is new / old with its interval [low, high], which holds the truth with
    `confidence`; `detectable` is the smallest ratio that these launches would have told from SAME; `spread` is the largest
    coefficient of variation between launches of one release; `reason` stands where a number is missing."""

    series: Series
    verdict: Verdict
    old: float | None = None
    new: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    spread: float | None = None
    launches: tuple[int, int] = (0, 0)
    reason: str = ""
    confidence: float | None = None
    detectable: float | None = None


@dataclass(frozen=True)
class Evidence:
    """What launches say about log(new / old): an estimate, its standard error, and Student's degrees of freedom."""

    shift: float
    error: float
    freedom: float

    @property
    def p_value(self) -> float:
        """Of the hypothesis that the ratio lies within the margin: twice the smaller of its two one-sided tests."""
        distance = abs(self.shift) - math.log1p(MARGIN)
        if self.error == 0:
            return float(distance <= 0)
        return min(1.0, 2 * float(stats.t.sf(distance / self.error, self.freedom)))

    def interval(self, confidence: float) -> tuple[float, float]:
        """Of the ratio new / old."""
        half = float(stats.t.ppf((1 + confidence) / 2, self.freedom)) * self.error
        return _bounded(self.shift - half), _bounded(self.shift + half)

    def detectable(self, error_rate: float) -> float:
        """The smallest ratio that is called a change at `error_rate` with a probability of POWER, beside such noise."""
        quantiles = stats.t.ppf([1 - error_rate / 2, POWER], self.freedom)
        return _bounded(math.log1p(MARGIN) + float(sum(quantiles)) * self.error)


def _bounded(logarithm: float) -> float:
    limit = math.log(BOUND)
    return math.exp(min(max(logarithm, -limit), limit))


def history(launches: Iterable[Launch]) -> dict[Series, dict[str, list[tuple[Launch, Case]]]]:
    """Series -> release -> its launches in order of time, only those of the series' newest version.

    asv may take several rounds in one start of the interpreter; they are one launch, and their samples are pooled.
    """
    found: dict[Series, dict[str, dict[str, tuple[Launch, Case]]]] = defaultdict(lambda: defaultdict(dict))
    launches = sorted(launches, key=lambda launch: launch.started_at)
    newest = {(launch.environment, launch.benchmark): launch.version for launch in launches}
    for launch in launches:
        if newest[launch.environment, launch.benchmark] != launch.version:
            continue
        for case in launch.cases:
            series = Series(launch.environment, launch.benchmark, case.parameters)
            of_release = found[series][launch.release]
            _, before = of_release.get(launch.launch, (launch, case))
            if before is not case and before.samples:
                case = replace(before, samples=before.samples + case.samples)
            of_release[launch.launch] = (launch, case)
    return {
        series: {release: list(of_release.values()) for release, of_release in found[series].items()}
        for series in sorted(found)
    }


_Pairs = list[tuple[Launch, Case]]


def compare(launches: Iterable[Launch], old: str, new: str) -> list[Change]:
    """A verdict for every series that either release has: what costs first, what needs no thought last, then by series.

    All of them are looked at together: each more makes an interval wider, so ask about no more than is wanted.
    """
    found = [
        (series, _shared(releases.get(old, []), releases.get(new, [])))
        for series, releases in history(launches).items()
        if old in releases or new in releases
    ]
    rounds = {series: _rounds(*sides) if series.varies else {} for series, sides in found}
    evidence = {series: weigh(of_series) for series, of_series in rounds.items()}
    error_rate = error_rate_of_each([item for item in evidence.values() if item])
    changes = [
        _timed(series, *sides, rounds[series], evidence[series], error_rate)
        if rounds[series]
        else _judge(series, *sides)
        for series, sides in found
    ]
    return sorted(changes, key=lambda change: RANK[change.verdict.kind])


def _shared(before: _Pairs, after: _Pairs) -> tuple[_Pairs, _Pairs]:
    """The launches of the sessions that hold both; all of them where no session does."""
    shared = {launch.session for launch, _ in before} & {launch.session for launch, _ in after}
    if not shared:
        return before, after
    return [pair for pair in before if pair[0].session in shared], [pair for pair in after if pair[0].session in shared]


def _rounds(before: _Pairs, after: _Pairs) -> dict[tuple[str, int], tuple[list[float], list[float]]]:
    """(session, round) -> the numbers of the old release and of the new, for the rounds that gave both."""
    rounds: dict[tuple[str, int], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for side, pairs in enumerate((before, after)):
        for launch, case in pairs:
            if case.number is not None:
                rounds[launch.session, launch.round][side].append(case.number)
    return {key: sides for key, sides in rounds.items() if all(sides)}


def weigh(rounds: dict[tuple[str, int], tuple[list[float], list[float]]]) -> Evidence | None:
    """What `rounds`, (session, round) -> numbers of the old release and of the new, say; None where one launch is all.

    Few rounds of one session: Welch's test on the logarithms. Many, or several sessions: one logarithm of a ratio per
    round and Student's test of these, trimmed where they are many (Tukey and McLaughlin 1963, Yuen 1974).
    """
    logs = [[[math.log(number) for number in side] for side in sides] for sides in rounds.values()]
    if len({session for session, _ in rounds}) == 1 and len(rounds) < PAIRED_FROM:
        olds, news = ([log for sides in logs for log in sides[side]] for side in (0, 1))
        if min(len(olds), len(news)) < 2:
            return None
        shift = statistics.fmean(news) - statistics.fmean(olds)
        error = math.sqrt(sum(statistics.variance(side) / len(side) for side in (olds, news)))
        freedom = float(stats.ttest_ind(news, olds, equal_var=False).df) if error else 1.0
        return Evidence(shift, error, freedom)
    shifts = sorted(statistics.fmean(news) - statistics.fmean(olds) for olds, news in logs)
    if len(shifts) < 2:
        return None
    cut = int(len(shifts) >= TRIMMED_FROM)
    kept = shifts[cut : len(shifts) - cut]
    spread = statistics.stdev([*kept[:cut], *kept, *kept[len(kept) - cut :]])
    error = spread * math.sqrt(len(shifts)) / len(kept)
    return Evidence(statistics.fmean(kept), error, len(kept) - 1)


def error_rate_of_each(evidence: list[Evidence]) -> float:
    """The error rate of one series that keeps the false among those called changed to ERROR_RATE of them.

    Benjamini and Hochberg (1995): ERROR_RATE x changed / looked at. Intervals at this rate are those of Benjamini and
    Yekutieli (2005), so a verdict can be read off its interval.
    """
    if not evidence:
        return ERROR_RATE
    adjusted = stats.false_discovery_control([item.p_value for item in evidence])
    return ERROR_RATE * max(1, int((adjusted <= ERROR_RATE).sum())) / len(evidence)


def _timed(
    series: Series,
    before: _Pairs,
    after: _Pairs,
    rounds: dict[tuple[str, int], tuple[list[float], list[float]]],
    evidence: Evidence | None,
    error_rate: float,
) -> Change:
    """The verdict on a time from the rounds that gave it in both releases."""
    olds, news = ([number for sides in rounds.values() for number in sides[side]] for side in (0, 1))
    found = Change(
        series,
        Verdict.CANT_TELL,
        old=statistics.median(olds),
        new=statistics.median(news),
        ratio=math.exp(_mean_log(news) - _mean_log(olds)),
        spread=max((_variation(side) for side in (olds, news) if len(side) > 1), default=None),
        launches=(len(olds), len(news)),
    )
    if evidence is None:
        return found
    confidence = 1 - error_rate
    low, high = evidence.interval(confidence)
    verdict = Verdict.CANT_TELL
    if evidence.p_value <= error_rate:
        verdict = Verdict.SLOWER if evidence.shift > 0 else Verdict.FASTER
    else:
        # Two one-sided tests at ERROR_RATE, which is to say that the interval of this confidence lies inside the margin.
        inner = evidence.interval(1 - 2 * ERROR_RATE)
        if inner[0] >= 1 / (1 + MARGIN) and inner[1] <= 1 + MARGIN:
            verdict, confidence, (low, high) = Verdict.SAME, 1 - 2 * ERROR_RATE, inner
    return replace(
        found,
        verdict=verdict,
        ratio=math.exp(evidence.shift),
        low=low,
        high=high,
        confidence=confidence,
        detectable=evidence.detectable(error_rate),
    )


def _mean_log(numbers: list[float]) -> float:
    return statistics.fmean(math.log(number) for number in numbers)


def _variation(values: list[float]) -> float:
    return statistics.stdev(values) / statistics.fmean(values)


def _judge(series: Series, before: _Pairs, after: _Pairs) -> Change:
    """The verdict on an exact number, or on a series that no round gave in both releases."""
    olds = [case.number for _, case in before if case.number is not None]
    news = [case.number for _, case in after if case.number is not None]
    counts = (len(olds), len(news))
    if not olds or not news:
        return _missing(series, before, after, olds, news)
    if not series.varies:
        return _exact(series, olds, news, counts)
    old, new = statistics.median(olds), statistics.median(news)
    ratio = math.exp(_mean_log(news) - _mean_log(olds))
    sessions = [{launch.session for launch, _ in pairs} for pairs in (before, after)]
    said = "no round gave both a number" if sessions[0] & sessions[1] else "no session measured both"
    return Change(series, Verdict.CANT_TELL, old, new, ratio, launches=counts, reason=said)


def _exact(series: Series, olds: list[float], news: list[float], counts: tuple[int, int]) -> Change:
    old, new = olds[-1], news[-1]
    ratio = new / old if old else (1.0 if new == old else None)
    if len(set(olds)) > 1 or len(set(news)) > 1:
        said = f"the count differs between launches: {sorted(set(olds))} and {sorted(set(news))}"
        return Change(series, Verdict.CANT_TELL, old, new, ratio, launches=counts, reason=said)
    more, fewer = (Verdict.HUNGRIER, Verdict.LEANER) if series.unit == "bytes" else (Verdict.MORE, Verdict.FEWER)
    if series.unit in VARYING_UNITS and min(counts) < 2:
        return Change(series, Verdict.CANT_TELL, old, new, ratio, launches=counts, reason="one launch each")
    verdict = Verdict.SAME if new == old else more if new > old else fewer
    return Change(series, verdict, old, new, ratio, ratio, ratio, 0.0, counts)


def _missing(series: Series, before: _Pairs, after: _Pairs, olds: list[float], news: list[float]) -> Change:
    def why(pairs: _Pairs) -> str:
        return (pairs[-1][1].failed or pairs[-1][1].unavailable) if pairs else NOT_MEASURED

    if not before or not after:
        return Change(series, Verdict.CANT_TELL, reason=why([]))
    if olds:
        return Change(series, Verdict.BROKE, old=statistics.median(olds), launches=(len(olds), 0), reason=why(after))
    if news:
        return Change(series, Verdict.FIXED, new=statistics.median(news), launches=(0, len(news)), reason=why(before))
    return Change(series, Verdict.NEVER_RAN, reason=why(after))


def human(value: float | None, unit: str) -> str:
    """A number with its unit as a person reads it: `57.9ms`, `240,000,000 B`, `53`."""
    if value is None:
        return ""
    if unit == "seconds":
        return str(util.human_value(value, "seconds"))
    if unit == "ratio":
        return f"{value:.2f}"
    return f"{value:,.0f}" + (" B" if unit == "bytes" else "")
