"""What are variants and sizes in words of code? contract/labels.toml, beside the identifiers that no reader knows yet."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

from ..analysis.series import Series

FILE = Path(__file__).resolve().parents[2] / "contract" / "labels.toml"


@functools.cache
def labels() -> dict[str, dict[str, Any]]:
    """Question -> `question`, `variants` and `sizes` in words; code stands between backticks."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def named(series: Series) -> str:
    """`x[index]`, index made once (99 % of 80,000 numbers, 100 times); the identifiers of what has no label."""
    known = labels().get(series.question, {})
    variant, size = (*(parameter.strip("'") for parameter in series.parameters), "", "")[:2]
    words = known.get("variants", {}).get(variant, variant or series.question.replace("_", " "))
    of_size = known.get("sizes", {}).get(size, size)
    return f"{words} ({of_size})" if of_size else words
