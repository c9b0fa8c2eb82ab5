"""What the commands of `fleet` do: this module imports all that plans, submits and collects."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from contract.request import Request

from ..analysis import agreement
from ..errors import UserError
from ..fleet import collecting, simulation
from ..fleet.attempts import job_folder
from ..fleet.head import Head, Standing, numbered, only_head, sentence
from ..fleet.order import FLEETS, ORDER, Order
from ..fleet.planning import Job, Rates, Work, jobs, makespan, rates
from ..fleet.scheduler import Resources, Scheduler, nodes_of, scheduler
from ..measuring.machine import describe
from ..measuring.plan import chosen, measurable
from ..releases import environments
from ..store.launches import read_launches
from ..store.machines import RECORD
from ..store.sources import versions
from ..system.files import read_object, write_atomically
from . import suite as suites
from .options import seconds_of
from .output import console, plain
from .plan import machine_with_durations

ASKED = "asked.json"
"""File of a fleet that says which executor its jobs were handed to."""


def plan(**asked: Any) -> None:
    """Prints the jobs, and when N nodes are done with them. Raises UserError where nothing can be measured."""
    found = suites.load()
    forecast = _jobs(found, asked)
    _print(forecast, asked["nodes"], asked["processors"])


def run(**asked: Any) -> bool:
    """Runs a fleet until all its jobs are done or given up, and collects; returns whether none was given up."""
    found, out = suites.load(), console()
    forecast = _jobs(found, asked)
    order = _order(found, asked, forecast)
    handed = _resources(asked, forecast)
    at_work = scheduler(asked["executor"], handed)
    folder = _folder(found, order, asked["again"])
    with only_head(folder):
        head = _begin(found, folder, order, at_work, asked["executor"], asked["nodes"])
        if head.order.only != "counts":
            out.print(_sharing(head.order))
        if asked["detach"]:
            for standing in head.start():
                out.print(plain(sentence(standing)))
            return True
        everything = head.watch(asked["poll"])
        _collect(found, head, out.print)
    return everything


def check(**asked: Any) -> bool:
    """Runs a check of nodes until all its jobs are done or given up, and says which agree; returns whether none was given
    up. Raises UserError where no node is known."""
    found, out = suites.load(), console()
    here = [os.uname().nodename]
    nodes = tuple(asked["nodes"] or (nodes_of(asked["partition"]) if asked["executor"] == "slurm" else here))
    if asked["slowed"] and asked["slowed"] not in nodes:
        raise UserError(f"{asked['slowed']} is not among the nodes {', '.join(nodes)}. Name one of them with --slow.")
    axis = found.axis
    release = axis.find(asked["release"]) if asked["release"] else measurable(list(axis.releases), asked["lane"])[0][-1]
    known = {**asked, "nodes": len(nodes), "only": "times", "budget": None}
    order = replace(_order(found, known, [Job(0, (release.tag,), 0.0, 0.0)] * len(nodes)), nodes=nodes)
    order = replace(order, slowed=asked["slowed"], shares={})
    folder = _folder(found, order, again=False)
    if (folder / ORDER).exists() and all(job_folder(folder, number).done for number in range(len(nodes))):
        folder = _folder(found, order, again=True)
    hour = Job(0, (release.tag,), 3600.0, 0.0)
    with only_head(folder):
        at_work = scheduler(asked["executor"], _resources(known, [hour]))
        head = _begin(found, folder, order, at_work, asked["executor"], len(nodes))
        everything = head.watch(asked["poll"])
        _say_agreement(found, head, release.tag, out.print)
    return everything


def status(name: str | None) -> None:
    """Prints a table of a fleet's jobs. Raises UserError where there is no fleet."""
    found, out = suites.load(), console()
    head = _head(found, name, out.print)
    table = Table(box=None)
    for title in ("job", "releases", "state", "where", "round", "launches", "starts", "time left"):
        table.add_column(title)
    standings = head.look()
    for standing in standings:
        table.add_row(*_cells(standing))
    out.print(f"Fleet {head.fleet.name}")
    out.print(table)
    for standing in standings:
        if standing.state == "failed":
            out.print(plain(sentence(standing)))


def cancel(name: str | None) -> None:
    """Ends a fleet's jobs. Raises UserError where the scheduler does not answer."""
    found, out = suites.load(), console()
    head = _head(found, name, out.print)
    states = [standing.state for standing in head.cancel()]
    out.print(
        f"Fleet {head.fleet.name} is cancelled: {states.count('done')} of {len(states)} jobs were done. "
        "`torch-history fleet collect` adds what was measured to the results."
    )


def collect(name: str | None) -> None:
    """Merges a fleet's results. Raises UserError where another process does so at the same time."""
    found, out = suites.load(), console()
    head = _head(found, name, out.print)
    if head.order.nodes:
        _say_agreement(found, head, head.order.jobs[0][0], out.print)
    else:
        _collect(found, head, out.print)


PAGE, BEGIN, END = (
    Path("docs/fleet.md"),
    "<!-- simulation: by `torch-history fleet simulate --write` -->",
    "<!-- end of simulation -->",
)


def simulate(count: int, lanes: int, models: int, machine: str | None, seed: int, write: bool) -> None:
    """Prints the table of a simulation, or writes it into the page. Raises UserError where the page has no place for it."""
    found = suites.load()
    named = machine or _machine_with_durations(found)
    known = rates(read_launches(found.results, named)) if named else Rates({}, {})
    work = Work(all_questions(found.root), "", launches=5)
    releases = [f"v{number}" for number in range(count)]
    ran = [
        simulation.simulate(releases, lanes, work, known, simulation.Cluster(nodes, models), seed)
        for nodes in (64, 128, 256, 512, 1024)
    ]
    text = simulation.table(ran)
    if not write:
        click.echo(text)
        return
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UserError(f"{PAGE} has no place for the table: put it between the lines {BEGIN} and {END}.")
    write_atomically(PAGE, f"{before}{begin}\n{text}\n{end}{after}")


# --- the work


def _jobs(found: suites.Suite, asked: dict[str, Any]) -> list[Job]:
    """The jobs of what is asked, forecast from the durations that are stored."""
    releases = chosen(found.axis, asked["releases"], asked["lane"], click.echo, alone=asked["only"] == "counts")
    environment = f"release-py{asked['lane']}"
    machine = asked["machine"] or _machine_with_durations(found)
    stored = read_launches(found.results, machine, environment, asked["questions"]) if machine else ()
    known = rates(stored)
    work = Work(
        questions=asked["questions"] or all_questions(found.root),
        only=asked["only"] or "",
        launches=1 if asked["only"] == "counts" else asked["launches"],
        budget=seconds_of(asked["budget"]) if asked["budget"] else 0.0,
    )
    if missing := [question for question in work.questions if question not in known.questions]:
        click.echo(f"No duration of {', '.join(missing)} is stored, so the forecast of these is a guess.")
    scratch = asked.get("scratch") or str(found.env)

    def installed(tag: str) -> bool:
        return (Path(scratch) / f"{tag}-py{asked['lane']}" / environments.MARK).exists()

    return jobs([release.tag for release in releases], work, known, asked["nodes"], installed)


def _machine_with_durations(found: suites.Suite) -> str:
    return machine_with_durations(found.results, describe(Request.of(os.environ))["machine"], click.echo)


def all_questions(root: Path) -> tuple[str, ...]:
    return tuple(sorted({benchmark.partition(".")[0] for benchmark in versions(root)} - {"own", "explained"}))


def _print(forecast: Sequence[Job], nodes: int, processors: int | None) -> None:
    """The jobs, and the makespan on fewer and more nodes, as far as there are jobs for them. Of nodes that share
    `processors`, one runs on each at a time."""
    table = Table(box=None)
    for title in ("job", "releases", "minutes", "GB to install"):
        table.add_column(title, justify="left" if title == "releases" else "right")
    for job in forecast:
        table.add_row(str(job.number), ", ".join(job.releases), f"{job.seconds / 60:.1f}", f"{job.gigabytes:.0f}")
    out = console()
    out.print(table)
    if anchor := forecast[0].anchor:
        out.print(f"Each job measures {anchor} as well, so that all can be compared.")
    seconds = [job.seconds for job in forecast]
    total = f"{len(forecast)} jobs, {sum(seconds) / 60:.1f} minutes of one node in total"
    out.print(f"{total}, at most {sum(job.gigabytes for job in forecast):.0f} GB to install.")
    for number in sorted({min(number, len(forecast)) for number in (1, nodes, 2 * nodes)}):
        words = f"{number} node{'s' if number > 1 else ''}"
        out.print(f"{words}: done after {makespan(seconds, min(number, processors or number)) / 60:.1f} minutes.")
    if nodes > len(forecast):
        out.print(f"More than {len(forecast)} would have nothing to do.")


def _order(found: suites.Suite, asked: dict[str, Any], forecast: Sequence[Job]) -> Order:
    if asked["removes"] and not asked["scratch"]:
        raise UserError(
            "--prune removes environments from the --scratch of a node, and none is named. Add --scratch, or drop --prune: "
            "in env/ other jobs may be using them."
        )
    return Order(
        root=str(found.root.resolve()),
        env=str(found.env.resolve()),
        results=str(found.results.resolve()),
        lane=asked["lane"],
        jobs=tuple(job.releases for job in forecast),
        anchor=forecast[0].anchor,
        questions=tuple(asked["questions"]),
        sizes=tuple(asked["sizes"]),
        launches=1 if asked["only"] == "counts" else asked["launches"],
        only=asked["only"] or "",
        budget=seconds_of(asked["budget"]) if asked["budget"] else 0.0,
        device=asked["device"] or "",
        scratch=asked["scratch"],
        offline=asked["offline"],
        removes=asked["removes"],
        shares={} if asked["only"] == "counts" else agreement.shares(found.results, _machines(found.results)),
    )


def _resources(asked: dict[str, Any], forecast: Sequence[Job]) -> Resources:
    """What each job asks of the scheduler. Raises UserError for an option of sbatch without a value."""
    more = {}
    for option in asked["more"]:
        name, equals, value = option.partition("=")
        if not equals:
            raise UserError(
                f"--sbatch takes NAME=VALUE, and '{option}' has no value. Write reservation=night, for example."
            )
        more[name.lstrip("-")] = value
    longest = max(job.seconds for job in forecast)
    limit = seconds_of(asked["time_limit"]) if asked["time_limit"] else 2 * longest + 1800
    return Resources(
        nodes=asked["nodes"],
        partition=asked["partition"],
        account=asked["account"],
        qos=asked["qos"],
        constraint=asked["constraint"],
        gres=asked["gres"],
        cpus=asked["cpus"],
        memory=asked["memory"],
        exclusive=asked["exclusive"],
        minutes=max(1, round(limit / 60)),
        more=more,
    )


# --- fleets on disk


def _fleets(found: suites.Suite) -> Path:
    return found.env.resolve() / FLEETS


def _folder(found: suites.Suite, order: Order, again: bool) -> Path:
    """The folder of that order: the newest of its fleets, or a new one."""
    first = _fleets(found) / order.digest
    if again:
        return numbered(first)
    later = sorted(_fleets(found).glob(f"{order.digest}-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    return [first, *later][-1]


def _head(found: suites.Suite, name: str | None, tell: Callable[[str], None]) -> Head:
    """Looks at a fleet by its name, or at the one that was asked for last. Raises UserError where there is none."""
    known = {path.parent.name: path for path in _fleets(found).glob(f"*/{ASKED}")}
    if not known:
        raise UserError("There is no fleet here yet. `torch-history fleet run` starts one.")
    if name and name not in known:
        raise UserError(f"There is no fleet '{name}' here. There are {', '.join(sorted(known))}.")
    path = known[name] if name else max(known.values(), key=lambda path: path.stat().st_mtime)
    at_work: Scheduler = scheduler(str(read_object(path).get("executor", "slurm")), Resources())
    return Head(path.parent, at_work, 1, tell)


def _begin(found: suites.Suite, folder: Path, order: Order, at_work: Scheduler, executor: str, nodes: int) -> Head:
    """A head of the fleet in `folder`, which is new or goes on as it was begun. Raises UserError."""
    out = console()
    if not (folder / ORDER).exists():
        order.save(folder)
    write_atomically(folder / ASKED, f'{{"executor": "{executor}"}}')
    out.print(f"Fleet {folder.name}: {len(Order.load(folder).jobs)} jobs in {plain(str(folder))}.")
    if order.offline:
        _prefetch(found, order, out.print)
    return Head(folder, at_work, nodes, lambda words: out.print(plain(words)))


def _machines(results: Path) -> list[str]:
    """Those with a folder, whether or not anything but a check is in it."""
    return sorted(path.name for path in results.glob("*/") if (path / RECORD).exists())


def _sharing(order: Order) -> str:
    """Which nodes share a folder for times, in a sentence."""
    groups: dict[str, list[str]] = {}
    for nodes in order.shares.values():
        for node, known in nodes.items():
            groups.setdefault(str(known["with"]), []).append(node)
    if not groups:
        command = "`torch-history fleet check` checks them"
        return f"No check says that nodes agree, so each has its own folder for times. {command}."
    words = "; ".join(", ".join(together) for together in groups.values())
    return f"By the newest check these nodes share a folder for times: {words}. Every other one has its own."


def _say_agreement(found: suites.Suite, head: Head, release: str, tell: Callable[[str], None]) -> None:
    """Says what a check found so far, and keeps it in the results, unless a node was slowed on purpose."""
    order = head.order
    counted = [attempt for job in head.jobs if (attempt := job.counted)]
    environment = f"release-py{order.lane}"
    results = found.env / FLEETS / head.fleet.name / "slowed" if order.slowed else found.results
    for machine in collecting.collect_check(counted, release, environment, results, found.env):
        agreed = agreement.newest(results, machine)
        for words in [agreement.heading(agreed), *agreed.words] if agreed else []:
            tell(plain(words))
    if order.slowed:
        tell(plain(f"{order.slowed} was slowed by 10 % on purpose, so nothing was stored."))


def _collect(found: suites.Suite, head: Head, tell: Callable[[str], None]) -> None:
    """Merges the finished and the closed jobs of a fleet into the results, and says what is missing."""
    counted = [attempt for job in head.jobs if (attempt := job.counted)]
    collected = collecting.collect(counted, found.results, found.env)
    missing = sum(1 for job in head.jobs if not job.done)
    left = f" {missing} of {len(head.jobs)} jobs are not done and were left." if missing else ""
    torn = f" {collected.damaged} torn lines were skipped." if collected.damaged else ""
    tell(f"{collected.lines} lines of launches are new, {collected.known} were there.{torn}{left}")


def _prefetch(found: suites.Suite, order: Order, tell: Callable[[str], None]) -> None:
    """Installs every release here, so that nodes without a network find it, or its packages in the cache. Raises
    UserError."""
    from ..measuring.session import load_suite

    conf, axis = load_suite(found.root)
    conf.env_dir = order.env
    environment = environments.ReleaseEnvironment(conf, order.lane, {}, {})
    for tag in sorted({tag for job in order.jobs for tag in job}, key=axis.position):
        tell(f"Preparing {tag}")
        try:
            environment.install_project(conf, None, tag)
        except environments.InstallationError as error:
            raise UserError(str(error)) from error


def _cells(standing: Standing) -> list[str]:
    first, last = standing.releases[0], standing.releases[-1]
    releases = first if first == last else f"{first} to {last}"
    releases += " (more rounds)" if standing.further else ""
    numbers = [str(value) if value else "" for value in (standing.round, standing.launches, standing.begun)]
    return [str(standing.number), releases, standing.state, plain(standing.where), *numbers, standing.left]
