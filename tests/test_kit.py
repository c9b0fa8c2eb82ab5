"""Does a kit measure where nothing can be reached, and does what comes back get filed only where all of it is right?"""

import errno
import json
import lzma
import os
import re
import shlex
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from recorder import certificate
from recorder.build import build
from tools import kit as make
from torch_history.measuring.kit import archive
from torch_history.releases.uv import run_uv
from torch_history.system.errors import UserError

from . import lab
from .lab import AXIS
from .processes import program, ran
from .test_carried import FILE, tar
from .test_releases import environments  # noqa: F401  a fixture

ANSWERS = {
    "format": 1,
    "here": {"torch": "2.15.0", "cuda": "13.2", "gpu": "Tesla T4", "capability": "sm_75", "multiprocessors": 40},
    **{"cases": {"intersection eager small": {"waits": 0, "peak_requested": 1}}, "left_out": {}, "recorder": False},
}


@pytest.fixture
def measured(tmp_path) -> Path:
    """A kit in which a laboratory measured, with a GPU's answers."""
    kit = tmp_path / "kit"
    kit.mkdir()
    (kit / make.MARK).write_text('{"python": "3.12"}')
    lab.write_lab(kit)
    (kit / archive.ANSWERS).write_text(json.dumps(ANSWERS))
    return kit


def packed(kit: Path) -> Path:
    for taken in kit.glob("*.tar.xz"):
        taken.unlink()
    path = archive.pack(kit, kit / "results", kit / archive.ANSWERS)
    assert path
    return path


def file(path: Path, tmp_path: Path) -> archive.Filed:
    (tmp_path / "home").mkdir(exist_ok=True)
    return archive.file(path, tmp_path / "home", tmp_path / "env", AXIS, lambda _: None)


def test_what_a_kit_measured_is_filed_line_by_line_and_once(measured, tmp_path):
    path = packed(measured)
    filed = file(path, tmp_path)
    assert filed.machines == [lab.MACHINE]
    theirs = {of.name: of.read_bytes() for of in (measured / "results" / lab.MACHINE).glob("*.jsonl")}
    assert {of.name: of.read_bytes() for of in (tmp_path / "home" / lab.MACHINE).glob("*.jsonl")} == theirs
    assert filed.lines == sum(text.count(b"\n") for text in theirs.values())
    answers = tmp_path / "home" / "certificates" / "v2.15.0-tesla-t4.asked"
    assert (filed.answers, json.loads(answers.read_text())) == (answers, ANSWERS)
    assert file(path, tmp_path).lines == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"round":1', '"round":-1', "things in it are wrong"),
        (r'"version": ?"\w+"', '"version":"0"', "not known here.* measure with a kit that this clone makes"),
    ],
)
def test_nothing_is_filed_where_a_line_is_wrong_or_of_another_version(old, new, said, measured, tmp_path):
    for path in (*(measured / "results" / lab.MACHINE).glob("*.jsonl"), measured / archive.LISTED):
        path.write_text(re.sub(old, new, path.read_text(), count=int(new[-1] == "1")))
    with pytest.raises(UserError, match=said):
        file(packed(measured), tmp_path)
    assert not any((tmp_path / "home").iterdir())


@pytest.mark.parametrize(
    ("folder", "changed", "said"),
    [
        ("home", {"device": "cuda"}, "its device is 'cpu' and not 'cuda'"),
        ("kit/results", {"cpu": "\x1b]0;title\x07"}, "its 'cpu' is no short text that can be printed"),
    ],
)
def test_a_record_of_another_kind_of_machine_or_one_that_would_move_a_terminal_is_refused(
    measured, tmp_path, folder, changed, said
):
    file(packed(measured), tmp_path)
    record = tmp_path / folder / lab.MACHINE / "machine.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), **changed}))
    with pytest.raises(UserError, match=said):
        file(packed(measured), tmp_path)


ELSEWHERE = (
    *("results/../../evil.json", "/etc/passwd", "results/../machine.json", "results/certificates/x.certificate"),
    "results/a/b/c.json",
)
KINDS = (tarfile.SYMTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        *(([(name, FILE, 0)], "which no kit writes") for name in ELSEWHERE),
        *(([("results/a/x.json", kind, 0)], "which no kit writes") for kind in KINDS),
        ([("results/\x1b]0;title\x07/x.json", FILE, 0)], r"holds 'results/\\x1b\]0;title"),
        ([("gpu.json", FILE, 0), ("gpu.json", FILE, 0)], "twice"),
        ([(f"results/a/{number}.json", FILE, 0) for number in range(archive.MOST_FILES + 1)], "more than"),
        ([], "is no archive of a kit"),
        ([("kit.json", FILE, 0)], "holds no results"),
    ],
)
def test_an_archive_that_no_kit_wrote_is_refused(members, words, tmp_path):
    path = tmp_path / "hostile.tar.xz"
    path.write_bytes(tar(*members))
    with pytest.raises(UserError, match=words):
        file(path, tmp_path)
    assert not any((tmp_path / "home").iterdir())


def test_an_archive_that_grows_without_end_is_refused(tmp_path):
    (tmp_path / "bomb.tar.xz").write_bytes(lzma.compress(bytes(archive.MOST_BYTES + 1), preset=0))
    with pytest.raises(UserError, match="more than 64 MiB"):
        file(tmp_path / "bomb.tar.xz", tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("mine.txt", "mine", "files that this program did not make"),
        (make.MARK, '{"a kit": "of a drummer"}', "files that this program did not make"),
        (make.MARK, '{\n "python": "3.12",\n "commit": ""\n}\n', "what it measured"),
    ],
)
def test_a_folder_of_somebody_elses_and_one_that_measured_are_left_alone(name, text, said, tmp_path):
    (tmp_path / name).write_text(text)
    (tmp_path / make.SUITE / "results" / "a-machine").mkdir(parents=True)
    with pytest.raises(UserError, match=f"holds {said}"):
        make.make(tmp_path, "3.12", lambda _: None)
    assert (tmp_path / make.SUITE / "results" / "a-machine").exists()
    assert {path.name for path in tmp_path.iterdir()} == {name, make.SUITE}


COMPILE = """
import pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob("*.py"):
    compile(path.read_bytes(), str(path), "exec")
"""


@pytest.mark.parametrize("python", make.PYTHONS)
def test_what_a_kit_copies_is_understood_by_every_python_that_it_is_made_for(python, tmp_path):
    try:
        found = run_uv(["python", "find", "--no-project", "--system", "--no-python-downloads", python]).strip()
    except subprocess.CalledProcessError:
        pytest.skip(f"Python {python} is not on this machine")
    make._copy(tmp_path)
    ran(found, "-c", COMPILE, str(tmp_path))


def test_what_a_killed_run_left_is_packed_and_what_was_packed_is_not_again(measured):
    ago = time.time() - 100
    os.utime(measured / archive.ANSWERS, (ago, ago))
    (measured / "earlier.tar.xz").touch()
    os.utime(measured / "earlier.tar.xz", (ago + 50, ago + 50))
    path = archive.pack(measured, measured / "results", measured / archive.ANSWERS)
    assert path
    with tarfile.open(path) as stream:
        assert archive.ANSWERS not in stream.getnames()
    assert archive.pack(measured, measured / "results", measured / archive.ANSWERS) is None
    soon = time.time() + 3600
    os.utime(path, (soon, soon))  # a clock that went wrong then, and is right again
    assert archive.pack(measured, measured / "results", measured / archive.ANSWERS) is not None


def test_a_full_disk_leaves_no_archive_that_is_cut_off(measured, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        packed(measured)
    assert not [*measured.glob("*.xz*")]


def test_answers_that_lie_there_already_are_never_replaced(measured, tmp_path):
    file(packed(measured), tmp_path)
    (measured / archive.ANSWERS).write_text(json.dumps({**ANSWERS, "cases": {}}))
    filed = file(packed(measured), tmp_path)
    assert (filed.answers, "holds other answers of that release and card" in filed.why) == (None, True)
    assert json.loads((tmp_path / "home" / "certificates" / "v2.15.0-tesla-t4.asked").read_text()) == ANSWERS


@pytest.mark.parametrize("at", [0.3, 0.6, 0.99])
def test_a_damaged_archive_is_a_sentence(at, measured, tmp_path):
    path = packed(measured)
    data = bytearray(path.read_bytes())
    data[int(at * len(data))] ^= 255
    path.write_bytes(data)
    with pytest.raises(UserError, match="is no archive of a kit, or it is damaged"):
        file(path, tmp_path)


@pytest.mark.releases
def test_a_kit_asks_every_case_and_measures_without_a_network_and_what_it_wrote_is_filed(
    environments,  # noqa: F811
    tmp_path,
    results,
):
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode:
        pytest.skip("a network can be taken away by root only, with `unshare -n`")
    kit, environment = tmp_path / "kit", environments / "v2.15.0-py3.11"
    assert make.make(kit, "3.11", lambda _: None) <= 60 * 2**20  # it travels in one call of a service that takes 64 MiB
    # An interpreter of 2.15.0 that runs on the recorder, which stands in for the card, whatever it inherits.
    variables = build(environment, tmp_path).variables("hopper")
    set_ = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())
    recorded = program(tmp_path / "python", f'{set_}\nexec {environment / "bin" / "python"} "$@"')
    asked = ["--python", str(recorded), "--device", "cpu", "--only", "times"]
    asked += ["--question", "intersection", "--question", "batching"]
    usual = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TORCH_HISTORY_MACHINE": "far"}
    usual["PYTHON"] = str(environment / "bin" / "python")
    command = ["unshare", "-n", str(kit / make.SCRIPT), "--within", "15m", "--rounds", "1", *asked]
    ran(*command, cwd=tmp_path, env=usual)
    told = certificate.read(kit / archive.ANSWERS)
    assert told.recorder
    assert {case: of.failed for case, of in told.cases.items() if of.failed} == {}
    assert len(told.cases) == 7 + 11 * 6 + 13 * 3 + 9 * 18
    (path,) = kit.glob("far-*.tar.xz")
    filed = archive.file(path, results, tmp_path / "env", AXIS, lambda _: None)
    assert (filed.machines, filed.why) == (["far"], "they are the recorder's, and no GPU's")
    text = (results / "far" / "v2.15.0-installed-py3.11.jsonl").read_text()
    assert {line.count("track_time") for line in text.splitlines()} == {1}
    assert all(f"{question}." in text for question in ("intersection", "batching"))
