"""What was measured of files of a user's own? Each has a folder of its own in the cache, with results like the suite's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from .launches import machines_in, read_launches
from .skipped import FILE, environments_in


@dataclass(frozen=True)
class Measured:
    """One file on one machine in one environment: the `releases` that it ran on, when the `last` launch began, and the
    last one of each release (`began`)."""

    name: str
    folder: Path
    machine: str
    environment: str
    releases: tuple[str, ...]
    last: str
    began: dict[str, str]


def measured(cache: Path) -> Iterator[Measured]:
    """Every file that was measured, by name, read from `cache`."""
    for results in sorted(cache.glob("*/results")):
        text = sorted(results.parent.glob("measured/*/*.py"))
        name = text[-1].name if text else results.parent.name
        for machine in machines_in(results):
            began: dict[str, dict[str, str]] = defaultdict(dict)
            for launch in read_launches(results, machine):
                of = began[launch.environment]
                of[launch.release] = max(of.get(launch.release, ""), launch.started_at)
            for environment, of in sorted(began.items()):
                in_order = tuple(sorted(of, key=lambda tag: Version(tag.removeprefix("v"))))
                yield Measured(name, results.parent, machine, environment, in_order, max(of.values()), of)


def only_skipped(cache: Path) -> Iterator[tuple[Path, str]]:
    """The folder of each file, with the environment, in which every release was skipped."""
    there = {(each.folder, each.environment) for each in measured(cache)}
    for file in sorted(cache.glob(f"*/{FILE}")):
        for environment in environments_in(file.parent):
            if (file.parent, environment) not in there:
                yield file.parent, environment
