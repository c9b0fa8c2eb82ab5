"""Is what a process takes as a whole told right: its memory, a leak and none, its time, and what comes before each call?

Needs torch and NumPy, as tests/test_own.py does.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import measure  # noqa: F401

try:
    import torch  # noqa: F401

    from measure import process, resident, stopwatch
except ImportError as _error:
    pytest.skip(f"needs torch, and {_error}", allow_module_level=True)


def test_a_leak_of_a_megabyte_a_call_is_told() -> None:
    kept = []
    found = resident.measured(lambda: kept.append(b"1" * 2**20))
    assert found["resident_growth"] == pytest.approx(2**20, rel=0.05)
    assert "it has no level" in found["resident_memory"]["unavailable"]


def test_what_does_not_leak_has_a_level() -> None:
    found = resident.measured(lambda: b"1" * 2**20)
    assert found["resident_growth"] == 0
    assert found["resident_memory"] == pytest.approx(resident.resident(), rel=0.1)


def test_no_growth_is_told_of_memory_that_wanders() -> None:
    """A hundred walks up and down, and a hundred that settle after a while, as allocators do."""
    draw = random.Random(1)
    for _ in range(100):
        level, readings = 5e8, []
        for _ in range(26):
            level += draw.choice([-1, 1]) * draw.randrange(0, 2**21)
            readings.append(level)
        assert resident.growth(readings) == 0
        settled = [5e8 + 2**24 * (1 - 0.5 ** (i / 2)) // 4096 * 4096 + draw.choice([0, 4096]) for i in range(26)]
        assert resident.growth(settled) == 0


def test_growth_is_the_slope() -> None:
    draw = random.Random(2)
    readings = [5e8 + i * 3e6 + draw.randrange(-200_000, 200_000) for i in range(26)]
    assert resident.growth(readings) == pytest.approx(3e6, rel=0.02)


def test_what_comes_before_a_call_is_left_out() -> None:
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


def test_processor_time_leaves_waiting_out() -> None:
    def busy() -> None:
        until = time.perf_counter() + 0.002
        while time.perf_counter() < until:
            pass

    assert min(stopwatch.cpu_samples(lambda: time.sleep(0.005), stopwatch.nothing)) < 0.001
    assert min(stopwatch.cpu_samples(busy, stopwatch.nothing)) > 0.0005


def test_a_whole_process_is_measured(tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("yes")
    code = "import time; open('here.txt').read(); block = bytearray(10**8); time.sleep(0.2)"
    found = process.measured(["python", "-c", code], str(tmp_path))
    assert min(found["process_time"]) >= 0.2
    assert max(found["process_cpu_time"]) < min(found["process_time"])
    assert 1e8 < found["process_peak_memory"] < 3e8


def test_a_process_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(process.CommandFailed, match="status 3: gone wrong"):
        process.measured([sys.executable, "-c", "import sys; print('gone wrong'); sys.exit(3)"], str(tmp_path))


def test_a_process_ends_with_the_case_that_started_it(tmp_path: Path) -> None:
    code = "import os, time; open('number', 'w').write(str(os.getpid())); time.sleep(600)"
    case = os.fork()
    if case == 0:
        process.measured(["python", "-c", code], str(tmp_path))
        os._exit(0)
    number = tmp_path / "number"
    wait_until(lambda: number.exists() and number.read_text())
    os.kill(case, signal.SIGKILL)
    os.waitpid(case, 0)
    wait_until(lambda: not Path("/proc", number.read_text()).exists())


def wait_until(true: Callable[[], object]) -> None:
    ends = time.monotonic() + 20
    while not true():
        assert time.monotonic() < ends, "nothing happened within 20 s"
        time.sleep(0.05)


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(process.CommandFailed, match="status 127: no-such-program cannot be started"):
        process.measured(["no-such-program"], str(tmp_path))
