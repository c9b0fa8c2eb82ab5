"""Does the check find nodes equal that are, and refuse one that is slower by a tenth?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from torch_history.analysis.agreement import Agreement, of
from torch_history.analysis.calibration import FIRST, SECOND
from torch_history.store.launches import Case, Launch

CASES = 24
TRIALS = 12


def check(
    draw: np.random.Generator,
    speeds: Mapping[str, float],
    noise: float = 0.01,
    rounds: int = 8,
    kinds: Mapping[str, Mapping[str, str]] | None = None,
    slow_cases: Mapping[str, int] | None = None,
) -> Agreement:
    """A check of nodes that take `speeds` times as long, whose rounds wander by `noise` and whose launches do, too. Of
    a node in `slow_cases` so many cases take a fifth longer still."""
    levels = draw.uniform(1e-6, 1e-3, CASES)
    launches = []
    for node, speed in speeds.items():
        of_cases = np.where(np.arange(CASES) < (slow_cases or {}).get(node, 0), 1.2, 1.0)
        for round in range(1, rounds + 1):
            wander = speed * np.exp(draw.normal(0, noise))
            for arm in (FIRST, SECOND):
                seconds = levels * of_cases * wander * np.exp(draw.normal(0, noise, CASES))
                about: dict[str, Any] = {"node": node, "kernel": "6.1", "kind": (kinds or {}).get(node, {"cpu": "A"})}
                control = {"interpreter": 0.004 * wander, "memory": 0.002 * wander}
                facts = {"node": about, "conditions": {"control": control}}
                cases = tuple(Case((f"'{i}'",), samples=(float(one),)) for i, one in enumerate(seconds))
                moment = f"2026-11-24T00:{round:02}:00+00:00"
                launches.append(
                    Launch(
                        f"s-{node}",
                        round,
                        f"{node}{arm}{round}",
                        arm,
                        "release-py3.11",
                        "batching.Batching.track_time",
                        "v",
                        moment,
                        1.0,
                        facts,
                        cases,
                    )
                )
    return of(launches, "v2.0.1")


def test_equal_nodes_agree_and_share() -> None:
    draw = np.random.default_rng(26)
    found = [check(draw, {"n1": 1.0, "n2": 1.0, "n10": 1.0}) for _ in range(TRIALS)]
    shared = sum(one.groups == {"n1": "n1", "n2": "n1", "n10": "n1"} for one in found)
    assert shared >= 0.9 * TRIALS


@pytest.mark.parametrize(("slow", "shares"), [(1, True), (2, True), (3, False), (6, False)])
def test_more_times_that_differ_than_chance_makes_differ_are_no_agreement(slow: int, shares: bool) -> None:
    """Of 26 times of equal nodes, three differ in 0.2 % of checks, and two in 3 %."""
    found = check(np.random.default_rng(3), {"n1": 1.0, "n2": 1.0}, noise=0.001, slow_cases={"n2": slow})
    assert found.pairs[0].changed == slow
    assert found.pairs[0].agree == shares


def test_a_node_that_is_slower_by_a_little_in_all_times_never_shares() -> None:
    """3 % is within the margin of each time, and is none of a node's."""
    found = check(np.random.default_rng(3), {"n1": 1.0, "n2": 1.03}, noise=0.001)
    assert not found.pairs[0].agree


@pytest.mark.parametrize("noise", [0.003, 0.01, 0.03, 0.1])
def test_a_node_that_is_slower_by_a_tenth_never_shares(noise: float) -> None:
    draw = np.random.default_rng(26)
    for _ in range(TRIALS):
        found = check(draw, {"n1": 1.0, "n2": 1.0, "n3": 1.1}, noise)
        assert found.groups["n3"] == "n3"
        assert [*found.groups.values()].count("n3") == 1


def test_the_sentences_say_by_how_much_nodes_differ_and_who_shares() -> None:
    found = check(np.random.default_rng(1), {"n1": 1.0, "n2": 1.1})
    assert "n2 takes 1.10" in found.words[0]
    assert found.words[0].startswith("n1 and n2 do not agree: ")
    assert found.words[1:] == ["n1 has its own folder for times.", "n2 has its own folder for times."]


def test_nodes_that_are_too_noisy_to_tell_do_not_share() -> None:
    found = check(np.random.default_rng(1), {"n1": 1.0, "n2": 1.0}, noise=0.2)
    assert found.groups == {"n1": "n1", "n2": "n2"}
    assert found.pairs[0].untold > 0.25 * found.pairs[0].times


def test_nodes_of_two_kinds_never_share() -> None:
    kinds = {"n1": {"cpu": "A", "driver": "1"}, "n2": {"cpu": "A", "driver": "2"}}
    found = check(np.random.default_rng(1), {"n1": 1.0, "n2": 1.0}, kinds=kinds)
    assert found.groups == {"n1": "n1", "n2": "n2"}
    assert found.words[0] == "n1 and n2 do not agree: their driver differ, '1' and '2'."


def test_slow_nodes_share_with_each_other() -> None:
    found = check(np.random.default_rng(2), {"n1": 1.0, "n2": 1.1, "n3": 1.0, "n4": 1.1}, noise=0.003)
    assert found.groups == {"n1": "n1", "n3": "n1", "n2": "n2", "n4": "n2"}


def test_few_rounds_are_no_agreement() -> None:
    found = check(np.random.default_rng(2), {"n1": 1.0, "n2": 1.0}, rounds=1)
    assert found.groups == {"n1": "n1", "n2": "n2"}


def test_a_node_that_does_not_agree_with_itself_shares_with_none() -> None:
    found = replace(check(np.random.default_rng(2), {"n1": 1.0, "n2": 1.0, "n3": 1.0}, 0.003), unsteady={"n1": 3})
    assert found.groups == {"n1": "n1", "n2": "n2", "n3": "n2"}
    assert "n1 does not agree with itself: 3 of its own times differ between two names of v2.0.1." in found.words
