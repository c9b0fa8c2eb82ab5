"""Does each command that the README and the documents write down run as it stands there, in a copy of the project with some
of the committed results? What is not run is named below with its reason, and read by its program as far as its options
go."""

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from asv.commands import make_argparser

from torch_history.cli import main
from torch_history.releases.axis import Axis
from torch_history.releases.repository import ReleaseAxis

from .processes import ROOT, ran

pytestmark = pytest.mark.committed

PAGES = ("README.md", "CONTRIBUTING.md", *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("docs/*.md"))))

TAGS = ("v2.0.1", "v2.1.0", "v2.1.2", "v2.14.1", "v2.15.0")
"""Releases whose results are in the copy: those that lines which are run name, and a few more."""

INSTALLS, INDEX = "it installs PyTorch releases", "it asks the package index"
CLUSTER, TOOL = "it needs a cluster with Slurm", "it builds the environment of the tool that runs this test"
NOT_RUN = {
    **{r"\. \.venv/bin/activate": TOOL, r"make (\.venv/ready|document|lint|size)": TOOL},
    **{r"make (run|test|test-all)": INSTALLS, r"torch-history (run|upgrade(?! requirements)|explain|fit) .*": INSTALLS},
    **{r"make sync": INDEX, r"torch-history fleet .*": CLUSTER, r"asv (run|continuous|find) .*": INSTALLS},
}
"""What is read and not run, and why: for each line the first of these that is all of it."""


def written() -> list[str]:
    """Each command of each block that names no language, once, without its remark."""
    blocks = (
        block
        for page in PAGES
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.M | re.S)
        if not language
    )
    lines = (line.partition("  # ")[0].partition(" # ")[0] for block in blocks for line in block.splitlines())
    commands = (command.strip() for line in lines for command in line.split(";"))
    return [*dict.fromkeys(one for one in commands if re.match(r"(asv|torch-history|make|\.) ", one))]


def why_not_run(command: str) -> str:
    return next((why for pattern, why in NOT_RUN.items() if re.fullmatch(pattern, command)), "")


RUN = [command for command in written() if not why_not_run(command)]
READ = [command for command in written() if why_not_run(command)]


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A copy of the project with a home of its own beside it, and the results of `TAGS` on every machine."""
    folder = tmp_path_factory.mktemp("written") / "project"
    left_out = shutil.ignore_patterns(".git", ".venv", "env", "html", "results", "tests", "node_modules", "__pycache__")
    shutil.copytree(ROOT, folder, ignore=left_out)
    for source in (ROOT / "results").rglob("*"):
        path = source.relative_to(ROOT)
        if source.is_file() and (
            not re.match(r"v\d", source.name) or source.name.startswith(tuple(f"{t}-" for t in TAGS))
        ):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / path)
    (folder.parent / "home").mkdir()
    (folder / "requirements.txt").write_text("torch==2.0.1\n")
    return folder


# What publishes comes before what shows it.
IN_ORDER = sorted(RUN, key=lambda command: "publish" not in command)


@pytest.mark.parametrize("command", [command for command in IN_ORDER if command != "asv preview"])
def test_a_written_command_runs(project, command):
    """As a person would start it, in the copy."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    home = str(project.parent / "home")
    surroundings = {**os.environ, "PATH": programs, "HOME": home, "XDG_CACHE_HOME": home, "PYTHONPATH": str(project)}
    surroundings |= {"TORCH_HISTORY_MACHINE": "a-new-machine"}
    answer = ran(*shlex.split(command), cwd=project, env=surroundings, timeout=600)
    said = answer.stdout + answer.stderr
    assert "Traceback" not in said
    assert "Skipping results" not in said
    assert "Error fetching" not in said


@pytest.mark.parametrize("command", READ)
def test_a_written_command_that_is_not_run_is_one_that_its_program_knows(command, project):
    assert why_not_run(command)
    program, *words = shlex.split(command)
    {"torch-history": read_by_us, "asv": read_by_asv, "make": read_by_make, ".": lambda _: None}[program](words)


def read_by_us(words: list[str]) -> None:
    command: Any = main
    name = "torch-history"
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    context = command.make_context(name, words)
    axis = Axis.load(ROOT / "releases.toml")
    for spec in re.findall(r"(?<!\S)\d+\.\d+\.\d+(?:\.\.\d+\.\d+\.\d+)?(?!\S)", " ".join(words)):
        assert axis.select(spec), spec
    assert context.command is command


def read_by_asv(words: list[str]) -> None:
    parser, _ = make_argparser()
    arguments = parser.parse_args(words)
    axis = ReleaseAxis(str(ROOT / "releases.toml"))
    for name in re.findall(r"v\d+\.\d+\.\d+(?:\.\.v\d+\.\d+\.\d+)?", " ".join(words)):
        assert axis.get_hashes_from_range(name), name
    if words[0] == "find":
        assert arguments.bench in json.loads((ROOT / "results" / "benchmarks.json").read_text()), "one whole name"


def read_by_make(words: list[str]) -> None:
    steps = ran("make", "--dry-run", "--always-make", *words, cwd=ROOT).stdout
    assert "/uv pip" not in steps, "a configuration in the working folder could send packages elsewhere"
