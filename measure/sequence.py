"""How long do the first calls of a fresh process take, and does a later one stall?

Each variant runs its sequence of calls in a process of its own, started anew and with empty compiler caches: a process
forked from a warm one would have paid for the first call already.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STALL = 5.0
"""A call slower than 5 x the median is a stall: the claim under test is of 1 s instead of 20 ms."""

SETTLED = 10
"""The calls left out at the front when the median after warm-up is taken."""

LIMIT = 240
"""Seconds that a sequence may take; compiling anew for every shape has been seen to take minutes."""


class SequenceUnavailable(Exception):
    """The variant cannot run here; the text is one sentence that says why."""


class SequenceFailed(Exception):
    """The process of the sequence gave no times; the text holds its last words."""


def run(workload: str, variant: str, size: str, device: str, seed: int) -> list:
    """Seconds of each call of `workload`'s sequence in a fresh process. Raises SequenceUnavailable or SequenceFailed."""
    with tempfile.TemporaryDirectory(prefix="torch-history-") as empty:
        surroundings = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
            "TORCHINDUCTOR_CACHE_DIR": os.path.join(empty, "inductor"),
            "TRITON_CACHE_DIR": os.path.join(empty, "triton"),
        }
        command = [sys.executable, "-m", __name__, workload, variant, size, device, str(seed)]
        try:
            answer = subprocess.run(
                command, env=surroundings, capture_output=True, text=True, timeout=LIMIT, check=False
            )
        except subprocess.TimeoutExpired:
            raise SequenceFailed(f"the sequence was not through after {LIMIT} s") from None
    lines = answer.stdout.splitlines()
    if answer.returncode or not lines:
        last = (answer.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise SequenceFailed(f"the process of the sequence ended with status {answer.returncode}: {last}")
    said = json.loads(lines[-1])
    if isinstance(said, str):
        raise SequenceUnavailable(said)
    return said


def first(seconds: list) -> float:
    """The first call's seconds, compiling included."""
    return seconds[0]


def second(seconds: list) -> float:
    """The second call's seconds: a profiling compiler works here."""
    return seconds[1]


def median(seconds: list) -> float:
    """Median of the calls after the first SETTLED."""
    return statistics.median(seconds[SETTLED:])


def worst(seconds: list) -> float:
    """The slowest call after the first: the stall of the claim."""
    return max(seconds[1:])


def worst_over_median(seconds: list) -> float:
    """worst / median."""
    return worst(seconds) / median(seconds)


def stalls(seconds: list) -> int:
    """How many calls after the first took longer than STALL medians."""
    return sum(second > STALL * median(seconds) for second in seconds[1:])


def _main(workload: str, variant: str, size: str, on: str, seed: str) -> None:
    from . import device

    module = importlib.import_module(workload)
    unavailable = importlib.import_module(workload.rpartition(".")[0]).Unavailable
    device.ready(on)
    arguments = module.inputs(size, on, int(seed))
    seconds = []
    try:
        call = module.variants[variant](arguments)
        results = []
        for argument in arguments:
            device.synchronize(on)
            begin = time.perf_counter()
            results.append(call(argument))
            device.synchronize(on)
            seconds.append(time.perf_counter() - begin)
    except unavailable as reason:
        print(json.dumps(str(reason)))
        return
    module.check(arguments, results)
    print(json.dumps(seconds))


if __name__ == "__main__":
    _main(*sys.argv[1:])
