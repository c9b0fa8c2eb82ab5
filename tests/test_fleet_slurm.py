"""Does a fleet work on a real Slurm, which this machine runs on its loopback? `make fleet` installs what that needs."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tools.loopback_slurm import Cluster, cluster, missing
from torch_history.analysis.agreement import files, newest, shares
from torch_history.fleet.attempts import JobFolder, job_folder
from torch_history.fleet.collecting import collect_check
from torch_history.fleet.followups import followups
from torch_history.fleet.head import FAILURES, Head
from torch_history.fleet.scheduler import Resources, Slurm, nodes_of, scheduler
from torch_history.fleet.work import Work
from torch_history.measuring.budget import effort
from torch_history.store.launches import Launch, machines_in, read_file, read_launches

from .fleet_faults import Trial
from .fleet_stand_ins import CASES, MACHINE, PAUSE, CheckingWork, FailingWork, PlayedWork, TimedWork, an_order
from .test_fleet import cases_of, collected

pytestmark = pytest.mark.fleet
NODES = 4
RELEASES = tuple(f"v2.{number}.0" for number in range(6))


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    if words := missing():
        if os.environ.get("FLEET"):
            pytest.fail(words)
        pytest.skip(words)
    with cluster(NODES) as running:
        yield running


@pytest.fixture
def here(slurm: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder for a fleet, in surroundings in which Slurm's commands speak to the cluster."""
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, slurm.surroundings[name])
    monkeypatch.setenv(CASES, "3")
    monkeypatch.setenv(PAUSE, "0.1")
    return tmp_path


def head_of(folder: Path, name: str, work: type[Work], *jobs: tuple[str, ...]) -> tuple[Head, list[str]]:
    fleet = folder / "env" / "fleets" / name
    an_order(folder, *jobs).save(fleet)
    said: list[str] = []
    return Head(fleet, scheduler("slurm", Resources(nodes=NODES, partition="cpu"), work), NODES, said.append), said


def test_a_fleet_measures_everything_once_on_several_nodes(here: Path) -> None:
    head, said = head_of(here, "plain", PlayedWork, *[(release,) for release in RELEASES])
    assert head.watch(0.5)
    launches = collected(head.fleet)
    assert cases_of(launches) == Counter({(release, (str(i),)): 1 for release in RELEASES for i in range(3)})
    nodes = {launch.facts["node"]["node"] for launch in launches}
    assert len(nodes) > 1
    assert nodes <= {f"n{number}" for number in range(1, NODES + 1)}
    assert all(launch.facts["node"]["job"].isdecimal() for launch in launches)
    assert any(re.fullmatch(r"Job 0, v2\.0\.0: done on n\d\.", words) for words in said)


def test_a_job_that_cannot_be_measured_is_given_up_with_its_words(here: Path) -> None:
    head, said = head_of(here, "failing", FailingWork, ("v2.0.0",))
    assert not head.watch(0.5)
    assert said[-1].endswith("3 times. Its last words: The disk of this node is full, so v2.0.0 cannot be installed.")
    assert len(job_folder(head.fleet, 0).attempts) == FAILURES


def test_a_cancelled_fleet_leaves_nothing_in_the_queue(
    here: Path, slurm: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PAUSE, "100")
    head, _ = head_of(here, "cancelled", PlayedWork, *[(release,) for release in RELEASES])
    assert {standing.state for standing in head.start()} <= {"queued", "running"}
    assert {standing.state for standing in head.cancel()} == {"closed"}
    live = [one for one in Slurm(Resources(), Work).seen(head.fleet) if not one.over and one.state != "COMPLETING"]
    assert live == []


def test_a_check_runs_on_each_node_and_refuses_the_slow_one(here: Path) -> None:
    nodes = tuple(f"n{number}" for number in range(1, NODES + 1))
    fleet = here / "env" / "fleets" / "check"
    order = replace(an_order(here, *[("v2.0.0",)] * NODES), nodes=nodes, slowed="n3", only="times", launches=8)
    order.save(fleet)
    head = Head(fleet, scheduler("slurm", Resources(partition="cpu"), CheckingWork), NODES, lambda words: None)
    assert nodes_of("cpu") == nodes_of("") == [*nodes]
    assert head.watch(0.5)
    attempts = [attempt for job in head.jobs if (attempt := job.counted)]
    assert [attempt.began["node"] for attempt in attempts] == [*nodes]
    results = Path(order.results)
    for _ in range(2):
        assert collect_check(attempts, "v2.0.0", "release-py3.11", results, Path(order.env)) == [MACHINE]
    agreement = newest(results, MACHINE)
    assert agreement
    assert len([*read_file(files(results, MACHINE)[0])]) == NODES * 8 * 2
    assert agreement.groups == {"n1": "n1", "n2": "n1", "n3": "n3", "n4": "n1"}
    shared = shares(results, [MACHINE])[MACHINE]
    assert {node: known["with"] for node, known in shared.items()} == {"n1": "n1", "n2": "n1", "n4": "n1"}


def test_what_is_undecided_is_measured_by_nodes_that_share_its_folder(here: Path) -> None:
    fleet = here / "env" / "fleets" / "followed"
    group = {f"n{number}": {"with": "n1"} for number in range(1, NODES)}
    loud = RELEASES[2:5]
    order = an_order(here, RELEASES[:2], loud)
    replace(order, only="times", budget=600.0, questions=loud, shares={MACHINE: group}).save(fleet)
    head = Head(
        fleet, scheduler("slurm", Resources(nodes=NODES, partition="cpu"), TimedWork), NODES, lambda words: None
    )
    assert head.watch(0.5)
    assert {wanted.of for wanted in followups(fleet).values()} == {1}
    launches = {number: launches_of(job) for number, job in enumerate(head.jobs)}
    for number, wanted in followups(fleet).items():
        alike = group.keys() if wanted.machine == f"{MACHINE}-on-n1" else {f"n{NODES}"}
        assert {launch.facts["node"]["node"] for launch in launches[number]} <= alike
        assert {case.parameters for launch in launches[number] for case in launch.cases} == {("noisy",)}
    every = [launch for of_job in launches.values() for launch in of_job]
    assert effort(every, itertools.pairwise(loud)).undecided == 0
    assert set(Counter(launch.launch for launch in every).values()) == {1}


def launches_of(job: JobFolder) -> list[Launch]:
    assert job.counted
    results = job.counted.results
    return [launch for machine in machines_in(results) for launch in read_launches(results, machine)]


@pytest.mark.parametrize("executor", ["local", "debug"])
def test_other_executors_of_submitit_do_the_same(
    executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CASES, "3")
    fleet = tmp_path / "env" / "fleets" / executor
    an_order(tmp_path, *[(release,) for release in RELEASES[:3]]).save(fleet)
    head = Head(fleet, scheduler(executor, Resources(nodes=2), PlayedWork), 2, lambda words: None)
    assert head.watch(0.2)
    assert len(collected(fleet)) == 9


def test_nothing_is_lost_or_counted_twice_while_things_are_killed(here: Path, slurm: Cluster) -> None:
    outcome = Trial(slurm, here, seed=7, cases=12, pause=0.5).run(faults=8, patience=300)
    assert outcome.finished, (here / "head.log").read_text()
    assert (outcome.missing, outcome.twice, outcome.lost) == (0, 0, 0), outcome
    assert sum(outcome.faults.values()) >= 5, outcome
