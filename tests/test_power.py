"""Is the power of verdicts that of lanes that are really changed and fitted again?"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from msgspec.structs import replace

from tools import power
from torch_history.analysis.levels import REPEATED, Fitted
from torch_history.analysis.series import history
from torch_history.analysis.verdicts import evidence_between
from torch_history.store.launches import Case, Launch

TAGS = ["v2.3.0", "v2.3.1", "v2.4.0", "v2.4.1", "v2.5.0"]
PATCH = (TAGS[0], TAGS[1])
SERIES = 30


def quiet_lane(seed: int, noise: float = 0.016) -> list[Launch]:
    """Two sessions that share a release, with what sessions and rounds do; nothing ever changes."""
    random, found = np.random.default_rng(seed), []
    for session, tags in enumerate((TAGS[:3], TAGS[2:])):
        besides = random.normal(0, 0.02) + random.normal(0, 0.02, SERIES)
        again = {tag: random.normal(0, REPEATED, SERIES) for tag in tags}
        for turn in range(1, 5):
            rounds = random.normal(0, 0.018, SERIES)
            for tag in tags:
                numbers = np.exp(besides + rounds + again[tag] + random.normal(0, noise, SERIES))
                cases = tuple(Case((f"'{i}'",), samples=(float(number),)) for i, number in enumerate(numbers))
                about = f"s{session}", turn, f"{session}{turn}{tag}", tag, "release-py3.11", "selection.S.track_time"
                found.append(Launch(*about, "1", f"2026-01-0{session + 1}T00:00:0{turn}", 1.0, {}, cases))
    return found


def fit_of(launches: list[Launch]) -> Fitted:
    (fit,) = history(launches).fits.values()
    return fit


def changed(launches: list[Launch], series: int, factor: float) -> list[Launch]:
    """With one series so many times as slow on PATCH's newer release and all after it."""
    made = []
    for launch in launches:
        cases = list(launch.cases)
        if launch.release != TAGS[0]:
            cases[series] = replace(cases[series], samples=(factor * cases[series].samples[0],))
        made.append(replace(launch, cases=tuple(cases)))
    return made


@pytest.mark.parametrize("series", [0, 7])
def test_a_planted_change_moves_an_estimate_as_one_does_that_is_measured(series: int) -> None:
    launches = quiet_lane(1)
    fit = fit_of(launches)
    before = evidence_between(fit, [PATCH])
    after = evidence_between(fit_of(changed(launches, series, 1.1)), [PATCH])
    moves = np.zeros((SERIES, 1))
    moves[[one.parameters for one in fit.levels].index((f"'{series}'",))] = math.log(1.1)
    planted = power.moved(before, moves)
    assert np.abs(after.shift - planted.shift).max() < 0.02 * before.error.min()
    assert after.error == pytest.approx(planted.error, rel=0.01)
    assert power.directions(after).tolist() == power.directions(planted).tolist()


def test_power_counts_what_is_told_and_nothing_else() -> None:
    found = power.power([fit_of(quiet_lane(seed)) for seed in range(5)], [PATCH, (TAGS[1], TAGS[2])])
    shares = {what: found.share("selection", what) for _, what in found.counts}
    assert found.counts["selection", "+5% alone"][1] == 5 * 2 * SERIES
    assert shares["+5% alone"] < 0.5 < shares["+10% alone"]
    assert shares["+5% alone"] < shares["+5% in 20%"] < shares["+5% in 50%"]
    assert shares["false where nothing is new"] <= 0.01
    assert shares["false beside these"] <= 0.02


def test_noise_hides_changes() -> None:
    found = [power.power([fit_of(quiet_lane(3, noise))], [PATCH]) for noise in (0.004, 0.1)]
    assert [of.share("selection", "+10% alone") for of in found] == pytest.approx([1, 0], abs=0.05)


def test_two_lanes_without_a_difference_agree_as_often_as_intervals_promise() -> None:
    held, denied = power.Shares(), power.Shares()
    pairs = [*itertools.pairwise(TAGS)]
    for seed in range(0, 20, 2):
        here, there = ({"selection": fit_of(quiet_lane(seed + i))} for i in (0, 1))
        of = [*power.of_both(here, there, pairs)]
        power.coverage(of, "neighbours", held)
        power.denials(of, denied)
    assert held.counts["selection", "neighbours"][1] == 10 * 4 * SERIES
    assert held.share("selection", "neighbours") == pytest.approx(0.95, abs=0.02)
    assert held.counts["selection", "neighbours, one binary"][1] == 10 * 2 * SERIES
    assert denied.counts["selection", "neighbours"][1] <= 0.01 * 10 * 4 * SERIES


def test_a_change_of_one_lane_alone_is_denied_by_the_other() -> None:
    denied = power.Shares()
    here, there = ({"selection": fit_of(of)} for of in (changed(quiet_lane(1), 0, 1.5), quiet_lane(2)))
    power.denials(power.of_both(here, there, [PATCH]), denied)
    assert denied.counts["selection", "neighbours"] == (1, 1)
