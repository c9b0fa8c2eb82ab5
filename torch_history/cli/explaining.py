"""What `explain` does once it knows what is asked: this module imports all that measures."""

from __future__ import annotations

import functools
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from asv.machine import Machine
from asv.repo import get_repo
from rich.console import Console

from contract.request import ADDED, Request

from ..analysis.compare import choose_machine
from ..analysis.series import Series
from ..analysis.verdicts import difference, human
from ..errors import UserError
from ..explaining import finding
from ..explaining import issue as issues
from ..explaining.counting import COUNTED
from ..explaining.explanation import CannotExplain
from ..explaining.launching import LaunchFailed, Side
from ..explaining.verdict import KINDS
from ..measuring.locks import alone, beside
from ..measuring.machine import asked as requested
from ..measuring.machine import decided, describe
from ..measuring.machine_records import use
from ..measuring.subjects import OwnWorkload
from ..releases import environments
from ..store import causes, sources
from ..store.causes import Evidence, Place
from ..system.scratch import temporary_files
from .excluded import results_of
from .explain import LEVER_SECONDS, MINUTES
from .options import seconds_of
from .output import console, plain
from .suite import Suite

COUNTING_MINUTES = 1
"""What one series of counts takes, as MINUTES."""

ROWS = 6
"""Of each table that is printed."""


@dataclass(frozen=True)
class Asked:
    """The options of `explain`."""

    old: str
    new: str
    series: tuple[str, ...]
    lane: str
    workload: Path | None
    machine: str | None
    with_excluded: bool
    most: int
    budget: str
    again: bool


@dataclass(frozen=True)
class Context:
    """Of what series are explained and where the evidence goes; `own` is the file that they are functions of."""

    suite: Suite
    request: Request
    lane: str
    own: OwnWorkload | None = None

    @classmethod
    def of(cls, suite: Suite, lane: str, workload: Path | None) -> Context:
        """With what the surroundings ask for, and the threads that an own file asks for. Raises UserError."""
        own, request = OwnWorkload.of(workload) if workload else None, requested()
        request = decided(replace(request, threads=own.threads) if own and own.threads else request)
        if request.device != "cpu":
            raise UserError("`explain` works on a CPU only. Set TORCH_HISTORY_DEVICE=cpu.")
        return cls(suite, request, lane, own)

    @property
    def workload(self) -> str:
        return str(self.own.path) if self.own else ""

    @property
    def results(self) -> Path:
        return self.own.folder / "results" if self.own else self.suite.results

    @functools.cached_property
    def machine(self) -> dict[str, str]:
        """The record of this machine, as results have it."""
        return describe(self.request)

    @property
    def environment(self) -> str:
        return f"release-py{self.lane}"

    def version(self, series: Series) -> str:
        return self.own.digest if self.own else sources.here().get(series.benchmark, "")

    def known(self, series: Series, old: str, new: str) -> Evidence | None:
        """What is stored of a series between two tags, unless the times scattered too much to tell."""
        wanted = series.environment, series.benchmark, series.parameters, self.version(series), old, new
        for found in causes.read(self.results, self.machine["machine"]):
            if (
                found.environment,
                found.benchmark,
                found.parameters,
                found.version,
                found.old,
                found.new,
            ) == wanted:
                return found if found.verdict != "INCONCLUSIVE" else None
        return None

    def path(self, evidence: Evidence) -> Path:
        """The file of stored evidence."""
        return self.results / self.machine["machine"] / causes.FOLDER / evidence.file

    def sides(self, conf: Any, *tags: str) -> tuple[Side, Side]:
        """Both releases, installed where they are not, each with what the own file requires. Raises InstallationError."""
        environment = environments.ReleaseEnvironment(conf, self.lane, {}, {})
        environment.needed = self.own.requirements if self.own else ()
        found = []
        for tag in tags:
            environment.install_project(conf, get_repo(conf), tag)
            python = Path(conf.env_dir).resolve() / f"{tag}-py{self.lane}" / "bin" / "python"
            added = str(environment.added or "")
            found.append(Side(tag, python, {"PYTHONPATH": added, ADDED: added} if added else {}))
        return found[0], found[1]


def explained(asked: Asked, suite: Suite) -> Iterator[tuple[Evidence, Path]]:
    """The evidence of each series that is asked for, and the file that keeps it. Raises UserError."""
    seconds = seconds_of(asked.budget)
    old, new = (suite.axis.find(name) for name in (asked.old, asked.new))
    if old.tag == new.tag:
        raise UserError(f"{old.tag} was named twice: name two releases.")
    context, out = Context.of(suite, asked.lane, asked.workload), console()
    conf = suite.config()
    with temporary_files(), alone(Path(conf.env_dir)):
        sides = context.sides(conf, old.tag, new.tag)
        for number, series in enumerate(chosen := _chosen(asked, context, sides), start=1):
            out.print(f"{number} of {len(chosen)}: {plain(series.words)}, {old.tag} -> {new.tag}", highlight=False)
            known = context.known(series, old.tag, new.tag)
            if known and not asked.again:
                out.print("It has been explained. Use --again to explain it again.")
                yield known, context.path(known)
            else:
                yield _one(series, sides, context, seconds, out)


def explain_told(
    told: Sequence[tuple[str, str, Series]],
    suite: Suite,
    lane: str,
    workload: Path | None,
    budget: float,
    shares: bool,
    out: Console,
    say: Callable[[str], None],
    prepare: Callable[[tuple[str, str]], None] = lambda tags: None,
) -> int:
    """Explains rises that a run told, (old, new, series) in this order, for at most `budget` seconds; returns how many are
    left for another time. What is stored costs nothing. After the first, none is begun that would not end in time. `prepare`
    is called with the two releases before they are installed, as where room is to be made."""
    context, conf, ends = Context.of(suite, lane, workload), suite.config(), time.monotonic() + budget
    env_dir, begun, left = Path(conf.env_dir), False, 0
    with temporary_files(), beside(env_dir, context.environment) if shares else alone(env_dir):
        for number, (old, new, series) in enumerate(told, start=1):
            rest = ends - time.monotonic()
            head = f"{number} of {len(told)}: {plain(series.words)}, {old} -> {new}"
            if known := context.known(series, old, new):
                out.print(f"{head}: it has been explained.", highlight=False)
                say(report(known))
            elif begun and rest < 60 * minutes_of([series]):
                left += 1
            else:
                begun = True
                out.print(f"{head}, {rest / 60:.0f} of {budget / 60:.0f} minutes are left", highlight=False)
                try:
                    prepare((old, new))
                    evidence, path = _one(series, context.sides(conf, old, new), context, LEVER_SECONDS, out)
                except (CannotExplain, LaunchFailed) as error:
                    out.print(f"It cannot be explained: {plain(str(error))}", highlight=False)
                else:
                    say(report(evidence))
                    out.print(f"The evidence is in {plain(str(path))}.", highlight=False)
    return left


def minutes_of(told: Iterable[Series]) -> float:
    """What explaining these takes, about: what is counted needs two launches of each release, a time dozens."""
    return sum(COUNTING_MINUTES if series.metric in COUNTED else MINUTES for series in told)


def _one(
    series: Series, sides: tuple[Side, Side], context: Context, seconds: float, out: Console
) -> tuple[Evidence, Path]:
    """What is found of one series now, and the file that keeps it."""
    with tempfile.TemporaryDirectory() as folder:
        evidence = finding.explain(
            series,
            finding.subject(context.suite.root, series, context.workload, context.request.threads),
            sides,
            Path(folder),
            lambda words: out.print(plain(words), highlight=False),
            seconds,
            context.version(series),
        )
    use(context.machine)
    Machine.load(machine_name=None, interactive=False).save(str(context.results))
    return evidence, causes.write(context.results, context.machine["machine"], evidence)


def _chosen(asked: Asked, context: Context, sides: tuple[Side, Side]) -> list[Series]:
    """The series that are explained: those named, else those that changed most."""
    suite, own, environment = context.suite, context.own, context.environment
    if own:
        cases = finding.cases(sides[1], suite.root, context.workload)
        every = finding.own_series(own.question, cases, environment)
        named = [one for words in asked.series for one in finding.matching(words, every)]
        return list(dict.fromkeys(named)) or [one for one in every if one.metric not in finding.COUNTED][: asked.most]
    if not asked.series:
        old, new = (side.tag for side in sides)
        machine = choose_machine(suite.results, asked.machine, context.machine["machine"], [old, new], environment)
        with results_of(suite.results, machine, asked.with_excluded) as folder:
            found = finding.changed(folder, machine, environment, old, new, asked.most)
        if not found:
            raise UserError(
                f"No time that can be explained changed from {sides[0].tag} to {sides[1].tag} on {machine}."
            )
        return found
    every = []
    for benchmark in finding.suites_series(environment):
        cases = finding.cases(sides[1], suite.root, benchmark.question)
        every += finding.series(benchmark.benchmark, cases.steady, environment)
    return list(dict.fromkeys(one for words in asked.series for one in finding.matching(words, every)))


def report(evidence: Evidence) -> str:
    """What was found of one series, in some lines."""
    series = Series(evidence.environment, evidence.benchmark, evidence.parameters)
    lines = [f"{series.words}, {evidence.old} -> {evidence.new}: {evidence.verdict}: {evidence.words}."]
    if evidence.verdict not in causes.NOT_LOOKED_INTO:
        lines.append(f"  new / old is {evidence.ratio:.3f}{_ends(evidence)}.")
    for kind in (kind for kind in KINDS if kind != "library"):
        rows = [place for place in evidence.places if place.kind == kind]
        if rows:
            lines.append(f"  by {kind}, a call:")
            lines += [_row(row, series.unit) for row in [*rows[:-1][:ROWS], rows[-1]] if row.old or row.new]
    lines += [f"  {code.symbol}: {code.words}." for code in evidence.code]
    for lever in evidence.levers:
        if not lever.refused:
            lines.append(f"  with {lever.words}: {lever.said}: {lever.verdict}")
    lines += [f"  There is {note}." for note in evidence.notes]
    if evidence.reproduced:
        numbers = " and ".join(human(number, series.unit) for number in evidence.reproduced)
        shows = "" if evidence.is_reproduced else ", which does not show the difference"
        lines.append(f"  The script in plain PyTorch gives {numbers}{shows}.")
    if evidence.steps:
        steps = ", ".join(f"{name} {seconds:.0f}" for name, seconds in evidence.steps.items())
        lines.append(f"  Seconds by step, {evidence.took:.0f} in all: {steps}.")
    return "\n".join(lines)


def _ends(evidence: Evidence) -> str:
    return f" ({evidence.low:.3f} to {evidence.high:.3f})" if evidence.low < evidence.high else ", exactly"


def _row(row: Place, unit: str) -> str:
    """One line of a table: times with their interval, counts as they are."""
    if unit != "seconds":
        return f"    {row.new - row.old:+16,.0f}{' B' if unit == 'bytes' else ''}  {row.name}"
    chance = ", could be chance" if row.low <= 0 <= row.high else ""
    ends = f"{difference(row.low)} to {difference(row.high)}"
    return f"    {difference(row.new - row.old):>9} ({ends}{chance})  {row.name}"


def issue(evidence: Evidence, workload: Path | None) -> str:
    """The text of an issue, for what was found on this machine."""
    own = OwnWorkload.of(workload) if workload else None
    request = requested()
    return issues.text(evidence, describe(replace(request, threads=own.threads) if own and own.threads else request))
