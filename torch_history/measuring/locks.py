"""Who may measure? One process alone, or several lanes, each on a processor of its own; what is measured is not removed."""

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
    dead one. What is counted has environments, and so a folder, of its own: it takes no time, and nothing that is timed
    waits for it. Raises SessionError where another process was first."""
    with _held(env_dir / RUNNING, fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def beside(env_dir: Path, lane: str) -> Iterator[None]:
    """Lets sessions of other lanes measure at the same time: keeps this process, and what it starts, on a processor that
    no other one has taken like this. Raises SessionError where none is free, where the lane is being measured, or where
    another process wants to be alone."""
    if not hasattr(os, "sched_setaffinity"):
        raise SessionError(
            "This system cannot keep a process on one processor, so sessions cannot run alongside each other."
        )
    allowed = os.sched_getaffinity(0)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_held(env_dir / RUNNING, fcntl.LOCK_SH))
        stack.enter_context(_held(env_dir / f"{RUNNING}-{lane}", fcntl.LOCK_EX))
        for processor in sorted(allowed, reverse=True):
            with contextlib.suppress(SessionError):
                stack.enter_context(_held(env_dir / f"{RUNNING}-processor-{processor}", fcntl.LOCK_EX))
                break
        else:
            raise SessionError(f"Other sessions use all {len(allowed)} processors. Wait until one ends.")
        os.sched_setaffinity(0, {processor})
        stack.callback(os.sched_setaffinity, 0, allowed)
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
                "it, which lets it continue later. Two lanes can be measured at the same time if both runs use --alongside."
            ) from error
        stream.truncate(0)
        stream.write(str(os.getpid()))
        stream.flush()
        yield
