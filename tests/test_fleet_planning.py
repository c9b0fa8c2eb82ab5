"""Is a history cut so that every pair is measured on one node, and are N nodes done when the forecast says so?"""

from __future__ import annotations

import itertools
import re

import pytest
from click.testing import CliRunner
from msgspec import structs

from torch_history.cli.fleet import fleet
from torch_history.fleet.planning import (
    GIGABYTES,
    INSTALL_SECONDS,
    START_SECONDS,
    UNKNOWN_SECONDS,
    Rates,
    Work,
    cut,
    jobs,
    makespan,
    rates,
)
from torch_history.measuring.plan import AT_ONCE
from torch_history.store.launches import Case, Launch

TAGS = [f"v2.{i}.0" for i in range(40)]
EVEN = Rates({}, {("selection", "times"): 10.0, ("selection", "counts"): 1.0})
TIMES = Work(("selection",), "times", 3)


def there(_tag: str) -> bool:
    return True


def launch(release: str, metric: str, seconds: float, round: int = 1, cases: int = 2) -> Launch:
    of = tuple(Case((f"'{i}'",), value=1.0) for i in range(cases))
    return Launch(
        "s", round, "l", release, "release-py3.11", f"selection.Selection.track_{metric}", "v", "", seconds, {}, of
    )


@pytest.mark.parametrize(("count", "nodes"), [*itertools.product((1, 2, 5, 6, 9, 40), (1, 2, 4, 64))])
def test_every_pair_of_neighbours_is_measured_on_one_node(count: int, nodes: int) -> None:
    found = jobs(TAGS[:count], TIMES, EVEN, nodes, there)
    together = {pair for job in found for pair in itertools.pairwise(job.releases)}
    assert together == set(itertools.pairwise(TAGS[:count]))
    assert {tag for job in found for tag in job.releases} == set(TAGS[:count])
    assert {job.anchor for job in found} == ({TAGS[count // 2]} if len(found) > 1 else {""})
    assert all(len({*job.releases, job.anchor} - {""}) <= AT_ONCE for job in found)
    assert [job.number for job in found] == [*range(len(found))]


def test_counts_are_taken_once_of_each_release() -> None:
    found = jobs(TAGS[:8], Work(("selection",), "counts", 1), EVEN, 4, there)
    assert sorted(tag for job in found for tag in job.releases) == sorted(TAGS[:8])
    assert len(found) == 4


def test_one_node_gets_the_fewest_jobs_and_more_nodes_are_done_sooner() -> None:
    spans = {}
    for nodes in (1, 2, 4, 8):
        found = jobs(TAGS[:9], TIMES, EVEN, nodes, there)
        spans[nodes] = makespan([job.seconds for job in found], nodes)
    assert len(jobs(TAGS[:9], TIMES, EVEN, 1, there)) == 3
    assert spans[1] > 1.4 * spans[2] > 1.4 * 1.2 * spans[4]
    assert spans[4] >= spans[8]


def test_a_node_takes_the_next_job_as_soon_as_it_is_free() -> None:
    assert makespan([5, 4, 3, 2, 1], 2) == 8
    assert makespan([5, 4, 3, 2, 1], 1) == 15
    assert makespan([5, 4], 4) == 5


def test_what_a_job_takes_to_start_is_the_least_that_a_session_took() -> None:
    """The name of a session says when it began. One that had to install took minutes until its first launch."""
    sessions = {
        "20260101T100000-abc": ("2026-01-01T10:00:04+00:00", "2026-01-01T10:00:30+00:00"),
        "20260102T100000-abc": ("2026-01-02T10:03:00+00:00",),
        "a name": ("2026-01-02T10:00:01+00:00",),
    }
    stored = [
        structs.replace(launch("v2.0.0", "operators", 1.0), session=name, started_at=began)
        for name, starts in sessions.items()
        for began in starts
    ]
    assert rates(stored).start == 4
    assert rates([launch("v2.0.0", "operators", 1.0)]).start == START_SECONDS


def test_the_longest_job_comes_first() -> None:
    slow = Rates({("selection", "times", "v2.7.0"): 500.0}, EVEN.usual)
    found = jobs(TAGS[:9], TIMES, slow, 2, there)
    assert "v2.7.0" in found[0].releases
    assert [job.seconds for job in found] == sorted((job.seconds for job in found), reverse=True)


def test_seconds_are_those_of_the_rounds_and_of_what_has_to_be_installed() -> None:
    (job,) = jobs(TAGS[:2], Work(("selection",), "", 3), EVEN, 1, lambda tag: tag == TAGS[0])
    assert job.seconds == START_SECONDS + INSTALL_SECONDS + 2 * (3 * 10 + 1)
    assert job.gigabytes == GIGABYTES
    (job,) = jobs(TAGS[:2], Work(("selection",), "", 3, budget=600), EVEN, 1, there)
    assert job.seconds == START_SECONDS + 600


def test_rates_are_medians_of_what_is_stored_scaled_to_all_cases() -> None:
    stored = [
        launch("v2.0.0", "time", 10.0),
        launch("v2.1.0", "time", 30.0, cases=1),
        launch("v2.0.0", "time", 14.0, 2),
    ]
    found = rates(stored)
    assert found.seconds("v2.0.0", "selection", "times") == 12.0
    assert found.seconds("v2.1.0", "selection", "times") == 60.0
    assert found.seconds("v2.9.0", "selection", "times") == 36.0
    assert found.seconds("v2.9.0", "selection", "counts") == UNKNOWN_SECONDS


def test_a_round_of_both_kinds_is_shared_between_them() -> None:
    found = rates([launch("v2.0.0", "time", 10.0), launch("v2.0.0", "operators", 0.0)])
    assert found.seconds("v2.0.0", "selection", "times") == 5.0
    assert found.seconds("v2.0.0", "selection", "counts") == 5.0


def test_what_is_cut_apart_holds_each_release_once() -> None:
    assert cut(TAGS[:5], 2, apart=True) == [("v2.0.0", "v2.1.0"), ("v2.2.0", "v2.3.0", "v2.4.0")]
    assert cut(TAGS[:5], 2, apart=False) == [("v2.0.0", "v2.1.0", "v2.2.0", "v2.3.0"), ("v2.2.0", "v2.3.0", "v2.4.0")]


def test_nodes_that_share_one_processor_are_done_when_one_node_is() -> None:
    asked = [
        "plan",
        "v2.0.0..v2.2.2",
        "--only",
        "counts",
        "--question",
        "batching",
        "--nodes",
        "4",
        "--processors",
        "1",
    ]
    said = CliRunner().invoke(fleet, asked, catch_exceptions=False)
    minutes = re.findall(r"^\d+ nodes?: done after ([\d.]+) minutes", said.output, re.MULTILINE)
    assert len(minutes) > 1
    assert len(set(minutes)) == 1


@pytest.mark.parametrize("nodes", [1, 2, 8])
def test_a_plan_lists_no_more_nodes_than_have_a_job(nodes: int) -> None:
    asked = ["plan", "v2.0.0..v2.1.1", "--only", "counts", "--question", "batching", "--nodes", str(nodes)]
    said = CliRunner().invoke(fleet, asked, catch_exceptions=False).output
    jobs_planned = int(re.findall(r"^(\d+) jobs,", said, re.MULTILINE)[0])
    listed = [int(each) for each in re.findall(r"^(\d+) nodes?: done", said, re.MULTILINE)]
    assert listed == sorted({1, min(nodes, jobs_planned), min(2 * nodes, jobs_planned)})
    assert (f"More than {jobs_planned} would have nothing to do." in said) == (nodes > jobs_planned)
