"""Does the search find the release of each change with few installations, beside noise, and stop where nothing is told?"""

import math
import random
from collections.abc import Hashable, Mapping

import pytest

from torch_history.measuring.upgrading.search import Look, Moved, Search, Task, expected_releases

RELEASES = 30


class Lab:
    """Releases whose series take 1 until they change; every session draws noise of its own."""

    def __init__(self, changes: Mapping[str, Mapping[int, float]], noise: float = 0.0, seed: int = 0) -> None:
        self.changes = changes
        self.noise = noise
        self.random = random.Random(seed)
        self.installed: list[int] = []
        self.search = Search(RELEASES, self.measure, self.look)

    def measure(self, middle: int, task: Task) -> bool:
        self.installed.append(middle)
        assert task
        assert all(old < middle < new for old, _, new in task)
        return True

    def look(self, series: Hashable, old: int, new: int) -> Look:
        between = (factor for since, factor in self.changes[str(series)].items() if old < since <= new)
        moved = sum(map(math.log, between)) + self.random.gauss(0, self.noise)
        if abs(moved) > max(math.log(1.04), 4.6 * self.noise):
            return Look(Moved.YES, abs(moved))
        return Look(Moved.NO if abs(moved) + 2 * self.noise < math.log(1.04) else Moved.UNKNOWN, abs(moved))

    def run(self) -> dict[Hashable, list[int]]:
        """Series -> where its changes were found, exact ones alone."""
        self.search.run(self.changes)
        found = {series: [span.new for span in spans if span.is_exact] for series, spans in self.search.spans.items()}
        assert len(self.installed) == len(set(self.installed))
        return found


@pytest.mark.parametrize("noise", [0.0, 0.006])
@pytest.mark.parametrize("seed", range(100))
def test_one_change_among_thirty_takes_seven_releases_at_most_beside_noise_too(seed, noise):
    at = 1 + seed % (RELEASES - 1)
    lab = Lab({"f": {at: 1.1}}, noise, seed)
    assert lab.run() == {"f": [at]}
    assert len(lab.search.measured) <= 7 == expected_releases(RELEASES)


def test_change_that_two_sessions_disagree_about_is_told_of_the_releases_that_showed_it():
    """The halves look unchanged to a clock that is too coarse for them: the search goes on in the half that moved, and says
    of which two releases the change is known."""
    lab = Lab({"f": {20: 1.1}})
    sure = lab.look
    lab.search.look = lambda series, old, new: (
        sure(series, old, new) if new - old > 8 else Look(Moved.UNKNOWN, sure(series, old, new).size)
    )
    assert lab.run() == {"f": [20]}
    (span,) = lab.search.spans["f"]
    assert span.seen == (14, 29)


def test_release_that_says_nothing_of_a_series_does_not_end_its_search():
    lab = Lab({"f": {20: 1.1}})
    sure = lab.look
    lab.search.look = lambda series, old, new: Look(Moved.NOTHING, 0.0) if 14 in (old, new) else sure(series, old, new)
    assert lab.run() == {"f": [20]}
    assert lab.search.silent == {("f", 14)}


def test_several_changes_of_one_series_are_found_each():
    places = {4: 1.1, 17: 1.3, 25: 1.2}
    lab = Lab({"f": places})
    assert lab.run() == {"f": list(places)}
    assert len(lab.search.measured) <= 2 + 3 * 5


@pytest.mark.parametrize("seed", range(30))
def test_seven_releases_find_the_largest_of_several_changes(seed):
    first, second = sorted(random.Random(seed).sample(range(1, RELEASES), 2))
    lab = Lab({"f": {first: 1.06}, "g": {second: 2.0}})
    lab.search.most = 7
    assert lab.run()["g"] == [second]
    assert len(lab.search.measured) <= 7
    (span,) = lab.search.spans["f"]
    assert span.old < first <= span.new


def test_slow_change_is_no_step():
    lab = Lab({"f": dict.fromkeys(range(1, RELEASES), 1.003)})
    assert lab.run() == {"f": []}
    assert lab.search.spans["f"]
