"""Does what some jobs of a fleet left undecided go to nodes that are free, within the budget, once, and as surely as in one
session? Without a cluster."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as replaced

from torch_history.analysis.series import Verdict, history
from torch_history.analysis.verdicts import compare, evidence_of
from torch_history.errors import UserError
from torch_history.fleet import work as on_a_node
from torch_history.fleet.attempts import job_folder
from torch_history.fleet.collecting import collect
from torch_history.fleet.followups import followups
from torch_history.fleet.head import FAILURES, Head, sentence
from torch_history.fleet.order import Order
from torch_history.fleet.work import Work
from torch_history.measuring.budget import effort
from torch_history.store.launches import Launch, read_launches

from .fleet_stand_ins import MACHINE, FailingWork, PlayedScheduler, TimedWork, an_order

QUIET, LOUD = ("v2.0.0", "v2.1.0"), ("v2.4.0", "v2.5.0", "v2.6.0")
BUDGET = 600.0


@pytest.fixture(autouse=True)
def _signals_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_a_node, "stop_on_signals", lambda: None)
    monkeypatch.setenv("SLURMD_NODENAME", "n1")


@pytest.fixture
def order(tmp_path: Path) -> Order:
    """Two jobs, of which the first is decided by its own rounds and both pairs of the second are not."""
    order = an_order(tmp_path, QUIET, LOUD)
    shares = {MACHINE: {node: {"with": "n1"} for node in ("n1", "n2", "n3")} | {"n4": {"with": "n4"}}}
    return replace(order, only="", budget=BUDGET, launches=3, questions=LOUD, shares=shares)


@pytest.fixture
def queue() -> PlayedScheduler:
    return PlayedScheduler()


def begun(order: Order, queue: PlayedScheduler, nodes: int = 4, name: str = "a") -> tuple[Head, list[str]]:
    """A head of a fleet whose two jobs were submitted and are done."""
    fleet = Path(order.env) / "fleets" / name
    order.save(fleet)
    said: list[str] = []
    head = Head(fleet, queue, nodes, said.append)
    head.start()
    for place in range(len(order.jobs)):
        queue.run(fleet, f"1_{place}", TimedWork)
    return head, said


def go_on(head: Head, queue: PlayedScheduler) -> None:
    """Runs everything that waits, until nothing does."""
    while any(standing.state == "queued" for standing in head._look()):
        for name in [name for name, seen in queue.jobs.items() if seen.state == "PENDING"]:
            queue.run(head.fleet, name, TimedWork)


def measured(head: Head) -> list[Launch]:
    """What is in the results once all was collected, twice."""
    order = head.order
    for _ in range(2):
        collect([one for job in head.jobs if (one := job.counted)], Path(order.results), Path(order.env))
    folders = Path(order.results).glob(f"{MACHINE}-on-*")
    return [launch for folder in folders for launch in read_launches(Path(order.results), folder.name)]


def rounds(launches: list[Launch], tag: str, variant: str) -> int:
    return sum(launch.release == tag and case.parameters == (variant,) for launch in launches for case in launch.cases)


def spend(head: Head, number: int, seconds: float) -> None:
    """Lets a job have taken so long."""
    attempt = job_folder(head.fleet, number).counted
    assert attempt
    then = attempt.began["began_at"] + seconds
    os.utime(attempt.folder / "began.json", (then, then))


def test_what_one_job_left_undecided_is_measured_again_and_nothing_else(order: Order, queue: PlayedScheduler) -> None:
    head, said = begun(order, queue)
    go_on(head, queue)
    assert head.watch(0)
    launches = measured(head)
    assert {wanted.of for wanted in followups(head.fleet).values()} == {1}
    assert rounds(launches, "v2.0.0", "noisy") == rounds(launches, "v2.4.0", "even") == order.launches
    assert rounds(launches, "v2.4.0", "noisy") > order.launches
    left = effort(launches, [*itertools.pairwise(QUIET), *itertools.pairwise(LOUD)])
    assert left.undecided == 0
    assert any("Job 1 left times of v2.4.0 to v2.5.0 inconclusive" in words for words in said)
    counted = Counter((launch.launch, launch.release) for launch in launches)
    assert set(counted.values()) == {1}


def test_evidence_is_that_of_one_session_with_as_many_looks(order: Order, queue: PlayedScheduler) -> None:
    head, _ = begun(order, queue)
    go_on(head, queue)
    launches = measured(head)
    blocks = sorted({(launch.session, launch.round) for launch in launches}, key=lambda one: (int(one[0][1:]), one[1]))
    one = [replaced(launch, session="s", round=blocks.index((launch.session, launch.round)) + 1) for launch in launches]
    ((fit,), (expected,)) = (history(of).fits.values() for of in (launches, one))
    for old, new in itertools.pairwise(LOUD):
        for series, found in evidence_of(fit, old, new).items():
            other = evidence_of(expected, old, new)[series]
            assert found.looks == other.looks
            assert abs(found.shift - other.shift) < 2 * other.error
        changes = {change.series.parameters[0]: change for change in compare(launches, old, new)}
        assert changes["slower"].verdict is Verdict.SLOWER
        assert changes["noisy"].launches[0] > order.launches


@pytest.mark.parametrize(("nodes", "parts"), [(1, [LOUD]), (4, [LOUD[:2], LOUD[1:]])])
def test_pairs_are_shared_between_as_many_nodes_as_are_free(
    nodes: int, parts: list[tuple[str, ...]], order: Order, queue: PlayedScheduler
) -> None:
    head, _ = begun(order, queue, nodes)
    head._look()
    found = followups(head.fleet)
    assert sorted(wanted.releases for wanted in found.values()) == parts
    assert [*found] == [*range(2, 2 + len(parts))]
    assert queue.submitted[-1] == [*found]
    assert sum(wanted.budget for wanted in found.values()) <= 2 * BUDGET


def test_nothing_is_followed_up_while_other_jobs_wait_for_the_node(order: Order, queue: PlayedScheduler) -> None:
    fleet = Path(order.env) / "fleets" / "a"
    order.save(fleet)
    head = Head(fleet, queue, 1, lambda words: None)
    head.start()
    queue.run(fleet, "1_1", TimedWork)
    head._look()
    assert followups(fleet) == {}
    queue.run(fleet, "1_0", TimedWork)
    head._look()
    assert len(followups(fleet)) == 1


def test_no_more_is_spent_than_jobs_left_of_their_budgets(order: Order, queue: PlayedScheduler) -> None:
    head, _ = begun(order, queue)
    for number in (0, 1):
        spend(head, number, BUDGET)
    assert [standing.state for standing in head._look()] == ["done", "done"]
    spend(head, 0, BUDGET - 100)
    head._look()
    assert 0 < sum(wanted.budget for wanted in followups(head.fleet).values()) <= 100
    assert head_again(head, queue)._look()[-1].further
    assert sum(wanted.budget for wanted in followups(head.fleet).values()) <= 100


def head_again(head: Head, queue: PlayedScheduler) -> Head:
    return Head(head.fleet, queue, 4, lambda words: None)


def test_what_takes_more_than_the_most_rounds_is_given_up(order: Order, queue: PlayedScheduler) -> None:
    head, _ = begun(replace(order, budget=1e6), queue)
    go_on(head, queue)
    launches = measured(head)
    assert max(rounds(launches, tag, "noisy") for tag in LOUD) <= 2 * 41
    assert not effort(launches, itertools.pairwise(LOUD)).undecided


def test_a_head_that_was_killed_before_it_submitted_a_followup_is_gone_on_with(
    order: Order, queue: PlayedScheduler
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object) -> list[str]:
        raise Killed

    head, _ = begun(order, queue)
    queue.submit, submit = killed, queue.submit  # type: ignore[method-assign, assignment]
    with pytest.raises(Killed):
        head._look()
    before = followups(head.fleet)
    assert before
    queue.submit = submit  # type: ignore[method-assign]
    head_again(head, queue)._look()
    assert followups(head.fleet) == before
    assert queue.submitted[-1] == [*before]


def test_a_followup_that_was_ended_is_submitted_again_and_counts_once(order: Order, queue: PlayedScheduler) -> None:
    head, _ = begun(order, queue, nodes=1)
    head._look()
    queue.turn("2_0", "NODE_FAIL")
    head._look()
    assert queue.submitted[1:] == [[2], [2]]
    go_on(head, queue)
    assert head.watch(0)
    assert Counter(launch.launch for launch in measured(head)).most_common(1)[0][1] == 1


def test_a_followup_that_measured_nothing_is_not_repeated(order: Order, queue: PlayedScheduler) -> None:
    class IdleWork(Work):
        def measure(self, order: Order, releases: tuple[str, ...], attempt: object) -> None:
            pass

    head, _ = begun(order, queue)
    head._look()
    for name in ("2_0", "2_1"):
        queue.run(head.fleet, name, IdleWork)
    assert head.watch(0)
    assert len(followups(head.fleet)) == 2


def test_a_followup_that_fails_is_given_up_and_what_was_asked_for_stays(order: Order, queue: PlayedScheduler) -> None:
    head, _ = begun(order, queue, nodes=1)
    for submission in range(2, 2 + FAILURES):
        head._look()
        queue.run(head.fleet, f"{submission}_0", FailingWork)
    standings = head._look()
    assert [standing.state for standing in standings] == ["done", "done", "failed"]
    assert sentence(standings[-1]).startswith("Job 2, more rounds of v2.4.0 to v2.6.0: failed")
    assert len(followups(head.fleet)) == 1


def test_a_followup_that_the_scheduler_refuses_ends_no_fleet(order: Order, queue: PlayedScheduler) -> None:
    head, _ = begun(order, queue)

    def refused(*_: object) -> list[str]:
        raise UserError("Slurm refused the jobs: Invalid node name specified.")

    queue.submit = refused  # type: ignore[method-assign, assignment]
    assert not head.watch(0)
    assert "Invalid node name" in head.look()[-1].words


def test_a_cancelled_fleet_is_followed_up_no_more(order: Order, queue: PlayedScheduler) -> None:
    head, _ = begun(order, queue)
    head._look()
    assert [standing.state for standing in head.cancel()] == ["done", "done", "closed", "closed"]
    head_again(head, queue)._look()
    assert len(followups(head.fleet)) == 2


@pytest.mark.parametrize("change", [{"budget": 0.0}, {"only": "counts"}])
def test_without_a_budget_for_times_there_are_no_followups(
    change: dict[str, object], order: Order, queue: PlayedScheduler
) -> None:
    head, _ = begun(replace(order, **change), queue)  # type: ignore[arg-type]
    assert head.watch(0)
    assert followups(head.fleet) == {}


# --- nodes


def test_a_node_that_shares_no_folder_goes_on_with_its_own_pairs(order: Order, queue: PlayedScheduler) -> None:
    head, _ = begun(replace(order, shares={}), queue)
    head._look()
    (wanted,) = followups(head.fleet).values()
    assert (wanted.machine, wanted.releases) == (f"{MACHINE}-on-n1", LOUD)
    assert queue.bound == [(), ("n1",)]
    head._look()
    assert len(followups(head.fleet)) == 1


def test_nodes_that_agree_take_rounds_of_one_another(order: Order, queue: PlayedScheduler) -> None:
    head, _ = begun(order, queue)
    head._look()
    assert queue.bound[-1] == ("n1", "n2", "n3")


def test_rounds_of_a_node_that_is_busy_wait_for_it(order: Order, queue: PlayedScheduler) -> None:
    head, _ = begun(replace(order, jobs=(QUIET, LOUD, ("v2.8.0", "v2.9.0")), shares={}), queue)
    (job_folder(head.fleet, 2).folder / "done.json").unlink()
    queue.turn("1_2", "RUNNING", node="n1")
    head._look()
    assert followups(head.fleet) == {}
    queue.turn("1_2", "RUNNING", node="n2")
    head._look()
    assert len(followups(head.fleet)) == 1


def test_evidence_of_a_pair_is_that_of_all_its_jobs(order: Order, queue: PlayedScheduler) -> None:
    head, _ = begun(order, queue)
    go_on(head, queue)
    of_pair = history(measured(head))
    sessions = {
        launch.session
        for series, releases in of_pair.items()
        if series.parameters == ("noisy",)
        for launch, _ in releases["v2.5.0"]
    }
    assert len(sessions) > 1


class EndsWhileLookedAt(PlayedScheduler):
    """A queue whose job ends after its head has seen it run, and before that asks which nodes are free."""

    fleet: Path

    def release(self, ids: Iterable[str]) -> None:
        for name in [name for name, seen in self.jobs.items() if seen.state == "RUNNING"]:
            self.run(self.fleet, name, TimedWork)


def test_a_job_that_ends_while_its_head_looks_is_judged_before_the_head_ends(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "n4")
    queue = EndsWhileLookedAt()
    queue.fleet = Path(order.env) / "fleets" / "late"
    replace(order, jobs=(LOUD,)).save(queue.fleet)
    head = Head(queue.fleet, queue, 1, lambda words: None)
    head.start()
    queue.turn("1_0", "RUNNING", node="n4")
    submit = queue.submit
    monkeypatch.setattr(queue, "submit", lambda *asked: started(queue, submit(*asked)))
    assert head.watch(0)
    assert {wanted.of for wanted in followups(queue.fleet).values()} == {0}


def started(queue: PlayedScheduler, names: list[str]) -> list[str]:
    for name in names:
        queue.turn(name, "RUNNING", node="n4")
    return names
