"""What can be used of a stored file? All that is whole; what is damaged or foreign is left out in one sentence per file."""

from __future__ import annotations

import fcntl
import functools
import itertools
import json
import logging
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

Check = Callable[[Any], bool]


@functools.cache
def warn(sentence: str) -> None:
    """Says `sentence` once in this process, however often the file is read."""
    logging.getLogger(__name__).warning(sentence)


def parse(text: str | bytes) -> Any:
    """The JSON in `text`. Raises ValueError where there is none, or half a character, which cannot be printed."""
    text = text.encode() if isinstance(text, str) else text
    try:
        data = json.loads(text)
        if b"\\u" in text:
            json.dumps(data, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ValueError("it is no JSON") from error
    return data


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object that a file holds. Raises ValueError, in words that follow the file's name, where there is none."""
    try:
        data = parse(path.read_bytes())
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror})") from error
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")
    return data


def read_lines(path: Path, read: Callable[[bytes], T], asked: Callable[[bytes], bool] = bool) -> Iterator[T]:
    """What `read` makes of each line of a file that is `asked` for. Lines for which it raises ValueError are left out, with
    one warning."""
    try:
        with path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH)  # so that no line is read while it is being written
            lines = stream.read().split(b"\n")
    except OSError as error:
        warn(f"{path} is left out: it cannot be read ({error.strerror}).")
        return
    first, wrong = "", 0
    for number, line in enumerate(lines, start=1):
        if line.strip() and asked(line):
            try:
                yield read(line)
            except ValueError as error:
                first = first or f"{path}, line {number} is left out: {error}."
                wrong += 1
    if wrong:
        warn(first if wrong == 1 else f"{first} {wrong - 1} more of its lines are none either.")


def write_atomically(path: Path, text: str) -> None:
    """Writes `text` so that a reader, or whoever finds the file after a crash, sees all of it or none."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with scratch.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def append_lines(path: Path, lines: list[str]) -> None:
    """Appends whole lines in one write under a lock, on disk when this returns; begins a new line after a torn one."""
    if not lines:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        size = stream.seek(0, os.SEEK_END)
        torn = False
        if size:
            stream.seek(size - 1)
            torn = stream.read(1) != b"\n"
        text = "".join(line + "\n" for line in lines)
        stream.write((b"\n" if torn else b"") + text.encode())
        stream.flush()
        os.fsync(stream.fileno())


def set_aside(path: Path) -> str:
    """Renames a damaged file so that nobody reads it and nothing of it is lost; returns its new name."""
    numbered = (path.with_name(f"{path.name}.damaged-{i}") for i in itertools.count(1))
    return path.rename(next(free for free in numbered if not free.exists())).name


def fields_of(kind: Any, data: Any, checks: Mapping[str, Check]) -> dict[str, Any]:
    """What a dataclass can be made of from an object in a file; keys that it does not know, a newer version's, are passed
    over. Raises ValueError where a key is missing or, by `checks`, holds something else."""
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")
    for name, required in _fields(kind).items():
        if required and name not in data:
            raise ValueError(f"it has no '{name}'")
    found = {name: data[name] for name in _fields(kind) if name in data}
    for name, value in found.items():
        if name in checks and not checks[name](value):
            raise ValueError(f"its '{name}' cannot be {textwrap.shorten(json.dumps(value), 60)}")
    return found


@functools.cache
def _fields(kind: Any) -> dict[str, bool]:
    """Names of a dataclass' fields -> whether they must be given."""
    return {field.name: field.default is field.default_factory is MISSING for field in fields(kind)}


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_number(value: Any) -> bool:
    """Whether `value` is a finite number, which JSON written by Python may not be."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= sys.float_info.max


def is_list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))
