"""Which machine do the results in a folder belong to?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .files import is_text, read_object, warn

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
