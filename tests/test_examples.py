"""Does each file in docs/examples run as the documentation says, on two releases? It installs PyTorch."""

import json
import os
import sys
from pathlib import Path

import pytest

from .processes import ran

pytestmark = pytest.mark.releases

OLD, NEW = "2.14.1", "2.15.0"

METRICS = {
    "training_step": {"time", "cpu_time", "peak_memory", "resident_growth"},
    "import_time": {"process_time", "process_cpu_time", "process_peak_memory"},
    **{"script": {"process_time", "process_cpu_time", "process_peak_memory"}, "data_loader": {"time", "cpu_time"}},
    "compile_time": {"first_call", "second_call", "compile_time", "median_call"},
    "changing_shapes": {"first_call", "second_call", "median_call", "worst_call", "stalls"},
    **{"leak_in_python": {"resident_memory", "resident_growth"}, "leak_in_cpp": {"resident_growth"}},
    "scripted_model": {"time", "peak_memory", "operators", "allocations"},
    **{"data_file": {"time", "peak_memory", "operators", "allocations"}, "threads": {"time", "cpu_time"}},
    "torchvision_model": {"time", "peak_memory", "operators", "allocations"},
}
"""Example -> the metrics that it is to give on both releases."""


def command(*words: str) -> str:
    program = Path(sys.executable).with_name("torch-history")
    return ran(program, *words, timeout=900, env={**os.environ, "COLUMNS": "200"}).stdout


@pytest.mark.parametrize("name", METRICS)
def test_an_example_gives_its_metrics_on_two_releases(root, name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = str(root / "docs" / "examples" / f"{name}.py")
    command("run", "--workload", file, OLD, NEW, "--rounds", "1")
    changes = json.loads(command("compare", "--workload", file, OLD, NEW, "--json"))["changes"]
    given = {one["metric"].replace(" ", "_") for one in changes if None not in (one["old"], one["new"])}
    assert given >= METRICS[name], changes
    for change in changes:
        if change["metric"].replace(" ", "_") == "resident_growth":
            grows = 2**20 if name.startswith("leak_in_") and "leaking" in str(change["parameters"]) else 0
            assert change["new"] == pytest.approx(grows, rel=0.05), change


def test_every_example_is_run(root):
    helpers = {"rows", "train", "transformer_step"}
    assert {path.stem for path in (root / "docs" / "examples").glob("*.py")} == METRICS.keys() | helpers
