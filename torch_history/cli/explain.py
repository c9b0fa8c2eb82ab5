"""The command `explain`: why is a series slower on one release than on another?"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..errors import UserError
from . import excluded
from . import suite as suites
from .options import seconds_of
from .output import console, plain
from .suite import DEFAULT_LANE

MINUTES = 4
"""What one series takes on two cores that nothing else uses, both releases installed."""

EXPLAIN_BUDGET = "30m"
"""For `run --explain` and `upgrade --explain` without a time: three explanations at least."""

LEVER_SECONDS = 210
"""After which no lever is pulled any more, unless --budget says otherwise; the script comes after that."""


def explain_option(what: str, argument: str) -> Callable[..., Any]:
    """The option --explain of a command that measures; `argument` is what its budget could be taken for."""
    return click.option(
        "--explain",
        "explains",
        is_flag=False,
        flag_value=EXPLAIN_BUDGET,
        metavar="[BUDGET]",
        help=f"Then explain {what}, for so long. Write it after {argument}. [default BUDGET: {EXPLAIN_BUDGET}]",
    )


def seconds_to_explain(budget: str, argument: str) -> float:
    """The seconds of an --explain. Raises UserError for what is no time, as where it took the `argument` for one."""
    try:
        seconds = seconds_of(budget)
    except UserError as error:
        raise UserError(f"--explain: {error} Write {argument} before --explain.") from error
    if seconds < 60 * MINUTES:
        raise UserError(f"--explain {budget} is too short. One time takes about {MINUTES} minutes.")
    return seconds


@click.command()
@click.argument("old")
@click.argument("new")
@click.argument("series", nargs=-1)
@click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python version of the lane.")
@click.option("--workload", type=click.Path(path_type=Path), help="Explain functions of a file of your own.")
@click.option(
    "--machine",
    help="A folder of results/ to choose series from [default: this machine, else the one with most releases].",
)
@excluded.with_excluded
@click.option("--most", default=3, show_default=True, help="Number of series to explain if none is named.")
@click.option(
    "--budget",
    default=f"{LEVER_SECONDS}s",
    show_default=True,
    help="Time per series, after which nothing more is switched off.",
)
@click.option("--again", is_flag=True, help="Explain a series again that has been explained.")
@click.option("--issue", is_flag=True, help="Print the text of an issue for PyTorch's maintainers. Nothing is sent.")
def explain(
    old: str,
    new: str,
    series: tuple[str, ...],
    lane: str,
    workload: Path | None,
    machine: str | None,
    with_excluded: bool,
    most: int,
    budget: str,
    again: bool,
    issue: bool,
) -> None:
    """Find out why SERIES are slower or faster on NEW than on OLD.

    The difference is measured again and located in the code. Then parts of PyTorch and of the system are switched off in
    turn, to see which of them makes the difference.

    Name a SERIES as `compare` prints it, such as 'selection time, index_reused vector 50 % x 10', or give some words of the
    name, such as 'index_reused vector'. Without SERIES, those with the largest changes in the stored results are explained.
    docs/explain.md says what each verdict proves.
    """
    if with_excluded and (series or workload):
        raise click.UsageError(
            "--with-excluded chooses series from the stored results. Leave out it, or SERIES and --workload."
        )
    from . import explaining

    workload = workload and workload.resolve()  # the suite's folder becomes the working one
    asked = explaining.Asked(old, new, series, lane, workload, machine, with_excluded, most, budget, again)
    began = time.monotonic()
    out = console()
    found = suites.load()
    for evidence, path in explaining.explained(asked, found):
        click.echo(explaining.issue(evidence, workload) if issue else explaining.report(evidence))
        out.print(f"The evidence is in {plain(str(path))}.\n", highlight=False)
    out.print(f"That took {(time.monotonic() - began) / 60:.1f} minutes.")


COMMANDS = (explain,)
