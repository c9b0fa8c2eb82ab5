"""Commands that read results/ and say what is in it: `publish`, `compare`, `regressions`."""

import contextlib
import gc
import json
import shlex
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..system.errors import UserError
from ..system.program import cache
from . import suite as suites
from .options import WHOLE_PATH, form_of, site_address, whole_lane
from .output import bold, console, machine_of, plain
from .suite import DEFAULT_LANE

if TYPE_CHECKING:
    from ..analysis.compare import Comparison
    from ..analysis.series import History
    from ..store.launches import Case

_on_machine = click.option(
    "--machine", help="A folder of results/ [default: this machine, else the one with most releases]."
)
_in_lane = click.option(
    "--lane",
    "environment",
    callback=lambda _context, _option, value: whole_lane(value),
    default=DEFAULT_LANE,
    show_default=True,
    help="A Python version, or a lane as results/ names it, such as installed-py3.12.",
)


@click.command()
@click.option("--html-dir", type=WHOLE_PATH, help="Folder to write the site to [default: html].")
@click.option("--results-dir", type=WHOLE_PATH, help="Results to publish [default: results].")
@click.option(
    "--url", default="", callback=site_address, help="Address of the site, for its feeds [default: relative links]."
)
def publish(html_dir: Path | None, results_dir: Path | None, url: str) -> None:
    """Build the site from results/, including asv's dashboard. It opens on the newest results."""
    from ..measuring.machine import describe
    from ..site.build import STEPS, publish_site
    from ..store.launches import machines_in
    from ..system.files import naming

    suite = suites.load()
    conf = suite.config()
    conf.results_dir = str(results_dir or conf.results_dir)
    target = html_dir or suite.root / "html"
    here = describe()["machine"]
    out = console()

    def begin(step: str) -> None:
        out.print(f"Step {STEPS.index(step) + 1} of {len(STEPS)}: {step}", highlight=False)

    with naming(target):
        index = publish_site(conf, suite.axis, target, url, begin, here)
    lane, *_ = json.loads((index.parent / "data" / "index.json").read_text(encoding="utf-8"))["lanes"]
    opens = f"of this machine, {here}"
    if lane["machine"] != here:
        is_measured = here in machines_in(Path(conf.results_dir))
        said = f"results of this machine, {here}, are older" if is_measured else f"{here} has no results"
        opens = f"{lane['newest']} of another machine, {lane['machine']}: {said}"
    out.print(plain(f"The site is in {index}. Open that file in a browser. It opens on the newest results, {opens}."))


@click.command(
    "compare",
    epilog="Exit codes: 0 success, 1 refused, 2 wrong usage, 3 a series failed --fail-on.",
)
@click.argument("old", required=False)
@click.argument("new", required=False)
@_on_machine
@_in_lane
@click.option("--workload", type=WHOLE_PATH, help="A file of your own that was measured before.")
@click.option("--question", "questions", multiple=True, help="Only this question. Repeatable.")
@click.option("--metric", "metrics", multiple=True, help="Only this metric, such as time. Repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON. docs/commands.md lists the keys.")
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
    old: str | None,
    new: str | None,
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
    """Say what an upgrade from OLD to NEW costs, and why. Reads stored results only.

    Without releases, it lists the files of your own that were measured.
    """
    from ..analysis import compare as said
    from ..store.launches import machines_in, packages_words, read_environment, read_launches
    from ..store.own import reasons
    from ..store.sources import own_versions

    if not old:
        _list_own()
        return
    if not new:
        raise click.UsageError("Name the other release, too.")
    form = form_of(as_json, as_markdown)
    if url and not as_markdown:
        raise click.UsageError("--url is for the link in the Markdown. Add --markdown.")
    if url and workload:
        raise click.UsageError("--url and --workload exclude each other. A published site has no results of own files.")
    try:
        limits = said.parse_fail_on(fail_on) if fail_on is not None else {}
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--fail-on") from error
    gc.disable()  # what a short command makes goes with its process
    suite = suites.load()
    own = None
    if workload:
        from ..measuring.subjects import OwnWorkload  # what measures takes long to import

        own = OwnWorkload.of(workload)
    results, versions = (own.folder / "results", own_versions(own.question, own.text)) if own else (suite.results, None)
    tags = suite.axis.find(old).tag, suite.axis.find(new).tag
    every = (one for name in machines_in(results) for one in read_launches(results, name))
    if own and versions and not any(versions.get(one.benchmark) == one.version for one in every):
        measure = f"torch-history run --workload {shlex.quote(str(workload))} {' '.join(tags)}"
        raise UserError(f"{own.path.name} was not measured as it is now. Measure it with `{measure}`.")
    machine = machine_of(results, machine, tags, environment, questions)
    try:
        comparison = said.find(results, machine, environment, *tags, questions, metrics, versions)
        comparison = replace(comparison, file=str(workload or ""), axis=[one.tag for one in suite.axis.releases])
    except said.CannotCompare as error:
        why = reasons(results.parent, environment)
        skipped = [f"{tag} was skipped: {why[tag]}" for tag in tags if tag in why]
        raise UserError(" ".join([str(error), *skipped])) from error
    failed = said.failing(comparison, limits)
    if form == "json":
        click.echo(said.as_json(comparison, failed))
    elif form == "markdown":
        link = ""
        if url:
            from urllib.parse import urlencode

            from ..site.data import lane_id

            old, new = tags
            link = f"{url}/index.html#{urlencode({'lane': lane_id(machine, environment), 'from': old, 'to': new})}"
        click.echo(said.markdown(comparison, everything, failed, link))
    else:
        hint = "" if comparison.changed else _deciding(results, comparison)
        click.echo("\n".join(filter(None, [said.text(comparison, everything, failed, bold), hint])))
        for sentence in said.never_ran(comparison) if own else ():
            click.echo(sentence)
        if own and own.requirements:
            before, now = (read_environment(results, machine, tag, environment) for tag in tags)
            if words := packages_words(before, now, own.packages):
                click.echo(words)
    if failed:
        sys.exit(3)


def _list_own() -> None:
    """Prints each file of the user's own that was measured: where, when, and what did not run of it."""
    from ..analysis.series import history
    from ..store.launches import read_launches
    from ..store.own import measured, reasons

    lines = []
    for each in measured(cache()):
        if each.began:
            where = f"on {each.machine}, {each.environment}, last on {max(each.began.values())[:10]}"
            lines += [f"{each.name}: {', '.join(each.began)}, {where}", f"  {each.folder}"]
            launches = read_launches(each.folder / "results", each.machine, each.environment)
            lines += [f"  {sentence}" for sentence in _not_run(history(launches))]
        else:
            lines.append(f"{each.name}: nothing was measured in {each.environment}")
        skipped = reasons(each.folder, each.environment, each.began)
        lines += [f"  {tag} was skipped: {why}" for tag, why in skipped.items()]
    nothing = f"Nothing is in {cache()} yet. Measure a file with `torch-history run --workload mine.py 2.14.1 2.15.0`."
    click.echo("\n".join(lines) or nothing)


def _not_run(found: "History") -> list[str]:
    """A sentence for each case that gave no number at all on some releases, by reason: `plain small did not run on v2.0.1:
    no kernel.` A case that lacks one metric and has another did run."""
    every: dict[tuple[tuple[str, ...], str], list[Case]] = defaultdict(list)
    for series, of in found.items():
        for tag, pairs in of.items():
            every[series.parameters, tag] += [case for _, case in reversed(pairs)]
    releases: dict[tuple[tuple[str, ...], str], list[str]] = defaultdict(list)
    for (parameters, tag), cases in every.items():
        if all(case.number is None for case in cases):
            releases[parameters, " ".join(cases[0].reason.split()).rstrip(".")].append(tag)
    said = []
    for (parameters, reason), tags in releases.items():
        case = " ".join(part.strip("'") for part in parameters).strip()
        said.append(f"{case} did not run on {', '.join(tags)}: {reason}.")
    return said


def _deciding(results: Path, comparison: "Comparison") -> str:
    """Where nothing changed: what would decide the times that are inconclusive."""
    from ..measuring.budget import effort, left_words
    from ..store.launches import read_launches

    series = {change.series.benchmark for change in comparison.changes}
    stored = read_launches(results, comparison.machine, comparison.environment)
    left = effort((launch for launch in stored if launch.benchmark in series), [(comparison.old, comparison.new)])
    return left_words([left], f"On that machine `{comparison.command} {comparison.old} {comparison.new}` with")


@click.command()
@_on_machine
@_in_lane
@click.option("--question", "questions", multiple=True, help="Only this question. Repeatable.")
@click.option(
    "--largest", is_flag=True, help="List the largest change of each question at each release, largest first."
)
@click.option(
    "--limit", type=click.IntRange(0), default=40, show_default=True, help="Changes to look at. 0 looks at all."
)
@click.option(
    "--all", "everything", is_flag=True, help="List each change by itself, not those of one finding together."
)
def regressions(
    machine: str | None, environment: str, questions: tuple[str, ...], largest: bool, limit: int, everything: bool
) -> None:
    """List changes over all releases, newest release first.

    Changes are steps, excursions and drifts. docs/verdicts.md defines them. Changes of one variant or one cause at one
    release are one finding.
    """
    from ..analysis import compare as said
    from ..analysis import steps
    from ..analysis.labels import explained
    from ..analysis.replication import other_places
    from ..analysis.series import history
    from ..store.launches import read_on_axis

    gc.disable()  # what a short command makes goes with its process
    suite, wanted = suites.load(), [said.plain_name(name) for name in questions]

    def tell(machine: str) -> int:
        """Prints what is found on a machine, and returns how many changes these are."""
        stored = history(read_on_axis(suite.results, machine, suite.axis, environment, wanted))
        missing = [name for name in wanted if all(one.question != name for one in stored)]
        if missing or not stored:
            what = f"{' or '.join(missing) or 'any question'} in {environment} on {machine}"
            raise UserError(f"There are no results of {what}. Name another --question, --lane or --machine.")
        found = steps.of_history(stored, suite.axis)
        shown = (steps.largest(found) if largest else found)[: limit or None]
        others = other_places(suite.results, machine, environment, stored)
        told, say = said.tell(shown, stored, suite.results, machine, others), explained()
        for each in said.one_by_one(told) if everything or largest else told:
            click.echo(say(each.sentence, each.names))
        for line in steps.unconnected(stored, suite.axis):
            click.echo(line)
        tally = Counter(step.verdict.shown for step in found)
        words = ", ".join(f"{count} {word}" for word, count in tally.most_common()) or "nothing"
        hidden = f" {len(found) - len(shown)} are not shown. --limit 0 shows all." if len(shown) < len(found) else ""
        click.echo(f"On {machine} in {environment}: {words}.{hidden}")
        return len(found)

    chosen = machine_of(suite.results, machine, (), environment, questions)
    if tell(chosen) or machine:
        return
    longest = chosen
    with contextlib.suppress(said.CannotCompare):
        longest = said.choose_machine(suite.results, None, "", (), environment, questions)
    if longest != chosen:
        click.echo(f"\nResults of {longest}, which has the longest history:")
        tell(longest)
