"""Commands that measure: `run` and `calibrate`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .options import Renamed
from .suite import DEFAULT_LANE

DEFAULT_LAUNCHES = 3


@click.command()
@click.argument("releases", nargs=-1)
@click.option("--releases", "ranges", multiple=True, help="The same as RELEASES. Repeatable.")
@click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python version of the lane.")
@click.option("--device", help="cpu, cuda or recorder [default: TORCH_HISTORY_DEVICE, else a GPU if there is one].")
@click.option("--card", help="The GPU that the recorder pretends. See docs/recorder.md. [default: turing]")
@click.option(
    "--workload", type=click.Path(path_type=Path), help="Measure a file of your own. See docs/own-workload.md."
)
@click.option("--question", "questions", multiple=True, help="Measure only this question. Repeatable.")
@click.option(
    "--size", "sizes", multiple=True, help="Measure this size. Repeatable. [default: small on a CPU, paper on a GPU]"
)
@click.option(
    "--rounds",
    "--launches",
    "launches",
    cls=Renamed,
    default=DEFAULT_LAUNCHES,
    show_default=True,
    help="Rounds that measure everything. Each round starts new processes.",
)
@click.option(
    "--only", type=click.Choice(["times", "counts"]), help="Measure only times or only counts. Counts need one round."
)
@click.option(
    "--budget",
    type=str,
    help="Time to spend, such as 6m or 2h. What those rounds leave of it is spent on inconclusive comparisons.",
)
@click.option("--again", is_flag=True, help="Start a new session even if the same one has finished.")
@click.option(
    "--prune", "removes", is_flag=True, help="Remove the environments of each release after its last session."
)
@click.option(
    "--alongside",
    "--beside",
    "shares",
    cls=Renamed,
    is_flag=True,
    help="Allow another lane to be measured at the same time, on another processor.",
)
@click.option("--installed", is_flag=True, help="Measure the torch that is installed for --python. Needs no network.")
@click.option("--python", "interpreter", default="python3", show_default=True, help="Interpreter for --installed.")
@click.option("--as", "recorded_as", help="Record an --installed torch that is not a release under this release.")
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
    """Measure RELEASES in turn, and say what changed from each one to the next.

    RELEASES are names (2.5.1) or ranges (2.0.1..2.2.0, which excludes 2.0.1). NEW stands for all releases since the newest
    one that this machine has measured. A single release is measured together with the one before it. Without RELEASES, the
    newest release and the one before it are measured. Many releases are split into sessions; neighbouring sessions share
    one release.

    Press Ctrl+C to interrupt. The same command continues where it stopped.

    Exit code 4 means that nothing ran: no case gave a number on any release.
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
@click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python version of the lane.")
@click.option("--question", "questions", multiple=True, help="Measure only this question. Repeatable.")
@click.option(
    "--rounds",
    "--launches",
    "launches",
    cls=Renamed,
    default=DEFAULT_LAUNCHES,
    show_default=True,
    help="Rounds that measure everything.",
)
@click.option("--budget", default="60m", show_default=True, help="Time to spend on times, as in `run`.")
@click.option("--again", is_flag=True, help="Start a new session even if the same one has finished.")
def calibrate(
    release: str | None, lane: str, questions: tuple[str, ...], launches: int, budget: str, again: bool
) -> None:
    """Measure how often verdicts are right on this machine.

    RELEASE is compared with itself, and with itself plus planted changes. The default is the newest release of the lane.

    Exit code 3 means that an aim of docs/generated/calibration.md is missed.
    """
    from . import measure

    if not measure.calibrate(release, lane, questions, launches, budget, again):
        sys.exit(3)


COMMANDS = (run, calibrate)
