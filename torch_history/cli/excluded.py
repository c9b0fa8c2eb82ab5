"""The option `--with-excluded`: results as they would be if nothing had been excluded from them."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

with_excluded = click.option(
    "--with-excluded", is_flag=True, help="Put back what was excluded, from the git history of the results."
)


@contextlib.contextmanager
def results_of(results: Path, machine: str, with_excluded: bool) -> Iterator[Path]:
    """`results`, or a copy of one machine's to which what was excluded is put back. Raises NoHistory."""
    if not with_excluded:
        yield results
        return
    from ..store import removed
    from ..system.scratch import scratch

    gone = removed.removals(results)
    with scratch(Path(tempfile.gettempdir()), "torch-history-") as folder:
        shutil.copytree(results / machine, folder / machine)
        count = removed.put_back(folder, machine, gone)
        click.echo(f"Launches of {machine} that were excluded and are put back here: {count}.", err=True)
        yield folder
