"""`fleet`: many releases on many machines, through Slurm. What the commands do is in `fleets`."""

import os
import sys
from typing import Any

import click

from .run import Asked, LikeRun


@click.group()
def fleet() -> None:
    """Measure many releases on many machines, through Slurm. See docs/machines.md."""


TAKEN = ("lane", "questions", "sizes", "launches", "only", "budget", "device", "plans")


@fleet.command(cls=LikeRun, takes=TAKEN)
@click.argument("releases", nargs=-1, required=True)
@click.option("--nodes", default=1, show_default=True, type=click.IntRange(1), help="Jobs that run at a time.")
@click.option("--sbatch", multiple=True, metavar="NAME[=VALUE]", help="Such as partition=cpu or exclusive. Repeatable.")
@click.option(
    "--scratch",
    default="",
    callback=lambda _context, _option, value: os.path.abspath(value) if value else "",
    help="Folder on each node's disk for environments.",
)
@click.option("--offline", is_flag=True, help="Nodes have no network: install every release here first.")
@click.option("--detach", is_flag=True, help="Submit and return. The same command without it looks after the jobs.")
def run(nodes: int, sbatch: tuple[str, ...], scratch: str, offline: bool, detach: bool, **options: Any) -> None:
    """Measure RELEASES in jobs, look after them until all are done, and collect their results.

    A job is one session of neighbouring releases on one node. Press Ctrl+C to leave. Jobs continue, and the same command
    looks after them again.

    Exit code 3 means that a job is not done, because it failed three times or was cancelled.
    """
    from . import fleets

    asked = Asked(**options)
    cluster = fleets.Cluster(nodes, tuple(each.lstrip("-") for each in sbatch), scratch, offline)
    if asked.plans:
        fleets.plan(asked, cluster)
    elif not fleets.run(asked, cluster, detach):
        sys.exit(3)


@fleet.command()
@click.argument("name", required=False)
def status(name: str | None) -> None:
    """Say how the jobs of a fleet stand. NAME is the newest fleet's unless it is given."""
    from . import fleets

    fleets.status(name)


@fleet.command()
@click.argument("name", required=False)
def cancel(name: str | None) -> None:
    """End a fleet's jobs for good, and add what they measured to the results."""
    from . import fleets

    fleets.cancel(name)
