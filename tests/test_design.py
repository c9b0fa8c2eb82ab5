"""What do stored sessions lack, and do as many rounds as the plan says find a change?"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from click.testing import CliRunner

from torch_history import cli
from torch_history.analysis import design, power
from torch_history.analysis.levels import REPEATED, Fitted
from torch_history.analysis.series import history
from torch_history.store.launches import Case, Launch

from .test_power import PATCH
from .test_verdicts import launch

QUESTION = "selection.Selection.track_time"


def fit_of(
    sessions: list[tuple[str, ...]], rounds: int = 2, series: int = 12, noise: float = 0.013, seed: int = 0
) -> Fitted:
    """Times of one question without any change, of some releases in each session, which does something to each series on
    each release."""
    random = np.random.default_rng(seed)
    launches: list[Launch] = []
    for (number, tags), of in itertools.product(enumerate(sessions), range(series)):
        repeated = random.normal(scale=REPEATED, size=len(tags))
        for round in range(1, 1 + rounds):
            scatter = repeated + random.normal(scale=noise) + random.normal(scale=noise, size=len(tags))
            for tag, logarithm in zip(tags, scatter, strict=True):
                case = Case((f"'{of}'", "'x'"), samples=(math.exp(logarithm),))
                launches.append(launch(tag, QUESTION, case, f"s{number}", round=round))
    (fit,) = history(launches).fits.values()
    return fit


def test_ties_count_what_sessions_share() -> None:
    chain = design.ties(fit_of([("v2.0.0", "v2.0.1", "v2.1.0"), ("v2.1.0", "v2.1.1", "v2.1.2")]), 2)
    assert chain == design.Ties(2, 2, "v2.1.0", 0, ("v2.0.0", "v2.0.1", "v2.1.1", "v2.1.2"))
    tied = design.ties(fit_of([("v2.0.0", "v2.0.1", "v2.1.0"), ("v2.0.1", "v2.1.0", "v2.1.1")]), 2)
    assert (tied.shares_few, tied.without_anchor, tied.once) == (0, 0, ("v2.0.0", "v2.1.1"))
    assert design.ties(fit_of([("v2.0.0", "v2.0.1")]), 2).sessions == 1


def test_more_rounds_are_worth_what_as_many_launches_are() -> None:
    """A fit that is reckoned with four times the rounds is as sure as one of four times the launches."""
    few, many = fit_of([PATCH], 4, 40), fit_of([PATCH], 16, 40)
    errors = []
    for fit in (few, few.with_rounds(4), many):
        (olds, news) = (fit.places([tag]) for tag in PATCH)
        errors.append(float(np.median([of.contrasts(olds, news).error[0] for of in fit.levels.values()])))
    assert errors[1] == pytest.approx(errors[2], rel=0.1)
    assert errors[1] < 0.8 * errors[0]
    assert few.with_rounds(1).levels.keys() == few.levels.keys()


def test_as_many_rounds_as_are_reckoned_find_what_they_should() -> None:
    few = fit_of([PATCH], 3, 40)
    small, large = design.costs(few, [PATCH], (0.8, 0.99))
    assert (small.size, small.rounds) == (0.05, 3)
    assert small.found < 0.8
    assert large.found > small.found
    needed = small.needed[0]
    assert needed is not None
    assert needed > 3
    found = fit_of([PATCH], round(needed), 40, seed=1)
    told = power.found_alone([found], PATCH, found.levels).shares[0.05]
    assert told == pytest.approx(0.8, abs=0.12)
    assert design.costs(few, [("v2.2.0", "v2.2.1")], (0.8,)) == []


def test_a_plan_says_what_sessions_lack_and_what_finding_more_costs() -> None:
    answer = CliRunner().invoke(cli.main, ["run", "--plan", "--question", "batching", "2.9.0..2.15.0"])
    assert answer.exit_code == 0, answer.output
    said = " ".join(answer.output.split())
    for words in ("Nothing was measured.", "sessions share fewer than 2 releases", "80% found", "v2.12.1, v2.9.1"):
        assert words in said, answer.output
