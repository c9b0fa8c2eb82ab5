"""Which cases are worth another round, and how long will it take until all is told?"""

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ..analysis.code import TIMES as TOLD
from ..analysis.levels import REPEATED, USUAL, weight
from ..analysis.series import History, Observation, Series, Verdict, history, observations
from ..analysis.verdicts import TOLD as VERDICTS
from ..analysis.verdicts import Change, compare_history, error_rates, evidence_between
from ..store.launches import Launch
from .choice import START

MOST_ROUNDS = 40
"""A series that is forecast to need more rounds comes last: it would take the time of all others."""

FORECAST_FROM = 5
"""Rounds from which the forecast is believed; it rests on the noise seen in them."""

TIMES = (1.5, 2, 3, 4, 6, 8, 12, 16)
"""Times as many rounds that are tried for a forecast."""

UNDECIDED = VERDICTS.index(Verdict.CANT_TELL)
"""Its code in what is judged."""

LUCK = 1.0
"""Standard deviations that further rounds may move an estimate to where it is told: one time in six they do."""

LEAST_FILLED, MOST_FILLED, SHARE = 2.0, 4.0, 1 / 8
"""A round of few cases is filled with others until they take such a share of the seconds left, within so many times as long
as to start its interpreters: a launch then costs a half to a quarter more than its own seconds."""

Case = tuple[str, tuple[str, ...]]
"""A question (`selection.Selection`) and its parameters."""


class More(NamedTuple):
    """What a case still needs: `releases` and forecast `rounds`, which tell so many `undecided` times."""

    releases: tuple[str, ...]
    rounds: float
    undecided: int


@dataclass(frozen=True)
class Effort:
    """What is left to do after some rounds: `cases` and what each needs; of `series` times looked at, `undecided` are worth
    it, `hopeless` are not, and `needless` ones belong to a change that is known to be elsewhere. `cost` is seconds of one
    case on one release, by question, and `took` by case where that is known."""

    cases: Mapping[Case, More]
    series: int
    undecided: int
    hopeless: int
    cost: Mapping[str, float]
    needless: int = 0
    single: int = 0
    """Of the undecided those of which a release has a single launch, and which a second may decide."""
    took: Mapping[Case, float] = field(default_factory=dict)
    starting: float = START
    """Seconds that a round takes besides its cases: interpreters are started beside each other."""
    doubtful: Mapping[Case, More] = field(default_factory=dict)
    """Cases of which only `hopeless` times are left that LUCK would tell: they fill rounds, and time that is left."""
    unreached: Sequence[str] = ()  # cases for which there was no time

    @property
    def seconds(self) -> float:
        """How long deciding all of it takes."""
        return self._all_rounds(self.cases)

    def within(self, seconds: float) -> dict[Case, More]:
        """What to measure next in so many seconds: everything where two such rounds fit, else what can be decided, cheapest
        first, and others that fill the round, those in doubt last, of which only those that luck would tell in that time."""
        doubtful = {case: more for case, more in self.doubtful.items() if self._all_rounds([case]) <= seconds}
        every = {**self.cases, **doubtful}
        if 2 * (self.starting + sum(map(self._once, every))) <= seconds:
            return every
        cheapest = sorted(self.cases, key=lambda case: self._seconds(case) / self.cases[case].undecided)
        found: dict[Case, More] = {}
        for case in cheapest:
            if self._all_rounds([*found, case]) <= seconds:
                found[case] = self.cases[case]
        filled = min(max(SHARE * seconds, LEAST_FILLED * self.starting), MOST_FILLED * self.starting)
        most = min(filled if found else math.inf, seconds - self.starting)
        for case in [*cheapest, *doubtful]:
            if case not in found and sum(map(self._once, [*found, case])) <= most:
                found[case] = every[case]
        return found

    def _all_rounds(self, cases: Collection[Case]) -> float:
        rounds = max((self._of(case).rounds for case in cases), default=0.0)
        return sum(map(self._seconds, cases)) + self.starting * rounds

    def _seconds(self, case: Case) -> float:
        return self._of(case).rounds * self._once(case)

    def _of(self, case: Case) -> More:
        return self.cases.get(case) or self.doubtful[case]

    def _once(self, case: Case) -> float:
        return len(self._of(case).releases) * self.took.get(case, self.cost.get(case[0], 0.0))


def left_words(left: Sequence[Effort], command: str) -> str:
    """What would decide what some sessions left: `command`, with the minutes of the forecast; empty for nothing."""
    said = []
    undecided, hopeless = sum(one.undecided for one in left), sum(one.hopeless for one in left)
    if undecided:
        minutes = max(1, math.ceil(sum(one.seconds for one in left) / 60))
        them = "it" if undecided == 1 else "them"
        once = f"measures {them} once more, which is the least that tells a time"
        does = once if sum(one.single for one in left) == undecided else f"would probably decide {them}"
        said.append(f"{_times(undecided)} inconclusive. {command} --budget {minutes}m {does}.")
    if hopeless:
        said.append(f"{_times(hopeless)} too noisy or too near the margin. Another session may decide: add --again.")
    return " ".join(said)


def _times(count: int) -> str:
    return "1 time is" if count == 1 else f"{count} times are"


REST = 0.2
"""The share of a change over several releases that may be elsewhere than in the pair that holds it, in logarithms."""


def effort(
    launches: Iterable[Launch],
    pairs: Iterable[tuple[str, str]],
    divides: bool = False,
    took: Mapping[Case, float] | None = None,
    starting: float = START,
    beside: Iterable[Launch] = (),
) -> Effort:
    """What is left to tell of `pairs` of releases, an old one and a new, of what has `launches`; those `beside` them, of
    other sessions, say something of it too. Where that `divides` what they are neighbours of, a series of which one pair is
    known to hold most of the whole change has nothing left to tell. `took`: seconds of a case on one release, where that is
    known better than of its question; `starting`: those that a round takes besides."""
    launches, pairs = list(launches), list(pairs)
    found = history([*beside, *launches])
    ours = {(launch.benchmark, case.parameters) for launch in launches for case in launch.cases}
    told = _divided(found, pairs) if divides else set()
    needed, with_luck = forecast(found, pairs), functools.cache(lambda: forecast(found, pairs, LUCK))
    rounds: dict[Case, float] = defaultdict(float)
    of_case: Counter[Case] = Counter()
    wanted: dict[Case, dict[str, None]] = defaultdict(dict)
    doubtful: dict[Case, More] = {}
    series = undecided = hopeless = needless = single = 0
    for pair in pairs:
        for change in compare_history(found, *pair):
            one = change.series
            if not one.varies or (one.benchmark, one.parameters) not in ours or None in (change.old, change.new):
                continue
            series += 1
            if change.verdict is not Verdict.CANT_TELL:
                continue
            if change.series in told:
                needless += 1
                continue
            taken = min(change.launches)
            known = needed.get((change.series, pair), math.inf)
            wants = (
                taken * known if taken > 1 else first_forecast(change.series, observations(found[change.series], *pair))
            )
            case = change.series.benchmark.rpartition(".")[0], change.series.parameters
            if taken >= FORECAST_FROM and wants > MOST_ROUNDS:
                hopeless += 1
                if lucky := with_luck().get((change.series, pair)):
                    so_far = doubtful.get(case, More((), math.inf, 0))
                    both = dict.fromkeys((*so_far.releases, *pair))
                    doubtful[case] = More(tuple(both), min(so_far.rounds, (lucky - 1) * taken), 0)
                continue
            undecided += 1
            single += taken < 2 and wants == 2
            of_case[case] += 1
            wanted[case] |= dict.fromkeys(pair)
            rounds[case] = max(rounds[case], min(wants, MOST_ROUNDS) - taken, 1.0)
    cases = {case: More(tuple(tags), rounds[case], of_case[case]) for case, tags in wanted.items()}
    of = cases, series, undecided, hopeless, cost(launches), needless, single, took or {}, starting
    return Effort(*of, {case: more for case, more in doubtful.items() if case not in cases})


def _divided(found: History, pairs: Sequence[tuple[str, str]]) -> set[Series]:
    """The series of which one of `pairs` has a change that is most of what the first and the last release differ by."""
    changes = compare_history(found, pairs[0][0], pairs[-1][1])
    whole = {change.series: change for change in changes if change.verdict in TOLD}
    return {
        change.series
        for pair in pairs
        for change in compare_history(found, *pair)
        if change.series in whole and _holds(change, whole[change.series])
    }


def _holds(change: Change, whole: Change) -> bool:
    """Whether a change of one pair is most of the whole one, the same way, and not more than it."""
    if change.verdict is not whole.verdict or not change.ratio or not whole.ratio:
        return False
    return abs(math.log(whole.ratio / change.ratio)) <= REST * abs(math.log(whole.ratio))


def forecast(
    found: History, pairs: Sequence[tuple[str, str]], luck: float = 0.0
) -> dict[tuple[Series, tuple[str, str]], float]:
    """(series, pair) -> the least of TIMES as many rounds that would decide it, for what is not decided and will be, the
    estimate as it is or moved by `luck` standard deviations of what the rounds do to it."""
    needed: dict[tuple[Series, tuple[str, str]], float] = {}
    for fit in found.fits.values():
        series = list(fit.levels)
        now = evidence_between(fit, pairs)
        waiting = now.judged(error_rates(now)).code == UNDECIDED
        for times in TIMES:
            if not waiting.any():
                break
            after = evidence_between(fit.with_rounds(times), pairs)
            # An error may be infinite, and no estimate moves by more than a factor of e.
            moved = luck * np.sqrt(np.maximum(np.minimum(now.error, 1.0) ** 2 - after.error**2, 0.0))
            farther, nearer = np.abs(after.shift) + moved, np.maximum(np.abs(after.shift) - moved, 0.0)
            either = [replace(after, shift=shift) for shift in (farther, nearer)]
            told = waiting & np.any([of.judged(error_rates(of)).code != UNDECIDED for of in either], axis=0)
            needed |= {(series[i], pairs[j]): times for i, j in np.argwhere(told)}
            waiting &= ~told
    return needed


OFTEN = 2.0
"""The standard errors that must lie within the margin for SAME, with some ten degrees of freedom."""


def first_forecast(series: Series, launches: Iterable[Observation]) -> float:
    """About how many rounds will call a time the same, two at least, by what the turns of one round show of their noise."""
    noise = [USUAL[True].noise ** 2 / weight(one.variance) for one in launches]
    room = (math.log1p(series.margin) / OFTEN) ** 2 - 2 * REPEATED**2
    return max(2.0, math.ceil(2 * sum(noise) / max(len(noise), 1) / room))


def cost(launches: Iterable[Launch]) -> dict[str, float]:
    """Seconds that one case takes on one release in one round, by question, what was asked again counted in."""
    seconds: dict[str, float] = defaultdict(float)
    cases: dict[str, set[object]] = defaultdict(set)
    for launch in launches:
        if launch.duration:
            question = launch.benchmark.rpartition(".")[0]
            seconds[question] += launch.duration
            cases[question].update((launch.release, launch.round, case.parameters) for case in launch.cases)
    return {question: seconds[question] / len(cases[question]) for question in seconds if cases[question]}
