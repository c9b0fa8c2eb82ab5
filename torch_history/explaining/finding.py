"""What is explained, and what is stored of it? From a series' name to the evidence of one series."""

import contextlib
import datetime
import math
import os
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import convert

from contract.metrics import METRICS
from contract.own_file import CLASSES

from ..analysis.compare import find
from ..analysis.series import Series
from ..analysis.verdicts import human
from ..releases.environments import for_measuring
from ..store import sources
from ..store.causes import LONGEST_WORDS, NOT_LOOKED_INTO, Evidence
from ..system.errors import UserError
from . import counting, reproduction
from .counting import COUNTED
from .explanation import Explanation, Found, Say
from .launching import Launch, Side, Sides, Subject
from .levers import load

TIMES = ("time", "forward_time")  # times of steady calls, which are timed again and again

ONCE = (
    *("first_call", "second_call", "worst_call", "compile_time"),
    *("process_time", "process_cpu_time", "start_time", "start_cpu_time"),
)
"""Times of what a process does once, for each of which a new process is needed."""

SCRIPT_TURNS = 2
SCRIPT_SECONDS = 120.0


@dataclass(frozen=True)
class Cases:
    """What a question or own file lists: variants with sizes, whether they are `timed`, and metrics of what is done once."""

    cases: list[tuple[str, ...]]
    timed: bool
    once: list[tuple[str, ...]]


def changed(results: Path, machine: str, environment: str, old: str, new: str, most: int) -> list[Series]:
    """The series that changed most and can be explained in minutes, counts first. Raises CannotCompare."""
    found = find(results, machine, environment, old, new)
    ratios = [each for each in found.changed if each.series.metric in (*TIMES, *COUNTED) and each.factor]
    largest = [each.series for each in sorted(ratios, key=lambda each: -abs(math.log(each.factor or 1)))][:most]
    return sorted(largest, key=lambda series: series.metric not in COUNTED)


def suites_series(side: Side, root: Path, environment: str) -> list[Series]:
    """Every series of the suite's questions that can be explained, as the release lists them. Raises LaunchFailed."""
    explainable = (*TIMES, *ONCE, *COUNTED)
    benchmarks = [one for one in sources.here() if Series(environment, one, ()).metric in explainable]
    listed = cases(side, root, sorted({one.partition(".")[0] for one in benchmarks}))
    return [one for name in benchmarks for one in _series(name, listed[name.partition(".")[0]].cases, environment)]


def cases(side: Side, root: Path, workloads: Sequence[str]) -> dict[str, Cases]:
    """What each of several questions lists on the release itself, or an own file. Raises LaunchFailed."""
    with contextlib.closing(Launch(side, Subject(root, workloads[0], "", "", "time"))) as launch:
        return {one: convert(launch.ask({"do": "cases", "case": {"workload": one}}), Cases) for one in workloads}


def own_series(question: str, listed: Cases, environment: str) -> list[Series]:
    """Every series of an own file that can be explained: times of calls, then what a process does once, then counts."""

    def of(metric: str, which: Sequence[tuple[str, ...]]) -> list[Series]:
        return _series(f"{question}.{CLASSES[METRICS[metric].measured]}.track_{metric}", which, environment)

    once = [one for metric, *case in listed.once if metric in ONCE for one in of(metric, [tuple(case)])]
    steady = of("time", listed.cases) if listed.timed or not once else []
    return [*steady, *once, *(one for metric in COUNTED for one in of(metric, listed.cases))]


def _series(benchmark: str, listed: Sequence[tuple[str, ...]], environment: str) -> list[Series]:
    return [Series(environment, benchmark, tuple(map(repr, case))) for case in listed]


def matching(words: str, every: Sequence[Series]) -> list[Series]:
    """Those of `every` that a person means by `words`: all of these are in the name. Where these name no metric, times of
    calls are meant, and where there are none, times of what a process does once. Raises UserError for none."""
    wanted = _words(words)
    named = [each for each in every if wanted <= _words(each.words)]
    metrics = [name for name in (*ONCE, *COUNTED) if name in {each.metric for each in named} and _words(name) <= wanted]
    longest = max((len(_words(metric)) for metric in metrics), default=0)
    metrics = [metric for metric in metrics if len(_words(metric)) == longest]
    found = [each for each in named if each.metric in (metrics or TIMES)]
    found = found or [each for each in named if each.metric in ONCE and "cpu" not in each.metric]
    if not found:
        near = ", ".join(f"'{each.words}'" for each in every[:3])
        raise UserError(f"No series that can be explained is called '{words}'; there are for instance {near}.")
    exact = [each for each in found if _words(each.words) - {"time"} == wanted - {"time"}]
    exact = exact or [each for each in found if words.strip() in each.plain]
    return exact or found


def _words(text: str) -> set[str]:
    return set(re.sub(r"[,/'\s]+", " ", text.lower().replace("_", " ")).split())


def explain(
    series: Series, asked: Subject, sides: Sides, scratch: Path, say: Say, version: str, seconds: float
) -> Evidence:
    """All that can be found of one series within about `seconds`. Raises CannotExplain and LaunchFailed."""
    began = time.monotonic()
    ends = math.inf if asked.is_once else began + seconds
    if series.metric in COUNTED:
        found = counting.explain(asked, sides, load(), say)
    else:
        found = Explanation(asked, sides, load(), scratch, say, seconds).explain()
    script, reproduced = "", None
    if found.verdict not in NOT_LOOKED_INTO and not series.measure.is_growth:
        say("The script: is it there in plain PyTorch?")
        script, reproduced, note = _reproduction(series, asked, sides, scratch, found, ends)
        found.notes += [note] if note else []
    return Evidence(
        **{name: getattr(series, name) for name in ("environment", "benchmark", "parameters")},
        version=version,
        old=sides[0].tag,
        new=sides[1].tag,
        taken_at=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        took=round(time.monotonic() - began, 1),
        **{name: getattr(found, name) for name in ("clock", "verdict", "python", "commits", "environments")},
        levers=tuple(found.levers),
        places=tuple(found.places),
        code=tuple(found.code),
        numbers=(tuple(found.base.old), tuple(found.base.new)),
        **vars(found.ratio),
        words=found.words[:LONGEST_WORDS],
        notes=tuple(note[:500] for note in found.notes),
        script=script,
        reproduced=reproduced,
    )


def _reproduction(
    series: Series, asked: Subject, sides: Sides, scratch: Path, found: Found, ends: float
) -> tuple[str, tuple[float, float] | None, str]:
    """The script, what it printed on either release, and what stands in its way, such as that the time `ends`."""
    old, new = (human(level, series.unit) for level in found.base.levels)
    head = f"{series.words}\nexpected: {old} with {sides[0].tag}, {new} with {sides[1].tag}"
    try:
        text = reproduction.script(asked, head, found.clock)
    except reproduction.CannotReproduce as error:
        return "", None, f"no script: {str(error)[0].lower()}{str(error)[1:].rstrip('.')}"
    path = scratch / "reproduction.py"
    path.write_text(text, encoding="utf-8")
    numbers: tuple[list[float], list[float]] = ([], [])
    for turn in range(1 if series.metric in COUNTED else SCRIPT_TURNS):
        began = time.monotonic()
        for number in (0, 1) if turn % 2 else (1, 0):
            try:
                numbers[number].append(_printed(sides[number], path, min(SCRIPT_SECONDS, ends - time.monotonic())))
            except subprocess.TimeoutExpired:
                return text, None, "no measurement of the script: its time was over before it had printed a number"
            except (subprocess.CalledProcessError, ValueError, IndexError) as error:
                said = str(getattr(error, "stderr", "") or error).strip() or type(error).__name__
                why = f"with {sides[number].tag} it failed ({said.splitlines()[-1][:200]})"
                return text, None, f"no measurement of the script: {why}"
        if time.monotonic() + (time.monotonic() - began) > ends:
            break
    return text, (min(numbers[0]), min(numbers[1])), ""


def _printed(side: Side, path: Path, seconds: float) -> float:
    command = [str(side.python), "-W", "ignore", str(path)]
    env = {**for_measuring(os.environ), **side.variables}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds, env=env)
    return float(done.stdout.split()[-1])
