"""What was measured of files of a user's own? Each has a folder of its own in the cache, with results like the suite's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from .launches import machines_in, read_launches


@dataclass(frozen=True)
class Measured:
    """One file on one machine in one environment: the `releases` that it ran on, and the day of the `last` launch."""

    name: str
    folder: Path
    machine: str
    environment: str
    releases: tuple[str, ...]
    last: str


def measured(cache: Path) -> Iterator[Measured]:
    """Every file that was measured, by name, read from `cache`."""
    for results in sorted(cache.glob("*/results")):
        text = sorted(results.parent.glob("measured/*/*.py"))
        name = text[-1].name if text else results.parent.name
        for machine in machines_in(results):
            tags: dict[str, set[str]] = defaultdict(set)
            last: dict[str, str] = defaultdict(str)
            for launch in read_launches(results, machine):
                tags[launch.environment].add(launch.release)
                last[launch.environment] = max(last[launch.environment], launch.started_at[:10])
            for environment, releases in sorted(tags.items()):
                in_order = tuple(sorted(releases, key=lambda tag: Version(tag.removeprefix("v"))))
                yield Measured(name, results.parent, machine, environment, in_order, last[environment])
