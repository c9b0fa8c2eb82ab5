"""Commands that look after the axis and the disk: `prune`, `sync`; and `check`, after results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import suite as suites
from .output import console, plain
from .suite import DEFAULT_LANE

if TYPE_CHECKING:
    from rich.console import Console

LANES = (DEFAULT_LANE, "3.9")
"""Python versions for which packages are pinned."""


@click.command()
@click.argument("releases", nargs=-1)
@click.option("--keep", multiple=True, help="Keep the environments of this release. Repeatable.")
@click.option("--lane", default="", help="Remove only those of this Python version [default: all].")
def prune(releases: tuple[str, ...], keep: tuple[str, ...], lane: str) -> None:
    """Remove the environments of RELEASES (default: all).

    The command says how much disk space that freed. Results are kept.
    """
    from ..measuring.locks import alone
    from ..releases import environments

    suite = suites.load()
    kept = {suite.axis.find(name).tag for name in keep}
    asked = {release.tag for spec in releases for release in suite.axis.select(spec)}
    with alone(suite.env):
        pruned = environments.prune(suite.env, lambda tag: tag not in kept and (not asked or tag in asked), lane)
    out = console()
    out.print(f"Removed {', '.join(pruned.names) or 'no environment'}; freed {pruned.freed / 2**30:.2f} GiB.")


@click.command()
@click.option(
    "--write",
    is_flag=True,
    help="Change releases.toml and releases.lock. Without this option, only the difference is shown.",
)
@click.option("--index", "address", help="Address of a package index [default: UV_DEFAULT_INDEX, else PIP_INDEX_URL].")
def sync(write: bool, address: str | None) -> None:
    """Add releases that the package index has and the axis lacks.

    With --write, releases.lock then names the packages of each release that it lacks, with the sha256 of each file. Existing
    entries are never changed.
    """
    from ..releases import sync as index

    suite = suites.load()
    path = suite.list
    out = console()
    found = index.find(suite.axis, address or index.configured_index())
    text = index.with_releases(path.read_text(encoding="utf-8"), found.new)
    click.echo(index.difference(path, text), nl=False)
    for sentence in found.sentences:
        out.print(plain(sentence))
    names = ", ".join(release.tag for release in found.new)
    if not found.new:
        out.print("The axis has every release of the index.")
    elif write:
        index.write(path, text)
        out.print(f"Added {names}. Measure them with `torch-history run NEW`.")
    else:
        out.print(f"New: {names}. Nothing was written. `torch-history sync --write` adds them.")
    if write:
        _pin(out)


def _pin(out: Console) -> None:
    """Adds to releases.lock what it lacks of the axis as it is now."""
    from ..releases import environments, pins

    for release in suites.load().axis.releases:
        for lane in LANES:
            if lane in release.pythons and pins.lock(release, lane, environments.requirements_of(release)):
                out.print(f"Pinned the packages of {release.tag} on Python {lane}.")


@click.command(epilog="Exit codes: 0 success, 1 something is wrong, 2 wrong usage.")
@click.argument("results", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
def check(results: Path | None) -> None:
    """List every damaged file and line in RESULTS.

    RESULTS is the suite's results/ by default. Lines that are out of bounds or from unknown sources are listed as well, and
    launches that exclusions.jsonl lists as taken out.
    """
    from ..kit import check as checks

    results = results and results.resolve()
    suite = suites.load()
    found = checks.check(results or suite.results, suite.axis)
    click.echo(found.summary)
    for problem in found.problems:
        click.echo(problem)
    if found.problems:
        sys.exit(1)


COMMANDS = (prune, sync, check)
