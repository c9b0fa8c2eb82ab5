"""How does what asv ran become launches? As an asv plugin this module keeps each launch, and why a case has no number.

asv pools the samples of all processes and forgets why one failed; its own file is written as ever.
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
import os
import re
import secrets
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asv.commands.find
import asv.commands.run
from asv.console import log
from asv.results import Results
from asv.runner import BenchmarkResult
from packaging.version import Version

from ..releases.environments import refusals
from ..store.asv_results import load_asvs
from ..store.files import is_number, set_aside, write_atomically
from ..store.launches import (
    ENVIRONMENTS,
    Case,
    Launch,
    append_environment,
    append_launches,
    digest_of,
    new_session,
)

SAID = "torch-history: "
"""What a measuring process prints before each fact about itself; see `_say` in benchmarks/common.py."""

OF_A_CASE = ("unavailable", "not_asked", "found")
"""Facts of one case; all others are of the whole launch."""


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
            facts["environment"] = digest_of(self._environment)
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


def setup() -> None:
    """asv calls this when it loads the plugin: `asv run`, `continuous` and `find` then record launches too."""
    asv.commands.run.Results = RecordedResults
    asv.commands.find.Results = RecordedResults
