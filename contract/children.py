"""How does what a process started end with it, even where that is killed? Linux ends it; elsewhere it lives on."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def dies_with_parent() -> Callable[[], None]:
    """A function that makes the process in which it is called die when the one that asked for it does: `preexec_fn` of
    a Popen, or first in what was forked. The system watches the thread that forked, so that has to live as long as the
    child should. A grandchild is not included. Raises OSError in the child where the system refuses."""
    return functools.partial(_ending(), os.getpid())


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
