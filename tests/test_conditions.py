"""Is a disturbed measurement known as one, and a quiet one never?"""

from typing import Any

import pytest

from torch_history.measuring import conditions
from torch_history.measuring.conditions import OTHERS, STOLEN, USUAL_OF, Watch, disturbance

USUAL = [{"interpreter": 0.003, "memory": 0.002}] * 5


def ticking(monkeypatch: pytest.MonkeyPatch, *ticks: tuple[int, int, int]) -> None:
    told = (dict(zip(("busy", "idle", "steal"), each, strict=True)) for each in ticks)
    monkeypatch.setattr(conditions, "processor_ticks", lambda: next(told))


def found(interpreter: float = 0.003, memory: float = 0.002, **more: Any) -> dict[str, Any]:
    return {"control": {"interpreter": interpreter, "memory": memory}, **more}


@pytest.mark.parametrize(
    ("lap", "before", "said"),
    [
        (found(interpreter=0.0035, stolen=0.01), USUAL, ""),
        (found(interpreter=0.005), USUAL, "work without torch (interpreter) took "),
        (found(memory=0.005), USUAL, "work without torch (memory) took "),
        (found(interpreter=1.0), USUAL[:2], ""),
        (found(stolen=2 * STOLEN), [], "the host took 10% of the processors' time away"),
        *((found(others=OTHERS), [], ""), (found(others=0.25), [], "other processes kept 25% of the processors busy")),
        (found(gpu={"throttled": "0x44", "throttled_share": 0.4}), USUAL, "the GPU held its clocks back for 40%"),
        (found(gpu={"throttled": "0x4", "throttled_share": 0.05}), USUAL, ""),
        *((found(gpu={"celsius": 60.0}), USUAL, ""), (found(gpu={"unknown": "nvidia-smi is not there"}), USUAL, "")),
    ],
)
def test_slow_controls_stolen_time_others_and_a_gpu_that_holds_back_for_long_are_a_disturbance(lap, before, said):
    assert disturbance(lap, before).startswith(said)
    assert bool(disturbance(lap, before)) is bool(said)


def test_work_of_others_is_what_the_processors_did_beside_the_threads_that_measure(monkeypatch):
    monkeypatch.setattr(conditions.os, "cpu_count", lambda: 4)
    ticking(monkeypatch, (0, 0, 0), (200, 200, 0), (400, 400, 0))
    watch = Watch(gpu=False, threads=1)
    watch._controls = [(0.003, 0.002)]
    assert watch.lap()["others"] == 0.25


def test_a_lap_has_the_median_of_its_controls_and_the_next_begins_anew(monkeypatch):
    ticking(monkeypatch, (100, 100, 0), (190, 108, 2), (190, 108, 2))
    watch = Watch(gpu=False)
    watch._controls = [(0.003, 0.002), (0.004, 0.001), (0.9, 0.003)]
    lap = watch.lap()
    assert lap["control"] == {"interpreter": 0.004, "memory": 0.002}
    assert (lap["busy"], lap["stolen"]) == (0.9, 0.02)
    assert watch._controls == []


def test_a_machine_that_became_slower_for_good_is_usual_again(monkeypatch):
    monkeypatch.setattr(conditions, "processor_ticks", dict)
    watch, said = Watch(gpu=False), []
    for seconds in [0.003] * 5 + [0.006] * USUAL_OF:
        watch._controls = [(seconds, 0.002)]
        said.append("disturbed" in watch.lap())
    assert said[5]
    assert not any(said[:5])
    assert not said[-1]


def test_a_watch_waits_until_the_processor_is_as_quick_as_it_was_and_no_longer_than_it_is_told(monkeypatch):
    clock = Clock(monkeypatch, busy=[(30.0, 40.0), (50.0, 1000.0)])
    clock.boosted = (10.3, 10.32)
    watch, quiet = Watch(gpu=False), conditions.Quiet()
    for clock.now in (*range(10), 10.31, *range(11, 30)):
        assert watch.wait(quiet, 60.0) == 0.0
    clock.now = 31.0
    watch.begin()
    assert 8.9 < watch.wait(quiet, 60.0) < 9.1
    assert clock.now < 40.1
    lap = watch.lap()
    assert (8 < lap["waited"] < 10, lap["others"]) == (True, 0.0), "what others do meanwhile disturbs nothing"
    assert "waited" not in watch.lap()
    clock.now = 51.0
    assert 10.0 <= watch.wait(quiet, 10.0) < 10.1


class Clock:
    """Time as it passes for a Watch: loops take 1.6 times as long while others are busy, who then keep all processors."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, busy: list[tuple[float, float]]) -> None:
        self.now, self.busy = 0.0, busy
        self.boosted = (0.0, 0.0)
        monkeypatch.setattr(conditions.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(conditions.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(conditions, "_loop", self.loop)
        monkeypatch.setattr(conditions, "processor_ticks", self.ticks)

    def loop(self, steps: int) -> float:
        slow = any(begin <= self.now < end for begin, end in self.busy)
        boosted = self.boosted[0] <= self.now < self.boosted[1]
        seconds = steps * 4e-8 * (1.6 if slow else 0.7 if boosted else 1.0)
        self.now += seconds
        return seconds

    def ticks(self) -> dict[str, int]:
        loud = sum(max(0.0, min(end, self.now) - begin) for begin, end in self.busy)
        return {"busy": round(200 * loud), "idle": round(200 * (self.now - loud)), "steal": 0}
