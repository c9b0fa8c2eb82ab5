"""How much disk does an upgrade take, and what goes to stay below a limit? What this program made, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from ..errors import UserError
from ..releases import environments
from ..releases.axis import Release

SIZES = (("1.12", 2.0), ("2.0", 3.5), ("2.6", 4.5))
"""A version -> gigabytes that an environment of an earlier release takes at most, with what it shares with others."""

LARGEST = 5.5
"""Gigabytes of the environment of a newer one."""

GIGABYTE = 1e9


def gigabytes(release: Release) -> float:
    """What an environment of a release takes at most, about."""
    return next((size for version, size in SIZES if Version(release.version) < Version(version)), LARGEST)


class NoRoom(UserError):
    """What is to be measured together does not fit; the text says how much it takes."""


@dataclass
class Room:
    """The environments in `root` of one `lane`, and the `limit` in gigabytes that they and their cache stay below; None for
    no limit."""

    root: Path
    lane: str
    limit: float | None
    added: float = 0.0
    """Gigabytes that a user's own file adds to each release, about."""

    @property
    def uncounted(self) -> str:
        """What to know of a limit that leaves out the cache of downloads; empty where it counts all."""
        place = environments.cache(self.root)
        if self.limit is None or place.is_relative_to(self.root.resolve()):
            return ""
        return (
            f"--disk does not count {place}, which UV_CACHE_DIR names: each release stays in it, and takes some GB. Nothing "
            "is removed there, because others may use it. Unset UV_CACHE_DIR to have downloads counted and removed, too."
        )

    def _others(self) -> str:
        """What to do where nothing of this lane can go: only that is removed without being asked."""
        lanes = {folder.name.rpartition("-py")[2] for folder in self.root.glob("v*-py*/")} - {self.lane}
        if not lanes:
            return "Allow more, or remove other environments with `torch-history prune`."
        told = " or ".join(f"`torch-history prune --lane {lane}`" for lane in sorted(lanes))
        return f"Only environments for Python {self.lane} are removed without being asked. Allow more, or use {told}."

    def is_there(self, release: Release) -> bool:
        folder = self.root / f"{release.tag}-py{self.lane}"
        return environments.is_ready(folder, environments.asked_of(release))

    def takes(self, release: Release) -> float:
        """Gigabytes of a release with what is added to it, about."""
        return gigabytes(release) + self.added

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
                names = ", ".join(release.tag for release in releases)
                whole = sum(self.takes(release) for release in releases)
                raise NoRoom(
                    f"{names} take about {whole:.0f} GB together, which with what else is in {self.root} is more than "
                    f"--disk {self.limit:g}GB. {self._others()}"
                )
            oldest = next((tag for tag in used if tag in others), others[0])
            environments.prune(self.root, oldest.__eq__, self.lane)
