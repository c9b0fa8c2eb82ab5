"""How long does each of a process's first calls take?

The calls are timed one by one from the very first on, with the device idle at both ends of each. What earlier processes
compiled and kept on disk is out of reach meanwhile, so that a process pays for what it compiles. A call that is made once
takes what the machine does at that moment, so on a CPU several processes make it, and each gives a sample.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator

from . import device

SETTLED = 10
"""Calls before the median is taken. TorchScript profiles the first, compiles at the second and again at calls of new shapes
(the first three in 1.13 and 2.0, all five in 1.10); torch.compile compiles at the first and at the first new shape."""

STALL = 5.0
"""A call that takes longer than so many medians is a stall; the note's took 50. Calls whose shapes differ by a factor of two
in pixels stay below, and so does a call of 4 ms from which the scheduler takes a busy core for one or two turns."""


MOST_PROCESSES = 7
SECONDS_OF_PROCESSES = 1.0
"""Processes that repeat a sequence: so many, or as begin within so long. What compiles for seconds does so once."""


def in_fresh_processes(measure: Callable[[], dict], on: str) -> list[dict]:
    """What `measure` returns in processes that are forked from this one, which has called nothing yet, one after another. A
    process that has started a GPU cannot be forked: there it is measured once, in this one.

    Raises what `measure` raises, and RuntimeError where a process is ended before it answers.
    """
    if on == "cuda":
        return [measure()]
    found: list[dict] = []
    began = time.perf_counter()
    while len(found) < MOST_PROCESSES and (not found or time.perf_counter() - began < SECONDS_OF_PROCESSES):
        found.append(_in_a_fork(measure))
    return found


def _in_a_fork(measure: Callable[[], dict]) -> dict:
    forked = multiprocessing.get_context("fork")
    receiver, sender = forked.Pipe(duplex=False)

    def answer() -> None:
        try:
            sender.send(measure())
        except Exception as error:
            sender.send(error)

    process = forked.Process(target=answer)
    process.start()
    sender.close()
    try:
        found = receiver.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"the process that made the calls ended with status {process.exitcode}") from None
    process.join()
    if isinstance(found, Exception):
        raise found
    return found


def run(call: Callable, arguments: Iterable, on: str) -> tuple[list[float], list]:
    """Seconds and result of `call(argument)` for each of `arguments`, in order."""
    seconds, results = [], []
    for argument in arguments:
        device.synchronize(on)
        begin = time.perf_counter()
        result = call(argument)
        device.synchronize(on)
        seconds.append(time.perf_counter() - begin)
        results.append(result)
    return seconds, results


def summary(seconds: list[float]) -> dict[str, float]:
    """The metrics of one sequence. `worst_call` is the slowest of all calls but the first.

    The first call is slow whatever runs it, and who serves requests makes it beforehand. From the second on a user waits, so
    the second, at which TorchScript compiles, is among those that may be the worst and that may stall.
    """
    if len(seconds) <= SETTLED:
        raise ValueError(f"a sequence of {len(seconds)} calls has no settled call: it needs more than {SETTLED}")
    median = statistics.median(seconds[SETTLED:])
    worst = max(seconds[1:])
    return {
        "first_call": seconds[0],
        "second_call": seconds[1],
        "median_call": median,
        "worst_call": worst,
        "worst_over_median": worst / median,
        "stalls": sum(second > STALL * median for second in seconds[1:]),
    }


@contextlib.contextmanager
def empty_caches() -> Iterator[str]:
    """Within, the compilers of torch keep what they make in an empty folder, which is yielded and removed at the end.

    torch reads the two variables when it compiles first. Precompiled headers (2.8 on) are beside the caches on purpose,
    in the folder for files of a while, which is therefore another one meanwhile.
    """
    folder = tempfile.mkdtemp(prefix="torch-history-caches-")
    variables, temporary = dict(os.environ), tempfile.tempdir
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(folder, "inductor")
    os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "triton")
    tempfile.tempdir = folder
    inductor = sys.modules.get("torch._inductor.codecache")
    headers = {name: getattr(inductor, name) for name in ("_HEADER_DIR", "_HEADER_LOCK_DIR") if hasattr(inductor, name)}
    for name in headers:
        setattr(inductor, name, os.path.join(folder, name))
    try:
        yield folder
    finally:
        for name, value in headers.items():
            setattr(inductor, name, value)
        tempfile.tempdir = temporary
        os.environ.clear()
        os.environ.update(variables)
        shutil.rmtree(folder, ignore_errors=True)
