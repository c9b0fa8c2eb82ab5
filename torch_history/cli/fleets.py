"""What the commands of `fleet` do: this module imports all that plans, submits and collects."""

import os
import platform
import socket
from dataclasses import dataclass, replace
from pathlib import Path

import click

from contract.request import Request

from ..measuring.choice import refuse_unknown
from ..measuring.fleet import head
from ..measuring.fleet.attempts import FLEETS, OPEN, ORDER, PLACES, RESULTS, Order
from ..measuring.fleet.job import main as in_a_job
from ..measuring.fleet.planning import Work, all_questions, cut, machine_with_durations, rates, sessions
from ..measuring.fleet.slurm import Slurm
from ..measuring.machine import asked as asked_for
from ..measuring.machine import checked, describe
from ..measuring.plan import anchored, chosen
from ..releases import environments
from ..store.launches import read_launches
from ..system.errors import UserError
from ..system.locks import alone, locked
from ..system.scratch import temporary_files
from . import suite as suites
from .output import console, harmless
from .run import Asked


def tell(words: str) -> None:
    click.echo(harmless(words))


@dataclass(frozen=True)
class Cluster:
    """Where a fleet runs: on so many `nodes` at a time, with options of `sbatch`; `scratch` and `offline` as in Order."""

    nodes: int
    sbatch: tuple[str, ...] = ()
    scratch: str = ""
    offline: bool = False


def plan(asked: Asked, cluster: Cluster) -> None:
    """Prints the jobs, and how long they take by stored durations. Raises UserError where nothing can be measured."""
    found = suites.load()
    order = _order(found, asked, cluster)
    request = replace(given := asked_for(), device=order.device or given.device)
    here = describe(request) if request.device != "cuda" else {"machine": "", "device": "cuda"}  # GPUs are in nodes
    lane = f"release-py{order.lane}"
    machine = machine_with_durations(found.results, here["machine"], here["device"], lane, tell)
    known = rates(read_launches(found.results, machine, lane, order.questions) if machine else ())
    work = Work(order.questions or all_questions(found.root), order.only, order.launches, order.budget)
    every = [anchored(releases, order.anchor or None) for releases in order.jobs]
    console().print(sessions(every, work, known, "job"))
    turns, most = -(-len(every) // cluster.nodes), max(work.seconds(known, tags) for tags in every) / 60
    tell(f"With {cluster.nodes} at a time it takes {turns * most:.1f} minutes at most, besides installing.")


def run(asked: Asked, cluster: Cluster, detach: bool) -> bool:
    """Runs a fleet until all its jobs are done or given up, and collects; to `detach`, submits it. Returns whether all are
    done. Raises UserError where it cannot be submitted, or another process looks after it."""
    found = suites.load()
    order = _order(found, asked, cluster)
    fleet = found.env.resolve() / FLEETS / order.name
    named = (option.partition("=") for option in cluster.sbatch)
    slurm = Slurm(fleet, {name: value for name, _, value in named})
    for folder in (fleet.parent, fleet):  # whoever may write there says what jobs do
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    with locked(fleet / "head", f"looks after the fleet {fleet.name}"):
        if (fleet / ORDER).exists():  # what is measured in which job stays; how is as it was asked for last
            order = replace(Order.load(fleet), budget=order.budget, scratch=order.scratch, offline=order.offline)
        order.save(fleet)
        tell(f"Fleet {fleet.name}: {len(order.jobs)} jobs in {fleet}.")
        if order.offline:
            _install(found, order)
        left = head.watch(fleet, slurm, cluster.nodes, tell, detach)
        if detach:
            return True
        _collect(found, fleet)
    if left:
        tell(f"{len(left)} of {len(order.jobs)} jobs are not done. To start again from nothing, remove {fleet}.")
    return not left


def status(name: str | None) -> None:
    """Prints how a fleet's jobs stand. Raises UserError where there is no fleet, or Slurm does not answer."""
    fleet = _known(suites.load(), name)
    live = Slurm(fleet, {}).live()
    tell(f"Fleet {fleet.name}")
    for job in head.jobs_of(fleet):
        tell(f"{head.sentence(job, live)} {job.lines} lines of launches, starts: {len(job.attempts)}.")


def cancel(name: str | None) -> None:
    """Ends a fleet's jobs and merges what they measured. Raises UserError where Slurm or the lock refuses."""
    found = suites.load()
    fleet = _known(found, name)
    tell(f"Fleet {fleet.name}: cancelling its jobs, and waiting for what they still write.")
    head.cancel(fleet, Slurm(fleet, {}))
    _collect(found, fleet)


def _order(found: suites.Suite, asked: Asked, cluster: Cluster) -> Order:
    refuse_unknown(asked.questions, all_questions(found.root), "question")
    checked(Request(device=asked.device))
    if asked.device == "recorder":
        asked = replace(asked, only="counts")
    counts = asked.only == "counts"
    releases = chosen(found.axis, asked.releases, asked.lane, tell, alone=counts)
    jobs, anchor = cut([release.tag for release in releases], cluster.nodes, apart=counts)
    return Order(
        root=str(found.root.resolve()),
        env=str(found.env.resolve()),
        jobs=tuple(jobs),
        anchor=anchor,
        launches=1 if counts else asked.rounds,
        budget=asked.budget or 0.0,
        places=tuple(sorted(each for each in cluster.sbatch if each.partition("=")[0] in PLACES)),
        **{name: getattr(asked, name) for name in ("lane", "questions", "sizes", "only", "device")},
        **{name: getattr(cluster, name) for name in ("scratch", "offline")},
    )


def run_session(order: Order, releases: tuple[str, ...], attempt: Path) -> None:
    """What a job does: runs a session into the folder of `attempt`; times have a folder for each node. Raises UserError."""
    from ..measuring.machine_records import use
    from ..measuring.recording import RecordedResults
    from ..measuring.session import Session
    from .running import Run, requested

    if order.offline:
        # What the login node installed lies beside its environments, also where a node has its own.
        os.environ.update({"UV_OFFLINE": "1", "UV_CACHE_DIR": str(environments.cache(Path(order.env)))})
    os.chdir(order.root)
    found = replace(suites.load(), results=attempt / RESULTS, env=Path(order.scratch or order.env))
    conf, names = found.config(), ("lane", "questions", "sizes", "launches", "only", "device")
    asked = Asked(budget=order.budget or None, **{name: getattr(order, name) for name in names})
    request = requested(asked, None)
    record, node = describe(request), os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    if order.only != "counts":
        record["machine"] += f"-on-{node}"
    use(record)
    RecordedResults.node = {"node": node, "job": os.environ.get("SLURM_JOB_ID", ""), "kernel": platform.release()}
    run, tags = Run(asked, found, None, request, conf, console()), anchored(releases, order.anchor or None)
    anchor = order.anchor if len(tags) > len(releases) else ""
    plan = replace(run.plan_of([found.axis.find(tag) for tag in tags], anchor), budget=asked.budget)
    # Bound to some processors of its node, a job with one thread is not disturbed by what keeps the others busy.
    shares = request.device == "cpu" and request.threads == 1 and len(os.sched_getaffinity(0)) < (os.cpu_count() or 1)
    with temporary_files(), alone(run.environment.root, shared=True):
        of, folder = (conf, found.axis, plan, run.environment), attempt / "sessions"
        Session(*of, folder=folder, shares=shares, request=request).measure(run.out)


def _install(found: suites.Suite, order: Order) -> None:
    """Installs every release here, for nodes without a network. Raises UserError where that fails."""
    conf = found.config()
    conf.env_dir = order.env
    environment = environments.ReleaseEnvironment(conf, order.lane, {}, {})
    for tag in sorted({tag for job in order.jobs for tag in job}, key=found.axis.position):
        tell(f"Preparing {tag}")
        try:
            environment.install_project(conf, None, tag)
        except environments.InstallationError as error:
            raise UserError(str(error)) from error


def _known(found: suites.Suite, name: str | None) -> Path:
    """A fleet by its name, or the one that was asked for last. Raises UserError where there is none."""
    known = sorted((found.env.resolve() / FLEETS).glob(f"*/{ORDER}"), key=lambda path: path.stat().st_mtime)
    named = [path.parent for path in known if name in (None, path.parent.name)]
    if not named:
        there = ", ".join(path.parent.name for path in known) or "none yet; `torch-history fleet run` starts one"
        raise UserError(f"There is no such fleet here. There are: {there}.")
    return named[-1]


def _collect(found: suites.Suite, fleet: Path) -> None:
    """Merges the jobs of a fleet that are no longer open into the results, and says what is missing."""
    collected = head.collect_jobs(fleet, found.results, found.env)
    torn = f" {collected.damaged} torn lines were skipped." if collected.damaged else ""
    open_ = sum(job.state == OPEN for job in head.jobs_of(fleet))
    missing = f" {open_} jobs are not done and were skipped." if open_ else ""
    tell(f"{collected.lines} lines of launches are new, {collected.known} were there.{torn}{missing}")


if __name__ == "__main__":
    in_a_job(run_session)
