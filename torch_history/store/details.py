"""What does a case ask of a GPU, by name? Kernels, library calls and copies beside the numbers that the recorder counts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, convert

from ..system.files import read_object, set_aside, warn, write_atomically
from .launches import Size

DETAILS = ".recorded"
"""Ending of the file beside a release's launches. It holds `names`, a list, and `cases`: question, variant and size ->
`session`, `kernels` (pairs of a name's place in the list and how often it ran), `library_calls`, `copied`, `form`."""


class _Seen(Struct):
    """Of one case."""

    session: str
    kernels: list[tuple[Size, Size]]
    library_calls: dict[str, Size] = {}
    copied: dict[str, Any] = {}
    form: list[Any] = []


class _Details(Struct):
    names: list[str]
    cases: dict[str, _Seen]


def add_details(path: Path, session: str, details: Mapping[str, Mapping[str, Any]]) -> None:
    """Puts the details of cases into the file of a release; a damaged one is kept under another name, with a warning."""
    try:
        cases = {**read_details(path)}
    except ValueError as error:
        warn(f"{path} was damaged: {error}. It is kept as {set_aside(path)}, and a new one was started.")
        cases = {}
    cases |= {case: {**found, "session": session} for case, found in details.items()}
    names = sorted({name for found in cases.values() for name in found["kernels"]})
    place = {name: index for index, name in enumerate(names)}
    lines = []
    for case, found in sorted(cases.items()):
        kernels = [[place[name], count] for name, count in found["kernels"].items()]
        stored = json.dumps({**found, "kernels": kernels}, sort_keys=True)
        lines.append(f"{json.dumps(case)}: {stored}")
    listed, body = (",\n".join(of) for of in (map(json.dumps, names), lines))
    write_atomically(path, f'{{"names": [\n{listed}\n], "cases": {{\n{body}\n}}}}\n')


def read_details(path: Path) -> dict[str, dict[str, Any]]:
    """Question, variant and size -> its details, `kernels` by name. Raises ValueError where the file is damaged."""
    if not path.exists():
        return {}
    stored = read_object(path)
    try:
        convert(stored, _Details)
        names = stored["names"]
        return {
            case: {**found, "kernels": {names[place]: count for place, count in found["kernels"]}}
            for case, found in stored["cases"].items()
        }
    except (IndexError, ValueError) as error:
        raise ValueError("it holds no details of counted cases") from error
