"""How much disk does an upgrade take, and what goes to stay below a limit? What this program made, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from ..releases import environments
from ..releases.axis import Release
from ..system.errors import UserError

SIZES = (("1.12", 2.0), ("2.0", 3.5), ("2.6", 4.5))
"""A version -> gigabytes that an environment of an earlier release takes at most, with what it shares with others."""

LARGEST = 5.5
"""Gigabytes of the environment of a newer one."""

GIGABYTE = 1e9


class NoRoom(UserError):
    """What is to be measured together does not fit; the text says how much it takes."""


@dataclass
class Room:
    """The environments in `root` of one `lane`, and the `limit` in gigabytes that they and their cache stay below; None for
    no limit. `added` are gigabytes that a user's own file adds to each release, about."""

    root: Path
    lane: str
    limit: float | None
    added: float = 0.0

    def is_there(self, release: Release) -> bool:
        """Whether the environment of a release is installed."""
        return environments.is_ready(self.root / f"{release.tag}-py{self.lane}", environments.asked_of(release))

    def takes(self, release: Release) -> float:
        """Gigabytes of a release with what is added to it, at most, about."""
        sizes = (size for version, size in SIZES if Version(release.version) < Version(version))
        return next(sizes, LARGEST) + self.added

    def make(self, releases: Sequence[Release], used: Sequence[str]) -> None:
        """Removes what is not needed until `releases` fit: of this lane, first those `used` longest ago, then others. Raises
        NoRoom where they do not fit by themselves."""
        if self.limit is None:
            return
        needed = sum(self.takes(release) for release in releases if not self.is_there(release))
        keep = {release.tag for release in releases}
        while needed and environments.size_of(self.root) / GIGABYTE + needed > self.limit:
            others = [tag for tag in environments.made_in(self.root, self.lane) if tag not in keep]
            if not others:
                names, whole = ", ".join(release.tag for release in releases), sum(map(self.takes, releases))
                raise NoRoom(
                    f"{names} take about {whole:.0f} GB together, which with what else is in {self.root} is more than "
                    f"--disk {self.limit:g}GB. Only environments for Python {self.lane} are removed without being asked. "
                    "Allow more, or remove others with `torch-history prune --lane`."
                )
            oldest = next((tag for tag in used if tag in others), others[0])
            environments.prune(self.root, oldest.__eq__, self.lane)
