"""Does a fleet finish with every launch once, whatever ends its jobs, its head or its scheduler? Without a cluster."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from torch_history.errors import UserError
from torch_history.fleet import work as on_a_node
from torch_history.fleet.attempts import JobFolder, job_folder
from torch_history.fleet.collecting import collect
from torch_history.fleet.head import FAILURES, Head, only_head, sentence
from torch_history.fleet.order import Order
from torch_history.fleet.scheduler import COMMANDS, Resources, Unreachable, nodes_of, scheduler
from torch_history.store.launches import Launch, append_launches, read_launches
from torch_history.system import signals

from .fleet_stand_ins import (
    MACHINE,
    FailingWork,
    PlayedScheduler,
    PlayedWork,
    an_order,
    played,
)

RELEASES = ("v2.0.1", "v2.1.0", "v2.2.0")


@pytest.fixture(autouse=True)
def _signals_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_a_node, "stop_on_signals", lambda: None)
    assert signals.received() == 0


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A fleet of three jobs of one release each."""
    folder = tmp_path / "env" / "fleets" / "a"
    an_order(tmp_path, *[(release,) for release in RELEASES]).save(folder)
    return folder


@pytest.fixture
def queue() -> PlayedScheduler:
    return PlayedScheduler()


def head_of(fleet: Path, queue: PlayedScheduler, nodes: int = 3) -> tuple[Head, list[str]]:
    said: list[str] = []
    return Head(fleet, queue, nodes, said.append), said


def collected(fleet: Path) -> list[Launch]:
    """What is in the results once all counted attempts were collected."""
    order = Order.load(fleet)
    jobs = [job_folder(fleet, number) for number in range(len(order.jobs))]
    collect([attempt for job in jobs if (attempt := job.counted)], Path(order.results), Path(order.env))
    return [*read_launches(Path(order.results), MACHINE)]


def cases_of(launches: list[Launch]) -> Counter[tuple[str, tuple[str, ...]]]:
    return Counter((launch.release, case.parameters) for launch in launches for case in launch.cases)


EVERYTHING = Counter({(release, (str(number),)): 1 for release in RELEASES for number in range(3)})


def test_all_jobs_are_submitted_at_once_and_done_when_they_have_run(fleet: Path, queue: PlayedScheduler) -> None:
    head, _ = head_of(fleet, queue)
    assert [standing.state for standing in head.start()] == ["queued"] * 3
    assert queue.submitted == [[0, 1, 2]]
    queue.turn("1_0", "RUNNING")
    assert [standing.state for standing in head.look()] == ["running", "queued", "queued"]
    for name in ("1_0", "1_1", "1_2"):
        queue.run(fleet, name)
    assert head.watch(0)
    assert queue.submitted == [[0, 1, 2]]
    assert cases_of(collected(fleet)) == EVERYTHING


def test_a_second_head_finds_what_the_first_one_submitted(fleet: Path, queue: PlayedScheduler) -> None:
    head_of(fleet, queue)[0].start()
    assert [standing.state for standing in head_of(fleet, queue)[0].start()] == ["queued"] * 3
    assert len(queue.submitted) == 1


def test_what_ended_before_it_was_done_is_submitted_again_and_goes_on(fleet: Path, queue: PlayedScheduler) -> None:
    head, _ = head_of(fleet, queue)
    head.start()
    attempt = job_folder(fleet, 0).begin({"node": "n1"})
    append_launches(attempt.results / MACHINE / "v2.0.1-release-py3.11.jsonl", [first := played("v2.0.1", 0)])
    queue.turn("1_0", "NODE_FAIL")
    for name in ("1_1", "1_2"):
        queue.run(fleet, name)
    head.start()
    assert queue.submitted == [[0, 1, 2], [0]]
    queue.run(fleet, "2_0")
    assert head.watch(0)
    assert first in collected(fleet)
    assert cases_of(collected(fleet)) == EVERYTHING


def test_no_more_jobs_than_nodes_are_submitted_where_nothing_queues(fleet: Path) -> None:
    queue = PlayedScheduler(queues=False)
    head, _ = head_of(fleet, queue, nodes=2)
    head.start()
    assert queue.submitted == [[0, 1]]
    queue.run(fleet, "1_0")
    head.start()
    assert queue.submitted == [[0, 1], [2]]


def test_a_job_that_fails_three_times_is_given_up_with_its_last_words(fleet: Path, queue: PlayedScheduler) -> None:
    head, _ = head_of(fleet, queue)
    head.start()
    queue.run(fleet, "1_1")
    queue.run(fleet, "1_2")
    for submission in range(1, FAILURES + 1):
        queue.run(fleet, f"{submission}_0", FailingWork)
        standings = head.look() if submission == FAILURES else head._look()
    assert standings[0].state == "failed"
    assert head._look()[0].state == "failed"
    assert len(queue.submitted) == FAILURES
    words = "Job 0, v2.0.1: failed on "
    assert sentence(standings[0]).startswith(words)
    assert "3 times. Its last words: The disk of this node is full" in sentence(standings[0])


def test_a_failed_job_is_tried_again_by_a_new_head(fleet: Path, queue: PlayedScheduler) -> None:
    head, _ = head_of(fleet, queue)
    head.start()
    for submission in range(1, FAILURES + 1):
        queue.run(fleet, f"{submission}_0", FailingWork)
        head._look()
    head_of(fleet, queue)[0].start()
    assert queue.submitted[-1] == [0]
    queue.run(fleet, f"{len(queue.submitted)}_0")
    assert job_folder(fleet, 0).done["finished"]


def test_failures_between_which_launches_came_do_not_add_up(fleet: Path, queue: PlayedScheduler) -> None:
    head, _ = head_of(fleet, queue)
    head.start()
    for submission in range(1, 2 * FAILURES):
        attempt = job_folder(fleet, 0).begin({"node": "n1"})
        path = attempt.results / MACHINE / "v2.0.1-release-py3.11.jsonl"
        append_launches(path, [played("v2.0.1", submission)])
        attempt.fail("the node was too hot")
        queue.turn(f"{submission}_0", "FAILED")
        head._look()
    assert len(queue.submitted) == 2 * FAILURES


def test_a_process_that_was_killed_before_it_began_counts_as_a_failure(fleet: Path, queue: PlayedScheduler) -> None:
    head, _ = head_of(fleet, queue)
    head.start()
    log = fleet / "log" / "1_0" / "1_0_0_log.err"
    log.parent.mkdir(parents=True)
    log.write_text("ModuleNotFoundError: No module named 'submitit'\n")
    for submission in range(1, FAILURES + 1):
        queue.turn(f"{submission}_0", "FAILED")
        head._look()
        head._look()
    assert len(queue.submitted) == FAILURES
    assert head.look()[0].state == "failed"
    assert "ModuleNotFoundError" in job_folder(fleet, 0).attempts[0].last_words


def test_preempted_and_cancelled_jobs_are_never_given_up(fleet: Path, queue: PlayedScheduler) -> None:
    head, _ = head_of(fleet, queue)
    head.start()
    for submission, state in enumerate(2 * ["PREEMPTED", "CANCELLED by 0", "NODE_FAIL", "BOOT_FAIL"], start=1):
        queue.turn(f"{submission}_0", state)
        head._look()
    assert len(queue.submitted) == 9


def test_what_slurm_holds_is_released_and_what_a_user_holds_is_not(fleet: Path, queue: PlayedScheduler) -> None:
    head, _ = head_of(fleet, queue)
    head.start()
    queue.turn("1_0", "PENDING", "launch failed requeued held")
    queue.turn("1_1", "PENDING", "JobHeldUser")
    queue.turn("1_2", "PENDING", "JobHoldMaxRequeue")
    standings = head._look()
    assert queue.released == ["1_0", "1_2"]
    assert [standing.state for standing in standings] == ["queued"] * 3
    assert "JobHeldUser" in sentence(standings[1])
    assert len(queue.submitted) == 1


def test_what_slurm_requeues_although_it_is_done_takes_no_place(fleet: Path, queue: PlayedScheduler) -> None:
    head, _ = head_of(fleet, queue, nodes=2)
    head.start()
    queue.run(fleet, "1_0")
    queue.run(fleet, "1_1")
    queue.turn("1_0", "PENDING", "launch failed requeued held")
    queue.turn("1_1", "RUNNING")
    queue.turn("1_2", "NODE_FAIL")
    head._look()
    assert (queue.released, queue.cancelled) == ([], ["1_0"])
    assert queue.submitted == [[0, 1, 2], [2]]


def test_a_controller_that_is_away_changes_nothing(fleet: Path, queue: PlayedScheduler) -> None:
    head, said = head_of(fleet, queue)
    head.start()
    queue.away = True
    for _ in range(3):
        head._look()
    assert sum("does not answer" in words for words in said) == 1
    queue.away = False
    head._look()
    assert said[-1] == "The scheduler answers again."
    assert len(queue.submitted) == 1


def test_a_head_that_was_killed_between_noting_and_submitting_loses_no_job(fleet: Path, queue: PlayedScheduler) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object) -> list[str]:
        raise Killed

    head, _ = head_of(fleet, queue, nodes=3)
    queue.submit, submit = killed, queue.submit  # type: ignore[method-assign, assignment]
    with pytest.raises(Killed):
        head.start()
    queue.submit = submit  # type: ignore[method-assign]
    head_of(fleet, queue, nodes=3)[0].start()
    assert queue.submitted == [[0, 1, 2]]


def test_two_heads_at_once_are_refused(fleet: Path) -> None:
    with (
        only_head(fleet),
        pytest.raises(UserError, match=r"process \d+ on .*looks after the fleet a"),
        only_head(fleet),
    ):
        pass


def test_cancelled_jobs_are_closed_and_keep_what_they_measured(fleet: Path, queue: PlayedScheduler) -> None:
    head, _ = head_of(fleet, queue)
    head.start()
    queue.run(fleet, "1_0")
    attempt = job_folder(fleet, 1).begin({"node": "n1"})
    append_launches(attempt.results / MACHINE / "v2.1.0-release-py3.11.jsonl", [kept := played("v2.1.0", 0)])
    (attempt.results / MACHINE / "machine.json").write_text(
        json.dumps({"machine": MACHINE, "device": "cpu", "cpu": "A"})
    )
    assert [standing.state for standing in head.cancel()] == ["done", "closed", "closed"]
    assert queue.cancelled == ["1_1", "1_2"]
    assert PlayedWork(str(fleet), 2)() == "Nothing is left to do."
    launches = collected(fleet)
    assert kept in launches
    assert len(launches) == 4


# --- attempts


def test_an_attempt_begins_with_what_the_last_one_had_and_leaves_a_torn_line_behind(tmp_path: Path) -> None:
    job = JobFolder(tmp_path)
    one = job.begin({"node": "n1"})
    path = one.results / MACHINE / "v2.0.1-release-py3.11.jsonl"
    append_launches(path, [whole := played("v2.0.1", 0)])
    with path.open("a") as stream:
        stream.write('{"session":"s","rou')
    (one.results / "benchmarks.json").write_text('{"half')
    two = job.begin({"node": "n2"})
    assert [*read_launches(two.results, MACHINE)] == [whole]
    assert not (two.results / "benchmarks.json").exists()
    assert two.began["lines"] == 1
    append_launches(path, [played("v2.0.1", 1)])  # the first lives on
    assert [*read_launches(two.results, MACHINE)] == [whole]


def test_an_attempt_that_was_killed_while_it_copied_is_passed_over(tmp_path: Path) -> None:
    job = JobFolder(tmp_path)
    one = job.begin({"node": "n1"})
    append_launches(one.results / MACHINE / "v2.0.1-release-py3.11.jsonl", [whole := played("v2.0.1", 0)])
    (tmp_path / "attempts" / "002" / "results").mkdir(parents=True)
    three = job.begin({"node": "n2"})
    assert three.number == 3
    assert [*read_launches(three.results, MACHINE)] == [whole]


@pytest.mark.parametrize("order", [*itertools.permutations((0, 1, 2))])
def test_of_attempts_that_are_all_done_exactly_one_counts(tmp_path: Path, order: tuple[int, ...]) -> None:
    job = JobFolder(tmp_path)
    attempts = [job.begin({}) for _ in range(3)]
    answers = [job.finish(attempts[number]) for number in order]
    assert answers == [True, False, False]
    assert job.counted == attempts[order[0]]
    assert job.finish(attempts[order[0]])


def test_work_travels_as_its_class_and_two_values(fleet: Path) -> None:
    assert pickle.loads(pickle.dumps(PlayedWork(str(fleet), 1))) == PlayedWork(str(fleet), 1)
    assert len(pickle.dumps(PlayedWork(str(fleet), 1))) < 500


# --- collecting


def finished(tmp_path: Path, launches: list[Launch], number: int = 0, **record: str) -> JobFolder:
    """A job that is done and holds these launches."""
    job = JobFolder(tmp_path / f"job{number}")
    attempt = job.begin({})
    for launch in launches:
        path = attempt.results / MACHINE / f"{launch.release}-release-py3.11.jsonl"
        append_launches(path, [launch])
    about = {"machine": MACHINE, "device": "cpu", "cpu": "A", "version": 1, **record}
    (attempt.results / MACHINE / "machine.json").write_text(json.dumps(about))
    job.finish(attempt)
    return job


def test_results_are_the_same_whatever_the_order_and_however_often(tmp_path: Path) -> None:
    draw = random.Random(26)
    launches = [played(draw.choice(RELEASES), number) for number in range(40)]
    jobs = [finished(tmp_path, launches[first : first + 15], first) for first in range(0, 40, 10)]
    for trial in range(10):
        results = tmp_path / f"results{trial}"
        drawn = [draw.choice(jobs) for _ in range(6)] + draw.sample(jobs, len(jobs))
        for job in drawn:
            collect([attempt] if (attempt := job.counted) else [], results, tmp_path / "env")
        found = Counter(launch.launch for launch in read_launches(results, MACHINE))
        assert found == Counter(launch.launch for launch in launches)


def test_what_the_results_had_stays(tmp_path: Path) -> None:
    results = tmp_path / "results"
    append_launches(results / MACHINE / "v2.0.1-release-py3.11.jsonl", [before := played("v2.0.1", 0)])
    job = finished(tmp_path, [after := played("v2.0.1", 1)])
    assert job.counted
    found = collect([job.counted], results, tmp_path / "env")
    assert (found.lines, found.known, found.damaged) == (1, 0, 0)
    assert [*read_launches(results, MACHINE)] == [before, after]


def test_results_of_another_kind_of_machine_are_refused_whole(tmp_path: Path) -> None:
    results = tmp_path / "results"
    one, other = finished(tmp_path, [played("v2.0.1", 0)]), finished(tmp_path, [played("v2.0.1", 1)], 1, cpu="B")
    assert one.counted
    assert other.counted
    collect([one.counted], results, tmp_path / "env")
    with pytest.raises(UserError, match="its cpu is 'B' and not 'A'"):
        collect([other.counted], results, tmp_path / "env")
    assert len([*read_launches(results, MACHINE)]) == 1


def test_asvs_own_results_keep_what_was_measured_later(tmp_path: Path) -> None:
    from torch_history.fleet.collecting import _merged

    columns = ["result", "params", "version", "started_at"]
    ours = {"result_columns": columns, "results": {"a": [[1.0], [], "v", 5], "b": [[1.0], [], "v", 5]}, "version": 2}
    theirs = {"result_columns": columns, "results": {"b": [[2.0], [], "v", 9], "c": [[2.0], [], "v"]}, "version": 2}
    expected = {"a": [[1.0], [], "v", 5], "b": [[2.0], [], "v", 9]}
    assert {name: row for name, row in _merged(ours, theirs)["results"].items() if name != "c"} == expected
    assert {name: row for name, row in _merged(theirs, ours)["results"].items() if name != "c"} == expected
    assert _merged(ours, theirs)["results"]["c"][:3] == [[2.0], [], "v"]


def a_slurm(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch, without: str = "") -> None:
    """Puts stand-ins for Slurm's commands in the place of all that there are."""
    for name in COMMANDS:
        if name != without:
            (folder / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize(
    ("words", "away"),
    [
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", True),
        ("slurm_load_jobs error: Transport endpoint is not connected", True),
        ("slurm_load_jobs error: Connection reset by peer", True),
        ("slurm_load_jobs error: Socket timed out on send/recv operation", True),
        ("squeue: error: Invalid user: nobody-here", False),
    ],
)
def test_a_controller_that_is_away_is_waited_for_and_a_refusal_is_told(
    words: str, away: bool, fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_slurm(tmp_path, f"echo '{words}' >&2\nexit 1", monkeypatch)
    with pytest.raises(Unreachable if away else UserError, match=words.rpartition(" ")[2].strip(")")):
        scheduler("slurm", Resources(nodes=1), PlayedWork).seen(fleet)


@pytest.mark.parametrize("name", COMMANDS)
def test_where_a_command_of_slurms_is_missing_a_sentence_says_so(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_slurm(tmp_path, "exit 0", monkeypatch, without=name)
    for ask in (lambda: scheduler("slurm", Resources()), lambda: nodes_of("")):
        with pytest.raises(UserError, match=f"There is no {name} on this machine.*--executor local"):
            ask()


LINES = "cpu\ntouch ran"


@pytest.mark.parametrize(
    ("asked", "node", "folder"),
    [
        *[({name: LINES}, "", "") for name in ("partition", "account", "qos", "constraint", "gres", "memory")],
        ({"more": {"reservation": LINES}}, "", ""),
        ({"more": {LINES: "night"}}, "", ""),
        *[({"partition": text}, "", "") for text in ("cpu\rtouch ran", "cpu\u2028touch ran")],
        ({}, LINES, ""),
        ({}, "", LINES),
    ],
)
def test_an_option_of_several_lines_is_no_script(
    asked: dict[str, Any], node: str, folder: str, tmp_path: Path, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_slurm(tmp_path, f"echo $0 >> {tmp_path}/asked", monkeypatch)
    at_work = scheduler("slurm", Resources(**asked), PlayedWork)
    with pytest.raises(UserError, match="Nothing was submitted"):
        at_work.submit(fleet / folder, 1, [0], [node] if node else ())
    assert not (tmp_path / "asked").exists()


def test_whatever_the_umask_nobody_else_may_write_what_jobs_run(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.parent.chmod(0o775)  # as an older version left it
    fleet.chmod(0o775)
    before = os.umask(0o002)
    try:
        with only_head(fleet):
            at_work = scheduler("local", Resources(), PlayedWork)
            assert Head(fleet, at_work, 1, lambda words: None).watch(0.1)
        collected(fleet)
    finally:
        os.umask(before)
    assert [*fleet.rglob("*.pkl")]
    assert [path.stat().st_mode & 0o077 for path in (fleet.parent, fleet)] == [0, 0]
    collect([], tmp_path / "results", tmp_path / "another")
    assert (tmp_path / "another" / "fleets").stat().st_mode & 0o077 == 0
