"""What fits on which release? The question asked of each release, and its answer in numbers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from recorder.build import Built, build
from recorder.environments import create, packages, python_for

from ...releases.axis import Release
from ...releases.environments import is_ready
from ...system.errors import UserError
from ..subjects import OwnWorkload
from .counted import UNLIMITED, Outcome, Process, Try, Wanted

GIGABYTES_EACH = 2.5
"""On disk that a release takes on the recorder; 1 GB of them is downloaded."""

TRIES = 12
"""Batches that are tried at most, per release and card."""

NO_FUNCTIONS = "{} names no functions, and `fit` counts what functions take: give it `functions`."

Say = Callable[[str], None]


@dataclass
class Largest:
    """Batches and what was found of each: the largest that `fits`, 0 for none, and the smallest `too_much`, or None."""

    tries: dict[int, Try] = field(default_factory=dict)

    @property
    def fits(self) -> int:
        return max((batch for batch, each in self.tries.items() if each.outcome is Outcome.FITS), default=0)

    @property
    def too_much(self) -> int | None:
        return min((batch for batch, each in self.tries.items() if each.outcome is Outcome.TOO_MUCH), default=None)

    @property
    def unclear(self) -> list[int]:
        """The batches that were tried with neither answer, in order."""
        return sorted(batch for batch, each in self.tries.items() if each.outcome is Outcome.UNCLEAR)


@dataclass(frozen=True)
class Counted:
    """One function of the workload on one release. `at`: the size and batch of `allocated` and `reserved`, peaks in
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
    return [each for each in releases if not is_ready(_folder(each, root), packages(each, python_for(each)))]


def needed(releases: Sequence[Release], root: Path) -> str:
    """What the installation of `releases` takes, in a sentence."""
    return (
        f"This installs {', '.join(each.tag for each in releases)} in {root}, besides what other commands installed: about "
        f"{GIGABYTES_EACH * len(releases):.1f} GB more on disk, {len(releases)} GB to download."
    )


def made(release: Release, root: Path, say: Say) -> Built:
    """The recorder of a release in `root`, installed where it is not there. Raises UserError where that cannot be done."""
    left = missing([release], root)
    folder = _folder(release, root)
    say(needed(left, root) if left else f"{release.tag}: environment {folder}")
    return build(create(release, python_for(release), folder))


def _folder(release: Release, root: Path) -> Path:
    """Raises UserError where the release has no environment."""
    return root / f"{release.tag}-py{python_for(release)}"


def count(built: Built, wanted: Wanted, own: OwnWorkload, failed: list[str], say: Say) -> Iterator[Counted]:
    """Counts every function of the workload, and adds to `failed` why one cannot be. Raises UserError where it has none."""
    with Process(built, wanted, own.path, own.text) as process:
        if not process.offer["variants"]:
            raise UserError(NO_FUNCTIONS.format(own.path.name))
        for variant in process.offer["variants"]:
            try:
                yield _count(process, wanted, variant, say)
            except UserError as error:
                failed.append(str(error))


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
    at, by_size = ", ".join(filter(None, (sizes[0], batch and f"batch {batch}"))), () if by_batch else sizes
    allocated, reserved = ((ends[0][peak], ends[1][peak]) for peak in ("peak_allocated", "peak_reserved"))
    found = by_batch, {size: attempt(size, None) for size in by_size}
    return Counted(process.version, variant, at, allocated, reserved, process.uncounted, *found)


def said_of(found: Largest) -> str:
    """Which batches fit, in a sentence."""
    tries = f"{len(found.tries)} tries"
    if found.too_much is not None and found.fits >= found.too_much:  # so memory does not grow with the batch
        return f"INCONCLUSIVE: a batch of {found.too_much} does not fit and one of {found.fits} does ({tries})"
    fits = f"{found.fits} fits" if found.fits else "none fits surely"
    smaller = [f"{batch:,}" for batch in found.unclear if batch < found.fits]
    fits += f" (of the smaller ones, INCONCLUSIVE for {', '.join(smaller)})" if smaller else ""
    above = found.fits + 1
    if found.too_much is None:
        return f"{fits}; INCONCLUSIVE from {above} on ({tries})"
    if found.too_much == above:
        return f"{fits}, {above} does not ({tries})"
    return f"{fits}; INCONCLUSIVE for {above} to {found.too_much - 1}; {found.too_much} does not fit ({tries})"


def largest(attempt: Callable[[int], Try], start: int, surely: int, at_most: int) -> Largest:
    """Tries batches until the largest that fits is known, then the smallest that does not, by a straight line of memory
    over batches, else in the middle. `surely`, `at_most`: bytes that the card has, less what is not counted."""
    found = Largest()

    def tried(batch: int) -> Outcome:
        if batch not in found.tries:
            found.tries[batch] = attempt(batch)
        return found.tries[batch].outcome

    for passing, room, until in (
        ((Outcome.FITS,), surely, TRIES - 3),
        ((Outcome.FITS, Outcome.UNCLEAR), at_most, TRIES),
    ):
        while len(found.tries) < until:
            below = max((b for b, each in found.tries.items() if each.outcome in passing), default=0)
            above = min((b for b, one in found.tries.items() if one.outcome not in passing and b > below), default=None)
            if above is not None and above <= below + 1:
                break
            guess = _guess(found, room) if len(found.tries) < TRIES - 1 else None
            tried(_next(below, above, guess, start))
    return found


def _next(below: int, above: int | None, guess: int | None, start: int) -> int:
    """The batch to try between `below`, which passes, and `above`, which does not; None: nothing is known to be too much."""
    if above is None:
        return max(below + 1, min(guess or 2 * below, 64 * below)) if below else start
    if guess is not None and below < guess < above:
        return guess
    return (below + above) // 2


def _guess(found: Largest, room: int) -> int | None:
    """The last untried batch before a straight line through two that ended passes the room, or the next; else None."""
    ended = sorted((batch, each.bytes) for batch, each in found.tries.items() if each.bytes)[-2:]
    if len(ended) < 2 or ended[1][1] <= ended[0][1]:
        return None
    (b0, y0), (b1, y1) = ended
    guess = b0 + int((room - y0) * (b1 - b0) / (y1 - y0))
    return next((batch for batch in (guess, guess + 1) if batch not in found.tries), None)
