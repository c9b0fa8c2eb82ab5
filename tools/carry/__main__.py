"""Makes the parts of a release, to measure it where there is no network: `python -m tools.carry --help`."""

import shlex
import shutil
import sys
from pathlib import Path

import click

from torch_history.cli import suite as suites
from torch_history.releases.pins import LOCK_FILE, Lock
from torch_history.system.errors import UserError
from torch_history.system.program import cache

from . import prepare
from .pack import earlier, pack

PART = 60 * 2**20
"""Bytes of a part at most, so that each travels in one call of a service that takes 64 MiB."""


@click.command()
@click.argument("release")
@click.argument("folder", type=click.Path(path_type=Path, resolve_path=True))
@click.option("--for-python", "python", default="3.12", show_default=True, help="The Python there that has torch.")
@click.option("--arch", "architecture", default=90, show_default=True, help="The GPU's architecture, 90 for sm_90.")
def main(release: str, folder: Path, python: str, architecture: int) -> None:
    """Makes in FOLDER the parts of a RELEASE, of at most 60 MiB each, to measure it where there is no network.

    It runs there on the CUDA libraries that the installed torch has. The same command continues where it was interrupted.
    """
    try:
        earlier(folder)
        suite = suites.load()
        chosen = suite.axis.find(release)
        work = cache() / "carry" / f"{chosen.tag}-py{python}-sm{architecture}"
        click.echo(prepare.cost(work))
        lock = Lock.read(Path(LOCK_FILE))
        payload = prepare.prepare(chosen, python, architecture, work, suite.results, lock, click.echo)
        click.echo("Packing it")
        packed = pack(payload, folder, PART)
        shutil.rmtree(work)
    except UserError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"{release} cannot be made in {cache()} and {folder}: {error}. Both need room and to be writable.")
    for part in packed:
        click.echo(f"{part.name} takes {part.stat().st_size / 2**20:.1f} MiB.")
    click.echo(f"Take {folder} there, and run: ./torch-history kit unpack {shlex.quote(folder.name)} CARRIED")


if __name__ == "__main__":
    main()
