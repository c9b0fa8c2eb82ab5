"""Who may measure? One process alone, or those of a fleet on processors of their own; what is measured is not removed."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from ..system.errors import SessionError

RUNNING = "running"
"""The file in `env/` that whoever measures holds locked; it names the process."""


@contextlib.contextmanager
def alone(env_dir: Path) -> Iterator[None]:
    """Keeps others from measuring beside this process, or from removing what it measures; the system frees the lock of a
    dead one. Raises SessionError where another process was first."""
    with _held(env_dir / RUNNING, fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def allotted(env_dir: Path) -> Iterator[None]:
    """Lets processes measure at the same time to which a scheduler has given processors of their own. Raises SessionError
    where another process wants to be alone."""
    with _held(env_dir / RUNNING, fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def _held(path: Path, lock: int) -> Iterator[None]:
    """Holds a lock of flock's on a file that names the process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, lock | fcntl.LOCK_NB)
        except BlockingIOError as error:
            stream.seek(0)
            raise SessionError(
                f"Another torch-history, process {stream.read().strip() or 'unknown'}, is working in "
                f"{path.parent.resolve()}. Two at once would disturb each other. Wait until it ends, or interrupt "
                "it, which lets it continue later."
            ) from error
        stream.truncate(0)
        stream.write(str(os.getpid()))
        stream.flush()
        yield
