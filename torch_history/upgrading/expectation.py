"""What will an upgrade cost to find out, in releases, gigabytes and minutes? About, before anything is installed."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..releases.added import Sized
from ..releases.axis import Release
from .room import GIGABYTE, Room
from .search import expected_releases

INSTALLING = 100.0
"""Seconds in which a release is downloaded and installed, about; most of it is the network's."""

BEGINNING, STARTING, FUNCTION = 15.0, 3.0, 1.5
"""Seconds that a session takes to begin, the interpreter of a release to start in a round, and a function of milliseconds to
be timed in it."""

COMMAND = 12.0
"""Seconds in which the processes of a command that imports torch are started, waited for and started again."""

BUSY = 3.0
"""How many times as long measuring takes on a busy machine, where nearly all is waited for and asked again."""

EXPLAINING = 240.0
"""Seconds in which the cause of one change is looked for."""

MIDDLE_ROUNDS = 3
"""Rounds of a release between two others, for a change that is known to be there: three releases tell of noise sooner than
two, and what is inconclusive gets more."""

SIDES = 3
"""Releases of a session between the ends: one, and the two that it lies between."""

UNPACKED = 3.0
"""A wheel takes two to three times its size on the disk."""

UNKNOWN = 2
"""Functions that a file is taken to have whose text does not list them."""


@dataclass(frozen=True)
class Cost:
    """Releases to install, their gigabytes, and minutes; `at_most` so many where times are inconclusive and get their
    budget, and what changed is explained."""

    installs: int
    gigabytes: float
    minutes: float
    at_most: float

    @property
    def words(self) -> str:
        """`2 to install, about 9 GB and 9 to 27 min`"""
        least, most = max(1, round(self.minutes)), max(1, round(self.at_most))
        size = f"{self.installs} to install, about {self.gigabytes:.0f} GB and" if self.installs else ""
        return f"{size or 'nothing to install, about'} {least}{f' to {most}' if most > least else ''} min"


def rounds_of(releases: int, rounds: int, has_budget: bool) -> int:
    """Rounds that measure everything in a session of so many releases, where `rounds` were asked for. Without a budget no
    session gets more later, and each has them all."""
    return min(rounds, MIDDLE_ROUNDS) if has_budget and releases >= SIDES else rounds


def expected(
    releases: Sequence[Release],
    room: Room,
    rounds: int,
    counts: tuple[int, int],
    budget: float = 0.0,
    explaining: float = 0.0,
    is_busy: bool = False,
) -> tuple[Cost, Cost]:
    """What an upgrade over `releases` costs, for both ends alone, and in all where one function changed. The file has as
    many functions and commands as `counts` says; `budget` are the seconds that a comparison gets beyond its rounds where it
    is inconclusive, and `explaining` those for explaining."""
    ends, between = [releases[0], releases[-1]], releases[1:-1]
    new = [release for release in ends if not room.is_there(release)]
    middle = [release for release in between if not room.is_there(release)]
    more = expected_releases(len(releases)) - len(ends)
    launch = (STARTING + counts[0] * FUNCTION + counts[1] * COMMAND) * (BUSY if is_busy else 1.0)
    seconds = len(new) * INSTALLING + BEGINNING + rounds * len(ends) * launch
    first = Cost(len(new), sum(map(room.takes, new)), seconds / 60, (seconds + budget) / 60)
    installs = min(more, len(middle))
    seconds += installs * INSTALLING + more * (BEGINNING + rounds_of(SIDES, rounds, budget > 0) * SIDES * launch)
    return first, Cost(
        first.installs + installs,
        first.gigabytes + installs * max(map(room.takes, middle), default=0.0),
        (seconds + min(explaining, EXPLAINING)) / 60,
        (seconds + (1 + more) * budget + explaining) / 60,
    )


def forecast(releases: Sequence[Release], room: Room, first: Cost, then: Cost) -> list[str]:
    """What `expected` says, in sentences; and whether --disk is too small to look between the ends."""
    lines = [f"Both ends are measured first: {first.words}. Functions that take seconds take longer."]
    if between := releases[1:-1]:
        lines.append(f"If one function changed, finding its release among {len(between)} takes in all: {then.words}.")
        at_once = room.takes(releases[0]) + room.takes(releases[-1]) + max(map(room.takes, between))
        if room.limit is not None and at_once > room.limit:
            lines.append(
                f"That measures {SIDES} releases at the same time, which take about {at_once:.0f} GB: more than --disk "
                f"{room.limit:g}GB. Both ends will be measured, and no release between them."
            )
    return lines


def adding(tag: str, packages: Sequence[Sized]) -> str:
    """What the packages in `requirements` add to a release, in a sentence."""
    unknown = "" if all(one.size for one in packages) else ", and more where the package index gives no size"
    names = ", ".join(one.package for one in packages) or "nothing"
    return f"`requirements` add to {tag}: {names}; about {gigabytes_added(packages):.2g} GB on the disk{unknown}."


def gigabytes_added(packages: Sequence[Sized]) -> float:
    """On the disk, about; what the index does not say is left out."""
    return UNPACKED * sum(one.size or 0 for one in packages) / GIGABYTE


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
