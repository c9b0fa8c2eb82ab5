"""Where does a job of a fleet measure, where does it keep what it found, and what does it leave on the node's disk?"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torch_history.cli import fleets
from torch_history.errors import UserError
from torch_history.fleet import work as on_a_node
from torch_history.fleet.attempts import Attempt, JobFolder
from torch_history.fleet.followups import Followup
from torch_history.fleet.order import Order
from torch_history.measuring import session
from torch_history.measuring.recording import RecordedResults
from torch_history.releases.environments import InstallationError
from torch_history.store.launches import append_launches

from .fleet_stand_ins import an_order, played

RECORD = {"machine": "a-cpu", "device": "cpu", "cpu": "A", "num_cpu": "2", "threads": "1"}


@dataclass
class Node:
    """A node that measures nothing, and keeps what a session was given."""

    asked: dict[str, Any] = field(default_factory=dict)
    pruned: list[str] = field(default_factory=list)
    installed: list[str] = field(default_factory=list)
    refuses: str = ""


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Node:
    found = Node()

    class Session:
        def __init__(self, conf: Any, axis: Any, plan: Any, environment: Any, **more: Any) -> None:
            found.asked = {"conf": conf, "plan": plan, "node": RecordedResults.node, **more}

        def measure(self, console: Any) -> None:
            found.asked["offline"] = {name: os.environ.get(name) for name in ("UV_OFFLINE", "UV_CACHE_DIR")}

    class Environment:
        name = "release-py3.11"

        def __init__(self, conf: Any, *_: Any) -> None:
            self.place = conf.env_dir

        def install_project(self, conf: Any, repo: Any, tag: str) -> None:
            if found.refuses:
                raise InstallationError(found.refuses)
            found.installed.append(f"{tag} in {self.place}")

    def prune(env_dir: Path, wanted: Any) -> None:
        found.pruned += [tag for tag in ("v2.0.1", "v2.1.0", "v2.2.0") if wanted(tag)]

    axis = SimpleNamespace(position=lambda tag: tag)
    for module in (on_a_node, session):
        monkeypatch.setattr(module, "load_suite", lambda root: (SimpleNamespace(results_dir="", env_dir=""), axis))
    monkeypatch.setattr(on_a_node, "Session", Session)
    monkeypatch.setattr(on_a_node, "ReleaseEnvironment", Environment)
    monkeypatch.setattr(fleets.environments, "ReleaseEnvironment", Environment)
    monkeypatch.setattr(on_a_node, "prune", prune)
    monkeypatch.setattr(on_a_node, "describe", lambda request: dict(RECORD))
    monkeypatch.setattr(on_a_node, "_record_under", lambda record, collection: None)
    monkeypatch.setattr(RecordedResults, "node", {})
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    for name in ("UV_OFFLINE", "UV_CACHE_DIR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return found


def run(order: Order, folder: Path) -> Attempt:
    """Runs the first job of an order."""
    attempt = Attempt(folder / "attempts" / "001")
    attempt.results.mkdir(parents=True, exist_ok=True)
    on_a_node.measure(order, order.jobs[0], attempt)
    return attempt


@pytest.fixture
def order(tmp_path: Path) -> Order:
    return an_order(tmp_path, ("v2.0.1", "v2.1.0"))


def test_environments_are_on_the_scratch_of_the_node_where_it_is_named(
    node: Node, order: Order, tmp_path: Path
) -> None:
    run(order, tmp_path)
    assert node.asked["conf"].env_dir == order.env
    run(replace(order, scratch=str(tmp_path / "disk")), tmp_path)
    assert node.asked["conf"].env_dir == str(tmp_path / "disk")
    assert node.pruned == []


def test_a_scratch_is_pruned_of_what_this_job_measured_and_no_other_one_uses(
    node: Node, order: Order, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    ours = replace(order, scratch=str(disk), removes=True)
    with on_a_node._using(disk, ["v2.1.0", "v2.2.0"]):
        run(ours, tmp_path)
    assert node.pruned == ["v2.0.1"]
    run(ours, tmp_path)
    assert node.pruned == ["v2.0.1", "v2.0.1", "v2.1.0"]


def test_a_node_without_a_network_takes_packages_from_the_cache_of_the_login_node(
    node: Node, order: Order, tmp_path: Path
) -> None:
    run(order, tmp_path)
    assert node.asked["offline"] == {"UV_OFFLINE": None, "UV_CACHE_DIR": None}
    run(replace(order, offline=True, scratch=str(tmp_path / "disk")), tmp_path)
    cache = str((Path(order.env) / ".uv-cache").resolve())
    assert node.asked["offline"] == {"UV_OFFLINE": "1", "UV_CACHE_DIR": cache}


def test_the_login_node_installs_each_release_once_before_anything_is_submitted(
    node: Node, order: Order, tmp_path: Path
) -> None:
    said: list[str] = []
    several = replace(order, jobs=(("v2.1.0", "v2.2.0"), ("v2.0.1", "v2.1.0")))
    fleets._prefetch(SimpleNamespace(root=tmp_path), several, said.append)  # type: ignore[arg-type]
    assert node.installed == [f"{tag} in {order.env}" for tag in ("v2.0.1", "v2.1.0", "v2.2.0")]
    assert said == ["Preparing v2.0.1", "Preparing v2.1.0", "Preparing v2.2.0"]
    node.refuses = "The package index is out of reach."
    with pytest.raises(UserError, match="out of reach"):
        fleets._prefetch(SimpleNamespace(root=tmp_path), several, said.append)  # type: ignore[arg-type]


# --- folders of machines


def test_counts_share_a_folder_and_times_do_not_unless_a_check_says_so(
    node: Node, order: Order, tmp_path: Path
) -> None:
    record, about = dict(RECORD), {"node": "n2", "kernel": "6.1"}
    kind = {name: RECORD[name] for name in ("device", "cpu", "num_cpu", "threads")}
    times = replace(order, only="times")

    def folder(of: Order, **more: Any) -> str:
        return on_a_node._folder_of(of, {**record, **more}, about)["machine"]

    assert folder(order) == "a-cpu"
    assert folder(times) == "a-cpu-on-n2"
    checked = replace(times, shares={"a-cpu": {"n2": {"with": "n1", "kernel": "6.1", "kind": kind}}})
    assert folder(checked) == "a-cpu-on-n1"
    assert folder(checked, driver="555") == "a-cpu-on-n2"
    assert folder(checked, machine="another") == "another-on-n2"
    about["kernel"] = "6.2"
    assert folder(checked) == "a-cpu-on-n2"


def test_rounds_are_on_one_node_and_another_one_measures_the_rest(node: Node, order: Order, tmp_path: Path) -> None:
    kind = {name: RECORD[name] for name in ("device", "cpu", "num_cpu", "threads")}
    kernel = os.uname().release
    shares = {"a-cpu": {name: {"with": "n1", "kernel": kernel, "kind": kind} for name in ("n1", "n2")}}
    times = replace(order, only="times", launches=5, shares=shares)
    attempt = run(times, tmp_path)
    assert node.asked["folder"] == attempt.sessions / "n1"
    assert node.asked["plan"].launches == 5
    for round in (1, 2, 3):
        one = replace_launch(played("v2.0.1", round), round, "n2")
        append_launches(attempt.results / "a-cpu-on-n1" / "v2.0.1-release-py3.11.jsonl", [one])
    run(times, tmp_path)
    assert node.asked["plan"].launches == 3  # the third round may be torn
    assert run(replace(times, only="counts"), tmp_path).sessions == node.asked["folder"]
    assert node.asked["plan"].launches == 5


@pytest.mark.parametrize(("processors", "threads", "shares"), [(2, "1", True), (4, "1", False), (2, "2", False)])
def test_a_job_that_is_bound_to_some_processors_leaves_the_others_to_other_jobs(
    processors: int,
    threads: str,
    shares: bool,
    node: Node,
    order: Order,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {*range(processors)})
    monkeypatch.setattr(on_a_node, "describe", lambda request: {**RECORD, "threads": threads})
    run(replace(order, only="times"), tmp_path)
    assert node.asked["shares"] is shares


def test_a_followup_measures_what_is_undecided_in_what_is_left_of_its_budget(
    node: Node, order: Order, tmp_path: Path
) -> None:
    job = JobFolder(tmp_path)
    first = job.begin({"node": "n1", "began_at": time.time() - 40})
    before = replace_launch(played("v2.0.1", 1), 1, "n1")
    append_launches(first.results / "a-cpu-on-n1" / "v2.0.1-release-py3.11.jsonl", [before])
    second = job.begin({"node": "n1", "began_at": time.time()})
    more = Followup(0, ("v2.0.1", "v2.1.0"), "a-cpu-on-n1", ("n1",), 100.0)
    judged = [played("v2.1.0", 1)]
    on_a_node.measure(replace(order, only="", budget=600.0), more.releases, second, more, judged)
    plan = node.asked["plan"]
    assert (plan.launches, plan.only, plan.releases) == (0, "times", more.releases)
    assert plan.budget == pytest.approx(60, abs=5)
    assert node.asked["earlier"] == [*judged, before]
    elsewhere = replace(more, machine="a-cpu-on-n2")
    with pytest.raises(UserError, match="n1 keeps its times in a-cpu-on-n1, and more rounds are wanted in a-cpu-on-n2"):
        on_a_node.measure(replace(order, only="times", budget=600.0), more.releases, second, elsewhere)


def replace_launch(launch: Any, round: int, node: str) -> Any:
    from msgspec.structs import replace as replaced

    return replaced(launch, round=round, facts={"node": {"node": node}})


# --- a check


@pytest.mark.parametrize(("slowed", "planted"), [("", ""), ("n1", "slower"), ("n2", "")])
def test_a_check_measures_one_release_under_two_names(
    node: Node, order: Order, tmp_path: Path, slowed: str, planted: str
) -> None:
    check = replace(order, jobs=(("v2.0.1",),) * 2, nodes=("n1", "n2"), only="times", slowed=slowed)
    run(check, tmp_path)
    plan = node.asked["plan"]
    assert plan.releases == ("first", "second")
    assert {(arm.tag, arm.planted) for arm in plan.arms.values()} == {("v2.0.1", planted)}
    assert node.asked["node"]["kind"]["cpu"] == "A"
