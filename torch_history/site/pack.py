"""How is a lane written into a script that is small? Numbers as digits of a large base; what repeats, once.

app.js reads it back (`TH.unpacked`), to the same numbers. docs/site.md lists the keys.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

DIGITS = "".join(chr(code) for code in range(32, 127) if chr(code) not in '"\\<')
"""Printable characters that neither a script nor JSON escapes. The first half end an integer, the others go on."""

BASE = len(DIGITS) // 2

EXPONENTS = (0, 3, 6, 9, 12, 15)
"""Of ten: a series is written as whole multiples of the largest of these powers that all its numbers are multiples of."""

LARGEST = 2**53
"""Up to here a browser's numbers hold every integer."""


def unsigned(number: int) -> str:
    """`number` (0 or more) in base BASE, its least digit first."""
    if number < BASE:
        return DIGITS[number]
    number, digit = divmod(number, BASE)
    return DIGITS[BASE + digit] + unsigned(number)


def signed(number: int) -> str:
    return unsigned(2 * number if number >= 0 else -2 * number - 1)


def numbers(values: Sequence[float]) -> str | list[float]:
    """The numbers of a series: `2 * exponent`, the middle one, and the differences from it; or one more than that, and runs
    as a difference from the run before and a length, where this is shorter. A list where there is no such exponent."""
    if not values:
        return ""
    for exponent in EXPONENTS:
        with np.errstate(over="ignore"):
            scaled = np.rint(np.asarray(values, float) * 10.0**exponent)
        if np.abs(scaled).max() < LARGEST and (scaled / 10.0**exponent == values).all():
            break
    else:
        return list(values)
    whole = [int(number) for number in scaled]
    runs = unsigned(2 * exponent + 1) + _runs(whole)
    if len(runs) <= len(whole):
        return runs
    middle = sorted(whole)[len(whole) // 2]
    apart = unsigned(2 * exponent) + signed(middle) + "".join(signed(number - middle) for number in whole)
    return min(runs, apart, key=len)


def _runs(whole: Sequence[int]) -> str:
    text, before, start = "", 0, 0
    for i in range(1, len(whole) + 1):
        if i == len(whole) or whole[i] != whole[start]:
            text += signed(whole[start] - before) + unsigned(i - start)
            before, start = whole[start], i
    return text


def pattern(pairs: Iterable[Sequence[int]]) -> str:
    """[release, block] of each launch: how much further both are, in one integer where the release is the next at most."""
    text, at, before = "", 0, 0
    for release, block in pairs:
        further, shift = release - at, block - before
        turned = 2 * shift if shift >= 0 else -2 * shift - 1
        text += unsigned(3 * turned + min(further, 2))
        if further >= 2:
            text += unsigned(further)
        at, before = release, block
    return text


def places(found: Sequence[int]) -> str:
    """Positions, each larger than the one before."""
    return "".join(unsigned(here - before) for before, here in zip((0, *found), found, strict=False))


class _Table:
    """What occurs, each once, in order of first occurrence."""

    def __init__(self) -> None:
        self._at: dict[Any, int] = {}

    def place(self, value: Any) -> int:
        return self._at.setdefault(_hashed(value), len(self._at))

    def __iter__(self) -> Any:
        return iter(self._at)


def _hashed(value: Any) -> Any:
    return tuple(map(_hashed, value)) if isinstance(value, list | tuple) else value


def part(data: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a lane, without the answers to claims."""
    tables = {name: _Table() for name in ("benchmarks", "names", "numbers", "disturbed", "missing", "packages")}
    rows = ""
    for row in data["series"]:
        names = row["key"][1:]
        rows += "".join(
            unsigned(number)
            for number in (
                tables["benchmarks"].place([row["question"], row["metric"], row["benchmark"], row["unit"]]),
                len(names),
                *(tables["names"].place(name) for name in names),
                row["pattern"],
                tables["numbers"].place(numbers(row["numbers"])),
                tables["disturbed"].place(places(row["disturbed"])),
                tables["missing"].place(row["missing"]),
            )
        )
    releases = [
        {**release, "facts": _facts(release["facts"], tables["packages"])} if release["facts"] else release
        for release in data["releases"]
    ]
    return {
        "releases": releases,
        **{key: data[key] for key in ("rounds", "reasons", "limits")},
        "patterns": [pattern(pairs) for pairs in data["patterns"]],
        **{name: list(table) for name, table in tables.items()},
        "rows": rows,
    }


def _facts(facts: Mapping[str, Any], table: _Table) -> dict[str, Any]:
    if "packages" not in facts:
        return dict(facts)
    return {**facts, "packages": "".join(unsigned(table.place(name)) for name in facts["packages"])}


def deflated(text: str) -> str:
    """Text that a browser's DecompressionStream inflates, in base64."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def keys(series: Iterable[Sequence[str]]) -> dict[str, Any]:
    """Keys of series: `names`, and `rows` of how many names a key has and which."""
    table = _Table()
    rows = "".join(unsigned(len(key)) + "".join(unsigned(table.place(name)) for name in key) for key in series)
    return {"names": list(table), "rows": rows}


def evidence(found: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What was found of causes, all in the lane's environment: `texts`, and `rows` of the ratio, what a script gave, and the
    places of the texts of OF_EVIDENCE and of the parameters."""
    table = _Table()
    rows = [
        [
            one["ratio"],
            one["reproduced"],
            *(table.place(text) for text in (*(one[key] for key in OF_EVIDENCE), *one["parameters"])),
        ]
        for one in found
    ]
    return {"texts": list(table), "rows": rows}


OF_EVIDENCE = ("benchmark", "old", "new", "verdict", "words", "seen_on")
"""Texts of evidence, in the order in which app.js reads them."""
