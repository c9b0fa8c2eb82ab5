"""Does docs/architecture.md list the modules that a value passes? A session with played processes is traced for it."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from asv.benchmarks import Benchmarks
from click.testing import CliRunner
from msgspec import Struct

from contract.request import PREFIX
from torch_history.analysis.verdicts import compare
from torch_history.cli import main
from torch_history.measuring import server as servers
from torch_history.measuring.session import Session
from torch_history.releases.axis import Release
from torch_history.releases.environments import ReleaseEnvironment
from torch_history.store.launches import read_launches

from .test_session import NEW, OLD, TIME, World, world  # noqa: F401

MOST = {"A release tag": 5, "A sample": 7, "The device": 2}
"""Heading of a walk in docs/architecture.md -> modules at most."""

SECONDS = 0.001234567
ROOT = str(Path(__file__).resolve().parents[1]) + "/"
PACKAGE = f"{ROOT}torch_history/"
CONTRACT = f"{ROOT}contract/"
INSIDE = ["measure/clock", "benchmarks/common"]
"""The modules inside a release, which has torch; the last test says that a sample passes no other there."""

ASIDE = {"system/files", "cli/__init__", "system/children"}
"""Modules that move bytes, frames and processes of anything, and so of these values too."""

Look = Callable[[FrameType, str, Any], None]


@contextmanager
def traced(look: Look) -> Iterator[None]:
    """Calls `look` with every call and return of the functions of torch_history and of the contract."""

    def seen(frame: FrameType, event: str, value: Any) -> None:
        if event in ("call", "return") and frame.f_code.co_filename.startswith((PACKAGE, CONTRACT)):
            look(frame, event, value)

    sys.setprofile(seen)
    try:
        yield
    finally:
        sys.setprofile(None)


def module(frame: FrameType) -> str:
    return frame.f_code.co_filename.removeprefix(PACKAGE).removeprefix(ROOT).removesuffix(".py")


def stack(frame: FrameType | None) -> list[str]:
    """The modules of torch_history that a call came through, the outermost first."""
    found: list[str] = []
    while frame:
        if frame.f_code.co_filename.startswith(PACKAGE):
            found.append(module(frame))
        frame = frame.f_back
    return [name for name in dict.fromkeys(reversed(found)) if name not in ASIDE]


def holds(value: Any, wanted: object) -> bool:
    """Whether a value is `wanted`, or a record or a collection that it lies in."""
    if isinstance(value, dict):
        return any(holds(part, wanted) for part in value.values())
    if isinstance(value, (list, tuple)):
        return any(holds(part, wanted) for part in value)
    if isinstance(value, Release):
        return value.tag == wanted
    if isinstance(value, Struct):
        return any(holds(getattr(value, name), wanted) for name in value.__struct_fields__)
    if is_dataclass(value) and not isinstance(value, type):
        return any(holds(getattr(value, field.name, None), wanted) for field in fields(value))
    return type(value) is type(wanted) and value == wanted


@pytest.fixture
def checkout(root: Path, tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: F811
    """A folder in which `torch-history run` measures two releases, whose processes are played."""
    for name in ("asv.conf.json", "releases.toml"):
        shutil.copy(root / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TORCH_HISTORY_MACHINE", "here")
    monkeypatch.setattr(world, "seconds", lambda release, variant: SECONDS)
    monkeypatch.setattr(Session, "_discover", lambda self: Benchmarks(self.conf, [TIME]))

    def install(self: Any, conf: Any, repo: Any, tag: str) -> None:
        world.selected = tag

    monkeypatch.setattr(ReleaseEnvironment, "install_project", install)
    return tmp_path


def run() -> None:
    answer = CliRunner().invoke(main, ["run", OLD[1:], NEW[1:], "--rounds", "1"])
    assert answer.exit_code == 0, answer.output


def documented(root: Path, heading: str) -> list[str]:
    """The modules of the picture under a heading of the page."""
    text = (root / "docs" / "architecture.md").read_text().partition(f"### {heading}")[2].partition("\n### ")[0]
    picture = text.partition("```mermaid")[2].partition("```")[0]
    return re.findall(r"\[([\w/]+)\]", picture)


def test_a_tag_passes_the_modules_that_the_page_lists(root: Path, checkout: Path) -> None:
    found: list[str] = []
    named: list[str] = []

    def look(frame: FrameType, event: str, value: Any) -> None:
        caller = frame.f_back.f_code.co_filename if frame.f_back else ""
        if event == "return" and caller.startswith(f"{PACKAGE}cli/") and not module(frame).startswith("cli/"):
            if not named and holds(value, NEW):
                named.append(module(frame))
        elif event == "call" and frame.f_code.co_name == "append_launches" and not found:
            found.extend(stack(frame))

    with traced(look):
        run()
    at = next(i for i, name in enumerate(found) if not name.startswith("cli/"))
    walk = [*found[:at], *named, *found[at:]]
    assert walk == documented(root, "A release tag")


def test_a_sample_passes_the_modules_that_the_page_lists(root: Path, checkout: Path) -> None:
    found: list[str] = []
    stored: list[str] = []

    def look(frame: FrameType, event: str, value: Any) -> None:
        arguments = [of for name, of in frame.f_locals.items() if name != "self"]
        if (holds(value, SECONDS) if event == "return" else holds(arguments, SECONDS)) and not stored:
            found.append(module(frame))
        if event == "return" and frame.f_code.co_name == "append_launches":
            stored.append("")

    with traced(look):
        run()
    assert stored
    stored.clear()
    with traced(look):
        assert list(compare(list(read_launches(checkout / "results", "here")), OLD, NEW))
    walk = [name for name in dict.fromkeys(found) if name not in ASIDE]
    assert [*INSIDE, *walk] == documented(root, "A sample")


def test_samples_of_the_clock_are_handed_on_by_one_module(root: Path) -> None:
    folders = [root / name for name in ("benchmarks", "contract", "measure", "workloads")]
    callers = [path for folder in folders for path in folder.glob("*.py") if "clock.samples(" in path.read_text()]
    assert callers == [root / "benchmarks" / "common.py"]


def test_the_device_is_decided_and_translated_by_the_modules_that_the_page_lists(
    root: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HISTORY_DEVICE", "")
    monkeypatch.setattr("torch_history.measuring.machine.gpus", list)
    started = servers.get_spawner
    handed: list[str] = []

    def start(environment: ReleaseEnvironment, *more: Any, **options: Any) -> Any:
        handed.append(environment.surroundings({})[f"{PREFIX}DEVICE"])
        return started(environment, *more, **options)

    monkeypatch.setattr(servers, "get_spawner", start)
    made: list[str] = []
    received: set[FrameType | None] = set()

    def says(value: Any) -> bool:
        return isinstance(value, dict) and "cpu" in (value.get("device"), value.get(f"{PREFIX}DEVICE"))

    def look(frame: FrameType, event: str, value: Any) -> None:
        if event == "call" and any(map(says, frame.f_locals.values())):
            received.add(frame)
        elif event == "return" and says(value) and not handed:
            received.add(frame.f_back)
            if frame not in received:
                made.append(module(frame))

    with traced(look):
        run()
    assert set(handed) == {"cpu"}
    assert list(dict.fromkeys(made)) == documented(root, "The device")


@pytest.mark.parametrize("heading", MOST)
def test_no_walk_grows_and_its_heading_counts_it(root: Path, heading: str) -> None:
    walk = documented(root, heading)
    assert 0 < len(walk) <= MOST[heading]
    title = re.search(rf"### {heading}.*: (\d+) modules", (root / "docs" / "architecture.md").read_text())
    assert title is not None
    assert int(title[1]) == len(walk)
