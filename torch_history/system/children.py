"""How does a process answer its parent, whatever else it prints? And how do several share work?"""

import contextlib
import json
import multiprocessing.connection
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from contract.children import dies_with_parent

_shared: Callable[[Any], Any]


def side_by_side(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """`function` of each of `items`, computed in copies of this process, as many as there are processors. What the function
    refers to is there in each copy; what it gives, or raises, comes back pickled. Raises MemoryError where one is killed."""
    copies = min(len(items), len(os.sched_getaffinity(0)))
    if copies < 2:
        return [function(item) for item in items]
    fork, begin = multiprocessing.get_context("fork"), (function, dies_with_parent())
    pipes: list[Any] = []
    begun, found = [], dict[int, Any]()
    try:
        for first in range(copies):
            receiver, sender = fork.Pipe(duplex=False)
            begun.append(
                fork.Process(target=_answer_each, args=(*begin, sender, range(first, len(items), copies), items))
            )
            begun[-1].start()
            sender.close()  # so that the end of the copy is the end of what it sends
            pipes.append(receiver)
        while pipes:
            ready: list[Any] = multiprocessing.connection.wait(pipes)
            for pipe in ready:
                place, answer, error = pipe.recv()
                if error:
                    raise error
                if place is None:
                    pipes.remove(pipe)
                else:
                    found[place] = answer
    except EOFError as error:
        raise MemoryError from error  # nothing else ends a copy that has not told all
    finally:
        for copy in begun:
            copy.kill()
            copy.join()
    return [found[place] for place in range(len(items))]


def _answer_each(
    function: Callable[..., Any], ready: Callable[..., Any], sender: Any, places: range, items: Any
) -> None:
    """Sends the place and the answer for each of `places` among `items`, then no place; or what one of them raises."""
    _begin(function, ready)
    try:
        for place in places:
            sender.send((place, function(items[place]), None))
        sender.send((None, None, None))
    except Exception as error:
        sender.send((None, None, error))


@contextlib.contextmanager
def beside(function: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """Meanwhile a copy of this process calls `function`, which may have children; what is yielded waits for its answer."""
    begin = _begin, (lambda _: function(), dies_with_parent())
    try:
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork"), *begin) as pool:
            yield pool.submit(_share, None).result
    except BrokenProcessPool as error:
        raise MemoryError from error


def _begin(function: Callable[[Any], Any], ready: Callable[[], object]) -> None:
    global _shared
    ready()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _shared = function


def _share(item: Any) -> Any:
    return _shared(item)


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
