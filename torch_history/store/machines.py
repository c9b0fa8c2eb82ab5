"""Which machine do the results in a folder belong to?"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..system.files import is_name, read_object, warn

RECORD = "machine.json"

MOST_FACTS = 30  # facts in a record; this program's have 11 at most


def record_of(folder: Path) -> dict[str, Any]:
    """A machine's record. The folder names it: where the record is damaged or another's, a warning says so."""
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
    """The record in a file. Raises ValueError where it names no machine, or holds what cannot be printed of one."""
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
    """The processor or GPU that a record names, as a sentence can hold it in brackets; empty for none."""
    said = record.get("cpu" if record.get("device", "cpu") == "cpu" else "gpu", "")
    return re.sub(r"[()`]", "", said) if is_name(said) else ""
