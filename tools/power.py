"""What do the verdicts of the history find, how often do intervals hold, and what does the other lane deny?

`python -m tools.power` prints it for the two lanes of the machine with the longest history, by question, in about a minute.

Changes are planted into stored results: one alone in an otherwise quiet pair of patch releases, as a person meets it most,
and into a fifth and a half of the series of a question at once. A planted change moves the estimate of one series by its
logarithm and leaves its error alone, because all launches of a release move together. So no lane is fitted again; a test
holds that against a lane that was.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contract.metrics import STEADY
from tools.detectors import ROOT, ordered, stored_lanes
from torch_history.analysis import special
from torch_history.analysis.calibration import IN_SINGLE
from torch_history.analysis.levels import Fitted
from torch_history.analysis.series import History, Series, Verdict
from torch_history.analysis.verdicts import TOLD, Evidence, error_rates, evidence_between
from torch_history.releases.axis import Axis

SIZES = (0.05, 0.1)
"""Of planted changes, as shares; calls that are made once get IN_SINGLE times as much, as in a calibration."""

SHARES = (0.2, 0.5)
"""Of the series of a question that a change is planted into at once."""

DRAWS = 20
"""Times that these series are drawn anew for each question and pair."""

FAR = 16
"""Releases between two that are far apart."""

CONFIDENCE = 0.95

OTHER_BUILDS = ("v2.0.0", "v2.0.1")
"""Releases whose wheels of the two lanes are known to be other builds, which differ: they say nothing of chance."""

ONE_BINARY = frozenset("v1.13.1 v2.1.0 v2.1.1 v2.1.2 v2.2.2 v2.4.0 v2.4.1 v2.5.0 v2.6.0 v2.8.0".split())  # noqa: SIM905
"""Releases whose wheels of the two lanes hold the same libtorch_cpu, byte for byte."""

NOTHING_NEW = {("v2.3.0", "v2.3.1"), ("v2.5.0", "v2.5.1"), ("v2.12.0", "v2.12.1"), ("v2.14.0", "v2.14.1")}
"""Patch releases whose libtorch_cpu differs from the one before in version strings at most: what is told there is false."""

Pair = tuple[str, str]
ALL = "all steady times"


def is_steady(series: Iterable[Series]) -> bool:
    """Whether a process can repeat these times, and does not make the calls only once."""
    return all(each.measure.measured == STEADY for each in series)


@dataclass
class Shares:
    """Question and what is counted -> how often it was so, of how many. Steady times count for all questions, too."""

    counts: dict[tuple[str, str], tuple[int, int]] = field(default_factory=lambda: defaultdict(lambda: (0, 0)))

    def add(self, series: Sequence[Series], what: str, so: NDArray[np.bool_]) -> None:
        """Counts of series of one question."""
        for name in (series[0].question, *[ALL] * is_steady(series)):
            hits, of = self.counts[name, what]
            self.counts[name, what] = hits + int(so.sum()), of + so.size

    def share(self, question: str, what: str) -> float:
        hits, of = self.counts[question, what]
        return hits / of if of else math.nan

    def table(self, head: str) -> Iterator[str]:
        """Markdown: a row for each question, a column for each thing that is counted."""
        columns = list(dict.fromkeys(what for _, what in self.counts))
        questions = sorted({question for question, _ in self.counts} - {ALL})
        yield f"| {head} | {' | '.join(columns)} |"
        yield "|---|" + "---:|" * len(columns)
        for question in (*questions, ALL):
            cells = [(self.share(question, what), self.counts[question, what][1]) for what in columns]
            yield f"| {question} | {' | '.join(f'{100 * share:.1f} % of {of}' if of else '' for share, of in cells)} |"


def neighbours(found: History, axis: Axis) -> list[Pair]:
    """Each release of a lane and the next."""
    return [*itertools.pairwise(sorted({tag for of in found.values() for tag in of if tag in axis}, key=axis.position))]


def is_patch(pair: Pair) -> bool:
    """Whether both are of one line, as 2.1.1 and 2.1.2."""
    return pair[0].rpartition(".")[0] == pair[1].rpartition(".")[0]


def directions(evidence: Evidence) -> NDArray[np.int_]:
    """1 where evidence is told as slower, -1 where as faster, else 0 (series x pairs)."""
    code = evidence.judged(error_rates(evidence)).code
    return np.select([code == TOLD.index(Verdict.SLOWER), code == TOLD.index(Verdict.FASTER)], [1, -1], 0)


def known(evidence: Evidence) -> Evidence:
    """Of one pair of releases, without the series that no rounds tie on them."""
    rows = ~np.isnan(evidence.shift[:, 0])
    parts = {name: np.asarray(getattr(evidence, name))[rows] for name in Evidence.__dataclass_fields__}
    return Evidence(**parts)


def moved(evidence: Evidence, moves: NDArray[Any]) -> Evidence:
    """That of one pair with changes planted: logarithms, of each series in each of several cases (series x cases)."""
    return replace(evidence, shift=evidence.shift + moves)


def power(fits: Iterable[Fitted], pairs: Sequence[Pair]) -> Shares:
    """Of changes that are planted into patch releases, how many are told in their direction: alone, and in every pair,
    whatever is told of other series there; and what is told of series without any: between releases that hold nothing new,
    and beside planted changes."""
    found, random = Shares(), np.random.default_rng(0)
    patches = [pair for pair in pairs if is_patch(pair) and not set(pair) & set(OTHER_BUILDS)]
    for fit, pair in itertools.product(fits, patches):
        evidence = known(evidence_between(fit, [pair]))
        if not len(evidence.shift):
            continue
        series, told = list(fit.levels), directions(evidence)[:, 0] != 0
        quiet = told.sum() - told == 0
        planted = {size: math.log1p(size if is_steady(series) else IN_SINGLE * size) for size in SIZES}
        for size, move in planted.items():
            one = lone(evidence, move)
            found.add(series, f"{size:+.0%} alone", one[:, quiet])
            found.add(series, f"{size:+.0%} in any pair", one)
        for share, (size, move) in itertools.product(SHARES, planted.items()) if not told.any() else ():
            ways = drawn(len(told), share, random)
            after = directions(moved(evidence, ways * move))
            found.add(series, f"{size:+.0%} in {share:.0%}", (after == ways)[ways != 0])
            found.add(series, "false beside these", (after != 0)[ways == 0])
        if pair in NOTHING_NEW:
            found.add(series, "false where nothing is new", told)
    return found


def lone(evidence: Evidence, move: float) -> NDArray[np.bool_]:
    """Whether a change of one series alone, a logarithm, would be told in its direction (slower and faster x series)."""
    alone = np.diag(np.full(len(evidence.shift), move))
    ways = [np.diag(directions(moved(evidence, alone * way))) == way for way in (1, -1)]
    return np.array(ways)


def drawn(series: int, share: float, random: np.random.Generator) -> NDArray[np.int_]:
    """DRAWS times a share of the series, each slower (1) or faster (-1); the others are 0 (series x draws)."""
    chosen = np.argsort(random.random((series, DRAWS)), axis=0) < round(share * series)
    return chosen * random.choice([-1, 1], (series, DRAWS))


@dataclass(frozen=True)
class Both:
    """What two lanes say of the same series of a question (rows) and pairs of releases (columns)."""

    series: list[Series]
    pairs: list[Pair]
    here: Evidence
    there: Evidence

    @property
    def compared(self) -> NDArray[np.bool_]:
        """What both have."""
        return ~np.isnan(self.here.shift + self.there.shift)

    @property
    def agree(self) -> NDArray[np.bool_]:
        """Whether the difference of the two lies in its interval, of Welch's degrees of freedom."""
        one, other = self.here.error**2, self.there.error**2
        freedom = (one + other) ** 2 / (one**2 / self.here.freedom + other**2 / self.there.freedom)
        half = special.stdtrit(freedom, (1 + CONFIDENCE) / 2) * np.sqrt(one + other)
        return np.abs(self.here.shift - self.there.shift) <= half


def of_both(here: Mapping[str, Fitted], there: Mapping[str, Fitted], pairs: list[Pair]) -> Iterator[Both]:
    """By question; fits by question."""
    for question in sorted(here.keys() & there.keys()):
        fits = here[question], there[question]
        places = [{(one.benchmark, one.parameters): i for i, one in enumerate(fit.levels)} for fit in fits]
        same = [key for key in places[0] if key in places[1]]
        every = [evidence_between(fit, pairs) for fit in fits]
        rows = [[of[key] for key in same] for of in places]
        series = [list(fits[0].levels)[row] for row in rows[0]]
        yield Both(series, pairs, *(_rows(of, row) for of, row in zip(every, rows, strict=True)))


def _rows(evidence: Evidence, rows: list[int]) -> Evidence:
    return Evidence(*(np.asarray(getattr(evidence, name))[rows] for name in Evidence.__dataclass_fields__))


def coverage(both: Iterable[Both], what: str, found: Shares) -> None:
    """How often intervals of two lanes hold their difference."""
    for of in both:
        columns = np.array([not set(pair) & set(OTHER_BUILDS) for pair in of.pairs])
        one = np.array([set(pair) <= ONE_BINARY for pair in of.pairs])
        found.add(of.series, what, of.agree[of.compared & columns])
        found.add(of.series, f"{what}, one binary", of.agree[of.compared & columns & one])


def denials(both: Iterable[Both], found: Shares) -> None:
    """Of changes that a lane tells and the other decides, how many that denies: it says SAME or the opposite."""
    for of in both:
        codes = [each.judged(error_rates(each)).code for each in (of.here, of.there)]
        changed = [np.isin(code, [TOLD.index(Verdict.SLOWER), TOLD.index(Verdict.FASTER)]) for code in codes]
        decided = [each | (code == TOLD.index(Verdict.SAME)) for each, code in zip(changed, codes, strict=True)]
        builds = np.array([bool(set(pair) & set(OTHER_BUILDS)) for pair in of.pairs])
        one = np.array([set(pair) <= ONE_BINARY for pair in of.pairs])
        for words, columns in (("neighbours", ~builds), ("one binary", one), ("with 2.0.0 or 2.0.1", builds)):
            denied = [(codes[0] != codes[1])[changed[i] & decided[1 - i] & columns] for i in (0, 1)]
            found.add(of.series, words, np.concatenate(denied))


def verdicts(fits: Iterable[Fitted], pairs: list[Pair]) -> Shares:
    """The verdicts on times of neighbours."""
    found = Shares()
    for fit in fits:
        evidence = evidence_between(fit, pairs)
        code = evidence.judged(error_rates(evidence)).code
        timed = code[code != 0]
        for words, of in (("SAME", (1,)), ("INCONCLUSIVE", (2,)), ("changed", (3, 4))):
            found.add(list(fit.levels), words, np.isin(timed, of))
    return found


def page(lanes: Mapping[str, History], axis: Axis) -> str:
    """Markdown."""
    parts = []
    fits = {lane: {question: fit for (_, question), fit in found.fits.items()} for lane, found in lanes.items()}
    pairs = {lane: neighbours(found, axis) for lane, found in lanes.items()}
    for lane, of in fits.items():
        parts += [
            f"## Planted changes that are found, {lane}\n",
            *power(of.values(), pairs[lane]).table("question"),
            "",
        ]
        parts += [f"## Verdicts on neighbours, {lane}\n", *verdicts(of.values(), pairs[lane]).table("question"), ""]
    for one, other in itertools.combinations(fits, 2):
        common = [pair for pair in pairs[one] if pair in pairs[other]]
        tags = list(dict.fromkeys(itertools.chain(*common)))
        far = [pair for i, old in enumerate(tags) for pair in ((old, new) for new in tags[i + FAR :])]
        near, held, denied = [*of_both(fits[one], fits[other], common)], Shares(), Shares()
        coverage(near, "neighbours", held)
        coverage(of_both(fits[one], fits[other], far), "far pairs", held)
        denials(near, denied)
        parts += [f"## Intervals that hold the difference of {one} and {other}\n", *held.table("question"), ""]
        parts += [f"## Changes of {one} or {other} that the other denies\n", *denied.table("question"), ""]
    return "\n".join(parts)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    axis = Axis.load(ROOT / "releases.toml")
    print(page({lane: ordered(found, axis) for lane, found in stored_lanes().items()}, axis))


if __name__ == "__main__":
    main()
