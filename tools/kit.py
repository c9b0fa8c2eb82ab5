"""What does a GPU that reaches no network need, to be measured with the torch that it has? A folder with the suite and
this program as they are here, and for one Python the packages that measuring takes, checked against kit.lock."""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import click

from torch_history.measuring.kit.archive import LISTED, MARK, RESULTS
from torch_history.releases.uv import run_uv, told
from torch_history.system import program
from torch_history.system.errors import UserError
from torch_history.system.files import read_bytes, write_atomically

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
"""For which kit.lock holds the packages."""

SUITE, SITE, SCRIPT, README = "suite", "site", "measure", "README.txt"
"""What lies in a kit; its scripts name the first two."""

COPIED = ("benchmarks", "contract", "measure", "recorder", "workloads", "asv.conf.json", "releases.toml", "wheels.json")
"""What of the suite is needed to measure, beside the program itself, and asv's list of all cases, LISTED."""

NOT_MEASURING = ("__pycache__", "vendor", "*.pyc")


def make(folder: Path, python: str, tell: Callable[[str], None]) -> int:
    """Makes the kit in `folder` for one of PYTHONS, and returns its bytes. Raises UserError where the folder holds
    something else or measurements, or a package cannot be had."""
    ours = (folder / MARK).is_file() and b'"commit": "' in read_bytes(folder / MARK)
    if folder.exists() and not ours and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} holds files that this program did not make. Nothing was changed: name a new folder.")
    if any((folder / SUITE / RESULTS).glob("*/")):
        raise UserError(f"{folder} holds what it measured. Nothing was changed: name a new folder.")
    for name in (SUITE, SITE):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / MARK, json.dumps({"python": python, "commit": _commit()}, indent=1) + "\n")
    tell("Copying the suite and the program")
    _copy(folder / SUITE)
    tell(f"Fetching packages for Python {python}")
    _fetch(folder / SITE, python)
    shutil.copytree(Path(__file__).with_name("in_kit"), folder, dirs_exist_ok=True)
    write_atomically(folder / README, (folder / README).read_text(encoding="utf-8").format(python=python))
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _copy(suite: Path) -> None:
    for name in (*COPIED, LISTED):
        source, target = program.SOURCES / name, suite / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(*NOT_MEASURING))
        elif source.exists():
            shutil.copy2(source, target)
    shutil.copytree(program.PACKAGE, suite / "torch_history", ignore=shutil.ignore_patterns(*NOT_MEASURING, "suite"))
    (about := suite / "torch_history.dist-info").mkdir()
    (about / "METADATA").write_text(f"Name: torch-history\nVersion: {version('torch-history')}\n", encoding="utf-8")


def _fetch(site: Path, python: str) -> None:
    """Puts the packages of kit.lock for that Python into `site`, each checked against its sha256 there."""
    try:
        run_uv(
            [
                *("pip", "install", "--target", str(site), "--python-version", python),
                *("--python-platform", "x86_64-manylinux_2_28", "--only-binary", ":all:", "--no-deps"),
                *("--require-hashes", "--link-mode", "copy", "--requirement", str(program.SOURCES / "kit.lock")),
            ]
        )
    except subprocess.CalledProcessError as error:
        raise UserError(f"The packages for Python {python} cannot be had: {told(error)}.") from error
    if python == PYTHONS[0]:
        (site / "tomllib.py").write_text("from tomli import TOMLDecodeError, load, loads\n", encoding="utf-8")
    for name in ("bin", ".lock"):
        path = site / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _commit() -> str:
    """The commit of this checkout, empty where it is none."""
    command = ["git", "-C", str(program.SOURCES), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, resolve_path=True))
@click.option("--for-python", "python", default="3.12", show_default=True, type=click.Choice(PYTHONS))
def main(folder: Path, python: str) -> None:
    """Makes a FOLDER that measures a GPU without a network, with the torch of the Python there.

    It holds the suite, this program and its packages. Take it to the machine with the GPU and run `./measure` there.
    """
    try:
        size = make(folder, python, click.echo)
    except UserError as error:
        sys.exit(str(error))
    except OSError as error:
        why = error.args[0][0][2] if isinstance(error, shutil.Error) else error
        sys.exit(f"The kit cannot be written into {folder}: {why}. Name a folder with room for it that you may write.")
    script = shlex.quote(f"{folder.name}/{SCRIPT}")
    click.echo(f"{folder} takes {size / 2**20:.1f} MiB. Take it to the GPU, and run {script} there.")


if __name__ == "__main__":
    main()
