"""What several test files use. Nothing here needs asv or torch before a test asks for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def root() -> Path:
    """The repository."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture
def write_releases(tmp_path: Path) -> Callable[..., Path]:
    """Writes a releases.toml of the versions given, one on the first of each month from January 2024 on."""

    def write(*versions: str, pythons: tuple[str, ...] = ("3.11",), more: str = "") -> Path:
        path = tmp_path / "releases.toml"
        path.write_text(
            "".join(
                f'[[release]]\nversion = "{version}"\ndate = "{2024 + i // 12}-{1 + i % 12:02}-01"\n'
                f'date_source = "index"\npythons = {list(pythons)}\ncuda = "12.1"\n{more}\n'
                for i, version in enumerate(versions)
            )
        )
        return path

    return write


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every warning and error that asv's log was given, in order."""
    from asv.console import log

    said: list[str] = []
    monkeypatch.setattr(log, "warning", said.append)
    monkeypatch.setattr(log, "error", said.append)
    return said


@pytest.fixture
def results(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of results that the command `torch-history` takes for the repository's, on a machine called `here`."""
    from torch_history import cli, machine

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(root)
    loaded = cli.load_suite

    def load(folder: Path) -> tuple:
        conf, axis = loaded(folder)
        conf.results_dir = str(tmp_path / "results")
        return conf, axis

    monkeypatch.setattr(cli, "load_suite", load)
    monkeypatch.setattr(machine, "describe", lambda: {"machine": "here"})
    return tmp_path / "results"
