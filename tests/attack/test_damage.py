"""What becomes of a file that is cut off anywhere, or in which one bit flips? It is named or left out; no number changes."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
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


def damages(whole: bytes, attacks: Any, cuts: int = CUTS, flips: int = FLIPS) -> Iterator[tuple[str, str, bytes]]:
    """The kind of damage, in words, and the file: cut at random bytes, and with random bits flipped."""
    for _ in range(cuts):
        end = attacks.random.randrange(len(whole))
        yield "cut", f"cut at byte {end} of {len(whole)}", whole[:end]
    for _ in range(flips):
        byte, bit = attacks.random.randrange(len(whole)), attacks.random.randrange(8)
        data = bytearray(whole)
        data[byte] ^= 1 << bit
        yield "flipped", f"bit {bit} of byte {byte} flipped, {whole[max(0, byte - 20) : byte + 20]!r}", bytes(data)


@pytest.fixture
def both() -> Iterator[dict[str, Attacks]]:
    """Cuts and flips by kind; a test that uses them fails at its end where one was not survived."""
    found = {kind: Attacks(kind) for kind in ("cut", "flipped", "flipped without")}
    yield found
    for attack in found.values():
        if attack.tried:
            attack.all_survived()


def tried(path: Path, both: dict[str, Attacks], read: Callable[[bytes], None], checksum: bool, **counts: int) -> None:
    """Calls `read`, which raises where the damage was not survived, after each damage to the file; mends it at the end."""
    whole = path.read_bytes()
    for kind, words, data in damages(whole, both["cut"], **counts):
        with both["flipped without" if kind == "flipped" and not checksum else kind](f"{path.name}: {words}"):
            warn.cache_clear()
            path.write_bytes(data)
            read(data)
    path.write_bytes(whole)


def test_launches(results, warned, both):
    here = fill(results)
    path = file_of(here, "jsonl")
    whole = list(read_launches(results, "here"))
    others = [launch for launch in whole if launch.release != RELEASES[0]]

    def read(data: bytes) -> None:
        warned.clear()
        found = list(read_launches(results, "here"))
        wrong = [launch for launch in found if launch not in whole]
        assert not wrong, f"another number was read: {wrong[0]}"
        assert [launch for launch in found if launch in others] == others
        told = any(str(path) in sentence for sentence in warned)
        missing = len(found) < len(others) + data.count(b"\n")
        assert told or not missing, "a line is left out without a word"

    tried(path, both, read, checksum=True)


def test_launches_are_compared_whatever_is_left(results, warned, both):
    path = file_of(fill(results), "jsonl")
    asked = ("compare", *RELEASES, "--machine", "here", "--json")
    whole = json.loads(command(*asked).stdout)["changes"]
    numbers = {(change["benchmark"], *change["parameters"]): (change["old"], change["new"]) for change in whole}

    def read(data: bytes) -> None:
        found = command(*asked)
        for change in json.loads(found.stdout)["changes"] if found.exit_code == 0 else ():
            wanted = numbers[change["benchmark"], *change["parameters"]]
            assert change["old"] in (wanted[0], None)
            assert change["new"] in (wanted[1], None)

    tried(path, both, read, checksum=True, cuts=10, flips=15)


def test_environments(results, warned, both):
    path = file_of(fill(results), "environments")
    whole = read_environment(results, "here", RELEASES[0], ENVIRONMENT)

    def read(data: bytes) -> None:
        found = read_environment(results, "here", RELEASES[0], ENVIRONMENT)
        assert found in (whole, {}), f"another environment was read: {found}"

    tried(path, both, read, checksum=True)


def test_old_lines_have_no_checksum_and_are_read_as_before(lab, tmp_path, warned, both):
    """Lines of before checksums: a flipped bit may change a number there, and stops nothing."""
    source = next(path for path in sorted((lab / "results").glob("*/*.jsonl")) if path.stat().st_size > 5000)
    path = tmp_path / "here" / source.name
    path.parent.mkdir()
    path.write_bytes(b"".join(source.read_bytes().splitlines(keepends=True)[:4]))
    count = len(list(read_launches(tmp_path, "here")))
    assert count == 4

    def read(data: bytes) -> None:
        assert len(list(read_launches(tmp_path, "here"))) <= count + 1

    tried(path, both, read, checksum=False, flips=100)


def test_results_of_asv_and_records_of_machines(results, warned, both):
    here = fill(results)

    def read(data: bytes) -> None:
        try:
            load_asvs(file_of(here, "json"))
        except ValueError as error:
            told = str(error)
            assert told.startswith("it ")

    def record(data: bytes) -> None:
        assert record_of(here)["machine"] == "here"

    tried(file_of(here, "json"), both, read, checksum=False)
    tried(here / "machine.json", both, record, checksum=False)


def test_list_of_benchmarks(results, tmp_path, both):
    fill(results)
    conf = suite.load().config()

    def read(data: bytes) -> None:
        try:
            with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
                link_readable(conf, Path(folder))
        except (UserError, util.UserError) as error:
            told = str(error)
            assert "benchmarks.json" in told

    tried(results / "benchmarks.json", both, read, checksum=False, flips=60)


def test_state_of_a_session(results, tmp_path, warned, both):
    here = fill(results)
    (first, *_) = read_launches(results, "here")
    state = session(tmp_path).state
    state.write_text(json.dumps({"id": first.session, "finished": False}))
    assert session(tmp_path).resumed

    def read(data: bytes) -> None:
        found = session(tmp_path)
        assert isinstance(found.id, str)
        assert not found.finished, "nothing was measured, and the session counts as finished"

    tried(state, both, read, checksum=False, cuts=15, flips=25)
    assert here.exists()


def test_list_and_lock_of_releases(root, tmp_path, both):
    releases, lock = (Path(shutil.copy(root / name, tmp_path)) for name in ("releases.toml", "releases.lock"))
    newest = Axis.load(releases).newest

    def axis(data: bytes) -> None:
        try:
            assert Axis.load(releases).releases
        except (UserError, util.UserError) as error:
            told = str(error)
            assert "releases.toml" in told

    def locked(data: bytes) -> None:
        try:
            pins.locked_packages(newest, "3.11", lock)
        except (UserError, util.UserError) as error:
            told = str(error)
            assert "releases.lock" in told

    tried(releases, both, axis, checksum=False, cuts=20, flips=40)
    tried(lock, both, locked, checksum=False, cuts=10, flips=20)


def test_configuration_of_asv(root, tmp_path, monkeypatch, both):
    for name in ("releases.toml", "asv.conf.json"):
        shutil.copy(root / name, tmp_path)
    monkeypatch.chdir(tmp_path)

    def read(data: bytes) -> None:
        monkeypatch.chdir(tmp_path)
        found = command("compare", "2.0.1", "2.1.0", "--machine", "nobody")
        assert found.exit_code == 1

    tried(tmp_path / "asv.conf.json", both, read, checksum=False, cuts=15, flips=25)


def test_mark_of_an_environment(tmp_path, both):
    folder = tmp_path / "v2.0.1-py3.11"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch()
    mark = folder / environments.MARK
    mark.write_text(json.dumps({"requirements": ["torch==2.0.1"], "packages": ["numpy==1.26.4"]}))

    def read(data: bytes) -> None:
        assert environments.is_ready(folder, ["torch==2.0.1"]) in (True, False)

    tried(mark, both, read, checksum=False)


def test_calibrations(tmp_path, warned, both):
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

    def read(data: bytes) -> None:
        try:
            found = calibration.read(path)
        except (UserError, util.UserError) as error:
            told = str(error)
            assert path.name in told
        else:
            assert found.missed is not None

    tried(path, both, read, checksum=False, cuts=15, flips=20)
