"""Does a session measure each case on all releases in turn, go on where it pays, and lose nothing? Releases' processes are
played."""

import itertools
import json
import math
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from asv.benchmarks import Benchmarks
from asv.machine import Machine
from rich.console import Console

from contract.request import Request
from torch_history.analysis.series import Verdict
from torch_history.analysis.verdicts import compare
from torch_history.cli.run import Asked
from torch_history.cli.running import Run
from torch_history.measuring import recording, reuse
from torch_history.measuring import server as servers
from torch_history.measuring.plan import AT_ONCE, SHARED, Arm, Plan, anchored, in_sessions, middle
from torch_history.measuring.progress import minutes
from torch_history.measuring.session import Session, load_suite
from torch_history.measuring.subjects import OwnWorkload
from torch_history.measuring.upgrading.room import Room
from torch_history.measuring.upgrading.sessions import Sessions, Spent
from torch_history.store.launches import Case, Launch
from torch_history.system.errors import SessionError

TIME: dict[str, Any] = {
    **{"name": "selection.Selection.track_time", "version": "1", "type": "track", "unit": "seconds"},
    **{"params": [["'even'", "'noisy'", "'slower'", "'absent'"], ["'small'", "'paper'"]], "timeout": None},
}
BYTES = {**TIME, "name": "selection.Selection.track_peak_memory", "unit": "bytes"}
KERNELS = {**BYTES, "name": "selection.Selection.track_kernels", "unit": "kernels"}
"""What this device has not."""
GROWTH = {**BYTES, "name": "own.Resident.track_resident_growth"}
"""No time, and no single launch tells it."""
CASES = list(itertools.product(*TIME["params"]))
OLD, NEW = "v2.14.1", "v2.15.0"
TRIAL = Session._trial


class World:
    """What the releases' processes answer, and in which order they were asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.selected = ""
        self.started: list[tuple[str, str, str]] = []
        self.disturbed_laps: set[int] = set()
        self.laps = 0
        self.busy_before: set[int] = set()
        self.waits: list[tuple[int, float]] = []
        self.processors: set[int] = set()
        self.imported_on: list[frozenset[int]] = []
        self.stop_after, self.noise, self.bytes = math.inf, 0.04, 4096
        self.environment: dict[str, Any] = {}
        self.random, self.counted = random.Random(3), list[tuple[str, str]]()

    def wait(self, most: float) -> float:
        if len(self.asked) not in self.busy_before:
            return 0.0
        self.waits.append((len(self.asked), most))
        return min(most, 40.0)

    def seconds(self, release: str, variant: str) -> float:
        spread = self.noise if variant == "noisy" else 0.001
        level = 1.2 if (release, variant) == (NEW, "slower") else 1.0
        return level * math.exp(self.random.gauss(0, spread))

    def run_benchmark(self, benchmark: dict[str, Any], spawner: Any, selected_idx: set[int], **_: Any) -> None:
        (index,) = selected_idx
        variant = CASES[index][0].strip("'")
        if len(self.asked) >= self.stop_after:
            raise KeyboardInterrupt
        self.asked.append((spawner.release, variant))
        self.processors.add(len(os.sched_getaffinity(spawner.server_proc.pid)))
        said: dict[str, Any] = {"unavailable": "it needs something else"}
        value, samples = math.nan, None
        if variant != "absent":
            found: dict[str, Any] = {"time": [self.seconds(spawner.release, variant)], "resident_growth": 0}
            if spawner.channel.only != "times":
                self.counted.append((spawner.release, variant))
                found |= {"peak_memory": self.bytes, "kernels": 1}
            said = {"found": found}
            value, samples = (True, found["time"]) if benchmark["name"].endswith("time") else (self.bytes, None)
        if self.environment:
            said |= {"environment": self.environment, "device": "cpu"}
        metric = benchmark["name"].rpartition(".")[2]
        record = {"metric": metric, "parameters": list(CASES[index]), "facts": said}
        with open(spawner.channel.path, "a") as stream:
            stream.write(json.dumps(record) + "\n")
        spawner.channel.note_end(benchmark, index, "", 0, value, samples)


@pytest.fixture
def world(monkeypatch) -> World:
    world = World()

    def spawner(environment: Any, *_: Any, **__: Any) -> Any:
        world.started.append((world.selected, environment.request.only, environment.request.planted))

        def preimport() -> tuple[bool, str]:
            world.imported_on.append(frozenset(os.sched_getaffinity(process.pid)))
            time.sleep(0.01)
            return True, ""

        process = subprocess.Popen(["sleep", "60"])
        return SimpleNamespace(
            release=world.selected, preimport=preimport, interrupt=lambda: None, close=process.kill, server_proc=process
        )

    def lap(self: Any) -> dict[str, Any]:
        world.laps += 1
        return {"load": 0.1, **({"disturbed": "it was loud"} if world.laps in world.disturbed_laps else {})}

    monkeypatch.setattr(servers, "get_spawner", spawner)
    monkeypatch.setattr(servers, "run_benchmark", world.run_benchmark)
    monkeypatch.setattr("torch_history.measuring.session.Watch.lap", lap)
    monkeypatch.setattr("torch_history.measuring.session.Watch.control", lambda self: None)
    monkeypatch.setattr("torch_history.measuring.session.Watch.wait", lambda self, quiet, most: world.wait(most))
    return world


Make = Callable[..., Session]


@pytest.fixture
def make(root, tmp_path, monkeypatch, world) -> Make:
    """A session of two releases and one question, its results and state in a folder of the test."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(root)
    conf, axis = load_suite(root)
    conf.results_dir, conf.env_dir = str(tmp_path / "results"), str(tmp_path / "env")
    machine = {"machine": "here", "os": "Linux", "arch": "x", "cpu": "a cpu", "num_cpu": "2", "ram": "8 GiB"}
    loaded = Machine.load(machine_name=None, interactive=False)
    loaded.__dict__.clear()
    loaded.__dict__.update(machine)
    monkeypatch.setattr(Machine, "load", classmethod(lambda *_, **__: loaded))
    monkeypatch.setattr(Session, "_discover", lambda self: Benchmarks(conf, [TIME, BYTES, KERNELS]))
    monkeypatch.setattr(Session, "_trial", lambda self, tag: {})

    def install(conf: Any, repo: Any, tag: str) -> None:
        world.selected = tag

    environment = SimpleNamespace(install_project=install, python="3.11", name="release-py3.11")
    environment.folder = lambda release: tmp_path / "env" / release.tag

    def make(releases: tuple[str, ...] = (OLD, NEW), again: bool = False, apart: bool = False, **more: Any) -> Session:
        plan = {"environment": "release-py3.11", "questions": r"\w+", "sizes": ("small",), "launches": 2, **more}
        return Session(conf, axis, Plan(releases=releases, **plan), environment, again, apart=apart)

    return make


@pytest.fixture
def one_after_another(monkeypatch) -> None:
    """Releases take no turns, as on a GPU."""
    monkeypatch.setattr(Session, "_take_turns", lambda self, metrics: False)


@pytest.fixture
def said() -> Console:
    return Console(record=True, width=200, force_terminal=False)


def measured(session: Session, said: Console) -> Session:
    session.measure(said)
    return session


def test_a_session_is_told_with_what_others_have_stored_unless_it_is_apart(make, said):
    first, second = measured(make(), said), measured(make(again=True), said)
    assert {one.session for one in second.beside} == {first.id} != {second.id}
    assert not measured(make(again=True, apart=True), said).beside


def test_what_memory_grows_by_is_measured_twice_where_a_budget_has_one_round_of_everything(make, said, monkeypatch):
    monkeypatch.setattr(Session, "_discover", lambda self: Benchmarks(self.conf, [TIME, GROWTH]))
    session = measured(make(launches=1, budget=3600.0), said)
    assert rounds_of(session.launches(), "even", "track_resident_growth") == 2


def cases_of(launches: list[Launch], metric: str = "track_time") -> list[tuple[Launch, Case]]:
    return [(launch, case) for launch in launches if launch.benchmark.endswith(metric) for case in launch.cases]


def rounds_of(launches: list[Launch], variant: str, metric: str = "track_time") -> int:
    found = [(launch, case) for launch, case in cases_of(launches, metric) if case.number is not None]
    return max(launch.round for launch, case in found if case.parameters[0] == f"'{variant}'")


FIRST_ROUND = [
    (OLD, "even"), (NEW, "even"), (NEW, "noisy"), (OLD, "noisy"),
    (OLD, "slower"), (NEW, "slower"), (NEW, "absent"), (OLD, "absent"),
]  # fmt: skip


def test_a_case_is_measured_on_all_releases_before_the_next_and_the_order_alternates(make, world, said):
    make().measure(said)
    assert world.asked[:8] == FIRST_ROUND
    assert world.asked[8:10] == [(NEW, "even"), (OLD, "even")]


def test_every_round_is_a_fresh_launch_and_only_the_first_takes_counts(make, world, said):
    session = measured(make(), said)
    assert {*world.started[:2]} == {(OLD, "", ""), (NEW, "", "")}
    assert {*world.started[2:]} == {(OLD, "times", ""), (NEW, "times", "")}
    launches = session.launches()
    assert len({launch.launch for launch in launches}) == 4
    assert {launch.round for launch in launches if launch.benchmark == BYTES["name"]} == {1}
    assert {launch.round for launch in launches if launch.benchmark == TIME["name"]} == {1, 2}
    assert all(launch.facts["conditions"] == {"load": 0.1} for launch in launches)


def test_what_a_release_cannot_run_is_asked_once(make, world, said):
    session = measured(make(), said)
    assert world.asked.count((OLD, "absent")) == 1
    (change,) = [c for c in compare(session.launches(), OLD, NEW) if "absent" in c.series.words and c.series.varies]
    assert (change.verdict, change.reason) == (Verdict.NEVER_RAN, "it needs something else")


def test_plan_that_names_cases_measures_no_others(make, world, said):
    session = measured(make(sizes=("small", "paper"), cases=(("'slower'", "'paper'"), ("'even'", "'small'"))), said)
    assert {case.parameters for launch in session.launches() for case in launch.cases} == {*session.plan.cases}
    assert make(sizes=("small", "paper")).id != session.id


def test_variants_and_sizes_are_chosen_by_their_names(make, world, said):
    make(variants=("even",), sizes=("small", "paper")).measure(said)
    assert Counter(world.asked) == {(OLD, "even"): 4, (NEW, "even"): 4}
    assert "2 releases are installed first: at most 11 GB on the disk" in said.export_text()


@pytest.mark.parametrize(("sizes", "taken"), [(["'small'", "'big'"], {"'small'"}), (["''"], {"''"})])
def test_an_own_size_that_is_called_as_a_scale_is_measured_alone(make, world, said, monkeypatch, sizes, taken):
    """Where a file has no such size, it is a scale, as TORCH_HISTORY_SIZES may name it for all that is measured."""
    params = [TIME["params"][0], sizes]
    monkeypatch.setattr(Session, "_discover", lambda self: Benchmarks(self.conf, [{**TIME, "params": params}]))
    session = measured(make(variants=("even",), sizes=("small",), workload="own", launches=1), said)
    assert {case.parameters[1] for launch in session.launches() for case in launch.cases} == taken


@pytest.mark.parametrize(("asked", "known"), [({"variants": ("evn",)}, "absent, e"), ({"sizes": ("tiny",)}, "paper, ")])
def test_a_variant_and_a_size_that_a_file_lacks_are_refused(make, world, said, asked, known):
    with pytest.raises(SessionError, match=f"There is no .*Known: {known}"):
        make(workload="own", **asked).measure(said)
    assert not world.asked


def test_when_the_time_is_over_what_was_measured_is_stored_and_the_same_session_goes_on(make, world, said, monkeypatch):
    world.noise = 0.001
    session = make(within=60.0)

    def is_over(self: Session) -> bool:
        self._over = self._over or len(world.asked) >= 6
        return self._over

    monkeypatch.setattr(Session, "_is_over", is_over)
    monkeypatch.setattr("torch_history.measuring.session.SECONDS_AT_A_TIME", 0.0)
    session.measure(said)
    assert len(world.asked) == 6
    assert sum(len(launch.cases) for launch in session.launches() if launch.benchmark == TIME["name"]) == 6
    monkeypatch.setattr(Session, "_is_over", lambda self: False)
    again = make(within=30.0)
    assert (again.id, again.spent, again.finished) == (session.id, False, False)
    again.measure(said)
    assert len(world.asked) == 2 * (4 + 3)
    assert make(within=30.0).finished


def test_with_a_budget_rounds_go_on_for_what_cannot_be_told(make, world, said):
    session = measured(make(launches=3, budget=3600.0), said)
    launches = session.launches()
    assert rounds_of(launches, "slower") < rounds_of(launches, "noisy")
    verdicts = {of.series.parameters[0]: of.verdict for of in compare(launches, OLD, NEW) if of.series.varies}
    assert verdicts["'slower'"] is Verdict.SLOWER
    assert verdicts["'even'"] is Verdict.SAME
    text = said.export_text()
    assert "times are conclusive" in text
    assert "of the budget are left" in text
    session.measure(said)
    assert "\nRound" not in said.export_text(), "no round is told that measures nothing"


@pytest.fixture
def _a_second_each(world, monkeypatch) -> None:
    """Lets a session believe that each process takes a second, and nothing else any time."""
    clock = SimpleNamespace(monotonic=lambda: float(len(world.asked)))
    for module in ("measuring.session", "measuring.turns", "measuring.upgrading.sessions"):
        monkeypatch.setattr(f"torch_history.{module}.time", clock)


@pytest.mark.usefixtures("_a_second_each")
def test_a_budget_bounds_the_whole_and_ends_between_two_cases(make, world, said, monkeypatch):
    alone = {**KERNELS, "name": "own.Command.track_kernels", "params": [["'alone'"], ["'small'"]]}
    monkeypatch.setattr(Session, "_discover", lambda self: Benchmarks(self.conf, [TIME, BYTES, alone]))
    first = measured(make(launches=3, budget=4.0), said)
    assert [asked for asked, _ in world.asked] == [OLD, NEW, NEW, OLD]
    assert first.effort().unreached == ["absent small", "slower small"]
    assert "The time is over. What was measured is stored" in said.export_text()
    again = make(launches=3, budget=4.0)
    assert (again.resumed, again.spent, again.finished) == (True, False, False), "not all was measured once"


@pytest.mark.usefixtures("_a_second_each")
def test_a_session_that_goes_on_judges_by_all_rounds_before_its_last(make, world, said, monkeypatch):
    monkeypatch.setattr("torch_history.measuring.budget.FORECAST_FROM", 1000)
    world.noise = 2.0
    last = rounds_of(measured(make(launches=1, budget=60.0), said).launches(), "noisy")
    said.export_text()
    measured(make(launches=1, budget=2.5), said)
    assert f"The budget is spent after round {last - 1}. " in said.export_text()


@pytest.mark.usefixtures("_a_second_each")
def test_time_that_nothing_else_needs_goes_to_what_luck_may_tell(make, world, said):
    world.noise = 0.15
    measured(make(launches=1, budget=240.0), said)
    said_of_it = [line for line in said.export_text().splitlines() if "1 would need more than 40 rounds" in line]
    assert len(said_of_it) > 2
    assert all("Some may still be told in the" in line for line in said_of_it[:-1])
    assert said_of_it[-1].startswith("After round"), "in what is left luck would tell it no more"
    assert len(world.asked) < 235
    make(launches=1, budget=240.0, again=True).measure(said, last=False)
    again = said.export_text()
    assert "1 would need more than 40 rounds" in again
    assert "Some may still be told" not in again, "what follows may need these minutes"


def test_case_that_the_suite_could_not_measure_is_asked_again_where_the_session_goes_on(make, world, said, monkeypatch):
    def unnamed(benchmark: dict[str, Any], spawner: Any, selected_idx: set[int], **more: Any) -> None:
        run_benchmark(benchmark, spawner, selected_idx, **more)
        (index,) = selected_idx
        if CASES[index][0] == "'even'" and spawner.release == NEW:
            spawner.channel.note_end(benchmark, index, "", 0, True, [1.0])

    run_benchmark = world.run_benchmark
    monkeypatch.setattr(servers, "run_benchmark", unnamed)
    session = measured(make(launches=1), said)
    evens = [c for one in session.launches() if one.release == NEW for c in one.cases if c.parameters[0] == "'even'"]
    assert {case.unmeasured for case in evens} == {recording.ANOTHER_CASE}
    monkeypatch.setattr(servers, "run_benchmark", run_benchmark)
    session._save_state(finished=False)
    asked = len(world.asked)
    make(launches=1).measure(said)
    assert world.asked[asked:] == [(NEW, "even")]


@pytest.mark.usefixtures("_a_second_each")
def test_what_a_spent_budget_left_untold_is_gone_on_with(make, world, said):
    first = measured(make(launches=3, budget=15.0), said)
    assert rounds_of(first.launches(), "noisy") == 2
    second = make(launches=3, budget=3600.0)
    assert (second.id, second.resumed) == (first.id, True)
    second.measure(said)
    assert rounds_of(second.launches(), "noisy") > 3
    assert rounds_of(second.launches(), "even") < rounds_of(second.launches(), "noisy")
    assert make(launches=3, budget=3600.0).finished


@pytest.mark.usefixtures("one_after_another")
def test_what_was_disturbed_is_measured_again_and_both_are_kept(make, world, said):
    world.disturbed_laps, world.noise = {2}, 0.001
    session = measured(make(), said)
    times = [launch for launch in session.launches() if launch.benchmark == TIME["name"] and launch.round == 2]
    disturbed = [launch.facts["conditions"].get("disturbed") for launch in times if launch.release == OLD]
    assert disturbed == ["it was loud", None]
    assert len({launch.launch for launch in times}) == 4
    assert all(change.disturbed == 0 for change in compare(session.launches(), OLD, NEW))


@pytest.mark.usefixtures("one_after_another")
def test_before_it_asks_a_session_waits_for_a_calm_moment_for_a_fifth_of_its_budget(make, world, said):
    world.busy_before, world.noise = {0, 10, 12}, 0.001
    make(budget=300.0).measure(said)
    assert world.waits == [(0, 60.0), (10, 20.0)]
    assert "Waited 60 s in total" in said.export_text()


def test_what_a_single_thread_measures_stays_on_one_processor(make, world, said):
    before = os.sched_getaffinity(0)
    make().measure(said)
    assert world.processors == {1}
    assert {len(of) for of in world.imported_on} == {1}, "torch.compile and OpenMP ask at import how many there are"
    assert frozenset.union(*world.imported_on) == before
    assert os.sched_getaffinity(0) == before


@pytest.mark.usefixtures("one_after_another")
def test_what_stays_disturbed_is_kept_and_counted(make, world, said):
    world.disturbed_laps = set(range(100))
    session = measured(make(), said)
    times = [change for change in compare(session.launches(), OLD, NEW) if change.series.varies and change.old]
    assert all(change.launches == (2, 2) and change.disturbed == 4 for change in times)
    assert len(world.started) == 2 * 2 * 2


def test_a_finished_session_goes_on_after_an_edit_of_what_it_measures(make, world, said, monkeypatch):
    world.noise = 0.001
    first = measured(make(), said)
    assert make().finished
    asked = len(world.asked)
    monkeypatch.setattr("torch_history.measuring.session._suite", lambda conf: "edited")
    edited = Benchmarks(first.conf, [{**TIME, "version": "2"}, BYTES])
    monkeypatch.setattr(Session, "_discover", lambda self: edited)
    second = make()
    assert (second.id, second.resumed) == (first.id, True)
    second.measure(said)
    assert len(world.asked) == 2 * asked
    assert make().finished


def test_counts_are_not_measured_again_for_being_disturbed(make, world, said):
    world.disturbed_laps = set(range(100))
    session = measured(make(launches=1, only="counts"), said)
    assert len(world.asked) == 2 * 4
    assert all("disturbed" in launch.facts["conditions"] for launch in session.launches())


def stopped(world: World, after: int, session: Session | Sessions, *asked: Any) -> None:
    """Measures until so many questions were asked and is interrupted then; what follows is not."""
    world.stop_after = after
    with pytest.raises(KeyboardInterrupt):
        session.measure(*asked)
    world.stop_after = math.inf


@pytest.mark.parametrize("stop", [1, 3, 7, 9, 13])
def test_an_interrupted_session_goes_on_and_measures_no_round_twice(make, world, said, stop):
    world.noise = 0.001
    stopped(world, stop, first := make(), said)
    second = make()
    assert (second.id, second.finished) == (first.id, False)
    second.measure(said)
    done = Counter((launch.release, launch.round, case.parameters[0]) for launch, case in cases_of(second.launches()))
    variants = {1: ("'even'", "'noisy'", "'slower'", "'absent'"), 2: ("'even'", "'noisy'", "'slower'")}
    assert {*done} == {(tag, turn, variant) for tag in (OLD, NEW) for turn in (1, 2) for variant in variants[turn]}
    assert max(done.values()) <= 2
    assert make().finished
    assert make(again=True).id != first.id


def test_arms_are_measured_under_their_names_with_what_is_planted(make, world, said):
    arms = {"first": Arm(NEW), "longer": Arm(NEW, "time")}
    session = measured(make(("first", "longer"), arms=arms, only="times", launches=1), said)
    assert {*world.started} == {(NEW, "times", ""), (NEW, "times", "time")}
    assert {launch.release for launch in session.launches()} == {"first", "longer"}
    assert session.plan.pairs == [("first", "longer")]


@pytest.mark.parametrize("number", [1, 2, AT_ONCE, AT_ONCE + 1, 9, 24, 40])
@pytest.mark.parametrize("shared", [1, SHARED])
def test_sessions_of_neighbours_share_releases_and_an_anchor_and_are_few(number, shared):
    releases = [*range(number)]
    groups = in_sessions(releases, shared)
    anchor = middle(releases) if len(groups) > 1 else None
    measured = [anchored(group, anchor) for group in groups]
    assert max(map(len, measured)) <= AT_ONCE
    assert [group[-shared:] for group in groups[:-1]] == [group[:shared] for group in groups[1:]]
    assert [*dict.fromkeys(itertools.chain(*groups))] == releases
    assert all(anchor is None or anchor in group for group in measured)
    assert len(groups) <= max(1, -(-number // (AT_ONCE - 1 - shared)))
    assert len(in_sessions(releases[:AT_ONCE], shared, anchor=-1)) == (2 if number >= AT_ONCE else 1)


def test_sessions_that_share_a_budget_say_beforehand_what_each_has(said):
    plans = []
    asked = Asked(budget=600.0, tells=False)
    run: Any = SimpleNamespace(asked=asked, out=said, ran=False, request=SimpleNamespace(device="cpu"))
    run.plan_of = lambda releases, anchor: Plan((), "", "", (), 1)
    run._session = lambda plan, last: plans.append(plan) or SimpleNamespace(launches=list)  # type: ignore[func-returns-value]
    groups: Any = [[SimpleNamespace(tag=tag)] for tag in "ab"]
    Run.sessions(run, groups, None)
    assert [plan.budget for plan in plans] == pytest.approx([300.0, 600.0], rel=0.01)
    assert "2 sessions share the budget: 5 min each" in said.export_text()


def test_an_anchor_is_compared_with_no_neighbour():
    plan = Plan(("v2.6.0", "v2.14.1", "v2.15.0"), "release-py3.11", r"\w+", ("small",), 3, anchor="v2.6.0")
    assert plan.pairs == [("v2.14.1", "v2.15.0")]
    assert plan.digest != replace(plan, anchor="").digest


def test_after_ten_seconds_what_was_measured_is_stored_before_the_next_case(make, world, said, monkeypatch):
    monkeypatch.setattr("torch_history.measuring.session.SECONDS_AT_A_TIME", 0.0)
    world.noise = 0.001
    stopped(world, 5, first := make(launches=1), said)
    stored = [(launch.release, case.parameters[0]) for launch in first.launches() for case in launch.cases]
    assert {*stored} >= {(tag, variant) for tag in (OLD, NEW) for variant in ("'even'", "'noisy'")}
    assert world.laps == 3
    make(launches=1).measure(said)
    assert world.asked[:8] == FIRST_ROUND


def test_release_is_asked_by_a_request_and_not_by_what_the_surroundings_hold(make, said, monkeypatch):
    monkeypatch.setenv("TORCH_HISTORY_SIZES", "paper")
    monkeypatch.setenv("TORCH_HISTORY_ONLY", "times")
    session = measured(make(), said)
    variables = session.environment.request.variables()
    assert variables["TORCH_HISTORY_SIZES"] == "small"
    assert variables["TORCH_HISTORY_ONLY"] == "times"
    assert os.environ["TORCH_HISTORY_SIZES"] == "paper"


PACKAGES = {"torch": "2.15.0+cu132", "packages": ["torch==2.15.0"], "cpu_capability": "AVX512", "threads": 1}


def counts_of(session: Session) -> dict[tuple[str, str], tuple[Any, Any]]:
    """Release and variant -> bytes, and the session that they were taken from."""
    return {
        (launch.release, case.parameters[0].strip("'")): (case.value, launch.facts.get(reuse.TAKEN))
        for launch, case in cases_of(session.launches(), BYTES["name"])
        if case.value is not None
    }


@pytest.fixture
def counted_before(make, world, said) -> Session:
    """A session that has counted everything."""
    world.environment = PACKAGES
    before = measured(make(launches=1), said)
    assert len(world.counted) == 6
    world.counted, world.asked = [], []
    return before


def test_counts_that_are_stored_are_taken_and_one_case_in_ten_is_counted_again(make, world, said, counted_before):
    session = measured(make(launches=2), said)
    again = {variant for _, variant in world.counted}
    assert len(again) <= 1
    assert len(world.counted) == 2 * len(again)
    found = counts_of(session)
    assert set(found) == {(tag, variant) for tag in (OLD, NEW) for variant in ("even", "noisy", "slower")}
    source = f"here {counted_before.id}"
    assert all(of == (4096, None if variant in again else source) for (_, variant), of in found.items())
    assert Counter(asked for asked in world.asked if asked[1] == "even") == {(OLD, "even"): 2, (NEW, "even"): 2}
    exact = [change for change in compare(session.launches(), OLD, NEW) if not change.series.varies]
    assert {change.verdict for change in exact if change.old} == {Verdict.SAME}
    words = reuse.taken_words(session.launches())
    assert words.startswith("Counts of 3 cases on v2.14.1, v2.15.0 are those stored of here: ")
    assert reuse.taken_words(counted_before.launches()) == ""


@pytest.mark.parametrize("seed", ["noisy", "even", "slower"])
def test_a_count_that_differs_refuses_the_others(make, world, said, counted_before, seed, monkeypatch):
    monkeypatch.setattr(reuse, "sample", lambda cases: {(f"'{seed}'", "'small'")})
    world.bytes = 8192
    session = measured(make(launches=2), said)
    assert set(counts_of(session).values()) == {(8192, None)}
    assert len(world.counted) == 6
    assert "All is counted, because peak memory" in said.export_text()


@pytest.mark.parametrize("other", [{"cpu_capability": "AVX2"}, {"packages": ["torch==2.15.1"]}, {"threads": 2}])
def test_counts_of_another_instruction_set_or_other_packages_are_not_taken(make, world, said, counted_before, other):
    world.environment = {**PACKAGES, **other}
    session = measured(make(launches=2), said)
    assert set(counts_of(session).values()) == {(4096, None)}


@pytest.mark.parametrize("more", [{"only": "counts"}, {"again": True}])
def test_who_asks_for_counts_or_to_measure_again_counts_all(make, world, said, counted_before, more):
    make(launches=1, **more).measure(said)
    assert len(world.counted) == 6


@pytest.mark.parametrize("stop", [1, 2, 3, 5, 7])
def test_counts_are_taken_once_where_a_session_goes_on(make, world, said, counted_before, stop):
    stopped(world, stop, make(launches=2), said)
    session = measured(make(launches=2), said)
    stored = Counter((launch.release, case.parameters) for launch, case in cases_of(session.launches(), BYTES["name"]))
    assert len(stored) == 8
    assert set(stored.values()) == {1}


@pytest.mark.parametrize("stop", [1, 2, 5])
def test_an_interrupted_count_goes_on_with_what_is_missing(make, world, said, stop, monkeypatch):
    monkeypatch.setitem(Machine.load(machine_name=None, interactive=False).__dict__, "device", "recorder")
    stopped(world, stop, first := make(launches=1, only="counts"), said)
    kept = sum(len(launch.cases) for launch in first.launches())
    assert kept == 2 * len(world.asked), "of bytes and of kernels"
    second = make(launches=1, only="counts")
    assert (second.resumed, second.id) == (True, first.id)
    second.measure(said)
    assert len(world.asked) == 2 * 4
    assert len({(launch.release, case.parameters) for launch in second.launches() for case in launch.cases}) == 8


def test_a_trial_runs_in_another_folder_than_the_program(make):
    session, places = make(), []
    session.environment.run = lambda words, cwd, **how: places.append(os.stat(cwd))
    TRIAL(session, NEW)
    assert not os.path.samestat(places[0], os.stat("."))


@pytest.fixture
def upgrade(make, tmp_path, said) -> Callable[..., Sessions]:
    """The sessions of an upgrade, with so many seconds of budget."""
    first = make()
    own = OwnWorkload("selection", "d" * 64, tmp_path, tmp_path / "mine.py", tmp_path / "mine.py")
    room = Room(tmp_path / "env", "3.11", None)

    def upgrade(seconds: float, **more: Any) -> Sessions:
        subject = first.conf, first._axis, own, first.environment, Request(device="cpu")
        return Sessions(*subject, "here", said, room, left=seconds, **more)

    return upgrade


@pytest.mark.usefixtures("_a_second_each")
def test_upgrade_ends_with_its_budget_and_the_same_command_measures_no_more(upgrade, world, said, monkeypatch):
    monkeypatch.setattr("torch_history.measuring.budget.FORECAST_FROM", 1000)
    world.noise = 2.0
    laboratory = upgrade(60.0)
    laboratory.measure((OLD, NEW), (), 0.5)
    assert 28 <= (half := len(world.asked)) <= 30
    assert "A share of the budget is spent after round" in said.export_text(clear=False)
    assert (laboratory.left, laboratory.measured) == (60.0 - half, half)
    laboratory.measure((OLD, NEW), ())
    assert 58 <= len(world.asked) <= 60, "what the search leaves is the ends' again"
    needs = minutes(laboratory.effort((OLD, NEW), ()).seconds)
    assert f"would take {needs} more." in said.export_text(), "both say the same"
    asked = len(world.asked)
    upgrade(60.0).measure((OLD, NEW), ())
    assert len(world.asked) == asked
    upgrade(60.0, goes_on=True).measure((OLD, NEW), ())
    assert len(world.asked) > asked, "what spent its budget is gone on with where a budget is asked for"
    with pytest.raises(Spent):
        upgrade(1.0, goes_on=True).measure((OLD, NEW), ())


def test_upgrade_measures_both_sizes_and_installs_each_release_once(upgrade, world):
    laboratory = upgrade(3600.0)
    laboratory.measure((OLD, NEW), ())
    sizes = {case.parameters[1] for launch in laboratory.launches((OLD, NEW), ()) for case in launch.cases}
    assert sizes == {"'small'", "'paper'"}
    assert laboratory.installed == [OLD, NEW]
    assert laboratory.effort((OLD, NEW), ()).undecided == 0


def test_upgrade_interrupted_in_its_budget_goes_on_there(upgrade, world):
    laboratory = upgrade(3600.0)
    stopped(world, 31, laboratory, (OLD, NEW), ())  # in a round that the budget allows
    before = len(laboratory.launches((OLD, NEW), ()))
    laboratory.measure((OLD, NEW), ())
    launches = laboratory.launches((OLD, NEW), ())
    assert len(launches) > before
    assert len({launch.session for launch in launches}) == 1
    assert rounds_of(list(launches), "noisy") > 3
