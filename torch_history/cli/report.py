"""Commands that read results/ and say what is in it: `publish`, `document`, `environment`, `compare`, `regressions`."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import UserError
from ..system.program import cache
from . import suite as suites
from .options import LANE_HELP, Renamed, lane, metrics_listed, site_address
from .output import bold, console, listed, machine_of, plain, show
from .steps import Steps
from .suite import DEFAULT_LANE

if TYPE_CHECKING:
    from ..analysis.compare import Comparison

LONGEST = ("amd-epyc-family-26-model-2-2-cores", "release-py3.11")
"""Machine and environment of the README's findings."""

_in_lane = click.option(
    "--lane",
    "--environment",
    "environment",
    cls=Renamed,
    callback=lane,
    default=DEFAULT_LANE,
    show_default=True,
    help=LANE_HELP,
)
"""Former name of the option: --environment."""

BEGIN, END = "<!-- findings: by `torch-history document` -->", "<!-- end of findings -->"
BEGIN_OUTPUT, END_OUTPUT = "<!-- output: by `torch-history document` -->", "<!-- end of output -->"
SHOWN, MOST_LINES = ("v2.13.0", "v2.14.0"), 12
"""The releases whose comparison the README shows, and how many lines of it."""

BEGIN_CLAIM, END_CLAIM = "<!-- the claim: by `torch-history document` -->", "<!-- end of the claim -->"


@click.command()
@click.option("--html-dir", type=click.Path(path_type=Path), help="Folder to write the site to [default: html].")
@click.option("--results-dir", type=click.Path(path_type=Path), help="Results to publish [default: results].")
@click.option(
    "--url",
    default="",
    callback=site_address,
    help="Address of the site, for its feeds [default: relative links].",
)
def publish(html_dir: Path | None, results_dir: Path | None, url: str) -> None:
    """Build the site from results/, including asv's dashboard. It opens on the results of this machine, if there are any."""
    from ..measuring.machine import describe
    from ..site.build import STEPS, publish_site
    from ..site.data import PUBLISHED
    from ..store.launches import machines_in
    from ..system.files import naming

    html_dir, results_dir = (path and path.resolve() for path in (html_dir, results_dir))
    suite = suites.load()
    conf = suite.config()
    conf.results_dir = str(results_dir or conf.results_dir)
    target = html_dir or suite.root / "html"
    here = describe()["machine"]
    with naming(target), Steps(console(), STEPS, Path(conf.env_dir, PUBLISHED, "took.json")) as steps:
        index = publish_site(conf, suite.axis, target, url, steps.begin, here)
    first, none = f"the newest results, those of this machine, {here}, first", f"another machine: {here} has no results"
    opens = f"It opens on {first if here in machines_in(Path(conf.results_dir)) else none}"
    console().print(plain(f"The site is in {index}. Open that file in a browser. {opens}."))


@click.command()
@click.option("--check", is_flag=True, help="Write nothing. Exit code 1 means that a file is out of date.")
def document(check: bool) -> None:
    """Update the generated pages from results/.

    These are the README's findings, and the pages in docs/generated/.
    """
    from ..analysis import bases, power, steps
    from ..analysis import compare as said
    from ..analysis.series import history
    from ..releases import wheels
    from ..reports import calibration as calibrations
    from ..reports import claims, coverage, recorded
    from ..store.certificates import certificates_in
    from ..store.launches import machines_in, read_on_axis
    from ..system.files import write_atomically

    suite = suites.load()
    results = suite.results
    launches = {machine: list(read_on_axis(results, machine, suite.axis)) for machine in machines_in(results)}
    machine, lane = LONGEST
    found = history(launch for launch in launches.get(machine, []) if launch.environment == lane)
    happened = steps.of_history(found, suite.axis)
    costs = said.tell_most(steps.costliest(happened), happened, found, results, machine)
    answered = claims.lanes(results, launches, suite.axis)
    evidence = {name: power.every_lane(history(of), suite.axis) for name, of in launches.items()}
    certificates = certificates_in(results)
    rows = bases.rows((each.told for each in answered), suite.axis, certificates)
    on_a_gpu = bases.on_a_gpu(((each.told.setting.device, each.releases) for each in answered), suite.axis)
    rose = [f"What rose most from one release to the next, on a CPU (`results/{machine}`, `{lane}`):", ""]
    rose += [f"- {said.escape(line)}" for line in costs]
    files = {
        "README.md": _between(
            "README.md",
            (BEGIN, END, claims.findings(rows)),
            *_shown(results, machine, lane),
        ),
        **{
            f"docs/questions/{question}.md": _between(f"docs/questions/{question}.md", (BEGIN_CLAIM, END_CLAIM, text))
            for question, text in claims.of_questions(rows).items()
        },
        "docs/generated/recorded.md": recorded.document(
            results,
            launches,
            suite.axis,
            lambda steps, of, machine: said.tell_findings(steps, of, results, machine),
            certificates,
        ),
        "docs/generated/answers.md": claims.document(
            [on_a_gpu, "", claims.table(rows, "../questions"), "", *rose],
            answered,
            suite.axis,
            lambda steps, of, machine: said.tell(steps, of, results, machine),
        ),
        "docs/generated/facts.md": wheels.document(wheels.load(suite.list.with_name(wheels.FILE)), suite.axis),
        "docs/generated/coverage.md": coverage.document(launches, suite.axis),
        "docs/generated/calibration.md": calibrations.document(results, evidence),
    }
    out = console()
    stale = [name for name, text in files.items() if not _holds(Path(name), text)]
    if check and stale:
        raise UserError(f"These files are out of date: {', '.join(stale)}. Run `torch-history document`.")
    for name in stale:
        write_atomically(Path(name), files[name])
    out.print(f"Written: {', '.join(stale)}." if stale else "Everything is up to date.")


@click.command()
@click.argument("releases", nargs=-1, required=True)
@click.option("--machine", help="A folder of results/ [default: this machine, else the one with most releases].")
@_in_lane
def environment(releases: tuple[str, ...], machine: str | None, environment: str) -> None:
    """Show the environment of a release, or how two of them differ."""
    from ..store.launches import packages_moved, read_environment

    suite = suites.load()
    out = console()
    tags = [release.tag for spec in releases for release in suite.axis.select(spec)]
    if len(tags) > 2:
        raise UserError(f"{len(tags)} releases were named. Name one to show it, or two to compare them.")
    machine = machine or machine_of(suite.results, None, tags, environment)
    found = [read_environment(suite.results, machine, tag, environment) for tag in tags]
    for tag, facts in zip(tags, found, strict=True):
        if not facts:
            raise UserError(
                f"{tag} was not measured in {environment} on {machine}. Measure it with `torch-history run {tag}`."
            )
    if len(found) == 1:
        for name, value in found[0].items():
            out.print(f"{name:<15} {plain(listed(value))}", highlight=False)
        return
    old, new = found
    for name in dict.fromkeys([*old, *new]):
        if name not in ("packages", "installed") and old.get(name) != new.get(name):
            out.print(f"{name:<15} {plain(listed(old.get(name)))} -> {plain(listed(new.get(name)))}", highlight=False)
    for name, before, now in packages_moved(old, new):
        out.print(f"  {name:<30} {before} -> {now}", highlight=False)
    same = sum(old.get(name) == new.get(name) for name in old)
    out.print(f"{same} of {len(old)} facts are equal in {tags[0]} and {tags[1]}.")


@click.command("compare", epilog="Exit codes: 0 success, 1 refused, 2 wrong usage, 3 a series failed --fail-on.")
@click.argument("old")
@click.argument("new")
@click.option("--machine", help="A folder of results/ [default: this machine, else the one with most releases].")
@_in_lane
@click.option("--workload", type=click.Path(path_type=Path), help="A file of your own that was measured before.")
@click.option("--question", "questions", multiple=True, help="Only this question. Repeatable.")
@click.option("--metric", "metrics", multiple=True, help="Only this metric, such as time. Repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON. docs/compare.md lists the keys.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the findings for a pull request or an issue.")
@click.option(
    "--url",
    default="",
    callback=site_address,
    help="Address of a published site, for a link to this comparison in the Markdown.",
)
@click.option("--all", "everything", is_flag=True, help="List every series in a sentence, also what did not change.")
@click.option(
    "--fail-on",
    metavar="KIND:PER CENT,...",
    help="Exit with code 3 if a series is beyond a threshold, such as `slower:5%,hungrier:1%,broke`. The kinds are "
    "`slower`, `faster`, `hungrier` (more bytes) and `more` (a higher count), with a percentage, and `broke` without one.",
)
def compare_stored(
    old: str,
    new: str,
    machine: str | None,
    environment: str,
    workload: Path | None,
    questions: tuple[str, ...],
    metrics: tuple[str, ...],
    as_json: bool,
    as_markdown: bool,
    url: str,
    everything: bool,
    fail_on: str | None,
) -> None:
    """Say what an upgrade from OLD to NEW costs, and why. Reads stored results only."""
    from ..analysis import compare as said

    if as_json and as_markdown:
        raise click.UsageError("--json and --markdown exclude each other. Choose one.")
    if url and not as_markdown:
        raise click.UsageError("--url is for the link in the Markdown. Add --markdown.")
    if url and workload:
        raise click.UsageError("--url and --workload exclude each other. A published site has no results of own files.")
    try:
        limits = said.parse_fail_on(fail_on) if fail_on is not None else {}
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--fail-on") from error
    gc.disable()  # what a short command makes goes with its process
    workload = workload and workload.resolve()
    suite = suites.load()
    results, versions = _of_own(workload) if workload else (suite.results, None)
    tags = suite.axis.find(old).tag, suite.axis.find(new).tag
    machine = machine_of(results, machine, tags, environment, questions)
    try:
        comparison = said.find(results, machine, environment, *tags, questions, metrics, versions)
        comparison = replace(comparison, file=str(workload or ""))
    except said.CannotCompare as error:
        raise UserError(" ".join([str(error), *_skipped(results, environment, tags)])) from error
    failed = said.failing(comparison, limits)
    if as_json:
        click.echo(said.as_json(comparison, failed))
    elif as_markdown:
        link = _link(url, machine, environment, *tags) if url else ""
        click.echo(said.markdown(comparison, everything, failed, link))
    else:
        hint = "" if comparison.changed else _deciding(results, comparison)
        show("\n".join(filter(None, [said.text(comparison, everything, failed, bold), hint])))
        if workload:
            for sentence in said.never_ran(comparison):
                click.echo(sentence)
            _show_packages(workload, results, machine, environment, *tags)
    if failed:
        sys.exit(3)


def _deciding(results: Path, comparison: Comparison) -> str:
    """Where nothing changed: what would decide the times that are inconclusive."""
    from ..measuring.budget import effort
    from ..store.launches import read_launches

    series = {change.series.benchmark for change in comparison.changes}
    stored = read_launches(results, comparison.machine, comparison.environment)
    _, is_lane, python = comparison.environment.partition("release-py")
    words = ["torch-history", "run", *(["--workload", comparison.file] if comparison.file else [])]
    words += [*(["--lane", python] if is_lane else []), comparison.old, comparison.new]
    left = effort((launch for launch in stored if launch.benchmark in series), [(comparison.old, comparison.new)])
    return left.words(f"On that machine `{shlex.join(words)}` with")


def _link(url: str, machine: str, environment: str, old: str, new: str) -> str:
    """The address of a comparison on the site at `url`."""
    from urllib.parse import urlencode

    from ..site.data import lane_id

    keys = urlencode({"lane": lane_id(machine, environment), "from": old, "to": new})
    return f"{url}/index.html#{keys}"


@click.command()
@click.option("--machine", help="A folder of results/ [default: this machine, else the one with most releases].")
@_in_lane
@click.option("--question", "questions", multiple=True, help="Only this question. Repeatable.")
@click.option(
    "--largest", is_flag=True, help="List the largest change of each question at each release, largest first."
)
@click.option("--limit", default=40, show_default=True, help="Number of changes to look at. 0 looks at all.")
@click.option(
    "--all", "everything", is_flag=True, help="List each change by itself, not those of one finding together."
)
def regressions(
    machine: str | None,
    environment: str,
    questions: tuple[str, ...],
    largest: bool,
    limit: int,
    everything: bool,
) -> None:
    """List changes over all releases, newest release first.

    Changes are steps, excursions and drifts. docs/verdicts.md defines them. Changes of one variant or one cause at one
    release are one finding.
    """
    from ..analysis.compare import CannotCompare, choose_machine

    gc.disable()  # what a short command makes goes with its process
    suite = suites.load()
    tell = functools.partial(
        _tell_changes,
        suite,
        environment,
        questions,
        largest=largest,
        limit=limit,
        everything=everything,
    )
    chosen = machine_of(suite.results, machine, (), environment, questions)
    if tell(chosen) or machine:
        return
    longest = chosen
    with contextlib.suppress(CannotCompare):
        longest = choose_machine(suite.results, None, "", (), environment, questions)
    if longest != chosen:
        click.echo(f"\nResults of {longest}, which has the longest history:")
        tell(longest)


def _tell_changes(
    suite: suites.Suite,
    environment: str,
    questions: tuple[str, ...],
    machine: str,
    *,
    largest: bool,
    limit: int,
    everything: bool,
) -> int:
    """Prints what `regressions` finds on `machine`, and returns how many changes these are."""
    from ..analysis import compare as said
    from ..analysis import steps
    from ..analysis.replication import other_places
    from ..analysis.series import history
    from ..store.launches import read_on_axis

    stored = history(read_on_axis(suite.results, machine, suite.axis, environment, questions))
    found = steps.of_history(stored, suite.axis)
    shown = (steps.largest(found) if largest else found)[: limit or None]
    others = other_places(suite.results, machine, environment, stored)
    lines = (said.tell if everything or largest else said.tell_findings)(shown, stored, suite.results, machine, others)
    for line in lines:
        click.echo(line)
    for line in steps.unconnected(stored, suite.axis):
        click.echo(line)
    tally = Counter(step.verdict.shown for step in found)
    words = ", ".join(f"{count} {word}" for word, count in tally.most_common()) or "nothing"
    hidden = f" {len(found) - len(shown)} are not shown. --limit 0 shows all." if len(shown) < len(found) else ""
    click.echo(f"On {machine} in {environment}: {words}.{hidden}")
    return len(found)


def _between(page: str, *places: tuple[str, str, str]) -> str:
    """The page with a text between each two comments that mark its place. Raises UserError where it lacks them."""
    written = Path(page).read_text(encoding="utf-8")
    for first, last, text in places:
        before, begin, rest = written.partition(first)
        _, end, after = rest.partition(last)
        if not begin or not end:
            raise UserError(f"{page} has no place for what is generated. Restore the lines {first} and {last}.")
        written = f"{before}{begin}\n{text}\n{end}{after}"
    return written


def _shown(results: Path, machine: str, lane: str) -> list[tuple[str, str, str]]:
    """The beginning of what `compare` prints of SHOWN, for `_between`; nothing where these were not measured."""
    from ..analysis import compare as said

    if not {*SHOWN} <= said.releases_of(results, machine):
        return []
    lines = said.text(said.find(results, machine, lane, *SHOWN, ["selection"]), everything=False).splitlines()
    return [(BEGIN_OUTPUT, END_OUTPUT, "\n".join(["```text", *lines[:MOST_LINES], "…", "```"]))]


def _holds(file: Path, text: str) -> bool:
    return file.exists() and file.read_text(encoding="utf-8") == text


def _of_own(workload: Path) -> tuple[Path, dict[str, str]]:
    """The results of a user's file, and the versions that its present text makes. Raises UserError where it is not read."""
    from ..measuring.subjects import OwnWorkload
    from ..store.sources import own_versions

    own = OwnWorkload.of(workload)
    return own.folder / "results", own_versions(own.question, own.text)


def _skipped(results: Path, environment: str, tags: Sequence[str]) -> list[str]:
    """Why releases were skipped for the file whose `results` these are, in sentences."""
    from ..store.skipped import reasons

    why = reasons(results.parent, environment)
    return [f"{tag} was skipped: {why[tag]}" for tag in tags if tag in why]


def _show_packages(workload: Path, results: Path, machine: str, environment: str, old: str, new: str) -> None:
    """Says which packages differ, for a file that asks for packages."""
    from ..measuring.subjects import OwnWorkload
    from ..store.launches import packages_words, read_environment

    own = OwnWorkload.of(workload)
    if not own.requirements:
        return
    before, now = (read_environment(results, machine, tag, environment) for tag in (old, new))
    if words := packages_words(before, now, own.packages):
        click.echo(words)


@click.command("results")
def results_of_own() -> None:
    """List the files of your own that were measured."""
    from ..analysis.not_run import not_run
    from ..analysis.series import history
    from ..store.launches import read_launches
    from ..store.own import measured, only_skipped
    from ..store.skipped import reasons

    found = list(measured(cache()))
    for each in found:
        click.echo(
            f"{each.name}: {', '.join(each.releases)}, on {each.machine}, {each.environment}, last on {each.last[:10]}"
        )
        click.echo(f"  {each.folder}")
        launches = read_launches(each.folder / "results", each.machine, each.environment)
        for sentence in not_run(history(launches)):
            click.echo(f"  {sentence}")
        for tag, why in reasons(each.folder, each.environment, each.began).items():
            click.echo(f"  {tag} was skipped: {why}")
    skipped = list(only_skipped(cache()))
    for folder, environment in skipped:
        click.echo(f"{folder.name}: nothing was measured in {environment}")
        for tag, why in reasons(folder, environment).items():
            click.echo(f"  {tag} was skipped: {why}")
    if not found and not skipped:
        click.echo(
            f"Nothing is in {cache()} yet. Measure a file with `torch-history run --workload mine.py 2.14.1 2.15.0`."
        )


@click.command()
def metrics() -> None:
    """List what can be measured of a file of your own.

    Name those that you want in the file, such as METRICS = ("time", "first_call"). See docs/own-workload.md.
    """
    click.echo(metrics_listed())


@click.command()
@click.argument("old")
@click.argument("new")
@click.option("--json", "as_json", is_flag=True, help="Print everything that is known of both, as JSON.")
def facts(old: str, new: str, as_json: bool) -> None:
    """Show how the wheels of two releases differ.

    It is what the wheels say; nothing is downloaded or installed for it. docs/generated/facts.md has all releases.
    """
    import msgspec

    from ..releases import wheels

    suite = suites.load()
    known = wheels.load(suite.list.with_name(wheels.FILE))
    tags = [suite.axis.find(name).tag for name in (old, new)]
    if missing := [tag for tag in tags if tag not in known]:
        raise UserError(f"The wheels of {missing[0]} are not read yet. `torch-history sync --wheels` reads them.")
    before, now = (known[tag] for tag in tags)
    if as_json:
        click.echo(json.dumps({tag: msgspec.to_builtins(known[tag]) for tag in tags}, indent=1))
        return
    rows = [("", *tags), *wheels.differences(before, now)]
    pythons = " and ".join(dict.fromkeys((before.python, now.python)))
    click.echo(f"{tags[0]} -> {tags[1]}, from the wheels for Python {pythons}.")
    click.echo("GPU architectures are those that only one of the two has.\n")
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for row in rows:
        click.echo(f"{row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]}".rstrip())


COMMANDS = (publish, document, facts, environment, compare_stored, results_of_own, metrics, regressions)
