"""Commands that measure: `run` and `calibrate`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .suite import DEFAULT_LANE

DEFAULT_LAUNCHES = 3


@click.command()
@click.argument("releases", nargs=-1)
@click.option("--releases", "ranges", multiple=True, help="The same as RELEASES; may be given again.")
@click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python of the environments.")
@click.option("--device", help="cpu, cuda or recorder [default: TORCH_HISTORY_DEVICE, else a GPU if there is one].")
@click.option("--card", help="What the recorder pretends: docs/recorder.md [default: turing].")
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
    device: str | None,
    card: str | None,
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

    Exit code 4 where nothing ran: no case gave a number on any release.
    """
    from . import measure

    ran = measure.run(
        measure.Asked(
            releases=releases + ranges,
            lane=lane,
            workload=workload,
            questions=questions,
            sizes=sizes,
            launches=launches,
            only=only or "",
            budget=budget,
            again=again,
            removes=removes,
            shares=shares,
            interpreter=interpreter if installed else None,
            recorded_as=recorded_as,
            device=device or "",
            card=card or "",
        )
    )
    if not ran:
        sys.exit(4)


@click.command()
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

    Without RELEASE the newest of the lane. Exit code 3 where an aim of docs/generated/calibration.md is missed.
    """
    from . import measure

    if not measure.calibrate(release, lane, questions, launches, budget, again):
        sys.exit(3)


COMMANDS = (run, calibrate)
