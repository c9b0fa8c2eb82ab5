"""Which card is meant? A known one by its name or its memory, or one like it with another memory or capability."""

from __future__ import annotations

import re
from dataclasses import dataclass

from recorder.cards import Card, cards

from ..errors import UserError

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


def find(gpu: str = "", sm: str = "", memory: str = "") -> Wanted:
    """The card of that name (`t4`, `RTX 3090`) or memory (`24GB`), or the first with the capability `sm` (`86`), with
    `memory` where that is given. Raises UserError where none is known."""
    known = list(cards().values())
    if gpu and not _gigabytes(gpu):
        known = [
            card for card in known if _plain(gpu) in {_plain(name) for name in (card.key, card.title, *card.called)}
        ]
    elif gpu:
        known = [card for card in known if card.sold_with == _gigabytes(gpu)]
    if sm:
        known = [card for card in known if card.capability == f"sm_{sm.removeprefix('sm_').replace('.', '')}"]
    if not known:
        asked = " ".join(part for part in (gpu, f"sm_{sm.removeprefix('sm_')}" if sm else "") if part)
        raise UserError(
            f"No card '{asked}' is known. Name one of these: {', '.join(sorted(map(_offered, cards().values())))}; give "
            "--sm and --memory for another of the same capability, or add it to recorder/devices.toml."
        )
    if memory and not _gigabytes(memory):
        raise UserError(f"'{memory}' is no amount of memory: give gigabytes, such as --memory 12GB.")
    return Wanted(known[0], int(_gigabytes(memory) * GB) if memory else known[0].memory)


def _offered(card: Card) -> str:
    return f"{card.called[0] if card.called else card.key} ({card.sold_with} GB, {card.capability})"


def _plain(name: str) -> str:
    return re.sub(r"nvidia|geforce|tesla|[\s_-]", "", name.lower())


def _gigabytes(text: str) -> float:
    """`24GB` or `24` as 24; 0 where it is no amount."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:GB?)?", text.strip(), re.IGNORECASE)
    return float(match[1]) if match else 0
