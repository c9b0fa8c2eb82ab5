"""Which PyTorch releases are there, in what order? Those of `releases.toml`; a tag (`v2.5.1`) is an identity."""

import datetime
import difflib
import itertools
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, convert
from packaging.version import InvalidVersion, Version

from ..system.errors import UserError

ASV_ID_LENGTH = 8
"""asv cuts a commit's id to this many characters in the name of its result file."""


class UnknownRelease(UserError):
    """A name that stands for no release on the axis; the text offers the nearest ones."""


class Release(Struct, frozen=True, forbid_unknown_fields=True):
    """A release: `pythons` with a linux x86_64 wheel, its `cuda`, and why it was `yanked`, empty where it was not."""

    version: str
    date: datetime.date
    date_source: Literal["index", "project", "published", "estimated"]
    pythons: Annotated[tuple[str, ...], Meta(min_length=1)]
    cuda: str
    pins: tuple[str, ...] = ()
    yanked: str = ""

    @property
    def tag(self) -> str:
        """The release's identity everywhere: `v2.5.1`."""
        return f"v{self.version}"

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970 of the release's day in UTC, as asv counts dates."""
        midnight = datetime.datetime.combine(self.date, datetime.time(), datetime.timezone.utc)
        return int(midnight.timestamp()) * 1000


class _File(Struct, forbid_unknown_fields=True):
    release: Annotated[list[Release], Meta(min_length=1)]


class Axis:
    """The releases in their order, oldest first."""

    def __init__(self, releases: Iterable[Release]) -> None:
        self.releases = tuple(releases)
        self._position = {release.tag: i for i, release in enumerate(self.releases)}

    @classmethod
    def load(cls, path: str | Path) -> "Axis":
        """Reads `releases.toml`. Raises UserError where it is damaged, or asv could not tell two releases apart."""
        path = Path(path)
        try:
            releases = convert(tomllib.loads(path.read_text(encoding="utf-8")), _File).release
            for version in (release.version for release in releases):
                if str(Version(version)) != version:
                    raise InvalidVersion(f"'{version}' is no version as the package index writes it, such as 2.5.1")
        except OSError as error:
            raise UserError(
                f"The list of releases {path} cannot be read: {error.strerror}. Restore it, or fix 'repo' in asv.conf.json."
            ) from error
        except ValueError as error:
            raise UserError(
                f"The list of releases {path} cannot be read: {error}. It has a [[release]] table for each: fix that one."
            ) from error
        _refuse_confusable([release.tag for release in releases], path)
        return cls(releases)

    @property
    def newest(self) -> Release:
        return self.releases[-1]

    def position(self, tag: str) -> int:
        return self._position[tag]

    def __contains__(self, tag: object) -> bool:
        return tag in self._position

    def find(self, name: str) -> Release:
        """The release `v2.5.1`, `2.5.1` or `HEAD`, with git's `^` and `~2`. Raises UnknownRelease."""
        match = re.fullmatch(r"(?P<base>.+?)(?P<back>(\^|~\d*)*)", name.strip())
        if match is None:
            raise UnknownRelease("No release was named: name one such as v2.5.1.")
        base = match["base"]
        tag = self.newest.tag if base == "HEAD" else "v" + base.removeprefix("v")
        if tag not in self._position:
            later = re.fullmatch(r"v?\d+\.\d+\.\d+", base) and Version(base) > Version(self.newest.version)
            near = () if later else difflib.get_close_matches(tag, self._position, n=3, cutoff=0.5)
            offer = f"The nearest are {', '.join(near)}." if near else f"The newest is {self.newest.tag}."
            raise UnknownRelease(
                f"'{base}' is no PyTorch release on the axis. {offer} A new release is added to releases.toml."
            )
        steps = sum(int(step or 1) for step in re.findall(r"\^|~(\d*)", match["back"]))
        position = self._position[tag] - steps
        if position < 0:
            raise UnknownRelease(f"'{name}' lies before {self.releases[0].tag}, the oldest release on the axis.")
        return self.releases[position]

    def select(self, spec: str) -> list[Release]:
        """The releases that `spec` names, oldest first: names, or git's `a..b`. Raises UnknownRelease and UserError."""
        chosen = {release.tag for part in re.split(r"[\s,]+", spec.strip()) for release in self._part(part)}
        return [release for release in self.releases if release.tag in chosen]

    def _part(self, part: str) -> tuple[Release, ...]:
        if ".." not in part:
            return (self.find(part.removesuffix("^!")),)
        ends = part.split("..")
        if "..." in part or len(ends) > 2:
            raise UserError(f"'{part}' is no range of an axis with one line; write a..b.")
        first, last = (self.find(end or "HEAD") for end in ends)
        between = self.releases[self._position[first.tag] + 1 : self._position[last.tag] + 1]
        if not between:
            raise UserError(
                f"The range {part} holds no release: as in git it begins after {first.tag} and ends with {last.tag}."
            )
        return between


def _refuse_confusable(tags: list[str], path: Path) -> None:
    for one, other in itertools.combinations(sorted(tags), 2):
        if one == other:
            raise UserError(f"{path} lists release {one} twice: remove one of the two.")
        if one[:ASV_ID_LENGTH] == other[:ASV_ID_LENGTH] or other.startswith(one):
            raise UserError(
                f"{path}: asv looks results up by the beginning of an id, of which a file's name has {ASV_ID_LENGTH} "
                f"characters, and could not tell {one} from {other}. Only one of them can be on the axis."
            )
