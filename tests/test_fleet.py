"""Does a fleet finish with every launch once, whatever ends its jobs or its head? `python -m tests.test_fleet FLEET NUMBER`
plays a job, whose cases are launches with names of their own."""

import gzip
import itertools
import os
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from torch_history.cli import fleets, main, suite
from torch_history.measuring.fleet import job, slurm
from torch_history.measuring.fleet.attempts import FINISHED, FLEETS, RESULTS, Job, Order
from torch_history.measuring.fleet.planning import Work, cut, machine_with_durations, sessions
from torch_history.measuring.fleet.slurm import Slurm
from torch_history.measuring.plan import AT_ONCE
from torch_history.store.collecting import collect
from torch_history.store.launches import Case, Launch, append_launches, read_launches
from torch_history.system.errors import SessionError, UserError
from torch_history.system.locks import alone, locked

from .loopback_slurm import Cluster, cluster, missing
from .processes import lives, program, until
from .result_files import write_machine

MACHINE, CASES, PAUSE = "a-node", 4, "TORCH_HISTORY_TEST_PAUSE"
TAGS = [f"v2.{minor}.0" for minor in range(10, 16)]
RUN = ("run", *TAGS, "--only", "counts", "--nodes", "2")


def launch(release: str, number: int) -> Launch:
    name, of = secrets.token_hex(8), "selection.Selection.track_operators"
    cases = (Case((str(number),), value=1.0),)
    return Launch("s", 1, name, release, "release-py3.11", of, "v", "2026-11-23T10:00:00Z", 1.0, {}, cases)


def write(results: Path, one: Launch) -> None:
    write_machine(results / MACHINE)
    append_launches(results / MACHINE / f"{one.release}-release-py3.11.jsonl", [one])


def played(order: Order, releases: tuple[str, ...], attempt: Path) -> None:
    """A session that asks no release, and fails while a disk is full."""
    stored = read_launches(attempt / RESULTS, MACHINE)
    done = {(launch.release, case.parameters) for launch in stored for case in launch.cases}
    for release, number in itertools.product(releases, range(CASES)):
        if (release, (str(number),)) not in done:
            time.sleep(float(os.environ.get(PAUSE, "0")))
            if Path(order.env, "full").exists():
                raise UserError("The disk of this node is full.")
            write(attempt / RESULTS, launch(release, number))


class Local:
    """As Slurm, with processes here, each of which a file names."""

    seconds = 0.1

    def __init__(self, fleet: Path, options: object = None) -> None:
        self._fleet = fleet

    def submit(self, numbers: Sequence[int], at_once: int) -> None:
        for number in numbers:
            log, name = Job(self._fleet, number).log, self._fleet / "processes" / str(number)
            for path in (log, name):
                path.parent.mkdir(exist_ok=True)
            command = [sys.executable, "-m", "tests.test_fleet", str(self._fleet), str(number)]
            with log.open("ab") as said:
                process = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True)
            name.write_text(str(process.pid))

    def live(self) -> dict[int, str]:
        named = {int(path.name): path.read_text() for path in self._fleet.glob("processes/*")}
        return {number: f"running as process {process}" for number, process in named.items() if lives(process)}

    def cancel(self) -> None:
        for words in self.live().values():
            os.kill(int(words.split()[-1]), signal.SIGTERM)


class Here:
    """A suite whose results and environments are in a folder of their own, and the commands of `fleet` there."""

    def __init__(self, folder: Path) -> None:
        self.results, self.env = folder / "results", folder / "env"

    def __call__(self, *words: str, code: int = 0) -> str:
        said: Result = CliRunner().invoke(main, ["fleet", *words])
        assert said.exit_code == code, said.output
        return said.output

    @property
    def fleet(self) -> Path:
        return next((self.env / FLEETS).glob("*/"))

    @property
    def launches(self) -> list[Launch]:
        return [*read_launches(self.results, MACHINE)]

    def written(self) -> set[str]:
        """The names of all launches that any attempt holds."""
        attempts = self.fleet.glob(f"jobs/*/[0-9]*/{RESULTS}")
        return {launch.launch for path in attempts for launch in read_launches(path, MACHINE)}

    def has_everything_once(self) -> bool:
        found = Counter((launch.release, case.parameters) for launch in self.launches for case in launch.cases)
        return found == {(tag, (str(number),)): 1 for tag in TAGS for number in range(CASES)}


@pytest.fixture
def here(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    monkeypatch.chdir(root)
    monkeypatch.setattr(slurm, "JOB", "tests.test_fleet")
    monkeypatch.setattr(Slurm, "seconds", 0.1)
    found = Here(tmp_path)
    loaded = replace(suite.load(), results=found.results, env=found.env)
    monkeypatch.setattr(suite, "load", lambda: loaded)
    return found


@pytest.fixture
def local(here: Here, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    monkeypatch.setattr(fleets, "Slurm", Local)
    yield here
    if (here.env / FLEETS).exists():
        Local(here.fleet).cancel()


def test_everything_is_measured_once_and_collecting_again_adds_nothing(local: Here) -> None:
    said = local(*RUN)
    assert f"{len(TAGS) * CASES} lines of launches are new, 0 were there." in said
    assert local.has_everything_once()
    assert f"0 lines of launches are new, {len(TAGS) * CASES} were there." in local(*RUN)
    assert local.has_everything_once()


def test_nothing_is_lost_or_counted_twice_when_jobs_are_killed(local: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PAUSE, "0.2")
    local(*RUN, "--detach")
    until(lambda: all(Job(local.fleet, number).lines > 1 for number in (0, 1)))
    for words in Local(local.fleet).live().values():
        os.kill(int(words.split()[-1]), signal.SIGKILL)
    until(lambda: not Local(local.fleet).live())
    written = local.written()
    assert "waits" in local("status")
    monkeypatch.setenv(PAUSE, "0")
    local(*RUN)
    assert local.has_everything_once()
    assert written <= {launch.launch for launch in local.launches}
    assert f"{len(TAGS) // 2 * CASES} lines of launches, starts: 2." in local("status")


def test_a_process_that_is_thought_dead_and_lives_on_is_not_counted(tmp_path):
    of = Job(tmp_path, 0)
    first = of.begin()
    write(first / RESULTS, before := launch(TAGS[0], 0))
    with (first / RESULTS / MACHINE / f"{TAGS[0]}-release-py3.11.jsonl").open("a") as stream:
        stream.write('{"torn')
    second = of.begin()
    write(first / RESULTS, launch(TAGS[0], 1))
    write(second / RESULTS, after := launch(TAGS[0], 1))
    for attempt in (second, first):
        (attempt / FINISHED).touch()
        of.close(attempt)
    found = collect([of.results], tmp_path / "out", tmp_path / "env")
    assert [*read_launches(tmp_path / "out", MACHINE)] == [before, after]
    assert (found.lines, found.damaged) == (2, 1)
    for path in (tmp_path / "out" / MACHINE).glob("*.jsonl"):  # as `make pack` does
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert collect([of.results], tmp_path / "out", tmp_path / "env").known == 2


def test_a_second_head_is_refused_and_nobody_else_may_enter(local: Here) -> None:
    before = os.umask(0o002)
    local(*RUN)
    os.umask(before)
    assert [path.stat().st_mode & 0o077 for path in (local.fleet.parent, local.fleet)] == [0, 0]
    with locked(local.fleet / "head", "looks after it"):
        assert "Another torch-history, process" in local(*RUN, code=1)


def test_a_job_that_fails_three_times_is_told_and_tried_again_when_asked(local: Here) -> None:
    local.env.mkdir()
    (local.env / "full").touch()
    said = local(*RUN, code=3)
    assert said.count("failed 3 times. Its last words: The disk of this node is full.\n") == 2
    (local.env / "full").unlink()
    local(*RUN)
    assert local.has_everything_once()


def test_a_cancelled_fleet_keeps_what_it_measured(local: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PAUSE, "0.3")
    local(*RUN, "--detach")
    until(lambda: all(Job(local.fleet, number).lines for number in (0, 1)))
    looks, ends, last = Local.live, Local.cancel, launch(TAGS[0], CASES)

    def completing(self: Local) -> dict[int, str]:
        write(Job(self._fleet, 0).attempts[-1] / RESULTS, last)
        monkeypatch.setattr(Local, "live", looks)
        return {0: "completing"}

    def cancels(self: Local) -> None:  # a job that was told to end has a line to write yet
        ends(self)
        monkeypatch.setattr(Local, "live", completing)

    monkeypatch.setattr(Local, "cancel", cancels)
    local("cancel")
    assert not looks(Local(local.fleet))
    assert last.launch in {launch.launch for launch in local.launches}
    assert local("status").count(": cancelled.") == 2
    assert local.launches
    assert "2 of 2 jobs are not done" in local(*RUN, code=3)
    assert {launch.launch for launch in local.launches} == local.written()


@pytest.fixture
def played_slurm(tmp_path, monkeypatch) -> Callable[[str, str], Path]:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    program(tmp_path / "sbatch", f'printf "%s\\n" "$@" >> {tmp_path}/asked')
    return lambda name, script: program(tmp_path / name, script)


def test_what_is_not_in_the_queue_is_submitted_as_one_array(here: Here, played_slurm: Any, tmp_path: Path) -> None:
    played_slurm("squeue", "exit 0")
    here(*RUN, "--detach", "--sbatch", "gres=gpu:1", "--sbatch", "exclusive", "--sbatch", "job-name=mine")
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [word for word in asked if "job-name" in word][-1] == f"--job-name=torch-history-{here.fleet.name}"
    assert {"--array=0,1%2", "--gres=gpu:1", "--exclusive", "--requeue"} <= {*asked}
    played_slurm("squeue", "echo '0|RUNNING|n1|None'; echo '1|PENDING||Resources'")
    said = here("status")
    assert "running on n1." in said
    assert "queued (Resources)." in said
    here(*RUN, "--detach", "--sbatch", "--gres=gpu:1", "--scratch", "/disk")
    assert (tmp_path / "asked").read_text().splitlines() == asked
    assert Order.load(here.fleet).scratch == "/disk"
    for number, elsewhere in enumerate(("partition=other", "gpus-per-node=h100:1"), start=2):
        here(*RUN, "--detach", "--sbatch", elsewhere)
        assert len({*(here.env / FLEETS).glob("*/")}) == number
    played_slurm("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert "Unable to contact slurm controller" in here(*RUN, code=1)


SEVERAL_LINES = ("partition=cpu\ntouch ran", "a\nb=night", "gres=cpu\u2028touch ran")
WRONG = [("--question", "typo"), ("--device", "gpu"), *(("--sbatch", value) for value in SEVERAL_LINES)]


@pytest.mark.parametrize(("option", "value"), WRONG)
def test_an_option_that_no_node_could_follow_is_refused(option, value, here, played_slurm, tmp_path):
    assert ("Nothing was submitted" if option == "--sbatch" else value) in here(*RUN, option, value, code=1)
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(("count", "nodes"), [*itertools.product((1, 2, 5, 6, 9, 40), (1, 2, 4, 64))])
def test_every_pair_of_neighbours_is_measured_on_one_node(count, nodes):
    tags = [f"v2.{number}.0" for number in range(count)]
    jobs, anchor = cut(tags, nodes, apart=False)
    assert {pair for job in jobs for pair in itertools.pairwise(job)} == {*itertools.pairwise(tags)}
    assert {tag for job in jobs for tag in job} == {*tags}
    assert all(len({*job, anchor} - {""}) <= AT_ONCE for job in jobs)
    assert sorted(tag for job in cut(tags, nodes, apart=True)[0] for tag in job) == sorted(tags)


def test_a_plan_ends_in_its_time_and_names_no_gigabytes_where_nothing_is_installed():
    work = Work(("mine",), "times", 3, within=120.0)
    table = sessions([["v2.14.1", "v2.15.0"]], work, {("mine", "times"): 50.0}, "session", installs=False)
    assert table.caption == "About 2 min in all. Nothing was measured."
    known = {("mine", "times"): 60.0, ("mine", "counts"): 60.0}
    seconds = {budget: replace(work, within=999.0, budget=budget).seconds(known, TAGS) for budget in (0.0, 60.0, 720.0)}
    assert seconds == {0.0: 999.0, 60.0: 60.0, 720.0: 720.0}
    assert replace(work, only="counts", launches=1, budget=900.0).seconds(known, TAGS[:1]) == 60.0


def test_durations_of_a_gpu_are_not_those_of_a_processor(tmp_path):
    for name, device in (("cpu-with-most", "cpu"), ("gpu", "cuda"), ("recorded", "recorder")):
        write_machine(tmp_path / name, device=device)
        for _ in range(1 + 2 * (device == "cpu")):
            append_launches(tmp_path / name / f"{TAGS[0]}-release-py3.11.jsonl", [launch(TAGS[0], 0)])
    said: list[str] = []
    lane = "release-py3.11"
    assert machine_with_durations(tmp_path, "gpu", "cuda", "release-py3.9", said.append) == ""
    assert machine_with_durations(tmp_path, "", "cuda", lane, said.append) == "gpu"
    assert machine_with_durations(tmp_path, "another", "cpu", lane, said.append) == "cpu-with-most"
    assert machine_with_durations(tmp_path, "gpu", "cuda", lane, said.append) == "gpu"
    assert said == [
        f"Nothing of this machine is stored: durations are those of {name}." for name in ("gpu", "cpu-with-most")
    ]


def test_a_plan_that_names_no_device_takes_the_durations_of_the_one_that_is_here(here, monkeypatch):
    write(here.results, launch(TAGS[0], 0))
    monkeypatch.setattr(fleets, "describe", lambda request: {"machine": MACHINE, "device": request.device or "cpu"})
    for device, lacks in (((), False), (("--device", "cpu"), False), (("--device", "cuda"), True)):
        said = here("run", *TAGS[:2], "--plan", "--only", "counts", "--question", "selection", *device)
        assert ("No duration of selection is stored" in said) == lacks


@pytest.mark.parametrize(("only", "folder"), [("counts", "here"), ("times", "here-on-n1")])
def test_times_have_a_folder_for_each_node(only, folder, root, tmp_path, monkeypatch):
    from asv.machine import Machine

    from torch_history.measuring import session
    from torch_history.measuring.recording import RecordedResults

    asked: dict[str, Any] = {}

    class Session:
        def __init__(self, conf: Any, axis: Any, plan: Any, environment: Any, **_: Any) -> None:
            asked.update(conf=vars(conf), root=environment.root, plan=plan, machine=Machine.hardcoded_machine_name)

        def measure(self, _: Any) -> None:
            with pytest.raises(SessionError), alone(asked["root"]):
                pass
            asked.update(offline=os.environ["UV_OFFLINE"], cache=os.environ["UV_CACHE_DIR"])

    for of, name in ((session, "Session"), (RecordedResults, "node")):
        monkeypatch.setattr(of, name, Session)
    monkeypatch.setattr(Machine, "hardcoded_machine_name", None)
    monkeypatch.chdir(root)
    values = {"TORCH_HISTORY_MACHINE": "here", "TORCH_HISTORY_DEVICE": "cpu", "SLURMD_NODENAME": "n1"}
    for name, value in {**values, "UV_OFFLINE": "", "UV_CACHE_DIR": ""}.items():
        monkeypatch.setenv(name, value)
    order = Order(str(root), str(tmp_path), "3.11", ((*TAGS[:2],),), TAGS[5], only=only, offline=True)
    order = replace(order, scratch=str(tmp_path / "disk"))
    fleets.run_session(order, order.jobs[0], tmp_path)
    assert asked["machine"] == folder
    assert RecordedResults.node["node"] == "n1"
    assert asked["plan"].releases == (TAGS[5], *TAGS[:2])
    assert (asked["conf"]["env_dir"], asked["conf"]["results_dir"]) == (order.scratch, str(tmp_path / RESULTS))
    assert (asked["offline"], asked["cache"]) == ("1", str(tmp_path / ".uv-cache"))


@pytest.fixture
def nodes(monkeypatch) -> Iterator[Cluster]:
    if words := missing():
        (pytest.fail if os.environ.get("FLEET") else pytest.skip)(words)
    with cluster(2) as running:
        for name in ("SLURM_CONF", "PATH"):
            monkeypatch.setenv(name, running.surroundings[name])
        yield running


@pytest.mark.fleet
def test_nothing_is_lost_or_counted_twice_while_slurm_requeues_and_nodes_fail(here, nodes, monkeypatch):
    monkeypatch.setenv(PAUSE, "0.5")
    here(*RUN, "--detach")
    until(lambda: all(Job(here.fleet, number).lines for number in (0, 1)))
    at_limit = nodes.ask("squeue", "--noheader", "--array", "--nodelist=n1", "--format=%i").strip()
    nodes.ask("scancel", "--batch", "--signal=USR1", at_limit)  # as Slurm does before a time limit
    for state in ("down", "resume"):
        nodes.ask("scontrol", "update", "nodename=n2", f"state={state}", "reason=test")
    written = here.written()
    here(*RUN)
    assert here.has_everything_once()
    assert written <= {launch.launch for launch in here.launches}
    assert [len(Job(here.fleet, number).attempts) for number in (0, 1)] == [2, 2]
    here(*RUN[:2], "--only", "counts", "--detach")
    here("cancel")
    assert "cancelled" in here("status")


if __name__ == "__main__":
    job.main(played)
