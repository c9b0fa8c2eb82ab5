"""Does a verdict say what was planted? Launches are made here with a known truth, times as lognormal numbers."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from torch_history.launches import Case, Launch
from torch_history.verdicts import (
    ERROR_RATE,
    MARGIN,
    PAIRED_FROM,
    TRIMMED_FROM,
    Change,
    Evidence,
    Series,
    Verdict,
    compare,
    error_rate_of_each,
    history,
    human,
    weigh,
)

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
    """A launch for each of `seconds`, whose samples lie around it with it as their median."""
    return [
        launch(release, TIME, Case(EAGER, samples=(0.9 * second, second, 1.3 * second)), **changed)
        for second in seconds
    ]


def counted(release: str, values: Iterable[float], benchmark: str = BYTES, **changed: Any) -> list[Launch]:
    return [launch(release, benchmark, Case(EAGER, value=value), **changed) for value in values]


def only(launches: Sequence[Launch], old: str = OLD, new: str = NEW) -> Change:
    (change,) = compare(launches, old, new)
    return change


def by_round(release: str, seconds: Iterable[float], session: str = "s1") -> list[Launch]:
    """A launch in each round from 1."""
    return [
        one for turn, second in enumerate(seconds, 1) for one in timed(release, [second], session=session, round=turn)
    ]


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
        (1.05, 0.02, Verdict.CANT_TELL),  # on the margin
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


def test_interval_holds_the_planted_ratio_as_often_as_it_promises() -> None:
    random = np.random.default_rng(1)
    held, trials = 0, 400
    for _ in range(trials):
        change = only(timed(OLD, noisy(random, 1.0, 0.03, 4)) + timed(NEW, noisy(random, 1.2, 0.03, 4)))
        assert change.low is not None
        assert change.high is not None
        held += change.low <= 1.2 <= change.high
    # 95 % of 400, give or take three standard deviations of 1.1 %
    assert 0.92 <= held / trials <= 0.985


def test_ratio_is_that_of_the_geometric_means() -> None:
    # sqrt(1 x 4) = 2 and sqrt(3 x 12) = 6
    change = only(timed(OLD, [1.0, 4.0]) + timed(NEW, [3.0, 12.0]))
    assert change.ratio == pytest.approx(3.0)
    assert (change.old, change.new) == (2.5, 7.5)


def test_interval_is_welchs_on_logarithms() -> None:
    # By hand. Old logarithms 0 and d: mean d / 2, of variance d^2 / 4. New ones 1 -+ d sqrt(3) / 2, twice each: mean 1, of
    # variance d^2 / 4 too. So the standard error is d / sqrt(2), with (1/4 + 1/4)^2 / ((1/4)^2 / 1 + (1/4)^2 / 3) = 3
    # degrees of freedom (Student's own test would take 4), where t at 97.5 % is 3.18245.
    d = 0.2
    news = [math.exp(1 + sign * d * math.sqrt(3) / 2) for sign in (-1, -1, 1, 1)]
    change = only(timed(OLD, [1.0, math.exp(d)]) + timed(NEW, news))
    assert change.ratio == pytest.approx(math.exp(0.9))
    assert change.low == pytest.approx(math.exp(0.9 - 3.18245 * d / math.sqrt(2)), rel=1e-4)
    assert change.high == pytest.approx(math.exp(0.9 + 3.18245 * d / math.sqrt(2)), rel=1e-4)


def test_launch_counts_once_however_many_samples_it_has() -> None:
    few = timed(OLD, [0.3, 0.3003, 0.2997]) + timed(NEW, [0.3, 0.3003, 0.2997])
    many = [
        launch(one.release, TIME, Case(EAGER, samples=one.cases[0].samples * (50 if i == 0 else 1)))
        for i, one in enumerate(few)
    ]
    assert only(many).low == pytest.approx(only(few).low)
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


def test_false_alarms_are_rare() -> None:
    random = np.random.default_rng(7)
    verdicts: Counter[Verdict] = Counter()
    for _ in range(300):
        change = only(timed(OLD, noisy(random, 0.3, 0.01, 4)) + timed(NEW, noisy(random, 0.3, 0.01, 4)))
        verdicts[change.verdict] += 1
    assert (verdicts[Verdict.SLOWER] + verdicts[Verdict.FASTER]) / 300 < 0.02
    assert verdicts[Verdict.SAME] / 300 > 0.9


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
        olds, news = noisy(random, 1.0, 0.015, 4), noisy(random, 1.02, 0.015, 4)
        margin = math.log(1 + MARGIN)
        tests = [
            stats.ttest_ind(np.log(news) + sign * margin, np.log(olds), equal_var=False, alternative=side).pvalue
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
        size = ("'eager'", f"'{i}'")
        for release, ratio in ((OLD, 1.0), (NEW, float(random.choice([0.8, 1.0, 1.05, 1.12])))):
            launches += [
                launch(release, TIME, Case(size, samples=(second,))) for second in noisy(random, ratio, 0.01, 4)
            ]
    kinds: Counter[Verdict] = Counter()
    for change in compare(launches, OLD, NEW):
        assert change.low is not None
        assert change.high is not None
        kinds[change.verdict] += 1
        assert (change.verdict is Verdict.SLOWER) == (change.low > 1 + MARGIN)
        assert (change.verdict is Verdict.FASTER) == (change.high < 1 / (1 + MARGIN))
        assert change.verdict is not Verdict.SAME or 1 / (1 + MARGIN) <= change.low <= change.high <= 1 + MARGIN
    assert set(kinds) == {Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.CANT_TELL}


def test_false_alarms_of_a_whole_comparison_stay_at_the_error_rate() -> None:
    # All series lie on the margin itself, the worst case: any SLOWER is false, so a comparison with one is an error.
    # Of 80 comparisons 2 are expected (one side of 5 %); 8 or more have a probability below 0.2 % at 2.5 %. Without a
    # correction half of them and more would have one.
    random = np.random.default_rng(5)
    wrong = 0
    for _ in range(80):
        launches = []
        for i in range(30):
            size = ("'eager'", f"'{i}'")
            for release, seconds in ((OLD, 1.0), (NEW, 1 + MARGIN)):
                numbers = noisy(random, seconds, 0.01, 3)
                launches += [launch(release, TIME, Case(size, samples=(second,))) for second in numbers]
        wrong += any(change.verdict in (Verdict.SLOWER, Verdict.FASTER) for change in compare(launches, OLD, NEW))
    assert wrong < 8


def test_error_rate_of_each_is_that_of_benjamini_and_hochberg() -> None:
    # The example of their paper (1995, section 4.1): of these 15, four are rejected at 5 %.
    p_values = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459]
    p_values += [0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    beyond = [math.log(1 + MARGIN) + stats.norm.isf(p / 2) for p in p_values]
    evidence = [Evidence(float(shift), 1.0, 1e9) for shift in beyond]
    assert [item.p_value for item in evidence] == pytest.approx(p_values)
    assert error_rate_of_each(evidence) == pytest.approx(0.05 * 4 / 15)
    assert error_rate_of_each(evidence[-3:]) == pytest.approx(0.05 / 3)
    assert error_rate_of_each([]) == ERROR_RATE


def test_more_series_make_a_verdict_harder_and_exact_numbers_do_not() -> None:
    def beside(benchmark: str) -> list[Launch]:
        return [
            launch(release, benchmark, Case((f"'{i}'",), value=value))
            for i in range(300)
            for release in (OLD, NEW)
            for value in (1.0, 1.001, 0.999)
        ]

    found = timed(OLD, [1.0, 1.01, 0.99]) + timed(NEW, [1.12, 1.13, 1.11])
    assert only(found).verdict is Verdict.SLOWER
    (exact,) = [change for change in compare([*found, *beside(COUNT)], OLD, NEW) if change.series.benchmark == TIME]
    assert exact == only(found)
    first_call = "latency.Latency.track_first_call"
    (drowned,) = [
        change for change in compare([*found, *beside(first_call)], OLD, NEW) if change.series.benchmark == TIME
    ]
    assert drowned.verdict is Verdict.CANT_TELL
    assert drowned.confidence == pytest.approx(1 - ERROR_RATE / 301)


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


def test_many_rounds_are_compared_round_by_round() -> None:
    random = np.random.default_rng(8)
    drift = np.exp(random.normal(0, 0.4, PAIRED_FROM))
    olds = drift * noisy(random, 1.0, 0.01, PAIRED_FROM)
    news = drift * noisy(random, 1.2, 0.01, PAIRED_FROM)
    change = only(by_round(OLD, olds) + by_round(NEW, news))
    expected = stats.ttest_rel(np.log(news), np.log(olds)).confidence_interval(0.95)
    assert change.verdict is Verdict.SLOWER
    assert (change.low, change.high) == pytest.approx((math.exp(expected.low), math.exp(expected.high)))
    assert change.ratio == pytest.approx(1.2, rel=0.02)


def test_few_rounds_are_compared_as_launches_of_one_session() -> None:
    olds, news = [1.0, 1.02, 0.99], [1.3, 1.28, 1.31]
    change = only(by_round(OLD, olds) + by_round(NEW, news))
    expected = stats.ttest_ind(np.log(news), np.log(olds), equal_var=False).confidence_interval(0.95)
    assert (change.low, change.high) == pytest.approx((math.exp(expected.low), math.exp(expected.high)))


def test_machine_of_another_speed_on_another_day_is_no_change() -> None:
    # The second day takes three times as long; the third session holds the new release alone, five times as slow.
    launches = [
        *by_round(OLD, [1.00, 1.01, 0.995], "monday"),
        *by_round(NEW, [1.005, 1.00, 1.00], "monday"),
        *by_round(OLD, [3.00, 3.01, 2.99], "tuesday"),
        *by_round(NEW, [2.99, 3.02, 3.00], "tuesday"),
        *by_round(NEW, [5.0, 5.0, 5.0], "wednesday"),
    ]
    change = only(launches)
    assert (change.verdict, change.launches) == (Verdict.SAME, (6, 6))


def test_two_days_say_what_changed_although_their_machines_differ() -> None:
    launches = [
        *by_round(OLD, [1.00, 1.01, 0.995], "monday"),
        *by_round(NEW, [1.205, 1.20, 1.20], "monday"),
        *by_round(OLD, [3.00, 3.01, 2.99], "tuesday"),
        *by_round(NEW, [3.59, 3.62, 3.60], "tuesday"),
    ]
    assert only(launches).verdict is Verdict.SLOWER


def test_round_that_holds_one_release_only_does_not_count() -> None:
    # The session was stopped in its fourth round, when the machine had become slow.
    launches = by_round(OLD, [1.0, 1.01, 1.0, 9.0]) + by_round(NEW, [1.0, 1.0, 1.01])
    change = only(launches)
    assert (change.verdict, change.launches) == (Verdict.SAME, (3, 3))


def test_session_without_a_round_in_common_cannot_tell() -> None:
    failed = launch(NEW, TIME, MISSING["failed"], round=1)
    change = only([*by_round(OLD, [1.0]), failed, *timed(NEW, [2.0, 2.0], round=2)])
    assert (change.verdict, change.reason, change.low) == (Verdict.CANT_TELL, "no round gave both a number", None)


@pytest.mark.parametrize("launches", [3, 4, 5, 6, 8, 11])
def test_one_launch_out_of_line_is_no_change(launches: int) -> None:
    random = np.random.default_rng(launches)
    for _ in range(30):
        olds, news = noisy(random, 1.0, 0.003, launches), noisy(random, 1.0, 0.003, launches)
        news[1] *= 3
        assert only(by_round(OLD, olds) + by_round(NEW, news)).verdict is Verdict.CANT_TELL


@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, Verdict.SAME), (1.1, Verdict.SLOWER)])
def test_one_launch_out_of_line_among_many_does_not_hide_the_verdict(ratio: float, verdict: Verdict) -> None:
    random = np.random.default_rng(9)
    news = noisy(random, ratio, 0.01, TRIMMED_FROM)
    news[3] *= 3
    assert only(by_round(OLD, noisy(random, 1.0, 0.01, TRIMMED_FROM)) + by_round(NEW, news)).verdict is verdict


def test_trimmed_interval_is_scipys() -> None:
    random = np.random.default_rng(10)
    shifts = random.standard_t(3, 16)
    evidence = weigh({("s", i): ([1.0], [math.exp(shift)]) for i, shift in enumerate(shifts)})
    assert evidence is not None
    expected = stats.mstats.trimmed_mean_ci(shifts, limits=(1 / 16, 1 / 16), alpha=0.1)
    assert evidence.interval(0.9) == pytest.approx(tuple(np.exp(expected)))


def test_two_days_of_one_launch_each_know_next_to_nothing_and_say_so() -> None:
    launches = [
        *by_round(OLD, [1.0], "monday"),
        *by_round(NEW, [1.3], "monday"),
        *by_round(OLD, [1.0], "tuesday"),
        *by_round(NEW, [2.6], "tuesday"),
    ]
    change = only(launches)
    assert change.verdict is Verdict.CANT_TELL
    assert change.detectable is not None
    assert 10 < change.detectable < math.inf


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


@pytest.mark.parametrize(("kind", "reason"), [("unavailable", NEEDS), ("failed", WRONG)])
def test_number_that_was_lost_broke_with_its_reason(kind: str, reason: str) -> None:
    change = only([*timed(OLD, [0.3, 0.5]), launch(NEW, TIME, MISSING[kind])])
    assert change == Change(change.series, Verdict.BROKE, old=0.4, launches=(2, 0), reason=reason)


@pytest.mark.parametrize(("kind", "reason"), [("unavailable", NEEDS), ("failed", WRONG)])
def test_number_that_was_won_is_fixed_with_the_reason_it_was_missing(kind: str, reason: str) -> None:
    change = only([launch(OLD, TIME, MISSING[kind]), *timed(NEW, [0.3, 0.5])])
    assert change == Change(change.series, Verdict.FIXED, new=0.4, launches=(0, 2), reason=reason)


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
    launches = [*timed(OLD, [0.30, 0.31, 0.30]), launch(NEW, TIME, MISSING["failed"]), *timed(NEW, [0.60, 0.61, 0.60])]
    assert only(launches).verdict is Verdict.SLOWER


# --- which launches count


def test_only_sessions_that_hold_both_releases_count() -> None:
    # In s2 the machine was five times slower, and only the new release was measured.
    together = timed(OLD, [0.30, 0.31, 0.30]) + timed(NEW, [0.30, 0.31, 0.30])
    alone = timed(NEW, [1.5, 1.6, 1.5], session="s2")
    assert only(together + alone).verdict is Verdict.SAME
    assert only(together + alone).launches == (3, 3)


def test_times_of_separate_sessions_cannot_tell() -> None:
    # Two sessions may differ by the machine alone: with 1 % drift a quarter of such comparisons are false alarms.
    launches = timed(OLD, [0.30, 0.31, 0.30], session="s1") + timed(NEW, [0.40, 0.41, 0.40], session="s2")
    change = only(launches)
    assert (change.verdict, change.reason) == (Verdict.CANT_TELL, "no session measured both")
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
        launch(release, TIME, Case(EAGER, samples=samples), launch=f"start of {release}")
        for release, rounds in ((OLD, [(1.0, 2.0), (6.0,)]), (NEW, [(10.0, 20.0), (60.0,)]))
        for samples in rounds
    ]
    change = only(launches)
    assert (change.launches, change.old, change.new) == ((1, 1), 2.0, 20.0)
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
    later = replace(launch(NEW, TIME, MISSING["failed"]), launch=whole[-1].launch)
    assert only([*whole, later]).verdict is Verdict.SAME
