"""Does the simulation of looking again find what looking again does? A few sessions check the tool and the rule."""

from __future__ import annotations

from unittest import mock

import numpy as np

from tools import bench_looking
from torch_history.analysis import verdicts


def test_a_session_measures_again_only_what_is_undecided() -> None:
    planted, changes = bench_looking.session(np.random.default_rng(1))
    rounds = {min(change.launches) for change in changes}
    assert len(planted) == len(changes) == sum(bench_looking.TRUTHS.values())
    assert 2 <= min(rounds) < max(rounds) <= bench_looking.MOST


def test_looks_that_spend_less_tell_small_changes_less_often_and_large_ones_still() -> None:
    told = bench_looking.simulate(sessions=6)
    with mock.patch.object(verdicts, "penalty", return_value=1.0):
        before = bench_looking.simulate(sessions=6)
    small = [sum(len(of[change].changes) for change in (0.0, 0.01, 0.02, 0.03)) for of in (told, before)]
    assert small[0] < small[1] / 2
    assert len(told[0.1].changes) >= 0.8 * told[0.1].cases
