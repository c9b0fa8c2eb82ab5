"""Where does the program keep what it needs for a while? In folders with a mark that its process locks. The next start
removes what a killed one left; after a signal between any two steps they go when the process ends."""

import atexit
import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .signals import later

MARK = ".torch-history-site"  # the file that says who made a folder

MARK_TEXT = "torch-history made this folder and replaces it when it publishes again: keep nothing of your own in it.\n"


def is_own(folder: Path) -> bool:
    """Whether a file in `folder` says that this program made it."""
    mark = folder / MARK
    if mark.is_symlink() or not mark.is_file():
        return False
    with mark.open("rb") as stream:
        return stream.read(len(MARK_TEXT) + 1) == MARK_TEXT.encode()


def mark(folder: Path) -> None:
    """Says in `folder` that this program made it."""
    (folder / MARK).write_text(MARK_TEXT, encoding="utf-8")


@contextlib.contextmanager
def scratch(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder in `parent`, gone when the block ends; those that killed processes left there go first."""
    parent.mkdir(parents=True, exist_ok=True)
    _sweep(parent, prefix)
    folder = parent / f"{prefix}{secrets.token_hex(8)}"
    _made[folder] = os.getpid()  # before it is there: a signal can come between any two steps
    try:
        folder.mkdir(mode=0o700)
        with (folder / MARK).open("w", encoding="utf-8") as stream:
            # Locked before it has its text, without which nobody takes the folder for a leftover.
            fcntl.flock(stream, fcntl.LOCK_EX)
            stream.write(MARK_TEXT)
            stream.flush()
            yield folder
    finally:
        with later():
            _remove(folder)


_made: dict[Path, int] = {}
"""The folders that are not yet removed, and the process that made each: a forked one is no owner of them."""


def _remove(folder: Path) -> None:
    """Removes `folder`. Where a process that is about to end still writes into it, it goes when this one ends."""
    for _ in range(10):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            del _made[folder]
            break
        time.sleep(0.05)


@atexit.register
def _remove_what_is_left() -> None:
    left = [folder for folder, process in _made.items() if process == os.getpid()]
    with contextlib.suppress(KeyboardInterrupt), later():
        for folder in left:
            _remove(folder)


@contextlib.contextmanager
def temporary_files() -> Iterator[None]:
    """Keeps the temporary files of this process, asv's among them, in a folder of its own while the block runs."""
    before = tempfile.tempdir
    with scratch(Path(tempfile.gettempdir()), "torch-history-") as folder:
        tempfile.tempdir = str(folder)
        try:
            yield
        finally:
            tempfile.tempdir = before


def _sweep(parent: Path, prefix: str) -> None:
    """Removes folders of this user's that carry the mark and that no living process holds."""
    for left in parent.glob(f"{prefix}*"):
        with contextlib.suppress(FileNotFoundError, BlockingIOError):  # it is gone, or another process is at work in it
            if left.is_symlink() or left.stat().st_uid != os.getuid() or not is_own(left):
                continue
            with (left / MARK).open("rb") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)
