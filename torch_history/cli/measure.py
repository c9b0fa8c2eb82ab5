"""What `run` and `calibrate` do once they know what is asked: this module imports all that measures."""

from __future__ import annotations

import re
import shlex
import shutil
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from contract.metrics import NEVER_RECORDED
from contract.request import Request

from ..analysis import compare as said
from ..analysis.calibration import read
from ..analysis.verdicts import history, human
from ..errors import SessionError, UserError
from ..explaining.finding import EXPLAINABLE
from ..measuring import calibrate as calibrations
from ..measuring.locks import alone, beside
from ..measuring.machine import asked as surroundings
from ..measuring.machine import describe
from ..measuring.machine_records import use
from ..measuring.plan import Plan, chosen, measurable, neighbours, new_releases
from ..measuring.recorded import RecorderEnvironment
from ..measuring.session import SCALES, SESSIONS, Session
from ..measuring.subjects import InstalledEnvironment, OwnWorkload
from ..releases import environments
from ..releases.axis import Release
from ..reports.calibration import text
from ..scratch import temporary_files
from ..store.launches import read_on_axis
from ..store.sources import own_versions
from . import suite as suites
from .explain import MINUTES
from .output import console, plain
from .suite import DEFAULT_LANE


@dataclass(frozen=True)
class Asked:
    """The options of `run`; `interpreter` is the one whose torch is measured as installed, None for releases."""

    releases: tuple[str, ...]
    lane: str
    workload: Path | None
    questions: tuple[str, ...]
    sizes: tuple[str, ...]
    launches: int
    only: str
    budget: str | None
    again: bool
    removes: bool
    shares: bool
    interpreter: str | None
    recorded_as: str | None
    device: str = ""
    card: str = ""

    def request(self, own: OwnWorkload | None) -> Request:
        """What every process is asked for: these options, and of the surroundings what they leave open. Raises UserError."""
        request = surroundings()
        request = replace(
            request,
            device=self.device or request.device,
            card=self.card or request.card,
            workload=str(own.path) if own else "",
            text=str(own.text) if own else "",
        )
        if self.card and request.device != "recorder":
            raise UserError("--card names what the recorder pretends: add --device recorder.")
        return replace(request, device=describe(request)["device"])


def run(asked: Asked) -> bool:
    """Measures and says what changed from each release to the next; returns whether anything ran. Raises SessionError where
    that cannot be done."""
    own = OwnWorkload.of(asked.workload) if asked.workload else None
    found = suites.load()
    conf, out = found.config(), console()
    request = asked.request(own)
    use(describe(request))
    if own:
        conf.results_dir = str(own.folder / "results")
    if asked.shares and asked.removes:
        raise SessionError("--prune removes environments that another lane may be using. Drop --prune or --alongside.")
    if request.device == "recorder":
        asked = _counting(asked)
    environment = _environment(asked, request, conf)
    releases = _releases(asked, request, found.axis, Path(conf.results_dir), environment, out)
    if not releases:
        out.print("Nothing is new. This machine has measured the newest release of the lane.")
        return True
    env_dir = Path(conf.env_dir)
    with temporary_files(), beside(env_dir, environment.name) if asked.shares else alone(env_dir):
        session, ran = _sessions(asked, request, own, conf, found.axis, environment, releases, out)
    if len(releases) == 1:
        _print_numbers(out, session)
    out.print(f"Results are in {plain(str(Path(conf.results_dir, session.machine.machine)))}.")
    if not ran:
        out.print("Nothing ran. No case gave a number on any of these releases.")
    return ran


def _counting(asked: Asked) -> Asked:
    """The options as the recorder can answer them. Raises SessionError where it cannot."""
    if asked.only == "times":
        raise SessionError(NEVER_RECORDED.capitalize() + ".")
    if asked.budget or asked.shares or asked.interpreter:
        raise SessionError(
            "Counts do not vary, so --budget, --alongside and --installed mean nothing on the recorder. Leave them out."
        )
    return replace(asked, only="counts")


def _environment(asked: Asked, request: Request, conf: Any) -> Any:
    if request.device == "recorder":
        return RecorderEnvironment(conf, asked.lane, request.card)
    if asked.interpreter is None:
        return environments.ReleaseEnvironment(conf, asked.lane, {}, {})
    if asked.releases:
        raise SessionError(
            "--installed measures the torch that is installed, so it takes no RELEASES. Use --as to record it under one."
        )
    return InstalledEnvironment(conf, _interpreter(asked.interpreter))


def _releases(
    asked: Asked, request: Request, axis: Any, results: Path, environment: Any, out: Console
) -> Sequence[Release]:
    """What is measured, oldest first; nothing where NEW was asked for and there is none."""
    if asked.interpreter is not None:
        release = environment.release(axis, asked.recorded_as)
        out.print(f"Measuring the installed torch {plain(environment.torch)} as {release.tag}.")
        return [release]
    specs = asked.releases
    if "NEW" in specs:
        stored = read_on_axis(results, describe(request)["machine"], axis)
        fresh = new_releases(axis, asked.lane, stored, environment.name)
        specs = tuple(tag for spec in specs for tag in (fresh if spec == "NEW" else [spec]))
        if not specs:
            return []
    return chosen(
        axis,
        specs,
        asked.lane,
        lambda sentence: out.print(f"[yellow]{plain(sentence)}[/yellow]"),
        alone=request.device == "recorder",
    )


def _sessions(
    asked: Asked,
    request: Request,
    own: OwnWorkload | None,
    conf: Any,
    axis: Any,
    environment: Any,
    releases: Sequence[Release],
    out: Console,
) -> tuple[Session, bool]:
    """Measures `releases` in sessions of neighbours and says after each what changed; returns the last session, and whether
    a case gave a number in any of them."""
    ran = False
    questions = (own.question,) if own else asked.questions
    ends = time.monotonic() + seconds_of(asked.budget) if asked.budget else None
    groups = neighbours(releases)
    for number, group in enumerate(groups):
        plan = Plan(
            releases=tuple(release.tag for release in group),
            environment=environment.name,
            questions="|".join(questions) or r"\w+",
            sizes=asked.sizes or request.sizes or _default_sizes(request, own),
            launches=asked.launches,
            budget=(ends - time.monotonic()) / (len(groups) - number) if ends else None,
            workload=own.digest if own else "",
            only=asked.only,
        )
        folder = own.folder / SESSIONS if own else None
        session = Session(conf, axis, plan, environment, asked.again, folder, asked.shares, request)
        if session.finished:
            out.print(f"Session {session.id} has already measured this. Use --again to measure it again.")
        else:
            words = "Continuing" if session.resumed else "Starting"
            out.print(f"{words} session {session.id} on {plain(session.machine.machine)}.")
            session.measure(out)
        ran = ran or any(case.number is not None for launch in session.launches() for case in launch.cases)
        for old, new in plan.pairs:
            # What an own file was before it was mended is of no interest, not even where that is all that has a count.
            versions = own_versions(own.question, own.text) if own else None
            stored = Path(conf.results_dir), session.machine.machine, plan.environment
            found = said.find(*stored, old, new, questions, versions=versions)
            out.print(f"\n[bold]{old} -> {new}[/bold]")
            click.echo(said.text(found, everything=own is not None))
            if request.device == "cpu" and (hint := explainable(found, asked)):
                click.echo(hint)
        if asked.removes and group is not groups[-1]:
            environments.prune(environment.root, plan.releases[:-1].__contains__, asked.lane)
    return session, ran


def explainable(found: said.Comparison, asked: Asked) -> str:
    """What to ask for the causes of the times that rose on a CPU, and how long that takes; empty where none did, or none can
    be asked for."""
    rose = [
        change
        for change in found.changed
        if change.series.metric in EXPLAINABLE and change.ratio and change.ratio > 1 and change.verdict.kind == "worse"
    ]
    if not rose or asked.interpreter is not None:
        return ""
    lane = f" --lane {asked.lane}" if asked.lane != DEFAULT_LANE else ""
    own = f" --workload {shlex.quote(str(asked.workload))}" if asked.workload else ""
    command = f"torch-history explain{lane}{own} {found.old} {found.new} --most {len(rose)}"
    return (
        f"{len(rose)} time{'s' if len(rose) > 1 else ''} rose. `{command}` looks for the cause and takes about "
        f"{MINUTES * len(rose)} minutes."
    )


def calibrate(
    release: str | None, lane: str, questions: Sequence[str], launches: int, budget: str, again: bool
) -> bool:
    """Calibrates and prints the report; returns whether every aim is met."""
    found = suites.load()
    conf, axis, out = found.config(), found.axis, console()
    chosen_one = axis.find(release) if release else measurable(list(axis.releases), lane)[0][-1]
    environment = environments.ReleaseEnvironment(conf, lane, {}, {})
    with temporary_files(), alone(Path(conf.env_dir)):
        path = calibrations.measure(
            conf, axis, chosen_one, environment, questions, launches, seconds_of(budget), again, out
        )
        calibration = read(path)
        click.echo(text(calibration))
        out.print(f"The measurements are in {plain(str(path))}.")
    return not calibration.missed


def _default_sizes(request: Request, own: OwnWorkload | None) -> tuple[str, ...]:
    """The sizes of the suite that fit the device; of an own file all that it names."""
    if own:
        return SCALES
    return ("paper",) if request.device == "cuda" else ("small",)


def seconds_of(text: str) -> float:
    """Seconds of `90s`, `6m` or `2h`. Raises SessionError for what is no length of time."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if match is None:
        raise SessionError(f"'{text}' is not a duration. Write 90s, 6m or 2h.")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def _interpreter(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise SessionError(f"There is no interpreter '{name}' on this machine. Give its path with --python.")
    return path


def _print_numbers(out: Console, session: Session) -> None:
    numbers = history(session.launches())
    width = max((len(series.words) for series in numbers), default=0)
    for series, releases in numbers.items():
        cases = [case for pairs in releases.values() for _, case in pairs]
        known = [case.number for case in cases if case.number is not None]
        reason = cases[-1].failed or cases[-1].unavailable
        number = human(statistics.median(known), series.unit) if known else plain(reason)
        out.print(f"{plain(f'{series.words:<{width}}')}  {number}", highlight=False)
