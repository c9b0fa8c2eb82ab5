"""How long would a thousand releases take on hundreds of nodes that fail and are taken away? Planned by the same code.

What a job loses when it is interrupted is what the program loses: the case that was being measured, and another start.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass

from .head import POLL_SECONDS
from .planning import INSTALL_SECONDS, START_SECONDS, Rates, Work, jobs, makespan

HOUR = 3600.0
WRITTEN_SECONDS = 10.0
"""After so many seconds at most cases are on disk: an interruption loses less."""


@dataclass(frozen=True)
class Cluster:
    """`nodes` in all, `models` of GPUs with as many nodes each, and what is drawn: a node fails after an exponential time
    with the mean `failure` and is back after `repair`; a job is preempted after an exponential time with the mean
    `preemption` and waits for `wait`. All in seconds."""

    nodes: int
    models: int = 4
    failure: float = 30 * 24 * HOUR
    repair: float = 4 * HOUR
    preemption: float = 8 * HOUR
    wait: float = 600.0


@dataclass(frozen=True)
class Simulated:
    """What came out: `jobs` in all, `planned` seconds without interruptions, the `makespan` with them, `interruptions`,
    seconds of `lost` work on nodes, the seconds that nodes were at `work` in all, and scheduler `calls` a minute."""

    nodes: int
    jobs: int
    planned: float
    makespan: float
    interruptions: int
    lost: float
    work: float
    calls: float


def simulate(releases: Sequence[str], lanes: int, work: Work, rates: Rates, cluster: Cluster, seed: int) -> Simulated:
    """One history of each lane on each GPU model. Every model's nodes take jobs of its lanes, longest first."""
    draw = random.Random(f"{seed} {cluster}")
    each = max(1, cluster.nodes // cluster.models)
    of_lane = jobs(releases, work, rates, max(1, each // lanes), lambda tag: False)
    of_model = sorted((job.seconds for _ in range(lanes) for job in of_lane), reverse=True)
    ran = [_run(of_model, each, cluster, draw) for _ in range(cluster.models)]
    longest = max(of_one.makespan for of_one in ran)
    return Simulated(
        nodes=each * cluster.models,
        jobs=len(of_model) * cluster.models,
        planned=makespan(of_model, each),
        makespan=longest,
        interruptions=sum(of_one.interruptions for of_one in ran),
        lost=sum(of_one.lost for of_one in ran),
        work=sum(of_one.work for of_one in ran),
        calls=_calls(lanes * cluster.models, longest, sum(of_one.resubmitted for of_one in ran)),
    )


@dataclass
class _Ran:
    makespan: float = 0.0
    interruptions: int = 0
    resubmitted: int = 0
    lost: float = 0.0
    work: float = 0.0


def _run(seconds: Sequence[float], nodes: int, cluster: Cluster, draw: random.Random) -> _Ran:
    """Runs jobs on the nodes of one model. An interrupted job joins the end of the queue with what is left of it."""
    found = _Ran()
    free = [(0.0, node) for node in range(nodes)]
    queue: list[tuple[float, int, float]] = [(0.0, number, of_job) for number, of_job in enumerate(seconds)]
    heapq.heapify(queue)
    number = len(queue)
    while queue:
        ready, _, left = heapq.heappop(queue)
        at, node = heapq.heappop(free)
        begins = max(at, ready)
        fails, preempted = draw.expovariate(1 / cluster.failure), draw.expovariate(1 / cluster.preemption)
        stops = min(fails, preempted)
        if stops >= left:
            found.work += left
            found.makespan = max(found.makespan, begins + left)
            heapq.heappush(free, (begins + left, node))
            continue
        number += 1
        found.interruptions += 1
        found.work += stops
        gone = min(stops, draw.uniform(0, WRITTEN_SECONDS))
        again = START_SECONDS + INSTALL_SECONDS
        done = max(0.0, stops - again - gone)
        found.lost += stops - done
        heapq.heappush(free, (begins + stops + (cluster.repair if fails < preempted else 0.0), node))
        heapq.heappush(queue, (begins + stops + (0.0 if fails < preempted else cluster.wait), number, left - done))
    return found


def _calls(fleets: int, seconds: float, resubmitted: int) -> float:
    """Calls of the scheduler a minute: a look every POLL_SECONDS for each fleet, two where something was submitted, and one
    array per fleet to begin with. What Slurm requeues by itself costs none."""
    looks = fleets * seconds / POLL_SECONDS
    return 60 * (looks + fleets + 2 * resubmitted) / seconds


def table(found: Sequence[Simulated]) -> str:
    """What came out, as a table in Markdown."""
    rows = [
        f"| {one.nodes:,} | {one.jobs:,} | {one.planned / HOUR:.1f} | {one.makespan / HOUR:.1f} | {one.interruptions:,} | "
        f"{one.lost / HOUR:.1f} ({one.lost / one.work:.2%}) | {one.calls:.0f} |"
        for one in found
    ]
    titles = (
        "nodes",
        "jobs",
        "hours as planned",
        "hours with interruptions",
        "interruptions",
        "node hours lost",
        "calls a minute",
    )
    return "\n".join([f"| {' | '.join(titles)} |", f"|{'---:|' * len(titles)}", *rows])
