"""How does the program stop when it is asked to? At any moment, with a sentence and exit code 128 + the signal."""

import contextlib
import logging  # noqa: F401 - what it does at a fork has to be registered before what is done here
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

PUT_OFF_SECONDS = 0.01
"""What is raised while Python forks is printed and lost, so a signal that comes then is sent again so much later."""

_received = 0
_said = False
_waits = False
_forks = 0
_stopped_here = 0


def stop_on_signals() -> None:
    """Lets STOPPING raise KeyboardInterrupt, but a hangup that is ignored. What this process forks ends in silence."""
    global _stopped_here
    _stopped_here = os.getpid()
    sys.unraisablehook = _again
    for number in STOPPING:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)


def _again(lost: "UnraisableHookArgs") -> None:
    """What is raised where Python can only print it, as in a finaliser, is lost: a signal that came then is sent again."""
    if not isinstance(lost.exc_value, KeyboardInterrupt) or not _received:
        sys.__unraisablehook__(lost)
    elif not _said:
        with contextlib.suppress(RuntimeError):  # the interpreter is ending
            threading.Timer(PUT_OFF_SECONDS, _send_again).start()


def _send_again() -> None:
    if not _said:
        os.kill(os.getpid(), _received)


def _before_a_fork() -> None:
    global _forks
    _forks = os.getpid()


def _after_a_fork() -> None:
    global _forks
    _forks = 0


def _in_a_child() -> None:
    """What waits for the end of a block waits in the parent only: that end never comes here."""
    global _waits
    _waits = False
    _after_a_fork()


os.register_at_fork(before=_before_a_fork, after_in_parent=_after_a_fork, after_in_child=_in_a_child)


def received() -> int:
    """The signal that asked this process to stop, 0 for none. What is raised after it may be a consequence of it."""
    return _received


def say_stopped() -> int:
    """Says on standard error that the program was stopped, and returns the exit code. Standard error may be closed."""
    global _said
    _said = True
    with contextlib.suppress(OSError):
        os.write(2, b"\nStopped. What was finished is kept. The same command continues from here.\n")
    return 128 + (_received or signal.SIGINT)


@contextlib.contextmanager
def later() -> Iterator[None]:
    """Puts a signal to stop off until the block has ended, which therefore leaves nothing half done."""
    global _waits
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, _waits = _received, True
    try:
        yield
    finally:
        _waits = False
    if _received != before:
        raise KeyboardInterrupt


def _stop(number: int, frame: FrameType | None) -> None:
    global _received
    if not _forks and os.getpid() != _stopped_here:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    if _forks or (frame and frame.f_code in (_before_a_fork.__code__, _after_a_fork.__code__)):
        if _forks in (0, os.getpid()):  # what was just forked has no thread yet, and its parent ends it
            threading.Timer(PUT_OFF_SECONDS, os.kill, (os.getpid(), number)).start()
        return
    _received = number
    if not _waits:
        raise KeyboardInterrupt
