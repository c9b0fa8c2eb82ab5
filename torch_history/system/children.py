"""How does what a process started end with it, even where that is killed? Linux ends it; elsewhere it lives on. And how does
a process answer its parent, whatever else it prints?"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1


class Ended(Exception):
    """A process ended without an answer, or gave none in time; the text says what it said last."""


class Answering:
    """A process that answers lines of JSON on the descriptor that its last word names. What it prints is kept apart."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: Path | None = None) -> None:
        reader, writer = os.pipe()
        self._said = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [*command, str(writer)],
            stdin=subprocess.PIPE,
            stdout=self._said,
            stderr=self._said,
            env=env,
            cwd=cwd,
            pass_fds=[writer],
            text=True,
            preexec_fn=dies_with_parent(),
        )
        os.close(writer)
        self._answers = os.fdopen(reader)

    def tell(self, what: Mapping[str, Any]) -> None:
        """Gives the process a line."""
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # it has ended, and `answer` says how
            print(json.dumps(what), file=self._process.stdin, flush=True)

    def answer(self, seconds: float | None = None) -> dict[str, Any]:
        """Its next line. Raises Ended where there is none, or none within so many `seconds`."""
        if not select.select([self._answers], [], [], seconds)[0]:
            raise Ended(f"it gave no answer within {seconds:.0f} seconds")
        line = self._answers.readline()
        if not line:
            self._process.wait()
            self._said.seek(0)
            raise Ended((self._said.read().strip().splitlines() or ["it ended without a word"])[-1][:300])
        return dict(json.loads(line))

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()
        self._answers.close()
        self._said.close()


def dies_with_parent() -> Callable[[], None]:
    """A function that makes the process in which it is called die when the one that asked for it does.

    Ask in the parent, call in the child: `Popen(command, preexec_fn=dies_with_parent())`, or first in what was forked. The
    system watches the thread that forked, so that thread has to live as long as the child should. A grandchild is not
    included. Raises OSError in the child where the system refuses.
    """
    parent = os.getpid()
    die = _ending()

    def die_with_parent() -> None:
        die(parent)

    return die_with_parent


def all_die_with_this_process() -> None:
    """Makes whatever this process forks from now on die with it, and what that forks die with its own parent. Programs that
    `subprocess` starts are included where they have a `preexec_fn`, as all those of asv's have."""
    global _forking
    if _forking is None:
        _forking = 0
        die = _ending()
        os.register_at_fork(before=_note_parent, after_in_child=lambda: die(_forking or 0))


_forking: int | None = None
"""The process that forks; None before anybody asked for it."""


def _note_parent() -> None:
    global _forking
    _forking = os.getpid()


def _ending() -> Callable[[int], None]:
    """What has the system kill the calling process when the given parent ends."""
    if not sys.platform.startswith("linux"):
        return lambda parent: None
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # looked up before the fork: a lock may be held after it

    def die(parent: int) -> None:
        if prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0):
            raise OSError(ctypes.get_errno(), "The system does not end a process together with its parent")
        if os.getppid() != parent:  # it was killed before the system knew
            os.kill(os.getpid(), signal.SIGKILL)

    return die
