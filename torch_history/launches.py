"""What was measured, launch by launch: each fresh process with its session, its samples, or the reason for having none.

asv pools the samples of all processes and forgets why one failed. As an asv plugin this module keeps both, one JSON line
per launch and benchmark in `results/<machine>/<tag>-<environment>.jsonl` beside asv's own file, and in a file that ends in
`.environments` what was measured: the libraries in the wheel and every package around it.
"""

from __future__ import annotations

import datetime
import fcntl
import hashlib
import itertools
import json
import math
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asv.commands.find
import asv.commands.run
from asv._stats import get_weight
from asv.console import log
from asv.results import Results, get_filename
from asv.runner import BenchmarkResult
from packaging.version import Version

from .axis import Axis
from .environments import refusals, write_atomically
from .stored import Check, fields_of, is_list_of, is_number, is_positive, is_text, parse, read_lines, set_aside, warn

ENVIRONMENTS = ".environments"
"""Ending of the file beside a release's launches that says what was measured; asv would load one that ends in .json."""

SAID = "torch-history: "
"""What a measuring process prints before each fact about itself; see `_say` in benchmarks/common.py."""

OF_A_CASE = ("unavailable", "not_asked", "found")
"""Facts of one case; all others are of the whole launch."""

ABOVE_ZERO = ("seconds", "ratio")
"""Units of numbers that are above zero; what is not is no measurement, and has no logarithm."""

IN_A_CASE: dict[str, Check] = {
    "parameters": is_list_of(is_text),
    "samples": is_list_of(is_positive),
    "value": is_number,
    "unavailable": is_text,
    "failed": is_text,
}
IN_A_LAUNCH: dict[str, Check] = {
    **dict.fromkeys(("session", "launch", "release", "environment", "benchmark", "version", "started_at"), is_text),
    "round": lambda value: type(value) is int,
    "duration": is_number,
    "facts": lambda value: isinstance(value, dict),
    "cases": lambda value: isinstance(value, list),
}
"""What each key of a line must hold; it may come from another version, or from anywhere."""


def new_session() -> str:
    """A name for a session, readable and sortable: its start in UTC and a random part."""
    return f"{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def unit_of(benchmark: str) -> str:
    """What a benchmark counts, by the name of its metric; a count has no unit."""
    metric = benchmark.rpartition(".")[2]
    if metric.endswith(("_time", "_call")):
        return "seconds"
    if metric.endswith("over_median"):
        return "ratio"
    if metric.endswith("stalls"):
        return "stalls"
    return "bytes" if metric.endswith(("memory", "retained")) else ""


@dataclass(frozen=True)
class Case:
    """What one launch found for one set of parameters: samples, or a value, or the reason for neither.

    `samples` are seconds per call, to seven digits; `value` is a count or bytes; `unavailable` says why this release cannot
    run it, `failed` how it went wrong.
    """

    parameters: tuple[str, ...]
    samples: tuple[float, ...] = ()
    value: float | None = None
    unavailable: str = ""
    failed: str = ""

    @classmethod
    def of(cls, data: Any) -> Case:
        """From an object in a line of a file. Raises ValueError where it is no case."""
        found = fields_of(cls, data, IN_A_CASE)
        if len(found) < 2:
            raise ValueError("a case has neither a number nor a reason")
        found["samples"] = tuple(found.get("samples", ()))
        return cls(**{**found, "parameters": tuple(found["parameters"])})

    @property
    def number(self) -> float | None:
        """The launch's one number: the value, or the quickest of its samples; None where there is a reason instead.

        What disturbs a process only adds to its time, so the quickest sample says most of the code (Chen and Revels 2016,
        "Robust benchmarking in noisy environments"): between two launches of one release it differs by a third less than
        the median. A sample is itself made of medians of blocks, so it is no stroke of luck.
        """
        return min(self.samples) if self.samples else self.value


@dataclass(frozen=True)
class Launch:
    """One benchmark in one start of the interpreter. `round` counts the session's turns through its releases from 1; a
    run by plain asv has no turns of ours and stores 0."""

    session: str
    round: int
    launch: str
    release: str
    environment: str
    benchmark: str
    version: str
    started_at: str
    duration: float
    facts: dict[str, Any]
    cases: tuple[Case, ...]

    def to_json(self) -> str:
        cases = [
            {key: value for key, value in vars(case).items() if key == "parameters" or value not in ((), "", None)}
            for case in self.cases
        ]
        return json.dumps({**vars(self), "cases": cases}, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str | bytes) -> Launch:
        """Raises ValueError where `line` is not one launch. A key that is not known is a newer version's and passed over."""
        found = fields_of(cls, parse(line), IN_A_LAUNCH)
        cases = tuple(Case.of(case) for case in found["cases"])
        values = [case.value for case in cases if case.value is not None]
        if unit_of(found["benchmark"]) in ABOVE_ZERO and not all(map(is_positive, values)):
            raise ValueError("a time of zero or less is none")
        return cls(**{**found, "cases": cases})


class RecordedResults(Results):
    """asv's results of one release in one environment, which also keep each launch and why a case has no number.

    asv makes one such object per start of its fork server, so one object is one launch. `conditions` are those of the
    machine while the next result was measured; `tag` is the release, where the results go by another name.
    """

    session = new_session()
    round = 0
    conditions: dict[str, Any] | None = None
    tag = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._launch = secrets.token_hex(4)
        self._recorded: list[Launch] = []
        self._environment: dict[str, Any] | None = None

    def add_result(
        self,
        benchmark: dict[str, Any],
        result: Any,
        started_at: datetime.datetime | None = None,
        duration: float | None = None,
        record_samples: bool = False,
        append_samples: bool = False,
        selected_idx: Iterable[int] | None = None,
    ) -> None:
        """As asv's, except that a size nobody asked for counts as not selected: what is known of it stays."""
        if (self._commit_hash, self._env_name) in refusals:
            return
        cases = list(itertools.product(*benchmark["params"])) or [()]
        said = _said_per_case(cases, result.stderr)
        chosen = range(len(cases)) if selected_idx is None else sorted(selected_idx)
        chosen = [i for i in chosen if "not_asked" not in said[i].facts]
        facts: dict[str, Any] = {}
        for i in chosen:
            facts.update({k: v for k, v in said[i].facts.items() if k not in OF_A_CASE})
        self._environment = facts.pop("environment", self._environment)
        if self._environment:
            facts["environment"] = _digest(self._environment)
        if chosen:
            self._recorded.append(
                Launch(
                    session=self.session,
                    round=self.round,
                    launch=self._launch,
                    release=self._commit_hash,
                    environment=self._env_name,
                    benchmark=benchmark["name"],
                    version=benchmark["version"],
                    started_at=(started_at or datetime.datetime.now(datetime.UTC)).isoformat(timespec="seconds"),
                    duration=round(duration or 0.0, 2),
                    facts={**facts, **self._circumstances()},
                    cases=tuple(_case(cases[i], i, result, said[i]) for i in chosen),
                )
            )
            self._warn_of_another_torch(facts)
        super().add_result(
            benchmark,
            result,
            started_at=started_at,
            duration=duration,
            record_samples=record_samples,
            append_samples=append_samples,
            selected_idx=chosen,
        )

    def save(self, result_dir: str) -> None:
        """Appends the launches to their file, then replaces asv's file in one step; a refused release leaves both alone."""
        if (self._commit_hash, self._env_name) in refusals:
            return
        path = Path(result_dir, self._filename)
        append_launches(path.with_suffix(".jsonl"), self._recorded)
        self._recorded = []
        if self._environment:
            append_environment(path.with_suffix(ENVIRONMENTS), self._environment)
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
            log.warning(f"{path} is kept as {set_aside(path)} and begun anew: {error}. Its launches are in the .jsonl.")
        super().load_data(result_dir)

    def _circumstances(self) -> dict[str, Any]:
        """What plain asv lets us know of the machine is its load; sessions watch it closely."""
        return {"conditions": self.conditions} if self.conditions else {"load": round(os.getloadavg()[0], 2)}

    def _warn_of_another_torch(self, facts: dict[str, Any]) -> None:
        installed = facts.get("torch")
        if installed and f"v{Version(installed).base_version}" != (self.tag or self._commit_hash):
            log.warning(f"torch {installed} was measured, and is recorded under {self._commit_hash} as you asked.")


def load_asvs(path: Path) -> Results:
    """asv's own results in `path`. Raises ValueError where asv would stumble over them, or they belong elsewhere."""
    try:
        found = Results.load(str(path), machine_name=path.parent.name)
        hash((found.commit_hash, found.env_name, *found.params.values(), *found.env_vars.values()))
        for name in found.get_all_result_keys():
            params = found.get_result_params(name)
            math.fsum(number for number in found.get_result_value(name, params) if number is not None)
            for samples in found.get_result_samples(name, params):
                math.fsum(samples or [])
            for stats in found.get_result_stats(name, params):
                get_weight(stats)
        named = Path(get_filename("", found.commit_hash, found.env_name)).name
    except Exception as error:
        # A file of another shape may make asv raise anything.
        raise ValueError("it is no whole result file of asv for this machine") from error
    if path.name != named:
        raise ValueError(f"it holds results of {found.commit_hash} in {found.env_name}")
    return found


def of_sibling(benchmark: dict[str, Any], sibling: dict[str, Any], result: BenchmarkResult) -> BenchmarkResult:
    """The answer that asv would get for `sibling`, another metric of the same question, from what the processes started for
    `benchmark` said they had found for it; a case that went wrong went wrong for both."""
    metric = sibling["name"].rpartition(".track_")[2]
    cases = list(itertools.product(*benchmark["params"]))
    values: list[Any] = []
    samples: list[Any] = []
    printed = []
    for i, (case, said) in enumerate(zip(cases, _said_per_case(cases, result.stderr), strict=True)):
        value = said.facts.get("found", {}).get(metric, result.result[i])
        facts = {name: fact for name, fact in said.facts.items() if name not in OF_A_CASE}
        if isinstance(value, dict):
            facts, value = {**facts, **value}, math.nan
        elif isinstance(value, float) and math.isnan(value):
            facts.update({name: fact for name, fact in said.facts.items() if name in ("unavailable", "not_asked")})
        values.append(True if isinstance(value, list) else value)
        samples.append(value if isinstance(value, list) else None)
        printed.append(f"For parameters: {', '.join(case)}\n{SAID}{json.dumps(facts)}\n{said.rest}")
    number = [None if of_case is None else 1 for of_case in samples]
    return BenchmarkResult(values, samples, number, result.errcode, "\n".join(printed), None)


@dataclass(frozen=True)
class _Said:
    facts: dict[str, Any]
    rest: str


def _said_per_case(cases: list[tuple[str, ...]], output: str) -> list[_Said]:
    """What each case's process printed, taken apart into facts and the rest; asv joins them under headings."""
    said = [_Said({}, "") for _ in cases]
    if cases == [()]:
        return [_parse(output)]
    headings = {f"For parameters: {', '.join(case)}\n": i for i, case in enumerate(cases)}
    parts = re.split(r"^(For parameters: .*\n)", output or "", flags=re.MULTILINE)
    if len(parts) == 1:
        return [_parse(output)] * len(cases)
    for heading, text in itertools.pairwise(parts):
        if heading in headings:
            said[headings[heading]] = _parse(text)
    return said


def _parse(output: str) -> _Said:
    facts: dict[str, Any] = {}
    rest = []
    for line in (output or "").splitlines():
        if line.startswith(SAID):
            facts.update(json.loads(line.removeprefix(SAID)))
        else:
            rest.append(line)
    return _Said(facts, "\n".join(rest).strip())


def _case(parameters: tuple[str, ...], i: int, result: Any, said: _Said) -> Case:
    value, samples = result.result[i], result.samples[i]
    if samples is not None:
        return Case(parameters, samples=tuple(float(f"{seconds:.7g}") for seconds in samples))
    if value is None:
        return Case(parameters, failed=_failure(said.rest, result.errcode))
    if isinstance(value, float) and math.isnan(value):
        return Case(parameters, unavailable=said.facts.get("unavailable", "skipped without a reason"))
    if not is_number(value):
        return Case(parameters, failed=f"its answer, {value}, is no number")
    return Case(parameters, value=value)


_LAST_SIGNAL = -64
"""Exit statuses below are asv's own: -256 for a time-out, -257 for an answer it could not read."""


def _failure(output: str, exit_status: int) -> str:
    """One sentence from the last words of a process that gave no number."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    timed_out = [line for line in lines if line.startswith("asv: benchmark timed out")]
    if timed_out:
        return timed_out[0].removeprefix("asv: ")
    if "Traceback (most recent call last):" in output:
        return re.sub(r"^([A-Za-z_]\w*\.)+(?=\w+:)|^CaseFailed: ", "", re.sub(r"^benchmarks\.common\.", "", lines[-1]))[
            :500
        ]
    if _LAST_SIGNAL <= exit_status < 0:
        return (
            f"the process was ended by signal {-exit_status} before it could answer; "
            "signal 9 is most often the system that ran out of memory"
        )
    last = f": {lines[-1].removeprefix('asv: ')[:400]}" if lines else ""
    status = f" with exit status {exit_status} and no" if exit_status > 0 else " without an"
    return f"the process ended{status} answer{last}"


def append_launches(path: Path, launches: list[Launch]) -> None:
    """Appends `launches` as `append_lines` does."""
    append_lines(path, [launch.to_json() for launch in launches])


def append_lines(path: Path, lines: list[str]) -> None:
    """Appends whole lines in one write under a lock, on disk when this returns; begins a new line after a torn one."""
    if not lines:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        size = stream.seek(0, os.SEEK_END)
        torn = False
        if size:
            stream.seek(size - 1)
            torn = stream.read(1) != b"\n"
        text = "".join(line + "\n" for line in lines)
        stream.write((b"\n" if torn else b"") + text.encode())
        stream.flush()
        os.fsync(stream.fileno())


def machines_in(results_dir: Path) -> list[str]:
    """The machines of which there are launches, each the name of its folder."""
    return sorted({path.parent.name for path in results_dir.glob("*/*.jsonl")})


def read_launches(results_dir: Path, machine: str) -> Iterator[Launch]:
    """Every launch stored for `machine`, file by file. A line that is none, such as the torn last one of a killed run, is
    left out with a warning that names it."""
    for path in sorted(Path(results_dir, machine).glob("*.jsonl")):
        yield from read_file(path)


def read_file(path: Path) -> Iterator[Launch]:
    """The launches of one file, as `read_launches` reads them."""
    yield from read_lines(path, Launch.from_json)


def read_on_axis(results_dir: Path, machine: str, axis: Axis) -> Iterator[Launch]:
    """Those of `read_launches` whose release is on the axis; where others are left out a warning names their releases."""
    others = set()
    for launch in read_launches(results_dir, machine):
        if launch.release in axis:
            yield launch
        else:
            others.add(launch.release)
    if others:
        folder = Path(results_dir, machine)
        warn(f"{folder}: launches of {', '.join(sorted(others))} are left out: there is no such release on the axis.")


def append_environment(path: Path, environment: dict[str, Any]) -> None:
    """Adds `environment` to the file of a release unless it is there; a line is {"id": ..., "environment": {...}}."""
    known = {line["id"] for line in read_lines(path, _environment)} if path.exists() else set()
    if (digest := _digest(environment)) not in known:
        append_lines(path, [json.dumps({"id": digest, "environment": environment}, separators=(",", ":"))])


def read_environment(results_dir: Path, machine: str, release: str, environment: str) -> dict[str, Any]:
    """What was measured last for `release` in `environment` (`release-py3.11`); empty where nothing is known."""
    path = Path(results_dir, machine, f"{release}-{environment}{ENVIRONMENTS}")
    lines = list(read_lines(path, _environment)) if path.exists() else []
    return dict(lines[-1]["environment"]) if lines else {}


def _digest(environment: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(environment, sort_keys=True).encode()).hexdigest()[:8]


def _environment(line: bytes) -> dict[str, Any]:
    """Raises ValueError where `line` is no environment, or names packages in another form than name==version."""
    try:
        record = parse(line)
        environment = record["environment"]
        if not is_text(record["id"]):
            raise TypeError
        dict(package.split("==", 1) for package in environment.get("packages", []))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError("it is no environment") from error
    return dict(record)


def setup() -> None:
    """asv calls this when it loads the plugin: `asv run`, `continuous` and `find` then record launches too."""
    asv.commands.run.Results = RecordedResults
    asv.commands.find.Results = RecordedResults
