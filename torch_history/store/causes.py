"""What is the evidence of a cause? One JSON file per series and pair; docs/explain.md has keys and proofs."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert, to_builtins

from ..system.files import files_in, read_object, readable, write_atomically

FOLDER = "causes"  # in a machine's folder
SCHEMA = 1  # of a file; it grows by one when a key goes or changes its meaning, not when one is added
LARGEST = 2**18  # bytes of one file: profiles are reduced to tables before they are stored

LONGEST_WORDS, LONGEST_DIFFERENCE = 1000, 4000
Words = Annotated[str, Meta(max_length=LONGEST_WORDS)]
Name = Annotated[str, Meta(max_length=150)]
Count = Annotated[int, Meta(ge=0, le=2**31)]
Number = Annotated[float, Meta(ge=-1e15, le=1e15)]
Numbers = Annotated[tuple[Number, ...], Meta(max_length=100)]
Measured = Annotated[tuple[Annotated[float, Meta(ge=0, le=1e15)], ...], Meta(max_length=100)]

Kind = Literal["CAUSE", "PART", "CLEARED", "UNKNOWN", "NOT THERE", "INCONCLUSIVE"]

NOT_LOOKED_INTO: tuple[Kind, ...] = ("NOT THERE", "INCONCLUSIVE")
"""Verdicts on a difference that was not seen again, so that nothing was looked for."""


class Pulled(Struct, frozen=True):
    """A lever that was pulled on both releases: what a call takes by launch, and the share of the difference that it
    removes, with its interval. `verdict` is CAUSE, PART, CLEARED, or UNKNOWN where chance cannot be ruled out; `refused`
    says why it was not tried, and `by_profile` why a profile clears it without its being pulled."""

    name: Name
    words: Words
    proves: Words
    verdict: Kind = "UNKNOWN"
    old: Numbers = ()
    new: Numbers = ()
    removed: Number = 0.0
    low: Number = 0.0
    high: Number = 0.0
    refused: Words = ""
    by_profile: Words = ""

    @property
    def said(self) -> str:
        """What it was found to do, after "with <words>: "."""
        if self.by_profile:
            return f"not tried, because by the profile {self.by_profile}"
        ends = f" ({100 * self.low:.0f} to {100 * self.high:.0f} %)" if self.low < self.high else ""
        return f"removes {100 * self.removed:.0f} %{ends}"


class Place(Struct, frozen=True):
    """Where a series' number went: seconds, bytes or counts a call in an operator, a Python function, a symbol of a library,
    a library, or a compiled function of PyTorch's with all that it calls (`caller`); of what a process does once, in
    processes that it starts, in a package, or in a function; of what calls leave, from a line. The interval is of the
    difference new - old. `calls` are calls a call where they are counted, processes, or a package's imported modules."""

    kind: Literal["operator", "function", "symbol", "caller", "library", "process", "package", "line"]
    name: Name
    old: Number
    new: Number
    low: Number
    high: Number
    verdict: Kind = "UNKNOWN"
    calls: tuple[Number, Number] | None = None


class Code(Struct, frozen=True):
    """A symbol's code in both wheels: the `same` without addresses, `instructions`, and where loops begin."""

    symbol: Name
    same: bool
    instructions: tuple[Count, Count]
    old_loops: Annotated[tuple[Count, ...], Meta(max_length=20)] = ()
    new_loops: Annotated[tuple[Count, ...], Meta(max_length=20)] = ()

    @property
    def words(self) -> str:
        """What was found, in a clause that follows the symbol's name."""
        if not self.same:
            return f"other instructions ({self.instructions[0]:,} before, {self.instructions[1]:,} now)"
        if self.old_loops == self.new_loops:
            return f"the same {self.instructions[0]:,} instructions"
        old, new = (", ".join(map(str, loops)) for loops in (self.old_loops, self.new_loops))
        return (
            f"the same {self.instructions[0]:,} instructions at another address: of 64 bytes its loops begin at {old} "
            f"before, and at {new} now"
        )


class Evidence(Struct, frozen=True):
    """What `torch-history explain` found of one series between two releases. `numbers`, those of levers and those of places
    are in the unit of the series' metric; `clock` is `none` where these are bytes or counts."""

    environment: Name
    benchmark: Name
    version: Name
    parameters: tuple[Name, ...]
    old: Name
    new: Name
    taken_at: Name
    took: Annotated[float, Meta(ge=0, le=1e6)]
    clock: Literal["wall", "cpu", "none"]
    numbers: tuple[Measured, Measured]
    ratio: Annotated[float, Meta(gt=0, le=1e18)]
    low: Annotated[float, Meta(gt=0, le=1e18)]
    high: Annotated[float, Meta(gt=0, le=1e18)]
    verdict: Kind
    words: Words
    levers: Annotated[tuple[Pulled, ...], Meta(max_length=100)] = ()
    places: Annotated[tuple[Place, ...], Meta(max_length=200)] = ()
    code: Annotated[tuple[Code, ...], Meta(max_length=20)] = ()
    python: Annotated[dict[Name, Annotated[str, Meta(max_length=LONGEST_DIFFERENCE)]], Meta(max_length=3)] = {}
    """Function of Python -> how its code differs, as `difference` in explaining/fingerprints.py shows it."""
    notes: Annotated[tuple[Words, ...], Meta(max_length=50)] = ()
    commits: tuple[Name, Name] = ("", "")
    environments: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    script: Annotated[str, Meta(max_length=60_000)] = ""
    reproduced: tuple[Number, Number] | None = None
    schema: Annotated[int, Meta(ge=1, le=SCHEMA)] = SCHEMA

    @property
    def is_reproduced(self) -> bool:
        return moved_alike(self.reproduced, self.ratio)

    @property
    def file(self) -> str:
        """The name of its file."""
        words = "-".join([self.benchmark, *self.parameters, self.environment])
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", words.replace("%", "percent")).strip("-")
        return f"{self.old}-{self.new}-{slug}.json"


def moved_alike(reproduced: tuple[float, float] | None, ratio: float) -> bool:
    """Whether a script's two numbers have the ratio of the suite's, up to half of it on a logarithmic scale."""
    old, new = reproduced or (0.0, 0.0)
    # As SHARE in analysis/causes.py.
    return min(old, new) > 0 and abs(math.log(new / old / ratio)) <= 0.5 * abs(math.log(ratio))


def parse(path: Path) -> Evidence:
    """The evidence in a file. Raises ValueError, in words that follow the file's name, where it holds none."""
    if path.is_file() and path.stat().st_size > LARGEST:
        raise ValueError(f"it is larger than {LARGEST // 2**10} KiB")
    try:
        found = convert(read_object(path), Evidence)
    except ValidationError as error:
        raise ValueError(f"it is no evidence of a cause: {error}") from error
    texts = (found.words, found.old, found.new, found.environment, found.benchmark, *found.parameters)
    if not "".join(texts).isprintable():
        raise ValueError("it holds characters that cannot be printed")
    if path.name != found.file:
        raise ValueError(f"it is that of {found.file}")
    return found


def read(results: Path, machine: str) -> Iterator[Evidence]:
    """All evidence of a machine. What is none is left out with a warning."""
    for path in files_in(results / machine / FOLDER, "*.json"):
        if found := readable(path, parse):
            yield found


def write(results: Path, machine: str, evidence: Evidence) -> Path:
    """Stores `evidence`, in place of what was found before of the same series and releases. Returns its file."""
    path = results / machine / FOLDER / evidence.file
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(to_builtins(evidence), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return path
