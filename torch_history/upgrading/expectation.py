"""What will an upgrade cost to find out, in releases, gigabytes and minutes? About, before anything is installed."""

from __future__ import annotations

from collections.abc import Sequence

from ..measuring.progress import minutes
from ..releases.added import Sized
from ..releases.axis import Release
from .room import GIGABYTE, Room
from .search import expected_releases
from .sessions import SIDES

INSTALLING = 60.0
"""Seconds in which a release is downloaded and installed, about; most of it is the network's."""

UNPACKED = 3.0
"""A wheel takes two to three times its size on the disk."""


def forecast(releases: Sequence[Release], room: Room, budget: float, explaining: float = 0.0) -> list[str]:
    """What an upgrade over `releases` takes, in sentences: `budget` and `explaining` are seconds. And whether --disk is too
    small to look between the ends."""
    ends, between = [releases[0], releases[-1]], releases[1:-1]
    lines = [
        f"Both ends are measured first: {_installing(ends, 2, room)}. After that measuring takes {minutes(budget)} at most, "
        f"in all{f', and explaining {minutes(explaining)}' if explaining else ''}."
    ]
    if between:
        more = expected_releases(len(releases)) - len(ends)
        said = _installing(between, more, room)
        lines.append(f"If one function changed, finding its release among {len(between)} takes besides: {said}.")
        at_once = room.takes(releases[0]) + room.takes(releases[-1]) + max(map(room.takes, between))
        if room.limit is not None and at_once > room.limit:
            lines.append(
                f"That measures {SIDES} releases at the same time, which take about {at_once:.0f} GB: more than --disk "
                f"{room.limit:g}GB. Both ends will be measured, and no release between them."
            )
    return lines


def _installing(releases: Sequence[Release], most: int, room: Room) -> str:
    """What installing `most` of `releases` takes: `2 to install, about 9 GB and 2 min`."""
    sizes = sorted((room.takes(release) for release in releases if not room.is_there(release)), reverse=True)[:most]
    if not sizes:
        return "nothing to install"
    return f"{len(sizes)} to install, about {sum(sizes):.0f} GB and {minutes(len(sizes) * INSTALLING)}"


def adding(tag: str, packages: Sequence[Sized]) -> str:
    """What the packages in `requirements` add to a release, in a sentence."""
    unknown = "" if all(one.size for one in packages) else ", and more where the package index gives no size"
    names = ", ".join(one.package for one in packages) or "nothing"
    return f"`requirements` add to {tag}: {names}; about {gigabytes_added(packages):.2g} GB on the disk{unknown}."


def gigabytes_added(packages: Sequence[Sized]) -> float:
    """On the disk, about; what the index does not say is left out."""
    return UNPACKED * sum(one.size or 0 for one in packages) / GIGABYTE
