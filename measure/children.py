"""How does what a process forks end with it? Linux kills it; elsewhere it lives on."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_forking = 0


def all_die_with_this_process() -> None:
    """Makes whatever this process forks from now on die with it, and what that forks with its own parent."""
    if not sys.platform.startswith("linux"):
        return
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def note_parent() -> None:
        global _forking
        _forking = os.getpid()

    def die() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != _forking:
            os.kill(os.getpid(), signal.SIGKILL)

    os.register_at_fork(before=note_parent, after_in_child=die)


def dies_with_parent() -> Callable[[], None]:
    """A function for `preexec_fn` of `subprocess`: the process in which it is called dies with the one that asked for it."""
    if not sys.platform.startswith("linux"):
        return lambda: None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def die() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)

    return die
