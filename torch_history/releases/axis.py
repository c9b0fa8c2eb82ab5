"""Which PyTorch releases are there, and in what order? Those of `releases.toml`. A release's identity is its tag
(`v2.5.1`)."""

import datetime
import difflib
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, ValidationError, convert
from packaging.version import InvalidVersion, Version

from ..system.errors import UserError

ASV_ID_LENGTH = 8
"""asv cuts a commit's id to this many characters in the name of its result file."""


class AxisError(UserError):
    """`releases.toml` cannot be read as an axis; the text says where and what to change."""


class UnknownRelease(UserError):
    """A name that stands for no release on the axis; the text offers the nearest ones."""


class Release(Struct, frozen=True, forbid_unknown_fields=True):
    """One PyTorch release: `pythons` are the CPython versions with a linux x86_64 wheel, `cuda` the CUDA of that wheel,
    `yanked` the reason why it was taken back, empty where it was not."""

    version: str
    date: datetime.date
    date_source: Literal["index", "project", "published", "estimated"]
    pythons: Annotated[tuple[str, ...], Meta(min_length=1)]
    cuda: str
    archs: tuple[str, ...] = ()
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


class Axis:
    """The releases in their order, oldest first."""

    def __init__(self, releases: Iterable[Release]) -> None:
        self.releases = tuple(releases)
        self._position = {release.tag: i for i, release in enumerate(self.releases)}

    @classmethod
    def load(cls, path: str | Path) -> "Axis":
        """Reads `releases.toml`. Raises AxisError where it cannot be read, or holds a release twice or two that asv could
        not tell apart."""
        path = Path(path)
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise AxisError(
                f"The list of releases {path} cannot be read: {error.strerror}. Restore it, or fix 'repo' in asv.conf.json."
            ) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise AxisError(f"The list of releases {path} is not valid TOML: {error}. Fix that line.") from error
        unknown = sorted(table.keys() - {"release"})
        if unknown:
            raise AxisError(f"{path} has an unknown key '{unknown[0]}': only [[release]] tables belong there.")
        entries = table.get("release", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise AxisError(f"{path}: 'release' must be tables: begin each release with a line [[release]].")
        if not entries:
            raise AxisError(f"{path} lists no release: add at least one [[release]].")
        releases = []
        for entry in entries:
            try:
                releases.append(convert(entry, Release))
                version = releases[-1].version
                if str(Version(version)) != version:
                    raise InvalidVersion(f"'{version}' is no version as the package index writes it, such as 2.5.1")
            except (ValidationError, InvalidVersion) as error:
                named = entry.get("version", "without a version")
                raise AxisError(
                    f"{path}: the release {named} cannot be read: {error}. Write it as the others are."
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
        """The release called `name`: `v2.5.1` or `2.5.1`, `HEAD` for the newest, with git's `^` and `~2`. Raises
        UnknownRelease."""
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
        """The releases that `spec` names, oldest first: names apart by spaces or commas, or git's `a..b`, which is without a
        and with b. Raises UnknownRelease for a name, AxisError for a range that holds nothing."""
        chosen: set[str] = set()
        for part in re.split(r"[\s,]+", spec.strip()):
            chosen.update(release.tag for release in self._part(part))
        return [release for release in self.releases if release.tag in chosen]

    def _part(self, part: str) -> tuple[Release, ...]:
        if "..." in part:
            raise AxisError(f"'{part}': three dots mean nothing on an axis with one line; write a..b.")
        if ".." not in part:
            return (self.find(part.removesuffix("^!")),)
        ends = part.split("..")
        if len(ends) > 2:
            raise AxisError(f"'{part}' has more than two ends; write a..b.")
        first, last = (self.find(end or "HEAD") for end in ends)
        between = self.releases[self._position[first.tag] + 1 : self._position[last.tag] + 1]
        if not between:
            raise AxisError(
                f"The range {part} holds no release: as in git it begins after {first.tag} and ends with {last.tag}."
            )
        return between


def _refuse_confusable(tags: list[str], path: Path) -> None:
    seen: dict[str, str] = {}
    for tag in tags:
        other = seen.setdefault(tag[:ASV_ID_LENGTH], tag)
        if other is not tag:
            if other == tag:
                raise AxisError(f"{path} lists release {tag} twice: remove one of the two.")
            raise AxisError(
                f"{path}: {other} and {tag} have the same first {ASV_ID_LENGTH} characters, by which asv names result "
                "files: one would overwrite the other. Only one of them can be on the axis."
            )
    for tag in tags:
        longer = next((other for other in tags if other != tag and other.startswith(tag)), None)
        if longer:
            raise AxisError(
                f"{path}: asv looks results up by the beginning of an id and could not tell {tag} from {longer}. "
                "Only one of them can be on the axis."
            )
