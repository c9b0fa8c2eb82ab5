"""How is work shared between processors? By processes forked for it, which know all that their parent knows."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from ..errors import UserError
from ..system.children import dies_with_parent
from ..system.signals import STOPPING, later

_FORK = get_context("fork")

KILLED = "A process of this program was killed, perhaps because memory ran out. End other programs, and try again."


def at_once(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each task returns, each called in a forked process, as many at once as there are processors. Raises
    UserError where one of them was killed."""
    if len(tasks) < 2:
        return [task() for task in tasks]
    with ProcessPoolExecutor(os.cpu_count(), _FORK, _inherit, (tasks, dies_with_parent())) as pool:
        try:
            return list(pool.map(_call, range(len(tasks))))
        except BrokenProcessPool as error:
            raise UserError(KILLED) from error


_inherited: list[Callable[[], Any]] = []


def _inherit(tasks: Sequence[Callable[[], Any]], die_with_parent: Callable[[], None]) -> None:
    """In a forked process: what it may be asked for is there already and need not be sent."""
    die_with_parent()
    _may_be_stopped()
    _inherited[:] = tasks


def _call(number: int) -> Any:
    return _inherited[number]()


@contextlib.contextmanager
def beside(task: Callable[[], object]) -> Iterator[None]:
    """Calls `task` in a forked process while the block runs, and waits for it. Raises what it raised, unless the block did;
    UserError where it was killed."""
    receiver, sender = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_answer, args=(task, sender, dies_with_parent()))
    stop = functools.partial(_stop, process)
    atexit.register(stop)  # a signal can come between any two steps, these included
    try:
        with later():
            process.start()
        sender.close()
        yield
    except BaseException:
        _stop(process)
        raise
    else:
        try:
            error = receiver.recv()
        except EOFError:
            error = UserError(KILLED)
        if error:
            raise error
    finally:
        if process.pid:
            process.join()
        atexit.unregister(stop)
        receiver.close()


def _stop(process: BaseProcess) -> None:
    while process.pid and process.is_alive():
        process.terminate()  # again, where it had not begun to listen
        process.join(0.1)


def _may_be_stopped() -> None:
    """In a forked process: it ends at once and in silence. To say so, and to tidy up, is its parent's business."""
    for number in STOPPING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _answer(task: Callable[[], object], sender: Connection, die_with_parent: Callable[[], None]) -> None:
    die_with_parent()
    _may_be_stopped()
    try:
        task()
    except Exception as error:
        error.add_note(traceback.format_exc())
        sender.send(error)
    else:
        sender.send(None)
