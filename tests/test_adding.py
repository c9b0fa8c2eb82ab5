"""Is a metric one row and the line that measures it, and a question its workload and two lines? Both are added to a copy of
the checkout, where nothing else is touched, and then measured, checked, listed, published and compared."""

import json
import os
import shutil
import sys
from pathlib import Path

from .processes import ran, torch_history
from .result_files import benchmark, launch_line, write_benchmarks, write_machine, write_release
from .test_site import read_lane

ROW = '    _count("operators_and_kernels", "operators", everywhere=True),\n'
LINE = '    found["operators_and_kernels"] = counts.operators + counts.kernels\n'
EDITS = {
    "contract/metrics.py": ('    _recorded("peak_allocated", "bytes"),\n', ROW),
    "benchmarks/common.py": ('    if on != "cuda":\n        del found["kernels"]', LINE),
}
"""File -> the lines that something is added before, and what."""

WORKLOAD = '''"""Does adding in place save memory?"""

import torch

from . import WrongResult

METRICS = ("time", "peak_memory", "operators")
sizes = {"small": 1000}

def inputs(size, device, seed):
    return (torch.ones(sizes[size], device=device),)

def check(arguments, result):
    if result.sum().item() != 2 * len(arguments[0]):
        raise WrongResult("the sum is wrong")

variants = {
    "apart": lambda arguments: lambda: arguments[0] + 1,
    "twice": lambda arguments: lambda: arguments[0] * 2,
}
'''
QUESTION = '''from workloads import addition

from .common import _Question


class Addition(_Question, workload=addition):
    """Variants x sizes."""
'''
OLD, NEW = "v2.14.1", "v2.15.0"
METRIC = "operators_and_kernels"
LANE = "release-py3.11"


def write_results(copy: Path, versions: dict[str, str]) -> None:
    """What two releases would store of the questions batching and addition, as `versions` lists their benchmarks."""
    params = {"batching": [["'vstack_rows'"], ["'64 x 128'"]], "addition": [["'apart'"], ["'small'"]]}
    listed = {
        name: benchmark(name, version, params[question], "operators")
        for name, version in versions.items()
        if (question := name.partition(".")[0]) in params
    }
    write_benchmarks(copy / "results", listed)
    write_machine(copy / "results" / "test")
    for release in (OLD, NEW):
        lines = []
        for name, of in listed.items():
            number = {"samples": [1e-3]} if name.endswith("_time") else {"value": 1000}
            case = {"parameters": [each for (each,) in of["params"]], **number}
            lines.append(launch_line(release, name, of["version"], [case], LANE))
        write_release(copy / "results" / "test", release, LANE, lines, listed, {name: [1000.0] for name in listed})


def test_what_was_added_is_checked_listed_published_and_compared(root, tmp_path):
    copy = tmp_path / "checkout"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "env", "html", "results"))
    for name, (before, added) in EDITS.items():
        text = (copy / name).read_text()
        assert text.count(before) == 1
        (copy / name).write_text(text.replace(before, added + before))
    (copy / "workloads" / "addition.py").write_text(WORKLOAD)
    (copy / "benchmarks" / "addition.py").write_text(QUESTION)
    env = {**os.environ, "HOME": str(copy), "PYTHONPATH": str(copy), "TORCH_HISTORY_MACHINE": "test"}
    here = {"cwd": copy, "env": env}
    code = "import json; from torch_history.store.sources import here; print(json.dumps(here()))"
    write_results(copy, json.loads(ran(sys.executable, "-c", code, **here).stdout))

    compared = torch_history("compare", OLD, NEW, "--machine", "test", "--lane", LANE, "--json", **here).stdout
    wanted = {("batching", METRIC), ("addition", METRIC), ("addition", "peak_memory")}
    assert wanted <= {(row["question"], row["metric"]) for row in json.loads(compared)["changes"]}
    assert "addition.Addition" not in torch_history("check", **here).stdout
    torch_history("publish", **here)
    index = json.loads((copy / "html" / "data" / "index.json").read_text())
    assert METRIC in index["metrics"]
    (lane,) = index["lanes"]
    series = read_lane(copy / "html" / "data", lane["id"])["series"]
    assert wanted <= {(row["question"], row["metric"]) for row in series}
    listed = json.loads((copy / "html" / "asv" / "index.json").read_text())["benchmarks"]
    assert {f"batching.Batching.track_{METRIC}", f"addition.Addition.track_{METRIC}"} <= set(listed)
