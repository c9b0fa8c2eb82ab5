"""How does what a process started end with it, even where that is killed? Linux ends it."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1

_prctl = ctypes.CDLL(None, use_errno=True).prctl  # looked up before any fork: a lock may be held after it


def dies_with_parent() -> Callable[[], None]:
    """A function that makes the process in which it is called die when the one that asked for it does: `preexec_fn` of
    a Popen, or first in what was forked. The system watches the thread that forked, so that has to live as long as the
    child should. A grandchild is not included. Raises OSError in the child where the system refuses."""
    return functools.partial(_die_with, os.getpid())


def all_die_with_this_process() -> None:
    """Makes whatever this process forks from now on die with it, and what that forks die with its own parent. Programs that
    `subprocess` starts are included where they have a `preexec_fn`, as all those of asv's have."""
    global _forking
    if _forking is None:
        _forking = 0
        os.register_at_fork(before=_note_parent, after_in_child=lambda: _die_with(_forking or 0))


_forking: int | None = None
"""The process that forks; None before anybody asked for it."""


def _note_parent() -> None:
    global _forking
    _forking = os.getpid()


def _die_with(parent: int) -> None:
    """Has the system kill this process when its parent ends."""
    if _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "The system does not end a process together with its parent")
    if os.getppid() != parent:  # it was killed before the system knew
        os.kill(os.getpid(), signal.SIGKILL)
