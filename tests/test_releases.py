"""Does the whole way work on real releases, from installation to a comparison? Installs PyTorch: minutes and gigabytes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from asv.environment import EnvironmentUnavailable

from torch_history.explaining.launching import Launch, Side, Subject
from torch_history.explaining.reproduction import script
from torch_history.releases.environments import MARK, find_python

from .processes import ROOT, ran
from .result_files import cases

RELEASES = (("v1.8.1", "3.9"), ("v2.0.1", "3.11"), ("v2.15.0", "3.11"))
RESULT = 30_000 * 500 * 4
"""Bytes of one [N, M] float32 tensor of the size `small`."""

NEEDING_TORCH = (
    *("test_batching.py", "test_benchmarks.py", "test_cases.py", "test_cpp.py", "test_measure.py", "test_own.py"),
    *("test_own_process.py", "test_planted.py", "test_saved_tensors.py", "test_selection.py", "test_sequence.py"),
    *("test_warm_up.py", "test_models.py", "test_products.py", "test_returned.py"),
)
"""Tests that are skipped in the tool's environment, which has no torch, and run in the releases' instead."""

pytestmark = pytest.mark.releases

Command = Callable[..., subprocess.CompletedProcess]


@pytest.fixture(scope="session")
def environments() -> Path:
    """The releases of RELEASES, installed into the repository's own `env/`, where a later `asv run` finds them too."""
    for release, lane in RELEASES:
        install(release, lane)
    return ROOT / "env"


def install(release: str, lane: str) -> None:
    """Installs a release into the repository's own `env/`, unless the lane's Python is missing."""
    code = (
        "import sys; from pathlib import Path; from asv.repo import get_repo;"
        "from torch_history.measuring.session import load_suite;"
        "from torch_history.releases.environments import ReleaseEnvironment;"
        "conf, axis = load_suite(Path.cwd());"
        "ReleaseEnvironment(conf, sys.argv[2], {}, {}).install_project(conf, get_repo(conf), sys.argv[1])"
    )
    try:
        find_python(lane)
    except EnvironmentUnavailable:
        return
    subprocess.run([sys.executable, "-c", code, release, lane], cwd=ROOT, check=True)


def environment(environments: Path, release: str, lane: str) -> Path:
    """The folder of one release's environment; the test is skipped in words where the lane's Python is missing."""
    folder = environments / f"{release}-py{lane}"
    if not folder.exists():
        pytest.skip(f"{release} needs Python {lane}, which is neither here nor could it be downloaded")
    return folder


@pytest.fixture
def suite(tmp_path, environments) -> Path:
    """A copy of the suite without results, which shares the installed releases."""
    return copied(tmp_path / "suite")


def copied(copy: Path) -> Path:
    """A copy of the suite without results, which shares the releases that are installed in the repository."""
    (copy / "env").mkdir(parents=True)
    for name in ("benchmarks", "contract", "measure", "recorder", "workloads", "torch_history"):
        shutil.copytree(ROOT / name, copy / name)
    for name in ("asv.conf.json", "releases.toml", "releases.lock", ".python-version", "pyproject.toml"):
        shutil.copy(ROOT / name, copy / name)
    for finished in (ROOT / "env").glob(f"v*-py*/{MARK}"):
        (copy / "env" / finished.parent.name).symlink_to(finished.parent)
    return copy


@pytest.fixture
def command(suite) -> Command:
    """Runs `asv` or `torch-history` in the copy, with a home of its own."""

    def run(tool: str, *arguments: str, expect: int = 0) -> subprocess.CompletedProcess:
        program = ("-m", "asv") if tool == "asv" else ("-c", "from torch_history.cli import main; main()")
        return ran(sys.executable, *program, *arguments, cwd=suite, env=_surroundings(suite), code=expect)

    return run


def _surroundings(suite: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(suite), "PYTHONPATH": str(suite), "TORCH_HISTORY_MACHINE": "test"}


def numbers(suite: Path, release: str, metric: str, variant: str) -> list[float]:
    """What each launch found for one metric and variant in size small."""
    stored, asked = cases(suite / "results", "test", release), (repr(variant), repr("small"))
    found = [case.value for launch, case in stored if launch.benchmark.endswith(metric) and case.parameters == asked]
    return [value for value in found if value is not None]


@pytest.mark.parametrize(("release", "lane"), RELEASES)
def test_eager_peaks_at_four_results_and_counts_repeat_exactly(command, suite, environments, release, lane):
    environment(environments, release, lane)
    chosen = r"intersection.*(peak_memory|operators|allocations)\('(eager|in_place)', 'small'"
    for _ in range(2):
        command("asv", "run", f"--python={lane}", release, "--bench", chosen)
    first, second = numbers(suite, release, "peak_memory", "eager")
    assert abs(first - 4 * RESULT) <= 4096
    assert first == second
    assert numbers(suite, release, "peak_memory", "in_place") == [3 * RESULT] * 2
    assert len(set(numbers(suite, release, "operators", "eager"))) == 1
    assert numbers(suite, release, "allocations", "in_place") == [3, 3]


def test_asv_commands_work_over_releases(command, suite):
    only = r"track_time\('in_place', 'small'"
    command("asv", "run", "--interleave-rounds", "v2.0.1 v2.15.0", "--bench", only)
    assert "v2.15.0" in command("asv", "show").stdout
    assert "track_time" in command("asv", "compare", "v2.0.1", "2.15.0").stdout
    command("asv", "check", "--python=3.11")
    answer = command("asv", "continuous", "v2.0.1", "v2.15.0", "--bench", only, "--factor", "5")
    assert "BENCHMARKS NOT SIGNIFICANTLY CHANGED" in answer.stdout
    command("asv", "publish")
    tags = json.loads((suite / "html" / "asv" / "index.json").read_text(encoding="utf-8"))["tags"]
    assert next(iter(tags)) == "v1.8.0"
    assert {"v2.0.1", "v2.15.0"} <= set(tags)


def test_upgrade_of_a_file_of_ones_own_says_what_changed_and_is_asked_again_for_nothing(command, suite, tmp_path):
    """Counts alone, which noise does not touch. The axis has two releases, so that no other is installed."""
    axis = suite / "releases.toml"
    tables = axis.read_text(encoding="utf-8").split("[[release]]")
    kept = [table for table in tables if 'version = "2.0.1"' in table or 'version = "2.15.0"' in table]
    axis.write_text("[[release]]" + "[[release]]".join(kept), encoding="utf-8")
    mine = tmp_path / "mine.py"
    mine.write_text(CHAIN, encoding="utf-8")
    arguments = ("upgrade", str(mine), "--from", "2.0.1", "--to", "2.15.0")
    found = command("torch-history", *arguments, "--fail-on", "hungrier:5%", expect=3)
    assert "Both ends are measured first: nothing to install" in found.stderr
    for size, nbytes in (("small", 40_000), ("paper", 80_000)):
        line = f"mine peak memory, scripted {size}: HUNGRIER 2.00 times, from {nbytes:,} B to {2 * nbytes:,} B"
        assert line in found.stdout
        assert f"mine peak memory, eager {size}: SAME at {2 * nbytes:,} B." in found.stdout
    assert "  at v2.15.0 (after v2.0.1): HUNGRIER 2.00 times, " in found.stdout
    document = json.loads(command("torch-history", *arguments, "--json").stdout)
    assert document["tally"]["HUNGRIER"] == 2
    (results,) = (suite / ".cache" / "torch-history").glob("mine-*/results")
    assert len({launch.session for launch, _ in cases(results, "test", "v2.15.0")}) == 1


RETURNED = """
import torch

NEW = torch.__version__ >= "2.15"
METRICS = ("operators",)
check = None

def inputs(seed):
    torch.manual_seed(seed)
    return torch.arange(1.0, 13.0).reshape(3, 4),

def stepped(x):
    x.add_(1)
    return x.clone()

functions = {
    "another dtype": lambda x: {"sum": x.sum(), "x": x.half() if NEW else x},
    "another layout": lambda x: x.t().contiguous().t() if NEW else x + 0,
    "beyond": lambda x: x + (0.12 if NEW else 0),
    "within": lambda x: x * (1 + 4e-7 if NEW else 1),
    "stepped": stepped,
    "by chance": lambda x: x + torch.rand((), generator=torch.Generator().manual_seed(torch.seed())),
}
"""
"""Of what it returns 0.12 of 12 is a hundredth."""


def test_what_a_file_of_ones_own_returns_is_compared(command, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(RETURNED, encoding="utf-8")
    command("torch-history", "run", "--workload", str(mine), "2.0.1", "2.15.0", "--only", "counts")
    compared = ("torch-history", "compare", "--workload", str(mine), "2.0.1", "2.15.0")
    assert "Result of mine beyond: DIFFERENT by 0.0099 of its largest number" in command(*compared).stdout
    results = json.loads(command(*compared, "--json").stdout)["results"]
    assert {one["parameters"][0]: one["kind"] for one in results} == {
        "another dtype": "of another dtype",
        "another layout": "of another layout",
        "beyond": "DIFFERENT",
        "within": "different within rounding",
        "stepped": "the same",
        "by chance": "different at each call",
    }
    of = {one["parameters"][0]: one for one in results}
    assert of["another dtype"]["forms"] == {"dtype": ["float32", "float16"]}
    assert of["another layout"]["forms"] == {"strides": [[4, 1], [1, 3]]}
    assert of["beyond"]["difference"] == pytest.approx(0.0099, abs=1e-4)
    assert of["within"]["difference"] < 6e-7


ONCE = """
import subprocess
import sys

import torch

METRICS = ("first_call", "process_time")
NAP = "import time; time.sleep(%s)"
IS_OLD = "import importlib.metadata, subprocess, sys; importlib.metadata.version('torch') < '2.1'"
command = ["python", "-c", IS_OLD + " or subprocess.run([sys.executable, '-S', '-c', %r])" % (NAP % 0.7)]

def inputs():
    return 1

def first(x):
    if torch.__version__ >= "2.1":
        subprocess.run([sys.executable, "-S", "-c", NAP % 0.7])

functions = {"first": first}
"""
"""Starts a process more on 2.15.0 than on 2.0.1."""


def test_what_a_process_does_once_is_explained_by_the_processes_that_it_starts(command, suite, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(ONCE, encoding="utf-8")
    arguments = ("explain", "2.0.1", "2.15.0", "--workload", str(mine))
    for series in ("first", "command"):
        said = command("torch-history", *arguments, series).stdout
        assert ": CAUSE: because python holds " in said
        assert "(started: 1, before: 0)" in said


@pytest.mark.parametrize("metric", ["first_call", "second_call", "worst_call"])
def test_first_calls_of_a_question_are_timed_and_have_a_script(environments, tmp_path, metric):
    python = environment(environments, "v2.15.0", "3.11") / "bin" / "python"
    asked = Subject(ROOT, "warm_up", "scripted", "one shape", metric)
    launch = Launch(Side("v2.15.0", python), asked)
    timed = launch.ask({"do": "time"})
    launch.close()
    assert 0 < timed["cpu"] < 20
    if metric == "worst_call":
        return  # a script cannot tell which it is
    path = tmp_path / "script.py"
    path.write_text(script(asked, ""), encoding="utf-8")
    printed = ran(python, path).stdout
    assert 0 < float(printed.removeprefix("seconds: ")) < 20


CHAIN = """
import torch

sizes = {"small": 10_000, "paper": 20_000}
METRICS = ("peak_memory", "operators", "allocations")

def inputs(size):
    return torch.ones(sizes[size]), torch.ones(sizes[size])

def chain(x, y):
    return torch.sqrt(x * y + x) - y

functions = {"eager": chain, "scripted": torch.jit.script(chain)}
"""


def test_an_installed_torch_recorded_under_another_release_says_so(command, suite):
    python = str(suite / "env" / "v2.0.1-py3.11" / "bin" / "python")
    asked = ("--as", "2.1.0", "--rounds", "1", "--question", "intersection")
    command("torch-history", "run", "--installed", "--python", python, *asked)
    launch, _ = cases(suite / "results", "test", "v2.1.0")[0]
    assert launch.facts["torch"].startswith("2.0.1")


@pytest.mark.parametrize(("release", "lane"), [pair for pair in RELEASES if pair[1] != "3.9"])
def test_what_needs_torch_is_tested_in_each_release(environments, release, lane):
    tests = [str(ROOT / "tests" / name) for name in NEEDING_TORCH]
    code = f"import sys; sys.path.append({os.path.dirname(os.path.dirname(pytest.__file__))!r}); import pytest; "
    code += f"sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', *{tests!r}]))"
    python = environments / f"{release}-py{lane}" / "bin" / "python"
    ran(str(python), "-c", code, cwd=ROOT)
