"""What are variants and sizes in words of code? contract/labels.toml, beside the identifiers that no reader knows yet."""

import functools
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .series import Name, Series

FILE = Path(__file__).resolve().parents[2] / "contract" / "labels.toml"


@functools.cache
def labels() -> dict[str, dict[str, Any]]:
    """Question -> `question`, `variants` and `sizes` in words; code stands between backticks."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def named(series: Series) -> str:
    """`x[index]`, index made once (99 % of 80,000 numbers, 100 times); the identifiers of what has no label."""
    known = labels().get(series.question, {})
    variant, size = (*series.plain, "", "")[:2]
    words = known.get("variants", {}).get(variant, variant or series.question.replace("_", " "))
    of_size = known.get("sizes", {}).get(size, size)
    return f"{words} ({of_size})" if of_size else words


def coded(question: str, variant: str) -> str:
    """`take_reused` (`torch.take(x, index)`, index made once)."""
    return f"`{variant}` ({labels()[question]['variants'][variant]})"


Say = Callable[[str, Iterable[Name]], str]


def explained() -> Say:
    """Gives a function that ends the sentences of one text with what the identifiers in it are that none before named:
    `selection time, mask rows 1 % x 1: SLOWER. (mask: x[mask]; rows 1 % x 1: 1 % of 5,000 rows, once.)`"""
    said: set[Name] = set()

    def told(sentence: str, names: Iterable[Name]) -> str:
        new = {name: words for name in names if name not in said and (words := _words(*name))}
        said.update(new)
        listed = "; ".join(f"{identifier}: {words}" for (_, identifier), words in new.items())
        return f"{sentence} ({listed}.)" if new else sentence

    return told


def _words(question: str, identifier: str) -> str:
    known = labels().get(question, {})
    return str(known.get("variants", {}).get(identifier) or known.get("sizes", {}).get(identifier, ""))
