"""What does an upgrade from A to B cost? One verdict per series, from the rounds in which both were measured.

A launch is one number, its quickest sample. Counts and bytes do not vary, so any difference is real. Times are
compared on logarithms of launches, never of samples: differences within rounds, noise that series of a kind tell each
other, and a correction for the number of series looked at. Why so: docs/verdicts.md.
"""

from __future__ import annotations

import enum
import functools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from contract.metrics import COUNTS, MARGIN, RESIDENT, STEADY, Metric, metric_of

from ..store.files import warn
from ..store.launches import Case, Launch, node_of
from ..store.sources import that_count
from . import special

FALSE_RATE = 0.01
"""Of the series of one comparison called FASTER or SLOWER, at most this share is expected not to have changed at all. One in
a hundred and not in twenty, because a session that goes on with what is undecided looks at it again after every round."""

ERROR_RATE = 0.05
"""A series that lies on the margin is called SAME this often. One in twenty, as is usual."""

POWER = 0.8
"""How often a change of the size `detectable` would have been told: four times of five, as is usual in planning."""

LATE_SHARE = 0.5
"""Look k after the first is judged at this over k of the error rate. A session that goes on with what is undecided looks
at it again after every round, and each look is another chance of a false change."""

LENDERS = 10
"""Series of a kind that must have repeated rounds before they lend each other what they know of noise; fewer say too little
about how much it differs between series."""

MOST_LENT = 20.0
"""Degrees of freedom at most that others lend: where they look equal by chance, a series' own noise must still be heard."""

LEAST_VARIANCE = 1e-8
"""Of a launch's logarithm: a clock's own 0.01 %. Two launches that agree to the last digit do so by chance."""

ROUNDING = 1e-20
"""Of a variance: what lies below is left by rounding where launches agree to the last digit, and tells nothing of noise."""

ROBUST_FROM = 6
"""Degrees of freedom from which a round out of line is pulled in. With fewer nobody can say which one is out of line."""

PULLED_IN = 4.0
"""Robust standard deviations beyond which a residual is pulled in to there. Of normal ones hardly any is; with 8 rounds,
which tell the deviation only roughly, 1 in 90."""

TURNS = 10
"""Steps in which levels move to where most rounds are; each halves the way or more, while a quarter is out of line."""

BOUND = 1e6
"""Ends of an interval beyond this ratio are given as this: they say that nothing is known."""

FEW = 50
"""Releases of a chain up to which a dense matrix is solved as fast as a sparse one."""

BUILDS = {"batching": 1.07, "intersection": 1.07, "saved_tensors": 1.07, "selection": 1.06}
ANY_BUILD = 1.07
"""Question -> the ratio within which steady times of two builds of one source lie 19 times of 20, and that of questions
that no two lanes measured. Estimated from releases with two wheels: docs/generated/replication.md holds them to the results.
"""

NOT_MEASURED = "it was not measured"
"""The reason of a series that nobody asked for in one of the two releases, such as another size."""


Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class Verdict(enum.Enum):
    """A verdict as it is stored, and the word of its class: better, worse, same or can't tell. Both stand in JSON and in
    addresses of the site, so neither changes; `shown` is what a person reads."""

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

    @property
    def shown(self) -> str:
        return SHOWN.get(self.words, self.words)


SHOWN = {"CAN'T TELL": "INCONCLUSIVE", "NEVER RAN": "NO NUMBER"}
"""Stored verdict -> what a person reads in its place, here and on the site; all others are shown as they are stored.
A function may have run of which a metric has no number on either release."""


WORDS = {verdict.words: verdict for verdict in Verdict}

KINDS = {verdict.words: verdict.kind for verdict in Verdict}
"""The words of every verdict, in their order -> its kind."""

RANK = {"worse": 0, "better": 1, "changed": 2, "can't tell": 3, "same": 4, "never ran": 5}
"""Order of kinds of verdicts where they are listed."""


@dataclass(frozen=True, order=True)
class Series:
    """What is followed over releases: one benchmark with one set of parameters in one environment."""

    environment: str
    benchmark: str
    parameters: tuple[str, ...]

    @property
    def question(self) -> str:
        return self.benchmark.partition(".")[0]

    @functools.cached_property
    def measure(self) -> Metric:
        """All that is known of its metric."""
        return metric_of(self.benchmark)

    @property
    def metric(self) -> str:
        return self.measure.name

    @property
    def words(self) -> str:
        """As a person says it: `intersection peak memory, eager small`."""
        question, metric = self.question, self.metric.replace("_", " ")
        parameters = " ".join(parameter.strip("'") for parameter in self.parameters)
        return f"{question.replace('_', ' ')} {metric}, {parameters}".rstrip()

    @property
    def unit(self) -> str:
        return self.measure.shown_unit

    @property
    def varies(self) -> bool:
        """Whether launches of the same release differ: times do, counts and bytes do not."""
        return self.measure.varies

    @property
    def is_counted(self) -> bool:
        """Whether it is a count or bytes, which are taken once. Stalls are counted in every launch."""
        return self.measure.kind == COUNTS

    def direction(self, rose: bool) -> Verdict:
        """The verdict on a number that rose, or fell."""
        more, less = self.measure.more_and_less
        return WORDS[more if rose else less]

    @property
    def margin(self) -> float:
        """Within which a time is called the same."""
        return self.measure.margin

    @property
    def build(self) -> float | None:
        """The ratio within which two builds of one source lie, None of exact numbers and of calls that are made once."""
        steady = self.varies and self.measure.measured == STEADY
        return BUILDS.get(self.question, ANY_BUILD) if steady else None


@dataclass(frozen=True)
class Change:
    """One series from one release to another. `old` and `new` are levels that differ by `ratio`, which is new / old with its
    interval [low, high], which holds the truth with `confidence`; `detectable` is the smallest ratio that these launches
    would have told from SAME; `spread` is the largest coefficient of variation between launches of one release; `disturbed`
    counts the launches that were measured although the machine was disturbed; `reason` stands where a number is missing.
    `difference` is the interval of new - old in the unit of the numbers, and `least_growth` what each call would have had to
    leave to be told in all launches, both of growth alone. `apart` says that a fleet measured both releases, and no node of
    it measured both."""

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
    disturbed: int = 0
    apart: bool = False
    difference: tuple[float, float] | None = None
    least_growth: float | None = None

    @property
    def within_builds(self) -> bool:
        """Whether it is a changed time that two builds of one source may differ by."""
        changed, build = self.verdict in (Verdict.SLOWER, Verdict.FASTER), self.series.build
        return changed and build is not None and self.ratio is not None and max(self.ratio, 1 / self.ratio) <= build


@dataclass(frozen=True)
class Evidence:
    """What launches say about log(new / old): an estimate, its standard error, Student's degrees of freedom, the margin of
    its series, and how often it was looked at."""

    shift: float
    error: float
    freedom: float
    margin: float = MARGIN
    looks: int = 1

    @property
    def p_value(self) -> float:
        """Of the hypothesis that nothing changed: Student's two-sided test, corrected for how often it was looked at."""
        chance = 2 * float(special.stdtr(self.freedom, -abs(self.shift) / self.error))
        return min(1.0, chance * penalty(self.looks))

    @property
    def beyond(self) -> bool:
        """Whether the estimate lies beyond the margin."""
        return abs(self.shift) > math.log1p(self.margin)

    @property
    def inside(self) -> bool:
        """Whether it is the same by two one-sided tests at ERROR_RATE, which is an interval inside the margin."""
        low, high = self.interval(1 - 2 * ERROR_RATE)
        return low >= 1 / (1 + self.margin) and high <= 1 + self.margin

    def interval(self, confidence: float) -> tuple[float, float]:
        """Of the ratio new / old."""
        half = float(special.stdtrit(self.freedom, (1 + confidence) / 2)) * self.error
        return _bounded(self.shift - half), _bounded(self.shift + half)

    def detectable(self, error_rate: float) -> float:
        """The smallest ratio that is called a change at `error_rate` with a probability of POWER, beside such noise."""
        certain, often = (float(x) for x in special.stdtrit(self.freedom, [1 - error_rate / 2, POWER]))
        return _bounded(max(math.log1p(self.margin), certain * self.error) + often * self.error)


def penalty(looks: int) -> float:
    """By how much a look's error rate is divided: the first has all of it, look k LATE_SHARE / k of it. Looks share their
    rounds, so a false change is mostly told by several of them: 25 together spend 1.2 to 1.7 times what one does (simulated
    by tests/test_verdicts.py, as repeated significance tests are: Armitage, McPherson and Rowe 1969)."""
    return 1.0 if looks == 1 else looks / LATE_SHARE


def _bounded(logarithm: float) -> float:
    limit = math.log(BOUND)
    return math.exp(min(max(logarithm, -limit), limit))


_Pairs = list[tuple[Launch, Case]]

History = Mapping[Series, Mapping[str, _Pairs]]
"""What `history` gives: series -> release -> its launches in order of time."""


def disturbed(launch: Launch) -> bool:
    """Whether it was measured although the machine was disturbed."""
    return "disturbed" in launch.facts.get("conditions", {})


def history(launches: Iterable[Launch]) -> dict[Series, dict[str, _Pairs]]:
    """Series -> release -> its launches in order of time, only those of the version that `that_count` tells and, where
    variables were set, `of_one_setting`.

    A round is one launch, however often it asked for a case: the samples of all its askings are pooled, or of those alone
    that nothing disturbed where there are any.
    """
    launches = of_one_setting(sorted(launches, key=lambda launch: launch.started_at))
    counts = that_count((one.environment, one.benchmark, one.version, one.started_at) for one in launches)
    found: dict[tuple[str, str], dict[tuple[str, ...], _Releases]] = defaultdict(dict)
    for launch in launches:
        benchmark = launch.environment, launch.benchmark
        if counts[benchmark] == launch.version:
            key = (launch.session, launch.round) if launch.round else launch.launch
            of_benchmark = found[benchmark]
            for case in launch.cases:
                of_release = of_benchmark.setdefault(case.parameters, {}).setdefault(launch.release, {})
                before = of_release.get(key)
                of_release[key] = (launch, case) if before is None else _again(before, (launch, case))
    series = {
        Series(*benchmark, parameters): releases
        for benchmark, of_benchmark in found.items()
        for parameters, releases in of_benchmark.items()
    }
    return {
        one: {release: list(of_release.values()) for release, of_release in series[one].items()}
        for one in sorted(series)
    }


def of_one_setting(launches: list[Launch]) -> list[Launch]:
    """Of `launches` in order of time those that were measured with the same variables set: with none, where an environment
    has such, else with those of its newest launch. A sentence says what is not compared with them."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for launch in launches:
        found[launch.environment][_set(launch)] += 1
    last = {launch.environment: _set(launch) for launch in launches}
    counts = {environment: "" if "" in of else last[environment] for environment, of in found.items()}
    for environment, of in found.items():
        for words in of.keys() - {counts[environment]}:
            warn(
                f"{of[words]} launches in {environment} were measured with {words or 'no variables'} set, and are skipped: "
                f"they are not compared with those with {counts[environment] or 'none'} set."
            )
    return [launch for launch in launches if _set(launch) == counts[launch.environment]]


def _set(launch: Launch) -> str:
    """The variables with which it was measured because a person named them, in words; empty where there were none."""
    found = launch.facts.get("set") or {}
    if not isinstance(found, dict):
        return "what nobody can read"
    return " ".join(f"{name}={value}" for name, value in sorted(found.items()))


_Releases = dict[str, dict[object, tuple[Launch, Case]]]


def _again(before: tuple[Launch, Case], now: tuple[Launch, Case]) -> tuple[Launch, Case]:
    """What counts of a case that was asked for again in the same round."""
    (before_launch, before_case), (launch, case) = before, now
    if case.unmeasured:
        return before
    if not before_case.samples or (disturbed(before_launch) and not disturbed(launch)):
        return now
    if disturbed(launch) and not disturbed(before_launch):
        return before
    return launch, structs.replace(before_case, samples=before_case.samples + case.samples)


def compare(launches: Iterable[Launch], old: str, new: str) -> list[Change]:
    """A verdict for every series that either release has: what costs first, what needs no thought last, then by series.

    All of them are looked at together: each more makes an interval wider, so ask about no more than is wanted.
    """
    return compare_history(history(launches), old, new)


def compare_history(found: History, old: str, new: str) -> list[Change]:
    """`compare` on what `history` gives."""
    found = {series: of for series, of in found.items() if old in of or new in of}
    used = {series: comparable(of, old, new) for series, of in found.items() if series.varies}
    estimates = {series: estimate(seen, old, new) for series, seen in used.items() if seen}
    evidence = weigh({series: said for series, said in estimates.items() if said.freedom})
    evidence = looked_at(evidence, {series: rounds_of_both(used[series], old, new) for series in evidence})
    error_rate = error_rate_of_each(evidence.values())
    changes = [
        _timed(series, used[series], old, new, estimates[series].shift, evidence.get(series), error_rate)
        if series in estimates
        else judge(series, of.get(old, []), of.get(new, []))
        for series, of in found.items()
    ]
    changes = [
        replace(change, apart=True) if change.series in used and _apart(found[change.series], old, new) else change
        for change in changes
    ]
    return sorted(changes, key=lambda change: RANK[change.verdict.kind])


def _apart(releases: Mapping[str, _Pairs], old: str, new: str) -> bool:
    """Whether nodes of a fleet are known to have measured both releases, and none of them both. Rounds of other releases may
    tie them, each of which compares on one node, so that a node's speed goes out of it."""
    nodes = [{node_of(launch) for launch, case in releases.get(tag, []) if case.number} for tag in (old, new)]
    return all(nodes) and "" not in nodes[0] | nodes[1] and not nodes[0] & nodes[1]


def looked_at(evidence: Mapping[Series, Evidence], rounds: Mapping[Series, int]) -> dict[Series, Evidence]:
    """`evidence` with how often each series was looked at: once after the rounds that all series of its question have, and
    again after each round that it has beyond them. A session measures everything at first, and then what is undecided.
    `rounds` are those that measured both releases."""
    least: dict[str, int] = {}
    for series in evidence:
        least[series.question] = min(rounds[series], least.get(series.question, rounds[series]))
    return {
        series: replace(said, looks=1 + rounds[series] - least[series.question]) for series, said in evidence.items()
    }


def rounds_of_both(seen: Sequence[Observation], old: str, new: str) -> int:
    """How many rounds measured both releases."""
    return len({one.block for one in seen if one.release == old} & {one.block for one in seen if one.release == new})


Block = tuple[str, int]
"""A session and a round of it."""


class Observation(NamedTuple):
    """One launch's number of one series: where it was taken, and whether that was in disturbed conditions."""

    release: str
    block: Block
    number: float
    disturbed: bool


def observations(
    releases: Mapping[str, _Pairs], *tags: str, blocks: Collection[Block] | None = None
) -> list[Observation]:
    """Those of `tags`, in `blocks` alone where these are given."""
    return [
        Observation(tag, block, number, disturbed(launch))
        for tag in tags
        for launch, case in releases.get(tag, [])
        if (blocks is None or (launch.session, launch.round) in blocks) and (number := case.number)
        for block in [(launch.session, launch.round)]
    ]


def comparable(releases: Mapping[str, _Pairs], old: str, new: str) -> list[Observation]:
    """What compares the two releases: the rounds that hold both, with the other releases there where rounds are few, because
    those tell of noise too; without such a round those of every release that rounds tie to them, one by another; none where
    no chain of rounds does."""
    seen = observations(releases, old, new)
    both = {one.block for one in seen if one.release == old} & {one.block for one in seen if one.release == new}
    if both:
        beside = releases if len(both) <= ROBUST_FROM else (old, new)
        return observations(releases, *beside, blocks=both)
    seen = observations(releases, *releases)
    rounds: dict[Block, set[str]] = defaultdict(set)
    of_release: dict[str, list[Block]] = defaultdict(list)
    for tag, block, *_ in seen:
        rounds[block].add(tag)
        of_release[tag].append(block)
    tied, ahead = {old}, [old]
    while ahead:
        for block in of_release[ahead.pop()]:
            more = rounds.pop(block, set()) - tied
            tied |= more
            ahead += more
    return [one for one in seen if one.release in tied] if new in tied else []


@dataclass(frozen=True)
class Estimate:
    """What the launches of one series say of log(new / old): the `shift`. Its variance is `factor` times that of one launch,
    which was seen to be `variance` with so many degrees of freedom; with none nothing was seen of it."""

    shift: float
    factor: float
    variance: float
    freedom: float


def estimate(seen: Sequence[Observation], old: str, new: str) -> Estimate:
    """Least squares on what is `comparable`: a logarithm is the level of its release plus what its round adds, so for two
    releases this is Student's paired test. What rounds add is the mean of what levels leave there, which makes the equations
    of the levels a Laplacian: a round of k launches adds I - 11'/k to it."""
    tags: dict[str, int] = {old: 0, new: 1}
    blocks: dict[Block, int] = {}
    release = np.array([tags.setdefault(one.release, len(tags)) for one in seen])
    block = np.array([blocks.setdefault(one.block, len(blocks)) for one in seen])
    logarithms = np.log([one.number for one in seen])
    if len(tags) == 2 and len(seen) == 2 * len(blocks):
        return _paired(np.bincount(block, np.where(release, logarithms, -logarithms)).astype(float))

    def apart(values: Array) -> Array:
        """What is left when the mean of each round is taken off."""
        return values - (np.bincount(block, values) / np.bincount(block))[block]

    sums = np.bincount(release, apart(logarithms))
    # Levels are relative to the old release's; the second column gives the variance of the new one's.
    right = np.column_stack([sums, np.arange(len(tags)) == 1])[1:]
    solve = _solve_dense if len(tags) <= FEW else _solve_sparse
    levels, variances = solve(release, block, np.bincount(block)[block] ** -0.5, right).T
    left = apart(logarithms - np.append(0.0, levels)[release])
    freedom = len(seen) - len(blocks) - len(levels)
    return Estimate(float(levels[0]), float(variances[0]), float(left @ left) / max(freedom, 1), float(freedom))


def _solve_dense(release: Indices, block: Indices, weight: Array, right: Array) -> Array:
    """What the Laplacian of `estimate`, without its first release, makes `right`. Of each launch there are its release, its
    round, and one over the square root of the round's launches."""
    share = np.zeros((block.max() + 1, release.max() + 1))
    np.add.at(share, (block, release), weight)
    laplacian = np.diag(np.bincount(release).astype(float)) - share.T @ share
    return np.linalg.solve(laplacian[1:, 1:], right)


def _solve_sparse(release: Indices, block: Indices, weight: Array, right: Array) -> Array:
    """`_solve_dense` where there are many releases, of which few meet in a round."""
    from scipy import sparse  # here, because comparing a pair takes no longer than importing it

    share = sparse.coo_array((weight, (block, release))).tocsr()
    laplacian = sparse.diags_array(np.bincount(release).astype(float)) - share.T @ share
    return np.asarray(sparse.linalg.spsolve(laplacian[1:, 1:], right))


def _paired(differences: Array) -> Estimate:
    """From a difference of logarithms per round."""
    return paired(differences[None])[0]


def paired(differences: Array) -> list[Estimate]:
    """From a difference of logarithms per round, a row for each series that has as many. Rounds out of line are pulled in by
    Huber's pseudo-values (1981, 7.8); with more releases nobody could say which launch it was."""
    freedom = differences.shape[1] - 1
    inside = np.ones(len(differences))
    shift = differences.mean(axis=1)
    left = differences - shift[:, None]
    if freedom >= ROBUST_FROM:
        for turn in range(2 * TURNS):
            # First the farther half, which leads to the middle of most: what is usual is seen there, and pulls in the rest.
            if turn < TURNS:
                usual = np.maximum(np.median(np.abs(left), axis=1), 2 * math.sqrt(LEAST_VARIANCE))[:, None]
            limit = usual if turn < TURNS else PULLED_IN * 1.4826 * usual
            shift = shift + left.clip(-limit, limit).mean(axis=1)
            left = differences - shift[:, None]
        inside = (np.abs(left) <= limit).mean(axis=1)
        left = left.clip(-limit, limit)
    # Each launch of a pair is half of the difference away from their mean.
    variance = (left**2).sum(axis=1) / 2 / max(freedom, 1) / inside**2
    return [
        Estimate(float(moved), 2 / differences.shape[1], float(noise), float(freedom * share))
        for moved, noise, share in zip(shift, variance, inside, strict=True)
    ]


def crossed(cells: Array) -> list[Estimate]:
    """`estimate` where each round holds the same releases: cells are series x rounds x releases, the old one first, the new
    one second, logarithms."""
    rounds, releases = cells.shape[1:]
    left = cells - cells.mean(axis=1, keepdims=True) - cells.mean(axis=2, keepdims=True)
    left += cells.mean(axis=(1, 2), keepdims=True)
    freedom = (rounds - 1) * (releases - 1)
    shifts = (cells[:, :, 1] - cells[:, :, 0]).mean(axis=1)
    variances = (left**2).sum(axis=(1, 2)) / max(freedom, 1)
    return [
        Estimate(float(shift), 2 / rounds, float(variance), float(freedom))
        for shift, variance in zip(shifts, variances, strict=True)
    ]


def unbalanced(logarithms: Array) -> list[Estimate]:
    """`estimate` where rounds lack some releases: series x rounds x releases, NaN where all series lack one; the old release
    first, the new one second."""
    seen = ~np.isnan(logarithms[0])
    block, release = np.nonzero(seen)
    blocks, tags = seen.shape
    of_block, of_release = np.eye(blocks)[block], np.eye(tags)[release]
    share = of_block.T @ of_release / np.sqrt(seen.sum(axis=1))[:, None]
    laplacian = np.diag(seen.sum(axis=0).astype(float)) - share.T @ share
    values = logarithms[:, block, release].T
    apart = values - of_block @ ((of_block.T @ values) / seen.sum(axis=1)[:, None])
    inverse = np.linalg.inv(laplacian[1:, 1:])
    levels = inverse @ (of_release.T @ apart)[1:]
    fitted = of_release[:, 1:] @ levels
    left = apart - fitted + of_block @ ((of_block.T @ fitted) / seen.sum(axis=1)[:, None])
    freedom = len(block) - blocks - (tags - 1)
    variances = (left**2).sum(axis=0) / max(freedom, 1)
    return [
        Estimate(float(shift), float(inverse[0, 0]), float(variance), float(freedom))
        for shift, variance in zip(levels[0], variances, strict=True)
    ]


def weigh(estimates: Mapping[Series, Estimate]) -> dict[Series, Evidence]:
    """Each series' shift with its standard error, noise moderated by that of the series of the same metric and question, or
    of all series of the metric where the question has too few.

    A few rounds tell little of a series' own noise, and many series tell how much noises differ: the variance is the mean
    of both, weighted by degrees of freedom (Smyth 2004, the moderated t statistic of limma). Questions differ in noise by
    factors, so one that is noisier than the rest would have intervals that are too narrow if all lent to it.
    """
    kinds: dict[tuple[str, str], list[Estimate]] = defaultdict(list)
    for series, said in estimates.items():
        kinds[series.metric, series.question].append(said)
        kinds[series.metric, ANY_QUESTION].append(said)
    lent = {kind: common_noise(of_kind) for kind, of_kind in kinds.items()}
    found = {}
    for series, said in estimates.items():
        own = lent[series.metric, series.question]
        found[series] = moderated(said, *(own if own[1] else lent[series.metric, ANY_QUESTION]), series.margin)
    return found


ANY_QUESTION = ""
"""Stands for all questions of a metric."""


def moderated(said: Estimate, common: float, weight: float, margin: float = MARGIN) -> Evidence:
    """An estimate with its standard error; its noise is moderated by a `common` variance of so much `weight`."""
    freedom = weight + said.freedom
    variance = (weight * common + said.freedom * said.variance) / freedom
    error = math.sqrt(max(variance, LEAST_VARIANCE) * said.factor)
    return Evidence(said.shift, error, freedom, margin)


def common_noise(estimates: Sequence[Estimate]) -> tuple[float, float]:
    """The variance of a typical one and for how many degrees of freedom it counts beside a series' own; (0, 0) from too few.

    Method of moments on the logarithms of the variances, which scatter by chance as their degrees of freedom say and
    beyond that as series differ: Smyth (2004), section 6.2. What they tell is itself an estimate, and few of them can look
    equal by chance: series are taken to differ by one standard error more than they seem to, and by the error of the mean.
    """
    known = [said for said in estimates if said.variance > ROUNDING]
    if len(known) < LENDERS:
        return 0.0, 0.0
    half = np.array([said.freedom for said in known]) / 2
    logs = np.log([said.variance for said in known]) - special.digamma(half) + np.log(half)
    seen = float(np.var(logs, ddof=1))
    unsure = math.sqrt(max(float(np.mean((logs - logs.mean()) ** 4)) - seen**2, 0.0) / len(known)) + seen / len(known)
    differing = max(seen - float(np.mean(special.polygamma(1, half))), 1e-6) + unsure
    weight = where_trigamma(differing)
    common = math.exp(float(np.mean(logs)) + float(special.digamma(weight)) - math.log(weight))
    return common, min(2 * weight, MOST_LENT)


def where_trigamma(value: float) -> float:
    """Where trigamma is `value`: Newton's method on its reciprocal, which is nearly a line (Smyth 2004, appendix)."""
    x, step = 0.5 + 1 / value, math.inf
    while abs(step) > 1e-9 * x:
        trigamma = float(special.polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, x))
        x += step
    return x


def error_rate_of_each(evidence: Iterable[Evidence]) -> float:
    """The error rate of one series that keeps the false among those called changed to FALSE_RATE of them.

    Benjamini and Hochberg (1995): FALSE_RATE x changed / looked at. What lies within the margin is never called changed, so
    it does not count as changed here: hundreds of true changes of 1 % would else pay for false ones of 10 %. Intervals at
    this rate are those of Benjamini and Yekutieli (2005), so a verdict can be read off its interval.
    """
    chances = sorted(item.p_value if item.beyond else 1.0 for item in evidence)
    changed = [rank for rank, chance in enumerate(chances, 1) if chance * (len(chances) / rank) <= FALSE_RATE]
    return FALSE_RATE * max(changed, default=1) / max(1, len(chances))


def _timed(
    series: Series,
    seen: Sequence[Observation],
    old: str,
    new: str,
    shift: float,
    evidence: Evidence | None,
    error_rate: float,
) -> Change:
    """The verdict on a time from the launches that compare the two releases."""
    olds, news = ([one.number for one in seen if one.release == release] for release in (old, new))
    level_old, level_new = levels(olds, news, shift)
    found = Change(
        series,
        Verdict.CANT_TELL,
        old=level_old,
        new=level_new,
        ratio=math.exp(shift),
        spread=max((_variation(side) for side in (olds, news) if len(side) > 1), default=None),
        launches=(len(olds), len(news)),
        disturbed=sum(one.disturbed for one in seen if one.release in (old, new)),
    )
    if evidence is None:
        return found
    confidence = 1 - error_rate / penalty(evidence.looks)
    low, high = evidence.interval(confidence)
    verdict = Verdict.CANT_TELL
    if evidence.beyond and evidence.p_value <= error_rate:
        verdict = Verdict.SLOWER if shift > 0 else Verdict.FASTER
    elif evidence.inside:
        verdict, confidence = Verdict.SAME, 1 - 2 * ERROR_RATE
        low, high = evidence.interval(confidence)
    return replace(
        found,
        verdict=verdict,
        low=low,
        high=high,
        confidence=confidence,
        detectable=evidence.detectable(error_rate / penalty(evidence.looks)),
    )


def levels(olds: Sequence[float], news: Sequence[float], shift: float) -> tuple[float, float]:
    """The numbers of two releases that are `shift` apart in logarithms, in their unit. Their geometric middle is that of the
    releases' medians. The medians themselves may point the other way: rounds differ by more than releases may."""
    middle = math.sqrt(statistics.median(olds)) * math.sqrt(statistics.median(news))
    return middle * math.exp(-shift / 2), middle * math.exp(shift / 2)


def _mean_log(numbers: list[float]) -> float:
    return statistics.fmean(math.log(number) for number in numbers)


def _variation(values: list[float]) -> float:
    mean = statistics.fmean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)) / mean


def judge(series: Series, before: _Pairs, after: _Pairs) -> Change:
    """The verdict on an exact number, or on a series that no round gave in both releases."""
    olds = [case.number for _, case in before if case.number is not None]
    news = [case.number for _, case in after if case.number is not None]
    counts = (len(olds), len(news))
    if not olds or not news:
        return _missing(series, before, after, olds, news)
    if not series.varies:
        if not series.margin:
            return _exact(series, olds, news, counts)
        least = [case.detectable for _, case in (*before, *after) if case.detectable is not None]
        return replace(_held(series, olds, news), least_growth=max(least, default=None))
    shift = _mean_log(news) - _mean_log(olds)
    old, new = levels(olds, news, shift)
    said = "no round has a number for both, and no chain of rounds with common releases connects them"
    return Change(series, Verdict.CANT_TELL, old, new, math.exp(shift), launches=counts, reason=said)


def _exact(series: Series, olds: list[float], news: list[float], counts: tuple[int, int]) -> Change:
    old, new = olds[-1], news[-1]
    ratio = new / old if old else (1.0 if new == old else None)
    if len(set(olds)) > 1 or len(set(news)) > 1:
        values = [", ".join(f"{value:.15g}" for value in sorted(set(side))) for side in (olds, news)]
        said = f"the count differs between launches: [{values[0]}] and [{values[1]}]"
        return Change(series, Verdict.CANT_TELL, old, new, ratio, launches=counts, reason=said)
    if not series.is_counted and min(counts) < 2:
        return Change(series, Verdict.CANT_TELL, old, new, ratio, launches=counts, reason="one launch each")
    verdict = Verdict.SAME if new == old else series.direction(new > old)
    return Change(series, verdict, old, new, ratio, ratio, ratio, 0.0, counts)


def _held(series: Series, olds: list[float], news: list[float]) -> Change:
    """The verdict on what differs a little from launch to launch and is no time: changed where every launch of one release
    lies beyond the margin from every one of the other, the same where all launches lie within it."""
    old, new, limit = statistics.median(olds), statistics.median(news), 1 + series.margin
    found = Change(series, Verdict.CANT_TELL, old, new, new / old if old else None, launches=(len(olds), len(news)))
    if min(found.launches) < 2:
        return replace(found, reason="one launch each")
    if series.measure.is_growth:
        found = replace(found, difference=(min(news) - max(olds), max(news) - min(olds)))
    if min(news) > limit * max(olds) or min(olds) > limit * max(news):
        return replace(found, verdict=series.direction(new > old))
    if max(*olds, *news) <= limit * min(*olds, *news):
        return replace(found, verdict=Verdict.SAME)
    values = [", ".join(f"{value:,.0f}" for value in sorted(side)) for side in (olds, news)]
    return replace(found, reason=f"the launches scatter too much: [{values[0]}] and [{values[1]}]")


def _missing(series: Series, before: _Pairs, after: _Pairs, olds: list[float], news: list[float]) -> Change:
    def why(pairs: _Pairs) -> str:
        return pairs[-1][1].reason if pairs else NOT_MEASURED

    if not before or not after:
        return Change(series, Verdict.CANT_TELL, reason=why([]))
    lacking = after if olds else before
    said = _unmeasured(lacking) or ("" if olds or news else _unmeasured(after))
    if not said and (olds or news):
        said = _without_level(series, lacking) or _uncounted(lacking)
    if said:
        old, new = (statistics.median(side) if side else None for side in (olds, news))
        return Change(series, Verdict.CANT_TELL, old, new, launches=(len(olds), len(news)), reason=said)
    if olds:
        return Change(series, Verdict.BROKE, old=statistics.median(olds), launches=(len(olds), 0), reason=why(after))
    if news:
        return Change(series, Verdict.FIXED, new=statistics.median(news), launches=(0, len(news)), reason=why(before))
    return Change(series, Verdict.NEVER_RAN, reason=why(after))


def _unmeasured(pairs: _Pairs) -> str:
    """That the suite failed to measure a release, with its reason: the release is neither broken by it nor mended."""
    launch, case = pairs[-1]
    return f"{launch.release} was {case.reason}" if case.unmeasured else ""


def _uncounted(pairs: _Pairs) -> str:
    """That the recorder could not count a release, with its reason; empty where the release itself failed or nothing was
    recorded. It is a limit of the recorder, so it neither breaks a release nor mends one."""
    launch, case = pairs[-1]
    refused = launch.facts.get("device") == "recorder" and case.unavailable and not case.failed
    return f"{launch.release} was not counted: {case.unavailable}" if refused else ""


def _without_level(series: Series, pairs: _Pairs) -> str:
    """Why a process that grows at each call has no memory to compare; empty where it failed. Its growth is told apart."""
    case = pairs[-1][1]
    return case.unavailable if series.measure.measured == RESIDENT and not case.failed else ""


TIME_UNITS = (
    ("ns", 1e-9), ("μs", 1e-6), ("ms", 1e-3), ("s", 1), ("m", 60), ("h", 3600), ("d", 86400), ("w", 604800), ("y", 31449600)
)  # fmt: skip


def human_seconds(seconds: float) -> str:
    """Three digits and the largest unit that is no more, as asv writes it: `57.9ms`."""
    if seconds == 0:
        return "0s"
    name, unit = next((pair for pair in reversed(TIME_UNITS) if seconds >= pair[1]), TIME_UNITS[0])
    number = seconds / unit
    digits = 2 - math.floor(math.log10(number))
    if not -6 < digits < 8:
        return f"{number:.3e}{name}"
    return f"{number:.{digits}f}{name}" if digits > 0 else f"{round(number):d}{name}"


def difference(seconds: float) -> str:
    """A difference as a person reads it, with its sign: `+950μs`, `-1.20s`."""
    return f"{'-' if seconds < 0 else '+'}{human_seconds(abs(seconds))}"


def times(factor: float) -> str:
    """A factor as all that is told of a change has it: `1.09`, `12`, `1,240`; of one that has no bound, `any`."""
    if factor >= BOUND / 10:
        return "any"
    return f"{factor:.2f}" if factor < 10 else f"{factor:,.0f}"


def bound(factor: float) -> str:
    """An end of the interval of a change that is told, as `times`, with the digits that keep it apart from no change:
    `1.07`, `1.003`."""
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
        return human_seconds(value)
    if unit == "ratio":
        return f"{value:.2f}"
    return f"{value:,.0f}" + (" B" if unit == "bytes" else "")
