"""The command `run`, and what other commands that measure share with it."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from .options import WHOLE_PATH, duration, python_option, refuse_others
from .suite import DEFAULT_LANE

DEFAULT_LAUNCHES = 3
LEAST_LAUNCHES = 1
"""Of a run with a budget: the turns of one round tell the noise, and what is left goes to what can be decided in it."""

GPU_WITHIN = 540.0
"""Seconds of a run of the whole suite on a GPU that names no limit: such a machine is often lent for ten minutes."""


@dataclass(frozen=True)
class Asked:
    """The options of `run`, and of the commands that measure as it does. `budget` and `within` are seconds, `releases` names
    and ranges; `interpreter`: the one whose torch is measured as installed, None for releases; `carried` the folder of
    carried ones. `tells`: whether it is said what changed; `plans`: whether it is only said what would be measured;
    `itself`: whether a calibration plants nothing."""

    releases: tuple[str, ...] = ()
    lane: str = DEFAULT_LANE
    workload: Path | None = None
    questions: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    launches: int | None = None
    only: str = ""
    budget: float | None = None
    within: float | None = None
    again: bool = False
    removes: bool = False
    interpreter: str | None = None
    recorded_as: str | None = None
    carried: Path | None = None
    device: str = ""
    card: str = ""
    tells: bool = True
    plans: bool = False
    itself: bool = False

    @property
    def rounds(self) -> int:
        """The rounds that measure everything."""
        if self.launches or self.only == "counts":
            return self.launches or 1
        return LEAST_LAUNCHES if self.budget else DEFAULT_LAUNCHES

    def seconds_within(self, device: str) -> float | None:
        """The seconds in which everything ends, None where nothing limits them."""
        chooses = self.questions or self.variants or self.sizes or self.budget or self.workload or self.only
        return self.within or (GPU_WITHIN if device == "cuda" and not chooses else None)


@click.command()
@click.argument("releases", nargs=-1)
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
@click.option(
    "--rounds",
    "launches",
    type=click.IntRange(min=1),
    help=f"Rounds that measure everything. Each round starts new processes. [default: {DEFAULT_LAUNCHES}, with a "
    f"budget {LEAST_LAUNCHES}, of counts 1]",
)
@click.option(
    "--only",
    type=click.Choice(["times", "counts"]),
    callback=lambda _context, _option, value: value or "",
    help="Measure only times or only counts. Counts need one round.",
)
@click.option(
    "--budget",
    callback=duration,
    help="Time to spend, such as 6m or 2h. What is left after the first rounds goes to inconclusive comparisons.",
)
@click.option(
    "--within",
    callback=duration,
    help="Time for everything, such as 8m. Cases that a claim rests on come first. What was measured until then is stored. "
    "[default: 9m for the whole suite on a GPU]",
)
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
    type=WHOLE_PATH,
    help="Measure the releases that `kit unpack` put into this folder. Needs no network. See docs/machines.md.",
)
@click.option(
    "--as", "recorded_as", help="The release to record an --installed torch under, if it is not a release itself."
)
@click.option(
    "--calibrate",
    "calibrates",
    is_flag=True,
    help="Measure how often verdicts are right on this machine: a release is compared with itself, and with itself plus "
    "planted changes. It takes an hour without --budget and --within.",
)
@click.option("--itself", is_flag=True, help="With --calibrate: plant nothing.")
def run(calibrates: bool, installed: bool, **options: Any) -> None:
    """Measure RELEASES, and say what changed from each to the next.

    RELEASES are names (2.5.1) or ranges (2.0.1..2.2.0, which excludes 2.0.1). NEW stands for all releases since the newest
    one that this machine has measured. A single release is measured together with the one before it. Without RELEASES, the
    newest release and the one before it are measured. Many releases are split into sessions. Neighbouring sessions share
    two releases, and all sessions share one.

    Press Ctrl+C to interrupt. The same command continues where it stopped.

    Exit code 4 means that nothing ran: no case gave a number on any release. With --calibrate, 3 means that an aim of
    docs/generated/calibration.md is missed.
    """
    from . import running

    for option, value in (("--python", options["interpreter"]), ("--as", options["recorded_as"])):
        if value and not installed:
            raise click.UsageError(f"{option} is about an installed torch: add --installed.")
    if installed:
        options["interpreter"] = options["interpreter"] or "python3"
    asked = Asked(**options)
    if calibrates:
        refuse_others(CALIBRATING, "--calibrate measures the suite as it is, so it takes no {}.")
        if len(asked.releases) > 1:
            raise click.UsageError("--calibrate compares one release with itself. Name one.")
        sys.exit(0 if running.calibrated(asked) else 3)
    if asked.itself:
        raise click.UsageError("--itself says how to calibrate: add --calibrate.")
    if not running.measure(asked):
        sys.exit(4)


CALIBRATING = (
    *("calibrates", "itself", "releases", "lane", "device", "questions", "launches", "budget", "within", "again"),
    *("installed", "interpreter", "recorded_as"),
)


class LikeRun(click.Command):
    """A command that measures as `run` does, and takes some of its options, by the names of their values."""

    def __init__(self, *arguments: Any, takes: Iterable[str], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.taken = [option for option in run.params if option.name in takes]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        *own, help_ = super().get_params(ctx)
        return [*own, *self.taken, help_]
