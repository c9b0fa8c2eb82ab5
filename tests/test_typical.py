"""Is the typical ratio what NumPy makes of the raw numbers, and does its interval hold the truth?"""

from typing import Any

import numpy as np
import pytest

from torch_history.analysis.series import history
from torch_history.site import pairs, typical
from torch_history.site.data import Lane
from torch_history.site.told import told
from torch_history.store.launches import Case, Launch

from .test_verdicts import NEW, OLD, launch, question

CASES = {"batching": 12, "selection": 3}


def measured(seed: int, ratio: float, noise: float = 0.01) -> list[Launch]:
    """Six rounds of two releases, of which the second takes `ratio` times as long, in one session."""
    random = np.random.default_rng(seed)
    each = [question(random, np.full(count, ratio), 6, noise, name) for name, count in CASES.items()]
    return [one for launches in each for one in launches]


def told_of(launches: list[Launch]) -> dict[str, Any]:
    found, tags = history(launches), [OLD, NEW]
    machine, facts = {"machine": "here", "device": "cpu"}, {tag: dict[str, Any]() for tag in tags}
    return told(Lane(machine, "release-py3.11", found, tags, facts, [], {}, pairs.EveryPair(found, tags)), 0)


def test_typical_is_the_mean_over_questions_of_the_means_over_their_cases():
    launches = measured(1, 1.1, noise=0.05)
    found = told_of(launches)

    def logarithms(name: str, release: str) -> Any:
        mine = [one for one in launches if one.benchmark.startswith(name) and one.release == release]
        return np.log([[case.samples[0] for case in one.cases] for one in mine])

    of_cases = {name: (logarithms(name, NEW) - logarithms(name, OLD)).mean(axis=0) for name in CASES}
    batching, selection = (of.mean() for of in of_cases.values())
    assert found["typical"]["ratio"] == pytest.approx(np.exp((batching + selection) / 2), rel=1e-4)
    assert found["questions"]["selection"]["ratio"] == pytest.approx(np.exp(selection), rel=1e-4)
    assert found["typical"]["cases"] == sum(CASES.values())
    plain = np.concatenate([*of_cases.values()]).mean()
    assert abs(plain - (batching + selection) / 2) > 1e-3, "or weights would not show"


def test_its_interval_holds_the_truth():
    found = [told_of(measured(seed, 1.1))["typical"] for seed in range(20)]
    assert sum(each["low"] <= 1.1 <= each["high"] for each in found) >= 18
    assert all(each["high"] / each["low"] < 1.06 for each in found), "and says something"
    assert {tuple(each) for each in found} == {typical.Typical._fields}


@pytest.mark.parametrize(
    ("ratio", "low", "high", "said"),
    [
        (1.0, 0.97, 1.03, "no change in 6 cases (between 3 % faster and 3 % slower)"),
        (1.02, 1.01, 1.03, "no change in 6 cases (between 1 % slower and 3 % slower)"),
        (1.02, 0.93, 1.11, "between 7 % faster and 11 % slower in 6 cases: inconclusive"),
        (1.03, 1.01, 1.05, "between 1 % slower and 5 % slower in 6 cases: inconclusive"),
        (1.09, 1.05, 1.13, "1.09 times slower in 6 cases (1.05 to 1.13)"),
        (0.8, 0.75, 0.9, "1.25 times faster in 6 cases (1.11 to 1.33)"),
        (1.2, 0.4, 3.6, "between 2.50 times faster and 3.60 times slower in 6 cases: inconclusive"),
    ],
)
def test_typically_the_same_needs_the_whole_interval_within_the_margin(ratio, low, high, said):
    assert typical.words(typical.Typical(ratio, low, high, 6), "in 6 cases") == said


@pytest.mark.parametrize(
    ("old", "new", "said", "hungriest"),
    [
        ((200_000, 200_000), (7_200_000, 8_700_000), "2 cases need 7.0 to 8.5 MB more, at most 44 times as much", "1"),
        ((24 * 10**7,), (24 * 10**7 + 48,), "1 case needs 48 B more", "0"),
        ((0, 5 * 10**8), (5 * 10**8, 0), "1 case needs 500.0 MB less; 1 case needs 500.0 MB more", "0"),
    ],
)
def test_more_memory_is_told_in_bytes_too_and_without_a_factor_where_there_was_none(old, new, said, hungriest):
    launches = [
        launch(tag, "batching.Q.track_peak_memory", *(Case((f"'{i}'",), value=peak) for i, peak in enumerate(of)))
        for tag, of in ((OLD, old), (NEW, new))
    ]
    told = told_of(launches)["said"]
    assert (told["memory"], told["hungriest"]) == (said, hungriest)
