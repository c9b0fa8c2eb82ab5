"""The command `certify`: does a real GPU give what the recorder counts?"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from ..errors import UserError
from . import suite as suites
from .options import python_option
from .output import console, plain


@click.command()
@click.argument("release", required=False)
@python_option("Interpreter whose torch sees the GPU.")
def certify(release: str | None, interpreter: str) -> None:
    """Compare this machine's GPU with the recorder.

    The same cases run on both. The command prints every difference and writes a certificate.

    RELEASE is the one that the interpreter has [default: the newest]. It is installed a second time, for the recorder.

    Exit code 3 means that something differs.
    """
    from recorder import Refused, certificate

    from ..fitting.answer import made

    found, out = suites.load(), console()
    try:
        gpu = certificate.ask(Path(interpreter), dict(os.environ), on_recorder=False)
        card = certificate.card_of(gpu["here"])
        built = made(found.axis.find(release or "HEAD"), found.env / "recorder", lambda text: out.print(plain(text)))
        certificate.same_release(gpu["here"], built)
        python = built.wheel.packages.parents[2] / "bin" / "python"
        recorded = certificate.ask(python, built.surroundings(card.key), on_recorder=True)
    except Refused as refused:
        raise UserError(f"{refused} No certificate was written.") from refused
    result = certificate.compare(gpu, recorded, card)
    for each in result.differences:
        out.print(plain(f"{each.case}: {each.what} is {each.gpu} on the GPU and {each.recorder} on the recorder"))
    for case, why in result.left_out.items():
        out.print(plain(f"{case}: not compared. {why}"))
    if not result.agreed and not result.differences:
        raise UserError("No case could be compared, so there is nothing to certify. No certificate was written.")
    path = certificate.write(result, found.results)
    out.print(
        plain(
            f"{len(result.agreed)} cases agree, {len(result.differences)} numbers differ, "
            f"{len(result.left_out)} cases are skipped."
        )
    )
    out.print(plain(f"The certificate is {path}: commit it, whatever it says."))
    if result.differences:
        sys.exit(3)


COMMANDS = (certify,)
