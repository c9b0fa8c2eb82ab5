"""What `run` does once it knows what is asked: this module imports all that measures."""

import contextlib
import copy
import itertools
import math
import shlex
import shutil
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from contract.metrics import NEVER_RECORDED
from contract.request import Request

from ..analysis import calibration as calibrations
from ..analysis import compare as comparing
from ..analysis.compare import Comparison
from ..analysis.series import history
from ..analysis.verdicts import Change, human
from ..measuring import machine
from ..measuring.budget import left_words
from ..measuring.choice import SCALES, refuse_unknown
from ..measuring.conditions import business
from ..measuring.fleet import planning
from ..measuring.machine_records import use
from ..measuring.plan import Arm, Plan, anchor_of, anchored, chosen, in_sessions, measurable, middle, new_releases
from ..measuring.progress import minutes
from ..measuring.reuse import taken_words
from ..measuring.session import SESSIONS, Session
from ..measuring.subjects import InstalledEnvironment, OwnWorkload, RecorderEnvironment
from ..releases.added import AddingError
from ..releases.axis import Release
from ..releases.environments import ReleaseEnvironment, prune
from ..site import calibration as reports
from ..store.launches import Launch, packages_words, read_environment, read_launches, read_on_axis
from ..store.own import remember
from ..store.sources import own_versions
from ..system.errors import SessionError, UserError
from ..system.files import write_atomically
from ..system.locks import alone
from ..system.scratch import temporary_files
from . import suite as suites
from .explain import MINUTES
from .output import console, plain, say_taken
from .run import Asked
from .suite import DEFAULT_LANE, Suite

MOST_OFFERED = 3
"""Times that the offer to explain names; one takes minutes, and the line is to be read."""


CALIBRATING = 3600.0
"""Seconds of a calibration that names no limit."""


def requested(asked: Asked, own: OwnWorkload | None) -> Request:
    """What every process is asked for: these options, and of the surroundings what they leave open. Raises UserError."""
    refuse_unknown(() if own else asked.questions, planning.all_questions(Path.cwd()), "question")
    request = machine.asked()
    request = replace(request, device=asked.device or request.device, card=asked.card or request.card)
    if own:
        threads = own.threads or request.threads
        request = replace(request, workload=str(own.path), text=str(own.text), threads=threads)
    if asked.card and request.device != "recorder":
        raise UserError("--card names the GPU that the recorder imitates: add --device recorder.")
    return machine.decided(request)


@dataclass
class Run:
    """A run of what is `asked`, with what that means here."""

    asked: Asked
    suite: Suite
    own: OwnWorkload | None
    request: Request
    conf: Any
    out: Console

    def __post_init__(self) -> None:
        self.results = Path(self.conf.results_dir)
        self.environment = self._environment()
        self.ran = False

    def _environment(self) -> Any:
        asked, request = self.asked, self.request
        if asked.carried is not None:
            return self._carried(asked.carried)
        if request.device == "recorder":
            return RecorderEnvironment(self.conf, asked.lane, request.card, self.own)
        if asked.interpreter is None:
            return ReleaseEnvironment(self.conf, asked.lane, {}, {})
        if asked.releases or asked.removes:
            raise SessionError(
                "--installed measures the torch that is installed, so it takes no RELEASES and no --prune. Use --as to "
                "record it under a release."
            )
        path = shutil.which(asked.interpreter)
        if path is None:
            raise SessionError(
                f"There is no interpreter '{asked.interpreter}' on this machine. Give its path with --python."
            )
        return InstalledEnvironment(self.conf, path)

    def _carried(self, folder: Path) -> Any:
        """Raises SessionError where what is asked for needs more than what was carried."""
        from ..measuring.kit.carried import CarriedEnvironment

        asked = self.asked
        if asked.workload or asked.interpreter or asked.removes or self.request.device == "recorder":
            raise SessionError(
                "--carried measures the suite on releases that hold no more than it needs. Leave out --workload, "
                "--installed, --prune and --device recorder."
            )
        return CarriedEnvironment(self.conf, folder)

    def releases(self) -> tuple[Sequence[Release], Release | None]:
        """What is measured, oldest first, or nothing for NEW; and the anchor that ties it to what is stored."""
        asked, axis, environment, out = self.asked, self.suite.axis, self.environment, self.out
        if asked.carried is not None:
            return environment.releases(axis, asked.releases), None
        if asked.interpreter is not None:
            release = environment.release(axis, asked.recorded_as)
            out.print(f"Measuring the installed torch {plain(environment.torch)} as {release.tag}.")
            return [release], None
        specs, anchor = asked.releases, ""
        if "NEW" in specs:
            stored = [*read_on_axis(self.results, machine.describe(self.request)["machine"], axis)]
            fresh = new_releases(axis, asked.lane, stored, environment.name)
            anchor = "" if asked.only == "counts" else anchor_of(axis, stored, environment.name)
            specs = tuple(tag for spec in specs for tag in (fresh if spec == "NEW" else [spec]))
            if not specs:
                return [], None
        tell = lambda sentence: out.print(f"[yellow]{plain(sentence)}[/yellow]")  # noqa: E731
        releases = chosen(axis, specs, asked.lane, tell, alone=self.request.device == "recorder")
        return releases, axis.find(anchor) if anchor else None

    def groups(
        self, releases: Sequence[Release], anchor: Release | None
    ) -> tuple[list[Sequence[Release]], Release | None]:
        """The neighbours of each session, and the release that all sessions have besides, None where there is none."""
        if self.asked.only == "counts":
            return in_sessions(releases, shared=1), None
        groups = in_sessions(releases, anchor=anchor)
        return groups, anchor or (middle(releases) if len(groups) > 1 else None)

    def plan(self, groups: Sequence[Sequence[Release]], anchor: Release | None) -> None:
        """Says what would be measured, and how long that takes by what is stored of the lane."""
        asked, here = self.asked, machine.describe(self.request)["machine"]
        lane = self.environment.name
        named = planning.machine_with_durations(self.results, here, self.request.device, lane, click.echo)
        questions = (self.own.question,) if self.own else asked.questions or planning.all_questions(self.suite.root)
        stored = read_launches(self.results, named, lane, questions) if named else ()
        within = (asked.seconds_within(self.request.device) or math.inf) / len(groups)
        work = planning.Work(questions, asked.only, asked.rounds, (asked.budget or 0.0) / len(groups), within)
        every = [[release.tag for release in anchored(group, anchor)] for group in groups]
        installs = asked.interpreter is None and asked.carried is None
        self.out.print(planning.sessions(every, work, planning.rates(stored), "session", installs))

    def say_how_busy(self) -> None:
        """Says before anything is measured that the machine is busy, and what that costs."""
        if why := business():
            words = f"[yellow]This machine is busy: {why}.[/yellow] More times will stay inconclusive."
            bound = "" if self.asked.budget or self.asked.within else " --budget 20m bounds how long all of it takes."
            self.out.print(f"{words}{bound} Ctrl+C prints what is known.", highlight=False)

    def sessions(self, groups: Sequence[Sequence[Release]], anchor: Release | None) -> Session:
        """Measures groups with the `anchor`, says of each pair what changed after its last session; returns that."""
        asked, over = self.asked, self.asked.seconds_within(self.request.device)
        began, budget = time.monotonic(), asked.budget
        if budget and len(groups) > 1:
            each = minutes(budget / len(groups))
            self.out.print(f"{len(groups)} sessions share the budget: {each} each. What one leaves goes to the next.")
        for number, group in enumerate(groups):
            later = anchored(groups[number + 1], anchor) if group is not groups[-1] else ()
            measured, passed = anchored(group, anchor), time.monotonic() - began
            plan = replace(
                self.plan_of(measured, measured[0].tag if len(measured) > len(group) else ""),
                budget=(budget - passed) / (len(groups) - number) if budget is not None else None,
                within=max(1.0, over - passed) if over else None,
            )
            session = self._session(plan, last=group is groups[-1])
            self.ran = self.ran or any(case.number is not None for of in session.launches() for case in of.cases)
            if asked.tells:
                pairs = itertools.pairwise(group)  # what the next session has both of is told after that
                self._tell(session, [(old.tag, new.tag) for old, new in pairs if not (old in later and new in later)])
                left = [] if asked.only == "counts" else [session.effort()]
                said = taken_words(session.launches()), left_words(left, "The same command with")
                click.echo("\n".join(filter(None, said)), nl=any(said))
            if asked.removes:
                done = {release.tag for release in measured if release not in later}
                prune(self.environment.root, done.__contains__, asked.lane)
        return session

    def plan_of(self, releases: Sequence[Release], anchor: str) -> Plan:
        """What is asked for, of these releases, without a limit of time."""
        asked, own = self.asked, self.own
        usual = SCALES if own else ("paper",) if self.request.device == "cuda" else ("small",)
        sizes, questions = (
            asked.sizes or self.request.sizes or usual,
            own.question if own else "|".join(asked.questions),
        )
        tags, digest = tuple(release.tag for release in releases), own.digest if own else ""
        plan = Plan(tags, self.environment.name, questions or r"\w+", sizes, launches=asked.rounds, workload=digest)
        return replace(plan, only=asked.only, anchor=anchor, variants=asked.variants)

    def _session(self, plan: Plan, last: bool) -> Session:
        """Measures what is missing of a plan. An interruption is raised after what is known is said."""
        asked, out, axis = self.asked, self.out, self.suite.axis
        folder = self.own.folder / SESSIONS if self.own else None
        session = Session(self.conf, axis, plan, self.environment, asked.again, folder, request=self.request)
        if session.finished:
            out.print(f"Session {session.id} has already measured this. Use --again to measure it again.")
            return session
        words = "Continuing" if session.resumed else "Starting"
        out.print(f"{words} session {session.id} on {plain(session.machine.machine)}.")
        try:
            session.measure(out, last)
        except KeyboardInterrupt:
            if asked.tells:
                out.print("\nInterrupted. This is known so far:")
                with contextlib.suppress(UserError):
                    self._tell(session, plan.pairs)
            raise
        return session

    def _tell(self, session: Session, pairs: Sequence[tuple[str, str]]) -> None:
        """Says what changed between those neighbours of a session of which both were measured."""
        launches = session.launches()
        measured = {launch.release for launch in launches}
        known = [pair for pair in pairs if measured.issuperset(pair)]
        for pair in known:
            self._tell_pair(session, launches, pair)
        if len(known) < len(pairs):
            click.echo("Of some releases nothing was measured yet. The same command continues.")

    def _tell_pair(self, session: Session, launches: Sequence[Launch], pair: tuple[str, str]) -> None:
        """Says what changed between two releases of a session."""
        asked, own = self.asked, self.own
        stored = self.results, session.machine.machine, session.plan.environment
        measured = {launch.benchmark.partition(".")[0] for launch in launches}
        questions = tuple(question for question in asked.questions if question in measured) or asked.questions
        # What an own file was before it was mended is of no interest, not even where that is all that has a count.
        versions = own_versions(own.question, own.text) if own else None
        found = comparing.find(*stored, *pair, (own.question,) if own else questions, versions=versions)
        found = replace(found, file=str(asked.workload)) if own else found
        console().print(f"\n[bold]{pair[0]} -> {pair[1]}[/bold]")
        click.echo(comparing.text(found, everything=own is not None))
        if own and own.requirements:
            before, now = (read_environment(stored[0], stored[1], tag, stored[2]) for tag in pair)
            click.echo(packages_words(before, now, own.packages))
        if self.request.device == "cpu" and (hint := explainable(found, asked)):
            click.echo(hint)


def measure(asked: Asked) -> bool:
    """Measures, says what changed, and returns whether anything ran. Raises SessionError."""
    own = OwnWorkload.of(asked.workload) if asked.workload else None
    say_taken(own)
    if own and asked.questions:
        raise UserError("--question names a question of the suite, and --workload a file of your own. Leave one out.")
    asked = replace(asked, workload=own.path if own else None)  # the suite's folder becomes the working one
    found = suites.load()
    conf, out = found.config(), console()
    request = requested(asked, own)
    use(machine.describe(request))
    if own:
        conf.results_dir = str(own.folder / "results")
    asked = _checked(asked, request)
    if find_spec("scipy") is None and not asked.plans:
        asked = replace(asked, tells=False)
        if asked.budget:
            raise UserError("--budget goes to what is inconclusive, which needs SciPy: install torch-history[compare].")
        out.print(plain("Nothing is compared here, because SciPy is missing: torch-history[compare] brings it."))
    run = Run(asked, found, own, request, conf, out)
    releases, anchor = run.releases()
    if not releases:
        out.print("Nothing is new. This machine has measured the newest release of the lane.")
        return True
    groups, anchor = run.groups(releases, anchor)
    if asked.plans:
        run.plan(groups, anchor)
        return True
    if own and own.requirements and asked.interpreter is None:
        run.environment.needed = own.requirements
        releases = having(releases, run.environment, out, own.folder)
        groups, anchor = run.groups(releases, None)
    env_dir = run.environment.root if request.device == "recorder" else Path(conf.env_dir)
    with temporary_files(), alone(env_dir):
        if asked.only != "counts":
            run.say_how_busy()
        session = run.sessions(groups, anchor)
    if len(releases) == 1:
        _print_numbers(out, session)
    out.print(f"Results are in {plain(str(Path(run.results, session.machine.machine)))}.")
    if not run.ran:
        out.print("Nothing ran. No case gave a number on any of these releases.")
    return run.ran


def _checked(asked: Asked, request: Request) -> Asked:
    """The options as this device can answer them. Raises SessionError where it cannot."""
    if request.device != "recorder":
        return asked
    if asked.only == "times":
        raise SessionError(NEVER_RECORDED.capitalize() + ".")
    if asked.budget or asked.within or asked.interpreter:
        raise SessionError(
            "Counts do not vary, so --budget, --within and --installed mean nothing on the recorder. Leave them out."
        )
    return replace(asked, only="counts")


def having(releases: Sequence[Release], environment: Any, out: Console, folder: Path) -> Sequence[Release]:
    """The releases that have what a file needs; why others lack it is kept in `folder`. Raises SessionError."""
    able = []
    for release in releases:
        try:
            with out.status(f"Resolving {', '.join(environment.needed)} for {release.tag}"):
                environment.adding(release)
            able.append(release)
        except AddingError as error:
            out.print(f"{release.tag} is skipped: {plain(str(error))}", highlight=False)
            remember(folder, environment.name, release.tag, str(error))
    if not able:
        raise SessionError("None of these releases has the packages in `requirements`. Nothing was installed.")
    return able


def rose(found: Comparison) -> list[Change]:
    """The times of steady calls that rose, the largest ratio first."""
    from ..explaining.finding import TIMES

    worse = (one for one in found.changed if one.series.metric in TIMES and one.verdict.kind == "worse")
    return sorted((one for one in worse if (one.ratio or 0) > 1), key=lambda one: -(one.ratio or 1))


def explainable(found: Comparison, asked: Asked) -> str:
    """What to ask for the causes of times that rose, and how long that takes; empty where nothing can be asked."""
    rises = rose(found)
    if not rises or asked.interpreter is not None or asked.carried is not None:
        return ""
    lane = f" --lane {asked.lane}" if asked.lane != DEFAULT_LANE else ""
    named = rises[:MOST_OFFERED]
    names = " ".join(shlex.quote(change.series.words) for change in named)
    what = "the cause" if len(named) == len(rises) else f"the causes of the {len(named)} largest"
    return (
        f"{len(rises)} time{'s' if len(rises) > 1 else ''} rose. `torch-history explain{lane}{found.of_file} {found.old} "
        f"{found.new} {names}` looks for {what} and takes about {MINUTES * len(named)} minutes."
    )


def calibrated(asked: Asked) -> bool:
    """Calibrates and prints the report; returns whether every aim is met. Raises SessionError and UserError."""
    named = asked.recorded_as or next(iter(asked.releases), None)
    asked = replace(asked, releases=())
    found, out, request = suites.load(), console(), requested(asked, None)
    conf, axis = found.config(), found.axis
    asked = replace(asked, budget=None if asked.within else asked.budget or CALIBRATING)
    use(machine.describe(request))
    run = Run(asked, found, None, request, conf, out)
    if asked.interpreter is None:
        newest = measurable(list(axis.releases), asked.lane)[0][-1]
        release = axis.find(named) if named else newest
    else:
        release = run.environment.release(axis, named)
    plan = replace(run.plan_of((), ""), budget=asked.budget, within=asked.within)
    with temporary_files(), alone(Path(conf.env_dir)):
        path = calibrate(run, release, plan)
        calibration = calibrations.read(path)
        click.echo(reports.text(calibration))
        out.print(f"The measurements are in {plain(str(path))}.")
        return not calibration.missed


def calibrate(run: Run, release: Release, plan: Plan) -> Path:
    """Measures both sessions, or goes on with them; returns the file of their launches. `itself` has only times."""
    conf, scratch = copy.copy(run.conf), Path(run.conf.env_dir, calibrations.FOLDER)
    conf.results_dir = str(scratch / "results")
    times, counts = (plan, calibrations.TIMES), replace(plan, only="counts", launches=1, budget=None)
    sessions = []
    for kind, planted in [(plan, calibrations.ITSELF)] if run.asked.itself else [(counts, calibrations.COUNTS), times]:
        only = kind.only or "times"
        arms = {name: Arm(release.tag, what) for name, what in planted.items()}
        of_kind = replace(kind, only=only, releases=tuple(planted), arms=arms)
        axis, again, folder = run.suite.axis, run.asked.again, scratch / "sessions"
        session = Session(conf, axis, of_kind, run.environment, again, folder, request=run.request, apart=True)
        if not session.finished:
            run.out.print(f"Calibrating {only} with {release.tag} on {session.machine.machine}.")
            session.measure(run.out)
        sessions.append(session)
    found = sorted((one for session in sessions for one in session.launches()), key=lambda one: one.started_at)
    name = f"{release.tag}-{run.environment.name}.jsonl"
    path = run.results / sessions[0].machine.machine / calibrations.FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(launch.to_json() + "\n" for launch in found))
    return path


def _print_numbers(out: Console, session: Session) -> None:
    numbers = history(session.launches())
    width = max((len(series.words) for series in numbers), default=0)
    for series, releases in numbers.items():
        cases = [case for pairs in releases.values() for _, case in pairs]
        known = [case.number for case in cases if case.number is not None]
        number = human(statistics.median(known), series.unit) if known else plain(cases[-1].reason)
        out.print(f"{plain(f'{series.words:<{width}}')}  {number}", highlight=False)
