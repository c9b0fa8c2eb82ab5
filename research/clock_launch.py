"""One launch of `research/clock.py`, inside a release's environment. Prints JSON: call -> seconds by our clock and by a
Timer, a number per reading. Importing `benchmarks.common` makes this process like one that asv measures in."""

from __future__ import annotations

from benchmarks.common import SEED  # before torch is loaded

# isort: split

import json
from collections.abc import Callable

import torch
from torch.utils.benchmark import Timer

from measure import THREADS, clock, device
from workloads import batching, saved_tensors, selection

TURNS = 2
"""Each reads ours, theirs, theirs, ours, so that a machine that slows down steadily slows both alike."""

CASES = (
    (batching, "stack_rows", "64 x 128"),
    (selection, "index_reused", "vector 50 % x 10"),
    (saved_tensors, "plain", "chain"),
    (saved_tensors, "plain", "loop"),
    (batching, "stack_rows", "65,536 x 16"),
)
"""Workload, variant and size: about 40 us, 1.5 ms, 10 ms, 100 ms, and a tensor per row, all alive at once, so that the
garbage collector runs many times in a call. A Timer switches it off, so its setup switches it on again."""


def readings(call: Callable[[], object]) -> tuple[list[float], list[float]]:
    """Seconds a call by our clock and by a Timer. A reading is the quickest of its samples or blocks, as long as our
    stretches: what medians differ by is what a neighbour on the processors does meanwhile."""
    timer = Timer("call()", "import gc; gc.enable()", globals={"call": call}, num_threads=THREADS)

    def ours() -> float:
        return min(clock.samples(call, "cpu"))

    clock.warm_up(call, "cpu")
    calls = max(1, round(clock.STRETCH_SECONDS / timer.blocked_autorange().median))

    def theirs() -> float:
        blocks: list[float] = []
        while calls * sum(blocks) < clock.SAMPLING_SECONDS:
            blocks.append(timer.timeit(calls).median)
        return min(blocks)

    found: dict[Callable, list[float]] = {ours: [], theirs: []}
    for read in (ours, theirs, theirs, ours) * TURNS:
        found[read].append(read())
    return found[ours], found[theirs]


def main() -> None:
    device.ready("cpu")
    a, b = torch.ones(4), torch.ones(4)
    found = {"a sum of 4 numbers": readings(lambda: torch.add(a, b))}
    for workload, variant, size in CASES:
        words = f"{workload.__name__.rpartition('.')[2]} {variant} {size}"
        found[words] = readings(workload.variants[variant](workload.inputs(size, "cpu", SEED)))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
