"""Why was a release skipped for a file of a user's own? Kept beside its results, and told again without measuring."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

from msgspec import convert

from ..system.files import read_object, warn, write_atomically

FILE = "skipped.json"
"""In the folder of the file: environment -> release -> [when, why]."""

LONGEST_REASON = 2000


def remember(folder: Path, environment: str, tag: str, reason: str) -> None:
    """Keeps why a release was skipped, in place of an earlier reason. Raises OSError where the folder cannot be written."""
    every = _read(folder)
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    every.setdefault(environment, {})[tag] = (now, " ".join(reason.split())[:LONGEST_REASON])
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / FILE, json.dumps(every, indent=1))


def reasons(folder: Path, environment: str, measured: dict[str, str] | None = None) -> dict[str, str]:
    """Release -> why it was skipped last. What was `measured` since is left out: release -> when its last launch began."""
    since = measured or {}
    of = _read(folder).get(environment, {})
    return {tag: why for tag, (when, why) in of.items() if since.get(tag, "") < when}


def environments_in(folder: Path) -> list[str]:
    """The environments in which a release was skipped."""
    return sorted(_read(folder))


def _read(folder: Path) -> dict[str, dict[str, tuple[str, str]]]:
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        return convert(read_object(path), dict[str, dict[str, tuple[str, str]]])
    except ValueError as error:
        warn(f"{path} is skipped: {error}.")
        return {}
