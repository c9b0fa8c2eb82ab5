"""What fits on which release? The question asked of each release, and its answer in numbers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from recorder import Refused
from recorder.build import Built, build
from recorder.environments import create, packages, python_for

from ...releases.axis import Release
from ...releases.environments import is_ready
from ...system.errors import UserError
from .batches import Largest, Try, largest
from .counted import UNLIMITED, Process, Wanted

GIGABYTES_EACH = 2.5
"""On disk that a release takes on the recorder; 1 GB of them is downloaded."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Counted:
    """One function of the workload on one release. `at`: the size or batch of `allocated` and `reserved`, peaks in
    bytes where the card never runs out: if it has always finished, and if never before the host waits. `uncounted`: bytes
    that are not counted, at most. `batches`: what fits by batch, None where the file has no parameter `batch`. `sizes`:
    what fits by size, in the file's order."""

    release: str
    variant: str
    at: str
    allocated: tuple[int, int]
    reserved: tuple[int, int]
    uncounted: int
    batches: Largest | None
    sizes: dict[str, Try]


def missing(releases: Iterable[Release], root: Path) -> list[Release]:
    """Those that `made` installs. Raises UserError where one cannot be installed."""
    try:
        return [each for each in releases if not is_ready(_folder(each, root), packages(each, python_for(each)))]
    except Refused as refused:
        raise UserError(str(refused)) from refused


def needed(releases: Sequence[Release], root: Path) -> str:
    """What the installation of `releases` takes, in a sentence."""
    return (
        f"This installs {', '.join(each.tag for each in releases)} in {root}, besides what other commands installed: about "
        f"{GIGABYTES_EACH * len(releases):.1f} GB more on disk, {len(releases)} GB to download."
    )


def made(release: Release, root: Path, say: Say) -> Built:
    """The recorder of a release in `root`, installed where it is not there. Raises UserError where that cannot be done."""
    left = missing([release], root)
    try:
        folder = _folder(release, root)
        say(needed(left, root) if left else f"{release.tag}: environment {folder}")
        return build(create(release, python_for(release), folder))
    except Refused as refused:
        raise UserError(str(refused)) from refused


def _folder(release: Release, root: Path) -> Path:
    """Raises Refused where the release has no environment."""
    return root / f"{release.tag}-py{python_for(release)}"


def count(built: Built, wanted: Wanted, workload: Path, say: Say) -> list[Counted]:
    """Counts every function of the workload. Raises UserError where one cannot be counted."""
    with Process(built, wanted, workload) as process:
        return [_count(process, wanted, variant, say) for variant in process.offer["variants"]]


def _count(process: Process, wanted: Wanted, variant: str, say: Say) -> Counted:
    sizes, batch = process.offer["sizes"], process.offer["batch"]

    def attempt(size: str, of: int | None) -> Try:
        tried = process.attempt(variant, size, of)
        what = f"batch {of}" if batch else f"size {size or 'of the file'}"
        say(f"{process.version}, {variant}, {what}: {tried.outcome.value}")
        return tried

    ends, memory, by_batch = process.ends(variant, sizes[0], batch, 0, UNLIMITED), wanted.memory, None
    if batch is not None:
        by_batch = largest(lambda of: attempt(sizes[0], of), batch, memory - process.uncounted, memory)
    return Counted(
        release=process.version,
        variant=variant,
        at=f"batch {batch}" if batch else sizes[0],
        allocated=(ends[0]["peak_allocated"], ends[1]["peak_allocated"]),
        reserved=(ends[0]["peak_reserved"], ends[1]["peak_reserved"]),
        uncounted=process.uncounted,
        batches=by_batch,
        sizes={} if by_batch else {size: attempt(size, None) for size in sizes},
    )


def said_of(found: Largest) -> str:
    """Which batches fit, in a sentence."""
    tries = f"{len(found.tries)} tries"
    if not found.orderly:
        return f"CAN'T TELL: a batch of {found.too_much} does not fit and one of {found.fits} does ({tries})"
    fits = f"{found.fits} fits" if found.fits else "none fits surely"
    smaller = [f"{batch:,}" for batch in found.unclear if batch < found.fits]
    fits += f" (of the smaller ones, CAN'T TELL for {', '.join(smaller)})" if smaller else ""
    above = found.fits + 1
    if found.too_much is None:
        return f"{fits}; CAN'T TELL from {above} on ({tries})"
    if found.too_much == above:
        return f"{fits}, {above} does not ({tries})"
    return f"{fits}; CAN'T TELL for {above} to {found.too_much - 1}; {found.too_much} does not fit ({tries})"
