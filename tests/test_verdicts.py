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

from torch_history.launches import Case, Launch
from torch_history.verdicts import Change, Series, Verdict, compare, history, human

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
