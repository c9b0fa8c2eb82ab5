"""Can asv go on with its own file? One with too many combinations, or too long a name, takes all memory or ends
`publish`, so each is held against what asv writes before asv sees it."""

import hashlib
import math
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, convert

from ..system.files import read_object
from .launches import LEAST, bounds

LONGEST_PART = 200
"""Bytes of a part of a path that asv makes; systems allow 255, and asv and this program put endings behind it."""

LONGEST_PATH = 1000  # bytes of all such parts together; systems allow 4,096
MOST_CASES = 100_000  # combinations of the parameters of all benchmarks in a file; the suite has 4,994

Key = Annotated[str, Meta(pattern=r"\A[A-Za-z][A-Za-z0-9_. -]*\Z", max_length=100)]
Name = Annotated[str, Meta(pattern=r"\A[^\x00-\x1f\x7f]*\Z", max_length=LONGEST_PART)]
Moment = Annotated[int, Meta(ge=0, lt=2**43)]  # milliseconds since 1970, at most to the year 2248
Params = Annotated[list[Annotated[list[Name], Meta(max_length=1000)]], Meta(max_length=10)]
Numbers = list[float | None] | None


class Benchmark(Struct):
    """One benchmark in asv's list."""

    name: Name
    params: Params
    param_names: list[Name]
    version: Name
    type: Name = ""
    unit: Name = ""
    pretty_name: Name | None = None
    code: Annotated[str, Meta(max_length=100_000)] = ""

    def __post_init__(self) -> None:
        if len(self.params) != len(self.param_names):
            raise ValueError("params and param_names differ in length")


class _Row(Struct, forbid_unknown_fields=True):
    """What asv's file of a release holds of one benchmark, by its columns."""

    result: Numbers
    params: Params
    version: Name | None = None
    started_at: Moment | None = None
    duration: float | None = None
    samples: list[Numbers] | None = None
    profile: str | None = None
    stats_ci_99_a: Numbers = None
    stats_ci_99_b: Numbers = None
    stats_q_25: Numbers = None
    stats_q_75: Numbers = None
    stats_number: Numbers = None
    stats_repeat: Numbers = None


class _Results(Struct):
    """asv's file of one release in one environment on one machine."""

    commit_hash: Name
    env_name: Name
    date: Moment
    python: Name
    params: dict[Key, Name | None]
    requirements: dict[Name, Any]
    result_columns: list[Name]
    results: dict[Name, list[Any]]
    env_vars: dict[Key, Name] = {}
    durations: dict[Name, float] = {}
    version: Annotated[int, Meta(ge=2, le=2)] = 0  # of asv's format


def load_asvs(path: Path) -> dict[str, Any]:
    """asv's own results in `path`. Raises ValueError where asv would stumble over them, or they belong elsewhere."""
    try:
        stored = read_object(path)
        found = convert(stored, _Results)
        rows = [convert(dict(zip(found.result_columns, row, strict=False)), _Row) for row in found.results.values()]
        if found.params.get("machine") != path.parent.name:
            raise ValueError(f"its machine is {found.params.get('machine')!r}")
        _require_few([row.params for row in rows])
        require_short(parts_of(stored), found.results)
        for (least, most), row in zip(map(bounds, found.results), rows, strict=True):
            numbers = chain(row.result or (), *(samples or () for samples in row.samples or ()))
            sizes = [number for number in numbers if number and number == number]  # NaN stands for none
            if not all(least <= size < most and abs(size) >= LEAST for size in sizes):
                raise ValueError("a number is beyond what can be measured")
    except ValueError as error:
        raise ValueError(f"it is no whole result file of asv for this machine: {error}") from error
    name = found.env_name
    short = f"env-{hashlib.md5(name.encode()).hexdigest()}" if len(name) >= 128 else name
    if path.name != f"{found.commit_hash[:8]}-{short}.json":  # as asv's `get_filename` has it
        raise ValueError(f"it holds results of {found.commit_hash} in {name}")
    return stored


def parts_of(stored: dict[str, Any]) -> dict[str, str]:
    """What asv makes paths of beside names of benchmarks, in what `load_asvs` read: key -> part of the path."""
    surroundings = {f"env-{key}": value for key, value in stored.get("env_vars", {}).items()}
    return {key: f"{key}-{value}" for key, value in (stored["params"] | surroundings).items()}


def read_benchmarks(path: Path) -> list[Benchmark]:
    """asv's list of benchmarks. Raises ValueError, in words that follow the file's name, where asv would stumble over it."""
    try:
        stored = read_object(path)
        if stored.pop("version", None) != 2:  # of asv's format
            raise ValueError("its version is not 2")
        found = convert([*stored.values()], list[Benchmark])
        if wrong := [name for name, one in zip(stored, found, strict=True) if name != one.name]:
            raise ValueError(f"{wrong[0]!r} is listed under another name")
        _require_few([one.params for one in found])
        require_short({}, stored)
    except ValueError as error:
        raise ValueError(f"it is no list of asv's benchmarks: {error}") from error
    return found


def _require_few(params: Iterable[list[list[str]]]) -> None:
    if sum(math.prod(map(len, of)) for of in params) > MOST_CASES:
        raise ValueError(f"its parameters have more than {MOST_CASES:,} combinations")


def require_short(parts: dict[str, str], benchmarks: Iterable[str] = ()) -> None:
    """Raises ValueError where a path of all `parts` and the name of one benchmark is too long for a disk."""
    lengths = [len(part.encode()) for part in parts.values()]
    longest = max(*lengths, *(len(name.encode()) for name in benchmarks), 0, 0)
    if longest > LONGEST_PART or sum(lengths) > LONGEST_PATH:
        raise ValueError("what names a graph in it is too long for the name of a file")
