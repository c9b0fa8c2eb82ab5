"""The command `explain`: why is a series slower on one release than on another?"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import WHOLE_PATH
from .suite import DEFAULT_LANE, load

if TYPE_CHECKING:
    from ..store.causes import Evidence

MINUTES = 4
"""What the time of a repeated call takes at most, both releases installed; what does not fit is left out."""


@click.command()
@click.argument("old")
@click.argument("new")
@click.argument("series", nargs=-1)
@click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python version of the lane.")
@click.option("--workload", type=WHOLE_PATH, help="Explain functions of a file of your own.")
@click.option(
    "--most", type=click.IntRange(1), default=3, show_default=True, help="Number of series to explain if none is named."
)
@click.option("--again", is_flag=True, help="Explain a series again that has been explained.")
@click.option("--script", is_flag=True, help="Print the script of plain PyTorch that shows the difference, too.")
def explain(workload: Path | None, script: bool, **options: Any) -> None:
    """Find out why SERIES are slower or faster on NEW than on OLD.

    The difference is measured again and located in the code. Then parts of PyTorch and of the system are switched off in
    turn, to see which of them makes the difference.

    Name a SERIES as `compare` prints it, such as 'selection time, index_reused vector 50 % x 10', or give some words of the
    name, such as 'index_reused vector'. Without SERIES, those with the largest changes in the stored results are explained.
    docs/explain.md says what each verdict proves.
    """
    from . import explaining

    def show(found: "Evidence") -> None:
        click.echo(explaining.report(found) + (f"\n\n{found.script}" if script else ""))

    explaining.explain_asked(load(), show, workload, **options)
