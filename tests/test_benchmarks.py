"""Does asv discover what the workloads promise, does an edit change a version, and may a process fork afterwards?

This file needs torch and asv_runner and runs in an interpreter that has them, such as a release's; elsewhere it is skipped
in words (as with pytest.importorskip, but torch is left to the subprocesses, each of which discovers a suite of its own).
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

for _name in ("torch", "numpy", "asv_runner"):
    if importlib.util.find_spec(_name) is None:
        pytest.skip(f"needs torch, NumPy and asv_runner, and there is no {_name}", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("benchmarks", "measure", "workloads")

DISCOVER = """
import json, os, sys
import torch
from asv_runner._aux import update_sys_path
from asv_runner.discovery import disc_benchmarks

def discover(root, torch_version):
    '''Every benchmark of one suite, as asv's own discovery finds it; the suite before is forgotten.'''
    torch.__version__ = torch_version or torch.__version__
    for name in list(sys.modules):
        if name.partition(".")[0] in ("benchmarks", "measure", "workloads"):
            del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if not hasattr(finder, "_package")]
    folder = os.path.join(root, "benchmarks")
    sys.path_importer_cache.clear()
    before = list(sys.path)
    update_sys_path(folder)
    found = {}
    for benchmark in disc_benchmarks(folder):
        instance = type(benchmark.func.__self__)
        found[benchmark.name] = {
            "version": benchmark.version,
            "unit": benchmark.unit,
            "param_names": benchmark.param_names,
            "params": benchmark.params,
            "types": sorted({type(value).__name__ for values in instance.params for value in values}),
        }
    assert sys.modules["workloads"].__file__.startswith(root), sys.modules["workloads"].__file__
    sys.path[:] = before
    return found

print(json.dumps([discover(root, version) for root, version in json.loads(sys.argv[1])]))
"""


def python(code: str, *arguments: str) -> str:
    answer = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


EDITS: dict[str, tuple[str, str, str]] = {
    "a line of the workload": ("workloads/intersection.py", "return width * height", "return height * width"),
    "a comment in the workload": ("workloads/intersection.py", "METRICS =", "# another word\nMETRICS ="),
    "a compiler that it uses": ("workloads/compilers.py", "check_trace=False", "check_trace=True"),
    "the clock": ("measure/clock.py", "WARM_UP_CALLS = 3\n", "WARM_UP_CALLS = 4\n"),
    "the profiler": ("measure/profile.py", "gc.collect()", "gc.collect(0)"),
    "the seed": ("benchmarks/common.py", "SEED = 20240229", "SEED = 20240301"),
}


@pytest.fixture(scope="module")
def suites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What asv discovers in the suite as it is, untouched elsewhere, under another torch, and after each of EDITS."""
    asked = {}
    for name in ("as it is", "another torch", *EDITS):
        folder = tmp_path_factory.mktemp("suite")
        for package in PACKAGES:
            shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
        if name in EDITS:
            file, old, new = EDITS[name]
            text = (folder / file).read_text()
            assert text.count(old) == 1, f"{old!r} is not once in {file}"
            (folder / file).write_text(text.replace(old, new))
        asked[name] = [str(folder), None]
    asked["in place"] = [str(ROOT), None]
    asked["another torch"][1] = "9.9.9+cu999"
    order = sorted(asked, key=lambda name: name == "another torch")  # last, because it stays
    found = json.loads(python(DISCOVER, json.dumps([asked[name] for name in order])))
    return {name: found[i] for i, name in enumerate(order)}


def versions(suite: dict[str, Any]) -> dict[str, str]:
    return {name: benchmark["version"] for name, benchmark in suite.items()}


def changed(suites: dict[str, Any], edit: str) -> set[str]:
    """Names of the benchmarks whose version `edit` changes, without the class: `time_call`."""
    before, after = versions(suites["as it is"]), versions(suites[edit])
    assert before.keys() == after.keys()
    return {name.rpartition(".")[2] for name in before if before[name] != after[name]}


TRACKS = {f"track_{name}" for name in ("peak_memory", "operators", "allocations", "kernels", "fusion_groups")}
EVERY = {"time_call"} | TRACKS


def test_asv_discovers_one_benchmark_for_each_metric_and_nothing_else(suites: dict[str, Any]) -> None:
    assert set(suites["as it is"]) == {f"intersection.Intersection.{metric}" for metric in EVERY}


@pytest.mark.parametrize(
    ("metric", "unit"),
    [("time_call", "seconds"), ("track_peak_memory", "bytes"), ("track_operators", "operators")],
)
def test_benchmark_tells_asv_its_unit(suites: dict[str, Any], metric: str, unit: str) -> None:
    assert suites["as it is"][f"intersection.Intersection.{metric}"]["unit"] == unit


def test_every_benchmark_has_the_parameters_variant_and_size_as_strings(suites: dict[str, Any]) -> None:
    variants = ["eager", "scripted", "traced", "compiled", "in_place", "stacked_eager", "stacked_scripted"]
    for name, benchmark in suites["as it is"].items():
        assert benchmark["param_names"] == ["variant", "size"], name
        assert benchmark["types"] == ["str"], name
        assert benchmark["params"] == [[repr(variant) for variant in variants], ["'small'", "'paper'"]], name


# --- versions


def test_version_is_a_digest_and_differs_between_a_time_and_a_count(suites: dict[str, Any]) -> None:
    found = versions(suites["as it is"])
    assert all(len(version) == 64 and int(version, 16) for version in found.values())
    times = {version for name, version in found.items() if name.endswith("time_call")}
    counts = {version for name, version in found.items() if not name.endswith("time_call")}
    assert len(times) == len(counts) == 1
    assert not times & counts


@pytest.mark.parametrize("other", ["in place", "another torch"])
def test_version_depends_neither_on_the_folder_nor_on_torch(suites: dict[str, Any], other: str) -> None:
    assert changed(suites, other) == set()


@pytest.mark.parametrize(
    ("edit", "metrics"),
    [
        ("a line of the workload", EVERY),
        ("a comment in the workload", EVERY),
        ("a compiler that it uses", EVERY),
        ("the seed", EVERY),
        ("the profiler", TRACKS),
        ("the clock", EVERY),  # it says how often a call is made before anything is measured or counted
    ],
)
def test_edit_changes_the_versions_of_what_it_touches(suites: dict[str, Any], edit: str, metrics: set[str]) -> None:
    assert changed(suites, edit) == metrics


# --- forking


FORK = """
import os, sys
from asv_runner._aux import update_sys_path
from asv_runner.discovery import disc_benchmarks
folder = os.path.abspath("benchmarks")
update_sys_path(folder)
assert len(list(disc_benchmarks(folder))) >= 6
import torch
{before}
child = os.fork()
if not child:
    os._exit(10 + torch.cuda._is_in_bad_fork())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) - 10)
"""


def test_process_forked_after_discovery_can_still_use_cuda() -> None:
    assert python(FORK.format(before="")).split()[-1] == "0"


def test_process_forked_after_cuda_was_asked_could_not() -> None:
    # so that the test above can fail at all
    asked = "torch.cuda.is_available(); bad = hasattr(torch._C, '_cuda_getDeviceCount')"
    said = python(FORK.format(before=f"{asked}\nif not bad: print('no CUDA in this build'); sys.exit()")).strip()
    if said == "no CUDA in this build":
        pytest.skip("this torch is built without CUDA, so no fork can be bad")
    assert said.split()[-1] == "1"


# --- one process


RUN = """
import json, os, sys
from asv_runner._aux import update_sys_path
folder = os.path.abspath("benchmarks")
update_sys_path(folder)
from benchmarks.intersection import Intersection
from benchmarks import common
from asv_runner.benchmarks.mark import SkipNotImplemented
Intersection._workload.sizes["tiny"] = {{"boxes": 50, "others": 7}}
{change}
question = Intersection()
for _ in range(3):
    try:
        question.setup("{variant}", "{size}")
        question.time_call("{variant}", "{size}")
        print("measured", question.track_peak_memory("{variant}", "{size}"))
    except SkipNotImplemented as reason:
        print("skipped:", reason)
    except Exception as error:
        print("failed:", type(error).__name__, error)
"""


def run(
    monkeypatch: pytest.MonkeyPatch, variant: str = "in_place", size: str = "tiny", change: str = "", **variables: str
) -> tuple[list[str], dict[str, Any]]:
    """Three turns of asv's set-up, time and peak memory in a process: what they ended with, and the facts that were said."""
    for name, value in {"SIZES": "tiny", "DEVICE": "cpu", **variables}.items():
        monkeypatch.setenv(f"TORCH_HISTORY_{name}", value)
    lines = python(RUN.format(variant=variant, size=size, change=change)).splitlines()
    facts: dict[str, Any] = {}
    for line in lines:
        if line.startswith("torch-history: "):
            facts.update(json.loads(line.partition(": ")[2]))
    return [line for line in lines if not line.startswith("torch-history: ")], facts


def test_variant_is_built_once_per_process_and_says_what_it_ran_on(monkeypatch: pytest.MonkeyPatch) -> None:
    build = (
        "built = Intersection._workload.variants['in_place']\n"
        "Intersection._workload.variants['in_place'] = lambda arguments: print('built') or built(arguments)"
    )
    said, facts = run(monkeypatch, change=build)
    assert said == ["built", *[f"measured {3 * 50 * 7 * 4}"] * 3]
    assert facts.keys() == {"torch", "python", "threads", "device"}
    assert (facts["python"], facts["threads"], facts["device"]) == (sys.version.split()[0], 1, "cpu")


@pytest.mark.parametrize(
    ("size", "kind", "sentence", "variables"),
    [
        ("small", "not_asked", "size small was not asked for: set TORCH_HISTORY_SIZES=small", {}),
        ("tiny", "unavailable", "TORCH_HISTORY_DEVICE is 'tpu'", {"DEVICE": "tpu"}),
    ],
)
def test_what_cannot_be_measured_is_skipped_with_its_sentence(
    monkeypatch: pytest.MonkeyPatch, size: str, kind: str, sentence: str, variables: dict[str, str]
) -> None:
    said, facts = run(monkeypatch, size=size, **variables)
    assert all(line.startswith(f"skipped: {sentence}") for line in said)
    assert facts[kind].startswith(sentence)


def test_wrong_result_fails_and_is_never_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = "Intersection._workload.variants['in_place'] = lambda arguments: lambda: arguments[0]"
    said, facts = run(monkeypatch, change=wrong)
    assert said == ["failed: WrongResult the result is torch.float32 (50, 4), not float32 (50, 7)"] * 3
    assert not facts.keys() & {"unavailable", "not_asked"}
