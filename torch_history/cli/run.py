"""Commands that measure: `run` and `calibrate`. What measures is imported where it is needed: that takes a second, which
`--help` does without."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import SessionError, UserError
from . import suite as suites
from .explain import MINUTES, explain_option, seconds_to_explain
from .options import Renamed, python_option, seconds_of
from .output import console, plain
from .suite import DEFAULT_LANE

if TYPE_CHECKING:
    from rich.console import Console

    from contract.request import Request

    from ..analysis.compare import Comparison
    from ..analysis.verdicts import Change
    from ..measuring.plan import Plan
    from ..measuring.session import Session
    from ..measuring.subjects import OwnWorkload
    from ..releases.axis import Release
    from ..store.launches import Launch
    from .suite import Suite

MOST_OFFERED = 3
"""Times that the offer to explain names; one takes minutes, and the line is to be read."""

DEFAULT_LAUNCHES = 3
LEAST_LAUNCHES = 1
"""Of a run with a budget: the turns of one round tell the noise, and what is left goes to what can be decided in it."""

ROUNDS = click.option(
    "--rounds",
    "--launches",
    "launches",
    cls=Renamed,
    type=click.IntRange(min=1),
    help=f"Rounds that measure everything. Each round starts new processes. [default: {DEFAULT_LAUNCHES}, with a "
    f"budget {LEAST_LAUNCHES}, of counts 1]",
)


@click.command()
@click.argument("releases", nargs=-1)
@click.option("--releases", "ranges", multiple=True, help="The same as RELEASES. Repeatable.")
@click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python version of the lane.")
@click.option(
    "--device", default="", help="cpu, cuda or recorder [default: TORCH_HISTORY_DEVICE, else a GPU if there is one]."
)
@click.option("--card", default="", help="The GPU that the recorder imitates. See docs/recorder.md. [default: turing]")
@click.option(
    "--workload", type=click.Path(path_type=Path), help="Measure a file of your own. See docs/own-workload.md."
)
@click.option("--question", "questions", multiple=True, help="Measure only this question. Repeatable.")
@click.option(
    "--size",
    "sizes",
    multiple=True,
    help="Measure this size: a scale, or a whole name such as '64 x 128'. Repeatable. "
    "[default: small on a CPU, paper on a GPU]",
)
@click.option("--variant", "variants", multiple=True, help="Measure only this variant. Repeatable.")
@ROUNDS
@click.option(
    "--only", type=click.Choice(["times", "counts"]), help="Measure only times or only counts. Counts need one round."
)
@click.option(
    "--budget",
    type=str,
    help="Time to spend, such as 6m or 2h. What is left after the first rounds goes to inconclusive comparisons.",
)
@click.option(
    "--within",
    help="Time for everything, such as 8m. Cases that a claim rests on come first. What was measured until then is stored. "
    "[default: 9m for the whole suite on a GPU]",
)
@explain_option("the times that rose", "RELEASES")
@click.option(
    "--plan", "plans", is_flag=True, help="Say which sessions it would have and what they take. Measure nothing."
)
@click.option("--again", is_flag=True, help="Start a new session even if the same one has finished.")
@click.option(
    "--prune", "removes", is_flag=True, help="Remove the environments of each release after its last session."
)
@click.option(
    "--alongside",
    "--beside",
    "shares",
    cls=Renamed,
    is_flag=True,
    help="Allow another lane to be measured at the same time, on another processor.",
)
@click.option("--installed", is_flag=True, help="Measure the torch that is installed for --python. Needs no network.")
@python_option("Interpreter for --installed.")
@click.option(
    "--carried",
    type=click.Path(path_type=Path, resolve_path=True),
    help="Measure the releases that `kit unpack` put into this folder. Needs no network. See docs/gpu.md.",
)
@click.option(
    "--as", "recorded_as", help="The release to record an --installed torch under, if it is not a release itself."
)
def run(
    releases: tuple[str, ...],
    ranges: tuple[str, ...],
    only: str | None,
    installed: bool,
    interpreter: str,
    **options: Any,
) -> None:
    """Measure RELEASES, and say what changed from each to the next.

    RELEASES are names (2.5.1) or ranges (2.0.1..2.2.0, which excludes 2.0.1). NEW stands for all releases since the newest
    one that this machine has measured. A single release is measured together with the one before it. Without RELEASES, the
    newest release and the one before it are measured. Many releases are split into sessions. Neighbouring sessions share
    two releases, and all sessions share one.

    Press Ctrl+C to interrupt. The same command continues where it stopped.

    Exit code 4 means that nothing ran: no case gave a number on any release.
    """
    asked = Asked(
        releases=releases + ranges, only=only or "", interpreter=interpreter if installed else None, **options
    )
    if not measure(asked):
        sys.exit(4)


@click.command()
@click.argument("release", required=False)
@click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python version of the lane.")
@click.option("--device", default="", help="cpu or cuda [default: a GPU if there is one].")
@click.option("--question", "questions", multiple=True, help="Measure only this question. Repeatable.")
@ROUNDS
@click.option("--budget", default="60m", show_default=True, help="Time to spend on times, as in `run`.")
@click.option("--within", help="Time for everything, as in `run`; instead of --budget.")
@click.option("--again", is_flag=True, help="Start a new session even if the same one has finished.")
@click.option("--itself", is_flag=True, help="Compare the release with itself only, and plant nothing.")
@click.option("--installed", is_flag=True, help="Measure the torch that is installed for --python. Needs no network.")
@python_option("Interpreter for --installed.")
def calibrate(release: str | None, installed: bool, interpreter: str, **options: Any) -> None:
    """Measure how often verdicts are right on this machine.

    RELEASE is compared with itself, and with itself plus planted changes. The default is the newest release of the lane.

    Exit code 3 means that an aim of docs/generated/calibration.md is missed.
    """
    if not calibrated(Calibrating(release=release, interpreter=interpreter if installed else None, **options)):
        sys.exit(3)


@dataclass(frozen=True)
class Calibrating:
    """The options of `calibrate`; `interpreter` is the one whose torch is measured as installed, None for a release."""

    release: str | None
    lane: str
    device: str
    questions: tuple[str, ...]
    launches: int | None
    budget: str
    within: str | None
    again: bool
    itself: bool
    interpreter: str | None


@dataclass(frozen=True)
class Asked:
    """The options of `run`; `interpreter` is the one whose torch is measured as installed, None for releases; `carried` the
    folder of carried ones, None for others. `tells`: whether it is said what changed. `plans`: whether it is only
    said what would be measured."""

    releases: tuple[str, ...]
    lane: str
    workload: Path | None
    questions: tuple[str, ...]
    sizes: tuple[str, ...]
    launches: int | None
    only: str
    budget: str | None
    again: bool
    removes: bool
    shares: bool
    interpreter: str | None
    recorded_as: str | None
    device: str = ""
    card: str = ""
    explains: str | None = None
    variants: tuple[str, ...] = ()
    within: str | None = None
    tells: bool = True
    carried: Path | None = None
    plans: bool = False

    def request(self, own: OwnWorkload | None) -> Request:
        """What every process is asked for: these options, and of the surroundings what they leave open. Raises UserError."""
        from ..measuring.machine import asked, decided

        request = asked()
        request = replace(
            request,
            device=self.device or request.device,
            card=self.card or request.card,
            workload=str(own.path) if own else "",
            text=str(own.text) if own else "",
            threads=own.threads or request.threads if own else request.threads,
        )
        if self.card and request.device != "recorder":
            raise UserError("--card names the GPU that the recorder imitates: add --device recorder.")
        return decided(request)


def measure(asked: Asked) -> bool:
    """Measures and says what changed from each release to the next; returns whether anything ran. Raises SessionError where
    that cannot be done."""
    from ..measuring.locks import alone, beside
    from ..measuring.machine import describe
    from ..measuring.machine_records import use
    from ..measuring.subjects import OwnWorkload
    from ..system.scratch import temporary_files

    own = OwnWorkload.of(asked.workload) if asked.workload else None
    asked = replace(asked, workload=own.path if own else None)  # the suite's folder becomes the working one
    found = suites.load()
    conf, out = found.config(), console()
    request = asked.request(own)
    use(describe(request))
    if own:
        conf.results_dir = str(own.folder / "results")
    seconds = _seconds_to_explain(asked, request)
    if asked.shares and asked.removes:
        raise SessionError("--prune removes environments that another lane may be using. Drop --prune or --alongside.")
    if request.device == "recorder":
        if own and own.requirements:
            raise SessionError(
                f"{own.path.name} has `requirements`, and the recorder has only torch. Measure it on cpu or cuda."
            )
        asked = _counting(asked)
    environment = _environment(asked, request, conf)
    releases, anchor = _releases(asked, request, found.axis, Path(conf.results_dir), environment, out)
    if not releases:
        out.print("Nothing is new. This machine has measured the newest release of the lane.")
        return True
    groups, anchor = _groups(asked, releases, anchor)
    if asked.plans:
        _plan(asked, groups, anchor, found, Path(conf.results_dir), describe(request)["machine"], environment.name, out)
        return True
    if own and own.requirements and asked.interpreter is None:
        environment.needed = own.requirements
        releases = _having(releases, environment, out, own.folder)
        groups, anchor = _groups(asked, releases, None)
    counts = request.device == "recorder"
    env_dir = environment.root if counts else Path(conf.env_dir)
    with temporary_files(), beside(env_dir, environment.name) if asked.shares else alone(env_dir):
        if asked.only != "counts":
            _say_how_busy(asked, out)
        session, ran, told = _sessions(asked, request, own, conf, found.axis, environment, groups, anchor, out)
    if len(releases) == 1:
        _print_numbers(out, session)
    out.print(f"Results are in {plain(str(Path(conf.results_dir, session.machine.machine)))}.")
    if not ran:
        out.print("Nothing ran. No case gave a number on any of these releases.")
    if seconds:
        _explain(asked, found, told, seconds, out)
        tell_again(told, Path(conf.results_dir), own)
    return ran


def _say_how_busy(asked: Asked, out: Console) -> None:
    """Says before anything is measured that the machine is busy, and what that costs."""
    from ..measuring.conditions import business
    from ..measuring.progress import minutes

    why = business()
    if not why or asked.shares:
        return
    out.print(f"[yellow]This machine is busy: {why}.[/yellow] More times will stay inconclusive.", highlight=False)
    if asked.budget:
        cost = f"The {minutes(seconds_of(asked.budget))} go to the times that they can decide, and the others wait."
    elif asked.within:
        cost = f"All of it ends after {minutes(seconds_of(asked.within))}."
    else:
        cost = "It may take several times as long: --budget 20m bounds all of it."
    out.print(f"{cost} Ctrl+C prints what is known.", highlight=False)


def _seconds_to_explain(asked: Asked, request: Request) -> float:
    """How long is explained after measuring; 0 where nothing is. Raises SessionError where that cannot be done."""
    if asked.explains is None:
        return 0.0
    if request.device != "cpu" or asked.interpreter is not None or asked.only == "counts" or asked.removes:
        raise SessionError(
            "--explain looks for the cause of times on a CPU, in releases that stay installed. Leave out --explain, or "
            "--installed, --prune, --only counts and every --device but cpu."
        )
    return seconds_to_explain(asked.explains, "RELEASES")


def _explain(asked: Asked, suite: Suite, told: Sequence[Comparison], seconds: float, out: Console) -> None:
    """Explains the times that rose, newest pair first, the largest rise of a pair first, and says what is left."""
    from .explaining import explain_told

    rises = [(found.old, found.new, change.series) for found in reversed(told) for change in rose(found)]
    if not rises:
        out.print("No time rose, so nothing is to be explained.")
        return
    what = "1 time" if len(rises) == 1 else f"{len(rises)} times"
    out.print(f"\n{what} rose. Explaining takes about {MINUTES} minutes each, at most {seconds / 60:.0f} in all.")
    left = explain_told(rises, suite, asked.lane, asked.workload, seconds, asked.shares, out, click.echo)
    if left:
        out.print(f"Not explained yet: {left} of {what}. The time is up. The same command continues.")


def tell_again(told: Sequence[Comparison], results: Path, own: OwnWorkload | None) -> None:
    """Says once more what changed where times rose, now with what explaining them found, or did not see again."""
    from ..analysis import compare as said
    from ..store.sources import own_versions

    versions = own_versions(own.question, own.text) if own else None
    for found in filter(rose, told):
        questions = sorted({change.series.question for change in found.changes})
        again = said.find(results, found.machine, found.environment, found.old, found.new, questions, versions=versions)
        click.echo(f"\n{found.old} -> {found.new}, explained")
        click.echo(said.text(replace(again, file=found.file), everything=own is not None))


def _having(releases: Sequence[Release], environment: Any, out: Console, folder: Path) -> Sequence[Release]:
    """The releases for which there is what the user's file needs; says of each other one why there is not, and keeps that in
    the `folder` of the file. Raises SessionError where none is left."""
    from ..store.skipped import remember

    able = []
    for release in releases:
        with out.status(f"Resolving {', '.join(environment.needed)} for {release.tag}"):
            why = environment.lacking(release)
        if why:
            out.print(f"{release.tag} is skipped: {plain(why)}", highlight=False)
            remember(folder, environment.name, release.tag, why)
        else:
            able.append(release)
    if not able:
        raise SessionError("None of these releases has the packages in `requirements`. Nothing was installed.")
    return able


def _counting(asked: Asked) -> Asked:
    """The options as the recorder can answer them. Raises SessionError where it cannot."""
    from contract.metrics import NEVER_RECORDED

    if asked.only == "times":
        raise SessionError(NEVER_RECORDED.capitalize() + ".")
    if asked.budget or asked.within or asked.shares or asked.interpreter:
        raise SessionError(
            "Counts do not vary, so --budget, --within, --alongside and --installed mean nothing on the recorder. "
            "Leave them out."
        )
    return replace(asked, only="counts")


def _environment(asked: Asked, request: Request, conf: Any) -> Any:
    from ..measuring.recorded import RecorderEnvironment
    from ..measuring.subjects import InstalledEnvironment
    from ..releases.environments import ReleaseEnvironment

    if asked.carried is not None:
        return _carried(asked, asked.carried, request, conf)
    if request.device == "recorder":
        return RecorderEnvironment(conf, asked.lane, request.card)
    if asked.interpreter is None:
        return ReleaseEnvironment(conf, asked.lane, {}, {})
    if asked.releases:
        raise SessionError(
            "--installed measures the torch that is installed, so it takes no RELEASES. Use --as to record it under one."
        )
    return InstalledEnvironment(conf, _interpreter(asked.interpreter))


def _carried(asked: Asked, folder: Path, request: Request, conf: Any) -> Any:
    """Raises SessionError where what is asked for needs more than what was carried."""
    from ..kit.carried import CarriedEnvironment

    others = asked.workload or asked.interpreter or asked.removes or asked.explains is not None
    if others or request.device == "recorder":
        raise SessionError(
            "--carried measures the suite on releases that hold no more than it needs. Leave out --workload, --installed, "
            "--prune, --explain and --device recorder."
        )
    return CarriedEnvironment(conf, folder)


def _releases(
    asked: Asked, request: Request, axis: Any, results: Path, environment: Any, out: Console
) -> tuple[Sequence[Release], Release | None]:
    """What is measured, oldest first, nothing where NEW was asked for and there is none; and the anchor that ties it to what
    is stored, None where nothing does."""
    from ..measuring.machine import describe
    from ..measuring.plan import anchor_of, chosen, new_releases
    from ..store.launches import read_on_axis

    if asked.carried is not None:
        return environment.releases(axis, asked.releases), None
    if asked.interpreter is not None:
        release = environment.release(axis, asked.recorded_as)
        out.print(f"Measuring the installed torch {plain(environment.torch)} as {release.tag}.")
        return [release], None
    specs, anchor = asked.releases, ""
    if "NEW" in specs:
        stored = [*read_on_axis(results, describe(request)["machine"], axis)]
        fresh = new_releases(axis, asked.lane, stored, environment.name)
        anchor = "" if asked.only == "counts" else anchor_of(axis, stored, environment.name)
        specs = tuple(tag for spec in specs for tag in (fresh if spec == "NEW" else [spec]))
        if not specs:
            return [], None
    releases = chosen(
        axis,
        specs,
        asked.lane,
        lambda sentence: out.print(f"[yellow]{plain(sentence)}[/yellow]"),
        alone=request.device == "recorder",
    )
    return releases, axis.find(anchor) if anchor else None


def _groups(
    asked: Asked, releases: Sequence[Release], anchor: Release | None
) -> tuple[list[Sequence[Release]], Release | None]:
    """The neighbours of each session, and the release that all sessions have besides, None where there is none."""
    from ..measuring.plan import SHARED, in_sessions, middle

    if asked.only == "counts":
        return in_sessions(releases, shared=1), None
    groups = in_sessions(releases, SHARED, anchor)
    return groups, anchor or (middle(releases) if len(groups) > 1 else None)


def _plan(
    asked: Asked,
    groups: Sequence[Sequence[Release]],
    anchor: Release | None,
    suite: Suite,
    results: Path,
    machine: str,
    environment: str,
    out: Console,
) -> None:
    """Says what would be measured, and how long that takes by what is stored of the lane."""
    from ..cluster.planning import Work, all_questions, rates
    from ..store.launches import read_launches
    from . import plan

    named = plan.machine_with_durations(results, machine, lambda words: out.print(words, highlight=False))
    stored = read_launches(results, named, environment, asked.questions) if named else ()
    work = Work(
        asked.questions or (("own",) if asked.workload else all_questions(suite.root)),
        asked.only,
        asked.launches or _rounds_of_all(asked),
        seconds_of(asked.budget) / len(groups) if asked.budget else 0.0,
    )
    out.print(plan.sessions(groups, anchor, work, rates(stored)))


def _sessions(
    asked: Asked,
    request: Request,
    own: OwnWorkload | None,
    conf: Any,
    axis: Any,
    environment: Any,
    groups: Sequence[Sequence[Release]],
    anchor: Release | None,
    out: Console,
) -> tuple[Session, bool, list[Comparison]]:
    """Measures each group of neighbours in a session, with the `anchor`, and says of each pair what changed after the last
    session that has it; returns the last session, whether a case gave a number in any of them, and what was said of each
    pair."""
    import time

    from ..measuring.plan import Plan, anchored
    from ..measuring.session import SESSIONS, Session
    from ..releases.environments import prune

    ran, told = False, []
    questions = (own.question,) if own else asked.questions
    ends = time.monotonic() + seconds_of(asked.budget) if asked.budget else None
    within = seconds_within(asked, request)
    over = time.monotonic() + within if within else None
    for number, group in enumerate(groups):
        measured, later = (
            anchored(group, anchor),
            anchored(groups[number + 1], anchor) if group is not groups[-1] else (),
        )
        pairs = _last_seen(group, later)
        plan = Plan(
            releases=tuple(release.tag for release in measured),
            anchor=measured[0].tag if len(measured) > len(group) else "",
            environment=environment.name,
            questions="|".join(questions) or r"\w+",
            sizes=asked.sizes or request.sizes or _default_sizes(request, own),
            launches=asked.launches or _rounds_of_all(asked),
            budget=(ends - time.monotonic()) / (len(groups) - number) if ends else None,
            workload=own.digest if own else "",
            only=asked.only,
            variants=asked.variants,
            within=max(1.0, over - time.monotonic()) if over else None,
        )
        folder = own.folder / SESSIONS if own else None
        session = Session(conf, axis, plan, environment, asked.again, folder, asked.shares, request)
        if session.finished:
            out.print(f"Session {session.id} has already measured this. Use --again to measure it again.")
        else:
            words = "Continuing" if session.resumed else "Starting"
            out.print(f"{words} session {session.id} on {plain(session.machine.machine)}.")
            try:
                session.measure(out)
            except KeyboardInterrupt:
                if asked.tells:
                    out.print("\nInterrupted. This is known so far:")
                    with contextlib.suppress(UserError):
                        _tell_pairs(asked, request, own, conf, session, plan.pairs)
                raise
        ran = ran or any(case.number is not None for launch in session.launches() for case in launch.cases)
        if asked.tells:
            told += _tell_pairs(asked, request, own, conf, session, pairs)
        if asked.tells and (hint := deciding(plan, session.launches())):
            click.echo(hint)
        if asked.removes and later:
            done = {release.tag for release in measured if release not in later}
            prune(environment.root, done.__contains__, asked.lane)
    return session, ran, told


def _rounds_of_all(asked: Asked) -> int:
    """The rounds that measure everything, where nobody says how many."""
    if asked.only == "counts":
        return 1
    return LEAST_LAUNCHES if asked.budget else DEFAULT_LAUNCHES


def _last_seen(group: Sequence[Release], later: Sequence[Release]) -> list[tuple[str, str]]:
    """The neighbours of a session that the next one has not both of, so that nothing more will be known of them."""
    pairs = itertools.pairwise(group)
    return [(old.tag, new.tag) for old, new in pairs if not (old in later and new in later)]


GPU_WITHIN = "9m"
"""The limit of a run of the whole suite on a GPU that names none: such a machine is often lent for ten minutes."""


def seconds_within(asked: Asked, request: Request) -> float | None:
    """The seconds in which everything ends, None where nothing limits them."""
    if asked.within:
        return seconds_of(asked.within)
    chooses = asked.questions or asked.variants or asked.sizes or asked.budget or asked.workload or asked.only
    return seconds_of(GPU_WITHIN) if request.device == "cuda" and not chooses else None


def _tell_pairs(
    asked: Asked,
    request: Request,
    own: OwnWorkload | None,
    conf: Any,
    session: Session,
    pairs: Sequence[tuple[str, str]],
) -> list[Comparison]:
    """Says what changed between those neighbours of a session of which both were measured."""
    measured = {launch.release for launch in session.launches()}
    told = [_told(asked, request, own, conf, session, pair) for pair in pairs if measured.issuperset(pair)]
    if len(told) < len(pairs):
        click.echo("Of some releases nothing was measured yet. The same command continues.")
    return told


def _told(
    asked: Asked,
    request: Request,
    own: OwnWorkload | None,
    conf: Any,
    session: Session,
    pair: tuple[str, str],
) -> Comparison:
    """Says what changed between two releases of a session."""
    from ..analysis import compare as said
    from ..store.launches import packages_words, read_environment
    from ..store.sources import own_versions

    # What an own file was before it was mended is of no interest, not even where that is all that has a count.
    versions = own_versions(own.question, own.text) if own else None
    stored = Path(conf.results_dir), session.machine.machine, session.plan.environment
    measured = {launch.benchmark.partition(".")[0] for launch in session.launches()}
    questions = tuple(question for question in asked.questions if question in measured)
    found = said.find(*stored, *pair, (own.question,) if own else questions or asked.questions, versions=versions)
    found = replace(found, file=str(asked.workload)) if own else found
    console().print(f"\n[bold]{pair[0]} -> {pair[1]}[/bold]")
    click.echo(said.text(found, everything=own is not None))
    if own and own.requirements:
        before, now = (read_environment(stored[0], stored[1], tag, stored[2]) for tag in pair)
        click.echo(packages_words(before, now, own.packages))
    can_be_explained = request.device == "cpu" and not asked.explains
    if can_be_explained and (hint := explainable(found, asked)):
        click.echo(hint)
    return found


def deciding(plan: Plan, launches: Sequence[Launch]) -> str:
    """How much more time would decide what a session left inconclusive; empty where it left nothing that could be."""
    from ..measuring.budget import effort, left_words

    return "" if plan.only == "counts" else left_words([effort(launches, plan.pairs)], "The same command with")


def rose(found: Comparison) -> list[Change]:
    """The times of steady calls that rose, the largest ratio first."""
    from ..explaining.finding import TIMES

    worse = [
        change
        for change in found.changed
        if change.series.metric in TIMES and change.ratio and change.ratio > 1 and change.verdict.kind == "worse"
    ]
    return sorted(worse, key=lambda change: -(change.ratio or 1))


def explainable(found: Comparison, asked: Asked) -> str:
    """What to ask for the causes of the times that rose on a CPU, and how long that takes; empty where none did, or none can
    be asked for."""
    import shlex

    rises = rose(found)
    if not rises or asked.interpreter is not None or asked.carried is not None:
        return ""
    lane = f" --lane {asked.lane}" if asked.lane != DEFAULT_LANE else ""
    own = f" --workload {shlex.quote(str(asked.workload))}" if asked.workload else ""
    named = rises[:MOST_OFFERED]
    names = " ".join(shlex.quote(change.series.words) for change in named)
    what = "the cause" if len(named) == len(rises) else f"the causes of the {len(named)} largest"
    return (
        f"{len(rises)} time{'s' if len(rises) > 1 else ''} rose. `torch-history explain{lane}{own} {found.old} {found.new} "
        f"{names}` looks for {what} and takes about {MINUTES * len(named)} minutes."
    )


def calibrated(asked: Calibrating) -> bool:
    """Calibrates and prints the report; returns whether every aim is met. Raises SessionError and UserError."""
    from ..analysis.calibration import read
    from ..measuring import calibrate as calibrations
    from ..measuring import machine
    from ..measuring.locks import alone
    from ..measuring.machine_records import use
    from ..measuring.plan import measurable
    from ..measuring.subjects import InstalledEnvironment
    from ..releases.environments import ReleaseEnvironment
    from ..reports.calibration import text
    from ..system.scratch import temporary_files

    found = suites.load()
    conf, axis, out = found.config(), found.axis, console()
    request = machine.asked()
    request = machine.decided(replace(request, device=asked.device or request.device))
    use(machine.describe(request))
    environment: Any
    if asked.interpreter is None:
        environment = ReleaseEnvironment(conf, asked.lane, {}, {})
        release = axis.find(asked.release) if asked.release else measurable(list(axis.releases), asked.lane)[0][-1]
    else:
        environment = InstalledEnvironment(conf, _interpreter(asked.interpreter))
        release = environment.release(axis, asked.release)
    with temporary_files(), alone(Path(conf.env_dir)):
        path = calibrations.measure(
            conf,
            axis,
            release,
            environment,
            asked.questions,
            asked.launches or (DEFAULT_LAUNCHES if asked.within else LEAST_LAUNCHES),
            seconds_of(asked.budget),
            asked.again,
            out,
            request,
            asked.itself,
            seconds_of(asked.within) if asked.within else None,
        )
        calibration = read(path)
        click.echo(text(calibration))
        out.print(f"The measurements are in {plain(str(path))}.")
        return not calibration.missed


def _default_sizes(request: Request, own: OwnWorkload | None) -> tuple[str, ...]:
    """The sizes of the suite that fit the device; of an own file all that it names."""
    from ..measuring.choice import SCALES

    if own:
        return SCALES
    return ("paper",) if request.device == "cuda" else ("small",)


def _interpreter(name: str) -> str:
    import shutil

    path = shutil.which(name)
    if path is None:
        raise SessionError(f"There is no interpreter '{name}' on this machine. Give its path with --python.")
    return path


def _print_numbers(out: Console, session: Session) -> None:
    import statistics

    from ..analysis.series import history
    from ..analysis.verdicts import human

    numbers = history(session.launches())
    width = max((len(series.words) for series in numbers), default=0)
    for series, releases in numbers.items():
        cases = [case for pairs in releases.values() for _, case in pairs]
        known = [case.number for case in cases if case.number is not None]
        reason = cases[-1].reason
        number = human(statistics.median(known), series.unit) if known else plain(reason)
        out.print(f"{plain(f'{series.words:<{width}}')}  {number}", highlight=False)


COMMANDS = (run, calibrate)
