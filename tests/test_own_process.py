"""Is what a process takes as a whole told right: its memory, a leak and none, its time, and what comes before each call?"""

import collections
import gc
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from .processes import until
from .torch_here import torch

# isort: split

from measure import process, resident, stopwatch


def test_a_leak_of_a_megabyte_a_call_is_told():
    kept = []
    found = resident.measured(lambda: kept.append(b"1" * 2**20))
    assert found["resident_growth"]["value"] == pytest.approx(2**20, rel=0.05)
    assert "it has no level" in found["resident_memory"]["unavailable"]


def wandering(draw: random.Random) -> list[float]:
    """Memory that goes up and down by up to 2 MiB."""
    level, readings = 5e8, []
    for _ in range(26):
        level += draw.choice([-1, 1]) * draw.randrange(0, 2**21)
        readings.append(level)
    return readings


def settling(draw: random.Random) -> list[float]:
    """Memory that rises by 16 MiB, less and less, as allocators take it."""
    return [5e8 + 2**24 * (1 - 0.5 ** (i / 2)) // 4096 * 4096 + draw.choice([0, 4096]) for i in range(26)]


def test_no_growth_is_told_of_memory_that_wanders_or_settles():
    draw = random.Random(1)
    for _ in range(100):
        assert resident.growth(wandering(draw))[0] == 0
        assert resident.growth(settling(draw))[0] == 0


@pytest.mark.parametrize("drawn", [wandering, settling])
def test_a_growth_that_is_said_to_be_seen_is_seen(drawn):
    """On top of what memory does anyway."""
    draw = random.Random(1)
    for _ in range(100):
        readings = drawn(draw)
        _, seen_from = resident.growth(readings)
        assert resident.growth([held + i * 1.001 * seen_from for i, held in enumerate(readings)])[0] > 0


@pytest.fixture
def hasty(monkeypatch) -> Iterator[None]:
    """Readings in a tenth of their time. As where a release is measured, collecting leaves out what importing made."""
    monkeypatch.setattr(resident, "SECONDS", resident.SECONDS / 10)
    monkeypatch.setattr(resident, "MOST_SECONDS", resident.MOST_SECONDS / 10)
    monkeypatch.setattr(resident, "CALLS", resident.CALLS // 10)
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Object:
    """What Python's garbage collector tracks, and 150 bytes."""

    def __init__(self) -> None:
        self.data = bytes(150)


KEPT: list[object] = []
EXACT = ("kept_objects", "kept_blocks", "kept_bytes")


def objects() -> list[Object]:
    return [Object() for _ in range(20)]


def test_what_a_call_leaves_is_counted_to_the_object_where_its_memory_does_not_move(hasty):
    """As 21 objects and 3,150 bytes: the list and the twenty that it holds, in memory that lay free."""
    found = resident.measured(lambda: KEPT.append(objects()))
    assert found["kept_objects"]["value"] == 21
    assert found["kept_blocks"]["value"] >= 40
    assert found["kept_objects"]["detectable"] == 1


RING = collections.deque(maxlen=5)  # type: ignore[var-annotated]


@pytest.mark.parametrize("quiet", [lambda: objects(), lambda: torch.ones(1000) + 1, lambda: RING.append(objects())])
def test_a_quiet_function_leaves_nothing_and_what_would_be_seen_is_said(quiet, hasty):
    for _ in range(10):
        found = resident.measured(quiet)
        assert [found[name]["value"] for name in EXACT] == [0, 0, 0]
        assert found["resident_growth"]["value"] == 0
        assert found["kept_objects"]["detectable"] == 1
        assert found["resident_growth"]["detectable"] < 2**20


@pytest.mark.parametrize("library", [SimpleNamespace(), SimpleNamespace(mallinfo2=lambda: resident._Mallinfo())])
def test_an_allocator_that_is_not_counted_has_no_bytes_rather_than_none(library, hasty, monkeypatch):
    """A C library that tells nothing, and one from which the memory does not come."""
    monkeypatch.setattr(resident.ctypes, "CDLL", lambda name: library)
    assert resident.measured(lambda: None)["kept_bytes"] == {"unavailable": resident.NO_COUNT}


def test_what_each_call_leaves_on_a_device_is_counted(hasty, monkeypatch):
    """A workspace of the first calls is not what each of them leaves."""
    calls: list[int] = []
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 10**6 + 4096 * len(calls))
    assert resident.on_device(lambda: calls.append(1)) == {"kept_on_device": 4096}
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 10**6 * min(len(calls), 36))
    assert resident.on_device(lambda: calls.append(1)) == {"kept_on_device": 0}


def test_what_comes_before_a_call_is_left_out():
    calls = []

    def before() -> None:
        time.sleep(0.01)
        calls.append("before")

    def call() -> None:
        time.sleep(0.002)
        calls.append("call")

    assert 0.002 <= min(stopwatch.samples(call, before, "cpu")) < 0.008
    assert calls[::2] == ["before"] * (len(calls) // 2)
    assert calls[1::2] == ["call"] * (len(calls) // 2)


def test_a_whole_process_is_measured(tmp_path):
    (tmp_path / "here.txt").write_text("yes")
    code = "import time; open('here.txt').read(); block = bytearray(10**8); time.sleep(0.2)"
    found = process.measured(["python", "-c", code], str(tmp_path))
    assert min(found["process_time"]) >= 0.2
    assert max(found["process_cpu_time"]) < min(found["process_time"])
    assert 1e8 < found["process_peak_memory"] < 3e8


def test_a_process_that_fails_says_why(tmp_path):
    with pytest.raises(process.CommandFailed, match="status 3: gone wrong"):
        process.measured([sys.executable, "-c", "import sys; print('gone wrong'); sys.exit(3)"], str(tmp_path))


def test_a_process_ends_with_the_case_that_started_it(tmp_path):
    code = "import os, time; open('number', 'w').write(str(os.getpid())); time.sleep(600)"
    case = os.fork()
    if case == 0:
        process.measured(["python", "-c", code], str(tmp_path))
        os._exit(0)
    number = tmp_path / "number"
    until(lambda: number.exists() and number.read_text())
    os.kill(case, signal.SIGKILL)
    os.waitpid(case, 0)
    until(lambda: not Path("/proc", number.read_text()).exists())
