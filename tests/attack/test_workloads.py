"""Does a file of one's own that misbehaves lose only its own case? Runs on two installed releases."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.result_files import cases
from tests.test_releases import command, environments, suite  # noqa: F401
from torch_history.store.launches import Case
from torch_history.system.scratch import is_own

pytestmark = pytest.mark.releases

SECONDS = 4
"""After which a case is ended here; five minutes otherwise."""

MISBEHAVING = """
import ctypes, json, os, sys, time
import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))

def inputs():
    return torch.from_numpy(np.arange(1000, dtype="float32"))

def endless(x):
    while True:
        pass

def hungry(x):
    return torch.ones(25_000_000_000) + x[0]

def forks(x):
    for _ in range(50):
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
        with open(os.path.join(HERE, "children"), "a") as file:
            file.write(f"{child}\\n")
    os._exit(7)

def loud(x):
    for _ in range(100):
        sys.stdout.write("x" * 1_000_000)
    sys.stdout.flush()
    os._exit(9)

def deletes(x):
    os.path.exists(__file__) and os.remove(__file__)
    raise ValueError("it is gone")

def speaks(x):
    for stream in (1, 2):
        os.write(stream, b'torch-history: {"a": \\nFor parameters: good, only\\n')
        os.write(stream, b'torch-history: {"found": {"time": [1e-9]}}\\n')
    return x + 1

def crashes(x):
    ctypes.string_at(0)

functions = {
    "good": lambda x: x + 1,
    "endless": endless, "hungry": hungry, "forks": forks, "loud": loud, "speaks": speaks, "crashes": crashes,
    "exits 0": lambda x: os._exit(0), "exits 3": lambda x: os._exit(3),
    "good as well": lambda x: 1 + x,
    "deletes": deletes,
}
"""

REASONS = {
    **{"endless": r"timed out \(timeout 4", "hungry": r"allocate|memory|signal 9", "forks": r"exit status 7"},
    **{"loud": r"exit status 9", "crashes": r"signal 11", "exits 0": r"ended without an answer"},
    **{"exits 3": r"exit status 3", "deletes": r"ValueError: it is gone"},
}
"""Function -> what its own reason says; all others have numbers."""


def test_a_misbehaving_workload_loses_only_its_own_case(command, suite, tmp_path, attacks):  # noqa: F811
    conf = json.loads((suite / "asv.conf.json").read_text())
    (suite / "asv.conf.json").write_text(json.dumps({**conf, "default_benchmark_timeout": SECONDS}))
    mine = tmp_path / "mine" / "misbehaving.py"
    mine.parent.mkdir()
    mine.write_text(MISBEHAVING, encoding="utf-8")
    command("torch-history", "run", "--workload", str(mine), "2.0.1", "2.15.0", "--only", "counts", "--rounds", "1")
    attack = attacks("workloads")
    for release in ("v2.0.1", "v2.15.0"):
        (results,) = (suite / ".cache" / "torch-history").glob("misbehaving-*/results")
        stored = [case for _, case in cases(results, "test", release)]
        for name in ("good", "good as well", "speaks", *REASONS):
            with attack(f"{name} on {release}"):
                found = [case for case in stored if case.parameters[0] == repr(name)]
                assert found, "nothing of it is stored"
                assert all(right(name, case) for case in found), found
    with attack("what a case forked"):
        children = [int(line) for line in (mine.parent / "children").read_text().split()]
        assert len(children) >= 100
        assert not [child for child in children if Path(f"/proc/{child}").exists()]
    with attack("what is left in the temporary folder"):
        # folders of others, at work now, are locked
        left = [path for path in Path(os.environ.get("TMPDIR", "/tmp")).glob("torch-history-*") if is_own(path)]
        assert not [path for path in left if not any(path.iterdir())]


def right(name: str, case: Case) -> bool:
    """Whether the case has a number, or its own reason for having none."""
    if name in REASONS:
        return re.search(REASONS[name], case.failed or case.unmeasured) is not None
    return case.value is not None and case.value >= 0
