"""The command `upgrade`: what does another release change in a file of one's own, and since when? What would it bring?"""

import os
import sys
from pathlib import Path
from typing import Any

import click

from .explain import MINUTES
from .options import duration, form_of, gigabytes, refuse_others, whole_lane
from .output import say_taken
from .requirements import SUFFIXES, move
from .suite import DEFAULT_LANE

FAILED = 3
"""Exit code where a function is what --fail-on names, or where a move cannot work as the file of requirements stands."""

NOTHING_RAN = 4

EXPLAIN_BUDGET = "30m"
"""For --explain without a time: three explanations at least."""


@click.command(
    epilog="Exit codes: 0 success, 1 refused, 2 wrong usage, 3 a function failed a limit, or the move cannot work as the "
    "file of requirements stands, 4 nothing ran."
)
@click.argument("workload", type=click.Path(path_type=Path))
@click.option("--from", "old", help="The release in use, or `installed` for that of your environment.")
@click.option("--to", "new", help="The release to move to, or newer requirements [default: the newest].")
@click.option("--gpu", help="For requirements: your GPU, such as 'RTX 2080', or its compute capability, such as 7.5.")
@click.option("--lane", default=DEFAULT_LANE, show_default=True, help="Python of the environments.")
@click.option(
    "--budget", callback=duration, help="Time to measure in, such as 10m. Installing takes none of it. [default: 5m]"
)
@click.option(
    "--explain",
    "explaining",
    is_flag=False,
    callback=duration,
    flag_value=EXPLAIN_BUDGET,
    metavar="[BUDGET]",
    help="Then explain what became slower or uses more memory, for so long. Write it after WORKLOAD. "
    f"[default BUDGET: {EXPLAIN_BUDGET}]",
)
@click.option("--again", is_flag=True, help="Measure once more what is stored.")
@click.option("--most", type=click.IntRange(2), help="Releases to measure at most [default: as halving needs].")
@click.option(
    "--disk",
    callback=gigabytes,
    help="Keep environments below this, such as 20GB, by removing those that are not needed.",
)
@click.option("--fail-on", help=f"Exit code {FAILED} where a function changed so much, such as slower:5%,broke.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown, for a pull request.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def upgrade(
    workload: Path,
    old: str | None,
    gpu: str | None,
    explaining: float | None,
    fail_on: str | None,
    as_json: bool,
    as_markdown: bool,
    **options: Any,
) -> None:
    """Say what an upgrade changes in WORKLOAD, and since when.

    WORKLOAD is a file of your own, or the requirements of a project: requirements.txt, pyproject.toml, uv.lock, poetry.lock,
    pylock.toml, Pipfile.lock or environment.yml. Of these it is said what moving their torch brings. Nothing is installed or
    measured then, and only --to, --gpu, --lane, --markdown and --json count.

    Of a file of your own both ends are measured first. Where something changed, the releases between are halved
    until the one is found that changed it, each function by itself. --explain then looks for the causes of what became
    slower. See docs/own-workload.md.

    Press Ctrl+C to interrupt, which prints what is known. The same command continues where it stopped.
    """
    from ..analysis.compare import failing, parse_fail_on

    form = form_of(as_json, as_markdown)
    if workload.suffix.lower() in SUFFIXES:
        why = "{} is for a file of your own. Requirements are read, and nothing is measured."
        refuse_others(("workload", "new", "gpu", "lane", "as_json", "as_markdown"), why)
        said, can_work = move(workload, options["new"] or "", gpu or "", whole_lane(options["lane"]), form)
        click.echo(said)
        sys.exit(0 if can_work else FAILED)
    if gpu:
        raise click.UsageError("--gpu is for requirements. A file of your own is measured on this machine.")
    if old is None:
        raise click.UsageError("--from is missing, the release in use: give --from 2.3.1, or --from installed.")
    from . import upgrading

    try:
        limits = parse_fail_on(fail_on) if fail_on is not None else {}
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--fail-on") from error
    if explaining is not None and explaining < 60 * MINUTES:
        raise click.BadParameter(f"one time takes about {MINUTES} minutes", param_hint="--explain")
    own = upgrading.OwnWorkload.of(workload)
    say_taken(own)
    old = upgrading.installed_version(os.environ) if old == "installed" else old
    asked = upgrading.Asked(file=str(workload), own=own, old=old, explaining=explaining or 0.0, **options)
    words = upgrading.FORMS[form]
    found = upgrading.upgraded(asked, lambda answer: click.echo(words(answer, failing(answer.comparison, limits))))
    if found is None or not found.ran:
        sys.exit(NOTHING_RAN)
    if failing(found.comparison, limits):
        sys.exit(FAILED)
