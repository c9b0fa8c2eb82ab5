"""The command `certify`: does a real GPU give what the recorder counts?"""

from __future__ import annotations

import ast
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from contract.certified import Case, cases
from contract.surroundings import PLACES, inherited

from ..store.asv_results import read_benchmarks
from ..system.errors import UserError
from ..system.locks import alone
from . import suite as suites
from .options import WHOLE_PATH, duration, python_option
from .output import console, plain

if TYPE_CHECKING:
    from rich.console import Console

    from ..store.certificates import Certificate


@click.command()
@click.argument("files", nargs=-1, type=WHOLE_PATH)
@click.option("--ask", "target", type=WHOLE_PATH, help="Ask this machine's GPU, into this file.")
@python_option("Interpreter whose torch sees the GPU, for --ask.")
@click.option(
    "--within", default="4m", show_default=True, callback=duration, help="Time for --ask; what is known is kept."
)
@click.option("--list", "lists", is_flag=True, help="List the cases that are asked, and those that are not, with why.")
def certify(files: tuple[Path, ...], target: Path | None, interpreter: str | None, within: float, lists: bool) -> None:
    """Compare a GPU with the recorder.

    On a machine with a GPU, `torch-history certify --ask FILE` asks it. That needs only an interpreter with torch. Nothing
    is installed, and no network is used. Anywhere and later, `torch-history certify FILE...` asks the recorder the same
    questions on the same release and card, prints every difference, and writes a certificate into results/certificates/.

    Exit code 3 means that something differs.
    """
    suite, out = suites.load(), console()
    if lists:
        for case in sorted(_cases(suite.results / "benchmarks.json"), key=lambda case: bool(case.left_out)):
            click.echo(f"{case.name}: not asked, {case.left_out}" if case.left_out else case.name)
    elif target:
        if target.is_dir() or not target.parent.is_dir():
            raise click.UsageError(f"--ask cannot write {target}: name a file in a folder that is there.")
        ask(target, interpreter or "python3", within, out)
        out.print(plain(f"Compare them with the recorder, on any machine: torch-history certify {target}"))
    elif not files:
        raise UserError("Nothing was asked for. Give the FILE of a GPU's answers, or make one with --ask FILE.")
    else:
        with alone(suite.env / "recorder"):
            equal = [_compared(path, suite, out) for path in files]
        sys.exit(0 if all(equal) else 3)


def _cases(listed: Path) -> list[Case]:
    """The cases of the questions that asv last found. Raises UserError where its list cannot be read."""
    try:
        params = {one.name.partition(".")[0]: one.params for one in read_benchmarks(listed)}
    except (OSError, ValueError) as error:
        raise UserError(f"The cases are in {listed}, and {error}. Any `torch-history run` writes that file.") from error
    return cases(
        {name: ([*map(ast.literal_eval, of)], [*map(ast.literal_eval, sizes)]) for name, (of, sizes) in params.items()}
    )


def ask(target: Path, interpreter: str, seconds: float, out: Console) -> None:
    """Asks the GPU here, into `target`, and says what came of it. Raises UserError where it could not be asked."""
    from recorder import certificate

    out.print(f"Asking the GPU what each case takes and launches, for at most {seconds / 60:.1f} minutes.")
    asked = certificate.ask(Path(interpreter), inherited(os.environ, PLACES), target, seconds)
    answered = f"{sum(not of.why for of in asked.cases.values())} of {len(asked.cases)} cases"
    out.print(plain(f"{answered} of torch {asked.here.torch} were asked of {asked.here.gpu}."))


def _compared(path: Path, suite: suites.Suite, out: Console) -> bool:
    """Compares one file with the recorder, prints and writes its certificate; returns whether nothing differs."""
    from recorder import certificate

    from ..measuring.upgrading.fits import made

    try:
        gpu = certificate.read(path)
        if gpu.recorder:
            raise UserError(f"{path} was asked of the recorder, and not of a GPU.")
        card = certificate.card_of(gpu.here)
        built = made(suite.axis.find(gpu.here.torch), suite.env / "recorder", lambda text: out.print(plain(text)))
        certificate.same_release(gpu.here, built)
        python = built.wheel.packages.parents[2] / "bin" / "python"
        with tempfile.TemporaryDirectory(prefix="torch-history-") as folder:
            built = certificate.built_for(card, built, Path(folder, "recorder"))
            recorded = certificate.ask(python, built.surroundings(card.key), Path(folder, "recorder.json"))
    except UserError as refused:
        raise UserError(f"{refused} No certificate was written.") from refused
    result = certificate.compare(gpu, recorded, card)
    if not result.agreed and not result.differences:
        raise UserError("No case could be compared, so there is nothing to certify. No certificate was written.")
    for line in _said(result):
        out.print(plain(line))
    written = certificate.write(result, suite.results)
    out.print(plain(f"The certificate is {written}: commit it, whatever it says."))
    return not result.differences


def _said(result: Certificate) -> Iterator[str]:
    """What a certificate says, line by line."""
    for name, (ours, theirs) in result.described_otherwise.items():
        yield f"The card: {name} is {theirs} by its driver and {ours} in devices.toml"
    for each in result.differences:
        yield f"{each.case}: {each.what} is {each.gpu} on the GPU and {each.recorder} on the recorder ({each.why})"
    for case, why in result.refused.items():
        yield f"{case}: not compared. {why}"
    cases = {each.case for each in result.differences}
    yield (
        f"{len(result.agreed)} cases are equal, {len(cases)} differ in {len(result.differences)} numbers, "
        f"{len(result.refused)} could not be compared, {len(result.left_out)} were not asked."
    )
