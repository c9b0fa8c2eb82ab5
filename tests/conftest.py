"""What several test files use. Nothing here needs asv or torch before a test asks for it."""

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]


@pytest.fixture
def no_code(request: pytest.FixtureRequest) -> Iterator[None]:
    """Results that a test makes up are of real releases by name: what is known of their wheels says nothing of them."""
    if request.node.get_closest_marker("committed"):
        yield
        return
    from torch_history.analysis import code
    from torch_history.store import code as stored

    cached = (code.same_code, code.is_nothing_new, code.pair_of)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "here", lambda: Path("no code here"))
        for each in cached:
            each.cache_clear()
        yield
    for each in cached:
        each.cache_clear()


@pytest.fixture
def root() -> Path:
    """The repository."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture
def write_releases(tmp_path: Path) -> Callable[..., Path]:
    """Writes a releases.toml of the versions given, one on the first of each month from January 2024 on."""
    from .result_files import write_axis

    def write(*versions: str, **more: Any) -> Path:
        dates = {version: f"{2024 + i // 12}-{1 + i % 12:02}-01" for i, version in enumerate(versions)}
        return write_axis(tmp_path / "releases.toml", dates, **more)

    return write


@pytest.fixture
def asv_conf(
    write_releases: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """asv's configuration of a suite in a folder that is the working one, with the versions given."""
    from asv.config import Config

    from torch_history.releases import repository

    def conf(*versions: str, **more: Any) -> Config:
        monkeypatch.chdir(tmp_path)
        about = {"repo": str(write_releases(*versions, **more)), "dvcs": repository.ReleaseAxis.dvcs, "env_dir": "env"}
        return Config.from_json({**about, "project": "PyTorch", "branches": ["releases"], "results_dir": "results"})

    return conf


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every warning and error that was logged, in order, those too that another test was told already."""
    from torch_history.system import files

    files.warn.cache_clear()
    said: list[str] = []
    heard = logging.Handler(logging.WARNING)
    monkeypatch.setattr(heard, "emit", lambda record: said.append(record.getMessage()))
    monkeypatch.setattr(logging.getLogger(), "handlers", [heard])
    return said


@pytest.fixture
def results(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of results that the command `torch-history` takes for the repository's, beside `env`, on a machine `here`."""
    from torch_history.cli import suite
    from torch_history.measuring import machine, machine_records

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(root)
    loaded = suite.load
    monkeypatch.setattr(suite, "load", lambda: replace(loaded(), results=tmp_path / "results", env=tmp_path / "env"))
    for module in (machine, machine_records):
        monkeypatch.setattr(module, "describe", lambda *_: {"machine": "here", "device": "cpu"})
    return tmp_path / "results"


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that commands take for a checkout, with the results of tests/lab.py."""
    from .lab import write_lab

    folder = tmp_path_factory.mktemp("laboratory")
    write_lab(folder)
    return folder


@pytest.fixture(scope="session")
def site(lab: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, published by the command from the results of tests/lab.py."""
    return published(tmp_path_factory, "--results-dir", str(lab / "results"))


@pytest.fixture(scope="session")
def committed_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, published by the command from the committed results, for the one test of each page that reads them."""
    return published(tmp_path_factory)


def published(places: pytest.TempPathFactory, *options: str) -> Path:
    """A site that the command published on a machine that has no results."""
    from .processes import torch_history

    folder = places.mktemp("published") / "html"
    surroundings = {"TORCH_HISTORY_MACHINE": "elsewhere", **os.environ, "HOME": str(folder.parent)}
    torch_history("publish", "--html-dir", folder, *options, env=surroundings)
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        if os.environ.get("CI"):
            pytest.fail("CI must open the site in a browser, and there is no chromium: run `make browser`")
        pytest.skip("no chromium on this machine: `make browser` installs Debian's")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(request: pytest.FixtureRequest, browser: Any) -> Iterator[Any]:
    """A page of a browser without network and memory, which fails the test on a console error or a request elsewhere. The
    fixture's parameter is whether its policy is left out."""
    complaints: list[str] = []
    here = ("file:", "data:", "blob:")
    # Waiting for a condition evaluates text in the page, which its policy forbids; one test visits each page under it.
    free = getattr(request, "param", True)
    context = browser.new_context(viewport={"width": 1200, "height": 900}, accept_downloads=True, bypass_csp=free)
    context.set_offline(True)
    tab = context.new_page()
    tab.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: None if request.url.startswith(here) else complaints.append(request.url))
    yield tab
    context.close()
    assert complaints == []
