"""Do the workflows and the scripts that they call do what they say? Nothing here reaches a forge: `gh` is a stand-in."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .lab import MACHINE, write_lab
from .processes import ROOT, program, ran

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

GH = """\
#!/usr/bin/env bash
if [ "$2" = list ]; then
    cat "$TITLES"
else
    printf '%s\\n' "$4" >> "$TITLES"
    cat "$6" > "$BODY"
fi
"""


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_keep_no_credentials(path):
    text = path.read_text()
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)] == []
    assert text.count("persist-credentials: false") == text.count("uses: actions/checkout@")


def test_what_measures_may_write_nothing_and_what_pushes_checks_first():
    jobs = re.split(
        r"(?m)^  (?=\w+:$)", (ROOT / ".github" / "workflows" / "history.yml").read_text().partition("jobs:")[2]
    )
    found = {job.partition(":")[0]: job for job in jobs if job.strip()}
    assert "torch-history run" in found["measure"]
    assert ": write" not in found["measure"]
    assert "contents: read" in found["measure"]
    assert "||" not in found["measure"], "an exit status is swallowed"
    assert [name for name, job in found.items() if "contents: write" in job] == ["sync", "commit"]
    assert "torch-history run" not in found["sync"] + found["commit"]
    in_turn = [
        *('torch-history check "$RUNNER_TEMP/measured"', 'tools.measured add "$RUNNER_TEMP/measured"'),
        *("torch-history check results/", ".ci/commit"),
    ]
    assert in_turn == sorted(in_turn, key=found["commit"].index)
    handed_over = [re.findall(r"path: (.*)", found[job]) for job in ("measure", "commit")]
    measured, code = "${{ runner.temp }}/measured", "results/code"
    assert handed_over == [[code, measured], [measured, code]]
    assert found["commit"].index(f"path: {code}") < found["commit"].index("torch-history check results/")
    assert 'tools.measured take "$RUNNER_TEMP/measured"' in found["measure"]


@pytest.fixture
def data(tmp_path) -> Path:
    """The site's data of one lane whose newest release is 2.1.0, after 2.0.1."""
    folder = tmp_path / "data"
    folder.mkdir()
    lanes = [{"id": "machine.release-py3.11"}, {"id": "measured.one-release"}]
    (folder / "index.json").write_text(json.dumps({"lanes": lanes}))
    newest = {"machine": MACHINE, "environment": "release-py3.11", "old": "v2.0.1", "new": "v2.1.0"}
    (folder / "machine.release-py3.11-newest.json").write_text(json.dumps(newest))
    return folder


def report(data: Path, command: Path, where: Path = ROOT, code: int = 0) -> subprocess.CompletedProcess[str]:
    folder = data.parent
    program(folder / "gh", GH)
    (folder / "titles").touch()
    files = {name.upper(): str(folder / name) for name in ("titles", "body")}
    surroundings = {**os.environ, **files, "PATH": f"{folder}:{os.environ['PATH']}", "TORCH_HISTORY": str(command)}
    return ran(ROOT / ".ci" / "report-regressions", data, cwd=where, env=surroundings, code=code)


@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not here")
def test_a_release_that_costs_gets_one_issue(data, lab):
    command = Path(sys.executable).with_name("torch-history")
    title = f"v2.1.0 costs something on {MACHINE} in release-py3.11"
    report(data, command, lab)
    assert (data.parent / "titles").read_text().splitlines() == [title]
    assert "HUNGRIER" in (data.parent / "body").read_text()
    again = report(data, command, lab)
    assert "There is an issue already" in again.stdout
    assert (data.parent / "titles").read_text().splitlines() == [title]


@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not here")
@pytest.mark.parametrize(("status", "expected"), [(0, "costs nothing"), (1, "something went wrong")])
def test_a_release_that_costs_nothing_gets_none_and_an_error_is_no_regression(data, status, expected):
    command = program(data.parent / "command", f"[ {status} = 0 ] || echo something went wrong >&2\nexit {status}")
    answer = report(data, command, code=status)
    assert expected in answer.stdout + answer.stderr
    assert (data.parent / "titles").read_text() == ""


def git(folder: Path, *command: str) -> str:
    return ran("git", "-C", folder, *command).stdout.strip()


def test_results_are_pushed_although_somebody_else_pushed_meanwhile(clones):
    before = git(clones["origin"], "ls-tree", "-r", "--name-only", "main").splitlines()
    for name in ("machine", "somebody"):
        (clones[name] / "results" / name).write_text(name)
        (clones[name] / "other").write_text("not asked for")
        ran(ROOT / ".ci" / "commit", f"Results of {name}", "results", cwd=clones[name])
    log = git(clones["origin"], "log", "--format=%s", "main").splitlines()
    assert log == ["Results of somebody", "Results of machine", "Begun"]
    after = git(clones["origin"], "ls-tree", "-r", "--name-only", "main").splitlines()
    assert {*after} - {*before} == {"results/machine", "results/somebody"}
    assert "Nothing changed in results." in committed(clones["somebody"]).stdout


LAUNCHES = Path("results", MACHINE, "v2.15.0-release-py3.11.jsonl")
OTHER = Path("results", "another-machine", "v2.15.0-release-py3.11.jsonl")


@pytest.fixture
def clones(tmp_path) -> dict[str, Path]:
    """An origin with the results of two machines, and a clone for one of them and for somebody else."""
    origin, first = tmp_path / "origin", tmp_path / "first"
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch", "main", origin], check=True)
    clone(origin, first)
    write_lab(first)
    (first / OTHER).parent.mkdir()
    (first / OTHER).write_text((first / LAUNCHES).read_text())
    record = json.loads((first / LAUNCHES).with_name("machine.json").read_text())
    (first / OTHER).with_name("machine.json").write_text(json.dumps({**record, "machine": OTHER.parent.name}))
    pushed(first, "Begun")
    return {"origin": origin, **{name: clone(origin, tmp_path / name) for name in ("machine", "somebody")}}


def clone(origin: Path, folder: Path) -> Path:
    ran("git", "clone", "--quiet", origin, folder)
    return folder


def pushed(folder: Path, message: str) -> None:
    git(folder, "add", "--all")
    author = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    git(folder, *author, "commit", "--quiet", "--message", message)
    git(folder, "push", "--quiet", "origin", "HEAD:main")


def measured(checkout: Path, what: str, folder: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    here = {"PYTHONPATH": str(ROOT), "TORCH_HISTORY_MACHINE": MACHINE, "TORCH_HISTORY_DEVICE": "cpu"}
    return ran(sys.executable, "-m", "tools.measured", what, folder, cwd=checkout, env=os.environ | here, code=code)


def committed(checkout: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    return ran(ROOT / ".ci" / "commit", "Measured", "results", cwd=checkout, code=code)


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


def append(path: Path, name: str) -> str:
    """A launch of another id, after the others of a file."""
    line = json.dumps({**json.loads(lines_of(path)[0]), "launch": name}, separators=(",", ":"))
    path.write_text("".join(f"{each}\n" for each in [*lines_of(path), line]))
    return line


def test_a_line_that_others_added_or_excluded_meanwhile_stays_so(clones, tmp_path):
    machine, somebody = clones["machine"], clones["somebody"]
    mine = append(machine / LAUNCHES, "mine")
    theirs = [append(somebody / OTHER, "theirs"), append(somebody / LAUNCHES, "of the same kind of machine")]
    kept = lines_of(somebody / LAUNCHES)
    excluded = kept.pop(3)
    (somebody / LAUNCHES).write_text("".join(f"{line}\n" for line in kept))
    pushed(somebody, "Two lines more, one excluded")

    answer = measured(machine, "take", tmp_path / "handed-over")
    assert "1 new lines of a-laboratory-4-cores" in answer.stdout, answer.stderr
    assert lines_of(tmp_path / "handed-over" / LAUNCHES.relative_to("results")) == [mine]
    for again in range(2):
        commits = clone(clones["origin"], tmp_path / f"commits-{again}")
        answer = measured(commits, "add", tmp_path / "handed-over")
        answer = committed(commits)
        assert ("Nothing changed" in answer.stdout) == bool(again)

    now = clone(clones["origin"], tmp_path / "now")
    assert lines_of(now / LAUNCHES) == [*kept, mine]
    assert excluded not in lines_of(now / LAUNCHES)
    assert theirs[0] in lines_of(now / OTHER)
    assert git(now, "diff", "--numstat", "HEAD~1").split() == ["1", "0", str(LAUNCHES)]


def test_a_machine_that_lost_lines_hands_nothing_over(clones, tmp_path):
    machine = clones["machine"]
    append(machine / LAUNCHES, "mine")
    for lost in (lines_of(machine / LAUNCHES)[1:], []):
        (machine / LAUNCHES).write_text("".join(f"{line}\n" for line in lost))
        if not lost:
            (machine / LAUNCHES).unlink()
        answer = measured(machine, "take", tmp_path / "handed-over", code=1)
        assert re.search(r"lacks \d+ lines that are committed. Nothing was copied", answer.stderr)
        assert not (tmp_path / "handed-over").exists()


def test_a_machine_adds_to_its_own_folder_alone(clones, tmp_path):
    measured(clones["machine"], "take", tmp_path / "handed-over")
    shutil.copytree((clones["machine"] / OTHER).parent, tmp_path / "handed-over" / "another-machine")
    answer = measured(clones["somebody"], "add", tmp_path / "handed-over", code=1)
    assert "adds to its own folder alone" in answer.stderr
    assert git(clones["somebody"], "status", "--short", "results") == ""


def test_a_commit_that_removes_from_the_results_is_refused(clones):
    somebody = clones["somebody"]
    append(somebody / OTHER, "theirs")
    pushed(somebody, "One line more")
    before = git(clones["origin"], "rev-parse", "main")
    for path in (OTHER, OTHER.with_name("machine.json")):
        git(somebody, "reset", "--quiet", "--hard")
        if path == OTHER:  # as where results of before are laid over those of now
            shutil.copy(clones["machine"] / OTHER, somebody / OTHER)
        else:
            (somebody / path).unlink()
        answer = committed(somebody, code=1)
        assert "A measurement only adds to the results" in answer.stderr
        assert str(path) in answer.stderr
        assert git(clones["origin"], "rev-parse", "main") == before


def test_of_two_who_add_to_one_file_at_once_the_later_is_told_to_begin_again(clones):
    append(clones["somebody"] / LAUNCHES, "theirs")
    mine = append(clones["machine"] / LAUNCHES, "mine")
    committed(clones["somebody"])
    before = git(clones["origin"], "rev-parse", "main")
    answer = committed(clones["machine"], code=1)
    assert "Nothing was pushed: run this job again" in answer.stderr
    assert git(clones["origin"], "rev-parse", "main") == before
    assert mine in lines_of(clones["machine"] / LAUNCHES)
