"""Is the power of verdicts that of lanes that are really changed and fitted again?"""

import math
from dataclasses import replace as changed_in

import numpy as np
import pytest
from msgspec.structs import replace

from torch_history.analysis import power
from torch_history.analysis.levels import Fitted
from torch_history.analysis.power import ALL, Alone, LaneEvidence
from torch_history.analysis.series import history
from torch_history.analysis.verdicts import Evidence, evidence_between
from torch_history.site import calibration as report
from torch_history.store.launches import Launch

from .lab import AXIS
from .test_verdicts import modelled

TAGS = ["v2.3.0", "v2.3.1", "v2.4.0", "v2.4.1", "v2.5.0"]
PATCH = (TAGS[0], TAGS[1])
LANE = "release-py3.11"
SERIES = 30


@pytest.fixture(autouse=True)
def _known_code(monkeypatch) -> None:
    """Of PATCH it is known that it holds nothing new."""
    monkeypatch.setattr(power.code, "is_nothing_new", lambda environment, *pair: pair == PATCH)
    monkeypatch.setattr(power.code, "is_built_apart", lambda tag: tag in ("v2.0.0", "v2.0.1"))


def quiet_lane(seed: int) -> list[Launch]:
    """Two sessions that share a release, with what sessions and rounds do; nothing ever changes."""
    random, quiet = np.random.default_rng(seed), np.zeros(SERIES)
    return modelled(random, (TAGS[:3], TAGS[2:]), lambda tag: quiet, 4, 0.016, shared=0.02, session=0.02, round=0.018)


def fit_of(launches: list[Launch]) -> Fitted:
    (fit,) = history(launches).fits.values()
    return fit


def changed(launches: list[Launch], series: int, factor: float) -> list[Launch]:
    """With one series so many times as slow on PATCH's newer release and all after it."""
    made = []
    for one in launches:
        cases = list(one.cases)
        if one.release != TAGS[0]:
            cases[series] = replace(cases[series], samples=(factor * cases[series].samples[0],))
        made.append(replace(one, cases=tuple(cases)))
    return made


@pytest.mark.parametrize("series", [0, 7])
def test_a_planted_change_moves_an_estimate_as_one_does_that_is_measured(series):
    launches = quiet_lane(1)
    fit = fit_of(launches)
    before = evidence_between(fit, [PATCH])
    after = evidence_between(fit_of(changed(launches, series, 1.1)), [PATCH])
    moves = np.zeros((SERIES, 1))
    moves[[one.parameters for one in fit.levels].index((f"'{series}'",))] = math.log(1.1)
    planted = changed_in(before, shift=before.shift + moves)
    assert np.abs(after.shift - planted.shift).max() < 0.02 * before.error.min()
    assert after.error == pytest.approx(planted.error, rel=0.01)
    assert power.directions(after).tolist() == power.directions(planted).tolist()


def lane_of(launches: list[Launch]) -> LaneEvidence:
    return power.lane_evidence(history(launches), LANE, AXIS)


def counts(*lanes: list[Launch]) -> dict[tuple[str, str], tuple[int, int]]:
    """What is counted of the lanes of a machine, without their names."""
    found = power.counted([lane_of(of) for of in lanes])
    return {(question, what.partition(", ")[0]): of for (question, what), of in found.counts.items()}


def slowly_lone(evidence: Evidence, by: np.ndarray) -> np.ndarray:
    """`power.lone` by judging each case whole: all series beside the one that is changed."""
    cases = np.diag(by[:, 0])
    ways = [np.diag(power.directions(changed_in(evidence, shift=evidence.shift + w * cases))) == w for w in (1, -1)]
    return np.transpose(ways)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_found_alone_is_what_judging_all_series_again_finds(seed):
    """With true changes among them, noise and looks of every kind, and few series as well as many."""
    random = np.random.default_rng(seed)
    shape = (int(random.integers(1, 80)), 1)
    changed = random.choice([0, 0.3], shape, p=[0.8, 0.2]) * random.choice([-1, 1], shape)
    error = np.exp(random.normal(-4, 0.5, shape))
    margin, looks = random.choice([0.04, 0.25], shape), random.integers(1, 4, shape).astype(float)
    shift = changed + error * random.normal(0, 1, shape)
    evidence = Evidence(shift, error, random.uniform(3, 40, shape), margin, looks)
    for size in (0.02, 0.05, 0.1, 0.3):
        by = np.full(shape, math.log1p(size))
        assert power.lone(evidence, by).tolist() == slowly_lone(evidence, by).tolist()


def test_power_counts_what_is_told_and_nothing_else():
    """Two patch releases of each lane, one of which holds nothing new."""
    told, of_all, new = 0, 0, 0
    for seed in range(5):
        found = counts(quiet_lane(seed))
        (small, of), (large, _) = found["selection", "+5%"], found[ALL, "+10%"]
        assert of == 2 * 2 * SERIES
        assert small < large
        told, of_all, new = told + large, of_all + of, new + found["selection", power.NEW][0]
        assert found["selection", power.NEW][1] == SERIES
    assert told > of_all / 2
    assert new <= 0.01 * 5 * SERIES


def test_a_pair_of_which_something_is_told_is_not_quiet():
    """A change is planted into the told series alone, of which nothing else is told."""
    assert counts(changed(quiet_lane(1), 0, 1.5))["selection", "+5%"][1] == 2 * SERIES + 2


def test_what_a_pair_would_show_is_what_is_counted_of_quiet_pairs():
    """And of the series that are asked for; what is told is taken away, so that it makes no room for others."""
    found = history([launch for launch in quiet_lane(1) if launch.release in TAGS[:3]])
    counted = power.counted([power.lane_evidence(found, LANE, AXIS)]).counts
    shares = power.found_alone(found.fits.values(), PATCH, found)
    of = {size: counted["selection", f"{size:+.0%}, {LANE}"] for size in power.SIZES}
    assert shares == Alone({size: hits / number for size, (hits, number) in of.items()})
    one = next(iter(found))
    assert set(power.found_alone(found.fits.values(), PATCH, [one]).shares.values()) <= {0.0, 0.5, 1.0}
    assert power.found_alone(found.fits.values(), ("v2.0.0", "v2.0.1"), found) == power.NOTHING_ALONE
    launches = quiet_lane(1)
    for series in range(SERIES // 2):
        launches = changed(launches, series, 1.5)
    after = history(launches)
    again = power.found_alone(after.fits.values(), PATCH, after)
    assert again.shares[0.1] == pytest.approx(shares.shares[0.1], abs=0.1)


def test_two_lanes_without_a_difference_agree_as_often_as_intervals_promise():
    held = [counts(quiet_lane(seed), quiet_lane(seed + 1))["selection", power.HELD] for seed in range(0, 20, 2)]
    hits, number = map(sum, zip(*held, strict=True))
    assert number == 10 * 4 * SERIES
    assert hits / number == pytest.approx(0.95, abs=0.02)


def test_lanes_are_compared_by_the_pairs_and_series_that_both_have():
    """Whatever their order; a series of which one lane alone tells a change differs there."""
    here = lane_of([one for one in quiet_lane(1) if one.release != TAGS[4]])
    there = lane_of(changed([replace(one, cases=one.cases[1:]) for one in quiet_lane(1)], 4, 2.0))
    ((series, agree, compared),) = power.agreement(here, there, here.near + here.far)
    assert compared.shape == (SERIES - 1, 3)
    assert compared.all()
    assert not agree[[one.parameters for one in series].index(("'5'",)), 0]


def test_names_of_strangers_are_no_markup_in_the_table():
    own = [replace(launch, environment="<b>|x", benchmark="<i>|y.S.track_time") for launch in quiet_lane(1)]
    text = report.of_history([power.lane_evidence(history(own), "<b>|x", AXIS)])
    assert "<b>" not in text
    assert "<i>" not in text
    assert {line.count("|") for line in text.splitlines() if line.startswith("|")} == {5}
