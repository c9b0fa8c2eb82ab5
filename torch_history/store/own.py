"""What was measured of a user's own files, each in a folder of the cache, and why was a release skipped?"""

import datetime
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec import convert
from packaging.version import Version

from ..system.files import read_object, readable, write_atomically
from .launches import machines_in, read_launches

FILE = "skipped.json"  # in the folder of the file: environment -> release -> [when, why]


@dataclass(frozen=True)
class Measured:
    """One file on one machine in one environment: release, oldest first, -> when its last launch `began`. Where every
    release was skipped, none began, and no machine is named."""

    name: str
    folder: Path
    machine: str
    environment: str
    began: dict[str, str]


def measured(cache: Path) -> Iterator[Measured]:
    """Every file that was measured, by name, then those of which every release was skipped, read from `cache`."""
    there = set()
    for results in sorted(cache.glob("*/results")):
        text = sorted(results.parent.glob("measured/*/*.py"))
        name = text[-1].name if text else results.parent.name
        for machine in machines_in(results):
            began: dict[str, dict[str, str]] = defaultdict(dict)
            for launch in read_launches(results, machine):
                of = began[launch.environment]
                of[launch.release] = max(of.get(launch.release, ""), launch.started_at)
            for environment, of in sorted(began.items()):
                in_order = {tag: of[tag] for tag in sorted(of, key=Version)}
                there.add((results.parent, environment))
                yield Measured(name, results.parent, machine, environment, in_order)
    for folder in (file.parent for file in sorted(cache.glob(f"*/{FILE}"))):
        for environment in sorted(_read(folder)):
            if (folder, environment) not in there:
                yield Measured(folder.name, folder, "", environment, {})


def remember(folder: Path, environment: str, tag: str, reason: str) -> None:
    """Keeps why a release was skipped, in place of an earlier reason. Raises OSError where the folder cannot be written."""
    every = _read(folder)
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    every.setdefault(environment, {})[tag] = (now, " ".join(reason.split())[:2000])
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / FILE, json.dumps(every, indent=1))


def reasons(folder: Path, environment: str, measured: Mapping[str, str] = {}) -> dict[str, str]:
    """Release -> why it was skipped last. What was `measured` since is left out: release -> when its last launch began."""
    of = _read(folder).get(environment, {})
    return {tag: why for tag, (when, why) in of.items() if measured.get(tag, "") < when}


def _read(folder: Path) -> dict[str, dict[str, tuple[str, str]]]:
    of = dict[str, dict[str, tuple[str, str]]]
    path = folder / FILE
    return (readable(path, lambda path: convert(read_object(path), of)) if path.exists() else None) or {}
