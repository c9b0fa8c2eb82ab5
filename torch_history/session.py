"""How are releases measured so that they can be compared? Interleaved, round by round, in one session that can be resumed.

A round measures every release once, each in a fresh process; the next round goes through them backwards, so that a machine
that slows down meanwhile slows all of them alike. Every finished benchmark is on disk before the next one starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import asv_runner
from asv import util
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.console import log
from asv.environment import ExistingEnvironment
from asv.machine import Machine
from asv.plugin_manager import plugin_manager
from asv.repo import get_repo
from asv.runner import run_benchmarks
from packaging.version import Version
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .axis import Axis, Release
from .environments import InstallationError, write_atomically
from .launches import Launch, RecordedResults, new_session, of_sibling, read_launches
from .stored import is_text, read_object
from .verdicts import VARYING_UNITS

STATE = "session.json"
"""The open session in `env/`: local to this machine, so that a fresh clone measures instead of trusting old results."""


RUNNING = "running"
"""The file in `env/` that whoever measures holds locked; it names the process."""


class SessionError(util.UserError):
    """A session that cannot be started; the text says why and what to do."""


@dataclass(frozen=True)
class Plan:
    """What a session measures. `launches` is the number of rounds; counts and bytes are taken in the first round only,
    because they do not vary. `budget` is seconds after which no further round is begun. `workload` is the digest of a
    user's own file, whose session is not this repository's. `only` is `times` or `counts` where the other is left out;
    counts alone are taken in every round."""

    releases: tuple[str, ...]
    environment: str
    questions: str
    sizes: tuple[str, ...]
    launches: int
    budget: float | None = None
    workload: str = ""
    only: str = ""

    @property
    def identity(self) -> dict[str, Any]:
        """What must agree for an interrupted session to be gone on with."""
        return {**json.loads(json.dumps(asdict(self))), "budget": None}


@dataclass(frozen=True)
class OwnWorkload:
    """A user's file, measured like a question of this suite but kept apart: all that is found lies in `folder`, outside the
    repository."""

    question: str
    digest: str
    folder: Path

    @classmethod
    def of(cls, path: Path) -> OwnWorkload:
        """Reads the file and names it to the measuring processes. Raises SessionError where it is no readable Python."""
        path = path.resolve()
        try:
            text = path.read_bytes()
            compile(text, path.name, "exec", dont_inherit=True)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SessionError(
                f"The workload {path} cannot be read: {reason}. Give the path of a Python file."
            ) from error
        except SyntaxError as error:
            raise SessionError(
                f"The workload cannot be measured: line {error.lineno} of {path.name} is no Python: {error.msg}."
            ) from error
        os.environ["TORCH_HISTORY_WORKLOAD"] = str(path)
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        place = hashlib.sha256(str(path).encode()).hexdigest()[:8]
        return cls(
            question=re.sub(r"\W", "_", path.stem),
            digest=hashlib.sha256(text).hexdigest(),
            folder=caches / "torch-history" / f"{path.stem}-{place}",
        )


class InstalledEnvironment(ExistingEnvironment):
    """The torch that an interpreter has already, measured as it is and without network.

    The interpreter needs torch and numpy; asv_runner, which is pure Python, is lent to it where it has none.
    """

    def __init__(self, conf: Any, executable: str) -> None:
        super().__init__(conf, executable, {}, {})
        self._lent = tempfile.TemporaryDirectory(prefix="torch-history-")
        Path(self._lent.name, "asv_runner").symlink_to(Path(asv_runner.__file__).parent)
        facts = self._probe()
        self.torch: str = facts["torch"]
        self._python: str = facts["python"]

    @property
    def name(self) -> str:
        return f"installed-py{self._python}"

    def _probe(self) -> dict[str, str]:
        facts = "{'torch': torch.__version__, 'python': '%d.%d' % sys.version_info[:2]}"
        code = f"import json, sys, numpy, torch; print(json.dumps({facts}))"
        try:
            answer = util.check_output([self._executable, "-c", code], dots=False, display_error=False)
        except util.ProcessError as error:
            last = (error.stderr.strip().splitlines() or ["it ended without a word"])[-1]
            raise SessionError(
                f"{self._executable} cannot be measured: {last}. Name an interpreter that has torch and numpy with --python."
            ) from error
        return dict(json.loads(answer))

    def run(self, args: list[str], **kwargs: Any) -> Any:
        env = {**kwargs.pop("env", os.environ)}
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [env.get("PYTHONPATH"), self._lent.name]))
        return super().run(args, env=env, **kwargs)

    def release(self, axis: Axis, recorded_as: str | None) -> Release:
        """The release to record under: the one asked for, else the installed one. Raises SessionError where that is none."""
        if recorded_as:
            return axis.find(recorded_as)
        tag = f"v{Version(self.torch).base_version}"
        if tag not in axis or Version(self.torch).is_prerelease:
            raise SessionError(
                f"torch {self.torch} in {self._executable} is no release on the axis, so there is nowhere to record it. "
                f"Say under which release it belongs, such as --as {axis.newest.tag}; the result will say so."
            )
        return axis.find(tag)


def load_suite(root: Path) -> tuple[Config, Axis]:
    """asv's configuration of the suite in `root`, plugins loaded, and the axis; `root` becomes the working directory."""
    os.chdir(root)
    conf = Config.load("asv.conf.json")
    for plugin in conf.plugins:
        plugin_manager.import_plugin(plugin)
    return conf, get_repo(conf).axis


def measurable(releases: list[Release], python: str) -> tuple[list[Release], list[str]]:
    """Those of `releases` with a wheel for `python`, and one sentence for each that has none."""
    able = [release for release in releases if python in release.pythons]
    skipped = [
        f"{release.tag} is left out: it has no wheel for Python {python}, only for {', '.join(release.pythons)}."
        for release in releases
        if release not in able
    ]
    return able, skipped


@contextlib.contextmanager
def alone(env_dir: Path) -> Iterator[None]:
    """Keeps others from measuring beside this process, or from removing what it measures; the system frees the lock of a
    dead one. Raises SessionError where another process was first."""
    env_dir.mkdir(parents=True, exist_ok=True)
    with (env_dir / RUNNING).open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            stream.seek(0)
            raise SessionError(
                f"Another torch-history, process {stream.read().strip() or 'unknown'}, is at work in {env_dir.resolve()}: "
                "two at once would disturb each other's times. Wait until it ends, or interrupt it; it goes on later."
            ) from error
        stream.truncate(0)
        stream.write(str(os.getpid()))
        stream.flush()
        yield


class Session:
    """One interleaved measurement of a plan, begun anew or gone on with."""

    def __init__(
        self,
        conf: Config,
        axis: Axis,
        plan: Plan,
        environment: Any,
        again: bool = False,
        state: Path | None = None,
    ) -> None:
        """`state` is the file that an interrupted session is gone on with, by default in `env/`."""
        self.conf = conf
        self.plan = plan
        self.machine = Machine.load(machine_name=None, interactive=False)
        self.environment = environment
        self._axis = axis
        self._repo = get_repo(conf)
        self._state = state or Path(conf.env_dir, STATE)
        stored = self._stored_state()
        same = stored.get("plan") == plan.identity and not again
        self.id: str = stored["id"] if same else new_session()
        begun = bool(same and self.launches())
        self.finished = begun and bool(stored.get("finished"))
        self.resumed = begun and not self.finished

    def launches(self) -> list[Launch]:
        """What this session has measured so far."""
        stored = read_launches(Path(self.conf.results_dir), self.machine.machine)
        return [launch for launch in stored if launch.session == self.id]

    def measure(self, console: Console) -> None:
        """Measures what is missing of the plan. Raises KeyboardInterrupt when interrupted; what was finished is kept."""
        self._save_state(finished=False)
        self.machine.save(self.conf.results_dir)
        began = time.monotonic()
        self._install(console)
        benchmarks = self._discover()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("benchmarks,"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=console, refresh_per_second=2) as progress:
            task = progress.add_task("", total=0)
            turns = {turn: self._of_turn(benchmarks, turn) for turn in range(1, self.plan.launches + 1)}
            progress.update(task, total=sum(map(len, turns.values())) * len(self.plan.releases))
            turn_began = began
            for turn, wanted in turns.items():
                now = time.monotonic()
                last_turn, turn_began = now - turn_began, now
                if turn > 2 and self.plan.budget and now - began + last_turn > self.plan.budget:
                    console.print(f"The budget allows no further round after {turn - 1} of {self.plan.launches}.")
                    break
                tags = self.plan.releases if turn % 2 else self.plan.releases[::-1]
                for tag in tags:
                    step = f"round {turn} of {self.plan.launches}: {tag}"
                    progress.update(task, description=step)
                    if not console.is_terminal:
                        console.print(step)
                    self._launch(tag, turn, wanted, lambda: progress.advance(task))
        self._save_state(finished=True)

    def _install(self, console: Console) -> None:
        for number, tag in enumerate(self.plan.releases, start=1):
            step = f"Preparing {tag} ({number} of {len(self.plan.releases)})"
            with console.status(step):
                if not console.is_terminal:
                    console.print(step)
                self._select(tag)

    def _select(self, tag: str) -> None:
        try:
            with log.set_level(logging.CRITICAL):
                self.environment.install_project(self.conf, self._repo, tag)
        except InstallationError as error:
            raise SessionError(str(error)) from error

    def _discover(self) -> Benchmarks:
        os.environ["TORCH_HISTORY_SIZES"] = ",".join(self.plan.sizes)
        if self.plan.workload:
            self._try_own_workload()
        first = self._axis.find(self.plan.releases[-1])
        regex = rf"^({self.plan.questions})\."
        benchmarks = Benchmarks.discover(self.conf, self._repo, [self.environment], [first.tag], regex=regex)
        benchmarks.save()
        if not benchmarks:
            questions = {name.partition(".")[0] for name in Benchmarks.load(self.conf)}
            raise SessionError(
                f"There is no question '{self.plan.questions}'; there are {', '.join(sorted(questions))}."
            )
        known = {size.strip("'") for benchmark in benchmarks.values() for size in benchmark["params"][-1]}
        unknown = [size for size in self.plan.sizes if not any(f" {name}".endswith(f" {size}") for name in known)]
        if unknown and not self.plan.workload:
            raise SessionError(f"Nothing is measured in size '{unknown[0]}'; there are {', '.join(sorted(known))}.")
        return benchmarks

    def _try_own_workload(self) -> None:
        """Imports the user's file once, on the newest release. Raises SessionError where that fails, with its last words."""
        code = f"import sys; sys.path.insert(0, {os.getcwd()!r}); import benchmarks.own"
        try:
            self.environment.run(["-c", code], dots=False, display_error=False)
        except util.ProcessError as error:
            last = (error.stderr.strip().splitlines() or ["it ended without a word"])[-1]
            raise SessionError(f"The workload cannot be measured: {last.partition(': ')[2] or last}.") from error

    def _of_turn(self, benchmarks: Benchmarks, turn: int) -> Benchmarks:
        on_gpu = self.machine.__dict__.get("device") == "cuda"
        only = self._only(turn)
        skip = [
            name
            for name, benchmark in benchmarks.items()
            if only == ("counts" if benchmark["unit"] in VARYING_UNITS else "times")
            or (name.endswith(("track_kernels", "track_host_syncs")) and not on_gpu)
        ]
        return benchmarks.filter_out(skip)

    def _only(self, turn: int) -> str:
        return self.plan.only or ("times" if turn > 1 else "")

    def _launch(self, tag: str, turn: int, benchmarks: Benchmarks, advance: Callable[[], None]) -> None:
        done = {
            launch.benchmark: launch.version
            for launch in self.launches()
            if launch.release == tag and launch.round == turn
        }
        missing = benchmarks.filter_out([name for name in benchmarks if done.get(name) == benchmarks[name]["version"]])
        for _ in range(len(benchmarks) - len(missing)):
            advance()
        if not missing:
            return
        self._select(tag)
        os.environ["TORCH_HISTORY_ONLY"] = self._only(turn)
        session, results_dir = self, self.conf.results_dir
        questions: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for name in missing:
            questions[name.rpartition(".")[0]].append(missing[name])

        class Reporting(RecordedResults):
            """asv runs the first metric of each question; the processes that it starts find the others' numbers too."""

            def add_result(self, benchmark: dict[str, Any], result: Any, *args: Any, **kwargs: Any) -> None:
                super().add_result(benchmark, result, *args, **kwargs)
                advance()
                for sibling in questions[benchmark["name"].rpartition(".")[0]][1:]:
                    of_it = {**kwargs, "duration": 0.0}
                    super().add_result(sibling, of_sibling(benchmark, sibling, result), *args, **of_it)
                    advance()
                self.save(results_dir)

        Reporting.session, Reporting.round = session.id, turn
        results = Reporting(
            {**self.machine.__dict__, "python": self.environment.python},
            {},
            tag,
            self._repo.get_date(tag),
            self.environment.python,
            self.environment.name,
            {},
        )
        results.load_data(results_dir)
        try:
            run_benchmarks(
                missing.filter_out([of["name"] for metrics in questions.values() for of in metrics[1:]]),
                self.environment,
                results=results,
                extra_params={"rounds": 1},
                record_samples=True,
                append_samples=True,
                launch_method="forkserver",
            )
        except util.UserError as error:
            if str(error) == "Interrupted.":
                raise KeyboardInterrupt from error
            raise

    def _stored_state(self) -> dict[str, Any]:
        try:
            state = read_object(self._state) if self._state.exists() else {}
            if state and not is_text(state.get("id")):
                raise ValueError("it names no session")
        except ValueError as error:
            log.warning(f"{self._state}: {error}, so a new session begins; what the last one measured is kept.")
            return {}
        return state

    def _save_state(self, finished: bool) -> None:
        self._state.parent.mkdir(parents=True, exist_ok=True)
        state = {"id": self.id, "plan": self.plan.identity, "finished": finished}
        write_atomically(self._state, json.dumps(state, indent=1))
