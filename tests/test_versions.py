"""Does every committed number keep its place? A benchmark's version is a digest of the sources that say what is measured."""

from __future__ import annotations

import ast
import hashlib
import json
from pathlib import Path

import pytest

from torch_history.store.launches import read_file


def constant(source: Path, name: str) -> object:
    """What `source` assigns to `name`, read without importing it."""
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return ast.literal_eval(node.value) if node.value else None
    raise AssertionError(f"{source} assigns nothing to {name}")


def used_by(source: Path, package: Path) -> set[Path]:
    """The modules of `package` that `source` imports from, and itself."""
    found = {source}
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.level == 1 or (node.module or "").split(".")[0] == package.name):
            module = (node.module or "").removeprefix(package.name).strip(".")
            names = [module] if module else [alias.name for alias in node.names]
            found |= {path for name in names if (path := package / f"{name}.py").exists()}
    return found


def version(root: Path, question: str, metric: str) -> str:
    """As `version` in benchmarks/common.py makes it, of the files alone."""
    package = root / "workloads"
    digest = hashlib.sha256(repr(constant(root / "benchmarks" / "common.py", "SEED")).encode())
    modules = sorted(used_by(package / f"{question}.py", package), key=lambda path: path.stem)
    for source in [*modules, root / "measure" / f"{metric}.py"]:
        for path in (source, source.with_suffix(".cpp")):
            if path.exists():
                digest.update(path.read_bytes())
    return digest.hexdigest()


@pytest.mark.committed
def test_versions_of_the_committed_benchmarks_are_those_of_these_sources(root: Path) -> None:
    listed = json.loads((root / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    benchmarks = {name: of["version"] for name, of in listed.items() if isinstance(of, dict)}
    assert len(benchmarks) > 20
    for name, committed in benchmarks.items():
        question = name.partition(".")[0]
        today = {version(root, question, metric) for metric in ("clock", "profile", "sequence", "start_up", "counted")}
        assert committed in today, f"{name} would begin a new history: its committed numbers lose their place"


@pytest.mark.committed
def test_every_newest_launch_is_of_a_committed_version(root: Path) -> None:
    listed = json.loads((root / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    known = {(name, of["version"]) for name, of in listed.items() if isinstance(of, dict)}
    newest = sorted((root / "results").glob("*/v2.15.0-release-py3.11.jsonl*"))
    assert newest
    for path in newest:
        stored = {(launch.benchmark, launch.version) for launch in read_file(path)}
        assert stored & known, f"{path} holds no launch that these sources would go on with"
