"""The command `fit`: will an own workload still fit on a card after an upgrade? Counted, with no GPU."""

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from contract.own_file import CALLED, SCRIPT, form_of

from ..system.errors import UserError
from ..system.locks import alone
from . import suite as suites
from .options import gigabytes
from .output import console, plain

if TYPE_CHECKING:
    from ..measuring.upgrading.counted import Wanted
    from ..measuring.upgrading.fits import Counted

UNSURE = (
    "A range: memory that two streams use is free when the device has finished. The first number is for a device that "
    "always has, the second for one that finishes only what the host waits for."
)


@click.command()
@click.argument("workload", type=click.Path(path_type=Path))
@click.option("--gpu", default="16GB", show_default=True, help="A known card (t4, rtx3090, a100, ...) or its memory.")
@click.option("--memory", callback=gigabytes, help="Memory of a card like --gpu, such as 12.6GB.")
@click.option("--from", "first", default="", help="Release to upgrade from [default: the one before the newest].")
@click.option("--to", "last", default="", help="Release to upgrade to [default: the newest].")
def fit(workload: Path, gpu: str, memory: float | None, first: str, last: str) -> None:
    """Count the memory that WORKLOAD takes on a GPU, without one.

    WORKLOAD is a file as for `run --workload` (docs/own-workload.md). If `inputs` has a parameter `batch`, the command
    finds the largest batch that fits, in the first of `sizes`. Otherwise it tries each of them.

    Each release is installed once more than for `run`, without CUDA's libraries, in env/recorder. The command says first how
    many gigabytes that takes.

    --gpu 24GB is the known card of that size with the least memory. --memory is in 10^9 bytes, not in GB as cards are sold.

    No kernel runs, so the answer says nothing about time. A workload that needs values computed on a GPU is refused. Exit
    code 3 means that a function could not be counted on a release.
    """
    from ..measuring.subjects import OwnWorkload
    from ..measuring.upgrading.counted import find
    from ..measuring.upgrading.fits import NO_FUNCTIONS, count, made, missing, needed

    own, wanted = OwnWorkload.of(workload), find(gpu, memory)
    if own.requirements:
        raise UserError(f"{workload.name} has `requirements`, and `fit` counts on the recorder, which has only torch.")
    if form_of(ast.parse(own.text.read_bytes()), CALLED)[0] == SCRIPT:
        raise UserError(NO_FUNCTIONS.format(workload.name))
    suite, out = suites.load(), console()
    newest = suite.axis.find(last or "HEAD")
    named = {suite.axis.find(first or f"{newest.tag}^"), newest}
    releases, root = sorted(named, key=lambda release: suite.axis.position(release.tag)), suite.env / "recorder"
    left = missing(releases, root)
    what = needed(left, root) if left else "Nothing has to be installed."
    out.print(plain(f"{what} It takes about {2 * len(left) + len(releases)} min in all."))
    counted: list[Counted] = []
    failed: list[str] = []
    try:
        with alone(root):
            for release in releases:
                built = made(release, root, lambda text: out.print(plain(text), style="dim"))
                counted += count(built, wanted, own, failed, lambda text: out.print(plain(text), style="dim"))
    finally:
        if counted:
            out.print(plain("\n\n".join([_answer(counted, wanted), *failed])))
    if not counted:
        raise UserError(" ".join(failed))
    sys.exit(3 if failed else 0)


def _answer(counted: "list[Counted]", wanted: "Wanted") -> str:
    """The answer as text: the peaks, the difference that the upgrade makes, and what fits."""
    from ..measuring.upgrading.counted import MIB
    from ..measuring.upgrading.fits import said_of

    def ends(of: tuple[int, int]) -> str:
        return " to ".join(dict.fromkeys(f"{each / MIB:,.1f}" for each in of))

    card = f"Card: {wanted.title}, which are {wanted.memory / 2**30:.2f} GiB"
    lines = ["", "Counted on the recorder: real releases, no kernel ran. Bytes are MiB.", card]
    for variant in dict.fromkeys(each.variant for each in counted):
        rows = [each for each in counted if each.variant == variant]
        lines += ["", f"{variant}{f', {rows[0].at}' if rows[0].at else ''}"]
        lines.append(_line("release", "peak allocated", "peak reserved"))
        lines += [_line(each.release, ends(each.allocated), ends(each.reserved)) for each in rows]
        if len(rows) > 1:
            first, last = rows[0], rows[-1]
            changes = _change(first.allocated, last.allocated), _change(first.reserved, last.reserved)
            lines.append(_line("difference", *changes))
        lines += ["  largest batch:" if rows[0].batches else "  fits:"]
        for each in rows:
            sizes = [f"{size or 'as it is'}: {tried.outcome.value}" for size, tried in each.sizes.items()]
            said = [said_of(each.batches)] if each.batches else sizes
            lines += [f"  {each.release:<10}{line}" for line in said]
    if any(low != high for each in counted for low, high in (each.allocated, each.reserved)):
        lines += ["", UNSURE]
    most = max(each.uncounted for each in counted)
    lines += [
        "",
        "Not counted: CUDA's context, the code of kernels and what cuBLAS takes for itself, assumed to be "
        f"0 to {most // MIB:,} MiB; where that decides, the answer is INCONCLUSIVE. Three calls were "
        "counted: inputs of other shapes later may fragment what is cached, which takes more.",
    ]
    return "\n".join(lines)


def _line(name: str, allocated: str, reserved: str) -> str:
    return f"  {name:<10}{allocated:>16}{reserved:>16}"


def _change(before: tuple[int, int], after: tuple[int, int]) -> str:
    pairs = zip(before, after, strict=True)
    changes = [f"{(new - old) / 2**20:+,.1f} ({(new - old) / old:+.1%})" for old, new in pairs if old]
    return " to ".join(dict.fromkeys(changes)) or "-"
