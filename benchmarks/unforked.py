"""How is a case counted where importing torch, as torch 1.12.0, leaves processes that cannot be forked
(`device.cannot_fork`)? In interpreters that are started anew, one with PyTorch's caching allocator and one without."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from contract.children import dies_with_parent
from contract.metrics import METRICS
from measure import counted, device, facts
from recorder.record import NO_CACHING

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = "import sys; sys.path.insert(0, {!r}); from benchmarks.unforked import main; main()"


class _Reached(Exception):
    """The place at which `counted` would fork."""

    def __init__(self, work: Callable[[], dict]) -> None:
        super().__init__()
        self.work = work


@contextlib.contextmanager
def counting(*words: str) -> Iterator[None]:
    """Within, `counted` starts interpreters that do what `words` ask of `main`, where it would fork and that cannot be."""
    if not device.cannot_fork():
        yield
        return
    forks = counted._started
    counted._started = functools.partial(_started, words)
    try:
        yield
    finally:
        counted._started = forks


def case(workload: Any, variant: str, size: str) -> tuple:
    """The words for a case of a workload, which is one of the suite or a view of the user's file."""
    own = getattr(workload, "IS_OWN", False)
    return (METRICS[workload.METRICS[0]].measured if own else "", workload.__name__, variant, size)


def _started(words: tuple, work: Callable[[], dict], caching: bool) -> tuple:
    """As `counted._started`."""
    reader, writer = os.pipe()
    variables = {name: value for name, value in os.environ.items() if name != NO_CACHING}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(str(ROOT)), str(writer), "cached" if caching else "uncached", *words],
        env=variables if caching else {**variables, NO_CACHING: "1"},
        pass_fds=[writer],
        preexec_fn=dies_with_parent(),
    )
    os.close(writer)
    process.returncode = 0  # `counted` waits for it
    return process.pid, reader


def main() -> None:
    """Answers as a process does that `counted` forks: by a pickle of what was counted, or of what was raised."""
    writer, which, *words = sys.argv[1:]

    def reached(work: Callable[[], dict], caching: bool) -> tuple:
        if caching == (which == "cached"):
            raise _Reached(work)
        return ()

    counted._started = reached
    try:
        answer: object = _counted(words)
    except Exception as error:
        answer = error
    with os.fdopen(int(writer), "wb") as stream:
        pickle.dump(answer, stream)


def _counted(words: list) -> dict:
    if not words:
        return facts.environment()
    measured, name, variant, size = words
    from . import common, own

    workload = own.VIEWS[measured](own._workload) if measured else importlib.import_module(name)
    measure = common._measured_by(METRICS[workload.METRICS[0]], "recorder")
    try:
        return measure(workload, variant, size, "recorder")
    except _Reached as place:
        return place.work()
