"""What are the verdicts of all pairs of releases of a lane? Those of `torch-history compare`, all made at once. Pairs are
numbered like `itertools.combinations`."""

import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..analysis import verdicts
from ..analysis.power import alone_in, tied
from ..analysis.series import History, Pairs, Series
from ..analysis.verdicts import Change, Evidence, Judged, error_rates, evidence_between
from . import typical

Pair = tuple[str, str]


class Timed(NamedTuple):
    """A time: what is `judged` of its question on all pairs, its `row` there, and its level on each release as it is
    `shown`, NaN where it has none."""

    judged: Judged
    row: int
    shown: list[float]


class EveryPair:
    """All comparisons of the releases `tags` of one lane, oldest first."""

    def __init__(self, found: History, tags: Sequence[str]) -> None:
        self.found, self.tags = found, [*tags]
        self.pairs: list[Pair] = [*itertools.combinations(self.tags, 2)]
        self.typical: dict[str, typical.Means] = {}
        self.shifts: dict[str, dict[str, float]] = {}
        self.timed: dict[Series, Timed] = {}
        known: list[tuple[list[Series], Evidence]] = []
        clocks = typical.main(found, typical.TIMES)
        for (_, question), fit in found.fits.items():
            evidence = evidence_between(fit, self.pairs)
            known.append((list(fit.levels), evidence))
            said = evidence.judged(error_rates(evidence))
            self.typical[question] = typical.means(list(fit.levels), evidence, clocks)
            self.shifts[question] = dict(zip(fit.sessions, fit.shifts.tolist(), strict=True))
            for row, (series, of) in enumerate(fit.levels.items()):
                known_on = {fit.releases[place] for place in of.releases}
                shown = [fit.shown(series, tag) if tag in known_on else math.nan for tag in self.tags]
                self.timed[series] = Timed(said, row, shown)
        self.states = {series: _states(series, of, self.tags) for series, of in found.items()}
        self._untied: dict[Series, dict[tuple[int | None, int | None], Change]] = {one: {} for one in found}
        self.alone = [alone_in((tied(*of, number) for of in known), {*found}) for number in range(len(self.pairs))]

    def changes(self, number: int) -> Iterator[Change]:
        """What `compare_history` says of each series on a pair, by its number; of times without the counts of launches."""
        old, new = self.pairs[number]
        a, b = self.tags.index(old), self.tags.index(new)
        for series, states in self.states.items():
            timed = self.timed.get(series)
            at = (timed.row, number) if timed else (0, 0)
            if timed and (change := timed.judged.change(at, series, timed.shown[a], timed.shown[b])):
                yield change
            elif states[a] is not None and states[b] is not None:
                yield self._change(series, timed, a, b)

    def one_sided(self, number: int) -> int:
        """How many series were measured on one release of a pair alone."""
        old, new = (self.tags.index(tag) for tag in self.pairs[number])
        return sum((of[old] is None) != (of[new] is None) for of in self.states.values())

    def _change(self, series: Series, timed: Timed | None, a: int, b: int) -> Change:
        """From the release at place `a` to that at `b`, which were both measured."""
        known, key = self._untied[series], (self.states[series][a], self.states[series][b])
        if key not in known:
            known[key] = verdicts.untied(self.found, series, self.tags[a], self.tags[b])
        found = known[key]
        if timed and (found.old or found.new):
            levels = (timed.shown[at] if one else one for one, at in ((found.old, a), (found.new, b)))
            return verdicts.at_levels(found, *levels)
        return found


def _states(series: Series, of: Mapping[str, Pairs], tags: Sequence[str]) -> list[int | None]:
    """The different things that were seen of a series, as a number for each release, None where it was not measured: of two
    releases that are the same, any third is judged alike."""
    places: dict[Hashable, int] = {}
    return [places.setdefault(_seen(series, of[tag]), len(places)) if of.get(tag) else None for tag in tags]


def _seen(series: Series, pairs: Pairs) -> Hashable:
    """All that `judge` sees of a release; of a time that has numbers, that it has them, and whether there is one alone."""
    launch, case = pairs[-1]
    numbers = tuple(case.number for _, case in pairs if case.number is not None)
    if numbers:
        return ("single" if len(numbers) == 1 else "several") if series.varies else numbers
    device = launch.facts.get("device")
    named = launch.release if case.unmeasured or device == "recorder" else ""
    return case.reason, case.unmeasured, case.failed, case.unavailable, device, named


def key(series: Series) -> list[str]:
    """What a series is called within a lane; sorts as series do."""
    return [series.benchmark, *series.parameters]
