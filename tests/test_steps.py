"""Is what happened over the axis told as it was planted, and nothing where nothing was? Session effects are planted too."""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from msgspec import structs
from scipy import stats

from tests.test_levels import lane
from tests.test_verdicts import BYTES, COUNT, EAGER, TIME, counted, launch, modelled, timed
from torch_history.analysis.levels import on_one_thread
from torch_history.analysis.series import History, Series, Verdict, history
from torch_history.analysis.steps import (
    EXCURSION,
    HISTORY_ERROR,
    NEWEST_ERROR,
    Kind,
    Step,
    chains,
    of_history,
    unconnected,
)
from torch_history.analysis.verdicts import compare_history
from torch_history.store.launches import Case, Launch

from .lab import AXIS

TAGS = [release.tag for release in AXIS.releases]
LANE = "release-py3.11"


def in_sessions(tags: Sequence[str], size: int) -> list[Sequence[str]]:
    """Sessions of `size` neighbours, each of which begins with the last release of the one before."""
    return [tags[first : first + size] for first in range(0, len(tags) - 1, size - 1)]


def measured(
    level: Callable[[int], float],
    sessions: Sequence[Sequence[str]],
    noise: float = 0.01,
    drift: float = 0.0,
    launches: int = 5,
    seed: int = 20261121,
) -> list[Launch]:
    """Seconds of lognormal launches: `level` of the release's position, times what its session adds, times noise."""
    random, found = np.random.default_rng(seed), []
    for number, tags in enumerate(sessions):
        added = random.normal(0, drift)
        for tag in tags:
            logs = math.log(level(TAGS.index(tag))) + added + random.normal(0, noise, launches)
            found += timed(tag, np.exp(logs), session=f"s{number}")
    return found


def lane_of(
    level: Callable[[int], np.ndarray],
    sessions: Sequence[Sequence[str]],
    noise: float = 0.012,
    launches: int = 5,
    seed: int = 20261121,
) -> list[Launch]:
    """A question of many series: `level` of the release's position gives the seconds of each."""
    random = np.random.default_rng(seed)
    return modelled(random, sessions, lambda tag: np.log(level(TAGS.index(tag))), launches, noise, shared=0.02)


def told(launches: Sequence[Launch]) -> list[Step]:
    return of_history(history(one for one in launches if one.environment == LANE), AXIS)


def where(steps: Sequence[Step]) -> list[tuple[Kind, str, str]]:
    return [(step.kind, step.new, step.until) for step in steps]


@pytest.mark.parametrize("drift", [0.0, 0.03])
@pytest.mark.parametrize(("size", "verdict"), [(1.1, Verdict.SLOWER), (0.9, Verdict.FASTER)])
@pytest.mark.parametrize("place", [1, 9, 18, 29])
def test_step_is_told_where_it_lies_and_its_interval_holds_it(place, size, verdict, drift):
    # the 30th release is the newest that was measured: no later one speaks for the step at 29
    tags = TAGS[:30]
    (step,) = told(measured(lambda i: 0.3 * (size if i >= place else 1), in_sessions(tags, 5), 0.01, drift))
    assert (step.kind, step.old, step.new, step.verdict) == (Kind.STEP, tags[place - 1], tags[place], verdict)
    assert step.low
    assert step.low < size < (step.high or 0) < 1.05 * step.low
    assert step.before == pytest.approx(0.3, rel=0.05)
    assert step.after == pytest.approx(0.3 * size, rel=0.05)


def test_what_a_session_adds_is_no_step():
    # the last session is a tenth slower, anchor included; the medians of its other releases are a tenth higher
    tags = TAGS[:9]
    slow = measured(lambda i: 1.1, [tags[5:]], seed=2)
    launches = measured(lambda i: 1.0, in_sessions(tags[:6], 6)) + [structs.replace(x, session="slow") for x in slow]
    assert told(launches) == []
    assert where(told([x for x in launches if (x.release, x.session) != (tags[5], "slow")])) == []
    one_session = [structs.replace(x, session="s") for x in launches if x.release != tags[5]]
    assert where(told(one_session)) == [(Kind.STEP, tags[6], tags[6])]


def test_slow_drift_is_told_as_one_with_its_total():
    tags = TAGS[:30]
    (drift,) = told(measured(lambda i: 1.1 ** min(max((i - 5) / 20, 0), 1), in_sessions(tags, 5), 0.01, 0.01))
    assert drift.kind is Kind.DRIFT
    assert drift.ratio == pytest.approx(1.1, abs=0.025)
    assert TAGS.index(drift.old) == pytest.approx(5, abs=4)
    assert TAGS.index(drift.until) == pytest.approx(25, abs=4)


@pytest.mark.parametrize("level", [lambda i: 1.012 if i >= 10 else 1.0, lambda i: 1.015 ** (i / 20)])
def test_change_below_two_percent_is_not_told(level):
    assert told(measured(level, in_sessions(TAGS[:20], 5), 0.002)) == []


@pytest.mark.parametrize(
    ("sessions", "launches"),
    [(in_sessions(TAGS[:30], 4), 5), ([TAGS[:8]], 5), ([TAGS[:9]] * 3, 2), ([TAGS[:20]], 1), ([TAGS[:9]] * 3, 1)],
    ids=["shared anchors", "one session", "three sessions", "a launch each", "a launch each in three sessions"],
)
def test_false_alarms_are_no_more_than_the_stated_rate(sessions, launches):
    """Of lanes that scatter more than twice as much as usual."""
    lanes = (lane_of(lambda i: np.ones(40), sessions, 0.03, launches, seed) for seed in range(3))
    assert sum(len(told(of)) for of in lanes) <= stats.binom.ppf(0.999, 120, HISTORY_ERROR + NEWEST_ERROR)


def test_return_after_a_gap_is_compared_with_the_last_before_it():
    tags = [tag for i, tag in enumerate(TAGS[:14]) if i not in (7, 8)]
    launches = measured(lambda i: 1.2 if i > 7 else 1.0, [tags])
    launches += [launch(TAGS[7], TIME, Case(EAGER, unavailable="no compiler")) for _ in range(3)]
    (step,) = told(launches)
    assert (step.old, step.new, step.is_wide) == (TAGS[6], TAGS[9], True)
    (step,) = told([one for one in launches if one.release != TAGS[7]])  # nobody measured what lies between
    assert (step.is_wide, step.net and step.net.wide) == (True, [TAGS[9]])


def test_parts_that_no_session_ties_together_are_judged_apart_and_named():
    level = {i: 1.0 if i < 5 else 2.0 for i in range(10)} | {8: 3.0, 9: 3.0}
    launches = measured(level.__getitem__, [TAGS[:5], TAGS[5:10]])
    assert where(told(launches)) == [(Kind.STEP, TAGS[8], TAGS[8])]
    sentences = unconnected(history(launches), AXIS)
    assert len(sentences) == 2
    assert f"No session ties {', '.join(TAGS[5:10])} to other releases in 1 series" in sentences[1]
    assert unconnected(history(measured(lambda i: 1.0, in_sessions(TAGS[:10], 5))), AXIS) == []


@pytest.mark.parametrize("length", [1, 2, 3, EXCURSION])
def test_excursion_is_told_once_with_its_first_and_last_release(length):
    tags = TAGS[:25]
    steps = told(measured(lambda i: 1.1 if 12 <= i < 12 + length else 1.0, in_sessions(tags, 5), 0.005, 0.01))
    assert where(steps) == [(Kind.EXCURSION, tags[12], tags[11 + length])]
    assert steps[0].old == tags[11]


def test_what_lasts_longer_than_an_excursion_is_a_step_and_its_end_another_newest_first():
    tags = TAGS[:25]
    back = 8 + EXCURSION + 1
    steps = told(measured(lambda i: 1.1 if 8 <= i < back else 1.0, in_sessions(tags, 5), 0.01, 0.01))
    assert where(steps) == [(Kind.STEP, tags[back], tags[back]), (Kind.STEP, tags[8], tags[8])]
    assert [step.verdict for step in steps] == [Verdict.FASTER, Verdict.SLOWER]


def disagreements(found: History, steps: Sequence[Step]) -> Iterator[str]:
    """A sentence for each pair of neighbours whose verdict is a change that no step or excursion tells, or that one tells
    although its verdict is SAME or the opposite."""
    told: dict[Series, dict[str, Verdict]] = defaultdict(dict)
    for step in steps:
        if step.kind is not Kind.DRIFT:
            told[step.series][step.old] = step.verdict
        if step.kind is Kind.EXCURSION:
            told[step.series][step.until] = step.series.direction(step.verdict is Verdict.FASTER)
    for fit in found.fits.values():
        for chain in chains(fit, AXIS):
            for old, new, verdict in zip(chain.tags, chain.tags[1:], chain.verdicts, strict=False):
                said = told[chain.series].get(old)
                if verdict is not Verdict.CANT_TELL and said is not (None if verdict is Verdict.SAME else verdict):
                    yield f"{chain.series.words}, {old} to {new}: {verdict} and {said}"


def stepping(i: int) -> np.ndarray:
    """The seconds of sixty series: steps, excursions, drifts and sizes that are told and not, and forty quiet ones."""
    sizes = np.array([0.8, 0.95, 1.04, 1.06, 1.1, 1.3])
    step, excursion = np.where(i >= 6 + np.arange(6), sizes, 1), np.where((i >= 9) & (i < 10 + np.arange(6)), sizes, 1)
    drift = np.array([0.98, 1.01, 1.005, 1.002, 1.02, 1.015, 1.03, 0.99]) ** max(i - 4, 0)
    return np.concatenate([step, excursion, drift, np.ones(40)])


@pytest.mark.parametrize("seed", range(5))
def test_every_changed_pair_is_told_and_none_that_is_the_same_or_opposite(seed):
    found = history(lane_of(stepping, in_sessions(TAGS[:20], 4), seed=seed, launches=3 + seed))
    steps = of_history(found, AXIS)
    assert {step.kind for step in steps} == {*Kind}
    assert list(disagreements(found, steps)) == []


@pytest.mark.committed
@pytest.mark.parametrize("python", ["3.9", "3.11"])
def test_every_changed_pair_of_the_committed_results_is_told_and_none_that_is_the_same_or_opposite(python):
    with on_one_thread():
        steps = of_history(lane(python), AXIS)
        assert len(steps) > 1000
        assert list(disagreements(lane(python), steps)) == []


def test_what_is_told_of_neighbours_is_what_compare_says_of_them():
    found = history(lane_of(stepping, in_sessions(TAGS[:12], 4)))
    judged = {
        (chain.series, *pair): verdict
        for fit in found.fits.values()
        for chain in chains(fit, AXIS)
        for *pair, verdict in zip(chain.tags, chain.tags[1:], chain.verdicts, strict=False)
    }
    for old, new in itertools.pairwise(TAGS[:12]):
        assert all(judged[one.series, old, new] is one.verdict for one in compare_history(found, old, new))
    assert len(judged) == 11 * len(stepping(0))


def test_one_pair_that_carries_half_of_a_change_makes_a_step_and_no_drift():
    tags = TAGS[:25]
    steps = told(measured(lambda i: 1.004**i * (1.2 if i >= 12 else 1.0), in_sessions(tags, 5), 0.01, 0.0))
    assert (Kind.STEP, tags[12], tags[12]) in where(steps)
    assert all((step.ratio or math.inf) < 1.15 for step in steps if step.kind is Kind.DRIFT)


def test_told_change_names_the_levels_over_the_whole_axis_and_each_step():
    tags = TAGS[:20]
    steps = told(measured(lambda i: (1.3 if i >= 5 else 1) * (1.2 if i >= 12 else 1), in_sessions(tags, 5), 0.002))
    net = steps[0].net
    assert net
    assert net.first == tags[0]
    assert net.ratio == pytest.approx(1.56, rel=0.02)
    assert (net.low or math.inf) < 1.56 < (net.high or 0)
    assert net.after / net.before == pytest.approx(net.ratio, rel=0.01)
    assert [ends for *ends, _ in net.parts] == [[tags[4], tags[5]], [tags[11], tags[12]]]
    assert [ratio for *_, ratio in net.parts] == pytest.approx([1.3, 1.2], rel=0.02)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        *(([4, 9, 4, 4], [(Kind.EXCURSION, 1, 1)]), ([4, 9, 9, 9, 4], [(Kind.EXCURSION, 1, 3)])),
        ([4, 9, 8, 4], [(Kind.STEP, 3, 3), (Kind.STEP, 2, 2), (Kind.STEP, 1, 1)]),
        ([4, *[9] * (EXCURSION + 1), 4], [(Kind.STEP, EXCURSION + 2, EXCURSION + 2), (Kind.STEP, 1, 1)]),
        *(([4, 9, 4, 9, 9, 9], [(Kind.STEP, 3, 3), (Kind.EXCURSION, 1, 1)]), ([4, 4, 9], [(Kind.STEP, 2, 2)])),
        ([4], []),
    ],
)
def test_count_that_came_back_was_an_excursion(values, expected):
    assert where(told(exact(values, COUNT))) == [(kind, TAGS[new], TAGS[until]) for kind, new, until in expected]


def exact(values: Sequence[float], benchmark: str = BYTES) -> list[Launch]:
    return [one for tag, x in zip(TAGS, values, strict=False) for one in counted(tag, [x], benchmark)]


@pytest.mark.parametrize(("values", "verdict", "net"), [([5, 0, 3], "MORE", None), ([6, 5, 3], "FEWER", 0.5)])
def test_what_passed_through_zero_has_no_ratio_over_the_axis(values, verdict, net):
    step, *_ = told(exact(values, COUNT))
    assert step.verdict.words == verdict
    assert getattr(step.net, "ratio", "no net change") == net


def test_bytes_below_zero_have_a_direction_and_no_ratio():
    (step,) = told(exact([-100, 50]))  # more may be freed than allocated between two calls
    assert (step.verdict, step.ratio) == (Verdict.HUNGRIER, None)
    (change,) = compare_history(history(exact([50, -100])), *TAGS[:2])
    assert (change.verdict, change.ratio) == (Verdict.LEANER, None)


def test_every_change_of_bytes_is_told_to_the_byte():
    steps = told(exact([100, 100, 101, 101, 101, 99]))
    assert where(steps) == [(Kind.STEP, TAGS[5], TAGS[5]), (Kind.STEP, TAGS[2], TAGS[2])]
    said = [(step.before, step.after, step.verdict) for step in steps]
    assert said == [(101, 99, Verdict.LEANER), (100, 101, Verdict.HUNGRIER)]


def test_stalls_of_a_single_launch_tell_nothing():
    stalls = "warm_up.WarmUp.track_stalls"
    assert told(exact([0, 5], stalls)) == []
    twice = [x for tag, value in zip(TAGS, [0, 5], strict=False) for x in counted(tag, [value, value], stalls)]
    assert where(told(twice)) == [(Kind.STEP, TAGS[1], TAGS[1])]


def test_memory_that_wanders_within_its_margin_has_steps_where_it_leaves_that():
    """In MB: two steps, one that comes back, and a release whose launches disagree, which is passed over."""
    levels = [(100, 101), (102, 100), (90, 130), (140, 141), (139, 142), (180, 181), (140, 143), (143, 141)]
    memory = "start_up.StartUp.track_start_memory"
    launches = [x for tag, of in zip(TAGS, levels, strict=False) for x in counted(tag, [1e6 * n for n in of], memory)]
    found = told(launches)
    assert set(where(found)) == {(Kind.EXCURSION, TAGS[5], TAGS[5]), (Kind.STEP, TAGS[3], TAGS[3])}
    step = next(step for step in found if step.kind is Kind.STEP)
    assert (step.old, step.is_wide, step.before, step.after) == (TAGS[0], True, 100.5e6, 140.5e6)
    assert step.verdict is Verdict.HUNGRIER
    assert told(launches[::2]) == []  # one launch each


def test_other_environments_and_releases_off_the_axis_are_left_out_and_series_are_listed_newest_first():
    launches = [*exact([1, 2, 2]), *exact([5, 5, 6], COUNT), *counted("v0.0.1", [7])]
    launches += [x for i in (2, 3) for x in counted(TAGS[i], [i], environment="release-py3.9")]
    assert [(step.new, step.series.unit) for step in told(launches)] == [(TAGS[2], ""), (TAGS[1], "bytes")]
