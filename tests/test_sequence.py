"""Are the first calls of a process timed one by one, summed up rightly, and with nothing kept from before?"""

import math
import os
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from .torch_here import torch

# isort: split

from measure import sequence

VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def test_summary_of_a_sequence_that_stalls_at_the_second_and_a_late_call():
    seconds = [9.0, 1.0, *[0.5] * 8, *[0.02] * 20, 0.3, *[0.02] * 20]
    assert sequence.summary(seconds) == {
        **{"first_call": 9.0, "second_call": 1.0, "median_call": 0.02, "worst_call": 1.0, "worst_over_median": 50.0},
        "stalls": 10,
    }


def test_sequence_that_never_settles_is_refused():
    assert sequence.summary([1.0] * (sequence.SETTLED + 1))["median_call"] == 1.0
    with pytest.raises(ValueError, match="10 calls has no settled call"):
        sequence.summary([1.0] * sequence.SETTLED)


def test_run_waits_for_the_device_at_both_ends_of_each_call(monkeypatch):
    done: list = []

    def tick() -> float:
        done.append("clock")
        return float(len(done))

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: done.append("wait"))
    monkeypatch.setattr(sequence, "time", SimpleNamespace(perf_counter=tick))
    seconds, _ = sequence.run(done.append, ["a", "b"], "cuda")
    assert done == ["wait", "clock", "a", "wait", "clock", "wait", "clock", "b", "wait", "clock"]
    assert seconds == [3.0, 3.0]


def test_caches_are_empty_within_and_as_before_afterwards(monkeypatch):
    monkeypatch.setenv(VARIABLES[0], "before")
    monkeypatch.delenv(VARIABLES[1], raising=False)
    headers = SimpleNamespace(_HEADER_DIR="built/before", _HEADER_LOCK_DIR="built/before/locks")
    monkeypatch.setitem(sys.modules, "torch._inductor.codecache", headers)
    temporary = tempfile.gettempdir()

    def failing() -> None:
        with sequence.empty_caches() as folder:
            assert os.listdir(folder) == []
            inside = [os.environ[name] for name in VARIABLES] + list(vars(headers).values()) + [tempfile.gettempdir()]
            assert all(Path(folder) in [Path(path), *Path(path).parents] for path in inside)
            Path(folder, "kept").touch()
            os.environ["SET_MEANWHILE"] = folder
            found.append(folder)
            raise KeyError("a variant that fails")

    found: list[str] = []
    with pytest.raises(KeyError):
        failing()
    assert not os.path.exists(found[0])
    assert [os.environ.get(name) for name in (*VARIABLES, "SET_MEANWHILE")] == ["before", None, None]
    assert vars(headers) == {"_HEADER_DIR": "built/before", "_HEADER_LOCK_DIR": "built/before/locks"}
    assert tempfile.gettempdir() == temporary


def test_every_sequence_has_a_process_of_its_own_and_leaves_this_one_as_it_was(monkeypatch):
    monkeypatch.setattr(sequence, "SECONDS_OF_PROCESSES", math.inf)
    kept: list[int] = []

    def calls() -> dict:
        kept.append(1)
        return {"process": os.getpid(), "calls": len(kept)}

    found = sequence.in_fresh_processes(calls, "cpu")
    assert len({each["process"] for each in found} | {os.getpid()}) == sequence.MOST_PROCESSES + 1
    assert {each["calls"] for each in found} == {1}
    assert kept == []


def test_what_goes_wrong_there_goes_wrong_here():
    def wrong() -> dict:
        raise ValueError("no such layer")

    def ended() -> dict:
        os.kill(os.getpid(), 9)
        return {}

    with pytest.raises(ValueError, match="no such layer"):
        sequence.in_fresh_processes(wrong, "cpu")
    with pytest.raises(RuntimeError, match="ended with status -9"):
        sequence.in_fresh_processes(ended, "cpu")


def test_a_process_that_has_started_a_gpu_is_not_forked():
    assert sequence.in_fresh_processes(lambda: {"process": os.getpid()}, "cuda") == [{"process": os.getpid()}]
