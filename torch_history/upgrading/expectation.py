"""What will an upgrade cost to find out, in releases, gigabytes and minutes? About, before anything is installed."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..releases.added import Sized
from ..releases.axis import Release
from .room import GIGABYTE, Room
from .search import expected_releases

INSTALLING = 100.0
"""Seconds in which a release is downloaded and installed, about; most of it is the network's."""

BEGINNING = 15.0
STARTING = 3.0
FUNCTION = 1.5
"""Seconds that a session takes to begin, the interpreter of a release to start in a round, and a function of milliseconds to
be timed in it."""

MIDDLE_ROUNDS = 3
"""Rounds of a release between two others, for a change that is known to be there: three releases tell of noise sooner than
two, and what is inconclusive gets more."""

SIDES = 3
"""Releases of a session between the ends: one, and the two that it lies between."""

COMMAND = 12.0
"""Seconds in which the processes of a command that imports torch are started, waited for and started again."""

BUSY = 3.0
"""How many times as long measuring takes on a busy machine, where nearly all is waited for and asked again."""

EXPLAINING = 240.0
"""Seconds in which the cause of one change is looked for."""

UNPACKED = 3.0
"""A wheel takes two to three times its size on the disk."""

NAMED = 6
"""Packages that a sentence names."""

UNKNOWN = 2
"""Functions that a file is taken to have whose text does not list them."""


@dataclass(frozen=True)
class Expectation:
    """What is expected at first, for both ends, and where one function changed: releases to install, GB, minutes, and the
    minutes `at_most`, where times are inconclusive and get their budget, and what changed is explained."""

    between: int
    installs: tuple[int, int]
    gigabytes: tuple[float, float]
    minutes: tuple[float, float]
    at_most: tuple[float, float]
    at_once: float = 0.0
    """Gigabytes of the releases that a session between the ends has at the same time."""
    limit: float | None = None
    """Gigabytes that --disk allows."""

    @property
    def sentences(self) -> list[str]:
        first, then = (
            (f"{installs} to install, about {size:.0f} GB and " if installs else "nothing to install, about ")
            + _range(minutes, most)
            for installs, size, minutes, most in zip(
                self.installs, self.gigabytes, self.minutes, self.at_most, strict=True
            )
        )
        lines = [f"Both ends are measured first: {first}. Functions that take seconds take longer."]
        if self.between:
            lines.append(f"If one function changed, finding its release among {self.between} takes in all: {then}.")
        if self.between and self.limit is not None and self.at_once > self.limit:
            lines.append(
                f"That measures {SIDES} releases at the same time, which take about {self.at_once:.0f} GB. --disk "
                f"{self.limit:g}GB is too little for it: the ends are measured, and no release between them."
            )
        return lines


def rounds_of(releases: int, rounds: int, has_budget: bool) -> int:
    """Rounds that measure everything in a session of so many releases, where `rounds` were asked for. Without a budget no
    session gets more later, and each has them all."""
    return min(rounds, MIDDLE_ROUNDS) if has_budget and releases >= SIDES else rounds


def _range(minutes: float, most: float) -> str:
    """`9 to 27 min`"""
    least, most = max(1, round(minutes)), max(1, round(most))
    return f"{least} min" if least == most else f"{least} to {most} min"


def expected(
    releases: Sequence[Release],
    room: Room,
    rounds: int,
    functions: int,
    commands: int = 0,
    budget: float = 0.0,
    explaining: float = 0.0,
    busy: bool = False,
) -> Expectation:
    """Of an upgrade over `releases`, the first and the last its ends, and a file with so many functions and commands.
    `budget` is what a comparison gets beyond its rounds where it is inconclusive, in seconds, and `explaining` what there is
    for explaining; a machine that is `busy` measures for longer."""
    ends = [releases[0], releases[-1]]
    new = [release for release in ends if not room.is_there(release)]
    middle = [release for release in releases[1:-1] if not room.is_there(release)]
    more = expected_releases(len(releases)) - len(ends)
    size = sum(map(room.takes, new))
    each = max(map(room.takes, middle), default=0.0)
    launch = (STARTING + functions * FUNCTION + commands * COMMAND) * (BUSY if busy else 1.0)
    first = len(new) * INSTALLING + BEGINNING + rounds * len(ends) * launch
    installs = min(more, len(middle))
    then = first + installs * INSTALLING + more * (BEGINNING + rounds_of(SIDES, rounds, budget > 0) * SIDES * launch)
    explained = min(explaining, EXPLAINING)
    return Expectation(
        len(releases) - len(ends),
        (len(new), len(new) + installs),
        (size, size + installs * each),
        (first / 60, (then + explained) / 60),
        ((first + budget) / 60, (then + (1 + more) * budget + explaining) / 60),
        sum(map(room.takes, ends)) + max(map(room.takes, releases[1:-1]), default=0.0),
        room.limit,
    )


def adding(added: Mapping[str, Sequence[Sized]]) -> list[str]:
    """What the packages in `requirements` add, in a sentence for each release of which that was asked."""
    return [
        f"`requirements` add to {tag}: {_named(packages)}; {_amount(packages)}."
        if packages
        else f"`requirements` add nothing to {tag}: what they name is there."
        for tag, packages in added.items()
    ]


def gigabytes_added(packages: Sequence[Sized]) -> float:
    """On the disk, about; what the index does not say is left out."""
    return UNPACKED * sum(one.size or 0 for one in packages) / GIGABYTE


def _named(packages: Sequence[Sized]) -> str:
    names = [one.package.replace("==", " ") for one in packages]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _amount(packages: Sequence[Sized]) -> str:
    if any(one.size is None for one in packages):
        return "how many gigabytes is not known, for the package index does not say"
    return f"about {_digits(gigabytes_added(packages))} GB on the disk"


def _digits(gigabytes: float) -> str:
    return f"{gigabytes:.0f}" if gigabytes >= 9.5 else f"{gigabytes:.1f}" if gigabytes >= 0.095 else f"{gigabytes:.2f}"


def functions_in(file: Path) -> tuple[int, int]:
    """How many functions and how many commands a file lists; UNKNOWN functions where only running it would tell."""
    functions = commands = 0
    for node in ast.parse(file.read_bytes()).body:
        if isinstance(node, ast.Assign):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            count = len(node.value.keys) if isinstance(node.value, ast.Dict) else 0
            functions += count if names & {"functions", "variants", "iterators"} else 0
            commands += count if "commands" in names else int("command" in names)
    return (functions, commands) if functions or commands else (UNKNOWN, 0)
