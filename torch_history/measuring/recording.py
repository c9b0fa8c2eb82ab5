"""How does what asv ran become launches? This plugin of asv's keeps each one, and why a case has no number."""

import datetime
import functools
import itertools
import json
import math
import os
import re
import secrets
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import asv.commands.find
import asv.commands.run
import asv.runner
from asv import util
from asv.console import log
from asv.results import Results
from asv.runner import JSON_ERROR_RETCODE, BenchmarkResult
from msgspec import Meta, Struct, convert
from packaging.version import Version

from contract.request import ASKED, ASKED_ONLY, CHANNEL
from contract.surroundings import kept
from contract.words import storable

from ..releases.environments import refusals
from ..store import launches
from ..store.asv_results import load_asvs
from ..store.details import DETAILS, add_details
from ..store.launches import Case, Launch, Returned
from ..system.errors import SessionError
from ..system.files import is_number, parse, set_aside, write_atomically

OF_THAT_METRIC = ("found", "recorded", "detectable", "turns", "returned")
"""Facts that belong to the metric that was asked, and to no other of the case."""

OF_A_CASE = ("unavailable", "unmeasured", "not_asked", *OF_THAT_METRIC)
"""Facts of one case; all others are of the whole launch."""

ANOTHER_CASE = "its process did not name this case, so nobody knows what its number is of"


@dataclass(frozen=True)
class Told:
    """What is known of one case: the facts that its process told, what it printed, its exit status, negative for a signal or
    for one of asv's own, and its answer as asv has it: a `value` and `samples`, None for each that there is not."""

    facts: dict[str, Any]
    output: str
    status: int
    value: Any = None
    samples: list[float] | None = None


class Channel:
    """A nameless file of this process, which those that it starts open: its first line names the case that is asked for, and
    they add lines. Each interpreter has one of its own, so that cases which run beside each other are told apart."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self.path = f"/proc/{os.getpid()}/fd/{self._file.fileno()}"
        self.only = ""
        """What is measured of the cases that are asked for, empty for what the interpreter was started for."""
        self.ended: dict[tuple[str, int], Told] = {}
        """Benchmark and case -> what its process told and how it ended, from then until its answer is recorded."""

    def ask(self, parameters: tuple[str, ...]) -> None:
        """Names the case that the next process is started for; what was told before is forgotten."""
        file = self._file.fileno()
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps({ASKED: parameters, ASKED_ONLY: self.only}).encode() + b"\n", 0)

    def facts(self, benchmark: dict[str, Any], parameters: tuple[str, ...]) -> dict[str, Any]:
        """What was told of that case since it was asked for. A line that cannot be read is left out with a sentence."""
        file = self._file.fileno()
        text = os.pread(file, os.fstat(file).st_size, 0)
        os.ftruncate(file, 0)
        facts: dict[str, Any] = {}
        for line in text.splitlines():
            try:
                facts |= _facts_of(line, benchmark, parameters) if line else {}
            except ValueError as error:
                log.warning(f"A message of the process for {' '.join(parameters)} is skipped: {error}.")
        return facts

    def note_end(
        self,
        benchmark: dict[str, Any],
        index: int,
        output: str,
        status: int,
        value: Any = None,
        samples: list[float] | None = None,
    ) -> Told:
        """Keeps how a process ended until that is recorded. Of one that named another case, or none, no answer is kept."""
        parameters = cases_of(benchmark)[index]
        output = storable(output.removeprefix(f"For parameters: {', '.join(parameters)}\n"))
        facts = self.facts(benchmark, parameters)
        if value is not None and not facts:
            facts, value, samples = {"unmeasured": ANOTHER_CASE}, math.nan, None
        said = self.ended[benchmark["name"], index] = Told(facts, output, status, value, samples)
        return said


Finite = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]


class Kept(Returned, frozen=True):
    """`items`: the numbers kept of each of `tensors`; `files`: those of this call and of another on equal inputs."""

    items: tuple[launches.Size, ...] = ()
    files: tuple[launches.Digest, ...] = ()


class _Facts(Struct):
    """The facts of which something is made here; others are kept as they are."""

    found: dict[str, Any] = {}
    environment: dict[str, Any] = {}
    recorded: dict[str, Any] = {}
    libraries: dict[str, str] = {}
    torch: str = ""
    device: str = ""
    card: str = ""
    unavailable: str = ""
    unmeasured: str = ""
    not_asked: str = ""
    detectable: Finite = 0
    turns: list[Finite] = []
    returned: Kept | None = None


def _facts_of(line: bytes, benchmark: dict[str, Any], parameters: tuple[str, ...]) -> dict[str, Any]:
    """The facts in a line of the channel, none where it asks or is of another case. Raises ValueError."""
    record = parse(line)
    if not isinstance(record, dict) or not isinstance(facts := record.get("facts", {}), dict):
        raise ValueError("the line holds no facts")
    convert(facts, _Facts)
    metric = benchmark["name"].rpartition(".")[2]
    is_of = record.get("metric") == metric and record.get("parameters") == list(parameters)
    return facts if is_of else {}


@functools.cache
def channel() -> Channel:
    """The channel of this process, named in its environment from the first call on."""
    found = Channel()
    os.environ[CHANNEL] = found.path
    return found


def told_of(benchmark: dict[str, Any], index: int, answer: BenchmarkResult) -> Told:
    """What is known of case `index`, once. Where no process was started for it, all that is known is in asv's `answer`."""
    said = channel().ended.pop((benchmark["name"], index), None)
    return said or Told({}, answer.stderr or "", answer.errcode, answer.result[index], answer.samples[index])


def _remember(ask: Callable[..., BenchmarkResult]) -> Callable[..., BenchmarkResult]:
    """asv's function that starts the process of a case, which it names by its place: another order of functions changes
    that. So it is given a benchmark of this case alone, and the process is told its name: on the channel of the spawner, or
    where that has none on that of this process."""

    @functools.wraps(ask)
    def asked(benchmark: dict[str, Any], spawner: Any, param_idx: int, *args: Any, **kwargs: Any) -> BenchmarkResult:
        parameters, of = cases_of(benchmark)[param_idx], getattr(spawner, "channel", None) or channel()
        of.ask(parameters)
        alone = {**benchmark, "params": [[parameter] for parameter in parameters]}
        answer = ask(alone, spawner, 0, *args, **kwargs)
        ended = answer.stderr or "", answer.errcode, answer.result[0], answer.samples[0]
        said = of.note_end(benchmark, param_idx, *ended)
        return answer._replace(result=[said.value], samples=[said.samples], stderr=said.output)

    return asked


def cases_of(benchmark: dict[str, Any]) -> list[tuple[str, ...]]:
    return list(itertools.product(*benchmark["params"]))


class RecordedResults(Results):
    """asv's results of one launch, which also keep why a case has no number. `conditions` are those of the machine while the
    next result was measured; `tag` is the release, where the results go by another name; `node` says where this process
    runs, if it is one of a fleet's."""

    session = launches.new_session()
    round = 0
    conditions: dict[str, Any] | None = None
    tag = ""
    node: Mapping[str, Any] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._launch = secrets.token_hex(4)
        self._recorded: list[Launch] = []
        self._environment: dict[str, Any] | None = None
        self._details: dict[str, dict[str, Any]] = {}
        self._told: dict[int, Told] = {}

    def take(self, index: int, told: Told, began: datetime.datetime) -> None:
        """Takes over what the process of case `index`, asked at `began`, has told; `record` puts it on disk."""
        if not self._told:
            self._began, self._seconds = began, 0.0
        self._told[index] = told
        self._seconds += (datetime.datetime.now(datetime.timezone.utc) - began).total_seconds()

    def returned(self, index: int) -> dict[str, Any]:
        """What the process of case `index` told of what that returns, to be completed before `record`; empty for nothing."""
        return self._told[index].facts.get("returned", {}) if index in self._told else {}

    def record(self, metrics: list[dict[str, Any]], conditions: Mapping[str, Any], result_dir: str) -> None:
        """Puts what was taken on disk: the first of `metrics` was asked, and its processes found the others' too."""
        if not self._told:
            return
        told, self._told = self._told, {}
        self.conditions = dict(conditions)
        for metric in metrics:
            is_asked = metric is metrics[0]
            known = told if is_asked else of_sibling(metric, told)
            self._add(metric, known, started_at=self._began, duration=self._seconds if is_asked else 0.0)
        self.save(result_dir)

    def reuse(self, metric: dict[str, Any], told: dict[int, Told], result_dir: str) -> None:
        """Puts on disk what is `told` of cases that another launch has counted."""
        self._add(metric, told)
        self.save(result_dir)

    def _add(self, metric: dict[str, Any], told: Mapping[int, Told], **when: Any) -> None:
        when |= {"record_samples": True, "append_samples": True}
        self.add_result(metric, _joined(metric, told), selected_idx=told, told=told, **when)

    def add_result(
        self,
        benchmark: dict[str, Any],
        result: Any,
        started_at: datetime.datetime | None = None,
        duration: float | None = None,
        selected_idx: Iterable[int] | None = None,
        told: Mapping[int, Told] | None = None,
        **more: Any,
    ) -> None:
        """As asv's, but a size nobody asked for is not selected, and `told` may be what is known of each case. Raises
        SessionError where a process measured on another device than the machine's record names."""
        if (self._commit_hash, self._env_name) in refusals:
            return
        cases = cases_of(benchmark)
        chosen = range(len(cases)) if selected_idx is None else sorted(selected_idx)
        said = told or {i: told_of(benchmark, i, result) for i in chosen}
        chosen = [i for i in chosen if "not_asked" not in said[i].facts]
        facts: dict[str, Any] = {}
        question = benchmark["name"].rpartition(".")[0]
        for i in chosen:
            if "recorded" in said[i].facts:
                self._details[" ".join((question, *cases[i]))] = said[i].facts["recorded"]
            facts.update({k: v for k, v in said[i].facts.items() if k not in OF_A_CASE})
        self._refuse_another_device(facts)
        self._environment = facts.pop("environment", self._environment)
        if self._environment and "libraries" in facts:
            self._environment = {**self._environment, "libraries": facts.pop("libraries")}
        if self._environment:
            facts["environment"] = launches.digest_of(self._environment)
        if chosen:
            self._recorded.append(
                Launch(
                    self.session,
                    self.round,
                    self._launch,
                    self._commit_hash,
                    self._env_name,
                    benchmark["name"],
                    benchmark["version"],
                    (started_at or datetime.datetime.now(datetime.timezone.utc)).isoformat(timespec="seconds"),
                    round(duration or 0.0, 2),
                    {**facts, **self._circumstances()},
                    tuple(_case(cases[i], said[i]) for i in chosen),
                )
            )
            installed = facts.get("torch")
            if installed and f"v{Version(installed).base_version}" != (self.tag or self._commit_hash):
                log.warning(f"torch {installed} was measured, and is recorded under {self._commit_hash} as you asked.")
        super().add_result(benchmark, result, started_at, duration, selected_idx=chosen, **more)

    def save(self, result_dir: str) -> None:
        """Appends launches, after what they name, then replaces asv's file in one step; a refused release leaves both."""
        if (self._commit_hash, self._env_name) in refusals:
            return
        path = Path(result_dir, self._filename)
        if self._environment:
            launches.append_environment(path.with_suffix(launches.ENVIRONMENTS), self._environment)
        if self._details:
            add_details(path.with_suffix(DETAILS), self.session, self._details)
            self._details = {}
        launches.append_launches(path.with_suffix(".jsonl"), self._recorded)
        self._recorded = []
        with tempfile.TemporaryDirectory() as scratch:
            super().save(scratch)
            write_atomically(path, Path(scratch, self._filename).read_text(encoding="utf-8"))

    def load_data(self, result_dir: str) -> None:
        """As asv's, except that a file that asv could not go on with is kept under another name and begun anew."""
        path = Path(result_dir, self._filename)
        try:
            if path.exists():
                load_asvs(path)
        except ValueError as error:
            log.warning(
                f"{path} was damaged: {error}. It is kept as {set_aside(path)}, and a new one was started. "
                "Its launches are in the .jsonl."
            )
        super().load_data(result_dir)

    def _circumstances(self) -> dict[str, Any]:
        """`conditions`, or the load where plain asv measures; `set`: variables that a person named; and the node."""
        found: dict[str, Any] = {"load": round(os.getloadavg()[0], 2)}
        if self.conditions:
            found = {"conditions": self.conditions}
        if variables := kept(os.environ):
            found["set"] = variables
        return {**found, "node": dict(self.node)} if self.node else found

    def _refuse_another_device(self, facts: Mapping[str, Any]) -> None:
        """Raises SessionError where a process says that it measured on something else than the machine's record does."""
        for what in ("device", "card"):
            said, recorded = facts.get(what), self.params.get(what)
            if said and recorded and said != recorded:
                raise SessionError(
                    f"A process of {self._commit_hash} measured on the {what} '{said}', and the record of this machine says "
                    f"'{recorded}'. Nothing of it was kept: name what to measure on with --device."
                )


def _joined(benchmark: dict[str, Any], told: Mapping[int, Told]) -> BenchmarkResult:
    """asv's answer for a benchmark from those of single cases; cases that nobody asked for are nan, as asv has it."""
    cases = range(len(cases_of(benchmark)))
    samples = [told[i].samples if i in told else None for i in cases]
    return BenchmarkResult(
        result=[told[i].value if i in told else math.nan for i in cases],
        samples=samples,
        number=[None if of_case is None else 1 for of_case in samples],
        errcode=next((said.status for said in told.values() if said.status), 0),
        stderr="\n\n".join(said.output for said in told.values() if said.output),
        profile=None,
    )


def of_sibling(sibling: dict[str, Any], told: Mapping[int, Told]) -> dict[int, Told]:
    """What is known of each case of `sibling`, another metric of the same question, from what the processes that were `told`
    of had found for it; a case that went wrong went wrong for both."""
    metric = sibling["name"].rpartition(".track_")[2]
    of_each: dict[int, Told] = {}
    for i, said in told.items():
        facts = {name: fact for name, fact in said.facts.items() if name not in OF_THAT_METRIC}
        value: Any = said.value
        if value is not None and metric in said.facts.get("found", {}):
            value = said.facts["found"][metric]
        elif value is not None and value == value:  # it is no nan, which says that there is no number
            facts, value = {**facts, "unmeasured": f"its process did not tell what it had found as {metric}"}, math.nan
        if isinstance(value, dict):
            facts = {**facts, **value}
            value = facts.pop("samples", None) or facts.pop("value", math.nan)
        samples = value if isinstance(value, list) else None
        of_each[i] = Told(facts, said.output, said.status, True if samples else value, samples)
    return of_each


def _case(parameters: tuple[str, ...], said: Told) -> Case:
    value, returned = said.value, said.facts.get("returned")
    returned = returned and convert(returned, Returned)
    if said.samples is not None:
        turns = tuple(said.facts.get("turns", ()))
        samples = tuple(float(f"{seconds:.7g}") for seconds in said.samples)
        return Case(parameters, samples=samples, turns=turns, returned=returned)
    if value is None:
        why = _failure(said.output, said.status)
        return Case(parameters, unmeasured=why) if _is_ours(said, why) else Case(parameters, failed=why)
    if "unmeasured" in said.facts:
        return Case(parameters, unmeasured=said.facts["unmeasured"])
    if isinstance(value, float) and math.isnan(value):
        return Case(parameters, unavailable=said.facts.get("unavailable", "skipped without a reason"))
    if not is_number(value):
        return Case(parameters, failed=f"its answer, {value}, is no number")
    return Case(parameters, value=value, detectable=said.facts.get("detectable"), returned=returned)


_LAST_SIGNAL = -64
"""Exit statuses below are asv's own: -256 for a time-out, -257 for an answer it could not read."""

_EMPTY_ANSWER = "asv: failed to parse benchmark result: Expecting value: line 1 column 1 (char 0)"
"""What asv says where a process ended well and left nothing in the file for its answer."""


TRACEBACK = "Traceback (most recent call last):"

LONGEST_MESSAGE = 500


def first_words(message: str) -> str:
    """The first line of an exception, and the next where it ends in a colon, without a terminal's colours."""
    said = ""
    for line in re.sub(r"\x1b\[[0-9;]*m", "", message).splitlines():
        said = f"{said} {line.strip()}".strip()
        if said and not said.endswith(":"):
            break
    return said[:LONGEST_MESSAGE]


def _failure(output: str, exit_status: int) -> str:
    """One sentence from the exit status, and the last words, of a process that gave no number."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if exit_status == util.TIMEOUT_RETCODE:
        return lines[-1].removeprefix("asv: ") if lines else "benchmark timed out"
    if _LAST_SIGNAL <= exit_status < 0:
        why = "; most often the system ran out of memory" if exit_status == -signal.SIGKILL else ""
        return f"the process was ended by signal {-exit_status} before it could answer{why}"
    if exit_status == JSON_ERROR_RETCODE and lines[-1:] == [_EMPTY_ANSWER]:
        exit_status, lines = 0, lines[:-1]
    elif exit_status == 1 and TRACEBACK in output:
        after = output.rpartition(TRACEBACK)[2].splitlines()[1:]  # frames, which are indented, then what was raised
        begin = next((number for number, line in enumerate(after) if line and not line[0].isspace()), len(after))
        raised = "\n".join(after[begin:] or output.strip().splitlines()[-1:])
        said = first_words(raised).removeprefix("benchmarks.common.").removeprefix("CaseFailed: ")
        return re.sub(r"^([A-Za-z_]\w*\.)+(?=\w+:)", "", said)
    last = f": {lines[-1].removeprefix('asv: ')[:400]}" if lines else ""
    status = f" with exit status {exit_status} and no" if exit_status > 0 else " without an"
    return f"the process ended{status} answer{last}"


def _is_ours(said: Told, why: str) -> bool:
    """Whether the suite or asv failed, and not what it measured: by its time, its answer, or who raised it."""
    if said.status in (util.TIMEOUT_RETCODE, JSON_ERROR_RETCODE):
        return _EMPTY_ANSWER not in said.output
    frames = re.findall(r'^ +File "(.+)", line \d+', said.output.rpartition(TRACEBACK)[2], re.MULTILINE)
    return why.startswith("NotMeasured: ") or (said.status == 1 and frames[-1:] != [] and "/asv_runner/" in frames[-1])


def setup() -> None:
    """asv calls this when it loads the plugin: `asv run`, `continuous` and `find` then record launches too."""
    channel()
    asv.commands.run.Results = asv.commands.find.Results = RecordedResults
    if not hasattr(asv.runner._run_benchmark_single_param, "__wrapped__"):
        asv.runner._run_benchmark_single_param = _remember(asv.runner._run_benchmark_single_param)
