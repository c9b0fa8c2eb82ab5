"""What may be done instead? The variant of the same question that does the same on a release and takes surely less."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..analysis import claims
from ..analysis.findings import CPP
from ..analysis.labels import labels
from ..analysis.series import History, Series
from ..analysis.verdicts import ERROR_RATE, ratios_of, times

if TYPE_CHECKING:
    from .data import Lane


class Rival(NamedTuple):
    """A series that takes `ratio` as much as the one that it may stand for, [low, high] where it is a time."""

    series: Series
    ratio: float
    low: float
    high: float


Rivals = Mapping[Series, Rival | None]
"""Each series that another may stand for, and what takes surely least; None where none takes less by more than BORDER."""


def rivals(found: History, tags: Sequence[str]) -> Mapping[str, Rivals]:
    """Those of each release."""
    alike: dict[tuple[str, tuple[str, ...]], list[Series]] = defaultdict(list)
    for series in found:
        if series.parameters and series.unit in ("seconds", "bytes"):
            alike[series.benchmark, series.parameters[1:]].append(series)
    known: dict[str, dict[Series, Rival | None]] = {tag: {} for tag in tags}
    for members in alike.values():
        claim = claims.CLAIMS.get(members[0].question)
        for variants in claim.instead if claim else ():
            group = [one for one in members if one.variant in variants]
            for own in group:
                for tag, best in _best(found, own, [one for one in group if one != own], tags):
                    known[tag][own] = best
    return known


def _best(
    found: History, own: Series, others: Sequence[Series], tags: Sequence[str]
) -> Iterator[tuple[str, Rival | None]]:
    """Of each release on which one of `others` was measured, the one that takes surely least."""
    fit = found.fits.get((own.environment, own.question)) if own.varies else None
    others = [one for one in others if fit is None or one in fit.levels]
    if fit is not None and others and own in fit.levels:
        evidence = ratios_of(fit, own, others)
        count = np.maximum((~np.isnan(evidence.shift)).sum(axis=0), 1)
        shift, half, tags = evidence.shift, evidence.half(1 - 2 * ERROR_RATE / count), fit.releases
    else:
        shift = np.array([[_less(found, own, other, tag) for tag in tags] for other in others])
        half = np.zeros(shift.shape)
    for column, tag in enumerate(tags):
        if others and not np.isnan(shift[:, column]).all():
            at = int(np.nanargmin(shift[:, column] + half[:, column]))
            ends = (shift[at, column] + sign * half[at, column] for sign in (0, -1, 1))
            best = Rival(others[at], *(math.exp(end) for end in ends))
            yield tag, best if best.high < 1 / claims.BORDER else None


def _less(found: History, own: Series, other: Series, tag: str) -> float:
    """The logarithm of how many times as much another takes on a release, of numbers that do not vary; NaN without both."""
    numbers = [[case.number for _, case in found[one].get(tag, ()) if case.number] for one in (own, other)]
    return math.log(numbers[1][-1] / numbers[0][-1]) if all(numbers) and not own.varies else math.nan


def sentence(series: Sequence[Series], known: Rivals, tag: str, than: str = "") -> str:
    """What to do instead of `series` of one metric on a release, `than` if that is to be said; empty where nothing is."""
    unit = series[0].unit
    if unit not in ("seconds", "bytes"):
        return ""
    less = "is surely faster" if unit == "seconds" else "needs less memory"
    if not any(one in known for one in series):
        return f"No variant of this question that does the same can be compared on {tag}."
    better = [rival for one in series if (rival := known.get(one))]
    if not better:
        return f"No variant of this question that does the same {less} on {tag}."
    plain = [rival for rival in better if not rival.series.variant.startswith(CPP)] or better
    [(variant, _)] = Counter(rival.series.variant for rival in plain).most_common(1)
    of = [rival for rival in better if rival.series.variant == variant]
    factors = sorted(1 / rival.ratio for rival in of)
    said = dict.fromkeys(times(factor) for factor in (factors[0], factors[-1]))
    means = labels().get(series[0].question, {}).get("variants", {}).get(variant, "")
    start = f"On {tag} `{variant}`{f' ({means})' if means else ''} does the same "
    factor = f"{' to '.join(said)} times"
    start += f"{factor} faster{than and f' than {than}'}" if unit == "seconds" else f"with {factor} less memory"
    if len(series) == 1:
        return f"{start} ({times(1 / of[0].high)} to {times(1 / of[0].low)})." if series[0].varies else f"{start}."
    return f"{start} in {len(of)} of {len(series)} cases."


def quickest(question: str, lanes: Iterable[Lane]) -> str:
    """What is quicker than the variant that the advice praises, in a sentence, on the first of `lanes` where one is; empty
    where there is none. Findings say the same."""
    than = claims.CLAIMS[question].rivals
    if than is None:
        return ""
    for lane in lanes:
        tag = lane.releases[-1]
        timed = (one for one in lane.rivals[tag] if (one.question, one.metric) == (question, "time"))
        of = [one for one in timed if one.parameters[0] == repr(than.praises) and than.size in one.parameters[1]]
        if any(lane.rivals[tag][one] for one in of):
            return sentence(of, lane.rivals[tag], tag, labels()[question]["variants"][than.praises])
    return ""
