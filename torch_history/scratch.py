"""Where does the program keep what it needs for a while only? In folders that say whose they are, so that leftovers can go.

A folder carries a mark, which its process holds locked. Where a killed process left one, the next start removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

MARK = ".torch-history-site"
"""The file that says who made a folder."""

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
    """A new folder in `parent` whose name begins with `prefix`, gone when the block ends; those that killed processes left
    there go first."""
    parent.mkdir(parents=True, exist_ok=True)
    _sweep(parent, prefix)
    with (
        tempfile.TemporaryDirectory(dir=parent, prefix=prefix) as name,
        Path(name, MARK).open("w", encoding="utf-8") as stream,
    ):
        # Locked before it has its text, without which nobody takes the folder for a leftover.
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.write(MARK_TEXT)
        stream.flush()
        yield Path(name)


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
        with contextlib.suppress(FileNotFoundError):
            if left.is_symlink() or left.stat().st_uid != os.getuid() or not is_own(left):
                continue
            with (left / MARK).open("rb") as stream:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue  # another process is at work in it
                shutil.rmtree(left)
