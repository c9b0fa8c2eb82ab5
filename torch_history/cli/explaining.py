"""What `explain` does once it knows what is asked: this module imports all that measures."""

import functools
import math
import operator
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from asv.machine import Machine
from asv.repo import get_repo
from rich.console import Console

from contract.request import ADDED, Request

from ..analysis.causes import in_detail
from ..analysis.code import pair_of
from ..analysis.compare import choose_machine, releases_of
from ..analysis.series import Series
from ..analysis.verdicts import difference, human
from ..explaining import finding
from ..explaining.explanation import Say
from ..explaining.launching import CannotExplain, LaunchFailed, Side, Sides, Subject
from ..explaining.verdict import KINDS
from ..measuring.machine import asked as requested
from ..measuring.machine import decided, describe
from ..measuring.machine_records import use
from ..measuring.subjects import OwnWorkload
from ..releases import environments
from ..store import causes, sources
from ..store.causes import Evidence, Place
from ..system.errors import UserError
from ..system.locks import alone
from ..system.scratch import temporary_files
from .explain import MINUTES
from .output import console, harmless, plain
from .suite import Suite

COUNTING_MINUTES = 1
"""What one series of counts takes at most, as MINUTES."""

ROWS = 6
"""Of each table that is printed."""

Told = tuple[str, str, Series]
"""An old release, a new one, and a series that differs between them."""


@dataclass(frozen=True)
class Context:
    """Of what series are explained and where the evidence goes; `own` is the file that they are functions of. `again`:
    whether what is stored is explained once more; `prepare` is called with two releases before they are installed."""

    suite: Suite
    request: Request
    lane: str
    own: OwnWorkload | None = None
    again: bool = False
    prepare: Callable[[tuple[str, str]], None] = lambda tags: None

    @classmethod
    def of(cls, suite: Suite, lane: str, own: OwnWorkload | None, **more: Any) -> "Context":
        """With what the surroundings ask for, and the threads that an own file asks for. Raises UserError."""
        request = requested()
        request = decided(replace(request, threads=own.threads) if own and own.threads else request)
        if request.device != "cpu":
            raise UserError("`explain` works on a CPU only. Set TORCH_HISTORY_DEVICE=cpu.")
        return cls(suite, request, lane, own, **more)

    @property
    def workload(self) -> str:
        return str(self.own.path) if self.own else ""

    @property
    def results(self) -> Path:
        return self.own.folder / "results" if self.own else self.suite.results

    @functools.cached_property
    def conf(self) -> Any:
        """asv's configuration."""
        return self.suite.config()

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
        """What is stored of a series between two tags and counts, unless the times scattered too much to tell."""
        if self.again:
            return None
        wanted = (*series, self.version(series), old, new)
        names = operator.attrgetter("environment", "benchmark", "parameters", "version", "old", "new")
        every = causes.read(self.results, self.machine["machine"])
        return next((one for one in every if names(one) == wanted and one.verdict != "INCONCLUSIVE"), None)

    def sides(self, old: str, new: str) -> Sides:
        """Both releases, installed where they are not, each with what the own file requires. Raises InstallationError."""
        self.prepare((old, new))
        environment = environments.ReleaseEnvironment(self.conf, self.lane, {}, {})
        environment.needed = self.own.requirements if self.own else ()
        found = []
        for tag in (old, new):
            environment.install_project(self.conf, get_repo(self.conf), tag)
            python = Path(self.conf.env_dir).resolve() / f"{tag}-py{self.lane}" / "bin" / "python"
            added = str(environment.added or "")
            found.append(Side(tag, python, {"PYTHONPATH": added, ADDED: added} if added else {}))
        return found[0], found[1]


def explain_asked(
    suite: Suite, show: Callable[[Evidence], None], workload: Path | None,
    old: str, new: str, series: Sequence[str], lane: str, most: int, again: bool,
) -> None:  # fmt: skip
    """Explains each series that is asked for. Raises UserError, also where one cannot be explained."""
    old, new = (suite.axis.find(name).tag for name in (old, new))
    if old == new:
        raise UserError(f"{old} was named twice: name two releases.")
    context = Context.of(suite, lane, OwnWorkload.of(workload) if workload else None, again=again)
    env = Path(context.conf.env_dir)
    with temporary_files(), alone(env):
        told = [(old, new, one) for one in _chosen(series, most, context, context.sides(old, new))]
        _, failed = _explain(told, context, console(), show)
    if failed:
        raise UserError(f"{failed} of {len(told)} could not be explained.")


def explain_told(told: Sequence[Told], context: Context, budget: float, out: Console, say: Say) -> int:
    """Explains rises within `budget` seconds; returns how many are left."""
    env = Path(context.conf.env_dir)
    with temporary_files(), alone(env):
        return _explain(told, context, out, lambda found: say(report(found)), budget)[0]


def _explain(
    told: Sequence[Told], context: Context, out: Console, show: Callable[[Evidence], None], budget: float = math.inf
) -> tuple[int, int]:
    """Explains, and shows what is found or stored. Returns how many were too late, and how many failed."""
    ends, begun, late, failed = time.monotonic() + budget, False, 0, 0
    for number, (old, new, series) in enumerate(told, start=1):
        found = context.known(series, old, new)
        if not found and begun and ends - time.monotonic() < 60 * minutes_of([series]):
            late += 1
            continue
        said = "it has been explained" if found else "explaining it"
        out.print(f"{number} of {len(told)}: {plain(series.words)}, {old} -> {new}: {said}.", highlight=False)
        if not found:
            begun = True
            try:
                found = _one(series, context.sides(old, new), context, out)
            except (CannotExplain, LaunchFailed) as error:
                failed += 1
                out.print(f"It cannot be explained: {plain(str(error))}", highlight=False)
                continue
        show(found)
        path = context.results / context.machine["machine"] / causes.FOLDER / found.file
        out.print(f"The evidence is in {plain(str(path))}.\n", highlight=False)
    return late, failed


def minutes_of(told: Iterable[Series]) -> float:
    """What explaining these takes at most, of times of repeated calls and of counts, both releases installed."""
    return sum(COUNTING_MINUTES if series.metric in finding.COUNTED else MINUTES for series in told)


def _one(series: Series, sides: Sides, context: Context, out: Console) -> Evidence:
    """What is found of one series now, which is stored."""
    case = context.workload or series.question, series.variant, series.size, series.metric
    subject = Subject(context.suite.root, *case, context.request.threads, str(context.own.text) if context.own else "")
    with tempfile.TemporaryDirectory() as folder:
        say: Say = lambda words: out.print(plain(words), highlight=False)  # noqa: E731
        seconds = 60.0 * minutes_of([series])
        evidence = finding.explain(series, subject, sides, Path(folder), say, context.version(series), seconds)
    use(context.machine)
    Machine.load(machine_name=None, interactive=False).save(str(context.results))
    causes.write(context.results, context.machine["machine"], evidence)
    return evidence


def _chosen(asked: Sequence[str], most: int, context: Context, sides: Sides) -> list[Series]:
    """The series that are explained: those named, else those that changed most."""
    suite, own, environment = context.suite, context.own, context.environment
    old, new = (side.tag for side in sides)
    if not asked and not (own and not {old, new} <= releases_of(context.results, context.machine["machine"])):
        machine = choose_machine(context.results, None, context.machine["machine"], [old, new], environment)
        found = finding.changed(context.results, machine, environment, old, new, most)
        if not found:
            raise UserError(f"Nothing that can be explained changed from {old} to {new} on {machine}.")
        return found
    if own:
        listed = finding.cases(sides[1], suite.root, [context.workload])[context.workload]
        every = finding.own_series(own.question, listed, environment)
    else:
        every = finding.suites_series(sides[1], suite.root, environment)
    named = [one for words in asked for one in finding.matching(words, every)]
    return list(dict.fromkeys(named)) or [one for one in every if one.metric not in finding.COUNTED][:most]


def report(evidence: Evidence) -> str:
    """What was found of one series, in some lines."""
    series = Series(evidence.environment, evidence.benchmark, evidence.parameters)
    lines = [f"{series.words}, {evidence.old} -> {evidence.new}: {evidence.verdict}: {evidence.words}."]
    if evidence.verdict not in causes.NOT_LOOKED_INTO and not series.measure.is_growth:
        ends = f" ({evidence.low:.3f} to {evidence.high:.3f})" if evidence.low < evidence.high else ", exactly"
        lines.append(f"  new / old is {evidence.ratio:.3f}{ends}.")
    for kind in KINDS:
        rows = [place for place in evidence.places if place.kind == kind]
        if rows:
            lines.append(f"  by {kind}, a call:")
            lines += [_row(row, series.unit) for row in [*rows[:-1][:ROWS], rows[-1]] if row.old or row.new]
    lines += [f"  {code.symbol}: {code.words}." for code in evidence.code]
    pair = pair_of(evidence.environment, evidence.old, evidence.new)
    changed = pair.what_changed(series, evidence.ratio) if pair and series.varies else None
    lines += [f"  {line}" for line in in_detail(changed, evidence.new)] if changed else []
    for name, text in evidence.python.items():
        lines += [f"  {name} differs:", *(f"    {line}" for line in text.splitlines())]
    lines += [f"  with {lever.words}: {lever.said}: {lever.verdict}" for lever in evidence.levers if not lever.refused]
    lines += [f"  There is {note}." for note in evidence.notes]
    if evidence.reproduced:
        numbers = " and ".join(human(number, series.unit) for number in evidence.reproduced)
        shows = "" if evidence.is_reproduced else ", which does not show the difference"
        lines.append(f"  The script in plain PyTorch gives {numbers}{shows}.")
    return harmless("\n".join(lines))


def _row(row: Place, unit: str) -> str:
    """One line of a table: times with their interval, counts as they are."""
    if unit != "seconds":
        return f"    {row.new - row.old:+16,.0f}{' B' if unit == 'bytes' else ''}  {row.name}"
    chance = ", could be chance" if row.low <= 0 <= row.high else ""
    ends = f"{difference(row.low)} to {difference(row.high)}"
    return f"    {difference(row.new - row.old):>9} ({ends}{chance})  {row.name}"
