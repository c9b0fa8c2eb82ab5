"""The commands `kit ...`: measuring on a GPU that reaches no network."""

import os
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..system import program
from ..system.errors import UserError
from . import suite as suites
from .certify import ask
from .options import WHOLE_PATH, duration, python_option
from .output import console, plain
from .run import Asked, LikeRun


@click.group()
def kit() -> None:
    """Measure on a machine that reaches no network. See docs/machines.md."""


TAKEN = ("device", "questions", "variants", "sizes", "launches", "only", "carried", "recorded_as")


@kit.command(cls=LikeRun, takes=TAKEN)
@click.argument("folder", type=WHOLE_PATH)
@click.option("--within", default="9m", show_default=True, callback=duration, help="Time for everything.")
@python_option("Interpreter whose torch sees the GPU.", "the one that runs")
@click.option("--ask/--no-ask", "asks", default=True, help="Whether the card is asked for a certificate first.")
def here(
    folder: Path, within: float, asks: bool, interpreter: str | None, carried: Path | None, **options: Any
) -> None:
    """Measure here, with the kit in FOLDER, and write one archive. `./measure` in a kit calls this.

    What was measured when the time is over, or when Ctrl+C is pressed, is in the archive.
    """
    from ..measuring.kit import archive
    from .running import measure, requested

    archive.mark(folder)
    if carried and options["recorded_as"]:
        raise click.UsageError("--as names the release of an installed torch, and --carried has its own.")
    if within < 60.0:
        raise UserError(f"In {within:.0f} seconds nothing can be measured. Give at least a minute: --within 1m.")
    os.chdir(program.SOURCES)  # the kit's own suite, wherever it was called
    ends, out, found = time.monotonic() + within, console(), suites.load()
    asked = Asked(interpreter=None if carried else interpreter or sys.executable, carried=carried, **options)
    if requested(asked, None).device != "cuda" and not asked.device:
        raise UserError("nvidia-smi shows no GPU here. To measure the processor instead, say --device cpu.")
    answers = folder / archive.ANSWERS
    try:
        if asks:
            try:
                ask(answers, interpreter or sys.executable, min(240.0, 0.4 * within), out)
            except UserError as refused:
                out.print(plain(f"{refused} There will be no certificate. What follows does not need it."))
        left = max(1.0, ends - time.monotonic() - 20.0)  # which packing and ending take at most
        ran = measure(replace(asked, within=left))
    finally:
        path = archive.pack(folder, found.results.resolve(), answers)
        said = f"Take this home: {path} ({path.stat().st_size / 1000:.0f} kB)." if path else "Nothing new was measured."
        out.print(plain(said))
    if not ran:
        sys.exit(4)


@kit.command("file")
@click.argument("path", metavar="ARCHIVE", type=WHOLE_PATH)
def file_(path: Path) -> None:
    """Check an ARCHIVE that a kit wrote, and file it in results/.

    Nothing is filed where anything in it is wrong. Its results get the folder of the machine that was measured.
    """
    from ..measuring.kit import archive

    found, out = suites.load(), console()
    filed = archive.file(path, found.results, found.env, found.axis, lambda words: out.print(plain(words)))
    if filed.machines:
        out.print(
            plain(f"{filed.lines} new lines are in {' and '.join(str(found.results / of) for of in filed.machines)}.")
        )
    if filed.answers:
        out.print(plain(f"Compare them with the recorder: torch-history certify {shlex.quote(str(filed.answers))}"))
    else:
        out.print(plain(f"No answers for a certificate were filed: {filed.why}."))


@kit.command()
@click.argument("packed", metavar="PARTS", type=WHOLE_PATH)
@click.argument("folder", type=WHOLE_PATH)
@python_option("Interpreter that has torch.", "the one that runs")
def unpack(packed: Path, folder: Path, interpreter: str | None) -> None:
    """Unpack the PARTS of a carried release, and make its environment in FOLDER.

    The torch that is installed gets one beside it, so that both are compared.
    """
    from ..measuring.kit import carried

    began, out = time.monotonic(), console()
    tags = carried.unpack(packed, folder, interpreter or sys.executable)
    versions = " ".join(tag[1:] for tag in tags)
    said = f"These can be measured: torch-history run --carried {shlex.quote(str(folder))} {versions}"
    out.print(plain(said), soft_wrap=True)
    out.print(f"Unpacking and checking took {time.monotonic() - began:.0f} s.")
