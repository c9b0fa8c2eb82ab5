"""Does an installed torch-history say what it is: its version, its authors, and that it is typed?"""

from __future__ import annotations

import ast
import re
import tomllib
import zipfile
from collections.abc import Iterable
from email.message import Message
from email.parser import Parser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner
from hatchling.builders.wheel import WheelBuilder

from torch_history.cli import main


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """What `pip install .` would install."""
    root = Path(__file__).resolve().parents[1]
    builder = WheelBuilder(str(root))
    (path,) = builder.build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def test_metadata_name_the_authors_and_what_they_build_on(metadata: Message) -> None:
    assert metadata["Author"] == "torch-history developers"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    urls = [entry.partition(", ")[2] for entry in metadata.get_all("Project-URL", [])]
    assert urls
    assert {urlsplit(url).scheme for url in urls} == {"https"}
    assert {urlsplit(url).hostname for url in urls} == {"github.com"}


def test_wheel_holds_the_marker_of_each_typed_package(wheel: zipfile.ZipFile) -> None:
    assert {"torch_history/py.typed", "contract/py.typed"} <= set(wheel.namelist())


def imported(wheel: zipfile.ZipFile, modules: Iterable[str]) -> set[str]:
    """The first names of what modules of a wheel import."""
    return {
        name.partition(".")[0]
        for module in modules
        for node in ast.walk(ast.parse(wheel.read(module)))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
    }


def test_wheel_holds_what_its_modules_import(root: Path, wheel: zipfile.ZipFile) -> None:
    """`recorder` was left out once, and every command that describes the machine failed where the wheel was installed. The
    suite that measures is a folder of its own in the wheel, and holds what its modules import too."""
    ours = {path.parent.name for path in root.glob("*/__init__.py")}
    suite = "torch_history/suite/"
    every = [name for name in wheel.namelist() if name.endswith(".py")]
    for folder, modules in (
        ("", [name for name in every if not name.startswith(suite)]),
        (suite, [name for name in every if name.startswith(suite)]),
    ):
        held = {"torch_history", *(name.removeprefix(folder).partition("/")[0] for name in modules)}
        assert imported(wheel, modules) & ours <= held
    assert {"recorder/device.c", "recorder/devices.toml"} <= set(wheel.namelist())


def test_version_is_said_and_the_same_everywhere(root: Path, metadata: Message) -> None:
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    answer = CliRunner().invoke(main, ["--version"], prog_name="torch-history")
    assert answer.output == f"torch-history {version}\n"
    cited = re.search(r'^version: "(.+)"$', (root / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == version == metadata["Version"]
