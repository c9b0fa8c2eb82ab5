"""Does asv discover what the workloads promise, does an edit change a version, and may a process fork afterwards? Asked
of subprocesses, which discover a suite as asv does. Needs torch, NumPy and asv_runner."""

import json
import shutil
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from contract.metrics import HAS_RECORDED, METRICS, RECORDED

from .processes import ROOT, ran
from .torch_here import torch  # noqa: F401  without which all here is skipped

PACKAGES = ("benchmarks", "contract", "measure", "recorder", "workloads")


def python(code: str, *arguments: str) -> str:
    answer = ran(sys.executable, "-c", code, *arguments, cwd=ROOT)
    return answer.stdout


DISCOVER = """
import json, os, sys
import torch
from asv_runner._aux import update_sys_path
from asv_runner.discovery import disc_benchmarks

def discover(root, torch_version):
    '''Every benchmark of one suite, as asv's own discovery finds it; the suite before is forgotten.'''
    torch.__version__ = torch_version or torch.__version__
    for name in list(sys.modules):
        if name.partition(".")[0] in ("benchmarks", "contract", "measure", "recorder", "workloads"):
            del sys.modules[name]
    folder = os.path.join(root, "benchmarks")
    before = list(sys.path), list(sys.meta_path)
    update_sys_path(folder)
    found = {}
    for benchmark in disc_benchmarks(folder):
        found[benchmark.name] = {
            "version": benchmark.version,
            "unit": benchmark.unit,
            "param_names": benchmark.param_names,
            "params": benchmark.params,
            "metrics": list(type(benchmark.func.__self__)._workload.METRICS),
        }
    assert sys.modules["workloads"].__file__.startswith(root), sys.modules["workloads"].__file__
    sys.path[:], sys.meta_path[:] = before
    return found

print(json.dumps([discover(root, version) for root, version in json.loads(sys.argv[1])]))
"""

EDITS: dict[str, tuple[str, str, str]] = {
    "a line of the workload": ("workloads/intersection.py", "return width * height", "return height * width"),
    "a comment in the workload": ("workloads/intersection.py", "METRICS =", "# another word\nMETRICS ="),
    "a compiler that it uses": ("workloads/compilers.py", "check_trace=False", "check_trace=True"),
    "the clock": ("measure/clock.py", "MOST_SAMPLES = 5\n", "MOST_SAMPLES = 6\n"),
    "the profiler": ("measure/profile.py", "gc.collect()", "gc.collect(0)"),
    "the seed": ("benchmarks/common.py", "SEED = 20240229", "SEED = 20240301"),
}
"""What is edited -> the file, and the text that is replaced by another."""


@pytest.fixture(scope="module")
def suites(tmp_path_factory) -> dict[str, dict[str, Any]]:
    """What asv discovers in the suite in place, in a copy, in a copy under another torch, and after each of EDITS."""
    asked: dict[str, tuple[str, str | None]] = {"in place": (str(ROOT), None)}
    for name in ("a copy", *EDITS, "another torch"):  # another torch last, because it stays
        folder = tmp_path_factory.mktemp("suite")
        for package in PACKAGES:
            shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
        if name in EDITS:
            file, old, new = EDITS[name]
            text = (folder / file).read_text()
            assert text.count(old) == 1, f"{old!r} is not once in {file}"
            (folder / file).write_text(text.replace(old, new))
        asked[name] = (str(folder), "9.9.9+cu999" if name == "another torch" else None)
    found = json.loads(python(DISCOVER, json.dumps(list(asked.values()))))
    return {name: found[i] for i, name in enumerate(asked)}


def test_asv_discovers_one_benchmark_for_each_metric_and_nothing_else(suites):
    promised = set()
    for name, benchmark in suites["in place"].items():
        has_calls = {METRICS[metric].measured for metric in benchmark["metrics"]} <= HAS_RECORDED
        metrics = (*benchmark["metrics"], *(RECORDED if has_calls else ()))
        promised |= {f"{name.rpartition('.')[0]}.track_{metric}" for metric in metrics}
    assert set(suites["in place"]) == promised
    assert {f"intersection.Intersection.{metric}" for metric in ("track_time", "track_peak_memory")} <= promised


def changed(suites: dict[str, Any], edit: str) -> set[str]:
    before, after = ({name: b["version"] for name, b in suites[suite].items()} for suite in ("in place", edit))
    assert before.keys() == after.keys()
    return {name for name in before if before[name] != after[name]}


@pytest.mark.parametrize("other", ["a copy", "another torch"])
def test_version_depends_neither_on_the_folder_nor_on_torch(suites, other):
    assert changed(suites, other) == set()


@pytest.mark.parametrize("edit", EDITS)
def test_edit_changes_the_versions_of_what_it_measures_and_no_others(suites, edit):
    found = changed(suites, edit)
    units = {suites["in place"][name]["unit"] for name in found}
    if edit == "the clock":
        assert "intersection.Intersection.track_time" in found
        assert units == {"seconds"}
    elif edit == "the profiler":
        assert "intersection.Intersection.track_peak_memory" in found
        assert not units & {"seconds", "ratio"}
    elif edit == "the seed":
        assert found == set(suites["in place"])
    else:
        assert found >= {name for name in suites["in place"] if name.startswith("intersection.")}


SERVE = """
import json, os, sys, tempfile
channel = tempfile.NamedTemporaryFile()
os.environ["TORCH_HISTORY_CHANNEL"] = channel.name
from asv_runner._aux import update_sys_path
from asv_runner.discovery import disc_benchmarks
folder = os.path.abspath("benchmarks")
update_sys_path(folder)
assert len(list(disc_benchmarks(folder))) >= 6
assert "TORCH_HISTORY_CHANNEL" not in os.environ
import torch
from asv_runner.benchmarks.mark import SkipNotImplemented
from benchmarks import common
from benchmarks.intersection import Intersection
from workloads import intersection

def turns(size, metrics):
    question = Intersection()
    for metric in metrics:
        try:
            print(metric, getattr(question, metric)("in_place", size))
        except SkipNotImplemented as reason:
            print("skipped:", reason)
        except Exception as error:
            print("failed:", type(error).__name__, error)

def forked(code, variables):
    '''What a child that is forked from here, as by asv's server, prints while it runs `code`.'''
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if not child:
            status = 1
            try:
                os.dup2(said.fileno(), 1)
                os.environ.update(variables)
                for size in ("tinier", "tiniest", "minute", "one", "two", "three", "four", "five", "six", "seven"):
                    intersection.sizes[size] = {"boxes": 50, "others": 7}
                exec(code, globals())
                sys.stdout.flush()
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        said.seek(0)
        told = ["torch-history: " + json.dumps(json.loads(line)["facts"]) for line in channel if line.strip()]
        return told + said.read().splitlines()

print(json.dumps([forked(code, variables) for code, variables in json.loads(sys.argv[1])]))
"""

BUILDS = """
built = intersection.variants["in_place"]
intersection.variants["in_place"] = lambda arguments: print("built") or built(arguments)
"""
TIMES = """
timed = common.clock.samples
common.clock.samples = lambda *arguments: print("timed") or [0.25, 0.5]
"""
PROFILES = """
profiled = common.profile.profile
common.profile.profile = lambda *arguments: print("profiled") or profiled(*arguments)
"""
WRONG = 'intersection.variants["in_place"] = lambda arguments: lambda: arguments[0]'

OLD_GPU = """
torch.cuda.is_available = lambda: True
torch.cuda.get_device_capability = lambda: (6, 1)
torch.cuda.init = lambda: None
torch._C._cuda_getArchFlags = lambda: "sm_60 sm_70"
try:
    Intersection().track_peak_memory("compiled", "one")
except SkipNotImplemented as reason:
    print("skipped:", reason)
"""

NEVER_STARTS = """
torch.cuda.is_available = torch.cuda.init = lambda: print("CUDA was started")
from benchmarks.start_up import StartUp
try:
    StartUp().track_start_time("import_torch", "files cached")
except SkipNotImplemented as reason:
    print("skipped:", reason)
"""

NAMES = """
from benchmarks.products import Products
from workloads import products
products.sizes.clear()
products.sizes["even"] = {"left": (3, 2), "right": (2, 3)}
try:
    print(Products().track_allocations("float32", "even"))
except SkipNotImplemented as reason:
    print("skipped:", reason)
"""

CHILDREN: dict[str, tuple[str, dict[str, str]]] = {
    "bad fork": ("print(torch.cuda._is_in_bad_fork())", {}),
    "a fork after CUDA was asked": (
        "torch.cuda.is_available()\nif not (child := os.fork()):\n"
        "    print(torch.cuda._is_in_bad_fork() == hasattr(torch._C, '_cuda_getDeviceCount'))\n"
        "    sys.stdout.flush()\n    os._exit(0)\nos.waitpid(child, 0)",
        {},
    ),
    "first metric": (f"{BUILDS}{TIMES}{PROFILES}\nturns('tinier', ['track_peak_memory'])", {}),
    "other metrics": (f"{BUILDS}{TIMES}{PROFILES}\nturns('tinier', ['track_allocations', 'track_time'])", {}),
    "second time": (f"{BUILDS}{TIMES}{PROFILES}\nturns('tinier', ['track_time', 'track_allocations'])", {}),
    "times alone": (f"{TIMES}{PROFILES}\nturns('minute', ['track_time'])", {"TORCH_HISTORY_ONLY": "times"}),
    "counts alone": (
        f"{TIMES}{PROFILES}\nturns('four', ['track_operators', 'track_time'])",
        {"TORCH_HISTORY_ONLY": "counts"},
    ),
    "killed": (
        "intersection.variants['in_place'] = lambda arguments: os._exit(0)\nturns('tiniest', ['track_time'])",
        {},
    ),
    "after it": ("turns('tiniest', ['track_operators'])", {}),
    "size not asked for": ("turns('small', ['track_time'])", {}),
    "no such device": ("turns('one', ['track_time'])", {"TORCH_HISTORY_DEVICE": "tpu"}),
    "GPU too old to compile for": (OLD_GPU, {"TORCH_HISTORY_DEVICE": "cuda"}),
    "a start, on a GPU": (NEVER_STARTS, {"TORCH_HISTORY_DEVICE": "cuda"}),
    "a product's times": (NAMES, {"TORCH_HISTORY_ONLY": "times"}),
    "a product": (NAMES, {}),
    "a product again": (NAMES, {}),
    "kernels on a CPU": ("turns('two', ['track_kernels'])", {}),
    "untold": (
        "sys.stderr = sys.stdout\ncommon.returned.told = lambda *_: 1 / 0\nturns('five', ['track_allocations'])",
        {"TORCH_HISTORY_VALUES": "a folder"},
    ),
    "much printed": (BUILDS.replace('"built"', '"x" * 2**21') + "\nturns('six', ['track_allocations'])", {}),
    "much printed before it fails": (
        "intersection.variants['in_place'] = lambda _: print('x' * 2**21, flush=True) or 1 / 0\n"
        "turns('seven', ['track_allocations'])",
        {},
    ),
    "wrong result": (f"{WRONG}\nturns('three', ['track_time', 'track_operators'])", {}),
}
"""What each child of one server does that has discovered the suite, and with what in its surroundings."""


@pytest.fixture(scope="module")
def children() -> SimpleNamespace:
    """What each of CHILDREN printed: the facts that it said of itself, and the rest."""
    usual = {"TORCH_HISTORY_SIZES": "tiny", "TORCH_HISTORY_DEVICE": "cpu"}
    asked = [(code, {**usual, **variables}) for code, variables in CHILDREN.values()]
    printed = json.loads(python(SERVE, json.dumps(asked)).splitlines()[-1])
    said: dict[str, list[str]] = {}
    facts: dict[str, dict[str, Any]] = {}
    for name, lines in zip(CHILDREN, printed):  # noqa: B905 - Python 3.9 has no strict
        marked = [line for line in lines if line.startswith("torch-history: ")]
        facts[name] = {k: v for line in marked for k, v in json.loads(line.partition(": ")[2]).items()}
        said[name] = [line for line in lines if line not in marked]
    return SimpleNamespace(said=said, facts=facts)


SAMPLES = "track_time {'samples': [0.25, 0.5], 'number': 1}"
PEAK = f"track_peak_memory {3 * 50 * 7 * 4}"
SAID = {
    "bad fork": ["False"],
    "a fork after CUDA was asked": ["True"],
    "first metric": ["built", "timed", "profiled", PEAK],
    "other metrics": ["track_allocations 3", SAMPLES],
    "second time": ["built", "timed", "profiled", SAMPLES, "track_allocations 3"],
    "times alone": ["timed", SAMPLES],
    "killed": [],
    "after it": ["failed: CaseFailed the process that measured this case ended before it could answer"],
    "much printed": ["x" * 2**20 + "track_allocations 3"],
    "much printed before it fails": ["x" * 2**20 + "failed: ZeroDivisionError division by zero"],
    "untold": ["What it returns cannot be told: ZeroDivisionError: division by zero", "track_allocations 3"],
}
"""One process of a case times before it profiles, and gives all metrics; one that is asked again is measured again, and one
whose process was ended is not. What cannot be told costs no number. After discovery a fork can still use CUDA."""


@pytest.mark.parametrize("child", SAID)
def test_what_a_child_builds_times_profiles_and_answers(children, child):
    assert children.said[child] == SAID[child]


def test_every_benchmark_has_the_parameters_variant_and_size_as_strings(suites):
    for name, benchmark in suites["in place"].items():
        assert benchmark["param_names"] == ["variant", "size"], name
        assert all(value == repr(value.strip("'")) for values in benchmark["params"] for value in values), name
    assert suites["in place"]["intersection.Intersection.track_time"]["params"] == [
        ["'eager'", "'scripted'", "'traced'", "'compiled'", "'in_place'", "'stacked_eager'", "'stacked_scripted'"],
        ["'small'", "'paper'"],
    ]


def test_process_says_what_it_measures_with_and_the_first_of_a_launch_in_what_environment(children):
    first, facts = children.facts["first metric"], children.facts["other metrics"]
    assert first.keys() == {"torch", "python", "threads", "device", "environment", "found"}
    metrics = python("import json, measure; from workloads import intersection as of; print(json.dumps(of.METRICS))")
    assert first["found"].keys() == set(json.loads(metrics))
    assert (first["found"]["time"], first["found"]["peak_memory"]) == ([0.25, 0.5], 3 * 50 * 7 * 4)
    assert first["found"]["kernels"] == {"unavailable": "kernels and waits of the host exist on a GPU only"}
    assert first["environment"]["torch"] == first["torch"]
    assert f"numpy=={first['environment']['numpy']}" in first["environment"]["packages"]
    assert facts.keys() == {"torch", "python", "threads", "device"}
    assert (facts["python"], facts["threads"], facts["device"]) == (sys.version.split()[0], 1, "cpu")


def test_a_start_is_refused_on_a_gpu_before_cuda_is_started(children):
    (said,) = children.said["a start, on a GPU"]
    assert said.startswith("skipped: what a start takes is measured on a CPU")


def test_who_answers_products_is_said_once_in_a_launch_where_counts_are_taken(children):
    facts = [children.facts[name] for name in ("a product", "a product's times", "a product again")]
    assert facts[0]["libraries"].keys() >= {"products float32 even", "products bfloat16 even"}
    assert all(who.startswith(("MKL ", "oneDNN ", "neither ")) for who in facts[0]["libraries"].values())
    assert [("libraries" in of, "environment" in of) for of in facts[1:]] == [(False, False)] * 2
    assert children.said["a product"] == children.said["a product again"] == ["1"]


def test_counts_may_be_taken_without_times(children):
    said = children.said["counts alone"]
    assert said[0] == "profiled"
    assert said[1].startswith("track_operators ")
    assert said[2:] == ["skipped: times were not asked for: TORCH_HISTORY_ONLY names something else"]
    assert "not_asked" in children.facts["counts alone"]


@pytest.mark.parametrize(
    ("child", "kind", "sentence"),
    [
        ("size not asked for", "not_asked", "size small was not asked for: set TORCH_HISTORY_SIZES=small"),
        (
            "no such device",
            "unavailable",
            "'tpu' is no device, and a measurement runs on 'cpu' or 'cuda', or on the 'recorder': "
            "choose one with --device or TORCH_HISTORY_DEVICE",
        ),
        ("kernels on a CPU", "unavailable", "kernels and waits of the host exist on a GPU only"),
        (
            "GPU too old to compile for",
            "unavailable",
            "torch.compile needs a GPU of sm_70 or newer, on which Triton is supported, and this one is sm_61; the other "
            "variants run on it, and this one on the CPU: --device cpu",
        ),
    ],
)
def test_what_cannot_be_measured_is_skipped_with_its_sentence(children, child, kind, sentence):
    assert children.said[child] == [f"skipped: {sentence}"]
    assert children.facts[child][kind] == sentence


def test_wrong_result_fails_and_is_neither_timed_nor_counted(children):
    sentence = "failed: WrongResult the result is torch.float32 (50, 4), not float32 (50, 7)"
    again = sentence.replace("WrongResult ", "CaseFailed WrongResult: ")
    assert children.said["wrong result"] == [sentence, again]
    assert not children.facts["wrong result"].keys() & {"unavailable", "not_asked"}
