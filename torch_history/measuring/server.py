"""How does a release answer, case by case? One launch: a fresh interpreter that forks a process for each case it is asked.

asv's own loop keeps one release running from its first case to its last, minutes apart from the next release. Here the
launches of a round are open together, so that one case is measured on all releases within seconds.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

from asv import util
from asv.config import Config
from asv.runner import BenchmarkResult, fail_benchmark, get_spawner, run_benchmark

from contract.request import Request

from ..children import all_die_with_this_process
from ..signals import later
from .recording import RecordedResults, Told, channel, of_sibling, told_of


class Server:
    """The launch of one release in one round; `results` keeps what is found. Use it in a `with` statement."""

    def __init__(self, conf: Config, environment: Any, results: RecordedResults, request: Request) -> None:
        """Starts the interpreter that `environment` has selected, which is asked what `request` says."""
        environment.request = replace(request, channel=channel().path)
        self.results = results
        self._conf = conf
        results.load_data(conf.results_dir)
        all_die_with_this_process()
        with later():
            self._spawner = get_spawner(environment, conf.benchmark_dir, launch_method="forkserver")
        self._ready, self._said = self._spawner.preimport()
        self._answers: dict[int, BenchmarkResult] = {}
        self._told: dict[int, Told] = {}
        self._began = datetime.datetime.now(datetime.UTC)
        self._seconds = 0.0

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._spawner.interrupt()
        self._spawner.close()

    def ask(self, benchmark: dict[str, Any], index: int) -> None:
        """Measures case `index` of `benchmark` in a process of its own. Raises KeyboardInterrupt if that is interrupted."""
        began = datetime.datetime.now(datetime.UTC)
        if not self._answers:
            self._began, self._seconds = began, 0.0
        if not self._ready:
            said = f"{self._said}\nasv: benchmark suite import failed"
            self._answers[index] = answer = fail_benchmark(benchmark, stderr=said)
            self._told[index] = told_of(benchmark, index, answer)
            return
        benchmark = {**benchmark, "timeout": benchmark.get("timeout") or self._conf.default_benchmark_timeout}
        try:
            answer = run_benchmark(
                benchmark, self._spawner, profile=False, selected_idx={index}, extra_params={"rounds": 1}
            )
        except util.UserError as error:
            if str(error) == "Interrupted.":
                raise KeyboardInterrupt from error
            raise
        self._answers[index], self._told[index] = answer, told_of(benchmark, index, answer)
        self._seconds += (datetime.datetime.now(datetime.UTC) - began).total_seconds()

    def record(self, metrics: list[dict[str, Any]], conditions: Mapping[str, Any]) -> dict[tuple[str, int], float]:
        """Puts what was asked since the last record on disk: the first of `metrics` was asked, and the processes started
        for it found the numbers of the others too. Returns the quickest sample by metric's name and case's index."""
        quickest: dict[tuple[str, int], float] = {}
        if not self._answers:
            return quickest
        asked, selected = metrics[0], sorted(self._answers)
        result = _joined(asked, self._answers)
        told = self._told
        self._answers, self._told = {}, {}
        self.results.conditions = dict(conditions)
        for metric in metrics:
            found, known = (result, told) if metric is asked else of_sibling(asked, metric, result, told)
            quickest.update({(metric["name"], i): min(found.samples[i]) for i in selected if found.samples[i]})
            self.results.add_result(
                metric,
                found,
                selected_idx=selected,
                told=known,
                started_at=self._began,
                duration=self._seconds if metric is asked else 0.0,
                record_samples=True,
                append_samples=True,
            )
        self.results.save(self._conf.results_dir)
        return quickest


def _joined(benchmark: dict[str, Any], answers: Mapping[int, BenchmarkResult]) -> BenchmarkResult:
    """One answer from those of single cases; cases that nobody asked for are nan, as asv has it."""
    cases = math.prod(len(values) for values in benchmark["params"])

    def of_each(name: str, unasked: float | None) -> list[Any]:
        return [getattr(answers[i], name)[i] if i in answers else unasked for i in range(cases)]

    return BenchmarkResult(
        result=of_each("result", math.nan),
        samples=of_each("samples", None),
        number=of_each("number", None),
        errcode=next((answer.errcode for answer in answers.values() if answer.errcode), 0),
        stderr="\n\n".join(answer.stderr for answer in answers.values() if answer.stderr),
        profile=None,
    )
