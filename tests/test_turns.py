"""Do releases take turns one at a time, end well whatever one of them does, and does what they find say what differs?"""

import contextlib
import math
import os
import statistics
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from contract.request import ALONE, END, TAKE
from torch_history.analysis.compare import sentence
from torch_history.analysis.series import Verdict, history, observations
from torch_history.analysis.steps import chains
from torch_history.analysis.turned import CLUSTERED
from torch_history.analysis.verdicts import compare
from torch_history.measuring import turns
from torch_history.measuring.conditions import Quiet
from torch_history.measuring.turns import LEAST_TURNS, Turns, ask_in_turns
from torch_history.store.launches import Case, Launch, machines_in, read_launches

from .lab import AXIS
from .processes import ROOT
from .test_verdicts import launch

RESULTS = ROOT / "results"

BENCHMARK: dict[str, Any] = {"name": "batching.Batching.track_time"}


class Release:
    """A server whose process takes turns of a second, or runs out of memory in one; what it is told is kept."""

    happened: list[str]

    def __init__(self, name: str, ends_at: int = -1, held: int = 1000, metrics: int = 1) -> None:
        self.name, self._ends_at, self._held, self._metrics = name, ends_at, held, metrics
        self.turns = Turns()
        self.told: list[bytes] = []
        self._stopped = threading.Event()

    def ask(self, benchmark: dict[str, Any], index: int) -> None:
        reads, writes = self.turns.paths.split(":")
        told, answered = os.open(reads, os.O_RDONLY), os.open(writes, os.O_WRONLY)
        try:
            for _ in range(self._metrics):
                self.happened.append(f"{self.name} ready")
                os.write(answered, f"{self._held}\n".encode())
                for turn in range(1000):
                    word = os.read(told, 1)
                    self.told.append(word)
                    if word != TAKE or self._stopped.is_set():
                        break
                    self.happened.append(self.name)
                    if turn == self._ends_at:
                        raise OSError("out of memory")
                    os.write(answered, b"1.0\n")
        finally:
            self.happened.append(f"{self.name} ended")
            os.close(told)
            os.close(answered)

    def stop(self) -> None:
        self._stopped.set()
        self.turns.tell(ALONE)

    @contextlib.contextmanager
    def on(self, processor: int) -> Iterator[None]:
        self.happened.append(f"{self.name} on {processor}")
        yield
        self.happened.append(f"{self.name} back")


@pytest.fixture(autouse=True)
def happened(monkeypatch) -> list[str]:
    monkeypatch.setattr(turns, "LEAST_SECONDS", 0.0)
    Release.happened = []
    return Release.happened


class Still(Quiet):
    """A core that is quiet; `waits` counts how often somebody asked for that."""

    waits = 0

    def wait(self, most: float, looks: int = 1) -> float:
        self.waits += 1
        return 0.0


def ask(*releases: Release, processors: Sequence[int] = ()) -> int:
    """Returns how often somebody waited for a quiet core."""
    quiet = Still()
    ask_in_turns(releases, BENCHMARK, 0, quiet, processors)  # type: ignore[arg-type]
    for release in releases:
        release.turns.close()
    return quiet.waits


def test_releases_are_made_ready_one_by_one_and_then_take_turns(happened):
    old, new = Release("old"), Release("new")
    ask(old, new)
    assert happened[:2] == ["old ready", "new ready"]
    in_turn = [sorted(happened[place : place + 2]) for place in range(2, 2 + 2 * LEAST_TURNS, 2)]
    assert in_turn == [["new", "old"]] * LEAST_TURNS
    assert happened[-2:] == ["old ended", "new ended"]
    assert old.told == new.told == [TAKE] * LEAST_TURNS + [END]


def test_with_memory_they_are_made_ready_beside_each_other_on_a_processor_each(monkeypatch, happened):
    monkeypatch.setattr(turns, "_available", lambda: 2.5 * turns.MOST_HELD)
    ask(*(Release(name) for name in "abc"), processors=(4, 7, 9))
    ready = [word for word in happened if word not in "abc" and not word.endswith("ended")]
    assert [word for word in ready if "on" in word] == ["a on 4", "b on 7", "c on 4"]
    assert ready.index("b on 7") < ready.index("a back") < ready.index("c on 4"), "a and b are, and c after them"
    assert all(ready.index(f"{name} ready") < ready.index(f"{name} back") for name in "abc")


def test_with_less_memory_they_are_made_ready_one_by_one(monkeypatch, happened):
    monkeypatch.setattr(turns, "_available", lambda: 2.0 * turns.MOST_HELD - 1)
    ask(Release("old"), Release("new"), processors=(0, 1))
    assert happened[:2] == ["old ready", "new ready"]


@pytest.mark.committed
def test_no_case_on_a_processor_takes_more_than_must_be_free_for_each():
    """Tensors at their peak, and half a gigabyte for the interpreter with torch."""
    every = (launch for machine in machines_in(RESULTS) for launch in read_launches(RESULTS, machine))
    peaks = (launch for launch in every if launch.benchmark.endswith("peak_memory"))
    held = [case.number or 0 for launch in peaks if launch.facts.get("device") == "cpu" for case in launch.cases]
    assert 2**30 < max(held) < turns.MOST_HELD - 2**29


def test_each_metric_takes_turns_of_its_own(happened):
    old, new = Release("old", metrics=2), Release("new", metrics=2)
    ask(old, new)
    assert old.told == new.told == 2 * ([TAKE] * LEAST_TURNS + [END])


def test_a_process_that_takes_no_turns_is_measured_before_the_next_begins(happened):
    ask(Release("old", metrics=0), Release("new", metrics=0))
    assert happened == ["old ended", "new ended"]


def test_where_one_ends_early_the_others_go_on_and_the_next_case_hears_nothing_of_it(happened):
    with pytest.raises(OSError, match="out of memory"):
        ask(Release("old"), Release("new", ends_at=2), Release("newest"))
    assert sorted(happened[-3:]) == ["new ended", "newest ended", "old ended"]


def test_a_release_alone_takes_turns_that_compare_nothing():
    only = Release("only")
    ask(only)
    assert only.told == [TAKE] * LEAST_TURNS + [ALONE]


def test_where_memory_is_short_each_release_is_measured_before_the_next_begins(monkeypatch, happened):
    monkeypatch.setattr(turns, "_available", lambda: 3000.0)
    old, new = (Release(name, held=2000, metrics=2) for name in ("old", "new"))
    ask(old, new)
    assert happened.index("old ended") < happened.index("new ready")
    assert old.told[-1] == new.told[-1] == ALONE


def test_an_interruption_ends_all(monkeypatch, happened):
    def interrupted(*_: Any) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(turns, "_is_enough", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ask(Release("old"), Release("new"))
    assert sorted(happened[-2:]) == ["new ended", "old ended"]


def test_short_turns_wait_for_a_quiet_core_and_long_ones_for_nothing(monkeypatch):
    assert ask(Release("old"), Release("new")) == LEAST_TURNS
    monkeypatch.setattr(turns, "SHORT", 0.0)
    assert ask(Release("old"), Release("new")) == 1, "nothing is known of the first"


def launches(of: dict[str, list[list[float]]]) -> list[Launch]:
    """Rounds of one session: release -> the turns of each round."""
    return [
        launch(release, BENCHMARK["name"], Case(("'x'",), samples=(min(turns),), turns=tuple(turns)), round=number)
        for release, rounds in of.items()
        for number, turns in enumerate(rounds, start=1)
    ]


def seen(of: dict[str, list[list[float]]]) -> dict[str, list[Any]]:
    (releases,) = history(launches(of)).values()
    return {tag: observations(releases, tag) for tag in of}


def test_two_releases_differ_by_the_median_of_what_turns_say():
    chance = np.random.default_rng(3)
    olds, news = np.exp(chance.normal(0, 0.05, (2, 31)))
    found = seen({"a": [list(olds)], "b": [list(news)]})
    shift = math.log(found["b"][0].number / found["a"][0].number)
    assert shift == pytest.approx(np.median(np.log(news / olds)), abs=1e-6)
    both = math.log(found["b"][0].number * found["a"][0].number)
    assert both == pytest.approx(math.log(olds.min() * news.min()), abs=1e-6)


def test_what_slows_whole_turns_goes_out_and_what_is_planted_stays():
    chance = np.random.default_rng(4)
    slowed = np.where(chance.random(40) < 0.4, 1.6, 1.0)
    levels = {"a": 1.0, "b": 1.05, "c": 1.05, "d": 0.9}
    found = seen({tag: [list(level * slowed * np.exp(chance.normal(0, 0.002, 40)))] for tag, level in levels.items()})
    for tag, level in levels.items():
        assert found[tag][0].number / found["a"][0].number == pytest.approx(level, rel=0.003)


def test_a_median_of_turns_scatters_as_it_shows():
    chance = np.random.default_rng(5)
    of = {tag: [list(np.exp(chance.normal(0, 0.1, 25))) for _ in range(400)] for tag in "ab"}
    found = seen(of)
    shifts = [math.log(new.number / old.number) for old, new in zip(found["a"], found["b"], strict=True)]
    shown = statistics.mean(one.variance for one in (*found["a"], *found["b"]))
    assert statistics.variance(shifts) == pytest.approx(2 * shown / CLUSTERED, rel=0.25)


def beside(slower: float, quiet: int) -> dict[str, list[float]]:
    """Twenty turns of a tenth of a millisecond in a round of which so many are quiet. In the others a neighbour makes both
    releases 1.7 times slower, and `b`, which else takes as long as `a`, `slower` times more."""
    of = np.where(np.arange(20) < quiet, 1.0, 1.7)
    noise = 1e-4 * np.exp(np.random.default_rng(quiet).normal(0, 0.005, (2, 20)))
    return {"a": list(of * noise[0]), "b": list(of * noise[1] * np.where(of > 1, slower, 1.0))}


def test_what_holds_in_quiet_moments_counts():
    rounds = [beside(0.85, quiet) for quiet in (20, 6, 0)]
    found = seen({tag: [of[tag] for of in rounds] for tag in "ab"})
    shifts = [math.log(new.number / old.number) for old, new in zip(found["a"], found["b"], strict=True)]
    assert shifts[:2] == pytest.approx([0.0, 0.0], abs=0.02)
    assert shifts[2] == pytest.approx(math.log(0.85), abs=0.02)
    assert found["b"][2].variance > 100 * found["b"][0].variance


def test_where_no_moment_was_quiet_all_turns_count_alike():
    """And so it is for calls so long that they hold quiet moments and loud ones alike."""
    loud = [beside(0.85, 0) for _ in range(3)]
    found = seen({tag: [of[tag] for of in loud] for tag in "ab"})
    assert max(one.variance for one in found["b"]) < 0.01**2


def test_one_quiet_launch_among_loud_ones_decides_nothing():
    rounds = [beside(1.0, 20), *(beside(1.0, 0) for _ in range(3))]
    found = launches({tag: [of[name] for of in rounds] for name, tag in (("a", "v2.0.1"), ("b", "v2.1.0"))})
    (change,) = compare(found, "v2.0.1", "v2.1.0")
    assert change.verdict is Verdict.CANT_TELL
    assert "one launch of a release weighs far more than its others" in sentence(change)
    (fit,) = history(found).fits.values()
    assert [*chains(fit, AXIS)] == []
    rounds[1] = beside(1.0, 19)
    (change,) = compare(launches({tag: [of[tag] for of in rounds] for tag in "ab"}), "a", "b")
    assert change.verdict is Verdict.SAME


@pytest.mark.parametrize("others", [[], [1.0, 1.0]])
def test_turns_that_no_other_release_took_with_it_leave_the_quickest_sample(others):
    found = seen({"a": [[2.0, 1.0, 3.0]], **({"b": [others]} if others else {})})
    assert [(one.number, one.variance) for one in found["a"]] == [(1.0, 0.0)]
