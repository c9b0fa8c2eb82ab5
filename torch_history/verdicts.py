"""What does an upgrade from A to B cost? One verdict per series, in a first form, from the sessions that hold both.

A launch is one number, the median of its samples. Counts and bytes do not vary, so any difference is real; times are
compared as means of logarithms over launches by Welch's interval.
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

from .launches import Case, Launch

MARGIN = 0.05
"""A time within 5 % is called the same: below it, on a shared machine, the interpreter's own speed wanders."""

CONFIDENCE = 0.95
"""Of the interval of a ratio of times."""


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
        metric = self.benchmark.rpartition(".")[2]
        if metric.endswith(("_time", "_call")):
            return "seconds"
        if metric.endswith("over_median"):
            return "ratio"
        if metric.endswith("stalls"):
            return "stalls"
        return "bytes" if metric.endswith(("memory", "retained")) else ""

    @property
    def varies(self) -> bool:
        """Whether launches of the same release differ: times do, counts and bytes do not."""
        return self.unit in ("seconds", "ratio")


@dataclass(frozen=True)
class Change:
    """One series from one release to another. `ratio` is new / old with its interval [low, high]; `spread` is the largest
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


def compare(launches: Iterable[Launch], old: str, new: str) -> list[Change]:
    """A verdict for every series that either release has: what costs first, what needs no thought last, then by series."""
    changes = []
    for series, releases in history(launches).items():
        before, after = releases.get(old, []), releases.get(new, [])
        if before or after:
            changes.append(judge(series, before, after))
    return sorted(changes, key=lambda change: RANK[change.verdict.kind])


def judge(series: Series, before: list[tuple[Launch, Case]], after: list[tuple[Launch, Case]]) -> Change:
    """The verdict on one series from what two releases' launches gave."""
    shared = {launch.session for launch, _ in before} & {launch.session for launch, _ in after}
    if shared:
        before = [pair for pair in before if pair[0].session in shared]
        after = [pair for pair in after if pair[0].session in shared]
    apart = bool(before and after and not shared)
    olds = [case.number for _, case in before if case.number is not None]
    news = [case.number for _, case in after if case.number is not None]
    counts = (len(olds), len(news))
    if not olds or not news:
        return _missing(series, before, after, olds, news)
    old, new = statistics.median(olds), statistics.median(news)
    if not series.varies:
        return _exact(series, olds, news, counts)
    ratio, low, high = _ratio(olds, news)
    if apart:
        said = "no session measured both"
        return Change(series, Verdict.CANT_TELL, old, new, ratio, launches=counts, reason=said)
    spread = max((_variation(values) for values in (olds, news) if len(values) > 1), default=None)
    if low is None or high is None:
        verdict = Verdict.CANT_TELL
    elif low > 1 + MARGIN:
        verdict = Verdict.SLOWER
    elif high < 1 / (1 + MARGIN):
        verdict = Verdict.FASTER
    elif low >= 1 / (1 + MARGIN) and high <= 1 + MARGIN:
        verdict = Verdict.SAME
    else:
        verdict = Verdict.CANT_TELL
    return Change(series, verdict, old, new, ratio, low, high, spread, counts)


def _ratio(olds: list[float], news: list[float]) -> tuple[float, float | None, float | None]:
    """Ratio of geometric means, new / old, and its Welch interval; no interval from a single launch."""
    logs = [[math.log(value) for value in values] for values in (news, olds)]
    ratio = math.exp(statistics.fmean(logs[0]) - statistics.fmean(logs[1]))
    if min(len(values) for values in logs) < 2:
        return ratio, None, None
    if max(statistics.pstdev(values) for values in logs) == 0:
        return ratio, ratio, ratio
    interval = stats.ttest_ind(logs[0], logs[1], equal_var=False).confidence_interval(CONFIDENCE)
    return ratio, math.exp(interval.low), math.exp(interval.high)


def _variation(values: list[float]) -> float:
    return statistics.stdev(values) / statistics.fmean(values)


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


def _missing(
    series: Series,
    before: list[tuple[Launch, Case]],
    after: list[tuple[Launch, Case]],
    olds: list[float],
    news: list[float],
) -> Change:
    def why(pairs: list[tuple[Launch, Case]]) -> str:
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
