"""Which cases does a session measure, and in which order where it has a limit? Those that a claim rests on come first."""

from collections.abc import Collection, Iterable

from ..analysis.claims import CLAIMS
from ..system.errors import SessionError

SCALES = ("small", "paper")
"""Sizes that are measured when asked for; any other always is, unless sizes are asked for by their whole names."""

ORDER = (
    "intersection",
    "batching",
    "selection",
    "saved_tensors",
    "warm_up",
    "start_up",
    "models",
    "products",
    "compiling",
)
"""Questions in the order in which a limit lets them through: first those whose answers differ most between devices."""

DECIDING = " x 100"
"""Sizes of selection that decide its claim."""

START = 6.0
"""Seconds that an interpreter takes to import torch and the suite, once a release and round."""

AT_ONCE = 60
"""Cases at most of a portion, so that the end of the time costs the last cases their numbers and no others a round."""

Place = tuple[str, int]
"""A question (`selection.Selection`) and the index of one of its cases."""

Parameters = tuple[str, ...]


def is_asked(parameters: Parameters, sizes: Collection[str], variants: Collection[str]) -> bool:
    """Whether a case (`'eager'`) is of the `variants` (none are all) and of `sizes`, whole names or scales."""
    if not parameters:
        return True
    variant, size = parameters[0].strip("'"), parameters[-1].strip("'")
    if variants and variant not in variants:
        return False
    scale = size.rpartition(" ")[2]
    return size in sizes or scale in sizes or (scale not in SCALES and set(sizes) <= set(SCALES))


def scales(sizes: Iterable[str]) -> tuple[str, ...]:
    """What a measuring process is told of the `sizes` that were asked for: a scale, of a whole name its last word."""
    found = (size.rpartition(" ")[2] for size in sizes)
    return tuple(dict.fromkeys(scale for scale in found if scale in SCALES))


def refuse_unknown(asked: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raises SessionError for the first of `asked` that is none of the `known`; `what` is size or variant."""
    known = sorted({*known} - {""})
    for each in asked:
        if each not in known:
            raise SessionError(f"There is no {what} '{each}'. Known: {', '.join(known) or 'none'}.")


def rank(question: str, parameters: Parameters) -> tuple[int, int]:
    """Where a case stands in the order: cases that a claim rests on come first."""
    name = question.partition(".")[0]
    place = ORDER.index(name) if name in ORDER else len(ORDER)
    variant, size = (parameters[0].strip("'"), parameters[-1].strip("'")) if parameters else ("", "")
    claim = CLAIMS.get(name)
    if claim is None or variant not in claim.variants:
        return 2, place
    return (1 if name == "selection" and not size.endswith(DECIDING) else 0), place
