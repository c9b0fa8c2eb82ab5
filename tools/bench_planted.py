"""Is what calibration plants what the clock sees? Run it with the Python of a release, on a machine with nothing else to do.

`env/v2.15.0-py3.11/bin/python -m tools.bench_planted` prints, for each case, what was asked for, what a process says that it
planted, and by how much its calls are longer by the suite's clock, process by process.
"""

from __future__ import annotations

from types import ModuleType

import torch

from measure import clock, planted, sequence
from workloads import batching, saved_tensors, selection

CASES = (
    (selection, "index_reused", "vector 1 % x 10", 0.05),
    (selection, "mask", "vector 50 % x 1", 0.2),
    (selection, "nonzero_each_time", "rows 1 % x 100", 0.2),
    (selection, "masked_select", "vector 50 % x 100", 0.2),
    (saved_tensors, "plain", "chain", 0.1),
    (batching, "stack_rows", "4,096 x 64", 0.2),
)
"""Workload, variant, size and the share that is planted."""

PROCESSES = 6


def measured(workload: ModuleType, variant: str, size: str, share: float) -> dict:
    """In a fresh process: what it planted, and what its clock saw, as shares. Calls with and without are timed in turn."""

    def once() -> dict:
        call = workload.variants[variant](workload.inputs(size, "cpu", 1))
        clock.warm_up(call, "cpu")
        longer = planted._longer(call, share, "cpu")
        times: dict[bool, list[float]] = {False: [], True: []}
        for slowed in (False, True) * 2:
            times[slowed] += clock.samples(longer if slowed else call, "cpu")
        return {"told": (longer.ratio or 1.0) - 1, "seen": min(times[True]) / min(times[False]) - 1}

    return sequence._in_a_fork(once)


def main() -> None:
    torch.set_num_threads(1)
    for workload, variant, size, share in CASES:
        found = [measured(workload, variant, size, share) for _ in range(PROCESSES)]
        told, seen = (" ".join(f"{100 * one[what]:.1f}" for one in found) for what in ("told", "seen"))
        print(f"{variant} {size}: planted {100 * share:.0f} %, told {told}, seen {seen}", flush=True)


if __name__ == "__main__":
    main()
