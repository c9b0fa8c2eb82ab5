"""Does the program work where it is installed and no checkout is near? Its wheel is built, installed and used elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from torch_history.system import program

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `torch-history` of a fresh environment with the wheel; its needs are met by this environment."""
    folder = tmp_path_factory.mktemp("installed")
    uv = str(Path(sys.executable).with_name("uv"))
    building = [
        uv,
        "build",
        "--wheel",
        "--no-build-isolation",
        "--python",
        sys.executable,
        "-o",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(building, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([uv, "pip", "install", "-q", "--python", str(python), "--no-deps", str(wheel)], check=True)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (needed,) = {path for path in sys.path if path.endswith("site-packages") and Path(path, "click").is_dir()}
    (packages / "needed.pth").write_text(f"{needed}\n")
    return python.with_name("torch-history")


@pytest.fixture
def elsewhere(installed: Path, tmp_path: Path) -> Iterator[tuple[Path, Path, dict[str, str]]]:
    """The command, an empty folder, and variables whose cache is an empty folder. Releases that were installed there go."""
    folder = tmp_path / "empty"
    folder.mkdir()
    yield installed, folder, {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)


def said(elsewhere: tuple[Path, Path, dict[str, str]], *words: str) -> subprocess.CompletedProcess[str]:
    command, folder, variables = elsewhere
    return subprocess.run([str(command), *words], cwd=folder, env=variables, capture_output=True, text=True)


def test_it_says_its_version_and_what_wheels_bring(elsewhere: tuple[Path, Path, dict[str, str]]) -> None:
    assert said(elsewhere, "--version").stdout.startswith("torch-history ")
    told = said(elsewhere, "facts", "2.14.1", "2.15.0")
    assert told.returncode == 0, told.stderr
    assert "download, with all packages" in told.stdout


def test_it_has_no_results_of_the_suite_and_none_of_own_files(elsewhere: tuple[Path, Path, dict[str, str]]) -> None:
    refused = said(elsewhere, "compare", "2.14.1", "2.15.0")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "contains no launches" in refused.stderr
    assert "Nothing is in" in said(elsewhere, "compare").stdout


def test_what_it_writes_lies_in_the_users_cache(elsewhere: tuple[Path, Path, dict[str, str]], tmp_path: Path) -> None:
    said(elsewhere, "facts", "2.14.1", "2.15.0")
    assert list(elsewhere[1].iterdir()) == []
    suite = tmp_path / "cache" / "torch-history" / "suite"
    for name in (
        "benchmarks/own.py",
        "measure/clock.py",
        "workloads/__init__.py",
        "contract/request.py",
        "recorder/memory.c",
    ):
        assert (suite / name).read_bytes() == (ROOT / name).read_bytes()


@pytest.mark.releases
def test_a_file_is_measured_from_an_empty_folder(elsewhere: tuple[Path, Path, dict[str, str]]) -> None:
    (elsewhere[1] / "mine.py").write_text(
        "import torch\n\n\ndef inputs(seed):\n    return torch.ones(100)\n\n\ndef double(x):\n    return x * 2\n\n\n"
        'functions = {"double": double}\n'
    )
    found = said(elsewhere, "upgrade", "mine.py", "--from", "2.14.1", "--to", "2.15.0", "--rounds", "2")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "v2.14.1" in found.stdout
    assert "mine.py: v2.14.1, v2.15.0" in said(elsewhere, "compare").stdout
    again = said(elsewhere, "compare", "--workload", "mine.py", "2.14.1", "2.15.0", "--all")
    assert "mine operators, double" in again.stdout


def test_copy_is_brought_up_to_date_and_keeps_what_it_did_not_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
