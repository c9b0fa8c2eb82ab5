"""Does a verdict say what was planted? Launches are made here with a known truth, times as lognormal numbers."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import optimize, special, stats

from torch_history.analysis import verdicts
from torch_history.analysis.compare import sentence
from torch_history.analysis.series import Observation, Series, Verdict, history, observations
from torch_history.analysis.verdicts import (
    ERROR_RATE,
    FALSE_RATE,
    LENDERS,
    MARGIN,
    MOST_LENT,
    PULLED_IN,
    ROBUST_FROM,
    Change,
    Estimate,
    Evidence,
    common_noise,
    comparable,
    compare,
    error_rate_of_each,
    estimate,
    human,
    weigh,
    where_trigamma,
)
from torch_history.store.launches import Case, Launch

OLD, NEW = "v2.0.1", "v2.1.0"
TIME = "intersection.Intersection.track_time"
BYTES = "intersection.Intersection.track_peak_memory"
COUNT = "intersection.Intersection.track_operators"
EAGER = ("'eager'", "'small'")
_names = itertools.count()


def launch(release: str, benchmark: str, case: Case, session: str = "s1", **changed: Any) -> Launch:
    number = next(_names)
    fields: dict[str, Any] = {
        "session": session,
        "round": 1,
        "launch": f"{number:08x}",
        "release": release,
        "environment": "release-py3.11",
        "benchmark": benchmark,
        "version": "1",
        "started_at": f"2026-11-21T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}+00:00",
        "duration": 1.0,
        "facts": {},
        "cases": (case,),
    }
    return Launch(**{**fields, **changed})


def timed(release: str, seconds: Iterable[float], **changed: Any) -> list[Launch]:
    """A launch for each of `seconds`, in rounds from 1, of whose samples it is the quickest."""
    return [
        launch(release, TIME, Case(EAGER, samples=(1.1 * second, second, 1.3 * second)), **{"round": turn, **changed})
        for turn, second in enumerate(seconds, 1)
    ]


def counted(release: str, values: Iterable[float], benchmark: str = BYTES, **changed: Any) -> list[Launch]:
    return [
        launch(release, benchmark, Case(EAGER, value=value), **{"round": turn, **changed})
        for turn, value in enumerate(values, 1)
    ]


def beside(benchmark: str, series: int, old: Iterable[float], new: Iterable[float]) -> list[Launch]:
    """So many series with the same numbers."""
    return [
        replace(one, cases=(replace(one.cases[0], parameters=(f"'{i}'",)),))
        for i in range(series)
        for one in both(benchmark, old, new)
    ]


def both(benchmark: str, old: Iterable[float], new: Iterable[float]) -> list[Launch]:
    return counted(OLD, old, benchmark) + counted(NEW, new, benchmark)


def only(launches: Sequence[Launch], old: str = OLD, new: str = NEW) -> Change:
    (change,) = compare(launches, old, new)
    return change


def noisy(random: np.random.Generator, seconds: float, noise: float, launches: int) -> list[float]:
    return [float(value) for value in seconds * np.exp(random.normal(0, noise, launches))]


# --- times


@pytest.mark.parametrize(
    ("ratio", "noise", "verdict"),
    [
        (2.0, 0.01, Verdict.SLOWER),
        (1.15, 0.01, Verdict.SLOWER),
        (0.5, 0.01, Verdict.FASTER),
        (0.85, 0.01, Verdict.FASTER),
        (1.0, 0.01, Verdict.SAME),
        (1.01, 0.005, Verdict.SAME),
        (1.03, 0.02, Verdict.CANT_TELL),  # on the margin
        (1.1, 0.3, Verdict.CANT_TELL),  # drowned
        (1.0, 0.3, Verdict.CANT_TELL),  # sameness must be earned
    ],
)
def test_verdict_on_a_time_is_the_planted_one(ratio: float, noise: float, verdict: Verdict) -> None:
    random = np.random.default_rng(20240229)
    launches = timed(OLD, noisy(random, 0.3, noise, 6)) + timed(NEW, noisy(random, 0.3 * ratio, noise, 6))
    change = only(launches)
    assert change.verdict is verdict
    assert change.launches == (6, 6)


@pytest.mark.parametrize(
    ("metric", "ratio", "verdict"),
    [
        ("time", 1.15, Verdict.SLOWER),
        ("worst_call", 1.15, Verdict.SAME),
        ("worst_over_median", 1.15, Verdict.SAME),
        ("first_call", 1.22, Verdict.CANT_TELL),
        ("median_call", 1.6, Verdict.SLOWER),
        ("second_call", 0.6, Verdict.FASTER),
    ],
)
def test_calls_that_are_made_once_have_a_wider_margin(metric: str, ratio: float, verdict: Verdict) -> None:
    random = np.random.default_rng(3)
    launches = timed(OLD, noisy(random, 1.0, 0.02, 6)) + timed(NEW, noisy(random, ratio, 0.02, 6))
    change = only([replace(one, benchmark=f"warm_up.WarmUp.track_{metric}") for one in launches])
    assert change.verdict is verdict


@pytest.mark.parametrize("rounds", [4, 8])
def test_interval_holds_the_planted_ratio_as_often_as_it_promises(rounds: int) -> None:
    random = np.random.default_rng(1)
    held, trials = 0, 400
    for _ in range(trials):
        change = only(timed(OLD, noisy(random, 1.0, 0.03, rounds)) + timed(NEW, noisy(random, 1.2, 0.03, rounds)))
        assert change.low is not None
        assert change.high is not None
        assert change.confidence == 1 - FALSE_RATE
        held += change.low <= 1.2 <= change.high
    # 99 % of 400, give or take three standard deviations of 0.5 %
    assert 0.975 <= held / trials < 1


def test_ratio_is_that_of_the_geometric_means() -> None:
    # sqrt(1 x 4) = 2 and sqrt(3 x 12) = 6
    change = only(timed(OLD, [1.0, 4.0]) + timed(NEW, [3.0, 12.0]))
    assert change.ratio == pytest.approx(3.0)
    assert (change.old, change.new) == pytest.approx((2.5, 7.5))


def test_launch_counts_once_however_many_samples_it_has() -> None:
    few = timed(OLD, [0.3, 0.3003, 0.2997]) + timed(NEW, [0.3, 0.3003, 0.2997])
    many = [replace(few[0], cases=(Case(EAGER, samples=few[0].cases[0].samples * 50),)), *few[1:]]
    assert only(many) == only(few)
    assert only(many).launches == (3, 3)


def test_swapping_the_releases_swaps_the_verdict() -> None:
    launches = timed(OLD, [0.30, 0.31, 0.305]) + timed(NEW, [0.40, 0.41, 0.405])
    there, back = only(launches), only(launches, NEW, OLD)
    assert (there.verdict, back.verdict) == (Verdict.SLOWER, Verdict.FASTER)
    assert there.ratio is not None
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.low == pytest.approx(1 / (there.high or 0))


@pytest.mark.parametrize("ratio", [1.0, 3.0])
def test_one_launch_each_cannot_tell(ratio: float) -> None:
    change = only(timed(OLD, [0.3]) + timed(NEW, [0.3 * ratio]))
    assert change.verdict is Verdict.CANT_TELL
    assert change.ratio == pytest.approx(ratio)
    assert (change.low, change.high, change.spread) == (None, None, None)


def test_one_launch_of_either_cannot_tell() -> None:
    assert only(timed(OLD, [0.3] * 4) + timed(NEW, [0.9])).verdict is Verdict.CANT_TELL


def test_spread_is_the_larger_of_the_two_releases() -> None:
    # standard deviation of 1 and 3 is sqrt(2), their mean 2
    assert only(timed(OLD, [1.0, 3.0]) + timed(NEW, [5.0, 5.1])).spread == pytest.approx(math.sqrt(2) / 2)


@pytest.mark.parametrize("metric", ["track_first_call", "track_worst_over_median"])
def test_time_that_is_tracked_is_judged_by_its_interval(metric: str) -> None:
    benchmark = f"latency.Latency.{metric}"
    launches = counted(OLD, [1.00, 1.01, 0.99], benchmark) + counted(NEW, [2.00, 2.01, 1.99], benchmark)
    assert only(launches).verdict is Verdict.SLOWER
    launches = counted(OLD, [1.00, 1.01, 0.99], benchmark) + counted(NEW, [1.00, 1.01, 1.001], benchmark)
    assert only(launches).verdict is Verdict.SAME


def test_same_is_two_one_sided_tests() -> None:
    random = np.random.default_rng(3)
    seen: Counter[bool] = Counter()
    for _ in range(200):
        olds, news = noisy(random, 1.0, 0.02, 5), noisy(random, 1.01, 0.02, 5)
        margin = math.log(1 + MARGIN)
        tests = [
            stats.ttest_rel(np.log(news) + sign * margin, np.log(olds), alternative=side).pvalue
            for sign, side in ((1, "greater"), (-1, "less"))
        ]
        earned = bool(max(tests) <= ERROR_RATE)
        seen[earned] += 1
        assert (only(timed(OLD, olds) + timed(NEW, news)).verdict is Verdict.SAME) == earned
    assert min(seen.values()) > 20


def test_verdict_can_be_read_off_its_interval() -> None:
    random = np.random.default_rng(4)
    launches = []
    for i in range(60):
        ratio = float(random.choice([0.8, 1.0, 1.03, 1.12]))
        launches += both(f"q{i}.Q.track_time", noisy(random, 1.0, 0.01, 4), noisy(random, ratio, 0.01, 4))
    kinds: Counter[Verdict] = Counter()
    for change in compare(launches, OLD, NEW):
        assert change.low is not None
        assert change.high is not None
        assert change.ratio is not None
        kinds[change.verdict] += 1
        assert (change.verdict is Verdict.SLOWER) == (change.low > 1 and change.ratio > 1 + MARGIN)
        assert (change.verdict is Verdict.FASTER) == (change.high < 1 and change.ratio < 1 / (1 + MARGIN))
        assert change.verdict is not Verdict.SAME or 1 / (1 + MARGIN) <= change.low <= change.high <= 1 + MARGIN
    assert set(kinds) == {Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.CANT_TELL}


def test_false_are_rare_among_hundreds_of_uneven_series_and_changes_are_found() -> None:
    # Where nothing changed noises are uneven, a quarter of them above 3 %; a change of 1 % is none that is told.
    random = np.random.default_rng(5)
    planted = {"nothing": 1.0, "tenth": 1.1, "twentieth": 1.05, "little": 1.01}
    noises = {"nothing": 0.015 * np.exp(random.normal(0, 1, 300)), "little": np.full(300, 0.004)}
    told = dict.fromkeys(planted, 0)
    for some in range(0, 300, 100):
        launches = []
        for (what, ratio), i in itertools.product(planted.items(), range(some, some + 100)):
            noise = float(noises[what][i]) if what in noises else 0.015
            drift = np.exp(random.normal(0, 0.1, 8))
            olds, news = (drift * noisy(random, seconds, noise, 8) for seconds in (0.3, 0.3 * ratio))
            launches += both(f"{what}.Q{i}.track_time", olds, news)
        for change in compare(launches, OLD, NEW):
            told[change.series.question] += change.verdict in (Verdict.SLOWER, Verdict.FASTER)
    assert told["nothing"] <= 3
    assert told["little"] == 0
    assert told["tenth"] >= 0.95 * 300
    assert told["twentieth"] >= 0.8 * 300


def test_error_rate_of_each_is_that_of_benjamini_and_hochberg(monkeypatch: pytest.MonkeyPatch) -> None:
    # The example of their paper (1995, section 4.1): of these 15, four are rejected at 5 %.
    monkeypatch.setattr(verdicts, "FALSE_RATE", 0.05)
    p_values = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459]
    p_values += [0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    evidence = [Evidence(float(stats.norm.isf(p / 2)), 1.0, 1e9) for p in p_values]
    assert [item.p_value for item in evidence] == pytest.approx(p_values)
    assert error_rate_of_each(evidence) == pytest.approx(0.05 * 4 / 15)
    assert error_rate_of_each(evidence[-3:]) == pytest.approx(0.05 / 3)
    assert error_rate_of_each([]) == 0.05


def test_error_rate_of_each_is_what_scipy_makes_of_many_chances() -> None:
    random = np.random.default_rng(0)
    for _ in range(100):
        evidence = [Evidence(float(shift), 0.02, 6) for shift in random.normal(0, 0.1, size=random.integers(1, 200))]
        chances = [item.p_value if item.beyond else 1.0 for item in evidence]
        changed = int((stats.false_discovery_control(chances) <= FALSE_RATE).sum())
        assert error_rate_of_each(evidence) == FALSE_RATE * max(1, changed) / len(chances)


@pytest.mark.parametrize("value", [1e-6, 1e-3, 0.1, 1.0, 10.0, 1e4])
def test_where_trigamma_is_where_it_is(value: float) -> None:
    assert special.polygamma(1, where_trigamma(value)) == pytest.approx(value, rel=1e-9)


def test_true_changes_within_the_margin_do_not_make_room_for_false_ones_beyond_it() -> None:
    tiny = [Evidence(0.01, 0.0001, 20)] * 99
    assert tiny[0].p_value < 1e-9
    assert error_rate_of_each([*tiny, Evidence(0.2, 0.05, 20)]) == FALSE_RATE / 100


def test_more_series_make_a_verdict_harder_and_exact_numbers_do_not() -> None:
    found = timed(OLD, [1.0, 1.01, 0.99]) + timed(NEW, [1.12, 1.11, 1.13])
    numbers = [1.0, 1.001, 0.999]

    def with_others(benchmark: str) -> Change:
        changes = compare([*found, *beside(benchmark, 300, numbers, numbers)], OLD, NEW)
        return next(change for change in changes if change.series.benchmark == TIME)

    assert only(found).verdict is Verdict.SLOWER
    assert with_others(COUNT) == only(found)
    drowned = with_others("latency.Latency.track_first_call")
    assert drowned.verdict is Verdict.CANT_TELL
    assert drowned.confidence == pytest.approx(1 - FALSE_RATE / 301)


def test_change_of_the_detectable_size_is_told_four_times_of_five() -> None:
    random = np.random.default_rng(6)
    trials = 300
    sizes = [
        only(timed(OLD, noisy(random, 1.0, 0.02, 8)) + timed(NEW, noisy(random, 1.0, 0.02, 8))).detectable
        for _ in range(trials)
    ]
    size = float(np.median([size for size in sizes if size is not None]))
    told = sum(
        only(timed(OLD, noisy(random, 1.0, 0.02, 8)) + timed(NEW, noisy(random, size, 0.02, 8))).verdict
        is Verdict.SLOWER
        for _ in range(trials)
    )
    # three standard deviations of 300 tosses at 80 % are 7 %
    assert 0.73 <= told / trials <= 0.87


# --- rounds


def test_interval_is_that_of_students_paired_test() -> None:
    random = np.random.default_rng(8)
    drift = np.exp(random.normal(0, 0.4, 5))
    olds, news = drift * noisy(random, 1.0, 0.01, 5), drift * noisy(random, 1.2, 0.01, 5)
    change = only(timed(OLD, olds) + timed(NEW, news))
    expected = stats.ttest_rel(np.log(news), np.log(olds)).confidence_interval(1 - FALSE_RATE)
    assert change.verdict is Verdict.SLOWER
    assert (change.low, change.high) == pytest.approx((math.exp(expected.low), math.exp(expected.high)))
    assert change.ratio == pytest.approx(1.2, rel=0.02)


def test_launches_of_plain_asv_have_no_rounds_and_are_compared_by_students_test() -> None:
    olds, news = [1.0, 1.02, 0.99], [1.3, 1.28, 1.31, 1.27]
    change = only(timed(OLD, olds, round=0) + timed(NEW, news, round=0))
    expected = stats.ttest_ind(np.log(news), np.log(olds)).confidence_interval(1 - FALSE_RATE)
    assert change.launches == (3, 4)
    assert (change.low, change.high) == pytest.approx((math.exp(expected.low), math.exp(expected.high)))


def test_machine_of_another_speed_on_another_day_is_no_change() -> None:
    # The second day takes three times as long; the third session holds the new release alone, five times as slow.
    launches = [
        *timed(OLD, [1.00, 1.01, 0.995], session="monday"),
        *timed(NEW, [1.005, 1.00, 1.00], session="monday"),
        *timed(OLD, [3.00, 3.01, 2.99], session="tuesday"),
        *timed(NEW, [2.99, 3.02, 3.00], session="tuesday"),
        *timed(NEW, [5.0, 5.0, 5.0], session="wednesday"),
    ]
    change = only(launches)
    assert (change.verdict, change.launches) == (Verdict.SAME, (6, 6))


def test_two_days_say_what_changed_although_their_machines_differ() -> None:
    launches = [
        *timed(OLD, [1.00, 1.01, 0.995], session="monday"),
        *timed(NEW, [1.205, 1.20, 1.20], session="monday"),
        *timed(OLD, [3.00, 3.01, 2.99], session="tuesday"),
        *timed(NEW, [3.59, 3.62, 3.60], session="tuesday"),
    ]
    assert only(launches).verdict is Verdict.SLOWER


def test_round_that_holds_one_release_only_does_not_count() -> None:
    # The session was stopped in its fourth round, when the machine had become slow.
    launches = timed(OLD, [1.0, 1.01, 1.0, 9.0]) + timed(NEW, [1.0, 1.0, 1.01])
    change = only(launches)
    assert (change.verdict, change.launches) == (Verdict.SAME, (3, 3))


def test_session_without_a_round_in_common_cannot_tell() -> None:
    failed = launch(NEW, TIME, MISSING["failed"], round=1)
    change = only([*timed(OLD, [1.0]), failed, *timed(NEW, [2.0], round=2)])
    assert (change.verdict, change.reason, change.low) == (Verdict.CANT_TELL, NO_CHAIN, None)


OTHERS = ("v2.0.0", "v2.1.1", "v2.1.2")


def others(random: np.random.Generator, noise: float, rounds: int) -> list[Launch]:
    """Launches of three other releases of the same rounds."""
    return [one for tag in OTHERS for one in timed(tag, noisy(random, 1.0, noise, rounds))]


@pytest.mark.parametrize("releases", [2, 5])
@pytest.mark.parametrize("launches", [2, 3, 4, 5, 6])
def test_one_launch_out_of_line_among_few_is_no_change(launches: int, releases: int) -> None:
    random = np.random.default_rng(launches)
    for _ in range(30):
        olds, news = noisy(random, 1.0, 0.003, launches), noisy(random, 1.0, 0.003, launches)
        news[1] *= 3
        beside = others(random, 0.003, launches) if releases > 2 else []
        assert only(timed(OLD, olds) + timed(NEW, news) + beside).verdict is Verdict.CANT_TELL


@pytest.mark.parametrize("rounds", [2, ROBUST_FROM])
def test_other_releases_of_few_rounds_tell_of_noise_and_leave_the_ratio(rounds: int) -> None:
    random = np.random.default_rng(rounds)
    olds, news = noisy(random, 1.0, 0.02, rounds), noisy(random, 1.3, 0.02, rounds)
    alone = timed(OLD, olds) + timed(NEW, news)
    launches = alone + others(random, 0.02, rounds)
    change, expected = (
        only(launches),
        dense(observations(next(iter(history(launches).values())), OLD, NEW, *OTHERS), OLD, NEW),
    )
    half = stats.t.ppf(1 - FALSE_RATE / 2, 4 * (rounds - 1)) * math.sqrt(expected.variance * expected.factor)
    assert expected.freedom == 4 * (rounds - 1)
    assert change.ratio == pytest.approx(only(alone).ratio)
    assert (change.low, change.high) == pytest.approx([(change.ratio or 0) * math.exp(sign * half) for sign in (-1, 1)])


def test_other_releases_of_many_rounds_are_left_out() -> None:
    random = np.random.default_rng(8)
    rounds = ROBUST_FROM + 1
    alone = timed(OLD, noisy(random, 1.0, 0.02, rounds)) + timed(NEW, noisy(random, 1.3, 0.02, rounds))
    assert only(alone + others(random, 0.02, rounds)) == only(alone)


def test_disturbed_launches_of_other_releases_are_not_counted() -> None:
    random = np.random.default_rng(9)
    disturbed = [replace(one, facts={"conditions": {"disturbed": "it was loud"}}) for one in others(random, 0.02, 3)]
    assert only(timed(OLD, [1.0, 1.01, 1.0]) + timed(NEW, [1.1, 1.12, 1.1]) + disturbed).disturbed == 0


def test_two_rounds_of_five_releases_find_a_change_and_call_next_to_none_falsely() -> None:
    random = np.random.default_rng(20)
    tags = (OLD, NEW, *OTHERS)
    launches = []
    for i, noise in enumerate(0.01 * np.exp(random.normal(0, 0.7, 300))):
        for turn, drift in enumerate(np.exp(random.normal(0, 0.1, 2)), 1):
            for tag in tags:
                planted = 1.2 if tag == NEW and i < 30 else 1.0
                second = float(planted * drift * np.exp(random.normal(0, noise)))
                launches += counted(tag, [second], f"q{i}.Q.track_time", round=turn)
    told = {int(one.series.question[1:]) for one in compare(launches, OLD, NEW) if one.verdict is Verdict.SLOWER}
    false = [one for one in compare(launches, OLD, "v2.1.1") if one.verdict in (Verdict.SLOWER, Verdict.FASTER)]
    assert len(told & set(range(30))) >= 20
    assert len(told - set(range(30))) <= 1
    assert len(false) <= 1


@pytest.mark.parametrize("disturbed", [1, 2])
@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, Verdict.SAME), (1.1, Verdict.SLOWER)])
def test_launches_out_of_line_among_many_do_not_hide_the_verdict(
    ratio: float, verdict: Verdict, disturbed: int
) -> None:
    random = np.random.default_rng(9)
    for _ in range(30):
        olds, news = noisy(random, 1.0, 0.003, 10), noisy(random, ratio, 0.003, 10)
        news[:disturbed] = [3 * second for second in news[:disturbed]]
        change = only(timed(OLD, olds) + timed(NEW, news))
        assert change.verdict is verdict
        assert change.ratio == pytest.approx(ratio, abs=0.015)


def test_what_is_out_of_line_is_pulled_in_as_huber_says() -> None:
    # Of two releases his equation is that of the rounds' differences: pulled in around the estimate they have the mean 0.
    random = np.random.default_rng(10)
    differences = random.normal(0, [0.1] * 9 + [1, 3, 3])
    change = only(timed(OLD, [1.0] * 12) + timed(NEW, np.exp(differences)))

    def far(shift: float) -> float:
        return float(np.median(np.abs(differences - shift)))

    def pulled(shift: float, limit: float) -> np.ndarray:
        return np.clip(differences - shift, -limit, limit)

    middle = optimize.brentq(lambda x: pulled(x, far(x)).sum(), *np.quantile(differences, [0.2, 0.8]))
    limit = PULLED_IN * 1.4826 * far(middle)
    shift = optimize.brentq(lambda x: pulled(x, limit).sum(), differences.min(), differences.max())
    inside = float(np.isclose(pulled(shift, limit), differences - shift).mean())
    error = math.sqrt((pulled(shift, limit) ** 2).sum() / 11 / 12) / inside
    half = stats.t.ppf(1 - FALSE_RATE / 2, 11 * inside) * error
    assert inside < 1
    assert change.ratio == pytest.approx(math.exp(shift), rel=1e-4)
    assert (change.low, change.high) == pytest.approx((math.exp(shift - half), math.exp(shift + half)), rel=1e-3)


def test_two_days_of_one_launch_each_know_next_to_nothing_and_say_so() -> None:
    launches = [
        *timed(OLD, [1.0], session="monday"),
        *timed(NEW, [1.3], session="monday"),
        *timed(OLD, [1.0], session="tuesday"),
        *timed(NEW, [2.6], session="tuesday"),
    ]
    change = only(launches)
    assert change.verdict is Verdict.CANT_TELL
    assert change.detectable is not None
    assert 10 < change.detectable < math.inf


# --- over other releases

NO_CHAIN = "no round has a number for both, and no chain of rounds with common releases connects them"


def chained(random: np.random.Generator, rounds: int) -> list[Launch]:
    """One release and another on a slow Monday, that and a third on a fast Tuesday: 1.0, 1.2 and 0.9 seconds."""
    days = {"monday": (2.0, {OLD: 1.0, "v2.0.2": 1.2}), "tuesday": (0.5, {"v2.0.2": 1.2, NEW: 0.9})}
    drift = {day: speed * np.exp(random.normal(0, 0.1, rounds)) for day, (speed, _) in days.items()}
    return [
        one
        for day, (_, levels) in days.items()
        for release, level in levels.items()
        for one in timed(release, drift[day] * noisy(random, level, 0.005, rounds), session=day)
    ]


def test_releases_that_sessions_tie_by_another_are_compared_by_least_squares() -> None:
    launches = chained(np.random.default_rng(11), 4)
    change = only(launches)
    # By NumPy: a column per release but the first, one per round.
    blocks = sorted({(one.session, one.round) for one in launches})
    columns = [
        [one.release == NEW, one.release == "v2.0.2", *((one.session, one.round) == b for b in blocks)]
        for one in launches
    ]
    design = np.array(columns, dtype=float)
    logs = np.log([one.cases[0].number or 0 for one in launches])
    solution, (squares,), rank, _ = np.linalg.lstsq(design, logs)
    error = math.sqrt(squares / (16 - rank) * np.linalg.inv(design.T @ design)[0, 0])
    half = stats.t.ppf(1 - FALSE_RATE / 2, 16 - rank) * error
    assert rank == 10
    assert change.verdict is Verdict.FASTER
    assert change.ratio == pytest.approx(math.exp(solution[0]))
    assert change.ratio == pytest.approx(0.9, rel=0.03)
    assert (change.low, change.high) == pytest.approx((math.exp(solution[0] - half), math.exp(solution[0] + half)))


def test_rounds_of_one_release_alone_say_nothing_of_noise() -> None:
    launches = chained(np.random.default_rng(12), 5)
    alone = timed("v2.0.2", [1.0] * 30, session="wednesday")
    found, expected = only([*launches, *alone]), only(launches)
    assert (found.ratio, found.low, found.high) == pytest.approx((expected.ratio, expected.low, expected.high))


def test_chain_of_single_rounds_has_a_ratio_and_no_evidence() -> None:
    change = only(chained(np.random.default_rng(13), 1))
    assert (change.verdict, change.low) == (Verdict.CANT_TELL, None)
    assert change.ratio == pytest.approx(0.9, rel=0.03)


def test_rounds_of_both_releases_are_preferred_to_a_chain() -> None:
    random = np.random.default_rng(14)
    friday = timed(OLD, noisy(random, 1.0, 0.01, 4), session="friday")
    friday += timed(NEW, noisy(random, 0.9, 0.01, 4), session="friday")
    assert only([*chained(random, 4), *friday]) == only(friday)


def dense(seen: Sequence[Observation], old: str, new: str) -> Estimate:
    """Least squares with a column for each release but the old one and for each round."""
    releases = [new, *sorted({one.release for one in seen} - {old, new})]
    blocks = sorted({one.block for one in seen})
    columns = [[*(one.release == tag for tag in releases), *(one.block == block for block in blocks)] for one in seen]
    design = np.array(columns, dtype=float)
    solution = np.linalg.pinv(design)
    logs = np.log([one.number for one in seen])
    effects = solution @ logs
    freedom = len(seen) - design.shape[1]
    variance = float(((logs - design @ effects) ** 2).sum()) / max(freedom, 1)
    return Estimate(float(effects[0]), float(solution[0] @ solution[0]), variance, float(freedom))


@pytest.mark.parametrize("few", [0, 100])
def test_estimate_is_that_of_a_column_per_round(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    # Rounds of one release or of many, some with a release more than once, as plain asv has it.
    monkeypatch.setattr(verdicts, "FEW", few)
    monkeypatch.setattr(verdicts, "ROBUST_FROM", math.inf)
    random = np.random.default_rng(16)
    kinds: Counter[bool] = Counter()
    for _ in range(60):
        tags = [OLD, NEW, *(f"v3.{i}.0" for i in range(random.integers(0, 5)))]
        launches = [
            one
            for session in range(random.integers(1, 6))
            for turn in range(1, random.integers(2, 6))
            for tag in random.choice(tags, random.integers(1, min(len(tags), 3) + 1), replace=bool(turn == 1))
            for one in timed(
                str(tag), [float(random.lognormal(0, 0.1))], session=f"s{session}", round=0 if turn == 1 else turn
            )
        ]
        releases = next(iter(history(launches).values()))
        if seen := comparable(releases, OLD, NEW):
            kinds[len({one.release for one in seen}) > 2] += 1
            found, expected = estimate(seen, OLD, NEW), dense(seen, OLD, NEW)
            assert vars(found) == pytest.approx(vars(expected), rel=1e-9, abs=1e-15)
    assert min(kinds.values()) >= 5
    assert len(kinds) == 2


def test_a_thousand_releases_that_sessions_tie_in_twos_are_compared() -> None:
    # Of 999 steps with a noise of 0.05 % each the last is known to 0.0005 sqrt(999 x 2 / 3) = 1.3 %.
    random = np.random.default_rng(17)
    launches = [
        one
        for i in range(999)
        for k in (i, i + 1)
        for one in timed(f"v3.{k}.0", noisy(random, 1.0001**k, 0.0005, 3), session=f"s{i}")
    ]
    change = only(launches, "v3.0.0", "v3.999.0")
    assert (change.verdict, change.launches) == (Verdict.SLOWER, (3, 3))
    assert math.log((change.high or 0) / (change.low or 1)) / 2 == pytest.approx(2.58 * 0.0129, rel=0.05)
    assert (change.low or 0) < 1.0001**999 < (change.high or 0)


# --- noise that series tell each other


def estimates(variances: Iterable[float], freedom: float, metric: str = "time") -> dict[Series, Estimate]:
    return {
        Series("e", f"q.Q.track_{metric}", (f"{i}",)): Estimate(0.1, 0.5, float(variance), freedom)
        for i, variance in enumerate(variances)
    }


def test_series_of_equal_noise_lend_each_other_as_much_as_may_be_lent() -> None:
    # By hand: on 4 degrees of freedom the logarithm of a variance lies log(2) - digamma(2) = 0.6931 - 0.4228 below the
    # true one, so that is 1.3104 times as large; with 20 degrees of freedom beside 4 it counts for five sixths.
    (evidence,) = set(weigh(estimates([0.0009] * LENDERS, 4)).values())
    assert evidence.freedom == MOST_LENT + 4 == 24
    assert evidence.error == pytest.approx(math.sqrt(0.5 * 0.0009 * (5 * 1.3104 + 1) / 6), rel=1e-4)


def test_what_rounding_leaves_where_launches_agree_says_nothing_of_noise() -> None:
    noisy, exact = (list(estimates(variances, 4).values()) for variances in ([0.0009] * LENDERS, [1e-32] * LENDERS))
    assert common_noise([*noisy, *exact]) == common_noise(noisy)
    assert common_noise(exact) == (0.0, 0.0)


def test_few_series_and_those_of_another_metric_lend_nothing() -> None:
    few = estimates([0.0009] * (LENDERS - 1), 4)
    assert set(weigh(few).values()) == {Evidence(0.1, math.sqrt(0.5 * 0.0009), 4)}
    others = estimates([0.01] * 50, 4, "first_call")
    assert [weigh({**few, **others})[series] for series in few] == list(weigh(few).values())


@pytest.mark.parametrize(("lent", "found"), [(4.0, 4.0), (10.0, 10.0), (1e6, MOST_LENT)])
def test_common_noise_is_found_from_variances_that_differ_and_scatter(lent: float, found: float) -> None:
    random = np.random.default_rng(15)
    true = 0.0004 * lent / random.chisquare(lent, 4000)
    common, freedom = common_noise(list(estimates(true * random.chisquare(7, 4000) / 7, 7).values()))
    assert common == pytest.approx(0.0004, rel=0.06)
    assert freedom == pytest.approx(found, rel=0.15)


def test_launches_that_agree_to_the_last_digit_are_no_proof_of_the_smallest_change() -> None:
    change = only(timed(OLD, [1.0, 1.0, 1.0]) + timed(NEW, [1.0, 1.0, 1.0]))
    assert change.verdict is Verdict.SAME
    assert change.low is not None
    assert change.low < 1


# --- disturbed launches

DISTURBED = {"conditions": {"disturbed": "another process took 40 % of a core"}}


def test_all_fair_askings_of_a_round_count_and_none_that_was_disturbed() -> None:
    def asked(*numbers: float, facts: dict[str, Any] | None = None) -> Launch:
        case = Case(("'eager'",), samples=numbers) if numbers else Case(("'eager'",), failed="it was killed")
        return launch(OLD, TIME, case, facts=facts or {})

    def samples(*launches: Launch) -> tuple[float, ...]:
        (releases,) = history(launches).values()
        ((_, case),) = releases[OLD]
        return case.samples

    assert samples(asked(1.2), asked(1.0, 1.1)) == (1.2, 1.0, 1.1)
    assert samples(asked(1.2, facts=DISTURBED), asked(1.0)) == (1.0,)
    assert samples(asked(1.2), asked(1.0, facts=DISTURBED)) == (1.2,)
    assert samples(asked(1.2, facts=DISTURBED), asked(1.0, facts=DISTURBED)) == (1.2, 1.0)
    assert samples(asked(1.2), asked()) == (1.2,)


def test_disturbed_launch_that_was_repeated_does_not_count() -> None:
    launches = timed(OLD, [0.30, 0.301, 0.299]) + timed(NEW, [0.30, 0.300, 0.301])
    first = timed(OLD, [0.5], facts=DISTURBED) + timed(NEW, [0.9], facts=DISTURBED)
    disturbed = [replace(one, started_at="2026-11-20T00:00:00+00:00") for one in first]
    assert only([*launches, *disturbed]) == only(launches)
    assert only(launches).disturbed == 0


def test_disturbed_launch_that_was_not_repeated_counts_and_is_counted() -> None:
    quiet = timed(OLD, [0.30, 0.301]) + timed(NEW, [0.30, 0.300])
    noise = timed(OLD, [0.5], facts=DISTURBED, round=3) + timed(NEW, [0.51], facts=DISTURBED, round=3)
    change = only([*quiet, *noise])
    assert (change.launches, change.disturbed) == ((3, 3), 2)


# --- bytes and counts


@pytest.mark.parametrize(
    ("benchmark", "old", "new", "verdict"),
    [
        (BYTES, 240_000_000, 240_000_001, Verdict.HUNGRIER),
        (BYTES, 240_000_000, 239_999_999, Verdict.LEANER),
        (BYTES, 240_000_000, 240_000_000, Verdict.SAME),
        (COUNT, 53, 54, Verdict.MORE),
        (COUNT, 53, 52, Verdict.FEWER),
        (COUNT, 53, 53, Verdict.SAME),
        (COUNT, 0, 1, Verdict.MORE),
        (COUNT, 1, 0, Verdict.FEWER),
        (COUNT, 0, 0, Verdict.SAME),
    ],
)
def test_any_difference_of_an_exact_number_is_real(benchmark: str, old: int, new: int, verdict: Verdict) -> None:
    change = only(counted(OLD, [old], benchmark) + counted(NEW, [new], benchmark))
    assert change.verdict is verdict
    assert (change.old, change.new) == (old, new)
    if old:
        assert change.ratio == change.low == change.high == new / old


def test_count_that_varies_between_launches_cannot_tell_and_shows_the_values() -> None:
    change = only(counted(OLD, [53, 54], COUNT) + counted(NEW, [60, 60], COUNT))
    assert change.verdict is Verdict.CANT_TELL
    assert "[53, 54]" in change.reason
    assert "[60]" in change.reason


STALLS = "warm_up.WarmUp.track_stalls"


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ([1], [9], Verdict.CANT_TELL),
        ([1, 1], [9, 9], Verdict.MORE),
        ([1, 1], [1, 1], Verdict.SAME),
        ([1, 2], [9, 9], Verdict.CANT_TELL),
    ],
)
def test_stalls_changed_where_all_launches_agree(old: list[int], new: list[int], verdict: Verdict) -> None:
    assert only(counted(OLD, old, STALLS) + counted(NEW, new, STALLS)).verdict is verdict


# --- numbers that are missing

NEEDS = "torch.compile needs torch >= 2.0"
WRONG = "WrongResult: an overlap area is off by 3.2 square pixels"
MISSING = {"unavailable": Case(EAGER, unavailable=NEEDS), "failed": Case(EAGER, failed=WRONG)}
UNMEASURED = Case(EAGER, unmeasured="no process can be forked")


@pytest.mark.parametrize(("kind", "reason"), [("unavailable", NEEDS), ("failed", WRONG)])
def test_number_that_was_lost_broke_with_its_reason(kind: str, reason: str) -> None:
    change = only([*timed(OLD, [0.3, 0.5]), launch(NEW, TIME, MISSING[kind])])
    assert change == Change(change.series, Verdict.BROKE, old=0.4, launches=(2, 0), reason=reason)


@pytest.mark.parametrize(("kind", "reason"), [("unavailable", NEEDS), ("failed", WRONG)])
def test_number_that_was_won_is_fixed_with_the_reason_it_was_missing(kind: str, reason: str) -> None:
    change = only([launch(OLD, TIME, MISSING[kind]), *timed(NEW, [0.3, 0.5])])
    assert change == Change(change.series, Verdict.FIXED, new=0.4, launches=(0, 2), reason=reason)


@pytest.mark.parametrize(("released", "expected"), [((OLD, NEW), (1, None)), ((NEW, OLD), (None, 1))])
def test_what_the_recorder_could_not_count_neither_breaks_nor_mends_a_release(
    released: tuple[str, str], expected: tuple[float | None, float | None]
) -> None:
    counted_on, refused_on = released
    refused = launch(refused_on, BYTES, MISSING["unavailable"], facts={"device": "recorder"})
    change = only([*counted(counted_on, [1]), refused])
    assert (change.verdict, change.old, change.new) == (Verdict.CANT_TELL, *expected)
    assert change.reason == f"{refused_on} was not counted: {NEEDS}"
    failed = launch(refused_on, BYTES, MISSING["failed"], facts={"device": "recorder"})
    assert only([*counted(counted_on, [1]), failed]).verdict in (Verdict.BROKE, Verdict.FIXED)


@pytest.mark.parametrize("metric", [TIME, BYTES])
@pytest.mark.parametrize(("released", "expected"), [((OLD, NEW), (1, None)), ((NEW, OLD), (None, 1))])
def test_what_the_suite_could_not_measure_neither_breaks_nor_mends_a_release(
    released: tuple[str, str], expected: tuple[float | None, float | None], metric: str
) -> None:
    measured_on, lacking = released
    unmeasured = launch(lacking, metric, UNMEASURED)
    measured = timed(measured_on, [1.0]) if metric == TIME else counted(measured_on, [1])
    change = only([*measured, unmeasured])
    assert (change.verdict, change.old, change.new) == (Verdict.CANT_TELL, *expected)
    assert change.reason == f"{lacking} was not measured, because {UNMEASURED.unmeasured}"


@pytest.mark.parametrize("unmeasured_on", [OLD, NEW])
@pytest.mark.parametrize("kind", MISSING)
def test_what_the_suite_could_not_measure_is_not_said_to_have_never_run(unmeasured_on: str, kind: str) -> None:
    other = OLD if unmeasured_on == NEW else NEW
    change = only([launch(other, TIME, MISSING[kind]), launch(unmeasured_on, TIME, UNMEASURED)])
    assert change.verdict is Verdict.CANT_TELL
    assert change.reason.startswith(f"{unmeasured_on} was not measured, because ")


def test_failure_of_the_suite_in_the_same_round_leaves_the_number_before_it() -> None:
    (before,) = counted(NEW, [1])
    later = launch(NEW, BYTES, UNMEASURED, launch=before.launch, round=before.round)
    assert only([*counted(OLD, [1]), before, later]).verdict is Verdict.SAME


def test_number_that_neither_has_never_ran_with_the_newer_reason() -> None:
    change = only([launch(OLD, TIME, MISSING["failed"]), launch(NEW, TIME, MISSING["unavailable"])])
    assert change == Change(change.series, Verdict.NEVER_RAN, reason=NEEDS)


def test_bytes_break_like_times() -> None:
    assert only([*counted(OLD, [1]), launch(NEW, BYTES, MISSING["failed"])]).verdict is Verdict.BROKE


@pytest.mark.parametrize("measured", [OLD, NEW])
def test_release_that_was_not_measured_cannot_tell(measured: str) -> None:
    change = only(timed(measured, [0.3, 0.3, 0.3]))
    assert change == Change(change.series, Verdict.CANT_TELL, reason="it was not measured")


def test_failure_of_one_launch_does_not_hide_the_numbers_of_the_others() -> None:
    failed = launch(NEW, TIME, MISSING["failed"], round=4)
    launches = [*timed(OLD, [0.30, 0.31, 0.30, 0.31]), *timed(NEW, [0.60, 0.61, 0.60]), failed]
    assert only(launches).verdict is Verdict.SLOWER


# --- which launches count


def test_only_sessions_that_hold_both_releases_count() -> None:
    # In s2 the machine was five times slower, and only the new release was measured.
    together = timed(OLD, [0.30, 0.31, 0.30]) + timed(NEW, [0.30, 0.31, 0.30])
    alone = timed(NEW, [1.5, 1.6, 1.5], session="s2")
    assert only(together + alone).verdict is Verdict.SAME
    assert only(together + alone).launches == (3, 3)


def test_times_of_separate_sessions_cannot_tell() -> None:
    # Two sessions may differ by the machine alone.
    launches = timed(OLD, [0.30, 0.31, 0.30], session="s1") + timed(NEW, [0.40, 0.41, 0.40], session="s2")
    change = only(launches)
    assert (change.verdict, change.reason) == (Verdict.CANT_TELL, NO_CHAIN)
    assert (change.low, change.high) == (None, None)


def test_exact_numbers_of_separate_sessions_can_be_compared() -> None:
    launches = counted(OLD, [10], session="s1") + counted(NEW, [11], session="s2")
    assert only(launches).verdict is Verdict.HUNGRIER


def test_only_the_newest_version_of_a_benchmark_counts() -> None:
    earlier = timed(OLD, [9.0, 9.0], version="0") + timed(NEW, [1.0, 1.0], version="0")
    later = timed(OLD, [0.30, 0.31]) + timed(NEW, [0.30, 0.31])
    change = only(earlier + later)
    assert change.launches == (2, 2)
    assert change.old == pytest.approx(0.305)
    assert only([*later, *earlier]) == change  # whatever the order of the files


def test_release_measured_only_in_an_older_version_was_not_measured() -> None:
    change = only(timed(OLD, [0.3, 0.3], version="0") + timed(NEW, [0.3, 0.3]))
    assert (change.verdict, change.reason) == (Verdict.CANT_TELL, "it was not measured")


def test_other_releases_and_other_series_are_left_alone() -> None:
    scripted = ("'scripted'", "'small'")
    launches = [
        *timed(OLD, [0.30, 0.31, 0.30]),
        *timed(NEW, [0.30, 0.31, 0.30]),
        *timed("v2.2.0", [9.0, 9.0, 9.0]),
        *timed(NEW, [9.0, 9.0, 9.0], environment="release-py3.9"),
        launch(OLD, TIME, Case(scripted, samples=(1.0,))),
        launch(NEW, TIME, Case(scripted, samples=(2.0,))),
    ]
    changes = {(change.series.environment, change.series.parameters): change for change in compare(launches, OLD, NEW)}
    assert len(changes) == 3
    assert changes["release-py3.11", EAGER].verdict is Verdict.SAME
    assert changes["release-py3.11", scripted].ratio == pytest.approx(2.0)
    assert changes["release-py3.9", EAGER].reason == "it was not measured"


def test_rounds_of_one_start_of_the_interpreter_are_one_launch() -> None:
    # Plain asv takes two rounds in one start: their samples are pooled, and one launch each cannot tell.
    launches = [
        launch(release, TIME, Case(EAGER, samples=samples), launch=f"start of {release}", round=0)
        for release, rounds in ((OLD, [(6.0,), (1.0, 2.0)]), (NEW, [(60.0,), (10.0, 20.0)]))
        for samples in rounds
    ]
    change = only(launches)
    assert change.launches == (1, 1)
    assert (change.old, change.new) == pytest.approx((1.0, 10.0))
    assert change.verdict is Verdict.CANT_TELL


def test_what_costs_comes_first_and_what_is_the_same_after_it() -> None:
    launches = [
        *counted(OLD, [10], BYTES),
        *counted(NEW, [10], BYTES),
        *counted(OLD, [10], COUNT),
        *counted(NEW, [11], COUNT),
        *timed(OLD, [0.30, 0.31, 0.30]),
        *timed(NEW, [0.60, 0.61, 0.60]),
    ]
    assert [change.verdict.words for change in compare(launches, OLD, NEW)] == ["SLOWER", "MORE", "SAME"]


def test_series_that_neither_release_has_is_not_mentioned() -> None:
    assert compare(timed("v2.2.0", [0.3]), OLD, NEW) == []


def test_history_is_in_order_of_time_release_by_release() -> None:
    first, second, third = timed(OLD, [1.0, 2.0, 3.0])
    other = timed(NEW, [4.0])
    ((series, releases),) = history([third, *other, first, second]).items()
    assert series == Series("release-py3.11", TIME, EAGER)
    assert {tag: [case.number for _, case in pairs] for tag, pairs in releases.items()} == {
        OLD: [1.0, 2.0, 3.0],
        NEW: [4.0],
    }


# --- words


@pytest.mark.parametrize(
    ("benchmark", "words", "unit"),
    [
        (TIME, "intersection time, eager small", "seconds"),
        (BYTES, "intersection peak memory, eager small", "bytes"),
        (COUNT, "intersection operators, eager small", ""),
        ("autograd.Autograd.track_retained", "autograd retained, eager small", "bytes"),
        ("latency.Latency.track_first_call", "latency first call, eager small", "seconds"),
        ("latency.Latency.track_worst_over_median", "latency worst over median, eager small", "ratio"),
    ],
)
def test_series_is_said_as_a_person_says_it(benchmark: str, words: str, unit: str) -> None:
    series = Series("release-py3.11", benchmark, EAGER)
    assert (series.words, series.unit) == (words, unit)


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (240_000_000, "bytes", "240,000,000 B"),
        (53, "", "53"),
        (0.0579, "seconds", "57.9ms"),
        (3.14159, "ratio", "3.14"),
        (None, "bytes", ""),
    ],
)
def test_number_is_said_with_its_unit(value: float | None, unit: str, said: str) -> None:
    assert human(value, unit) == said


def test_every_verdict_has_a_word_and_a_class_of_its_own() -> None:
    assert len({verdict.words for verdict in Verdict}) == len(Verdict) == 11
    assert {verdict.words: verdict.kind for verdict in Verdict}["CAN'T TELL"] == "can't tell"
    worse = {verdict.words for verdict in Verdict if verdict.kind == "worse"}
    assert worse == {"SLOWER", "HUNGRIER", "BROKE"}


def test_failure_of_a_later_round_of_the_same_launch_does_not_hide_its_samples() -> None:
    whole = timed(OLD, [0.3, 0.3, 0.3]) + timed(NEW, [0.3, 0.3, 0.3])
    later = launch(NEW, TIME, MISSING["failed"], launch=whole[-1].launch, round=whole[-1].round)
    assert only([*whole, later]).verdict is Verdict.SAME


def spent(first: int, rate: float, penalty: Callable[[int], float], walks: int = 500_000) -> float:
    """How often a series in which nothing changed is told at one of 25 looks, in times of `rate`; the first look comes after
    `first` rounds."""
    random = np.random.default_rng(22)
    total, told = random.standard_normal(walks) * math.sqrt(first), np.zeros(walks, bool)
    for looks in range(1, 26):
        told |= np.abs(total) > math.sqrt(first + looks - 1) * stats.norm.isf(rate / penalty(looks) / 2)
        total += random.standard_normal(walks)
    return float(told.mean()) / rate


@pytest.mark.parametrize("first", [2, 6])
@pytest.mark.parametrize("rate", [0.01, 0.001])
def test_all_looks_together_spend_little_more_than_one_does(first: int, rate: float) -> None:
    assert verdicts.penalty(1) == 1
    assert 1.1 < spent(first, rate, verdicts.penalty) < 1.7
    assert spent(first, rate, lambda looks: 1.0) > 5


def test_rounds_beyond_those_of_the_question_are_looks() -> None:
    """`again` has five rounds where the other two series of the question have three: three looks, so one sixth."""
    series = {name: Series("e", "q.Q.track_time", (name,)) for name in ("first", "second", "again")}
    rounds = {"first": 3, "second": 3, "again": 5}
    used = {
        series[name]: [
            verdicts.Observation(release, ("s", turn), 1.0, False) for turn in range(of) for release in (OLD, NEW)
        ]
        for name, of in rounds.items()
    }
    together = {one: verdicts.rounds_of_both(seen, OLD, NEW) for one, seen in used.items()}
    assert {one.parameters[0]: of for one, of in together.items()} == rounds
    found = verdicts.looked_at(dict.fromkeys(used, verdicts.Evidence(0.1, 0.02, 8.0)), together)
    assert {one.parameters[0]: of.looks for one, of in found.items()} == {"first": 1, "second": 1, "again": 3}
    once, thrice = (verdicts.Evidence(0.1, 0.02, 8.0, looks=of) for of in (1, 3))
    assert once.p_value == pytest.approx(2 * stats.t.sf(5.0, 8))
    assert thrice.p_value == pytest.approx(6 * once.p_value)


def test_levels_agree_with_the_ratio_where_medians_point_the_other_way() -> None:
    """Two of three rounds are slower by 16 %, but the one round that the old release alone has was slow."""
    olds, news = [1.0, 1.2, 3.0, 3.1], [1.16, 1.392]
    old, new = verdicts.levels(olds, news, math.log(1.16))
    assert statistics.median(olds) > statistics.median(news)
    assert new / old == pytest.approx(1.16)
    assert math.sqrt(old * new) == pytest.approx(math.sqrt(statistics.median(olds) * statistics.median(news)))


def test_levels_of_a_comparison_agree_with_its_ratio() -> None:
    numbers = {"v2.0.1": [1.0, 1.3, 1.7, 1.25], "v2.1.2": [1.16, 1.5, 1.98, 1.2]}
    launches = [
        launch(release, TIME, Case(("'a'",), samples=(number,)), round=turn)
        for release, of in numbers.items()
        for turn, number in enumerate(of, 1)
    ]
    (change,) = verdicts.compare(launches, "v2.0.1", "v2.1.2")
    assert change.old
    assert change.new
    assert change.new / change.old == pytest.approx(change.ratio)


@pytest.mark.parametrize(("nodes", "apart"), [(("n1", "n1"), False), (("n1", "n2"), True), (("", ""), False)])
def test_a_pair_that_no_node_measured_is_known_to_be_apart(nodes: tuple[str, str], apart: bool) -> None:
    middle = "v2.0.5"
    launches = []
    for node, session, tags in ((nodes[0], "s1", (OLD, middle)), (nodes[1], "s2", (middle, NEW))):
        facts = {"node": {"node": node}} if node else {}
        slow = 1.3 if node == "n2" else 1.0
        for tag in tags:
            seconds = [slow * (1 + 0.001 * number) for number in range(8)]
            launches += timed(tag, seconds, session=session, facts=facts)
    found = only(launches)
    assert found.apart is apart
    assert found.verdict is Verdict.SAME
    assert ("no node measured both" in sentence(found)) is apart
