"""What does an upgrade cost typically, at worst and at best? The bottom line of a pair of releases. A case counts once, by
its main time; the typical ratio is the geometric mean over the cases of a question, and of these over the questions."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..analysis.findings import MISSING, UNSEEN, amounts
from ..analysis.labels import named
from ..analysis.levels import Array
from ..analysis.series import Series, Verdict
from ..analysis.verdicts import MARGIN, Change, Evidence, bound, bounded, times

CONFIDENCE = 0.95  # of the interval of a typical ratio
UNTOLD = (UNSEEN, times(math.inf))  # factors that tell nothing beside an amount of bytes

TIMES = ("time", "median_call", "start_time")
MEMORY = ("peak_memory", "peak_allocated", "start_memory")
"""Metrics that may be a question's main time and its memory: it is the first of them that the question has."""


class Typical(NamedTuple):
    """A geometric mean of ratios new / old over so many `cases`, with an interval [low, high]."""

    ratio: float
    low: float
    high: float
    cases: int

    def as_data(self) -> dict[str, float]:
        return {**{name: rounded(number) for name, number in self._asdict().items()}, "cases": self.cases}


Means = tuple[Array, Array, Array]
"""Of one question on each pair of releases: the mean of the logarithms of its cases' ratios and half of its interval, NaN
where no case is known, and how many are."""


def rounded(number: float) -> float:
    """To five digits."""
    return float(f"{number:.5g}")


def main(series: Iterable[Series], metrics: Sequence[str]) -> set[str]:
    """The benchmarks of the main metric of each question, the first of `metrics` that it has."""
    known = {(one.question, one.metric): one.benchmark for one in series if one.metric in metrics}
    ordered = sorted(known, key=lambda key: -metrics.index(key[1]))
    return {*{question: known[question, metric] for question, metric in ordered}.values()}


def means(series: Sequence[Series], evidence: Evidence, benchmarks: set[str]) -> Means:
    """Of the `series` of a question and their evidence (series x pairs), those of `benchmarks` alone. What is not known of
    its cases may have one cause, such as a session, so the half of the interval is the mean of theirs and no less."""
    rows = [i for i, one in enumerate(series) if one.benchmark in benchmarks]
    shift, half = evidence.shift[rows], evidence.half(CONFIDENCE)[rows]
    known = np.isfinite(shift) & np.isfinite(half)
    cases = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shift, half = (np.where(known, of, 0).sum(axis=0) / cases for of in (shift, half))
    return shift, half, cases


def of_pair(questions: Mapping[str, Means], number: int) -> tuple[Typical | None, dict[str, Typical]]:
    """Of all questions together and of each. Questions are measured apart, so their halves add up in squares."""
    known = {name: [float(of[number]) for of in each] for name, each in questions.items() if each[2][number]}
    if not known:
        return None, {}
    shift, half, cases = zip(*known.values(), strict=True)
    every = _typical(sum(shift) / len(known), math.hypot(*half) / len(known), sum(cases))
    return every, {name: _typical(*of) for name, of in known.items()}


def _typical(shift: float, half: float, cases: float) -> Typical:
    ratio, low, high = bounded(np.array([shift, shift - half, shift + half])).tolist()
    return Typical(ratio, low, high, int(cases))


def words(typical: Typical, where: str) -> str:
    """By the rule of verdicts: `1.09 times slower in 6 cases (1.05 to 1.13)`; `no change in 6 cases (between 1 % faster and
    1 % slower)`, the whole interval within MARGIN; else `between 7 % faster and 11 % slower in 6 cases: inconclusive`."""
    ratio, low, high, _ = typical
    if max(high, 1 / low) <= 1 + MARGIN:
        return f"no change {where} (between {_end(low)} and {_end(high)})"
    if (low > 1 or high < 1) and max(ratio, 1 / ratio) > 1 + MARGIN:
        return _changed(typical, where)
    return f"between {_end(low)} and {_end(high)} {where}: inconclusive"


def _end(ratio: float) -> str:
    """`7 % faster`; `2.50 times slower` of what is more than twice."""
    way = "slower" if ratio >= 1 else "faster"
    if not 0.5 <= ratio <= 2:
        return f"{times(max(ratio, 1 / ratio))} times {way}"
    return f"{100 * abs(ratio - 1):.0f} % {way}"


def _changed(typical: Typical, where: str) -> str:
    ratio, low, high, _ = typical
    ends = (low, high) if ratio > 1 else (1 / high, 1 / low)
    factor, way = (ratio, "slower") if ratio > 1 else (1 / ratio, "faster")
    return f"{times(factor)} times {way}{where and f' {where}'} ({' to '.join(map(bound, ends))})"


def bottom_line(
    typical: Typical | None, changes: Sequence[Change], of: Mapping[str, Collection[str]]
) -> dict[str, Any]:
    """What is said of a pair first, each a sentence without its name; and the series that is `worst` and `best`, None where
    none changed surely. `changes` are all of the pair, `of` the benchmarks of main `times` and `memory`."""
    timed = [one for one in changes if one.series.benchmark in of["times"] and one.ratio is not None]
    slower, faster, same, undecided = (
        sorted((one for one in timed if one.verdict is verdict), key=lambda one: one.ratio or 0)
        for verdict in (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.CANT_TELL)
    )
    worst, best = slower[-1:], faster[:1]
    said = {
        "typical": words(typical, f"in {_cases(typical.cases)}") if typical else "nothing was timed on both",
        **_memory([one for one in changes if one.series.benchmark in of["memory"]]),
        "broke": _broke(changes),
    }
    if timed:
        said |= {
            "worst": "".join(map(_of_change, worst)) or "nothing is surely slower",
            "best": "".join(map(_of_change, best)) or "nothing is surely faster",
            "decided": f"{len(slower)} slower, {len(faster)} faster, {len(same)} the same, of {_cases(len(timed))}",
            "undecided": f"{len(undecided)} of {_cases(len(timed))}",
        }
    ends = {name: one[0].series if one else None for name, one in (("worst", worst), ("best", best))}
    return {"said": said, **ends}


def _of_change(change: Change) -> str:
    """`2.17 times slower in steady calls (2.11 to 2.23): x[index], index made once`"""
    ratio, low, high = (number or math.nan for number in (change.ratio, change.low, change.high))
    where = "" if change.series.metric == "start_time" else "in steady calls"
    return f"{_changed(Typical(ratio, low, high, 1), where)}: {named(change.series)}"


def _memory(changes: Sequence[Change]) -> dict[str, str]:
    """What became of the main memory, and the case that needs most more, if one needs more."""
    known = [one for one in changes if one.old is not None and one.new is not None]
    said, hungriest = [], ""
    for verdict, word in ((Verdict.LEANER, "less"), (Verdict.HUNGRIER, "more")):
        of = [one for one in known if one.verdict is verdict]
        far = [(max(one.ratio, 1 / one.ratio) if one.ratio else math.inf, named(one.series)) for one in of]
        if far:
            most, name = max(far)
            factor, hungriest = times(most), name if word == "more" else ""
            each = amounts([abs((one.new or 0) - (one.old or 0)) for one in of])
            much = f", at most {factor} times {'as much' if word == 'more' else 'less'}"
            said.append(f"{_cases(len(far))} need{'s' * (len(far) == 1)} {each} {word}{much * (factor not in UNTOLD)}")
    same = sum(one.verdict is Verdict.SAME for one in known)
    said += [f"the same in {same} of {_cases(len(known))}"] * bool(same)
    return {"memory": "; ".join(said) or "not measured on both", "hungriest": hungriest}


def _broke(changes: Iterable[Change]) -> str:
    cases = {(of.verdict, of.series.question, of.series.parameters) for of in changes if of.verdict in MISSING}
    broke, fixed = (sum(case[0] is verdict for case in cases) for verdict in MISSING)
    said = f"{_cases(broke)} no longer run{'s' * (broke == 1)}" if broke else "no case"
    return said + (f"; {_cases(fixed)} run now and did not before" if fixed else "")


def _cases(count: int) -> str:
    return f"{count:,} case{'' if count == 1 else 's'}"
