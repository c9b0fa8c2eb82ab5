"""Who may do it? One process alone, or those of a fleet on processors of their own. The lock of a dead one is freed."""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from .errors import SessionError

RUNNING = "running"  # the file in `env/` that whoever measures holds locked; it names the process


@contextlib.contextmanager
def locked(path: Path, what: str, shared: bool = False) -> Iterator[None]:
    """Holds a file's lock, which names the process. Raises SessionError where another holds it, which does `what`; one
    that is `shared` keeps out those that want to be alone. Raises OSError where the file system has no locks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError as error:
            stream.seek(0)
            raise SessionError(
                f"Another torch-history, process {stream.read().strip() or 'unknown'}, {what}. Wait until it ends, or "
                "interrupt it, which lets it continue later."
            ) from error
        stream.truncate(0)
        with contextlib.suppress(OSError):  # a full disk, on which `prune` is to make room, keeps no name
            os.write(stream.fileno(), f"{os.getpid()} on {socket.gethostname()}".encode())
        yield


def alone(env_dir: Path, shared: bool = False) -> contextlib.AbstractContextManager[None]:
    """Keeps others from measuring beside this process, or from removing what it measures; `shared` lets those measure too to
    which a scheduler has given processors of their own. Raises SessionError where another process was first."""
    what = f"is working in {env_dir.resolve()}. Two at once would disturb each other"
    return locked(env_dir / RUNNING, what, shared)
