"""Prints what the working tree brings that moves torch against a commit, in at most 40 lines of Markdown that begin with a
recommendation; nothing where no file moves it.

    python comment.py COMMIT

GPU is the project's GPU, if it has one. Files that pyproject.toml names are measured on both releases:

    [tool.torch-history]
    files = ["bench.py"]

What does not fit in is in the summary of the job, GITHUB_STEP_SUMMARY, which has all of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Container
from pathlib import Path
from typing import Any, NamedTuple

FORMS = (
    *("*requirements*.txt", "*.in", "*pyproject.toml", "*uv.lock", "*poetry.lock", "*pylock*.toml", "*Pipfile.lock"),
    *("*environment*.yml", "*environment*.yaml"),
)
"""Names of files that may ask for torch."""

MOST = 40
"""Lines of a comment."""

LIMITS, WORSE = "slower:5%,hungrier:1%,broke", "5 % slower or more, takes 1 % more memory or more, or broke"
"""What a file of one's own must not do, as `upgrade --fail-on` takes it and in words."""

FAILED, CANNOT_WORK = 3, 3
"""Exit codes of `upgrade`, of a file of one's own and of requirements."""


def main() -> None:
    commit = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder, "before")
        said("git", "worktree", "add", "--quiet", "--detach", str(before), commit)
        try:
            moved = move(commit, before)
        finally:
            said("git", "worktree", "remove", "--force", str(before))
    if moved is None:
        return
    (title, _, recommended, *facts), told = moved
    found: list[str] = []
    if not told["stops"] and (files := own_files()):
        recommended, found = measured(files, told)
    lines = [title, "", recommended, *found, *facts]
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(summary, "a", encoding="utf-8") as stream:
            print(*lines, sep="\n", file=stream)
    cut = [*lines[: MOST - 2], "", "The rest is in the summary of the job that wrote this."]
    print(*(lines if len(lines) <= MOST else cut), sep="\n")


def move(commit: str, before: Path) -> tuple[list[str], dict[str, Any]] | None:
    """What the first file that moves torch brings, in lines and as data; None where none does."""
    changed = said("git", "diff", "-z", "--name-only", "--diff-filter=M", commit, "--", *FORMS).text
    gpu = ["--gpu", os.environ["GPU"]] if os.environ.get("GPU") else []
    for file in filter(None, changed.split("\0")):
        asked = ["torch-history", "upgrade", str(before / file), "--to", file, *gpu]
        answer = said(*asked, "--markdown", codes=range(4))
        if answer.code in (0, CANNOT_WORK):
            return answer.text.splitlines(), json.loads(said(*asked, "--json", codes=range(4)).text)
    return None


def own_files() -> list[str]:
    """The files that pyproject.toml names."""
    settings = Path("pyproject.toml")
    table = tomllib.loads(settings.read_text(encoding="utf-8")) if settings.exists() else {}
    return [str(file) for file in table.get("tool", {}).get("torch-history", {}).get("files", [])]


def measured(files: list[str], told: dict[str, Any]) -> tuple[str, list[str]]:
    """What is recommended after measuring `files`, and what was found of each, in lines."""
    lines: list[str] = []
    answers = {}
    for file in files:
        asked = ["--from", told["from"], "--to", told["to"], "--fail-on", LIMITS, "--markdown", "--", file]
        answers[file] = said("torch-history", "upgrade", *asked, codes=range(5))
        lines += ["", *(answers[file].text.splitlines() or [f"    {answers[file].last}"])]
    worse = [file for file, answer in answers.items() if answer.code == FAILED]
    unknown = [file for file, answer in answers.items() if answer.code not in (0, FAILED)]
    fine = [file for file in answers if file not in worse and file not in unknown]
    sentences = [f"**Before you move, look at {named(worse)}, which became {WORSE}.**"] if worse else []
    recommended = told["recommended"]
    sentences += [f"Apart from that, {recommended[0].lower()}{recommended[1:]}" if worse else recommended]
    sentences += [f"{named(unknown)} could not be measured: see below."] if unknown else []
    sentences += [f"As far as could be measured, {named(fine)} got no worse."] if fine else []
    return " ".join(sentences), lines


def named(files: list[str]) -> str:
    return " and ".join(f"`{file.replace('`', '')}`" for file in files)


class Said(NamedTuple):
    """How a command ended, what it printed, and the last line of what it said besides, which is in the job's log."""

    code: int
    text: str
    last: str


def said(*words: str, codes: Container[int] = (0,)) -> Said:
    """Runs a command. Raises CalledProcessError where it ends with another exit code than these."""
    last = ""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
        with subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.PIPE, text=True
        ) as child:
            for line in child.stderr or ():
                sys.stderr.write(line)
                last = line.strip() or last
        if child.returncode not in codes:
            raise subprocess.CalledProcessError(child.returncode, words)
        printed.seek(0)
        return Said(child.returncode, printed.read(), last)


if __name__ == "__main__":
    main()
