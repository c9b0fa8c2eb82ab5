"""`fleet`: many releases on many machines, through Slurm. What the commands do is in `fleets`."""

from __future__ import annotations

import sys
from typing import Any

import click

from .options import WithFormer, folder_from_here
from .suite import DEFAULT_LANE


def _fleets() -> Any:
    """What the commands do, imported when one runs."""
    from . import fleets

    return fleets


class _Fleet(WithFormer):
    former = {
        "check": "times are kept in a folder for each node, so nodes need not agree",
        "collect": "`torch-history fleet run` and `torch-history fleet cancel` collect",
        "plan": "`torch-history fleet run --plan` forecasts",
        "simulate": "`torch-history fleet run --plan` forecasts",
    }


@click.group(cls=_Fleet)
def fleet() -> None:
    """Measure many releases on many machines, through Slurm. See docs/fleet.md."""


@fleet.command()
@click.argument("releases", nargs=-1, required=True)
@click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python version of the lane.")
@click.option("--question", "questions", multiple=True, help="Measure only this question. Repeatable.")
@click.option("--size", "sizes", multiple=True, help="Measure this size. Repeatable.")
@click.option("--rounds", "launches", default=3, show_default=True, help="Rounds that measure everything.")
@click.option("--only", type=click.Choice(["times", "counts"]), help="Measure only times or only counts.")
@click.option("--budget", help="Time of each job, such as 45m; rounds go on for what is inconclusive.")
@click.option("--nodes", default=1, show_default=True, type=click.IntRange(1), help="Jobs that run at a time.")
@click.option("--plan", "plans", is_flag=True, help="Say which jobs that would be and how long they take. Run nothing.")
@click.option("--device", default="", help="cpu, cuda or recorder [default: a GPU if the node has one].")
@click.option(
    "--executor", type=click.Choice(["slurm", "local"]), default="slurm", help="A cluster, or processes here."
)
@click.option(
    "--sbatch", "more", multiple=True, metavar="NAME[=VALUE]", help="Such as partition=cpu or exclusive. Repeatable."
)
@click.option("--scratch", default="", callback=folder_from_here, help="Folder on each node's disk for environments.")
@click.option("--offline", is_flag=True, help="Nodes have no network: install every release here first.")
@click.option("--detach", is_flag=True, help="Submit and return. The same command without it looks after the jobs.")
def run(plans: bool, **asked: object) -> None:
    """Measure RELEASES in jobs, look after them until all are done, and collect their results.

    A job is one session of neighbouring releases on one node. Press Ctrl+C to leave. Jobs continue, and the same command
    looks after them again.

    Exit code 3 means that a job is not done, because it failed three times or was cancelled.
    """
    if plans:
        _fleets().plan(**asked)
    elif not _fleets().run(**asked):
        sys.exit(3)


@fleet.command()
@click.argument("name", required=False)
def status(name: str | None) -> None:
    """Say how the jobs of a fleet stand. NAME is the newest fleet's unless it is given."""
    _fleets().status(name)


@fleet.command()
@click.argument("name", required=False)
def cancel(name: str | None) -> None:
    """End a fleet's jobs for good, and add what they measured to the results."""
    _fleets().cancel(name)


COMMANDS = (fleet,)
