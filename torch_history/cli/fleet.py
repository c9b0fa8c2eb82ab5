"""`fleet`: many releases on many machines, through Slurm. What the commands do is in `fleets`."""

from __future__ import annotations

import sys
from typing import Any

import click

from .options import WithFormer, folder_from_here
from .suite import DEFAULT_LANE


def _of_the_work(command: Any) -> Any:
    """The options that say what is measured, and on how many nodes."""
    options = [
        click.argument("releases", nargs=-1, required=True),
        click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python version of the lane."),
        click.option("--question", "questions", multiple=True, help="Measure only this question. Repeatable."),
        click.option("--size", "sizes", multiple=True, help="Measure this size. Repeatable."),
        click.option("--rounds", "launches", default=3, show_default=True, help="Rounds that measure everything."),
        click.option("--only", type=click.Choice(["times", "counts"]), help="Measure only times or only counts."),
        click.option("--budget", help="Time of each job, such as 45m; rounds go on for what is inconclusive."),
        click.option("--nodes", default=1, show_default=True, type=click.IntRange(1), help="Jobs that run at a time."),
    ]
    for option in reversed(options):
        option(command)
    return command


def _fleets() -> Any:
    """What the commands do, imported when one runs."""
    from . import fleets

    return fleets


class _Fleet(WithFormer):
    former = {
        "check": "times are kept in a folder for each node, so nodes need not agree",
        "simulate": "`torch-history fleet plan` forecasts",
    }


@click.group(cls=_Fleet)
def fleet() -> None:
    """Measure many releases on many machines, through Slurm. See docs/fleet.md."""


@fleet.command()
@_of_the_work
def plan(**asked: object) -> None:
    """Say into which jobs RELEASES would be cut, and how long they would take.

    A job is one session of neighbouring releases on one node. Durations are those that are stored in results/.
    """
    _fleets().plan(**asked)


@fleet.command()
@_of_the_work
@click.option("--device", default="", help="cpu, cuda or recorder [default: a GPU if the node has one].")
@click.option(
    "--executor", type=click.Choice(["slurm", "local"]), default="slurm", help="A cluster, or processes here."
)
@click.option("--partition", default="", help="Slurm's partition. Give each GPU model its own fleet.")
@click.option("--exclusive", is_flag=True, help="One job alone on a node, as times need it.")
@click.option("--time-limit", help="Of one job, such as 3h. It is requeued then, and continues.")
@click.option("--sbatch", "more", multiple=True, metavar="NAME=VALUE", help="Such as gres=gpu:1. Repeatable.")
@click.option("--scratch", default="", callback=folder_from_here, help="Folder on each node's disk for environments.")
@click.option("--offline", is_flag=True, help="Nodes have no network: install every release here first.")
@click.option("--detach", is_flag=True, help="Submit and return. The same command without it looks after the jobs.")
def run(**asked: object) -> None:
    """Measure RELEASES in jobs, look after them until all are done, and collect their results.

    Press Ctrl+C to leave. Jobs continue, and the same command looks after them again.

    Exit code 3 means that a job is not done, because it failed three times or was cancelled.
    """
    if not _fleets().run(**asked):
        sys.exit(3)


@fleet.command()
@click.argument("name", required=False)
def status(name: str | None) -> None:
    """Say how the jobs of a fleet stand. NAME is the newest fleet's unless it is given."""
    _fleets().status(name)


@fleet.command()
@click.argument("name", required=False)
def cancel(name: str | None) -> None:
    """End a fleet's jobs for good. What they measured stays, and `collect` adds it to the results."""
    _fleets().cancel(name)


@fleet.command()
@click.argument("name", required=False)
def collect(name: str | None) -> None:
    """Add what finished jobs measured to results/. Run it as often as you like: nothing is added twice."""
    _fleets().collect(name)


COMMANDS = (fleet,)
