"""How does a session count? Cases beside each other, in several interpreters of one release, since nothing is timed.

What the recorder counts is the same on a busy machine, so nothing waits, and nothing is asked again.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from .server import Server

BESIDE = 2
"""Interpreters of a release that count at the same time, where there are as many processors."""

SECONDS_AT_A_TIME = 10.0
"""After so many seconds an interpreter writes what it has counted before it asks the next case."""

Metrics = list[dict[str, Any]]
"""asv's benchmarks of one question, a metric each."""


def most_beside() -> int:
    """How many interpreters count at the same time on this machine."""
    known = hasattr(os, "sched_getaffinity")
    return max(1, min(BESIDE, len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1))


def count_cases(
    servers: Sequence[Server], cases: Iterable[tuple[Metrics, int]], folder: str, advance: Callable[[], None]
) -> None:
    """Asks each of `cases`, an index of a question's, of whichever of `servers` is free, and puts the answers into the
    results in `folder`. Every other server begins at the end: neighbours share what is built for them, such as an operator
    in C++, and would wait for each other.

    Raises what an interpreter raised, after the others were stopped; what was counted before is kept.
    """
    waiting = deque(cases)
    writing = threading.Lock()
    with ThreadPoolExecutor(len(servers)) as pool:
        ends = [waiting.pop if number % 2 else waiting.popleft for number in range(len(servers))]
        tasks = [
            pool.submit(_count, server, end, folder, writing, advance)
            for server, end in zip(servers, ends, strict=True)
        ]
        try:
            for task in as_completed(tasks):
                task.result()
        except BaseException:
            waiting.clear()
            for server in servers:
                server.stop()
            raise


def _count(
    server: Server,
    take: Callable[[], tuple[Metrics, int]],
    folder: str,
    writing: threading.Lock,
    advance: Callable[[], None],
) -> None:
    """Asks `server` case after case until `take` has no more; what is written together is of one question."""
    server.prepare()
    metrics: Metrics = []
    written = time.monotonic()

    def write() -> None:
        with writing:
            # Another interpreter may have written to the same file since.
            server.results.load_data(folder)
            server.results.record(metrics, {}, folder)

    try:
        while True:
            try:
                of_case, index = take()
            except IndexError:
                break
            if metrics and (of_case is not metrics or time.monotonic() - written >= SECONDS_AT_A_TIME):
                write()
                written = time.monotonic()
            metrics = of_case
            server.ask(metrics[0], index)
            advance()
    finally:
        if metrics:
            write()
