"""Is what happened over the axis told as it was planted, and nothing where nothing was? Session effects are planted too."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.test_verdicts import BYTES, COUNT, EAGER, TIME, counted, launch, timed
from torch_history.analysis.steps import (
    ALIKE,
    HISTORY_ERROR,
    NEWEST_ERROR,
    Kind,
    Step,
    _Cells,
    all_shapes,
    costliest,
    largest,
    regressions,
    unconnected,
)
from torch_history.analysis.verdicts import Series, Verdict, history
from torch_history.releases.axis import Axis
from torch_history.store.launches import Case, Launch

AXIS = Axis.load(Path(__file__).resolve().parents[1] / "releases.toml")
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
    random = np.random.default_rng(seed)
    found = []
    for number, tags in enumerate(sessions):
        added = random.normal(0, drift)
        for tag in tags:
            logs = math.log(level(TAGS.index(tag))) + added + random.normal(0, noise, launches)
            found += timed(tag, np.exp(logs), session=f"s{number}")
    return found


def slowed(each: Launch) -> Launch:
    """The same launch, a fifth slower."""
    case = Case(EAGER, samples=(1.2 * (each.cases[0].number or 0),))
    return launch(each.release, TIME, case, session=each.session)


def told(launches: Sequence[Launch]) -> list[Step]:
    return regressions(launches, AXIS, LANE)


def where(steps: Sequence[Step]) -> list[tuple[Kind, str, str]]:
    return [(step.kind, step.new, step.until) for step in steps]


# --- times


@pytest.mark.parametrize("drift", [0.0, 0.03])
@pytest.mark.parametrize(("size", "verdict"), [(1.1, Verdict.SLOWER), (0.9, Verdict.FASTER)])
@pytest.mark.parametrize("place", [1, 9, 18, 29])
def test_step_is_told_where_it_lies_and_its_interval_holds_it(
    place: int, size: float, verdict: Verdict, drift: float
) -> None:
    # the 30th release is the newest that was measured: no later one speaks for the step at 29
    tags = TAGS[:30]
    (step,) = told(measured(lambda i: 0.3 * (size if i >= place else 1), in_sessions(tags, 5), 0.01, drift))
    assert (step.kind, step.old, step.new, step.verdict) == (Kind.STEP, tags[place - 1], tags[place], verdict)
    assert step.low is not None
    assert step.high is not None
    assert step.low < size < step.high
    assert step.high / step.low < 1.05
    assert step.after / step.before == pytest.approx(step.ratio)
    assert step.before == pytest.approx(0.3, rel=0.05)


def test_evidence_for_a_step_at_the_newest_of_two_releases_is_students_t_test() -> None:
    # none of these ten lies far out
    launches = measured(lambda i: 1.0 if i else 0.8, [TAGS[:2]], noise=0.02, seed=1)
    logs = [[math.log(x.cases[0].number or 0) for x in launches if x.release == tag] for tag in TAGS[:2]]
    expected = stats.ttest_ind(logs[1], logs[0]).confidence_interval(0.95)
    (step,) = told(launches)
    assert step.ratio == pytest.approx(math.exp(np.mean(logs[1]) - np.mean(logs[0])))
    assert (step.low, step.high) == pytest.approx((math.exp(expected.low), math.exp(expected.high)), rel=1e-4)


def test_what_a_session_adds_is_no_step() -> None:
    # the last session is a tenth slower, anchor included; the medians of its other releases are a tenth higher
    tags = TAGS[:9]
    slow = measured(lambda i: 1.1, [tags[5:]], seed=2)
    launches = measured(lambda i: 1.0, in_sessions(tags[:6], 6)) + [
        launch(x.release, TIME, x.cases[0], session="slow") for x in slow
    ]
    assert told(launches) == []
    assert where(told([x for x in launches if (x.release, x.session) != (tags[5], "slow")])) == []
    one_session = [launch(x.release, TIME, x.cases[0], session="s") for x in launches if x.release != tags[5]]
    assert where(told(one_session)) == [(Kind.STEP, tags[6], tags[6])]


@pytest.mark.parametrize("length", [1, 2])
def test_spike_that_recovered_is_told_as_one(length: int) -> None:
    tags = TAGS[:25]
    steps = told(measured(lambda i: 1.1 if 12 <= i < 12 + length else 1.0, in_sessions(tags, 5), 0.01, 0.01))
    assert where(steps) == [(Kind.SPIKE, tags[12], tags[11 + length])]
    assert steps[0].old == tags[11]


def test_what_lasts_longer_than_a_spike_is_a_step_and_its_end_another_newest_first() -> None:
    tags = TAGS[:25]
    steps = told(measured(lambda i: 1.1 if 8 <= i < 14 else 1.0, in_sessions(tags, 5), 0.01, 0.01))
    assert where(steps) == [(Kind.STEP, tags[14], tags[14]), (Kind.STEP, tags[8], tags[8])]
    assert [step.verdict for step in steps] == [Verdict.FASTER, Verdict.SLOWER]


@pytest.mark.parametrize("levels", [(1.0, 1.0, 1.6, 1.6, 1.75), (1.05, 1.0, 1.6, 1.6, 1.75), (1.0, 1.6, 1.6, 1.2, 1.2)])
def test_two_steps_in_a_row_are_no_spike_although_one_would_explain_as_much(levels: tuple[float, ...]) -> None:
    steps = told(measured(lambda i: levels[i], [TAGS[:5]], 0.002, launches=2))
    changes = [i for i in range(4, 0, -1) if levels[i] != levels[i - 1]]
    assert where(steps) == [(Kind.STEP, TAGS[i], TAGS[i]) for i in changes]
    assert [step.ratio for step in steps] == pytest.approx([levels[i] / levels[i - 1] for i in changes], rel=0.01)


def test_slow_drift_is_told_as_one_with_its_total() -> None:
    tags = TAGS[:30]
    (drift,) = told(measured(lambda i: 1.1 ** min(max((i - 5) / 20, 0), 1), in_sessions(tags, 5), 0.01, 0.01))
    assert drift.kind is Kind.DRIFT
    assert drift.ratio == pytest.approx(1.1, abs=0.025)
    assert TAGS.index(drift.old) == pytest.approx(5, abs=4)
    assert TAGS.index(drift.until) == pytest.approx(25, abs=4)


def test_a_rise_that_slows_down_is_not_told_as_two_drifts_that_undo_each_other() -> None:
    """Such a pair would say 25 times as slow where it is three times."""
    tags = TAGS[:26]
    launches = measured(
        lambda i: 1.17 ** min(i, 4) * 1.03 ** max(i - 4, 0), in_sessions(tags, 4), 0.08, 0.05, 3, seed=1
    )
    steps = told(launches)
    total = 1.17**4 * 1.03**21
    assert steps
    assert all(1 < (step.ratio or 0) < 1.2 * total for step in steps)
    spans = [(TAGS.index(step.old), TAGS.index(step.until)) for step in steps if step.kind is Kind.DRIFT]
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(sorted(spans)))


@pytest.mark.parametrize("level", [lambda i: 1.012 if i >= 10 else 1.0, lambda i: 1.015 ** (i / 20)])
def test_change_below_two_percent_is_not_told(level: Callable[[int], float]) -> None:
    assert told(measured(level, in_sessions(TAGS[:20], 5), 0.002)) == []


@pytest.mark.parametrize(
    ("sessions", "launches"),
    [(in_sessions(TAGS[:30], 4), 5), ([TAGS[:8]], 5), ([TAGS[:20]], 1), ([TAGS[:9]] * 3, 1)],
    ids=["shared anchors", "one session", "a launch each", "a launch each in three sessions"],
)
def test_false_alarms_are_no_more_than_the_stated_rate(sessions: list[Sequence[str]], launches: int) -> None:
    series = 60
    quiet = [told(measured(lambda i: 1.0, sessions, 0.03, 0.02, launches, seed=seed)) == [] for seed in range(series)]
    allowed = stats.binom.ppf(0.999, series, HISTORY_ERROR + NEWEST_ERROR)
    assert quiet.count(False) <= allowed


@pytest.mark.parametrize("releases", [25, 40])
def test_drifts_that_are_tried_err_together_no_more_often_than_they_may(releases: int) -> None:
    series = 200
    drifts = [shape for shape in all_shapes(releases) if shape.kind is Kind.DRIFT]
    random = np.random.default_rng(20261121)
    found = 0
    for _ in range(series):
        cells = [{f"s{i // 4}": np.exp(random.normal(0, 0.03, 5)).tolist()} for i in range(releases)]
        found += bool(_Cells.of(cells).fit([], drifts).chance.min() <= ALIKE * HISTORY_ERROR / 4 / len(drifts))
    assert found <= stats.binom.ppf(0.999, series, HISTORY_ERROR / 4)


def test_second_of_two_values_that_every_fifth_launch_has_is_no_outlier() -> None:
    series = 60
    random = np.random.default_rng(20261121)
    quiet = 0
    for seed in range(series):
        launches = measured(lambda i: 1.0, in_sessions(TAGS[:30], 5), 0.005, seed=seed)
        quiet += told([slowed(x) if random.random() < 0.2 else x for x in launches]) == []
    assert series - quiet <= stats.binom.ppf(0.999, series, HISTORY_ERROR + NEWEST_ERROR)


@pytest.mark.parametrize("drift", [0.0, 0.03])
def test_launches_far_out_hide_no_step_at_the_newest_and_make_none(drift: float) -> None:
    tags, series = TAGS[:30], 20
    random = np.random.default_rng(20261121)
    found = []
    for seed in range(series):
        launches = measured(lambda i: 1.04 if i == 29 else 1.0, in_sessions(tags, 5), 0.01, drift, seed=seed)
        found += told([slowed(x) if random.random() < 0.05 else x for x in launches])
    assert where(found).count((Kind.STEP, tags[29], tags[29])) >= 0.8 * series
    assert len(found) <= 1.1 * series


def test_two_disturbed_launches_of_one_release_are_no_spike() -> None:
    launches = measured(lambda i: 1.0, in_sessions(TAGS[:20], 5))
    disturbed = [x for x in launches if x.release == TAGS[10]][:2]
    assert told([x for x in launches if x not in disturbed] + [slowed(x) for x in disturbed]) == []


def test_launches_that_agree_to_the_last_digit_are_judged_beside_those_that_do_not() -> None:
    agreeing = [each for tag in TAGS[:12] for each in timed(tag, [1.0] * 5)]
    assert told([*agreeing, *timed(TAGS[12], [1.0, 1.0, 1.0, 1.1, 1.1])]) == []


def test_one_disturbed_launch_does_not_hide_the_step_at_the_newest() -> None:
    tags = TAGS[:20]
    launches = measured(lambda i: 1.04 if i == 19 else 1.0, in_sessions(tags, 5))
    disturbed = next(x for x in launches if x.release == tags[10])
    slow = launch(disturbed.release, TIME, Case(EAGER, samples=(2.0,)), session=disturbed.session)
    assert where(told([x for x in launches if x is not disturbed] + [slow])) == [(Kind.STEP, tags[19], tags[19])]


@pytest.mark.parametrize(("place", "expected"), [(4, [(Kind.STEP, TAGS[4], TAGS[4])]), (2, [])])
def test_newest_release_is_asked_once_and_needs_less_evidence_than_one_of_many_places(
    place: int, expected: list[tuple[Kind, str, str]]
) -> None:
    # 2.4 % with a standard error of 0.74 %: t = 3.2 on 23 degrees of freedom, so p = 0.004
    apart = np.array([-0.02, -0.01, 0.0, 0.01, 0.02])
    launches = [
        each for i, tag in enumerate(TAGS[:5]) for each in timed(tag, np.exp(apart + (0.0237 if i == place else 0.0)))
    ]
    assert where(told(launches)) == expected


def test_releases_of_one_launch_each_that_all_differ_are_not_explained_one_by_one() -> None:
    # whatever is noise here and what is not, seven numbers cannot tell
    seconds = [1.0, 0.8, 0.9, 0.7, 0.75, 0.95, 0.6]
    assert told([each for tag, x in zip(TAGS, seconds, strict=False) for each in timed(tag, [x])]) == []


def test_a_launch_each_tells_a_large_step_and_nothing_from_two_releases() -> None:
    tags = TAGS[:12]
    assert where(told(measured(lambda i: 1.5 if i >= 6 else 1.0, [tags], launches=1))) == [
        (Kind.STEP, tags[6], tags[6])
    ]
    assert told(measured(lambda i: 1.5 if i else 1.0, [tags[:2]], launches=1)) == []


def test_return_after_a_gap_is_compared_with_the_last_before_it() -> None:
    tags = [tag for i, tag in enumerate(TAGS[:14]) if i not in (7, 8)]
    launches = measured(lambda i: 1.2 if i > 7 else 1.0, [tags])
    launches += [launch(TAGS[7], TIME, Case(EAGER, unavailable="no compiler")) for _ in range(3)]
    (step,) = told(launches)
    assert (step.old, step.new) == (TAGS[6], TAGS[9])


def test_parts_that_no_session_ties_together_are_judged_apart_and_named() -> None:
    level = {i: 1.0 if i < 5 else 2.0 for i in range(10)} | {8: 3.0, 9: 3.0}
    launches = measured(level.__getitem__, [TAGS[:5], TAGS[5:10]])
    assert where(told(launches)) == [(Kind.STEP, TAGS[8], TAGS[8])]
    sentences = unconnected(history(launches), AXIS)
    assert len(sentences) == 2
    assert f"No session ties {', '.join(TAGS[5:10])} to other releases in 1 series" in sentences[1]
    assert unconnected(history(measured(lambda i: 1.0, in_sessions(TAGS[:10], 5))), AXIS) == []


# --- counts and bytes


def exact(values: Sequence[float], benchmark: str = BYTES) -> list[Launch]:
    return list(
        itertools.chain.from_iterable(counted(tag, [x], benchmark) for tag, x in zip(TAGS, values, strict=False))
    )


def test_every_change_of_bytes_is_told_to_the_byte() -> None:
    steps = told(exact([100, 100, 101, 101, 101, 99]))
    assert where(steps) == [(Kind.STEP, TAGS[5], TAGS[5]), (Kind.STEP, TAGS[2], TAGS[2])]
    assert [(step.before, step.after, step.verdict) for step in steps] == [
        (101, 99, Verdict.LEANER),
        (100, 101, Verdict.HUNGRIER),
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([4, 9, 4, 4], [(Kind.SPIKE, 1, 1)]),
        ([4, 9, 8, 4], [(Kind.SPIKE, 1, 2)]),
        ([4, 9, 9, 9, 4], [(Kind.STEP, 4, 4), (Kind.STEP, 1, 1)]),
        ([4, 9, 4, 9, 9, 9], [(Kind.STEP, 3, 3), (Kind.SPIKE, 1, 1)]),
        ([4, 4, 9], [(Kind.STEP, 2, 2)]),
        ([4], []),
    ],
)
def test_count_that_came_back_within_two_releases_was_a_spike(
    values: list[float], expected: list[tuple[Kind, int, int]]
) -> None:
    assert where(told(exact(values, COUNT))) == [(kind, TAGS[new], TAGS[until]) for kind, new, until in expected]


def test_change_from_zero_has_no_ratio_and_is_more() -> None:
    (step,) = told(exact([0, 3], COUNT))
    assert (step.ratio, step.before, step.after, step.verdict) == (None, 0, 3, Verdict.MORE)


def test_release_whose_launches_disagree_is_passed_over() -> None:
    launches = exact([4, 4]) + counted(TAGS[2], [4, 5], BYTES) + counted(TAGS[3], [6], BYTES)
    (step,) = told(launches)
    assert (step.old, step.new) == (TAGS[1], TAGS[3])


def test_stalls_of_a_single_launch_tell_nothing() -> None:
    stalls = "warm_up.WarmUp.track_stalls"
    assert told(exact([0, 5], stalls)) == []
    twice = [x for tag, value in zip(TAGS, [0, 5], strict=False) for x in counted(tag, [value, value], stalls)]
    assert where(told(twice)) == [(Kind.STEP, TAGS[1], TAGS[1])]


def test_costliest_are_the_largest_rise_in_time_or_peak_of_each_question() -> None:
    def step(benchmark: str, ratio: float | None, new: str = "v2.1.2") -> Step:
        series = Series(LANE, f"{benchmark}.Q.track_time", ("'f'",))
        return Step(series, Kind.STEP, "v2.0.1", new, new, 1.0, 2.0, ratio, None, None)

    largest, smaller = step("batching", 3.0), step("batching", 2.0, "v2.5.1")
    other, faster, unknown = step("selection", 5.0), step("selection", 0.1), step("warm_up", None)
    counts = replace(largest, series=Series(LANE, "batching.Q.track_operators", ("'f'",)), ratio=9.0)
    assert costliest([largest, smaller, other, faster, unknown, counts]) == [other, largest]


def test_largest_are_one_of_each_question_quantity_and_release() -> None:
    def step(benchmark: str, ratio: float | None, new: str = "v2.1.2") -> Step:
        return Step(Series(LANE, benchmark, ("'f'",)), Kind.STEP, "v2.0.1", new, new, 1.0, 2.0, ratio, None, None)

    halved, call = step("warm_up.W.track_time", 0.5), step("warm_up.W.track_first_call", 1.5)
    doubled = step("b.B.track_time", 2.5)
    later, counts = step("warm_up.W.track_time", 1.2, "v2.5.1"), step("b.B.track_operators", 9.0)
    appeared, gone = step("b.B.track_allocations", None), step("b.B.track_stalls", 0.0)
    assert largest([call, halved, gone, later, doubled, appeared, counts]) == [counts, doubled, halved, later]


def test_other_environments_and_releases_off_the_axis_are_left_out_and_series_are_listed_newest_first() -> None:
    launches = [*exact([1, 2, 2]), *exact([5, 5, 6], COUNT), *counted("v0.0.1", [7])]
    launches += [x for i in (2, 3) for x in counted(TAGS[i], [i], environment="release-py3.9")]
    assert [(step.new, step.series.unit) for step in told(launches)] == [(TAGS[2], ""), (TAGS[1], "bytes")]
