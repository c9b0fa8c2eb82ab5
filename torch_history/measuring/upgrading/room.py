"""What does an upgrade cost to find out, in gigabytes and minutes, and what goes to stay below a limit of disk?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...releases import environments
from ...releases.added import Sized
from ...releases.axis import Release
from ...system.errors import UserError
from ..plan import gigabytes
from ..progress import minutes
from .search import expected_releases

GIGABYTE = 1e9


@dataclass
class Room:
    """Environments of a `lane` in `root`, the `limit` in gigabytes, None for none, and gigabytes `added` to each, which take
    `each` where that is not what a release takes to measure."""

    root: Path
    lane: str
    limit: float | None
    added: float = 0.0
    each: float = 0.0
    asked: Callable[[Release], list[str]] = environments.asked_of
    """What an environment of a release is installed with."""

    def is_there(self, release: Release) -> bool:
        return environments.is_ready(self.root / f"{release.tag}-py{self.lane}", self.asked(release))

    def takes(self, release: Release) -> float:
        """Gigabytes of a release with what is added to it, at most, about."""
        return (self.each or gigabytes(release.version)) + self.added

    def make(self, releases: Sequence[Release], used: Sequence[str]) -> None:
        """Removes others until `releases` fit, first those `used` longest ago. Raises UserError where they never do."""
        if self.limit is None:
            return
        needed = sum(self.takes(release) for release in releases if not self.is_there(release))
        keep = {release.tag for release in releases}
        while needed and environments.size_of(self.root) / GIGABYTE + needed > self.limit:
            others = [tag for tag in environments.made_in(self.root, self.lane) if tag not in keep]
            if not others:
                names, whole = ", ".join(release.tag for release in releases), sum(map(self.takes, releases))
                raise UserError(
                    f"{names} take about {whole:.0f} GB together, which with what else is in {self.root} is more than "
                    f"--disk {self.limit:g}GB. Only environments for Python {self.lane} are removed without being asked. "
                    f"Allow more, or remove {'some there' if self.each else 'others with `torch-history prune --lane`'}."
                )
            oldest = next((tag for tag in used if tag in others), others[0])
            environments.prune(self.root, oldest.__eq__, self.lane)


SIDES = 3
"""Releases of a session between the ends: one, and the two that it lies between."""

INSTALLING = 60.0
"""Seconds in which a release is downloaded and installed, about; most of it is the network's."""

UNPACKED = 3.0
"""A wheel takes two to three times its size on the disk."""


def forecast(
    releases: Sequence[Release], room: Room, budget: float, explaining: float = 0.0, most: int | None = None
) -> list[str]:
    """What an upgrade over `releases`, of which `most` are measured, takes; `budget` and `explaining` are seconds."""
    ends, between = [releases[0], releases[-1]], releases[1:-1]
    lines = [
        f"Both ends are measured first: {_installing(ends, 2, room)}. After that measuring takes up to about "
        f"{minutes(budget)}, in all{f', and explaining {minutes(explaining)}' if explaining else ''}."
    ]
    if more := min(most or len(releases), expected_releases(len(releases))) - len(ends):
        said = _installing(between, more, room)
        lines.append(f"If one function changed, finding its release among {len(between)} takes besides: {said}.")
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
