"""`fleet`: many releases on many machines, through a scheduler."""

from __future__ import annotations

import sys
from typing import Any

import click

from .options import folder_from_here
from .suite import DEFAULT_LANE


def _of_the_work(command: click.Command) -> click.Command:
    """The options that say what is measured, and on how many nodes."""
    options = [
        click.argument("releases", nargs=-1, required=True),
        click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python version of the lane."),
        click.option("--question", "questions", multiple=True, help="Measure only this question. Repeatable."),
        click.option("--size", "sizes", multiple=True, help="Measure this size. Repeatable."),
        click.option("--rounds", "launches", default=3, show_default=True, help="Rounds that measure everything."),
        click.option("--only", type=click.Choice(["times", "counts"]), help="Measure only times or only counts."),
        click.option(
            "--budget",
            help="Time of each job, such as 45m. What one does not need goes to others.",
        ),
        click.option("--nodes", default=1, show_default=True, type=click.IntRange(1), help="Jobs that run at a time."),
        click.option("--machine", help="Forecast from the durations stored for this machine. [default: this one]"),
    ]
    for option in options:
        option(command)
    return command


def _of_the_jobs(command: click.Command) -> click.Command:
    """The options that say where jobs run, and what they may use."""
    options = [
        click.option("--device", help="cpu, cuda or recorder [default: a GPU if the node has one]."),
        click.option(
            "--executor",
            type=click.Choice(["slurm", "local", "debug"]),
            default="slurm",
            show_default=True,
            help="Where jobs run: a cluster, processes here, or this process.",
        ),
        click.option("--partition", default="", help="Slurm's partition. Give each GPU model its own fleet."),
        click.option("--account", default="", help="Slurm's account."),
        click.option("--qos", default="", help="Slurm's quality of service."),
        click.option("--constraint", default="", help="Features that a node must have."),
        click.option("--gres", default="", help="Such as gpu:1."),
        click.option("--cpus", type=int, help="Processors of a job."),
        click.option("--memory", default="", help="Memory of a job, such as 16G."),
        click.option("--exclusive", is_flag=True, help="One job alone on a node, as times need it."),
        click.option("--time-limit", help="Of one job, such as 3h. [default: twice the forecast and half an hour]"),
        click.option("--sbatch", "more", multiple=True, metavar="NAME=VALUE", help="An option of sbatch. Repeatable."),
        click.option(
            "--scratch",
            default="",
            callback=folder_from_here,
            help="Folder on each node's own disk for environments. [default: env/]",
        ),
        click.option("--offline", is_flag=True, help="Nodes have no network: install every release here first."),
        click.option(
            "--prune", "removes", is_flag=True, help="Remove a job's environments from the --scratch after it."
        ),
        click.option("--poll", default=15.0, show_default=True, help="Seconds between two looks at the queue."),
    ]
    for option in reversed(options):
        option(command)
    return command


@click.group()
def fleet() -> None:
    """Measure many releases on many machines, through Slurm. See docs/fleet.md."""


@_of_the_work
@fleet.command()
@click.option(
    "--processors", type=click.IntRange(1), help="Processors that all nodes share, if they are one machine's."
)
def plan(**asked: object) -> None:
    """Say into which jobs RELEASES would be cut, and how long they would take.

    A job is one session of neighbouring releases on one node. Durations are those that are stored in results/.
    """
    from . import fleets

    fleets.plan(**asked)


@_of_the_work
@_of_the_jobs
@fleet.command()
@click.option("--again", is_flag=True, help="Start a new fleet even if the same one has finished.")
@click.option("--detach", is_flag=True, help="Submit and return. The same command without it looks after the jobs.")
def run(**asked: object) -> None:
    """Measure RELEASES in jobs, look after them until all are done, and collect their results.

    Press Ctrl+C to leave. Jobs continue, and the same command looks after them again.

    Exit code 3 means that a job was given up after three failures.
    """
    from . import fleets

    if not fleets.run(**asked):
        sys.exit(3)


@_of_the_jobs
@fleet.command()
@click.argument("release", required=False)
@click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python version of the lane.")
@click.option("--question", "questions", multiple=True, default=("batching",), show_default=True, help="Repeatable.")
@click.option("--size", "sizes", multiple=True, help="Measure this size. Repeatable.")
@click.option("--rounds", "launches", default=8, show_default=True, help="Rounds on each node.")
@click.option("--node", "nodes", multiple=True, help="Check this node. Repeatable. [default: all of the partition]")
@click.option("--slow", "slowed", default="", metavar="NODE", help="Slow a node by 10 % on purpose; store nothing.")
def check(**asked: object) -> None:
    """Check whether nodes take the same time.

    Each node measures RELEASE under two names and some work without torch. The default is the newest release of the lane.
    `fleet run` lets nodes share a folder that agree in the newest check.

    Exit code 3 means that a job was given up after three failures.
    """
    from . import fleets

    if not fleets.check(**asked):
        sys.exit(3)


@fleet.command()
@click.argument("name", required=False)
def status(name: str | None) -> None:
    """Say how the jobs of a fleet stand: queued, running where, round, done, failed, time left."""
    from . import fleets

    fleets.status(name)


@fleet.command()
@click.argument("name", required=False)
def cancel(name: str | None) -> None:
    """End a fleet's jobs for good. What they measured stays, and `collect` adds it to the results."""
    from . import fleets

    fleets.cancel(name)


@fleet.command()
@click.argument("name", required=False)
def collect(name: str | None) -> None:
    """Add what finished jobs measured to results/. Run it as often as you like: nothing is added twice."""
    from . import fleets

    fleets.collect(name)


@fleet.command()
@click.option("--releases", "count", default=1000, show_default=True, help="Releases in the history.")
@click.option("--lanes", default=2, show_default=True, help="Lanes, each measured on every GPU model.")
@click.option("--models", default=4, show_default=True, help="GPU models, with as many nodes each.")
@click.option("--machine", help="Take the durations stored for this machine. [default: this one]")
@click.option("--seed", default=1, show_default=True, help="Of what is drawn.")
@click.option("--write", is_flag=True, help="Write the table into docs/fleet.md.")
def simulate(**asked: Any) -> None:
    """Forecast a history of 1,000 releases on 64 to 1,024 nodes that fail and are taken away, planned by the same code."""
    from . import fleets

    fleets.simulate(**asked)


COMMANDS = (fleet,)
