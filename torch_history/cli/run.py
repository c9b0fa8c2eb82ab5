"""Commands that measure: `run` and `calibrate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .explain import explain_option
from .options import Renamed, python_option
from .suite import DEFAULT_LANE

DEFAULT_LAUNCHES = 3
LEAST_LAUNCHES = 1
"""Of a run with a budget: the turns of one round tell the noise, and what is left goes to what can be decided in it."""

ROUNDS = click.option(
    "--rounds",
    "--launches",
    "launches",
    cls=Renamed,
    type=click.IntRange(min=1),
    help=f"Rounds that measure everything. Each round starts new processes. [default: {DEFAULT_LAUNCHES}, with a "
    f"budget {LEAST_LAUNCHES}, of counts 1]",
)


@click.command()
@click.argument("releases", nargs=-1)
@click.option("--releases", "ranges", multiple=True, help="The same as RELEASES. Repeatable.")
@click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python version of the lane.")
@click.option(
    "--device", default="", help="cpu, cuda or recorder [default: TORCH_HISTORY_DEVICE, else a GPU if there is one]."
)
@click.option("--card", default="", help="The GPU that the recorder imitates. See docs/recorder.md. [default: turing]")
@click.option(
    "--workload", type=click.Path(path_type=Path), help="Measure a file of your own. See docs/own-workload.md."
)
@click.option("--question", "questions", multiple=True, help="Measure only this question. Repeatable.")
@click.option(
    "--size",
    "sizes",
    multiple=True,
    help="Measure this size: a scale, or a whole name such as '64 x 128'. Repeatable. "
    "[default: small on a CPU, paper on a GPU]",
)
@click.option("--variant", "variants", multiple=True, help="Measure only this variant. Repeatable.")
@ROUNDS
@click.option(
    "--only", type=click.Choice(["times", "counts"]), help="Measure only times or only counts. Counts need one round."
)
@click.option(
    "--budget",
    type=str,
    help="Time to spend, such as 6m or 2h. What is left after the first rounds goes to inconclusive comparisons.",
)
@click.option(
    "--within",
    help="Time for everything, such as 8m. Cases that a claim rests on come first. What was measured until then is stored. "
    "[default: 9m for the whole suite on a GPU]",
)
@explain_option("the times that rose", "RELEASES")
@click.option(
    "--plan", "plans", is_flag=True, help="Say which sessions it would have and what they take. Measure nothing."
)
@click.option("--again", is_flag=True, help="Start a new session even if the same one has finished.")
@click.option(
    "--prune", "removes", is_flag=True, help="Remove the environments of each release after its last session."
)
@click.option("--installed", is_flag=True, help="Measure the torch that is installed for --python. Needs no network.")
@python_option("Interpreter for --installed.")
@click.option(
    "--carried",
    type=click.Path(path_type=Path, resolve_path=True),
    help="Measure the releases that `kit unpack` put into this folder. Needs no network. See docs/gpu.md.",
)
@click.option(
    "--as", "recorded_as", help="The release to record an --installed torch under, if it is not a release itself."
)
def run(
    releases: tuple[str, ...],
    ranges: tuple[str, ...],
    only: str | None,
    installed: bool,
    interpreter: str,
    **options: Any,
) -> None:
    """Measure RELEASES, and say what changed from each to the next.

    RELEASES are names (2.5.1) or ranges (2.0.1..2.2.0, which excludes 2.0.1). NEW stands for all releases since the newest
    one that this machine has measured. A single release is measured together with the one before it. Without RELEASES, the
    newest release and the one before it are measured. Many releases are split into sessions. Neighbouring sessions share
    two releases, and all sessions share one.

    Press Ctrl+C to interrupt. The same command continues where it stopped.

    Exit code 4 means that nothing ran: no case gave a number on any release.
    """
    from . import running

    own = interpreter if installed else None
    if not running.measure(running.Asked(releases=releases + ranges, only=only or "", interpreter=own, **options)):
        sys.exit(4)


@click.command()
@click.argument("release", required=False)
@click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python version of the lane.")
@click.option("--device", default="", help="cpu or cuda [default: a GPU if there is one].")
@click.option("--question", "questions", multiple=True, help="Measure only this question. Repeatable.")
@ROUNDS
@click.option("--budget", default="60m", show_default=True, help="Time to spend on times, as in `run`.")
@click.option("--within", help="Time for everything, as in `run`; instead of --budget.")
@click.option("--again", is_flag=True, help="Start a new session even if the same one has finished.")
@click.option("--itself", is_flag=True, help="Compare the release with itself only, and plant nothing.")
@click.option("--installed", is_flag=True, help="Measure the torch that is installed for --python. Needs no network.")
@python_option("Interpreter for --installed.")
def calibrate(release: str | None, installed: bool, interpreter: str, **options: Any) -> None:
    """Measure how often verdicts are right on this machine.

    RELEASE is compared with itself, and with itself plus planted changes. The default is the newest release of the lane.

    Exit code 3 means that an aim of docs/generated/calibration.md is missed.
    """
    from . import running

    own = interpreter if installed else None
    if not running.calibrated(running.Asked(recorded_as=release, interpreter=own, **options)):
        sys.exit(3)


COMMANDS = (run, calibrate)
