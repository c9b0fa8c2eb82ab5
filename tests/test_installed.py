"""Does the program work where it is installed and no checkout is near? Its wheel is built, installed and used elsewhere."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from torch_history.system import program

from .processes import ROOT, ran
from .test_architecture import imports

UV = str(Path(sys.executable).with_name("uv"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--wheel", "--no-build-isolation", "--python", sys.executable, "--out-dir", str(folder)]
    subprocess.run([UV, "build", *options, str(ROOT)], check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The command `torch-history` of a fresh environment with the wheel; its needs are met by this environment."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([UV, "pip", "install", "-q", "--python", str(python), "--no-deps", str(wheel)], check=True)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (needed,) = {path for path in sys.path if path.endswith("site-packages") and Path(path, "click").is_dir()}
    (packages / "needed.pth").write_text(f"{needed}\n")
    return python.with_name("torch-history")


def test_wheel_holds_what_its_modules_import(wheel):
    """`recorder` was left out once, and every command that describes the machine failed where the wheel was installed. The
    suite that measures is a folder of its own in the wheel, and holds what its modules import too."""
    ours = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    suite = "torch_history/suite/"
    archive = zipfile.ZipFile(wheel)
    every = [name for name in archive.namelist() if name.endswith(".py")]
    for folder, modules in (
        ("", [name for name in every if not name.startswith(suite)]),
        (suite, [name for name in every if name.startswith(suite)]),
    ):
        held = {"torch_history", *(name.removeprefix(folder).partition("/")[0] for name in modules)}
        imported = {name for module in modules for name in imports(archive.read(module).decode(), "torch_history")}
        assert imported & ours <= held
    needed = {"recorder/device.c", "recorder/devices.toml", "torch_history/py.typed", "contract/py.typed"}
    assert needed <= set(archive.namelist())


@pytest.fixture
def elsewhere(installed, tmp_path) -> Iterator[tuple[Path, Path, dict[str, str]]]:
    """The command, an empty folder, and variables whose cache is an empty folder. Releases that were installed there go."""
    folder = tmp_path / "empty"
    folder.mkdir()
    yield installed, folder, {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)


def said(elsewhere: tuple[Path, Path, dict[str, str]], *words: str) -> subprocess.CompletedProcess[str]:
    command, folder, variables = elsewhere
    return ran(str(command), *words, cwd=folder, env=variables, code=None)


def test_what_it_writes_lies_in_the_users_cache(elsewhere, tmp_path):
    said(elsewhere, "compare", "2.14.1", "2.15.0")
    assert list(elsewhere[1].iterdir()) == []
    suite = tmp_path / "cache" / "torch-history" / "suite"
    for name in (
        "benchmarks/own.py",
        "measure/clock.py",
        "workloads/cpp.py",
        "contract/request.py",
        "recorder/memory.c",
    ):
        assert (suite / name).read_bytes() == (ROOT / name).read_bytes()


def test_a_gpu_is_asked_by_the_suite_in_the_wheel(elsewhere):
    found = said(elsewhere, "certify", "--ask", "gpu.json", "--python", str(elsewhere[0].with_name("python")))
    assert "has no torch" in found.stderr or "sees no GPU" in found.stderr, found.stderr


@pytest.mark.releases
def test_a_file_is_measured_from_an_empty_folder(elsewhere):
    (elsewhere[1] / "mine.py").write_text(
        "import torch\ndef inputs(seed):\n  return torch.ones(100)\ndef f(x):\n  return x * 2\nfunctions = {'double': f}\n"
    )
    found = said(elsewhere, "upgrade", "mine.py", "--from", "2.14.1", "--to", "2.15.0", "--budget", "4m")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "v2.14.1" in found.stdout
    assert "mine.py: v2.14.1, v2.15.0" in said(elsewhere, "compare").stdout
    again = said(elsewhere, "compare", "--workload", "mine.py", "2.14.1", "2.15.0", "--all")
    assert "mine operators, double" in again.stdout


def test_copy_is_brought_up_to_date_and_keeps_what_it_did_not_make(tmp_path, monkeypatch):
    sources = tmp_path / "package"
    (sources / "measure").mkdir(parents=True)
    (sources / "measure" / "clock.py").write_text("new\n")
    monkeypatch.setattr(program, "SOURCES", sources)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    suite = tmp_path / "cache" / "torch-history" / "suite"
    (suite / "env").mkdir(parents=True)
    (suite / "measure").mkdir()
    (suite / "measure" / "clock.py").write_text("old\n")
    assert program.in_cache() == suite
    assert (suite / "measure" / "clock.py").read_text() == "new\n"
    assert (suite / "env").is_dir()
