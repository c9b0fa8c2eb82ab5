"""Which card is meant? A known one by its name or its memory, or one like it with another memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

from recorder.cards import Card, cards

from ...system.errors import UserError

GB = 10**9


@dataclass(frozen=True)
class Wanted:
    """A known card that is pretended, and its bytes of memory, which may be others than the known card's."""

    card: Card
    memory: int

    @property
    def title(self) -> str:
        """In words: `Tesla T4 (sm_75, 15,843,721,216 bytes)`."""
        like = "" if self.memory == self.card.memory else "a card like "
        return f"{like}{self.card.title} ({self.card.capability}, {self.memory:,} bytes)"


def find(gpu: str, memory: float | None = None) -> Wanted:
    """The card of that name (`t4`, `RTX 3090`) or memory (`24GB`), with `memory` in gigabytes where that is given. Raises
    UserError where none is known."""
    sold = _gigabytes(gpu)

    def is_meant(card: Card) -> bool:
        names = (card.key, card.title, *card.called)
        return card.sold_with == sold if sold else _plain(gpu) in map(_plain, names)

    known = next(filter(is_meant, cards().values()), None)
    if known is None:
        offered = ", ".join(sorted(map(_offered, cards().values())))
        raise UserError(
            f"No card '{gpu}' is known. Name one of these: {offered}; for another card name one of the same capability and "
            "give its own --memory, or add it to recorder/devices.toml."
        )
    return Wanted(known, int(memory * GB) if memory else known.memory)


def _offered(card: Card) -> str:
    return f"{card.called[0] if card.called else card.key} ({card.sold_with} GB, {card.capability})"


def _plain(name: str) -> str:
    return re.sub(r"nvidia|geforce|tesla|[\s_-]", "", name.lower())


def _gigabytes(text: str) -> float:
    """`24GB` or `24` as 24; 0 where it is no amount."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:GB?)?", text.strip(), re.IGNORECASE)
    return float(match[1]) if match else 0
