"""Is each file of the results read within bounds, and taken for what it is? What is not is named, and ends nothing else."""

import functools
import json
import os
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import ROOT, program, ran, torch_history
from tests.test_certificates import TOLD, write
from tests.test_evidence import EVIDENCE
from tests.test_robust import RESULTS, Change, changed
from torch_history.measuring.kit.check import check
from torch_history.measuring.subjects import OwnWorkload
from torch_history.releases.axis import Axis
from torch_history.store import causes
from torch_history.store.details import add_details
from torch_history.store.launches import Launch, read_launches
from torch_history.system.errors import SessionError

from .material import ENVIRONMENT, RELEASES, command, file_of, fill, within

NESTED = 100_000
SECONDS = 120
"""In which a command has to answer, also on a busy machine."""


@pytest.fixture
def whole(results) -> Path:
    """Results with a file of every kind."""
    here = fill(results)
    lines = file_of(here, "jsonl").read_bytes()
    (here / "calibration").mkdir()
    path = here / "calibration" / f"{RELEASES[0]}-{ENVIRONMENT}.jsonl"
    path.write_bytes(lines.replace(b'"launch":"', b'"launch":"x'))
    add_details(file_of(here, "recorded"), "s", {"q 'a' 'small'": {"kernels": {"a": 1}}})
    causes.write(results, "here", EVIDENCE)
    write(results, TOLD)
    (results / "NOTES.md").write_text("notes")
    (results / "exclusions.jsonl").write_text("")
    return results


def every_file(results: Path) -> list[Path]:
    return sorted(path for path in results.rglob("*") if path.is_file())


def odd(elsewhere: Path) -> dict[str, Callable[[Path], object]]:
    """What may lie where a file is expected, in words -> what makes it there."""
    return {
        **{"a pipe": os.mkfifo, "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero")},
        "a link to /dev/urandom": lambda path: path.symlink_to("/dev/urandom"),
        "a link to nothing": lambda path: path.symlink_to("nothing"),
        "a link to a file elsewhere": lambda path: path.symlink_to(elsewhere),
        **{"a link to itself": lambda path: path.symlink_to(path.name), "a folder": Path.mkdir},
        "nested lists": lambda path: path.write_text("[" * NESTED),
        "nested objects": lambda path: path.write_text('{"facts":' * NESTED),
        "a sparse file of 100 GB": lambda path: os.truncate(path, 100 * 2**30) if not path.write_bytes(b"") else None,
    }


def removed(path: Path) -> None:
    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def said_by_check(results: Path) -> str:
    """What `check` prints, which must be within bounds of time and memory."""

    axis = Axis.load("releases.toml")
    return "\n".join(within(SECONDS, lambda: check(results, axis).problems))


def test_every_file_is_named_that_is_something_else(whole, tmp_path, warned, attacks):
    attack, elsewhere = attacks("foreign"), tmp_path / "elsewhere"
    usual = said_by_check(whole)

    def read() -> tuple[list[Launch], int]:
        return list(read_launches(whole, "here")), command("compare", *RELEASES, "--machine", "here").exit_code

    stored, _ = read()
    for path in every_file(whole):
        kept = path.read_bytes()
        others = [one for one in stored if path != file_of(whole / "here", "jsonl", one.release)]
        elsewhere.write_bytes(kept)
        for words, make in odd(elsewhere).items():
            if path.name == "NOTES.md" and words.startswith(("nested", "a sparse")):
                continue  # nobody reads it
            with attack(f"{words} called {path.relative_to(whole)}"):
                path.unlink()
                make(path)
                try:
                    said = said_by_check(whole)
                    new = [line for line in said.splitlines() if line not in usual.splitlines()]
                    assert any(repr(str(path))[:-1] in line for line in new), said
                    found, _ = within(SECONDS, read)
                    assert found == others
                finally:
                    removed(path)
                    path.write_bytes(kept)


def test_publish_leaves_out_what_is_something_else_and_shows_the_rest(whole, tmp_path, warned, attacks):
    attack, elsewhere = attacks("foreign"), tmp_path / "elsewhere"
    for number, (words, make) in enumerate(odd(elsewhere).items()):
        there = whole / f"there-{number}"
        shutil.copytree(whole / "here", there)
        for path in every_file(there):
            if path.parent != there or path.suffix != ".jsonl" or path.name.startswith(RELEASES[0]):
                elsewhere.write_bytes(path.read_bytes())
                path.unlink()
                make(path)
        with attack(f"a machine all of whose files are {words}"):
            assert shown(whole, tmp_path / "html") >= {"here", there.name}
    for words, make in odd(elsewhere).items():
        with attack(f"a list of benchmarks that is {words}"):
            listed = whole / "benchmarks.json"
            kept = listed.read_bytes()
            listed.unlink()
            make(listed)
            found = within(SECONDS, lambda: command("publish", "--html-dir", str(tmp_path / "no"), *of(whole)).stderr)
            removed(listed)
            listed.write_bytes(kept)
            assert "benchmarks.json is missing or damaged" in found


def of(results: Path) -> tuple[str, str]:
    return "--results-dir", str(results)


def shown(results: Path, html: Path) -> set[str]:
    def published() -> str:
        found = command("publish", "--html-dir", str(html), *of(results))
        assert found.exit_code == 0, found.output
        return (html / "data" / "index.json").read_text()

    return {lane["machine"] for lane in json.loads(within(SECONDS, published))["lanes"]}


RECORDS: dict[str, Change] = {
    "a processor of 200,000 letters": lambda of: of.update(cpu="x" * 200_000),
    "3,000 keys": lambda of: of.update({f"key{i}": "x" for i in range(3000)}),
    "a processor that is a list": lambda of: of.update(cpu=[["x"]]),
    "a processor that moves a terminal": lambda of: of.update(cpu="\x1b[31m"),
}


def copied(here: Path, machine: str) -> Path:
    """The results of `here` as those of a machine of that name."""
    folder = shutil.copytree(here, here.with_name(machine))
    for path in folder.glob("*.json"):
        path.write_text(path.read_text().replace('"here"', json.dumps(machine)))
    return folder


def test_files_in_asvs_formats_are_held_against_what_asv_writes(results, tmp_path, warned, attacks):
    here, attack = fill(results), attacks("asv")
    for name, changes in ((file_of(here, "json").name, RESULTS), ("machine.json", RECORDS)):
        for number, (words, change) in enumerate(changes.items()):
            folder = copied(here, f"m{len(name)}-{number}")
            with attack(f"{name}: {words}"):
                changed(folder / name, change)
                said = said_by_check(results)
                assert repr(str(folder / name)) in said, said
                assert "is no whole result file" in said or name == "machine.json"
    with attack("all of them published"):
        assert shown(results, tmp_path / "html") >= {"here", f"m{len('machine.json')}-0"}


def test_many_machines_with_keys_of_their_own_are_published_together(results, tmp_path, warned, attacks):
    here, attack = fill(results), attacks("asv")
    for number in range(30):
        folder = copied(here, f"m{number}")
        for release in RELEASES:
            keys = {f"key {number} {i} {'k' * 60}": "x" for i in range(10)}
            changed(file_of(folder, "json", release), lambda of, keys=keys: of["params"].update(keys))  # type: ignore[misc]
    with attack("300 keys, each on one machine"):
        assert shown(results, tmp_path / "html") >= {"here", "m29"}


def test_a_copy_is_no_other_machine_and_a_release_is_its_own(results, warned, attacks):
    here, attack = fill(results), attacks("identity")
    usual = said_by_check(results)
    for place in ("copy", "here/calibration"):
        with attack(f"launches of here in {place}"):
            target = results / place
            if place == "copy":
                shutil.copytree(here, target)
            else:
                target.mkdir()
                shutil.copy(file_of(here, "jsonl"), target)
            said = said_by_check(results)
            assert "its lines are copies: the launch" in said
            assert "copies" not in usual
            shutil.rmtree(target)
    path = file_of(here, "jsonl")
    kept = path.read_bytes()
    for torch in (b"2.15.0+cpu", b"9.9.9", b"", b"2.0.1.dev1"):
        with attack(f"torch {torch!r} as {RELEASES[0]}"):
            lines = [json.loads(line) for line in kept.splitlines()]
            for line in lines:
                line["facts"]["torch"] = torch.decode()
                line.pop("crc32")
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            assert f"it was measured on torch {torch.decode()!r}, which is not {RELEASES[0]}" in said_by_check(results)
            path.write_bytes(kept)


def test_no_repository_no_folder_and_no_link_is_taken_for_results(whole, tmp_path, warned, attacks):
    attack, ran = attacks("repositories"), tmp_path / "ran"
    usual = said_by_check(whole).splitlines()
    for place in ("", "certificates", "here", "here/causes", "here/calibration"):
        for name, make in {
            **{"nested": lambda path: repository(path, ran), ".git": lambda path: repository(path.parent, ran)},
            "x.damaged-1": lambda path: path.write_text("damaged"),
            **{"y.damaged-1": lambda path: repository(path, ran), "link": lambda path: path.symlink_to(tmp_path)},
            "folder": Path.mkdir,
        }.items():
            path = whole / place / name
            with attack(f"{name} in results/{place}"):
                make(path)
                new = [line for line in said_by_check(whole).splitlines() if line not in usual]
                assert any(repr(str(path))[:-1] in line for line in new), new
                assert not ran.exists(), "git ran what a stranger's repository names"
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def repository(folder: Path, ran: Path) -> None:
    """A repository whose settings let git run a program, which leaves a file."""
    runs = program(ran.with_name("program"), f"touch {ran}")
    author = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run(["git", "-C", folder, *author, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run(["git", "-C", folder, "config", "core.fsmonitor", runs], check=True)


def test_a_repository_within_the_results_is_not_committed(tmp_path, attacks):
    attack = attacks("repositories")
    subprocess.run(["git", "init", "-q", tmp_path / "checkout"], check=True)
    for place in ("results", "results/certificates", "results/here/causes"):
        folder = tmp_path / "checkout" / place
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "file").write_text("x")
        with attack(f"a repository, and a bare one, in {place}"):
            repository(folder / "nested", tmp_path / "ran")
            said = ran(ROOT / ".ci" / "commit", "x", "results", cwd=tmp_path / "checkout", code=1)
            assert f"{place}/nested/.git" in said.stderr
            log = ["git", "-C", str(tmp_path / "checkout"), "log", "--oneline"]
            assert ran(*log, code=None).stdout == ""
            subprocess.run(["git", "-C", tmp_path / "checkout", "status"], capture_output=True, check=True)
            assert not (tmp_path / "ran").exists()
            for part in (folder / "nested" / ".git").iterdir():
                part.rename(folder / "nested" / part.name)
            (folder / "nested" / ".git").rmdir()
            said = ran(ROOT / ".ci" / "commit", "x", "results", cwd=tmp_path / "checkout", code=1)
            assert f"{place}/nested/HEAD" in said.stderr
            shutil.rmtree(folder / "nested")


@pytest.mark.parametrize("asked", ["publish", "compare", "check"])
def test_too_little_memory_is_a_sentence(results, tmp_path, attacks, asked):
    fill(results)
    attack = attacks("memory")
    words = {
        "publish": ("publish", "--html-dir", str(tmp_path / "html"), *of(results)),
        "compare": ("compare", *RELEASES),
        "check": ("check", str(results)),
    }[asked]
    for mebibytes in (150, 250, 500, 1000):
        with attack(f"{asked} with {mebibytes} MiB"):
            limit = functools.partial(resource.setrlimit, resource.RLIMIT_AS, (mebibytes * 2**20,) * 2)
            how = {"env": {**os.environ, "HOME": str(tmp_path)}, "timeout": SECONDS, "preexec_fn": limit}
            said = torch_history(*words, code=1, **how)
            assert f"may use {mebibytes} MiB" in said.stderr
            assert "Traceback" not in said.stderr


def test_memory_that_runs_out_is_a_sentence(results, tmp_path, monkeypatch, attacks):
    fill(results)
    attack = attacks("memory")

    def raises(*_: object) -> None:
        raise MemoryError

    for place in ("link_readable", "lanes", "_told", "_write_pages"):
        with attack(f"in {place}"), monkeypatch.context() as patched:
            patched.setattr(f"torch_history.site.build.{place}", raises)
            said = command("publish", "--html-dir", str(tmp_path / "html"), *of(results))
            assert said.exit_code == 1
            assert "Memory ran out" in said.stderr


def test_a_file_to_be_measured_is_a_file_and_takes_no_modules_name(tmp_path, monkeypatch, attacks):
    monkeypatch.setenv("HOME", str(tmp_path))
    attack = attacks("own files")
    text = "functions = {'f': lambda x: x}\ndef inputs():\n    return 1\n"
    makers: dict[str, Callable[[Path], object]] = {
        "pipe.py": os.mkfifo,
        "zero.py": lambda path: path.symlink_to("/dev/zero"),
        "folder.py": Path.mkdir,
        "large.py": lambda path: path.write_text("#" * 2**23),
        "deep.py": lambda path: path.write_text("x = " + "-" * 200_000 + "1"),
        "null.py": lambda path: path.write_text("x = 1\0"),
        **{
            f"{name}.py": lambda path: path.write_text(text)
            for name in ("torch", "numpy", "json", "random", "workloads")
        },
    }
    for name, make in makers.items():
        with attack(name):
            make(tmp_path / name)
            said = within(SECONDS, lambda: refusal(tmp_path / name))  # noqa: B023
            assert "cannot be measured" in said, said
            assert name.partition(".")[0] in said
    for kind in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        with attack(f"it needs {kind}"):
            (tmp_path / "mine.py").write_text(f'needs = ["data"]\n{text}')
            (tmp_path / "data").unlink(missing_ok=True)
            kind(tmp_path / "data")
            said = within(SECONDS, lambda: refusal(tmp_path / "mine.py"))
            assert "which it needs: it is no regular file" in said


def refusal(path: Path) -> str:
    try:
        OwnWorkload.of(path)
    except SessionError as error:
        return str(error)
    return "it was taken"
