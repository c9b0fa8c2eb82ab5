"""Commands that look after the disk, `prune`, and after results, `check`."""

import sys
from pathlib import Path

import click

from . import suite as suites


@click.command()
@click.argument("releases", nargs=-1)
@click.option("--keep", multiple=True, help="Keep the environments of this release. Repeatable.")
@click.option("--lane", default="", help="Remove only those of this Python version [default: all].")
def prune(releases: tuple[str, ...], keep: tuple[str, ...], lane: str) -> None:
    """Remove the environments of RELEASES (default: all). Results are kept."""
    from ..releases import environments
    from ..system.locks import alone

    suite = suites.load()
    kept = {suite.axis.find(name).tag for name in keep}
    asked = {release.tag for spec in releases for release in suite.axis.select(spec)}
    with alone(suite.env):
        removed = environments.prune(suite.env, lambda tag: tag not in kept and (not asked or tag in asked), lane)
    click.echo(f"Removed {', '.join(removed) or 'no environment'}.")


@click.command(epilog="Exit codes: 0 success, 1 something is wrong, 2 wrong usage.")
@click.argument("results", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
def check(results: Path | None) -> None:
    """List every damaged file and line in RESULTS.

    RESULTS is the suite's results/ by default. Lines that are out of bounds or from unknown sources are listed as well, and
    launches that exclusions.jsonl lists as taken out.
    """
    from ..measuring.kit import check as checks

    results = results and results.resolve()
    suite = suites.load()
    found = checks.check(results or suite.results, suite.axis)
    click.echo(found.summary)
    for problem in found.problems:
        click.echo(problem)
    if found.problems:
        sys.exit(1)
