"""What becomes of what was measured when the disk is full? The file is named, and no half line is taken for whole."""

import contextlib
import errno
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_launches import some_launch
from torch_history.store.launches import append_launches, read_launches
from torch_history.system.files import warn
from torch_history.system.locks import alone

from .material import command, fill, within


@pytest.fixture
def disk(tmp_path) -> Iterator[Path]:
    """A disk of a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], capture_output=True).returncode:
        pytest.skip("a small disk can be mounted by root only")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_full_disk_is_told_with_the_name_of_the_file(results, disk, warned, attacks):
    attack = attacks("full disk")
    path = disk / "here" / "v2.0.1-release-py3.11.jsonl"
    append_launches(path, [some_launch(session="earlier")])
    (disk / "ballast").write_bytes(b"." * (shutil.disk_usage(disk).free - 16384))
    refused = 0
    for _ in range(20):
        with attack("an append"):
            before = list(read_launches(disk, "here"))
            try:
                append_launches(path, [some_launch(session=str(number)) for number in range(8)])
            except OSError as error:
                refused += 1
                code, name = error.errno, str(error.filename)
                assert (code, name) == (errno.ENOSPC, str(path)), "the message would name no file"
                found = list(read_launches(disk, "here"))
                assert found[: len(before)] == before
    assert refused
    with attack("publish"):
        fill(results)
        html = disk / "html"
        said = within(90, lambda: command("publish", "--html-dir", str(html), "--results-dir", str(results)).stderr)
        assert f"{html} cannot be read or written: No space left on device. Make room there, then" in said
        assert {path.name for path in disk.iterdir()} == {"here", "ballast"}
    with contextlib.suppress(OSError):
        (disk / "rest").write_bytes(bytes(2**20))
    with alone(disk):  # as `prune` does, which is to make room
        assert (disk / "running").exists()


def test_file_that_may_not_grow_keeps_its_whole_lines(tmp_path, warned, attacks):
    attack = attacks("full disk")
    path = tmp_path / "here" / "v2.0.1-release-py3.11.jsonl"
    append_launches(path, [some_launch(session="earlier")])
    whole = path.read_bytes()

    def limited(most: int) -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        try:
            append_launches(path, [some_launch(session="later") for _ in range(3)])
        except OSError as error:
            return str(error.filename)
        return "nothing was refused"

    for _ in range(20):
        path.write_bytes(whole)
        most = len(whole) + attack.random.randrange(2 * len(whole))
        with attack(f"a limit of {most} bytes"):
            named = within(20, lambda: limited(most))  # noqa: B023
            warn.cache_clear()
            found = list(read_launches(tmp_path, "here"))
            assert found[0] == some_launch(session="earlier")
            assert all(launch == some_launch(session="later") for launch in found[1:])
            assert named == str(path)
