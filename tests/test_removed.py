"""Does the log of exclusions say what was removed? On a small git repository, and on the committed log."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.synthetic import tag, write_tree
from tools.excluded import KINDS, compared_again, kind
from torch_history import cli
from torch_history.analysis.compare import find
from torch_history.analysis.series import Verdict
from torch_history.cli import suite
from torch_history.releases.axis import Axis, Release
from torch_history.reports.check import EXCLUSIONS, check_history
from torch_history.store.launches import read_launches
from torch_history.store.removed import NoHistory, Removal, put_back, removals

ROOT = Path(__file__).resolve().parents[1]


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--no-verify", "-m", "x")
    return git(folder, "rev-parse", "HEAD").strip()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Three releases on one machine, committed."""
    write_tree(tmp_path, releases=3, series=40, machines=1)
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path / "results"


def launches_of(results: Path) -> Path:
    return results / "machine-0" / f"{tag(1)}-release-py3.11.jsonl"


def take_out(results: Path) -> list[dict[str, object]]:
    """Removes the first launch, and the first case of the second. Returns both as they were."""
    path = launches_of(results)
    first, second, *rest = (json.loads(line) for line in path.read_text().splitlines())
    shorter = {**second, "cases": second["cases"][1:]}
    path.write_text("".join(json.dumps(one) + "\n" for one in (shorter, *rest)))
    return [first, second]


def entry(name: str, launch: dict[str, object], launches: int, cases: int) -> str:
    found = {"commit": name, "machine": "machine-0", "calibration": False, "launches": launches, "cases": cases}
    said = {"rule": "r", "reason": "why", "releases": [launch["release"]]}
    return json.dumps({**found, **said, "session": launch["session"], "benchmark": launch["benchmark"]}) + "\n"


def said_of(removed: list[Removal]) -> list[tuple[str, int]]:
    return [(one.launch.launch, len(one.launch.cases)) for one in removed]


def test_what_was_removed_is_found_and_needs_an_entry_that_counts_it(results: Path) -> None:
    assert removals(results) == []
    first, second = take_out(results)
    assert first["benchmark"] == second["benchmark"]
    name = commit(results)
    cases = len(first["cases"])  # type: ignore[arg-type]
    assert said_of(removals(results)) == [(first["launch"], cases), (second["launch"], 1)]
    [problem] = check_history(results)
    assert f"commit {name[:8]} removed launches" in problem
    assert f"(launches: 2, cases: {cases + 1})" in problem
    log = results / EXCLUSIONS
    log.write_text(entry(name, first, 2, cases + 1))
    assert check_history(results) == []
    log.write_text(entry(name, first, 2, cases))
    [problem] = check_history(results)
    assert f"says launches: 2, cases: {cases}." in problem
    log.write_text(entry(name, first, 2, cases + 1) * 2)
    assert "an earlier line" in check_history(results)[0]
    log.write_text(entry(name, first, 2, cases + 1) + entry("0" * 40, first, 1, 1) + "[]\n")
    no_names, no_such = check_history(results)
    assert "line 2: commit 00000000 removed no such launch" in no_such
    assert "line 3: it is no exclusion" in no_names


def test_lines_that_are_moved_rewritten_or_put_back_are_not_removed(results: Path) -> None:
    before = launches_of(results).read_text()
    take_out(results)
    commit(results)
    launches_of(results).write_text(before)
    commit(results)
    assert removals(results) == []
    changed = [{**json.loads(line), "facts": {"environment": "another"}} for line in before.splitlines()]
    launches_of(results).write_text("".join(json.dumps(one) + "\n" for one in changed))
    commit(results)
    assert removals(results) == []
    (results / "machine-0").rename(results / "machine-renamed")
    commit(results)
    assert removals(results) == []


def test_the_folder_that_launches_were_moved_to_is_known(results: Path) -> None:
    [first, _] = take_out(results)
    (results / "machine-0").rename(results / "machine-renamed")
    commit(results)
    removed = removals(results)
    assert removed[0].launch.launch == first["launch"]
    assert {(one.machine, one.now) for one in removed} == {("machine-0", "machine-renamed")}


def test_verdicts_are_made_with_what_was_excluded_put_back(results: Path, tmp_path: Path) -> None:
    path = launches_of(results)
    slow = []
    for line in path.read_text().splitlines():
        one = json.loads(line)
        for case in one["cases"]:
            case.update({"samples": [5 * x for x in case["samples"]]} if "samples" in case else {})
        slow.append({**one, "session": "session-9999", "launch": f"9{one['launch']}"})
    before = path.read_text()
    path.write_text("".join(json.dumps(one) + "\n" for one in slow))
    other = results / "machine-0" / f"{tag(0)}-release-py3.11.jsonl"
    unchanged = other.read_text()
    other.write_text(unchanged.replace('"session-0000"', '"session-9999"'))
    commit(results)
    path.write_text(before)
    other.write_text(unchanged)
    commit(results)
    copy = tmp_path / "copy"
    shutil.copytree(results, copy)
    count = put_back(copy, "machine-0", removals(results))
    assert count == 2 * len(slow)
    of = [verdicts(folder) for folder in (results, copy)]
    assert Verdict.SLOWER not in of[0]
    assert Verdict.SAME not in of[1]
    assert Verdict.SAME in of[0]
    axis = Axis([Release(tag(number)[1:], date(2021, 1, 1 + number), "index", (), "") for number in range(3)])
    launches = list(read_launches(results, "machine-0"))
    again = list(compared_again(launches, [one.launch for one in removals(results)], axis))
    changed = sum(one is not None and (one.old, one.new) == (tag(0), tag(1)) for one in again)
    assert changed == of[0].count(Verdict.SAME)


def exclude_slow(results: Path) -> int:
    """Makes a question five times slower on the second release, and excludes these launches; returns how many they are."""
    path = launches_of(results)
    kept, slow = [], []
    for line in path.read_text().splitlines():
        one = json.loads(line)
        if one["benchmark"] != "selection.Selection.track_time":
            kept.append(line)
            continue
        for case in one["cases"]:
            case["samples"] = [5 * x for x in case["samples"]]
        slow.append(json.dumps(one))
    for lines in (kept + slow, kept):
        path.write_text("".join(line + "\n" for line in lines))
        commit(results)
    return len(slow)


@pytest.fixture
def command(results: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs `torch-history` on the small repository."""
    axis = Axis([Release(tag(number)[1:], date(2021, 1, 1 + number), "index", (), "") for number in range(3)])
    loaded = replace(suite.load(), results=results, axis=axis, env=results.parent / "env")
    monkeypatch.setattr(suite, "load", lambda: loaded)
    return lambda *words: CliRunner().invoke(cli.main, [*words, "--machine", "machine-0"])


def test_commands_tell_what_they_would_with_what_was_excluded(results: Path, command: Callable[..., Result]) -> None:
    count = exclude_slow(results)
    compare, regressions = ("compare", tag(0), tag(1), "--all"), ("regressions",)
    for words in (compare, regressions):
        without, having = command(*words), command(*words, "--with-excluded")
        assert (without.exit_code, having.exit_code) == (0, 0), having.output
        assert "selection time, variant_0 small: SLOWER " not in without.output
        assert "selection time, variant_0 small: SLOWER " in having.output
        assert f"excluded and are put back here: {count}." in having.output
        assert command(*words).output == without.output  # results/ itself is as it was


@pytest.mark.parametrize(
    ("without", "having", "expected"),
    [
        (Verdict.SLOWER, Verdict.SAME, KINDS[0]),
        (Verdict.SAME, Verdict.FASTER, KINDS[1]),
        (Verdict.SLOWER, Verdict.FASTER, KINDS[2]),
        (Verdict.SAME, Verdict.CANT_TELL, KINDS[3]),
        (Verdict.FASTER, Verdict.CANT_TELL, KINDS[3]),
        (Verdict.CANT_TELL, Verdict.SAME, KINDS[4]),
        (Verdict.SAME, Verdict.SAME, ""),
        (Verdict.SLOWER, Verdict.SLOWER, ""),
        (Verdict.CANT_TELL, Verdict.CANT_TELL, ""),
        (Verdict.NEVER_RAN, Verdict.NEVER_RAN, ""),
    ],
)
def test_two_verdicts_differ_in_one_of_five_ways(without: Verdict, having: Verdict, expected: str) -> None:
    assert kind(without, having) == expected


def verdicts(results: Path) -> list[Verdict]:
    found = find(results, "machine-0", "release-py3.11", tag(0), tag(1))
    return [change.verdict for change in found.changes if change.series.varies]


def test_without_a_whole_history_a_sentence_says_so(results: Path, tmp_path: Path) -> None:
    take_out(results)
    commit(results)
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{tmp_path}", "shallow")
    with pytest.raises(NoHistory, match="is in a shallow clone"):
        removals(tmp_path / "shallow" / "results")
    (results.parent / "other").mkdir()
    with pytest.raises(NoHistory, match=r"No file of .* was ever committed"):
        removals(results.parent / "other")


def test_without_git_a_sentence_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoHistory, match="has no git history"):
        removals(tmp_path)


@pytest.mark.committed
def test_committed_log_says_all_that_was_removed() -> None:
    try:
        assert check_history(ROOT / "results") == []
    except NoHistory as error:
        pytest.skip(str(error))
