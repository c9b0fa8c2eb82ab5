"""The command `fit`: will an own workload still fit on a card after an upgrade? Counted, with no GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import UserError
from . import suite as suites
from .output import console, plain

if TYPE_CHECKING:
    from ..fitting.answer import Counted
    from ..fitting.cards import Wanted
    from ..releases.axis import Axis, Release

MINUTES_EACH = 2
MINUTES_TO_COUNT = 1
MIB = 2**20


@click.command()
@click.argument("workload", type=click.Path(path_type=Path))
@click.option("--gpu", default="", help="A known card (t4, rtx3090, a100, ...) or an amount of memory [default: 16GB].")
@click.option("--sm", default="", help="Compute capability of another card, such as 86.")
@click.option("--memory", default="", help="Memory of another card in gigabytes, such as 12GB.")
@click.option("--from", "first", default="", help="Release to upgrade from [default: the one before the newest].")
@click.option("--to", "last", default="", help="Release to upgrade to [default: the newest].")
@click.option("--releases", "ranges", multiple=True, help="More releases, or ranges (2.3.1..2.6.0). Repeatable.")
@click.option("--function", "only", multiple=True, help="Count only this function of the file. Repeatable.")
def fit(
    workload: Path,
    gpu: str,
    sm: str,
    memory: str,
    first: str,
    last: str,
    ranges: tuple[str, ...],
    only: tuple[str, ...],
) -> None:
    """Count the memory that WORKLOAD takes on a GPU, without one.

    WORKLOAD is a file as for `run --workload` (docs/own-workload.md). If `inputs` has a parameter `batch`, the command
    finds the largest batch that fits. Otherwise it tries each of `sizes`.

    Each release is installed once more than for `run`, without CUDA's libraries, in env/recorder. The command says first how
    many gigabytes that takes.

    No kernel runs, so the answer says nothing about time. A workload that needs values computed on a GPU is refused.
    """
    from ..fitting.answer import count, made
    from ..fitting.cards import find
    from ..measuring.subjects import OwnWorkload

    workload = workload.resolve()
    if OwnWorkload.of(workload).requirements:
        raise UserError(f"{workload.name} has `requirements`, and `fit` counts on the recorder, which has only torch.")
    wanted = find(gpu or ("" if sm or memory else "16GB"), sm, memory)
    found = suites.load()
    out = console()
    releases = _releases(found.axis, first, last, ranges)
    root = found.env / "recorder"
    out.print(plain(_cost(releases, root)))
    counted = []
    for release in releases:
        built = made(release, root, lambda text: out.print(plain(text), style="dim"))
        counted += count(built, wanted, workload, only, lambda text: out.print(plain(text), style="dim"))
    out.print(plain(_answer(counted, wanted)))


def _releases(axis: Axis, first: str, last: str, ranges: tuple[str, ...]) -> list[Release]:
    """The two ends, and what else is named, in the axis's order. Raises UnknownRelease."""
    newest = axis.find(last or "HEAD")
    named = [axis.find(first or f"{newest.tag}^"), newest]
    for text in ranges:
        named += axis.select(text)
    return sorted(set(named), key=lambda release: axis.position(release.tag))


def _cost(releases: list[Release], root: Path) -> str:
    from ..fitting.answer import missing, needed

    left = missing(releases, root)
    minutes = MINUTES_EACH * len(left) + MINUTES_TO_COUNT * len(releases)
    if not left:
        return f"{len(releases)} releases are installed; counting takes about {minutes} minutes."
    return f"{needed(left, root)} It takes about {minutes} minutes in all."


def _answer(counted: list[Counted], wanted: Wanted) -> str:
    """The answer as text: the peaks, the difference that the upgrade makes, and what fits."""
    from ..fitting.answer import said_of, said_of_size

    lines = ["", "Counted on the recorder: real releases, no kernel ran. Bytes are MiB.", f"Card: {wanted.title}"]
    for variant in dict.fromkeys(each.variant for each in counted):
        rows = [each for each in counted if each.variant == variant]
        lines += ["", f"{variant}{f', {rows[0].at}' if rows[0].at else ''}"]
        lines.append(f"  {'release':<10}{'peak allocated':>16}{'peak reserved':>16}")
        for each in rows:
            lines.append(f"  {each.release:<10}{each.allocated / MIB:>16,.1f}{each.reserved / MIB:>16,.1f}")
        if len(rows) > 1:
            lines.append(f"  {'difference':<10}{_change(rows, 'allocated'):>16}{_change(rows, 'reserved'):>16}")
        lines += ["  largest batch:" if rows[0].batches else "  fits:"]
        for each in rows:
            if each.batches:
                lines.append(f"  {each.release:<10}{said_of(each.batches)}")
            lines += [
                f"  {each.release:<10}{size or 'as it is'}: {said_of_size(tried)}" for size, tried in each.sizes.items()
            ]
    most = max(each.bound.most for each in counted)
    lines += [
        "",
        "Not counted: CUDA's context, the code of kernels and what cuBLAS takes for itself, assumed to be "
        f"{counted[0].bound.least} to {most // MIB:,} MiB; where that decides, the answer is CAN'T TELL. Three calls were "
        "counted: inputs of other shapes later may fragment what is cached, which takes more.",
    ]
    return "\n".join(lines)


def _change(rows: list[Counted], what: str) -> str:
    before, after = getattr(rows[0], what), getattr(rows[-1], what)
    return f"{(after - before) / MIB:+,.1f} ({(after - before) / before:+.1%})" if before else "-"


COMMANDS = (fit,)
