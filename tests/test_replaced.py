"""Is exactly what a later count contradicts taken out of the results, and logged as the git history has it?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools import replaced
from torch_history.reports.check import EXCLUSIONS, check_history
from torch_history.store.launches import Case, Launch, append_launches, read_file

NAME = "v2.6.0-release-py3.11.jsonl"
PLAIN, HOOKS, NUMPY = ("'plain'", "'loop'"), ("'hooks'", "'loop'"), ("'numpy'", "'loop'")


def launch(minute: int, *cases: Case, benchmark: str = "q.Q.track_peak_reserved", version: str = "now") -> Launch:
    began = f"2026-01-01T00:{minute}:00+00:00"
    return Launch(f"s{minute}", 1, "l", "v2.6.0", "release-py3.11", benchmark, version, began, 1.0, {}, cases)


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of launches in a committed folder of results, in which the recorder counted one case wrongly."""
    monkeypatch.setattr(replaced, "RESULTS", tmp_path)
    (tmp_path / "card").mkdir()
    before = [
        launch(10, Case(PLAIN, value=10), Case(HOOKS, value=20), Case(NUMPY, unavailable="no device memory")),
        launch(11, Case(PLAIN, value=10)),
        launch(12, Case(PLAIN, value=5), benchmark="q.Q.track_retained"),
        launch(13, Case(PLAIN, value=9), version="before an edit of the workload"),
    ]
    append_launches(tmp_path / "card" / NAME, before)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "x")
    return tmp_path / "card" / NAME


def count_again(path: Path) -> None:
    again = [
        launch(30, Case(PLAIN, value=12), Case(HOOKS, value=20), Case(NUMPY, value=1)),
        launch(31, Case(PLAIN, value=5), benchmark="q.Q.track_retained"),
    ]
    append_launches(path, again)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["replaced", *arguments])
    replaced.main()


def test_only_numbers_that_a_later_launch_contradicts_are_taken_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_again(path)
    lines = path.read_bytes().splitlines()
    run(monkeypatch, "card", "2026-01-01T00:20")
    found = [(one.session, [(case.parameters, case.number) for case in one.cases]) for one in read_file(path)]
    assert found == [
        ("s10", [(HOOKS, 20), (NUMPY, None)]),
        ("s12", [(PLAIN, 5)]),
        ("s13", [(PLAIN, 9)]),
        ("s30", [(PLAIN, 12), (HOOKS, 20), (NUMPY, 1)]),
        ("s31", [(PLAIN, 5)]),
    ]
    assert path.read_bytes().splitlines()[1:] == lines[2:]


def test_nothing_is_taken_out_where_all_launches_agree_or_none_is_later(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()
    run(monkeypatch, "card", "2026-01-01T00:20")
    assert path.read_bytes() == before
    count_again(path)
    before = path.read_bytes()
    run(monkeypatch, "card", "2026-01-01T00:40")
    assert path.read_bytes() == before


def test_log_says_what_a_commit_took_out_as_the_history_has_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_again(path)
    run(monkeypatch, "card", "2026-01-01T00:20")
    results = path.parents[1]
    (results / EXCLUSIONS).write_text("")
    git(results, "add", "-A")
    git(results, "commit", "-q", "-m", "x")
    assert len(check_history(results)) == 2
    run(monkeypatch, "--log", "HEAD", "recorder-fault", "One handle for all threads.")
    assert check_history(results) == []
    first, second = (json.loads(line) for line in (results / EXCLUSIONS).read_text().splitlines())
    assert (first["session"], first["variants"], first["sizes"], first["cases"]) == ("s10", ["plain"], ["loop"], 1)
    assert (second["session"], second["launches"], second["rule"]) == ("s11", 1, "recorder-fault")


def test_a_damaged_line_is_named_and_nothing_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_again(path)
    damaged = path.read_bytes().replace(b'"value":10', b'"value":11', 1)
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match="line 1"):
        run(monkeypatch, "card", "2026-01-01T00:20")
    assert path.read_bytes() == damaged
