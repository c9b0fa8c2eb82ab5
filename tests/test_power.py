"""Is the power of verdicts that of lanes that are really changed and fitted again?"""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from torch_history.analysis import power
from torch_history.analysis.levels import REPEATED, Fitted
from torch_history.analysis.power import Alone, LaneEvidence, Shares
from torch_history.analysis.series import Series, history
from torch_history.analysis.verdicts import Evidence, evidence_between
from torch_history.releases.axis import Axis
from torch_history.reports import power as report
from torch_history.store.launches import Case, Launch

ROOT = Path(__file__).resolve().parents[1]
TAGS = ["v2.3.0", "v2.3.1", "v2.4.0", "v2.4.1", "v2.5.0"]
PATCH = (TAGS[0], TAGS[1])
LANE = "release-py3.11"
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
                about = f"s{session}", turn, f"{session}{turn}{tag}", tag, LANE, "selection.S.track_time"
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


def lane_of(launches: list[Launch], *pairs: power.Pair) -> LaneEvidence:
    return power.lane_evidence(history(launches), LANE, list(pairs))


def slowly_lone(evidence: Evidence, by: np.ndarray) -> np.ndarray:
    """`power.lone` by judging each case whole: all series beside the one that is changed."""
    cases = np.diag(by[:, 0])
    ways = [np.diag(power.directions(power.moved(evidence, way * cases))) == way for way in (1, -1)]
    return np.transpose(ways)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_found_alone_is_what_judging_all_series_again_finds(seed: int) -> None:
    """With true changes among them, noise and looks of every kind, and few series as well as many."""
    random = np.random.default_rng(seed)
    shape = (int(random.integers(1, 80)), 1)
    changed = random.choice([0, 0.3], shape, p=[0.8, 0.2]) * random.choice([-1, 1], shape)
    error = np.exp(random.normal(-4, 0.5, shape))
    margin, looks = random.choice([0.04, 0.25], shape), random.integers(1, 4, shape).astype(float)
    evidence = Evidence(
        changed + error * random.normal(0, 1, shape), error, random.uniform(3, 40, shape), margin, looks
    )
    for size in (0.02, 0.05, 0.1, 0.3):
        by = np.full(shape, math.log1p(size))
        assert power.lone(evidence, by).tolist() == slowly_lone(evidence, by).tolist()


def test_power_counts_what_is_told_and_nothing_else() -> None:
    found = Shares()
    for seed in range(5):
        lane = lane_of(quiet_lane(seed), PATCH, (TAGS[1], TAGS[2]))
        power.planted_alone(lane, found)
        power.planted_together(lane, found)
    shares = {what: found.share("selection", what) for _, what in found.counts}
    assert found.counts["selection", "+5%"][1] == 5 * 2 * SERIES
    assert shares["+5%"] < 0.5 < shares["+10%"]
    assert shares["+5%"] < shares["+5% in 20%"] < shares["+5% in 50%"]
    assert shares[power.FALSE_IN_QUIET] <= 0.01
    assert shares[power.FALSE_BESIDE] <= 0.02
    assert found.questions == ["selection", power.ALL]


def test_a_pair_of_which_something_is_told_is_not_quiet() -> None:
    """A change is planted into the told series alone, of which nothing else is told."""
    found = Shares()
    power.planted_alone(lane_of(changed(quiet_lane(1), 0, 1.5), PATCH), found)
    assert found.counts["selection", "+5%"][1] == 2


def test_noise_hides_changes() -> None:
    shares = []
    for noise in (0.004, 0.1):
        found = Shares()
        power.planted_alone(lane_of(quiet_lane(3, noise), PATCH), found)
        shares.append(found.share("selection", "+10%"))
    assert shares == pytest.approx([1, 0], abs=0.05)


def test_what_a_pair_would_show_is_what_is_counted_of_quiet_pairs() -> None:
    """And of the series that are asked for; what is told is taken away, so that it makes no room for others."""
    found = history(quiet_lane(1))
    counted = Shares()
    power.planted_alone(lane_of(quiet_lane(1), PATCH), counted)
    shares = power.found_alone(found.fits.values(), PATCH, found)
    assert shares == Alone({size: counted.share("selection", f"{size:+.0%}") for size in power.SIZES})
    one = next(iter(found))
    assert set(power.found_alone(found.fits.values(), PATCH, [one]).shares.values()) <= {0.0, 0.5, 1.0}
    assert power.found_alone(found.fits.values(), ("v2.0.0", "v2.0.1"), found) == power.NOTHING_ALONE
    launches = quiet_lane(1)
    for series in range(SERIES // 2):
        launches = changed(launches, series, 1.5)
    after = history(launches)
    assert power.found_alone(after.fits.values(), PATCH, after).shares[0.1] == pytest.approx(
        shares.shares[0.1], abs=0.1
    )


def test_single_calls_are_said_where_there_are_only_those() -> None:
    calls = [replace(launch, benchmark="warm_up.W.track_first_call") for launch in quiet_lane(1)]
    found = history([*calls, *quiet_lane(1)])
    asked: dict[str, list[Series]] = {"warm_up": [], "selection": []}
    for series in found:
        asked[series.question].append(series)
    steady, single = ("5 %", "steady times, one of 10 %"), ("50 %", "times of single calls, one of 100 %")
    for wanted, (first, rest) in ((found, steady), (asked["selection"], steady), (asked["warm_up"], single)):
        said = power.found_alone(found.fits.values(), PATCH, wanted).words
        assert re.fullmatch(rf"If one .* a change of {first} would be found in \d+ % of the {rest} in \d+ %\.", said)


def test_two_lanes_without_a_difference_agree_as_often_as_intervals_promise() -> None:
    found, denied = Shares(), Shares()
    pairs = [*itertools.pairwise(TAGS)]
    for seed in range(0, 20, 2):
        of = [*power.both(*(lane_of(quiet_lane(seed + i), *pairs) for i in (0, 1)))]
        power.coverage(of, found, "neighbours")
        power.one_binary(of, found, "one binary")
        power.denials(of, denied)
    assert found.counts["selection", "neighbours"][1] == 10 * 4 * SERIES
    assert found.share("selection", "neighbours") == pytest.approx(0.95, abs=0.02)
    assert found.counts["selection", "one binary"][1] == 10 * 2 * SERIES
    assert denied.counts["selection", power.DENIED][1] <= 0.01 * 10 * 4 * SERIES


def test_a_change_of_one_lane_alone_is_denied_by_the_other() -> None:
    denied = Shares()
    power.denials(power.both(*(lane_of(of, PATCH) for of in (changed(quiet_lane(1), 0, 1.5), quiet_lane(2)))), denied)
    assert denied.counts["selection", power.DENIED] == (1, 1)


def test_lanes_are_compared_by_the_pairs_and_series_that_both_have() -> None:
    here, there = lane_of(quiet_lane(1), PATCH, (TAGS[1], TAGS[2])), lane_of(quiet_lane(2), (TAGS[1], TAGS[2]))
    there.series["selection"].reverse()
    (of,) = power.both(here, there)
    assert of.pairs == [(TAGS[1], TAGS[2])]
    assert of.here.shift.tolist() == here.evidence["selection"].shift[:, [1]].tolist()
    assert of.there.shift.tolist() == there.evidence["selection"].shift[::-1].tolist()


def test_far_pairs_are_at_least_so_many_releases_apart() -> None:
    tags = [f"v1.{minor}.0" for minor in range(power.FAR + 3)]
    pairs = power.far([*itertools.pairwise(tags)])
    assert pairs == [(tags[0], tags[-3]), (tags[0], tags[-2]), (tags[0], tags[-1]), (tags[1], tags[-2]),
                     (tags[1], tags[-1]), (tags[2], tags[-1])]  # fmt: skip


def test_the_tables_of_a_machine_have_its_lanes_and_name_the_aims_that_are_missed() -> None:
    """The noise of these lanes hides half of what is aimed at; their intervals hold, since nothing differs."""
    other = [replace(launch, environment="release-py3.9") for launch in quiet_lane(2, 0.03)]
    found = history([*quiet_lane(1, 0.03), *other])
    lines = report.of_history(found, Axis.load(ROOT / "releases.toml"))
    aims = {line.split(" | ")[0].strip("| "): line.rpartition(" | ")[2] for line in lines if " aim " not in line}
    assert aims["+10% alone: found"] == "**missed** |"
    assert aims["neighbours: intervals hold the difference"] == aims["nothing new: reported"] == "reached |"
    assert "far apart: intervals hold the difference" not in aims
    near = [power.lane_evidence(found, lane, [*itertools.pairwise(TAGS)]) for lane in (LANE, "release-py3.9")]
    at = lines.index(report.ALONE)
    assert report.of_lanes(near) == lines[at : lines.index(report.TOGETHER)]
    assert lines[at + 2].startswith("| question | +5%, release-py3.11 | +10%, release-py3.11 | +5%, release-py3.9 |")


def test_a_machine_without_patch_releases_has_no_table() -> None:
    found = history([launch for launch in quiet_lane(1) if launch.release in TAGS[1:3]])
    assert report.of_history(found, Axis.load(ROOT / "releases.toml")) == []
    assert report.of_lanes([power.lane_evidence(found, LANE, [(TAGS[1], TAGS[2])])]) == []


def test_names_of_strangers_are_no_markup_in_the_tables() -> None:
    own = [replace(launch, environment="<b>|x", benchmark="<i>|y.S.track_time") for launch in quiet_lane(1)]
    text = "\n".join(report.of_lanes([power.lane_evidence(history(own), "<b>|x", [PATCH])]))
    assert "<b>" not in text
    assert "<i>" not in text
    assert {line.count("|") for line in text.splitlines() if line.startswith("|")} == {4}
