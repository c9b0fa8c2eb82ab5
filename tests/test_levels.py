"""Are the levels of all releases those of the model, computed otherwise, and do their intervals hold the truth?"""

import functools
import itertools
import math
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from torch_history.analysis import levels, power
from torch_history.analysis.levels import Launches, Levels, Noise, Random, cells_of
from torch_history.analysis.series import History, history
from torch_history.store.launches import Launch, read_on_axis

from .lab import AXIS
from .processes import ROOT, ran
from .test_verdicts import modelled

MAIN = "amd-epyc-family-26-model-2-2-cores"
NOISE = Noise(np.array([0.0004, 0.0001, 0.0009]), np.array([9.0, 12.0, 7.0]))
RANDOM = Random(round=0.0006, session=0.0003, repeated=0.00003)
SHIFTS = np.array([0.01, -0.02, 0.03])


def drawn(sessions: list[tuple[list[int], int]], seed: int) -> Launches:
    """Launches of sessions, each of these releases in so many rounds, from the model with the variances above."""
    chance = np.random.default_rng(seed)
    rows, rounds = [], itertools.count()
    for session, (releases, turns) in enumerate(sessions):
        besides = chance.normal(0, math.sqrt(RANDOM.session)) + SHIFTS[session]
        again = {release: chance.normal(0, math.sqrt(RANDOM.repeated)) for release in releases}
        for _ in range(turns):
            number, here = next(rounds), chance.normal(0, math.sqrt(RANDOM.round))
            for release in releases:
                noise = chance.normal(0, math.sqrt(NOISE.variance[session]))
                rows.append((release, session, number, 0.1 * release + besides + here + again[release] + noise))
    return Launches(*(np.array(column) for column in zip(*rows, strict=True)))


def whole(launches: Launches, random: Random) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Levels, their covariance and the degrees of freedom of their differences, by generalised least squares with the
    covariance of all launches written out. Satterthwaite's: each session's share of a variance has those of its noise."""
    same = {name: np.equal.outer(of, of) for name, of in vars(launches).items() if name not in ("logarithm", "weight")}
    within = np.diag(NOISE.variance[launches.session]) + random.round * same["round"] + random.session * same["session"]
    again = random.repeated * (same["session"] & same["release"])
    design = np.equal.outer(launches.release, np.unique(launches.release)).astype(float)
    weighed = np.linalg.solve(within + again, design)
    inverse = np.linalg.inv(design.T @ weighed)
    weights = inverse @ weighed.T
    apart = weights[:, None] - weights
    below = np.einsum("abi,ij,abj->ab", apart, again, apart) ** 2 / levels.REPEATED_FREEDOM
    for session, freedom in enumerate(NOISE.freedom):
        mine = apart[:, :, launches.session == session]
        of = within[np.ix_(launches.session == session, launches.session == session)]
        below += np.einsum("abi,ij,abj->ab", mine, of, mine) ** 2 / freedom
    variance = np.einsum("abi,ij,abj->ab", apart, within + again, apart)
    with np.errstate(invalid="ignore"):
        return weights @ (launches.logarithm - SHIFTS[launches.session]), inverse, variance**2 / below


CHAIN = [([0, 1, 2], 4), ([2, 3], 6), ([3, 4, 5, 0], 3)]


def levels_of(launches: Launches, random: Random = RANDOM) -> Levels:
    return levels.levels(launches, cells_of(launches), NOISE, random, SHIFTS)


NOTHING_KNOWN = Random(levels.WIDE, levels.WIDE, 0.0)
"""Of rounds and sessions: releases are compared within rounds alone."""


@pytest.mark.parametrize(
    ("seed", "random"), [*((seed, RANDOM) for seed in range(5)), (5, Random(0.0, 0.0, 0.0)), (3, NOTHING_KNOWN)]
)
def test_levels_are_those_of_least_squares_with_every_covariance_written_out(seed, random):
    launches = drawn(CHAIN, seed)
    keep = np.random.default_rng(seed).random(len(launches.round)) < 0.9  # some rounds lack a release
    launches = Launches(*(of[keep] for name, of in vars(launches).items() if name != "weight"))
    found, (level, covariance, freedom) = levels_of(launches, random), whole(launches, random)
    a, b = np.array([*itertools.combinations(range(6), 2)]).T
    said = found.contrasts(a, b)
    assert said.shift == pytest.approx(level[b] - level[a], abs=1e-7)  # the site's levels have 24 binary digits
    assert said.error**2 == pytest.approx(covariance[a, a] + covariance[b, b] - 2 * covariance[a, b], rel=1e-9)
    assert said.freedom == pytest.approx(freedom[a, b], rel=1e-6)


def test_computing_on_one_thread_leaves_the_variables_as_the_user_set_them():
    here = "from torch_history.analysis.levels import on_one_thread"
    ran(sys.executable, "-c", f"import os; set = dict(os.environ); {here}; on_one_thread(); assert os.environ == set")


def test_releases_that_no_chain_of_rounds_ties_are_not_compared():
    found = levels_of(drawn([([0, 1], 5), ([2, 3], 5)], 1))
    said = found.contrasts(np.array([0, 2, 1, 0]), np.array([1, 3, 2, 9]))
    assert np.isnan([said.shift, said.error, said.freedom]).tolist() == [[False, False, True, True]] * 3
    assert said.rounds.tolist() == [5, 5, 0, 0]


def test_what_cells_and_rounds_leave_is_that_of_least_squares():
    launches = drawn(CHAIN, 7)
    squares, freedom = levels.within_sessions(launches, cells_of(launches), 3)
    for session, (releases, turns) in enumerate(CHAIN):
        mine = launches.session == session
        columns = (launches.release[mine], launches.round[mine])
        design = np.hstack([np.equal.outer(of, np.unique(of)).astype(float) for of in columns])
        left = launches.logarithm[mine]
        left = left - design @ np.linalg.lstsq(design, left, rcond=None)[0]
        assert squares[session] == pytest.approx(float(left @ left))
        assert freedom[session] == (len(releases) - 1) * (turns - 1)


def test_noise_is_lent_on_the_logarithm_by_series_and_session():
    """Of variances that are a series' own number times a session's, each is expected to be near that."""
    chance = np.random.default_rng(2)
    true = np.exp(chance.normal(-9, 1, 80))[:, None] * np.exp(np.array([0.0, 0.7, -0.7, 0.3]))
    freedom = np.full(true.shape, 6.0)
    expected, lent = levels.expected_noise(true * chance.chisquare(freedom), freedom)
    assert np.median(np.abs(np.log(expected / true))) < 0.25
    assert 15 < lent <= levels.MOST_LENT
    seen, usual = np.array([[0.001], [0.2], [0.3], [0.4]]), levels.USUAL[False].noise
    few, _ = levels.expected_noise(3 * seen**2, np.full((4, 1), 3.0), levels.USUAL[False])
    assert few[:, 0] == pytest.approx([usual**2, 0.04, 0.065, 0.065]), "one that is quiet stays so beside noisy ones"


SESSIONS = [[0, 1, 2], [2, 3, 4], [4, 5, 6], [6, 7], [0, 7]]


def launches_of(
    draw: np.random.Generator,
    jump: float,
    series: int = 12,
    sessions: Sequence[Sequence[int]] = SESSIONS,
    turns: int = 5,
) -> list[Launch]:
    """Sessions on some of eight releases, of which each shares one with the next; variant 0 jumps at the fifth."""
    tags = [[f"v2.{release}.0" for release in releases] for releases in sessions]
    levels = {f"v2.{release}.0": np.eye(1, series)[0] * jump * (release >= 4) for release in range(8)}
    return modelled(draw, tags, levels.__getitem__, turns, 0.012, shared=0.02, session=0.015, round=0.02)


def test_intervals_hold_the_truth_as_often_as_they_say_and_what_rounds_and_sessions_do_is_found():
    inside, random = [], []
    for seed in range(12):
        (question,) = history(launches_of(np.random.default_rng(seed), 0.2)).fits.values()
        random.append(question.random["time"])
        olds, news = np.array([*itertools.combinations(range(8), 2)]).T
        for series, of in question.levels.items():
            said = of.contrasts(olds, news)
            true = np.where((olds < 4) & (news >= 4) & (series.parameters == ("'0'",)), 0.2, 0.0)
            inside.append(np.abs(said.shift - true) <= said.error * stats.t.ppf(0.975, said.freedom))
    assert 0.93 <= np.mean(inside) <= 0.98
    assert np.mean([of.round for of in random]) == pytest.approx(0.02**2, rel=0.2)
    assert np.mean([of.session for of in random]) == pytest.approx(0.015**2, rel=0.4)


@pytest.mark.parametrize(("sessions", "rounds"), [(1, 1), (1, 2), (3, 1)])
def test_a_fit_of_next_to_no_launches_says_nothing_that_is_no_number(sessions, rounds):
    """One series of two releases; warnings of NumPy would end it."""
    found = launches_of(np.random.default_rng(1), 0.0, 1, [[0, 1]] * sessions, rounds)
    with np.errstate(all="raise"):
        (question,) = history(found).fits.values()
        (said,) = (of.contrasts(np.array([0, 1]), np.array([1, 0])) for of in question.levels.values())
    assert np.isfinite([said.shift, said.error, said.freedom]).all()
    assert said.shift[0] == -said.shift[1]


def test_what_is_shown_is_the_median_of_launches_less_what_their_sessions_do():
    (question,) = history(launches_of(np.random.default_rng(3), 0.0)).fits.values()
    (place,) = question.places(["v2.2.0"])
    for series, of in question.launches.items():
        here = of.release == place
        assert {*of.session[here]} == {0, 1}
        expected = np.exp(np.median(of.logarithm[here] - question.shifts[of.session[here]]))
        assert question.shown(series, "v2.2.0") == pytest.approx(expected, rel=0.01)


@functools.cache
def lane(python: str) -> History:
    """A lane of the machine with the longest history, as it is committed."""
    return history(read_on_axis(ROOT / "results", MAIN, AXIS, f"release-py{python}"))


@pytest.mark.committed
def test_intervals_of_the_two_lanes_hold_each_others_difference():
    """Of neighbours, steady times: 94.0 in 100 on the day that this was written. 2.0.0 and 2.0.1 are other builds in each
    lane, and differ."""
    here, there = (power.lane_evidence(lane(python), f"release-py{python}", AXIS) for python in ("3.9", "3.11"))
    pairs = [pair for pair in here.near if not {"v2.0.0", "v2.0.1"} & {*pair}]
    inside = [
        agree[compared & power.steady(series)[:, None]]
        for series, agree, compared in power.agreement(here, there, pairs)
    ]
    assert sum(map(len, inside)) > 4000
    assert np.concatenate(inside).mean() >= 0.93
    assert min(of.mean() for of in inside if len(of)) >= 0.85
