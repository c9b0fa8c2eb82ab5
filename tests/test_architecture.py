"""Do the packages import what they may, and is what is committed free of one machine's particulars?

benchmarks -> workloads, measure, contract; workloads -> torch, numpy; measure -> torch, contract, recorder;
torch_history -> asv, contract, never torch; contract -> nothing; recorder -> torch_history, of which what runs inside a
release imports torch at most. The rooms of torch_history are held by import-linter: see pyproject.toml.
"""

import ast
import re
import sys
from pathlib import Path

import pytest

from .processes import ROOT, ran

INSIDE_A_RELEASE = ("benchmarks", "contract", "measure", "workloads")


def modules(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, f"{package} holds no module"
    return found


def imports(text: str, package: str) -> set[str]:
    """Top-level names of everything that a module of `package` imports, wherever the import stands in its text."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(package if node.level else (node.module or "").partition(".")[0])
    return names


def imported_by(package: str) -> dict[str, set[str]]:
    """What a package imports of third parties and of our other packages -> the files that do."""
    found: dict[str, set[str]] = {}
    for path in modules(package):
        for name in imports(path.read_text(), package) - sys.stdlib_module_names - {package}:
            found.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    return found


def test_tool_imports_nothing_that_runs_inside_a_release():
    assert not imported_by("torch_history").keys() & {"torch", "benchmarks", "workloads", "measure"}


@pytest.mark.parametrize(
    ("package", "others"),
    [
        ("workloads", {"torch", "numpy"}),
        ("measure", {"torch", "numpy", "contract", "recorder"}),
        ("benchmarks", {"asv_runner", "torch", "numpy", "contract", "measure", "recorder", "workloads"}),
        ("contract", set()),
    ],
)
def test_what_runs_inside_a_release_imports_what_it_may(package, others):
    assert imported_by(package).keys() <= others


def test_what_of_the_recorder_runs_inside_a_release_imports_torch_at_most():
    inside = [ROOT / "recorder" / name for name in ("__init__.py", "record.py", "counts.py")]
    named = {name for path in inside for name in imports(path.read_text(), "recorder")}
    assert named - sys.stdlib_module_names - {"recorder"} == {"torch"}
    for path in inside:
        ast.parse(path.read_text(), feature_version=(3, 9))


@pytest.mark.parametrize("path", [path for each in INSIDE_A_RELEASE for path in modules(each)], ids=lambda p: p.stem)
def test_what_runs_inside_a_release_is_python_3_9(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    annotated = any(getattr(node, "annotation", None) or getattr(node, "returns", None) for node in ast.walk(tree))
    if annotated:
        # X | None in an annotation is an error before Python 3.10, unless annotations are left unread
        assert "from __future__ import annotations" in path.read_text()


def tracked() -> dict[str, str]:
    """The text of every file that git tracks; files that are not text are left out."""
    names = ran("git", "ls-files", "-z", cwd=ROOT, code=None)
    if names.returncode:
        pytest.skip("this is no git checkout, so there is no list of committed files")
    texts = {}
    for name in names.stdout.split("\0"):
        path = ROOT / name
        if path.is_file():
            data = path.read_bytes()
            if b"\0" not in data:
                texts[name] = data.decode(errors="replace")
    return texts


def test_no_committed_file_names_a_folder_of_one_machine():
    folder = re.compile(r"(?<![\w.:/-])/(?:root|work|home)/\w")
    found = [f"{name}: {match.group()}" for name, text in tracked().items() for match in folder.finditer(text)]
    assert found == []


def test_no_committed_file_names_a_package_registrys_host():
    hosts = ["files." + "pythonhosted", "pypi" + ".org/simple", "registry." + "npmjs"]
    found = [f"{name}: {host}" for name, text in tracked().items() for host in hosts if host in text]
    assert found == []
