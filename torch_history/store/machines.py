"""Which machine do the results in a folder belong to?"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..system.files import is_name, read_object, warn

RECORD = "machine.json"

MOST_FACTS = 30
"""Facts in a record; this program's have 11 at most."""


def record_of(folder: Path) -> dict[str, Any]:
    """The record of the machine whose results lie in `folder`. The folder names it: where its record is missing or damaged
    nothing else is known of it, and a warning says so, as it does where the record is another machine's."""
    path = folder / RECORD
    try:
        record = parse(path)
    except ValueError as error:
        warn(f"{path}: {error}, so nothing is known of that machine but its name.")
        record = {"machine": folder.name}
    if record["machine"] != folder.name:
        warn(f"{path} is the record of another machine, {record['machine']}: the folder's name is what counts.")
    return {**record, "machine": folder.name}


def parse(path: Path) -> dict[str, Any]:
    """The record in a file. Raises ValueError, in words that follow the file's name, where it names no machine, or holds
    what cannot be said of one: whatever shows a machine makes words and names of files of it."""
    record = read_object(path)
    if not is_name(record.get("machine")):
        raise ValueError("it names no machine")
    if len(record) > MOST_FACTS:
        raise ValueError(f"it holds more than {MOST_FACTS} facts")
    for key, value in record.items():
        if not is_name(key) or not (is_name(value) or (key == "version" and isinstance(value, int))):
            raise ValueError(f"its {key[:80]!r} is no short text that can be printed")
    return record


def processor_of(record: Mapping[str, Any]) -> str:
    """The processor, or the GPU, that a machine's record names, as a sentence can hold it in brackets; empty where it names
    none."""
    said = record.get("cpu" if record.get("device", "cpu") == "cpu" else "gpu", "")
    return re.sub(r"[()`]", "", said) if is_name(said) else ""
