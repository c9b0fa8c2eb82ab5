"""Are two sessions of the same releases held together, and is what contradicts found?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from torch_history.releases.axis import Axis
from torch_history.reports.repeats import agreements, document
from torch_history.store.launches import Case, Launch

AXIS = Axis.load(Path(__file__).resolve().parents[1] / "releases.toml")
OLD, NEW = "v2.0.0", "v2.0.1"
TIME, PEAK = "q.Q.track_time", "q.Q.track_peak_memory"


def session(
    name: str, slower: dict[str, float], peak: float = 1000.0, version: str = "1", noise: float = 0.004
) -> list[Launch]:
    """Six rounds of OLD and NEW; each variant takes so many times as long on NEW."""
    random = np.random.default_rng(len(name))
    found = []
    for turn in range(1, 7):
        for tag in (OLD, NEW):
            times = tuple(
                Case((variant,), samples=(float((ratio if tag == NEW else 1.0) * np.exp(random.normal(0, noise))),))
                for variant, ratio in slower.items()
            )
            peaks = tuple(Case((variant,), value=peak if tag == NEW else 500.0) for variant in slower)
            about = (f"{name}{turn}{tag}", tag, "release-py3.11")
            for benchmark, cases in ((TIME, times), (PEAK, peaks)) if turn == 1 else ((TIME, times),):
                found.append(Launch(name, turn, *about, benchmark, version, f"{name} {turn}", 1.0, {}, cases))
    return found


def test_sessions_that_agree_contradict_nowhere() -> None:
    launches = [*session("monday", {"a": 1.0, "b": 1.3}), *session("sunday night", {"a": 1.0, "b": 1.3})]
    (said,) = agreements(launches, AXIS)
    assert (said.sessions, said.old, said.new) == (("monday", "sunday night"), OLD, NEW)
    assert (said.counts, said.decided, said.alike, said.contradictions) == (2, 2, 2, [])


def test_other_verdicts_whose_intervals_meet_are_no_contradiction() -> None:
    launches = [*session("monday", {"a": 1.02}, noise=0.003), *session("sunday night", {"a": 1.05}, noise=0.003)]
    (said,) = agreements(launches, AXIS)
    assert (said.decided, said.alike, said.contradictions) == (1, 0, [])


def test_two_that_say_same_do_not_contradict_wherever_their_intervals_lie() -> None:
    launches = [*session("monday", {"a": 0.985}, noise=0.001), *session("sunday night", {"a": 1.015}, noise=0.001)]
    (said,) = agreements(launches, AXIS)
    assert (said.decided, said.alike, said.contradictions) == (1, 1, [])


def test_contradictions_are_found_and_written_with_both_numbers() -> None:
    launches = [*session("monday", {"a": 1.0, "b": 1.3}), *session("sunday night", {"a": 1.3, "b": 1.3}, peak=2000.0)]
    (said,) = agreements(launches, AXIS)
    assert [first.series.words for first, _ in said.contradictions] == [
        "q peak memory, a",
        "q peak memory, b",
        "q time, a",
    ]
    page = document({"here": launches}, AXIS)
    assert f"| {OLD} → {NEW} | monday and sunday night | 2 | 2 | 1 | 3 |" in page
    assert "- q peak memory, a: HUNGRIER (500 B → 1,000 B), then HUNGRIER (500 B → 2,000 B)\n" in page
    assert "- q time, a: SAME (0.9" in page


@pytest.mark.parametrize(("again", "contradictions"), [(301e6, []), (400e6, ["q start memory, a"])])
def test_memory_that_differs_from_process_to_process_is_held_by_its_verdict(
    again: float, contradictions: list[str]
) -> None:
    measured = []
    for name, resident in (("monday", 302e6), ("sunday night", again)):
        for launch in session(name, {"a": 1.0}):
            value = (resident if launch.release == NEW else 300e6) + 4096 * launch.round
            cases = (Case(("a",), value=value),)
            measured.append(replace(launch, benchmark="q.Q.track_start_memory", cases=cases))
    (said,) = agreements(measured, AXIS)
    assert (said.counts, said.decided, said.alike) == (0, 1, int(not contradictions))
    assert [first.series.words for first, _ in said.contradictions] == contradictions


def test_stalls_that_a_busy_machine_adds_contradict_nothing() -> None:
    stalls = []
    for name, counted in (("monday", 1.0), ("sunday night", 3.0)):
        for launch in session(name, {"a": 1.0}):
            cases = (Case(("a",), value=counted if launch.release == NEW else 0.0),)
            stalls.append(replace(launch, benchmark="q.Q.track_stalls", cases=cases))
    assert {launch.benchmark for launch in stalls} == {"q.Q.track_stalls"}
    assert agreements(stalls, AXIS) == []


def test_other_benchmarks_releases_and_lanes_are_not_held_together() -> None:
    older = session("monday", {"a": 1.3}, version="0")
    single = [launch for launch in session("saturday", {"a": 1.3}) if launch.release == NEW]
    today = session("sunday night", {"a": 1.0})
    assert agreements([*older, *single, *today], AXIS) == []
    assert "No two releases were measured in more than one session." in document({"here": today}, AXIS)
