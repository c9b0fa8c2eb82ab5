"""What will an upgrade cost to find out, in releases, gigabytes and minutes? About, before anything is installed."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..releases.axis import Release
from .room import Room, gigabytes
from .search import expected_releases

INSTALLING = 100.0
"""Seconds in which a release is downloaded and installed, about; most of it is the network's."""

BEGINNING = 15.0
STARTING = 3.0
FUNCTION = 1.5
"""Seconds that a session takes to begin, the interpreter of a release to start in a round, and a function of milliseconds to
be timed in it."""

SIDES = 3
"""Releases of a session between the ends: one, and the two that it lies between."""

UNKNOWN = 2
"""Functions that a file is taken to have whose text does not list them."""


@dataclass(frozen=True)
class Expectation:
    """What is expected at first, for both ends, and where one function changed: releases to install, GB, minutes."""

    between: int
    installs: tuple[int, int]
    gigabytes: tuple[float, float]
    minutes: tuple[float, float]

    @property
    def sentences(self) -> list[str]:
        first, then = (
            f"{installs} to install, about {size:.0f} GB and {max(1, minutes):.0f} min"
            for installs, size, minutes in zip(self.installs, self.gigabytes, self.minutes, strict=True)
        )
        lines = [f"Both ends are measured first: {first}."]
        if self.between:
            lines.append(f"If one function changed, finding its release among {self.between} takes in all: {then}.")
        return lines


def expected(releases: Sequence[Release], room: Room, rounds: int, functions: int) -> Expectation:
    """Of an upgrade over `releases`, the first and the last its ends."""
    ends = [releases[0], releases[-1]]
    new = [release for release in ends if not room.is_there(release)]
    middle = [release for release in releases[1:-1] if not room.is_there(release)]
    more = expected_releases(len(releases)) - len(ends)
    size = sum(map(gigabytes, new))
    each = max((gigabytes(release) for release in middle), default=0.0)
    launch = STARTING + functions * FUNCTION
    first = len(new) * INSTALLING + BEGINNING + rounds * len(ends) * launch
    installs = min(more, len(middle))
    then = first + installs * INSTALLING + more * (BEGINNING + rounds * SIDES * launch)
    return Expectation(
        len(releases) - len(ends),
        (len(new), len(new) + installs),
        (size, size + installs * each),
        (first / 60, then / 60),
    )


def functions_in(file: Path) -> int:
    """How many functions a file lists; UNKNOWN where only running it would tell."""
    found = 0
    for node in ast.parse(file.read_bytes()).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            found += len(node.value.keys) if {"functions", "variants", "iterators", "commands"} & {*names} else 0
    return found or UNKNOWN
