"""Is the typical ratio what NumPy makes of the raw numbers, and does its interval hold the truth?"""

from typing import Any

import numpy as np
import pytest

from torch_history.site import typical
from torch_history.site.told import told

from .site_data import lane_of

CASES = {"batching": 12, "selection": 3}
ROUNDS = 6


def measured(seed: int, ratio: float, noise: float = 0.01) -> tuple[dict[str, Any], np.ndarray]:
    """A lane of two releases, of which the second takes `ratio` times as long, in one session; and the logarithms of its
    numbers (cases x rounds x releases)."""
    chance = np.random.default_rng(seed)
    names = [(question, f"variant_{i}") for question, count in CASES.items() for i in range(count)]
    levels = chance.uniform(-8, 0, (len(names), 1, 1)) + np.array([0, np.log(ratio)])
    logs = levels + chance.normal(0, noise, (len(names), ROUNDS, 2))
    lane = {
        **{"id": "made-up", "machine": {"machine": "here", "device": "cpu"}, "environment": "release-py3.11"},
        "releases": [{"tag": tag, "facts": {}} for tag in ("v1.0.0", "v2.0.0")],
        "rounds": [["session", 1 + turn] for turn in range(ROUNDS)],
        "reasons": [],
        "patterns": [[[release, turn] for turn in range(ROUNDS) for release in (0, 1)]],
        "series": [
            {
                "benchmark": f"{question}.Some.track_time",
                "parameters": [repr(variant), repr("small")],
                **{"pattern": 0, "numbers": np.exp(of).ravel().tolist(), "disturbed": [], "missing": []},
            }
            for (question, variant), of in zip(names, logs, strict=True)
        ],
    }
    return lane, logs


def test_typical_is_the_mean_over_questions_of_the_means_over_their_cases():
    lane, logs = measured(1, 1.1, noise=0.05)
    found = told(lane_of(lane), 0)
    of_cases = (logs[:, :, 1] - logs[:, :, 0]).mean(axis=1)
    batching, selection = of_cases[: CASES["batching"]].mean(), of_cases[CASES["batching"] :].mean()
    assert found["typical"]["ratio"] == pytest.approx(np.exp((batching + selection) / 2), rel=1e-4)
    assert found["questions"]["selection"]["ratio"] == pytest.approx(np.exp(selection), rel=1e-4)
    assert found["typical"]["cases"] == sum(CASES.values())
    assert abs(of_cases.mean() - (batching + selection) / 2) > 1e-3, "or weights would not show"


def test_its_interval_holds_the_truth():
    found = [told(lane_of(measured(seed, 1.1)[0]), 0)["typical"] for seed in range(20)]
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


def test_more_memory_is_told_in_bytes_too():
    lane, _ = measured(3, 1.0)
    peaks = [{**one, "benchmark": one["benchmark"].replace("_time", "_peak_memory")} for one in lane["series"]]
    for one, more in zip(peaks, (7_000_000, 8_500_000), strict=False):
        one["numbers"] = [float(200_000 + more * (i % 2)) for i in range(2 * ROUNDS)]
    lane["series"] = peaks[:2]
    assert told(lane_of(lane), 0)["said"]["memory"] == "2 cases need 7.0 to 8.5 MB more, at most 44 times as much"
