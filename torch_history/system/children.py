"""How does a process answer its parent, whatever else it prints? And how do several share work?"""

import contextlib
import functools
import json
import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from contract.children import dies_with_parent
from contract.words import of_error


def side_by_side(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """`function` of each of `items`, computed in copies of this process, as many as there are processors. What the function
    refers to is there in each copy; what it gives, or raises, comes back pickled. Raises MemoryError where one is killed."""
    copies = min(len(items), len(os.sched_getaffinity(0)))
    if copies < 2:
        return [function(item) for item in items]
    found: list[Any] = [None] * len(items)
    with contextlib.ExitStack() as running:
        shares = [map(function, items[first::copies]) for first in range(copies)]
        answers = [running.enter_context(beside(functools.partial(list[Any], share))) for share in shares]
        for first, answer in enumerate(answers):
            found[first::copies] = answer()
    return found


@contextlib.contextmanager
def beside(function: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """Meanwhile a copy of this process calls `function`, which may have children; what is yielded waits for its answer, or
    raises what that raised, and MemoryError where the copy was killed."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    copy = fork.Process(target=_answer, args=(function, dies_with_parent(), sender))
    copy.start()
    sender.close()  # so that the end of the copy is the end of what it sends

    def answer() -> Any:
        try:
            found, error = receiver.recv()
        except (EOFError, OSError) as ended:  # of a message that has not begun, or has not ended
            raise MemoryError from ended  # nothing else ends a copy that has not told all
        if error:
            raise error
        return found

    try:
        yield answer
    finally:
        copy.kill()
        copy.join()


def _answer(function: Callable[[], Any], ready: Callable[[], object], sender: Any) -> None:
    """Sends what `function` gives, or what it raises; in words where that cannot be pickled."""
    ready()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        sender.send((function(), None))
    except BaseException as error:  # asv raises some that are no Exception
        try:
            told = pickle.loads(pickle.dumps(error))
        except Exception:
            told = RuntimeError(of_error(error))
        sender.send((None, told))


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
