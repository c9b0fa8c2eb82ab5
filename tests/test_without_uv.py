"""Does a machine that has a torch and little else measure it? Packages that it lacks are made unimportable; for the long
tests the network is taken away too."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .processes import ROOT, ran
from .test_releases import environments  # noqa: F401  a fixture

LACKING = ("requests", "threadpoolctl", "torch", "uv", "virtualenv")
"""What is made unimportable: all that a container with PyTorch has not, and asv does not need to measure."""

BLOCK = f"import sys\nsys.modules.update(dict.fromkeys({LACKING!r}))\n"

IMPORTED = """
import torch_history.analysis.compare
import torch_history.measuring.calibrate
import torch_history.measuring.recorded
import torch_history.kit.check
import recorder.certificate
from asv import environment
from torch_history.measuring.session import load_suite
from torch_history.releases.environments import ReleaseEnvironment

conf, axis = load_suite("{root}")
(release,) = environment.get_environments(conf, None)
assert isinstance(release, ReleaseEnvironment)
release._root = release._root / "none"
try:
    release.install_project(conf, None, axis.newest.tag)
except environment.util.ProcessError as error:
    assert "Install it with" in str(error), error
else:
    raise AssertionError("it was installed")
"""

COMMAND = "import sys; sys.argv[0] = 'torch-history'; from torch_history.__main__ import main; main()"


def test_all_that_measures_is_imported_and_what_must_be_installed_is_refused_in_a_sentence(tmp_path):
    code = BLOCK + IMPORTED.format(root=ROOT).replace(
        'release._root / "none"', f"type(release._root)({str(tmp_path)!r})"
    )
    surroundings = {**os.environ, "HOME": str(tmp_path), "TORCH_HISTORY_DEVICE": "cpu"}
    ran(sys.executable, "-c", code, cwd=ROOT, env=surroundings)


@pytest.mark.parametrize(
    "line", ["--version", "run --help", "certify --help", "check {}", "compare 2.14.1 2.15.0 --question batching"]
)
def test_a_command_that_installs_nothing_needs_no_uv(line, tmp_path):
    surroundings, words = {**os.environ, "HOME": str(tmp_path)}, line.format(tmp_path).split()
    ran(sys.executable, "-c", BLOCK + COMMAND, *words, cwd=ROOT, env=surroundings)


class Bare:
    """A checkout on a machine that reaches nothing and has a torch 2.15.0, at `python`."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.folder, self.python = folder / "checkout", python
        for name in ("benchmarks", "contract", "measure", "recorder", "torch_history", "workloads"):
            shutil.copytree(ROOT / name, self.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("asv.conf.json", "pyproject.toml", "releases.lock", "releases.toml"):
            shutil.copy(ROOT / name, self.folder / name)
        (folder / "blocking").mkdir()
        (folder / "blocking" / "sitecustomize.py").write_text(BLOCK.replace("'torch', ", ""))
        self.variables = {
            **os.environ,
            "HOME": str(folder),
            "PYTHONPATH": os.pathsep.join([str(folder / "blocking"), str(self.folder)]),
            "TORCH_HISTORY_MACHINE": "bare",
            "TORCH_HISTORY_DEVICE": "cpu",
        }

    def said(self, *words: str) -> str:
        """What this environment's Python prints there."""
        command = ["unshare", "-n", sys.executable, *words]
        answer = ran(*command, cwd=self.folder, env=self.variables)
        return answer.stdout

    def numbers(self, environment: str) -> dict[tuple[str, ...], float | None]:
        """Metric and parameters -> what is stored of v2.15.0 in that environment."""
        found = {}
        for line in (self.folder / "results" / "bare" / f"v2.15.0-{environment}.jsonl").read_text().splitlines():
            launch = json.loads(line)
            assert launch["facts"]["torch"].startswith("2.15.0")
            metric = launch["benchmark"].rpartition(".")[2]
            found.update({(metric, *case["parameters"]): case.get("value") for case in launch["cases"]})
        return found


@pytest.fixture(scope="module")
def bare(environments: Path, tmp_path_factory: pytest.TempPathFactory) -> Bare:  # noqa: F811
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode:
        pytest.skip("a network can be taken away by root only, with `unshare -n`")
    found = Bare(tmp_path_factory.mktemp("bare"), environments / "v2.15.0-py3.11" / "bin" / "python")
    assert "uv" in found.said("-c", "import sys; print(sorted(sys.modules))")
    return found


@pytest.mark.releases
def test_installed_torch_is_measured_without_uv_and_network(bare):
    asked = ("run", "--installed", "--python", str(bare.python), "--question", "intersection", "--rounds", "1")
    assert "as v2.15.0" in bare.said("-c", COMMAND, *asked)
    numbers = bare.numbers("installed-py3.11")
    assert numbers["track_peak_memory", "'eager'", "'small'"] == 4 * 30_000 * 500 * 4
    assert bare.said("-c", COMMAND, *asked, "--only", "counts", "--again")
    assert bare.said("-c", COMMAND, "check").startswith("0 problems")


@pytest.mark.releases
def test_plain_asv_measures_an_existing_torch_without_uv_and_network(bare):
    existing = ("-E", f"existing:{bare.python}")
    bare.said("-m", "asv", "run", *existing, "--set-commit-hash", "v2.15.0", "--bench", "Intersection")
    (stored,) = (bare.folder / "results" / "bare").glob("v2.15.0-existing-*.jsonl")
    numbers = bare.numbers(stored.stem.removeprefix("v2.15.0-"))
    assert numbers["track_peak_memory", "'eager'", "'small'"] == 4 * 30_000 * 500 * 4
    assert "track_time" in bare.said("-m", "asv", "show", "v2.15.0")
