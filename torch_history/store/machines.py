"""Which machine do the results in a folder belong to?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .files import is_name, is_text, read_object, warn

RECORD = "machine.json"


def record_of(folder: Path) -> dict[str, Any]:
    """The record of the machine whose results lie in `folder`. The folder names it: where its record is missing or damaged
    nothing else is known of it, and a warning says so, as it does where the record is another machine's."""
    path = folder / RECORD
    try:
        record = read_object(path)
        if not is_text(record.get("machine")):
            raise ValueError("it names no machine")
    except ValueError as error:
        warn(f"{path}: {error}, so nothing is known of that machine but its name.")
        record = {"machine": folder.name}
    if record["machine"] != folder.name:
        warn(f"{path} is the record of another machine, {record['machine']}: the folder's name is what counts.")
    return {**record, "machine": folder.name}


def processor_of(record: Mapping[str, Any]) -> str:
    """The processor, or the GPU, that a machine's record names, as a sentence can hold it in brackets; empty where it names
    none."""
    said = record.get("cpu" if record.get("device", "cpu") == "cpu" else "gpu", "")
    return re.sub(r"[()`]", "", said) if is_name(said) else ""
