"""The command `torch-history`: measure releases, publish the site, free disk, pin what a release needs."""

from __future__ import annotations

import functools
import re
import shutil
import signal
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

import click
from asv import util
from asv.config import Config
from asv.environment import EnvironmentUnavailable
from rich.console import Console

from . import environments
from .axis import Axis, Release
from .launches import machines_in, read_environment, read_on_axis
from .session import SESSIONS, Plan, Session, SessionError, alone, beside, load_suite, measurable, neighbours
from .subjects import InstalledEnvironment, OwnWorkload
from .verdicts import history, human

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_LANE = "3.11"
DEFAULT_LAUNCHES = 3

PICTURE = (
    "amd-epyc-family-26-model-2-2-cores",
    "release-py3.11",
    "intersection.Intersection.track_peak_memory",
    "small",
)
"""Machine, environment, benchmark and size of the README's picture; its findings are of the same machine and environment."""

BEGIN, END = "<!-- findings: by `torch-history document` -->", "<!-- end of findings -->"


class _Sentences(click.Group):
    """Turns what is meant for a person into one sentence on stderr and exit code 1, instead of a traceback."""

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except (util.UserError, EnvironmentUnavailable) as error:
            Console(stderr=True, soft_wrap=True).print(f"[red]torch-history:[/red] {_plain(str(error))}")
            sys.exit(1)
        except BrokenPipeError:
            raise
        except OSError as error:
            words = f"{error.filename or 'A file'} cannot be read or written: {error.strerror or error}."
            Console(stderr=True, soft_wrap=True).print(f"[red]torch-history:[/red] {_plain(words)}")
            sys.exit(1)
        except KeyboardInterrupt:
            Console(stderr=True).print("\nStopped. What was finished is kept; the same command goes on from here.")
            sys.exit(130)


@click.group(cls=_Sentences, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Which PyTorch release made your code slower, or hungrier?"""
    # A session in the background is asked to end by either signal, and both must let it end the interpreters it started.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.default_int_handler)


@main.command()
@click.argument("releases", nargs=-1)
@click.option("--releases", "ranges", multiple=True, help="The same as RELEASES; may be given again.")
@click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python of the environments.")
@click.option("--workload", type=click.Path(path_type=Path), help="Measure a file of your own: docs/own-workload.md.")
@click.option("--question", "questions", multiple=True, help="Measure only this question; may be given again.")
@click.option("--size", "sizes", multiple=True, help="Sizes to measure [default: small on a CPU, paper on a GPU].")
@click.option(
    "--launches",
    default=DEFAULT_LAUNCHES,
    show_default=True,
    help="Rounds that measure everything, each in fresh processes.",
)
@click.option("--only", type=click.Choice(["times", "counts"]), help="Leave the other out; counts need one launch.")
@click.option(
    "--budget",
    type=str,
    help="Time to spend, such as 6m or 2h: what is left after those rounds goes to what cannot be told yet.",
)
@click.option("--again", is_flag=True, help="Measure anew although the same session is finished.")
@click.option("--prune", "removes", is_flag=True, help="Remove each release's environments after its last session.")
@click.option(
    "--beside", "shares", is_flag=True, help="Let another lane be measured at the same time, each on its own processor."
)
@click.option("--installed", is_flag=True, help="Measure the torch that --python has already; needs no network.")
@click.option("--python", "interpreter", default="python3", show_default=True, help="Interpreter for --installed.")
@click.option("--as", "recorded_as", help="Record an --installed torch that is no release under this one.")
def run(
    releases: tuple[str, ...],
    ranges: tuple[str, ...],
    lane: str,
    workload: Path | None,
    questions: tuple[str, ...],
    sizes: tuple[str, ...],
    launches: int,
    only: str | None,
    budget: str | None,
    again: bool,
    removes: bool,
    shares: bool,
    installed: bool,
    interpreter: str,
    recorded_as: str | None,
) -> None:
    """Measure RELEASES interleaved and say what changed from each to the next.

    RELEASES are names (2.5.1), ranges that exclude their first (2.0.1..2.2.0), or NEW: those that came out since the newest
    that this machine has measured. One alone brings the one before it along. Without any, the newest release and the one
    before it. Many are measured in sessions of neighbours that share one.
    """
    from . import compare as said

    own = OwnWorkload.of(workload) if workload else None
    conf, axis = load_suite(ROOT)
    console = Console(soft_wrap=True)
    releases += ranges
    if own:
        conf.results_dir = str(own.folder / "results")
        questions = (own.question,)
    if installed:
        if releases:
            raise SessionError("--installed measures the torch that is there; to record it under a release say --as.")
        environment = InstalledEnvironment(conf, _interpreter(interpreter))
        chosen = [environment.release(axis, recorded_as)]
        console.print(f"Measuring the installed torch {environment.torch} as {chosen[0].tag}.")
    else:
        environment = environments.ReleaseEnvironment(conf, lane, {}, {})
        if "NEW" in releases:
            fresh = _new(conf, axis, lane, environment.name)
            releases = tuple(tag for spec in releases for tag in (fresh if spec == "NEW" else [spec]))
            if not releases:
                console.print("There is nothing new: this machine has measured the newest release of the lane.")
                return
        chosen = _chosen(axis, releases, lane, console)
    sizes = sizes or _default_sizes()
    if shares and removes:
        raise SessionError("--prune removes what another lane may be measuring: leave it out, or --beside.")
    env_dir = Path(conf.env_dir)
    click.get_current_context().with_resource(beside(env_dir, environment.name) if shares else alone(env_dir))
    ends = time.monotonic() + _seconds(budget) if budget else None
    groups = neighbours(chosen)
    for number, group in enumerate(groups):
        plan = Plan(
            releases=tuple(release.tag for release in group),
            environment=environment.name,
            questions="|".join(questions) or r"\w+",
            sizes=tuple(sizes),
            launches=launches,
            budget=(ends - time.monotonic()) / (len(groups) - number) if ends else None,
            workload=own.digest if own else "",
            only=only or "",
        )
        session = Session(
            conf, axis, plan, environment, again, folder=own.folder / SESSIONS if own else None, shares=shares
        )
        if session.finished:
            console.print(f"Session {session.id} has measured this already; measure anew with --again.")
        else:
            words = "Going on with" if session.resumed else "Starting"
            console.print(f"{words} session {session.id} on {session.machine.machine}.")
            session.measure(console)
        for old, new in plan.pairs:
            found = said.find(Path(conf.results_dir), session.machine.machine, plan.environment, old, new, questions)
            console.print(f"\n[bold]{old} -> {new}[/bold]")
            click.echo(said.text(found, everything=own is not None))
        if removes and group is not groups[-1]:
            over = plan.releases[:-1]
            environments.prune(Path(conf.env_dir), over.__contains__)
    if len(chosen) == 1:
        _print_numbers(console, session)
    console.print(f"Results lie in {Path(conf.results_dir, session.machine.machine)}.")


@main.command()
@click.option("--html-dir", type=click.Path(path_type=Path), help="Where to [default: html].")
@click.option("--results-dir", type=click.Path(path_type=Path), help="What to publish [default: results].")
@click.option(
    "--url", default="", help="Where the site will be read, for the links in its feeds [default: relative ones]."
)
def publish(html_dir: Path | None, results_dir: Path | None, url: str) -> None:
    """Build the site from results/: its own pages, and asv's dashboard inside."""
    from .site import publish_site

    html_dir, results_dir = (path and path.resolve() for path in (html_dir, results_dir))
    conf, axis = load_suite(ROOT)
    html_dir = html_dir or ROOT / "html"
    conf.results_dir = str(results_dir or conf.results_dir)
    index = publish_site(conf, axis, html_dir, url)
    Console(soft_wrap=True).print(f"The site lies in {index}: open that file in a browser.")


@main.command()
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 where a file is out of date.")
def document(check: bool) -> None:
    """Write what the docs take from results/: the README's picture and findings, the claims answered, what ran where."""
    from . import again, claims, steps
    from . import calibrate as calibrations
    from . import compare as said
    from .charts import draw_history
    from .coverage import coverage
    from .pythons import pythons

    conf, axis = load_suite(ROOT)
    results = Path(conf.results_dir)
    launches = {machine: list(read_on_axis(results, machine, axis)) for machine in machines_in(results)}
    machine, lane, *_ = PICTURE
    found = history(launch for launch in launches.get(machine, []) if launch.environment == lane)
    costs = said.tell(steps.costliest(steps.of_history(found, axis)), results, machine)
    findings = [claims.findings(found, axis), "", "What rose most from one release to the next, by question:", ""]
    files = {
        "README.md": _with_findings("\n".join([*findings, *[f"- {said.escape(line)}" for line in costs]])),
        "docs/peak-memory.svg": draw_history(conf, axis, *PICTURE),
        "docs/answers.md": claims.document(launches, axis, lambda found, machine: said.tell(found, results, machine)),
        "docs/coverage.md": coverage(launches, axis),
        "docs/pythons.md": pythons(launches, functools.partial(read_environment, results), axis),
        "docs/again.md": again.document(launches, axis),
        "docs/calibration.md": calibrations.document(results),
    }
    console = Console(soft_wrap=True)
    stale = [name for name, text in files.items() if not _holds(Path(name), text)]
    if check and stale:
        raise SessionError(f"{' and '.join(stale)} differ from what results/ holds: run `torch-history document`.")
    for name in stale:
        environments.write_atomically(Path(name), files[name])
    console.print(f"Written: {', '.join(stale)}." if stale else "Everything is up to date.")


@main.command()
@click.argument("releases", nargs=-1, required=True)
@click.option("--machine", help="A folder of results/ [default: this machine's].")
@click.option("--environment", default=f"release-py{DEFAULT_LANE}", show_default=True, help="Lane, as in results/.")
def environment(releases: tuple[str, ...], machine: str | None, environment: str) -> None:
    """Say what was measured for a release, or what differs between the environments of two."""
    from .machine import describe

    conf, axis = load_suite(ROOT)
    console = Console(soft_wrap=True)
    tags = [release.tag for spec in releases for release in axis.select(spec)]
    if len(tags) > 2:
        raise SessionError(f"One release is shown or two are compared, and {len(tags)} were named.")
    machine = machine or describe()["machine"]
    found = [read_environment(Path(conf.results_dir), machine, tag, environment) for tag in tags]
    for tag, facts in zip(tags, found, strict=True):
        if not facts:
            raise SessionError(
                f"Nothing is known of {tag} in {environment} on {machine}: measure it with `torch-history run {tag}`."
            )
    if len(found) == 1:
        for name, value in found[0].items():
            console.print(f"{name:<15} {_plain(_listed(value))}", highlight=False)
        return
    old, new = found
    for name in dict.fromkeys([*old, *new]):
        if name != "packages" and old.get(name) != new.get(name):
            console.print(
                f"{name:<15} {_plain(_listed(old.get(name)))} -> {_plain(_listed(new.get(name)))}", highlight=False
            )
    packages = [dict(package.split("==", 1) for package in facts.get("packages", [])) for facts in found]
    for name in sorted({*packages[0], *packages[1]}):
        versions = [of.get(name, "none") for of in packages]
        if versions[0] != versions[1]:
            console.print(f"  {name:<30} {versions[0]} -> {versions[1]}", highlight=False)
    same = sum(old.get(name) == new.get(name) for name in old)
    console.print(f"{same} of {len(old)} facts are the same in {tags[0]} and {tags[1]}.")


@main.command("compare", epilog="Exit code: 0, 1 refused, 2 wrong usage, 3 a series failed by --fail-on.")
@click.argument("old")
@click.argument("new")
@click.option("--machine", help="A folder of results/ [default: this machine's, else the only one].")
@click.option("--environment", default=f"release-py{DEFAULT_LANE}", show_default=True, help="Lane, as in results/.")
@click.option("--question", "questions", multiple=True, help="Only this question; may be given again.")
@click.option("--metric", "metrics", multiple=True, help="Only this metric, such as time; may be given again.")
@click.option("--json", "as_json", is_flag=True, help="Everything as JSON; docs/verdicts.md lists the keys.")
@click.option("--markdown", "as_markdown", is_flag=True, help="A table for a pull request or an issue.")
@click.option("--all", "everything", is_flag=True, help="List what did not change or could not be told, too.")
@click.option(
    "--fail-on",
    metavar="KIND:PER CENT,...",
    help="Exit code 3 where a series is beyond: slower, faster, hungrier, more, with per cent, or broke without; "
    "such as slower:5%,hungrier:1%,broke.",
)
def compare_stored(
    old: str,
    new: str,
    machine: str | None,
    environment: str,
    questions: tuple[str, ...],
    metrics: tuple[str, ...],
    as_json: bool,
    as_markdown: bool,
    everything: bool,
    fail_on: str | None,
) -> None:
    """Say what an upgrade from OLD to NEW costs, and why, from results/ alone."""
    from . import compare as said
    from .machine import describe

    if as_json and as_markdown:
        raise click.UsageError("--json and --markdown are two ways to print: choose one.")
    try:
        limits = said.parse_fail_on(fail_on) if fail_on is not None else {}
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--fail-on") from error
    conf, axis = load_suite(ROOT)
    results = Path(conf.results_dir)
    tags = axis.find(old).tag, axis.find(new).tag
    machine = said.choose_machine(results, machine, describe()["machine"])
    comparison = said.find(results, machine, environment, *tags, questions, metrics)
    failed = said.failing(comparison, limits)
    if as_json:
        click.echo(said.as_json(comparison, failed))
    else:
        click.echo((said.markdown if as_markdown else said.text)(comparison, everything, failed))
    if failed:
        sys.exit(3)


@main.command()
@click.option("--machine", help="A folder of results/ [default: this machine's, else the only one].")
@click.option("--environment", default=f"release-py{DEFAULT_LANE}", show_default=True, help="Lane, as in results/.")
@click.option("--question", "questions", multiple=True, help="Only this question; may be given again.")
@click.option("--largest", is_flag=True, help="The largest of each question at each release instead, largest first.")
@click.option("--limit", default=40, show_default=True, help="Sentences to print; 0 for all.")
def regressions(machine: str | None, environment: str, questions: tuple[str, ...], largest: bool, limit: int) -> None:
    """Say what happened on the whole axis: steps, spikes that recovered and slow drifts, newest release first."""
    from . import compare as said
    from . import steps
    from .machine import describe

    conf, axis = load_suite(ROOT)
    results = Path(conf.results_dir)
    machine = said.choose_machine(results, machine, describe()["machine"])
    stored = [
        launch
        for launch in read_on_axis(results, machine, axis)
        if not questions or launch.benchmark.partition(".")[0] in questions
    ]
    found = steps.regressions(stored, axis, environment)
    shown = (steps.largest(found) if largest else found)[: limit or None]
    for line in said.tell(shown, results, machine):
        click.echo(line)
    for line in steps.unconnected(stored, axis, environment):
        click.echo(line)
    tally = Counter(step.verdict.words for step in found)
    words = ", ".join(f"{count} {word}" for word, count in tally.most_common()) or "nothing"
    hidden = f" {len(found) - len(shown)} are not shown: --limit 0." if len(shown) < len(found) else ""
    click.echo(f"On {machine} in {environment}: {words}.{hidden}")


@main.command()
@click.argument("release", required=False)
@click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python of the environment.")
@click.option("--question", "questions", multiple=True, help="Only this question; may be given again.")
@click.option("--launches", default=DEFAULT_LAUNCHES, show_default=True, help="Rounds that measure everything.")
@click.option("--budget", default="60m", show_default=True, help="Time for the times, as in `run`.")
@click.option("--again", is_flag=True, help="Measure anew although it is finished.")
def calibrate(
    release: str | None, lane: str, questions: tuple[str, ...], launches: int, budget: str, again: bool
) -> None:
    """Measure how often verdicts are right on this machine: RELEASE against itself, and changes planted in it.

    Without RELEASE the newest of the lane. Exit code 3 where an aim of docs/calibration.md is missed.
    """
    from . import calibrate as said

    conf, axis = load_suite(ROOT)
    console = Console(soft_wrap=True)
    chosen = axis.find(release) if release else measurable(list(axis.releases), lane)[0][-1]
    environment = environments.ReleaseEnvironment(conf, lane, {}, {})
    click.get_current_context().with_resource(alone(Path(conf.env_dir)))
    path = said.measure(conf, axis, chosen, environment, questions, launches, _seconds(budget), again, console)
    calibration = said.read(path)
    click.echo(said.text(calibration))
    console.print(f"What was measured lies in {path}.")
    if calibration.missed:
        sys.exit(3)


@main.command()
@click.argument("releases", nargs=-1)
@click.option("--keep", multiple=True, help="A release whose environments stay; may be given again.")
def prune(releases: tuple[str, ...], keep: tuple[str, ...]) -> None:
    """Remove the environments of RELEASES, by default of all, and say how much disk that freed."""
    conf, axis = load_suite(ROOT)
    kept = {axis.find(name).tag for name in keep}
    asked = {release.tag for spec in releases for release in axis.select(spec)}
    click.get_current_context().with_resource(alone(Path(conf.env_dir)))
    removed, freed = environments.prune(Path(conf.env_dir), lambda tag: tag not in kept and (not asked or tag in asked))
    names = ", ".join(removed) or "no environment"
    Console(soft_wrap=True).print(f"Removed {names}; freed {freed / 2**30:.2f} GiB.")


@main.command()
@click.option("--write", is_flag=True, help="Change releases.toml; without it the difference is only shown.")
@click.option("--index", "address", help="A package index [default: as uv is configured, else as pip is].")
def sync(write: bool, address: str | None) -> None:
    """Add the releases that the package index has and the axis has not, each where it belongs."""
    from . import sync as index

    conf, axis = load_suite(ROOT)
    path = Path(conf.repo)
    console = Console(soft_wrap=True)
    found = index.find(axis, address or index.configured_index())
    text = index.with_releases(path.read_text(encoding="utf-8"), found.new)
    click.echo(index.difference(path, text), nl=False)
    for sentence in found.sentences:
        console.print(_plain(sentence))
    names = ", ".join(release.tag for release in found.new)
    if not found.new:
        console.print("The axis has every release that the index has.")
    elif write:
        index.write(path, text)
        console.print(f"Added {names}. Pin what they need with `torch-history lock`, measure them with `asv run NEW`.")
    else:
        console.print(f"New: {names}. Nothing was written: `torch-history sync --write`.")


@main.command()
@click.argument("releases", nargs=-1)
@click.option("--lane", "lanes", multiple=True, default=(DEFAULT_LANE, "3.9"), show_default=True)
def lock(releases: tuple[str, ...], lanes: tuple[str, ...]) -> None:
    """Pin every package of RELEASES that `releases.lock` does not list yet; what stands there is never changed."""
    _, axis = load_suite(ROOT)
    chosen = [release for spec in releases for release in axis.select(spec)] or axis.releases
    console = Console(soft_wrap=True)
    for release in chosen:
        for lane in lanes:
            if lane in release.pythons and environments.lock(release, lane):
                console.print(f"Pinned {release.tag} on Python {lane}.")


def _chosen(axis: Axis, specs: tuple[str, ...], lane: str, console: Console) -> list[Release]:
    named = {release.tag for spec in specs for release in axis.select(spec)}
    wanted = [release for release in axis.releases if release.tag in named] if specs else list(axis.releases)
    able, skipped = measurable(wanted, lane)
    if not able:
        raise SessionError(
            " ".join(skipped) + f" Nothing is left to measure in lane {lane}: choose another with --lane."
        )
    if not specs:
        return able[-2:]
    for sentence in skipped:
        console.print(f"[yellow]{sentence}[/yellow]")
    if len(able) == 1 and (before := measurable(list(axis.releases[: axis.position(able[0].tag)]), lane)[0]):
        console.print(f"{before[-1].tag} comes along, so that one session holds what is compared.")
        return [before[-1], *able]
    return able


def _new(conf: Config, axis: Axis, lane: str, environment: str) -> tuple[str, ...]:
    """The releases of a lane that came out since the newest that this machine has measured, late patches of older lines too,
    each with the one before it."""
    from .machine import describe

    able = measurable(list(axis.releases), lane)[0]
    stored = read_on_axis(Path(conf.results_dir), describe()["machine"], axis)
    tags = {launch.release for launch in stored if launch.environment == environment}
    measured = [release for release in able if release.tag in tags]
    since = max((release.date for release in measured), default=able[-1].date)
    new = [i for i, release in enumerate(able) if release not in measured and release.date >= since]
    return tuple(able[i].tag for i in sorted({max(at, 0) for i in new for at in (i - 1, i)}))


def _default_sizes() -> tuple[str, ...]:
    from .machine import describe

    return ("paper",) if describe()["device"] == "cuda" else ("small",)


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if match is None:
        raise SessionError(f"'{text}' is no length of time: write 90s, 6m or 2h.")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def _interpreter(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise SessionError(f"There is no interpreter '{name}' on this machine: give its path with --python.")
    return path


def _with_findings(text: str) -> str:
    """The README with `text` between the two comments that mark the place."""
    readme = Path("README.md").read_text(encoding="utf-8")
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SessionError(f"README.md has no place for findings: the lines {BEGIN} and {END} are missing.")
    return f"{before}{begin}\n{text}\n{end}{after}"


def _holds(file: Path, text: str) -> bool:
    return file.exists() and file.read_text(encoding="utf-8") == text


def _listed(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items()) or "none"
    return "unknown" if value is None else str(value)


def _print_numbers(console: Console, session: Session) -> None:
    numbers = history(session.launches())
    width = max((len(series.words) for series in numbers), default=0)
    for series, releases in numbers.items():
        cases = [case for pairs in releases.values() for _, case in pairs]
        known = [case.number for case in cases if case.number is not None]
        reason = cases[-1].failed or cases[-1].unavailable
        number = human(statistics.median(known), series.unit) if known else _plain(reason)
        console.print(f"{series.words:<{width}}  {number}", highlight=False)


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
