"""Which cases are worth another round, and how long will it take until all is told?"""

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
from ..analysis.verdicts import Array, Change, compare_history, error_rates, evidence_between
from ..store.launches import Launch
from .choice import START

MOST_ROUNDS = 40
"""A series that is forecast to need more rounds comes last: it would take the time of all others."""

FORECAST_FROM = 5
"""Rounds from which the forecast is believed; it rests on the noise seen in them."""

TIMES = (1.25, 1.5, 2, 3, 4, 6, 8, 12, 16)
"""Times as many rounds that are tried for a forecast."""

UNDECIDED = VERDICTS.index(Verdict.CANT_TELL)
"""Its code in what is judged."""

DRAWS = 25
"""A forecast tries the estimate as it is, and as further rounds may move it by chance; so often in all."""

LUCK = 1 / 6
"""The least share of draws that tell what is worth a round though the estimate as it is will not be told."""

LEAST_FILLED, MOST_FILLED, SHARE = 2.0, 4.0, 1 / 8
"""A round of few cases is filled with others until they take such a share of the seconds left, within so many times as long
as to start its interpreters: a launch then costs a half to a quarter more than its own seconds."""

Case = tuple[str, tuple[str, ...]]
"""A question (`selection.Selection`) and its parameters."""


class More(NamedTuple):
    """What a case still needs: `releases` and forecast `rounds`, which tell so many `undecided` times; of each draw `drawn`
    rounds, after which it is told or given up."""

    releases: tuple[str, ...]
    rounds: float
    undecided: int
    drawn: Array = np.ones(DRAWS)


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
        """How long deciding all of it takes, as often longer as shorter."""
        rounds = np.array([np.zeros(DRAWS), *(more.drawn for more in self.cases.values())])
        once = np.array([0.0, *map(self._once, self.cases)])
        return float(np.median(once @ rounds + self.starting * rounds.max(axis=0)))

    def within(self, seconds: float) -> dict[Case, More]:
        """What to measure next in so many seconds: everything where two such rounds fit, else what can be decided, cheapest
        first, and others that fill the round, those in doubt last, of which only those that luck would tell in that time."""
        doubtful = {case: more for case, more in self.doubtful.items() if self.all_rounds([case]) <= seconds}
        every = {**self.cases, **doubtful}
        if 2 * (self.starting + sum(map(self._once, every))) <= seconds:
            return every
        cheapest = sorted(self.cases, key=lambda case: self._seconds(case) / self.cases[case].undecided)
        found: dict[Case, More] = {}
        for case in cheapest:
            if self.all_rounds([*found, case]) <= seconds:
                found[case] = self.cases[case]
        filled = min(max(SHARE * seconds, LEAST_FILLED * self.starting), MOST_FILLED * self.starting)
        most = min(filled if found else math.inf, seconds - self.starting)
        for case in [*cheapest, *doubtful]:
            if case not in found and sum(map(self._once, [*found, case])) <= most:
                found[case] = every[case]
        return found

    def all_rounds(self, cases: Collection[Case]) -> float:
        """Seconds of the forecast rounds of these cases."""
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
        alone = sum(one.single for one in left) == undecided
        seconds = sum(one.all_rounds(one.cases) if alone else one.seconds for one in left)
        minutes = max(1, math.ceil(seconds / 60))
        them = "it" if undecided == 1 else "them"
        once = f"measures {them} once more, which is the least that tells a time"
        does = once if alone else f"would probably decide {them}"
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
    elsewhere = _divided(found, pairs) if divides else set()
    needed, random = forecast(found, pairs), np.random.default_rng(0)
    rounds: dict[Case, float] = defaultdict(float)
    drawn: dict[Case, Array] = defaultdict(lambda: np.ones(DRAWS))
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
            if change.series in elsewhere:
                needless += 1
                continue
            taken = min(change.launches)
            if taken > 1:
                told, over = taken * needed.get((change.series, pair), NEVER)
            else:
                told, over = first_forecast(change, observations(found[change.series], *pair), random)
            wants = float(told[0])
            case = change.series.benchmark.rpartition(".")[0], change.series.parameters
            if taken >= FORECAST_FROM and wants > MOST_ROUNDS:
                hopeless += 1
                if math.isfinite(lucky := np.quantile(told, LUCK, method="higher")):
                    so_far = doubtful.get(case, More((), math.inf, 0))
                    both = dict.fromkeys((*so_far.releases, *pair))
                    doubtful[case] = More(tuple(both), min(so_far.rounds, lucky - taken), 0)
                continue
            undecided += 1
            single += taken < 2 and wants == 2
            of_case[case] += 1
            wanted[case] |= dict.fromkeys(pair)
            rounds[case] = max(rounds[case], min(wants, MOST_ROUNDS) - taken, 1.0)
            until = np.minimum(told, np.maximum(over, FORECAST_FROM))
            drawn[case] = np.maximum(drawn[case], np.minimum(until, MOST_ROUNDS) - taken)
    cases = {case: More(tuple(tags), rounds[case], of_case[case], drawn[case]) for case, tags in wanted.items()}
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


NEVER = np.full((2, DRAWS), math.inf)
"""What `forecast` would say of releases that no rounds tie."""


def forecast(found: History, pairs: Sequence[tuple[str, str]]) -> dict[tuple[Series, tuple[str, str]], Array]:
    """(series, pair) that is not decided -> 2 x DRAWS numbers of TIMES, infinite for none: times as many rounds until it is
    decided, and until it is decided or would not be by the last of TIMES with what is seen then. The first draw takes the
    estimate as it is, the others as chance moves it."""
    needed: dict[tuple[Series, tuple[str, str]], Array] = {}
    random, many = np.random.default_rng(0), [*pairs] * DRAWS
    for fit in found.fits.values():
        now = evidence_between(fit, many)
        waiting = now.judged(error_rates(now)).code == UNDECIDED
        if not waiting.any():
            continue
        last = evidence_between(fit.with_rounds(TIMES[-1]), many)
        moved, spread = np.zeros(waiting.shape), np.minimum(now.error, 1.0)
        rounds = np.full((2, *waiting.shape), math.inf)
        for times in TIMES:
            after = evidence_between(fit.with_rounds(times), many)
            # An error may be infinite, and no estimate moves by more than a factor of e.
            before, spread = spread, np.minimum(after.error, 1.0)
            chance = random.standard_normal(waiting.shape) * np.sqrt(np.maximum(before**2 - spread**2, 0.0))
            moved[:, len(pairs) :] += chance[:, len(pairs) :]
            then = [replace(of, shift=of.shift + moved) for of in (after, last)]
            ends, ever = (of.judged(error_rates(of)).code != UNDECIDED for of in then)
            rounds[np.isinf(rounds) & [ends, ends | ~ever]] = times
            if np.isfinite(rounds[0][waiting]).all():
                break
        places = np.argwhere(waiting[:, : len(pairs)])
        series = list(fit.levels)
        needed |= {(series[i], pairs[j]): rounds[:, i, j :: len(pairs)] for i, j in places}
    return needed


OFTEN = 2.0
"""The standard errors that must lie within the margin for SAME, with some ten degrees of freedom."""

OFTEN_CHANGED = 3.0
"""Those that a change must be from none."""


def first_forecast(change: Change, launches: Iterable[Observation], random: np.random.Generator) -> Array:
    """About how many rounds will tell a time of which a release has one launch, two at least, by the noise that its turns
    show (2 x DRAWS, as `forecast`'s): the first draw takes no change, the others start at what is seen."""
    noise = [USUAL[True].noise ** 2 / weight(one.variance) for one in launches]
    variance, margin = 2 * sum(noise) / max(len(noise), 1), math.log1p(change.series.margin)
    moved = random.standard_normal(DRAWS) * math.sqrt(variance)
    shift = np.abs(math.log((change.new or 1.0) / (change.old or 1.0)) + moved)
    distance = np.where(shift > margin, shift * OFTEN / OFTEN_CHANGED, margin - shift)
    distance[0] = margin
    room = (distance / OFTEN) ** 2 - 2 * REPEATED**2
    told = np.where(room > 0, np.maximum(2.0, np.ceil(variance / np.abs(room))), math.inf)
    return np.array([told, np.where(told > MOST_ROUNDS, FORECAST_FROM, told)])


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
