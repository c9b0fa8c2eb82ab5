"""Does the simulation keep what is certain: the plan without interruptions, more time with them, and few calls?"""

from __future__ import annotations

from dataclasses import replace

from torch_history.fleet.planning import Rates, Work
from torch_history.fleet.simulation import Cluster, simulate, table

RELEASES = [f"v{number}" for number in range(60)]
WORK = Work(("selection",), "", 3)
RATES = Rates({}, {("selection", "times"): 300.0, ("selection", "counts"): 60.0})
CALM = Cluster(16, failure=1e12, preemption=1e12)
MOST_CALLS = 60
"""A minute, for eight fleets: what a site's administrator is promised in docs/fleet.md."""


def test_without_interruptions_it_is_the_plan() -> None:
    found = simulate(RELEASES, 2, WORK, RATES, CALM, 1)
    assert found.makespan == found.planned
    assert (found.interruptions, found.lost) == (0, 0.0)


def test_interruptions_cost_time_and_no_work_is_forgotten() -> None:
    calm, rough = (
        simulate(RELEASES, 2, WORK, RATES, cluster, 1) for cluster in (CALM, replace(CALM, preemption=7200.0))
    )
    assert rough.interruptions > 0
    assert rough.makespan > calm.makespan
    assert abs(rough.work - rough.lost - calm.work) < 1e-3
    assert rough.calls < MOST_CALLS


def test_the_same_seed_gives_the_same_table() -> None:
    rough = replace(CALM, preemption=7200.0)
    one, other = (simulate(RELEASES, 2, WORK, RATES, rough, 5) for _ in range(2))
    assert table([one]) == table([other])
    assert len(table([one, other]).splitlines()) == 4
