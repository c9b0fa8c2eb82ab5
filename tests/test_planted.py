"""Is what calibration plants exactly as large as it says? Runs inside a release."""

from collections.abc import Callable

import pytest

from .torch_here import torch

# isort: split

from measure import planted, profile
from measure.planted import IN_CALLS, PlantedFailure, into, into_each, share

Work = Callable[[], object]
CASES = {size: next(f"case {i}" for i in range(1000) if share(f"case {i}") == size) for size in (0.0, 0.05, 0.1, 0.2)}


@pytest.fixture
def work() -> Work:
    values = torch.arange(1000.0)
    return lambda: values * 2


def plant(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setenv("TORCH_HISTORY_PLANTED", what)


def test_nothing_is_planted_unless_asked_for(monkeypatch, work):
    monkeypatch.delenv("TORCH_HISTORY_PLANTED", raising=False)
    assert into(work, "a case", "cpu") is work
    assert into_each(work, "a case") is work


def test_one_operator_more_is_one_and_four_kibibytes_more_at_the_peak_are_4096_bytes(monkeypatch, work):
    bare = profile.profile(work, "cpu")
    plant(monkeypatch, "operator")
    more = profile.profile(into(work, "a case", "cpu"), "cpu")
    assert more._replace(operators=more.operators - 1) == bare
    plant(monkeypatch, "peak")
    more = profile.profile(into(work, "a case", "cpu"), "cpu")
    assert (more.peak_memory, more.retained) == (bare.peak_memory + 4096, bare.retained)


def test_a_failure_is_raised(monkeypatch, work):
    plant(monkeypatch, "failure")
    with pytest.raises(PlantedFailure):
        into(work, "a case", "cpu")


class _Clock:
    """A clock that work moves on, so that planted time can be checked to the nanosecond."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(planted.time, "perf_counter", self.read)
        # What does nothing takes no time on it, so no number of calls would fill a block.
        monkeypatch.setattr(planted.clock, "_calls_of_a_block", lambda call, on: 4096)

    def read(self) -> float:
        self.now += 1e-8
        return self.now

    def work(self, *arguments: object) -> None:
        self.now += 1e-4

    def took(self, call: Work, calls: int) -> float:
        """Seconds of each of so many calls."""
        began = self.now
        for _ in range(calls):
            call()
        return (self.now - began) / calls


class _Uneven(_Clock):
    """A clock on which each call takes another time, and those before the first hundred half as long."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        self.calls, self.worked = 0, 0.0

    def work(self, *arguments: object) -> None:
        self.calls += 1
        took = (1 + self.calls % 7) * (2e-5 if self.calls < 100 else 4e-5)
        self.now += took
        self.worked += took


@pytest.mark.parametrize("size", [0.05, 0.1, 0.2])
def test_planted_time_is_that_share_of_what_calls_take_when_they_are_measured(monkeypatch, size):
    plant(monkeypatch, "time")
    clock = _Clock(monkeypatch)
    call, each = into(clock.work, CASES[size], "cpu"), into_each(clock.work, CASES[size])
    assert clock.took(call, 100) == pytest.approx(1e-4 * (1 + size), rel=0.003)
    assert clock.took(lambda: each(None), 1) == pytest.approx(1e-4 * (1 + IN_CALLS * size), rel=0.003)
    uneven = _Uneven(monkeypatch)
    call = into(uneven.work, CASES[size], "cpu")
    uneven.took(call, 300)
    before = uneven.worked
    assert 1000 * uneven.took(call, 1000) / (uneven.worked - before) == pytest.approx(1 + size, rel=0.002)


def test_calls_after_a_wait_that_was_interrupted_have_their_share(monkeypatch):
    clock = _Clock(monkeypatch)
    plant(monkeypatch, "time")
    call = into(clock.work, CASES[0.2], "cpu")
    call()
    read = clock.read
    reads = iter(range(10**6))

    def interrupted() -> float:
        clock.now += 0.05 if next(reads) == 4 else 0.0
        return read()

    monkeypatch.setattr(planted.time, "perf_counter", interrupted)
    call()
    assert next(reads) > 4
    assert clock.took(call, 100) == pytest.approx(1.2e-4, rel=0.005)
    assert planted.told(call, "a case") == {"planted a case": pytest.approx(1.2, rel=0.01)}


@pytest.mark.parametrize(
    ("case", "size"),
    [("eager small", 0.2), ("mask vector 1 % x 1", 0.1), ("plain chain", 0.1), ("vstack_rows 64 x 128", 0.0)],
)
def test_a_case_gets_what_the_report_of_a_calibration_takes_it_to_get(case, size):
    # tests/test_calibrate.py asks the report for the same cases: the two share no code, since only one of them has torch
    assert share(case) == size
