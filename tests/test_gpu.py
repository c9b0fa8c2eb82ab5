"""Is the state of a GPU that of its work, and is it said aloud where it cannot be had?

The driver's tool nvidia-smi is played by a script."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from torch_history.measuring import gpu
from torch_history.measuring.conditions import Watch
from torch_history.measuring.gpu import WatchedGpu, reasons_in_words, sample_of, summary

from .processes import lives, program, until

WORK = "1980, 2619, 55, 310.12, 97, 0x0000000000000000"
IDLE = "345, 2619, 34, 70.50, 0, 0x0000000000000001"
CARD = "580.65.06, 81559, 9.0, 1980, 700.00, Enabled, Disabled, Enabled"
SETTINGS = {
    **{"driver": "580.65.06", "memory_mib": "81559", "capability": "9.0", "most_sm_megahertz": "1980"},
    **{"limit_watts": "700.00", "persistence": "Enabled", "mig": "Disabled", "ecc": "Enabled"},
}


class Box:
    """A machine with one card, of which nvidia-smi tells what is in the file `line` twenty times a second."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.line = folder, folder / "line"
        self.asked, self.number = folder / "asked", folder / "number"
        self.said: list[str] = []
        self.tells(WORK)
        self.plays(f"while :; do cat {self.line}; sleep 0.05; done")

    def tells(self, line: str) -> None:
        fresh = self.folder / "fresh"
        fresh.write_text(f"{line}\n")
        fresh.replace(self.line)

    def plays(self, loop: str, once: str = f"echo '{CARD}'") -> None:
        """`loop` is what the tool does where it is asked again and again, `once` where it is asked once."""
        asked = f'case "$*" in *--loop-ms*) echo $$ > {self.number}\n{loop}\n;; *)\n{once}\n;; esac'
        program(self.folder / "bin" / "nvidia-smi", f'echo "$*" >> {self.asked}\n{asked}')

    def alive(self) -> bool:
        """Whether the tool that was started last still runs."""
        return self.number.exists() and lives(self.number.read_text().strip())


@pytest.fixture(autouse=True)
def box(tmp_path, monkeypatch) -> Box:
    found = Box(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return found


@pytest.fixture
def watched(box) -> Iterator[Callable[[], WatchedGpu]]:
    made: list[WatchedGpu] = []

    def make() -> WatchedGpu:
        made.append(WatchedGpu(box.said.append))
        return made[-1]

    yield make
    for each in made:
        each._end()


def test_the_state_is_that_of_the_work_and_not_of_the_end(box, watched):
    found = watched()
    found.begin()
    until(lambda: bool(found._told._samples))
    box.tells(IDLE)
    until(lambda: any(not sample.works for sample in found._told._samples))
    state = found.state()
    assert 0 < state["working"] < state["samples"]
    assert state["sm_megahertz"] == state["least_sm_megahertz"] == 1980
    assert (state["celsius"], state["watts"]) == (55, 310.12)
    found.begin()
    until(lambda: bool(found._told._samples))
    idle = found.state()
    assert (idle["working"], idle["celsius"]) == (0, 34)
    assert "sm_megahertz" not in idle


def test_reasons_of_work_count_and_those_of_idling_do_not():
    lines = ["1200, 2619, 80, 690, 99, 0x4", "1100, 2619, 87, 650, 99, 0x24", WORK, WORK, "345, 2619, 60, 90, 0, 0x9"]
    samples = [sample for line in lines if (sample := sample_of(line))]
    assert summary(samples) == {
        **{"samples": 5, "working": 4, "sm_megahertz": 1590, "least_sm_megahertz": 1100, "memory_megahertz": 2619},
        **{"celsius": 87, "watts": 690, "throttled": "0x24", "throttled_share": 0.5},
    }
    assert reasons_in_words("0x24") == "limit of power, heat, by the driver"
    assert reasons_in_words("0x404") == "limit of power, 0x400"


@pytest.mark.parametrize(
    ("visible", "asked"), [(None, "--id=0"), ("1,0", "--id=1"), ("GPU-5a", "--id=GPU-5a"), ("", "--id=none")]
)
def test_the_card_that_is_measured_is_asked_and_no_other(box, watched, monkeypatch, visible, asked):
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    watched()
    calls = box.asked.read_text().splitlines()
    assert len(calls) == 2
    assert all(asked in call.split() for call in calls)


def test_a_tool_that_blocks_is_waited_for_no_longer_than_it_takes(box, watched, monkeypatch):
    monkeypatch.setattr(gpu, "PATIENCE", 0.3)
    box.plays("sleep 1000", "sleep 2")
    began = time.monotonic()
    found = watched()
    assert time.monotonic() - began < 2
    assert "told nothing of it within 0." in box.said[0]
    assert found.state()["unknown"].startswith("nvidia-smi told nothing of it within")
    found._end()
    until(lambda: not box.alive())


def test_a_tool_that_dies_is_said_to_be_gone(box, watched):
    box.plays(f"cat {box.line}; exit 7")
    found = watched()
    until(lambda: bool(found._told.why))
    assert found.state()["samples"] == 1
    for _ in range(3):
        found.begin()
        time.sleep(0.05)
        assert found.state()["unknown"] == "nvidia-smi ended with 7"
    (sentence,) = box.said  # once, however often it is asked
    assert "nvidia-smi ended with 7" in sentence
    assert "clocks, temperature and throttling meanwhile are unknown" in sentence


def test_a_lap_on_a_gpu_holds_its_state_and_one_on_a_cpu_does_not(box):
    watch = Watch(gpu=True)
    box.tells("1200, 2619, 88, 690, 99, 0x0000000000000040")
    time.sleep(0.2)
    watch.begin()
    time.sleep(0.3)
    lap = watch.lap()
    assert (lap["gpu"]["throttled"], lap["gpu"]["throttled_share"]) == ("0x40", 1.0)
    assert lap["gpu"]["card"] == SETTINGS
    assert "disturbed" in lap
    assert json.loads(json.dumps(lap, allow_nan=False)) == lap
    box.tells(WORK)
    time.sleep(0.2)
    watch.begin()
    time.sleep(0.2)
    assert "throttled" not in watch.lap()["gpu"]
    assert "gpu" not in Watch(gpu=False).lap()
