"""Do rounds go on for what cannot be told, for nothing else, and is what that takes foretold?"""

import itertools
import math

import numpy as np
from msgspec import structs

from torch_history.analysis.series import Verdict, history
from torch_history.analysis.verdicts import compare, verdicts_of
from torch_history.measuring.budget import TIMES, Effort, More, effort, forecast, left_words
from torch_history.store.launches import Case, Launch

from .test_verdicts import launch


def launches(levels: dict[str, dict[str, float]], noise: dict[str, float], rounds: int) -> list[Launch]:
    """Rounds of one session: release -> variant -> seconds, and the spread of a variant's launches."""
    random, found = np.random.default_rng(7), []
    for turn, (release, variants) in itertools.product(range(1, rounds + 1), levels.items()):
        cases = [
            Case((f"'{name}'", "'small'"), samples=(seconds * math.exp(random.normal(0, noise[name])),))
            for name, seconds in variants.items()
        ]
        found.append(launch(release, "selection.Selection.track_time", *cases, round=turn, duration=2.0 * len(cases)))
    return found


def test_a_second_round_measures_everything_where_two_such_rounds_fit_and_others_what_is_decided_quickest():
    cases: dict[tuple[str, tuple[str, ...]], More] = {
        ("q", (name,)): More(("a", "b"), by, 1) for name, by in (("one", 1.0), ("two", 90.0))
    }
    asked = (0.5, 17.0), (0.5, 16.9), (0.5, 3.9), (2.5, 21.0), (2.5, 20.9), (2.5, 6.4)
    chosen = [Effort(cases, 2, 2, 0, {"q": 2.0}, starting=start).within(time) for start, time in asked]
    assert [*map(len, chosen)] == [2, 1, 0, 2, 1, 0]
    (one, of_one), (two, _) = cases.items()
    both = Effort({one: of_one}, 2, 1, 1, {"q": 2.0}, starting=4.0, doubtful={two: More(("a", "b"), 1.0, 0)})
    assert [*map(len, map(both.within, (24.0, 23.9, 16.0, 8.0)))] == [2, 2, 2, 1]
    alone = Effort({}, 1, 0, 1, {"q": 2.0}, starting=4.0, doubtful={two: More(("a", "b"), 3.0, 0)})
    assert [*map(len, map(alone.within, (24.0, 23.9)))] == [1, 0], "luck needs three rounds of eight seconds"


def test_only_the_releases_of_an_undecided_pair_are_measured_again():
    levels = {name: {"one": 1.0, "two": 1.0} for name in "abc"}
    found = effort(launches(levels, {"one": 0.03, "two": 0.03}, rounds=1), [("a", "b")])
    assert {more.releases for more in found.cases.values()} == {("a", "b")}
    everything = effort(launches(levels, {"one": 0.03, "two": 0.03}, rounds=1), [("a", "b"), ("b", "c")])
    assert {more.releases for more in everything.cases.values()} == {("a", "b", "c")}
    assert everything.undecided == 4


def test_what_other_sessions_stored_is_told_with_a_session_as_compare_tells_it():
    levels, noise = {name: {"one": 1.0, "two": 1.0} for name in "ab"}, {"one": 0.02, "two": 0.02}
    ours, more = launches(levels, noise, rounds=1), {"b": {"one": 1.0}, "a": {"one": 1.0}, "c": {"three": 1.0}}
    others = [structs.replace(one, session="t") for one in launches(more, {"one": 0.001, "three": 0.1}, rounds=20)]
    found = effort(ours, [("a", "b")], beside=others)
    every = {change.series.parameters[0]: change.verdict for change in compare([*ours, *others], "a", "b")}
    told = {name for name in ("'one'", "'two'") if every[name] is not Verdict.CANT_TELL}
    assert told == {"'one'"}
    assert (found.series, found.undecided) == (2, 1)
    assert effort(ours, [("a", "b")]).undecided == 2


def test_a_forecast_is_the_least_number_of_rounds_with_which_the_same_fit_would_tell():
    levels = {"a": {"x": 1.0, "y": 1.0}, "b": {"x": 1.0, "y": 1.4}}
    seen = history(launches(levels, {"x": 0.05, "y": 0.1}, rounds=4))
    found = forecast(seen, [("a", "b")])
    (fit,) = seen.fits.values()
    assert found
    for (series, pair), ((times, *_), _) in found.items():
        before = [other for other in TIMES if other < times]
        assert verdicts_of(fit, *pair)[series] is Verdict.CANT_TELL
        assert all(verdicts_of(fit.with_rounds(other), *pair)[series] is Verdict.CANT_TELL for other in before)
        assert verdicts_of(fit.with_rounds(times), *pair)[series] is not Verdict.CANT_TELL


def test_what_is_told_and_what_no_number_of_rounds_decides_has_no_forecast_but_by_luck():
    quiet = {f"quiet {i}": 1.0 for i in range(4)}
    seen = launches({"a": quiet, "b": {**quiet, "quiet 0": 1.035}}, dict.fromkeys(quiet, 0.001), rounds=5)
    ((told, _),) = forecast(history(seen), [("a", "b")]).values()
    assert math.isinf(told[0])
    assert np.isfinite(told).any(), "chance may move it by more than its distance from what is told"


def test_from_the_second_round_on_what_a_session_takes_in_all_is_foretold_mostly_within_a_third():
    random = np.random.default_rng(3)
    old, noise = {str(i): 1.0 for i in range(12)}, {str(i): random.uniform(0.01, 0.04) for i in range(12)}
    new = {name: math.exp(random.normal(0, 0.025)) for name in old}
    every, spent = launches({"a": old, "b": new}, noise, rounds=40), 0.0
    asked, seen, said = {case.parameters for case in every[0].cases}, list[Launch](), list[float]()
    while asked:
        for one in every[len(seen) :][:2]:
            cases = tuple(case for case in one.cases if case.parameters in asked)
            seen.append(structs.replace(one, cases=cases, duration=2.0 * len(cases)))
        spent += 4.0 * len(asked) + 2.0
        left = effort(seen, [("a", "b")], starting=2.0)
        said.append(spent + left.seconds)
        asked = {parameters for _, parameters in left.cases}
    assert 5 < len(said) < 40
    ratios = [total / spent for total in said[1:]]
    assert 2 / 3 < np.quantile(ratios, 0.1) <= np.quantile(ratios, 0.9) < 4 / 3, ratios


def test_what_has_one_launch_is_asked_for_once_more_with_the_minutes_of_one_round():
    noise = {"one": 0.01, "two": 0.01}
    found = effort(
        launches({name: dict.fromkeys(noise, 1.0) for name in "ab"}, noise, rounds=1), [("a", "b")], starting=110.0
    )
    assert (found.single, found.undecided) == (2, 2)
    assert "2 times are inconclusive. again --budget 2m measures them once more" in left_words([found], "again")
