"""Which is the largest batch that fits? Found in few tries, each of which says that it fits, that it does not, or
neither."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field

TRIES = 12
"""Batches that are tried at most, per release and card."""


class Outcome(enum.Enum):
    """What one try says. UNCLEAR: what was not counted decides."""

    FITS = "fits"
    UNCLEAR = "CAN'T TELL"
    TOO_MUCH = "does not fit"


@dataclass(frozen=True)
class Try:
    """One batch: its outcome, and the bytes that it took of the card, 0 where it did not end."""

    outcome: Outcome
    bytes: int = 0


@dataclass
class Largest:
    """Batches and what was found of each. `fits`: the largest that fits, 0 where none does; `too_much`: the smallest that
    does not, None where none was found."""

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

    @property
    def orderly(self) -> bool:
        """Whether no larger batch fits where a smaller one does not; else memory does not grow with the batch."""
        return self.too_much is None or self.fits < self.too_much


def largest(attempt: Callable[[int], Try], start: int, surely: int, at_most: int, tries: int = TRIES) -> Largest:
    """Tries batches from `start` on until the largest that fits is known, and then the smallest that does not: where a
    straight line of memory over batches reaches the bytes that the card has, else in the middle of what is left. `surely`
    and `at_most`: these bytes, less what is not counted, at most and at least."""
    found = Largest()

    def tried(batch: int) -> Outcome:
        if batch not in found.tries:
            found.tries[batch] = attempt(batch)
        return found.tries[batch].outcome

    for passing, room, until in (
        ((Outcome.FITS,), surely, tries - 3),
        ((Outcome.FITS, Outcome.UNCLEAR), at_most, tries),
    ):
        while len(found.tries) < until:
            below = max((b for b, each in found.tries.items() if each.outcome in passing), default=0)
            above = min((b for b, one in found.tries.items() if one.outcome not in passing and b > below), default=None)
            if above is not None and above <= below + 1:
                break
            guess = _guess(found, room) if len(found.tries) < tries - 1 else None
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
    """The last batch before a straight line through two that ended passes the room, or the one after it where that
    was tried; None where there is no such line or both were."""
    ended = sorted((batch, each.bytes) for batch, each in found.tries.items() if each.bytes)[-2:]
    if len(ended) < 2 or ended[1][1] <= ended[0][1]:
        return None
    (b0, y0), (b1, y1) = ended
    guess = b0 + int((room - y0) * (b1 - b0) / (y1 - y0))
    return next((batch for batch in (guess, guess + 1) if batch not in found.tries), None)
