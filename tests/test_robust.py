"""Is nothing lost or taken for true when a file is damaged, foreign or written by two, or a run is killed at any moment?"""

import itertools
import json
import math
import multiprocessing
import os
import random
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from asv import util
from asv.machine import Machine, MachineCollection
from asv.results import Results
from click.testing import CliRunner, Result

from torch_history import cli
from torch_history.cli import suite
from torch_history.measuring import machine_records
from torch_history.measuring.kit.check import check
from torch_history.measuring.plan import Plan
from torch_history.measuring.session import Session
from torch_history.store import machines
from torch_history.store.asv_results import load_asvs, read_benchmarks
from torch_history.store.launches import Case, Launch, append_launches, read_environment, read_file, read_launches
from torch_history.system.errors import SessionError
from torch_history.system.locks import alone

from .lab import AXIS
from .test_launches import BYTES, ENVIRONMENT, MACHINE, TIME, add, answer, environment_said, some_launch
from .test_launches import results as recording

RELEASES = ("v2.0.1", "v2.15.0")
SAMPLES = [[0.25, 0.5], [2.5, 2.25], [0.125, 0.5], [0.25, 0.5]]
RECORD = {**MACHINE, "machine": "here"}

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    **{"empty": lambda whole: b"", "cut": lambda whole: whole[:-20]},
    **{"junk": lambda whole: random.Random(5).randbytes(300), "a list": lambda whole: b'[["a", 1]]'},
    **{"a number": lambda whole: b"5", "null": lambda whole: b"null"},
    **{"another object": lambda whole: b'{"version": 1, "a": {}}', "nested": lambda whole: b"[" * 100_000},
    **{"NaN": lambda whole: b"NaN", "half a character": lambda whole: b'{"machine": "\\ud800", "id": "\\ud800"}'},
}


def fill(results: Path) -> Path:
    """Writes what a session on a machine `here` leaves for two releases, and a list of benchmarks; returns its folder."""
    for release in RELEASES:
        save(results, release)
    util.write_json(results / "here" / "machine.json", RECORD, api_version=1)
    names = {"param_names": ["variant", "size"], "pretty_name": "", "code": "", "timeout": 60, "type": "track"}
    util.write_json(results / "benchmarks.json", {of["name"]: {**of, **names} for of in (TIME, BYTES)}, api_version=2)
    return results / "here"


@pytest.fixture
def here(results) -> Path:
    """What `fill` writes, among results that the command reads."""
    return fill(results)


def save(results: Path, release: str, **more: Any) -> None:
    recorded = recording(release, RECORD)
    recorded.load_data(str(results))
    add(recorded, TIME, answer(SAMPLES, said={0: environment_said(release)}), **more)
    add(recorded, BYTES, answer([4, 8, 4, 8]), **more)
    recorded.save(str(results))


def file_of(folder: Path, ending: str, release: str = RELEASES[0]) -> Path:
    return folder / f"{release}-{ENVIRONMENT}.{ending}"


def command(*arguments: str) -> Result:
    """Runs the command in this process. Raises AssertionError where it does not end in sentences."""
    found = CliRunner().invoke(cli.main, arguments)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise AssertionError("".join(traceback.format_exception(found.exception))[-1500:])
    assert found.exit_code in (0, 1), f"exit code {found.exit_code}: {found.output}"
    assert found.exit_code == 0 or "torch-history: " in found.stderr
    return found


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["jsonl", "environments", "json", "machine.json"])
def test_damaged_file_is_named_once_and_the_rest_is_used(here, warned, name, damage):
    path = here / name if name == "machine.json" else file_of(here, name)
    whole = path.read_bytes()
    path.write_bytes(DAMAGE[damage](whole))
    compared = command("compare", *RELEASES, "--machine", "here")
    assert compared.exit_code == (name == "jsonl" and damage != "cut")
    assert command("regressions", "--machine", "here").exit_code == 0
    assert (not read_environment(here.parent, "here", RELEASES[0], ENVIRONMENT)) == (name == "environments")
    silent = name == "json" or (damage == "empty" and name != "machine.json")
    assert [str(path) in sentence for sentence in warned] == ([] if silent else [True])


def each(key: str, *values: Any) -> list[bytes]:
    """Lines of a launch that has one of `values` under a key."""
    return [json.dumps({**json.loads(some_launch().to_json()), key: value}).encode() for value in values]


def each_case(key: str, *values: Any) -> list[bytes]:
    return each("cases", *([{"parameters": [], key: value}] for value in values))


NO_NAMES: tuple[Any, ...] = (None, "ab", 5, {}, [5])
NO_NUMBERS: tuple[Any, ...] = ("1", True, [], math.nan, math.inf, 10**400)


@pytest.mark.parametrize(
    "line",
    [
        *(b"garbage", b"[]", b"null", b'{"cases": [5]}', b'{"cases": [{}]}', b"\xff\xfe\x00", b"<<<<<<< HEAD"),
        *itertools.chain(*(each(key, None, 5, [], {}) for key in ("session", "release", "benchmark", "started_at"))),
        *each("round", None, "1", 1.5, True, -1, 10**30),
        *each("duration", None, 1e300, *NO_NUMBERS),
        *each("facts", None, "", [], {"conditions": 5}, {"threads": "many"}, {"threads": None}),
        *each("cases", None, {}, "", [None], [5], [[]], [{}], [{"parameters": []}], [{"value": 1}]),
        *each("cases", *([{"parameters": value, "value": 1}] for value in NO_NAMES)),
        *each_case("samples", None, 5, "12", [[1]], [0], [-1.0], [5e-324], [1.7e308], *([one] for one in NO_NUMBERS)),
        *each_case("value", 0, -1, *NO_NUMBERS),
        some_launch(benchmark=BYTES["name"], cases=(Case((), value=-1),)).to_json().encode(),
        *each_case("failed", None, 5, [], "half a character: \ud800"),
        *each_case("unavailable", None, 5, []),
    ],
)
def test_launch_that_cannot_be_is_left_out_and_named(here, warned, line):
    path = file_of(here, "jsonl")
    with path.open("ab") as stream:
        stream.write(line + b"\n\n")
    append_launches(path, [some_launch("after it")])
    assert len(list(read_launches(here.parent, "here"))) == 5
    assert [sentence.startswith(f"{path}, line 3 is skipped: ") for sentence in warned] == [True]
    assert sum(f"{str(path)!r}, line 3: " in problem for problem in check(here.parent, AXIS).problems) == 1


def test_keys_of_a_newer_version_are_passed_over():
    line = json.loads(some_launch().to_json())
    line["cases"][0]["unheard"] = {"of": [1]}
    assert Launch.from_json(json.dumps({**line, "unheard": "of"})) == some_launch()


@pytest.mark.parametrize("ending", ["jsonl", "environments"])
def test_file_that_was_cut_at_any_byte_gives_its_whole_lines_and_takes_more(here, warned, monkeypatch, ending):
    save(here.parent, RELEASES[0])
    monkeypatch.setattr(os, "fsync", lambda _: None)  # which takes most of the time, and no machine crashes here
    path = file_of(here, ending)
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        if ending == "jsonl":
            found = [launch for launch in read_launches(here.parent, "here") if launch.release == RELEASES[0]]
            # A line that lacks nothing but its end is whole.
            assert len(found) == whole[: end + 1].count(b"\n")
            append_launches(path, [some_launch("after it")])
            assert [*read_file(path)] == [*found, some_launch("after it")]
        else:
            known = read_environment(here.parent, "here", RELEASES[0], ENVIRONMENT)
            assert bool(known) == (whole[: end + 1].count(b"\n") > 0)
    assert all(f"{path}, line " in sentence for sentence in warned)


def test_file_that_cannot_be_read_or_written_is_named(here, warned):
    (here / "folder.jsonl").mkdir()
    assert command("compare", *RELEASES, "--machine", "here").exit_code == 0
    assert warned == [f"{here / 'folder.jsonl'} is skipped: it cannot be read (Is a directory)."]
    file = here.parents[1] / "file"
    file.touch()
    answered = command("publish", "--html-dir", str(file / "html"), "--results-dir", str(here.parent))
    assert answered.exit_code == 1
    assert f"{file} cannot be read or written: File exists." in answered.stderr


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_file_of_asvs_is_kept_and_begun_anew(here, warned, damage):
    path = file_of(here, "json")
    broken = DAMAGE[damage](path.read_bytes())
    for number in (1, 2):
        path.write_bytes(broken)
        save(here.parent, RELEASES[0])
        assert path.with_name(f"{path.name}.damaged-{number}").read_bytes() == broken
        assert load_asvs(path)
        assert Results.load(str(path)).get_result_samples(TIME["name"], TIME["params"]) == SAMPLES
        assert f"It is kept as {path.name}.damaged-{number}, and a new one was started." in warned[-1]
    assert len(list(read_launches(here.parent, "here"))) == 8
    assert len(warned) == 2


def row(of: dict[str, Any]) -> Any:
    """The first benchmark's results in a file of asv's."""
    return next(iter(of["results"].values()))


def put(of: dict[str, Any], **columns: Any) -> None:
    for name, value in columns.items():
        row(of)[of["result_columns"].index(name)] = value


def first(of: dict[str, Any]) -> Any:
    """The first benchmark of a list of them."""
    return next(value for value in of.values() if isinstance(value, dict))


Change = Callable[[dict[str, Any]], object]
RESULTS: dict[str, Change] = {
    "8 parameters of 300 values": lambda of: put(of, params=[["a"] * 300] * 8),
    "a string for parameters": lambda of: put(of, params="text"),
    "3,000 keys": lambda of: of["params"].update({f"key{i}": "x" for i in range(3000)}),
    "a key of 300 letters": lambda of: of["params"].update({"k" * 300: "x"}),
    "a key that leads upwards": lambda of: of["params"].update({"..": ""}),
    "a processor of 200,000 letters": lambda of: of["params"].update(cpu="x" * 200_000),
    "a processor of 70 letters of 4 bytes": lambda of: of["params"].update(cpu="\U0001f600" * 70),
    "a benchmark of 300 letters": lambda of: of["results"].update({"b" * 300: row(of)}),
    "a date that is text": lambda of: of.update(date="yesterday"),
    "a date in the year 300,000": lambda of: of.update(date=10**16),
    "a parameter that is a list": lambda of: of["params"].update(ram=[]),
    "surroundings of 3,000 keys": lambda of: of.update(env_vars={f"K{i}": "x" for i in range(3000)}),
    "samples that are text": lambda of: put(of, samples=["1"]),
    "a number beyond all": lambda of: put(of, result=[1e300] * 4),
    "columns that nobody knows": lambda of: of["result_columns"].__setitem__(0, "x"),
}
"""What may be changed in a file of asv's, in words -> what changes it so that asv would stumble over it."""

BENCHMARKS: dict[str, Change] = {
    "8 parameters of 300 values": lambda of: first(of).update(params=[["a"] * 300] * 8, param_names=["a"] * 8),
    "a string for parameters": lambda of: first(of).update(params="text"),
    "numbers for parameters": lambda of: first(of).update(params=[[1], [2]]),
    "names that are fewer": lambda of: first(of).update(param_names=["a"]),
    "a name of 300 letters": lambda of: of.update({"b" * 300: {**first(of), "name": "b" * 300}}),
    "a name that another has": lambda of: first(of).update(name="other"),
    "no version": lambda of: first(of).pop("version"),
}


def changed(path: Path, change: Change) -> None:
    whole = json.loads(path.read_text())
    change(whole)
    path.write_text(json.dumps(whole))


def asvs(**changed: Any) -> Change:
    return lambda whole: whole.update(changed)


@pytest.mark.parametrize(
    "change",
    [
        *(*RESULTS.values(), lambda of: put(of, result=[-1.0] * 4)),
        *(asvs(commit_hash="v2.1.0"), asvs(commit_hash=None), asvs(env_name="release-py3.9"), asvs(params=None)),
        *(asvs(params={**RECORD, "machine": "elsewhere"}), asvs(version=1), asvs(version="2"), asvs(results=[])),
        *(asvs(results={"a": "b"}), asvs(results={"a": [["x"], [["1"]]]}), asvs(results={"a": [[1], 5]})),
        *(asvs(result_columns=[]), lambda whole: whole.pop("results")),
    ],
)
def test_file_that_asv_would_stumble_over_is_none_of_asvs(here, change):
    path = file_of(here, "json")
    assert load_asvs(path)["commit_hash"] == RELEASES[0]
    changed(path, change)
    with pytest.raises(ValueError, match=r"it (is no whole result file|holds results of)"):
        load_asvs(path)


@pytest.mark.parametrize("change", BENCHMARKS.values(), ids=BENCHMARKS)
def test_list_of_benchmarks_that_asv_would_stumble_over_is_none(here, change):
    listed = here.parent / "benchmarks.json"
    assert len(read_benchmarks(listed)) == 2
    changed(listed, change)
    with pytest.raises(ValueError, match=r"^it is no"):
        read_benchmarks(listed)


def test_folder_names_its_machine_whatever_its_record_says(here, tmp_path, warned):
    here.rename(here.parent / "renamed")
    record = here.parent / "renamed" / "machine.json"
    assert machines.record_of(record.parent) == {**RECORD, "machine": "renamed", "version": 1}
    assert warned == [f"{record} is the record of another machine, here: the folder's name is what counts."]
    published = command("publish", "--html-dir", str(tmp_path / "html"), "--results-dir", str(here.parent))
    assert published.exit_code == 0, published.output
    (lane,) = json.loads((tmp_path / "html" / "data" / "index.json").read_text())["lanes"]
    assert lane["machine"] == "renamed"


@pytest.mark.parametrize("home", ["in reach", "out of reach"])
def test_the_collection_of_machines_that_other_suites_share_is_not_touched(home, tmp_path, monkeypatch):
    shared = tmp_path / ".asv-machine.json"
    shared.write_text("{")
    monkeypatch.setenv("HOME", str(tmp_path if home == "in reach" else shared / "nobody"))
    for of, name in ((MachineCollection, "load"), (MachineCollection, "save"), (Machine, "hardcoded_machine_name")):
        monkeypatch.setattr(of, name, getattr(of, name))
    machine_records.use(RECORD)
    assert vars(Machine.load())["machine"] == RECORD["machine"]
    assert shared.read_text() == "{"


class Here:
    """Stands for an environment where none is asked to measure."""

    name = ENVIRONMENT


PLAN = Plan(releases=RELEASES, environment=ENVIRONMENT, questions=r"\w+", sizes=("small",), launches=6)


def session(folder: Path) -> Session:
    """That of PLAN whose state is in `folder`."""
    found = suite.load()
    return Session(found.config(), found.axis, PLAN, Here(), folder=folder)


@pytest.mark.parametrize("damage", [*DAMAGE, "without a session", "session that is a number"])
def test_session_whose_state_is_damaged_begins_anew_in_a_sentence(here, warned, tmp_path, damage):
    state = session(tmp_path).state
    whole = {"id": "an-interrupted-one", "finished": False}
    append_launches(file_of(here, "jsonl"), [some_launch(session=whole["id"])])
    state.write_text(json.dumps(whole))
    assert session(tmp_path).resumed
    if damage in DAMAGE:
        state.write_bytes(DAMAGE[damage](state.read_bytes()))
    else:
        state.write_text(json.dumps({**whole, "id": 5} if "number" in damage else {"finished": False}))
    anew = session(tmp_path)
    assert not anew.resumed
    assert not anew.finished
    assert anew.id != whole["id"]
    assert [str(state) in sentence for sentence in warned] == [True]


def test_session_whose_results_are_gone_is_not_called_finished(results, tmp_path):
    session(tmp_path).state.write_text(json.dumps({"id": "a-session", "finished": True}))
    assert not session(tmp_path).finished


HOLD = """
import sys
from pathlib import Path
from torch_history.system.locks import alone
with alone(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("place", "commands"),
    [
        ("env", (("run", *RELEASES, "--size", "small"), ("prune",))),
        ("env/recorder", (("fit", "docs/examples/transformer_step.py"), ("certify", "gpu.json"))),
    ],
)
def test_second_run_is_refused_and_a_killed_one_leaves_no_lock(here, tmp_path, place, commands):
    env = tmp_path / place
    hold = [sys.executable, "-c", HOLD, str(env)]
    with subprocess.Popen(hold, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        for arguments in commands:
            answered = command(*arguments)
            assert answered.exit_code == 1
            who = f"process {holder.pid} on {socket.gethostname()}"
            assert f"Another torch-history, {who}, is working in {env}. " in answered.stderr
        holder.kill()
    with alone(env):
        assert (env / "running").read_text() == f"{os.getpid()} on {socket.gethostname()}"
    with ExitStack() as both:
        both.enter_context(alone(env))
        with pytest.raises(SessionError, match=f"process {os.getpid()}"):
            both.enter_context(alone(env))


FORK = multiprocessing.get_context("fork")
WRITERS, APPENDS, LINES, SAVES = 4, 50, 20, 50


def append_many(path: Path, name: str) -> None:
    long = (Case(("'eager'", "'small'"), samples=tuple(0.1 + i for i in range(200))),)
    for i in range(APPENDS):
        append_launches(path, [some_launch(f"{name}{i}-{j}", cases=long) for j in range(LINES)])


def save_many(results: Path, name: str) -> None:
    for _ in range(SAVES):
        save(results, RELEASES[0])


def while_many(write: Callable[..., None], target: Path) -> Iterator[None]:
    """Goes on while several processes `write` to `target`."""
    processes = [FORK.Process(target=write, args=(target, name)) for name in "abcd"[:WRITERS]]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        time.sleep(0.05)
        yield
    assert [process.exitcode for process in processes] == [0] * WRITERS


def test_thousands_of_lines_that_many_processes_append_at_once_are_all_there(tmp_path, warned):
    path = file_of(tmp_path / "here", "jsonl")
    for _ in while_many(append_many, path):
        assert len(list(read_launches(tmp_path, "here"))) % LINES == 0
    launches = [launch.launch for launch in read_launches(tmp_path, "here")]
    assert len(launches) == len(set(launches)) == WRITERS * APPENDS * LINES
    assert warned == []


def test_asvs_file_that_many_processes_replace_at_once_is_always_whole(tmp_path, warned):
    path = file_of(tmp_path / "here", "json")
    for _ in while_many(save_many, tmp_path):
        if path.exists():
            load_asvs(path)
    assert len(list(read_launches(tmp_path, "here"))) == WRITERS * SAVES * 2
    assert warned == []
    names = [file_of(path.parent, ending).name for ending in ("environments", "json", "jsonl")]
    assert sorted(of.name for of in path.parent.iterdir()) == names


SUITE = """
import json, os, time
from contract.request import CHANNEL

class {name}:
    params = (["eager"], ["small"])
    param_names = ["variant", "size"]

    def track_time(self, variant, size):
        time.sleep(0.01)
        named = dict(metric="track_time", parameters=[repr(variant), repr(size)], process=os.getpid(), facts=dict(threads=1))
        with open(os.environ[CHANNEL], "a") as channel:
            channel.write("\\n" + json.dumps(named) + "\\n")
        return 0.5

    track_time.unit = "seconds"
"""

MEASURE = """
import os
import sys
from pathlib import Path
from asv.environment import ExistingEnvironment
from rich.console import Console
from tests.test_robust import PLAN
from torch_history.measuring.recording import RecordedResults
from torch_history.measuring import session
from torch_history.measuring.session import Session, load_suite
from torch_history.system.locks import alone

# What a busy machine makes it ask again would be there twice.
session.AGAIN_SHARE = 0

class Here(ExistingEnvironment):
    name = PLAN.environment
    install_project = lambda *arguments: None

    def run(self, args, **kwargs):
        return super().run(args, **{**kwargs, "env": {**kwargs.get("env", os.environ), **self.request.variables()}})

folder = Path(sys.argv[1])
conf, axis = load_suite(Path.cwd())
conf.results_dir, conf.env_dir, conf.benchmark_dir = (str(folder / name) for name in ("results", "env", "suite"))
save = RecordedResults.save

def report(self, results_dir):
    saved = [(launch.round, launch.release, launch.benchmark) for launch in self._recorded]
    save(self, results_dir)
    for launch in saved:
        print("finished", *launch, flush=True)

RecordedResults.save = report
with alone(Path(conf.env_dir)):
    begun = Session(conf, axis, PLAN, Here(conf, sys.executable, {}, {}))
    print("session", begun.id, begun.resumed, flush=True)
    begun.measure(Console(file=sys.stderr))
print("done", flush=True)
"""


def test_session_that_is_killed_again_and_again_measures_everything_once(root, tmp_path, monkeypatch, warned):
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "__init__.py").touch()
    for name in ("First", "Second"):
        (suite / f"{name.lower()}.py").write_text(SUITE.format(name=name))
    for name, value in {"HOME": str(tmp_path), "TORCH_HISTORY_MACHINE": "here", "TORCH_HISTORY_DEVICE": "cpu"}.items():
        monkeypatch.setenv(name, value)
    chance = random.Random(20261121)
    finished: list[str] = []
    sessions: set[str] = set()
    measure: dict[str, Any] = {"args": [sys.executable, "-c", MEASURE, str(tmp_path)], "cwd": root, "text": True}
    # Each kill leaves more time than the one before, so that on a busy machine, too, one comes after something was finished.
    for after in (*(chance.uniform(1, 2.2) * (1 + number) for number in range(4)), None):
        with subprocess.Popen(**measure, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            assert child.stdout
            said = [child.stdout.readline()]
            if after is not None:
                time.sleep(after)
                child.kill()
            said = [line.strip() for line in (*said, *child.stdout)]
        sessions.add(said[0].split()[1])
        finished += [line for line in said if line.startswith("finished")]
        stored = read_launches(tmp_path / "results", "here")
        found = [f"finished {launch.round} {launch.release} {launch.benchmark}" for launch in stored]
        assert set(finished) <= set(found)
        assert len(found) == len(set(found))
        for path in (tmp_path / "results" / "here").glob("v*.json"):
            load_asvs(path)
    assert said[-1] == "done"
    assert len(sessions) == 1
    assert len(finished) > len(said) - 2
    assert len(found) == PLAN.launches * len(PLAN.releases) * 2
    assert warned == []
