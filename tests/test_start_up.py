"""Is what a start takes told right? A stand-in for torch waits, works and takes memory by amounts that are known."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import measure  # noqa: F401
from measure import start_up

from .processes import ran

MB = 2**20

TICK = 0.02  # seconds by which two clocks may differ: that of processes which still run tells hundredths

TORCH = """
import time
time.sleep(0.1)
__version__ = "1.13.1"
_block = bytearray(50 * 2**20)

class ones:
    def __init__(self, *shape):
        self.shape = shape[0] if isinstance(shape[0], tuple) else shape
        time.sleep(0.02)
    def __matmul__(self, other):
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
        return self
    def sum(self):
        return self.shape[0] ** 3
"""

WORKLOAD = """
import os, subprocess, sys, time
from . import Unavailable, WrongResult

def busy(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass

def worked(look):
    busy(0.2)  # preparing is not measured
    return lambda: (busy(0.1), None)

def waited(look):
    return lambda: (time.sleep(0.1), None)

WORK = "import time\\nwhile time.process_time() < 0.2: pass\\nprint(1, flush=True)\\n"

def by_child_that_ended(look):
    return lambda: (subprocess.run([sys.executable, "-c", WORK]), None)

def by_child_that_runs(look):
    def step():
        child = subprocess.Popen([sys.executable, "-c", WORK + "time.sleep(2)"], stdout=subprocess.PIPE)
        child.stdout.readline()
        return child, None
    return step

def took(look):
    return lambda: (globals().update(kept=bytearray(b"1") * (80 * 2**20)), None)

def shared(look):
    globals().update(kept=bytearray(b"1") * (80 * 2**20))
    def step():
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.write(writer, repr(look()).encode())
            os._exit(0)
        os.wait()
        return None, eval(os.read(reader, 1000))
    return step

def lacking(look):
    raise Unavailable("needs torch >= 9")

def wrong(look):
    return lambda: ("wrong", None)

def check(variant, result):
    if result == "wrong":
        raise WrongResult("the result is wrong")

variants = {name: of for name, of in list(globals().items()) if callable(of)}
"""


@pytest.fixture
def suite(root, tmp_path) -> Path:
    """What a step needs, with a stand-in for torch and a workload of steps that are known."""
    folder = tmp_path / "suite"
    for name in ("measure/start_up.py", "workloads/__init__.py", "workloads/start_up.py", "workloads/compilers.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, folder / name)
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text(TORCH)
    (folder / "torch" / "multiprocessing.py").write_text("from multiprocessing import *\n")
    (folder / "workloads" / "known.py").write_text(WORKLOAD)
    return folder


def ended(suite: Path, workload: str, variant: str, code: int = 1) -> str:
    """What a step says on the way to its end."""
    process = [suite / "measure" / "start_up.py", workload, variant, suite / "answer.json"]
    return ran(sys.executable, "-I", *process, code=code).stderr


def told(suite: Path, workload: str, variant: str) -> dict[str, Any]:
    ended(suite, workload, variant, code=0)
    return dict(json.loads((suite / "answer.json").read_text()))


def test_only_the_step_is_timed(suite):
    worked, waited = told(suite, "known", "worked"), told(suite, "known", "waited")
    assert 0.1 <= worked["busy"] <= worked["seconds"] + TICK
    assert worked["seconds"] >= 0.1
    assert waited["seconds"] >= 0.1
    assert waited["busy"] <= waited["seconds"] - 0.1 + TICK


@pytest.mark.parametrize("variant", ["by_child_that_ended", "by_child_that_runs"])
def test_what_a_step_starts_is_its_work(suite, variant):
    assert told(suite, "known", variant)["busy"] >= 0.19


def test_memory_is_that_of_the_process_and_of_a_worker_what_it_does_not_share(suite):
    least, took, shared = (told(suite, "known", variant) for variant in ("waited", "took", "shared"))
    assert took["memory"] - least["memory"] == pytest.approx(80 * MB, rel=0.02)
    assert took["resident"] - least["resident"] == pytest.approx(80 * MB, rel=0.02)
    assert shared["memory"] < 5 * MB
    assert shared["resident"] > 80 * MB


def test_a_step_that_cannot_be_made_says_why_and_a_wrong_one_fails(suite):
    assert told(suite, "known", "lacking") == {"unavailable": "needs torch >= 9"}
    assert ended(suite, "known", "wrong").endswith("WrongResult: the result is wrong\n")


def test_the_variants_hold_what_they_are_named_after(suite):
    """The stand-in's import waits for 0.1 s and takes 50 MB; its product waits for 0.02 and works for 0.05."""
    of = {name: told(suite, "start_up", name) for name in ("import_torch", "first_operator")}
    of |= {name: told(suite, "start_up", name) for name in ("forked_worker", "spawned_worker")}
    assert of["import_torch"]["seconds"] >= 0.1
    assert of["import_torch"]["busy"] <= of["import_torch"]["seconds"] - 0.1 + TICK
    assert of["import_torch"]["memory"] > 50 * MB
    assert of["first_operator"]["seconds"] >= 0.07
    assert of["first_operator"]["busy"] >= 0.05
    assert of["forked_worker"]["busy"] >= 0.05
    assert of["forked_worker"]["memory"] < 10 * MB
    assert of["spawned_worker"]["seconds"] >= 0.17
    assert of["spawned_worker"]["memory"] > 50 * MB
    assert told(suite, "start_up", "first_compile") == {"unavailable": "torch.compile needs torch >= 2.0"}


def test_a_torch_that_computes_wrongly_fails(suite):
    text = (suite / "torch" / "__init__.py").read_text()
    (suite / "torch" / "__init__.py").write_text(text.replace("** 3", "** 2"))
    for variant in ("import_torch", "first_operator", "forked_worker"):
        assert "WrongResult: the result is 4096" in ended(suite, "start_up", variant)


def test_what_was_imported_before_is_refused(suite):
    (suite / "workloads" / "__init__.py").open("a").write("\nimport torch\n")
    assert "torch was imported before the import that is measured" in ended(suite, "start_up", "import_torch")


def test_the_first_process_of_a_launch_is_not_counted(monkeypatch):
    of = range(start_up.PROCESSES)
    runs = iter([{"seconds": 9.0 - i, "busy": 8.0 - i, "memory": 70 + i, "resident": 90 + i} for i in of])
    monkeypatch.setattr(start_up, "_in_a_process", lambda workload, variant: next(runs))
    found = start_up.measured("start_up", "import_torch")
    assert found["start_time"] == [9.0 - i for i in range(1, start_up.PROCESSES)]
    assert found["start_cpu_time"] == [8.0 - i for i in range(1, start_up.PROCESSES)]
    assert (found["start_memory"], found["start_resident"]) == (71, 91)
