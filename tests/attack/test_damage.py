"""What becomes of a file that is cut off anywhere, or in which one bit flips? It is named or left out; no number changes."""

import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from asv import util

from tests.test_launches import some_launch
from tests.test_robust import session
from torch_history.analysis import calibration
from torch_history.cli import suite
from torch_history.releases import environments, pins
from torch_history.releases.axis import Axis
from torch_history.site.asv_dashboard import link_readable
from torch_history.store.asv_results import load_asvs
from torch_history.store.launches import append_launches, read_environment, read_launches
from torch_history.store.machines import record_of
from torch_history.system.errors import UserError
from torch_history.system.files import warn

from .material import ENVIRONMENT, RELEASES, command, file_of, fill
from .tally import Attacks

CUTS = 40
FLIPS = 150
"""Cuts and flips of a file."""


def tried(path: Path, read: Callable[[], object], checksum: bool, cuts: int = CUTS, flips: int = FLIPS) -> None:
    """Calls `read`, which raises where the damage was not survived, after each damage to the file; mends it at the end."""
    whole = path.read_bytes()
    cut, flipped = Attacks("cut"), Attacks("flipped" if checksum else "flipped without")

    def damaged(attack: Attacks, words: str, data: bytes) -> None:
        with attack(f"{path.name}: {words}"):
            warn.cache_clear()
            path.write_bytes(data)
            read()

    for _ in range(cuts):
        end = cut.random.randrange(len(whole))
        damaged(cut, f"cut at byte {end} of {len(whole)}", whole[:end])
    for _ in range(flips):
        byte, bit = cut.random.randrange(len(whole)), cut.random.randrange(8)
        flip = bytes([whole[byte] ^ 1 << bit])
        words = f"bit {bit} of byte {byte} flipped, {whole[max(0, byte - 20) : byte + 20]!r}"
        damaged(flipped, words, whole[:byte] + flip + whole[byte + 1 :])
    path.write_bytes(whole)
    cut.all_survived()
    flipped.all_survived()


@contextlib.contextmanager
def naming(words: str) -> Iterator[None]:
    """What is refused meanwhile is refused in a sentence with these words."""
    try:
        yield
    except (UserError, util.UserError) as error:
        told = str(error)
        assert words in told


def test_launches(results, warned):
    here = fill(results)
    path = file_of(here, "jsonl")
    whole = list(read_launches(results, "here"))
    others = [launch for launch in whole if launch.release != RELEASES[0]]

    def read() -> None:
        warned.clear()
        found = list(read_launches(results, "here"))
        wrong = [launch for launch in found if launch not in whole]
        assert not wrong, f"another number was read: {wrong[0]}"
        assert [launch for launch in found if launch in others] == others
        told = any(str(path) in sentence for sentence in warned)
        missing = len(found) < len(others) + path.read_bytes().count(b"\n")
        assert told or not missing, "a line is left out without a word"

    tried(path, read, checksum=True)


def test_launches_are_compared_whatever_is_left(results, warned):
    path = file_of(fill(results), "jsonl")
    asked = ("compare", *RELEASES, "--machine", "here", "--json")
    whole = json.loads(command(*asked).stdout)["changes"]
    numbers = {(change["benchmark"], *change["parameters"]): (change["old"], change["new"]) for change in whole}

    def read() -> None:
        found = command(*asked)
        for change in json.loads(found.stdout)["changes"] if found.exit_code == 0 else ():
            wanted = numbers[change["benchmark"], *change["parameters"]]
            assert change["old"] in (wanted[0], None)
            assert change["new"] in (wanted[1], None)

    tried(path, read, checksum=True, cuts=10, flips=15)


def test_environments(results, warned):
    path = file_of(fill(results), "environments")
    whole = read_environment(results, "here", RELEASES[0], ENVIRONMENT)

    def read() -> None:
        found = read_environment(results, "here", RELEASES[0], ENVIRONMENT)
        assert found in (whole, {}), f"another environment was read: {found}"

    tried(path, read, checksum=True)


def test_old_lines_have_no_checksum_and_are_read_as_before(lab, tmp_path, warned):
    """Lines of before checksums: a flipped bit may change a number there, and stops nothing."""
    source = next(path for path in sorted((lab / "results").glob("*/*.jsonl")) if path.stat().st_size > 5000)
    path = tmp_path / "here" / source.name
    path.parent.mkdir()
    path.write_bytes(b"".join(source.read_bytes().splitlines(keepends=True)[:4]))
    count = len(list(read_launches(tmp_path, "here")))
    assert count == 4

    def read() -> None:
        assert len(list(read_launches(tmp_path, "here"))) <= count + 1

    tried(path, read, checksum=False, flips=100)


def test_results_of_asv_and_records_of_machines(results, warned):
    here = fill(results)

    def read() -> None:
        try:
            load_asvs(file_of(here, "json"))
        except ValueError as error:
            told = str(error)
            assert told.startswith("it ")

    def record() -> None:
        assert record_of(here)["machine"] == "here"

    tried(file_of(here, "json"), read, checksum=False)
    tried(here / "machine.json", record, checksum=False)


def test_list_of_benchmarks(results, tmp_path):
    fill(results)
    conf = suite.load().config()

    def read() -> None:
        with naming("benchmarks.json"), tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            link_readable(conf, Path(folder))

    tried(results / "benchmarks.json", read, checksum=False, flips=60)


def test_state_of_a_session(results, tmp_path, warned):
    here = fill(results)
    (first, *_) = read_launches(results, "here")
    state = session(tmp_path).state
    state.write_text(json.dumps({"id": first.session, "finished": False}))
    assert session(tmp_path).resumed

    def read() -> None:
        found = session(tmp_path)
        assert isinstance(found.id, str)
        assert not found.finished, "nothing was measured, and the session counts as finished"

    tried(state, read, checksum=False, cuts=15, flips=25)
    assert here.exists()


def test_list_and_lock_of_releases(root, tmp_path):
    releases, lock = (Path(shutil.copy(root / name, tmp_path)) for name in ("releases.toml", "releases.lock"))
    newest = Axis.load(releases).newest

    def axis() -> None:
        with naming("releases.toml"):
            assert Axis.load(releases).releases

    def locked() -> None:
        with naming("releases.lock"):
            pins.locked_packages(newest, "3.11", lock)

    tried(releases, axis, checksum=False, cuts=20, flips=40)
    tried(lock, locked, checksum=False, cuts=10, flips=20)


def test_configuration_of_asv(root, tmp_path, monkeypatch):
    for name in ("releases.toml", "asv.conf.json"):
        shutil.copy(root / name, tmp_path)
    monkeypatch.chdir(tmp_path)

    def read() -> None:
        monkeypatch.chdir(tmp_path)
        found = command("compare", "2.0.1", "2.1.0", "--machine", "nobody")
        assert found.exit_code == 1

    tried(tmp_path / "asv.conf.json", read, checksum=False, cuts=15, flips=25)


def test_mark_of_an_environment(tmp_path):
    folder = tmp_path / "v2.0.1-py3.11"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch()
    mark = folder / environments.MARK
    mark.write_text(json.dumps({"requirements": ["torch==2.0.1"], "packages": ["numpy==1.26.4"]}))
    whole = mark.read_bytes()
    assert environments.is_ready(folder, ["torch==2.0.1"])

    def read() -> None:
        if environments.is_ready(folder, ["torch==2.0.1"]):
            left = mark.read_bytes()
            assert len(left) == len(whole), "an environment whose mark was cut off counts as finished"
            assert b'"requirements": ["torch==2.0.1"]' in left, "one with other requirements counts as finished"

    tried(mark, read, checksum=False)


def test_calibrations(tmp_path, warned):
    path = tmp_path / "here" / calibration.FOLDER / f"v2.0.1-{ENVIRONMENT}.jsonl"
    names = ("intersection.Intersection.track_time", "intersection.Intersection.track_peak_memory")
    arms = [
        some_launch(release=arm, round=turn, benchmark=name)
        for arm in (calibration.FIRST, calibration.SECOND, calibration.LONGER)
        for turn in (1, 2, 3)
        for name in names
    ]
    append_launches(path, arms)
    calibration.read(path)

    def read() -> None:
        with naming(path.name):
            assert calibration.read(path).missed is not None

    tried(path, read, checksum=False, cuts=15, flips=20)
