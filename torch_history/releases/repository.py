"""How does asv see the releases? As a repository with one commit per release, whose ids are the tags: a plugin of asv's."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from asv import util
from asv.repo import NoSuchNameError, Repo

from ..system.errors import UserError
from .axis import Axis, UnknownRelease


class _UnknownToAsv(NoSuchNameError, util.UserError):
    """UnknownRelease, as asv expects it."""


@contextlib.contextmanager
def in_asvs_terms() -> Iterator[None]:
    """Raises our refusals as those that asv prints as a sentence."""
    try:
        yield
    except UnknownRelease as error:
        raise _UnknownToAsv(str(error)) from error
    except UserError as error:
        raise util.UserError(str(error)) from error


class ReleaseAxis(Repo):
    """asv's view of the axis: one commit per release, newest first where asv expects that, ids that are tags."""

    dvcs = "torch-releases"
    _default_branch = "releases"

    def __init__(self, url: str, mirror_path: str | None = None) -> None:
        self._path = url
        with in_asvs_terms():
            self.axis = Axis.load(url)

    @classmethod
    def url_match(cls, url: str) -> bool:
        return Path(url).name == "releases.toml"

    def pull(self) -> None:
        """Does nothing: the axis is a file of this repository."""

    def checkout(self, path: str, commit_hash: str) -> None:
        """Does nothing: a release is installed, not built from a checkout."""

    def get_range_spec(self, commit_a: str, commit_b: str) -> str:
        return f"{commit_a}..{commit_b}"

    def get_new_range_spec(self, latest_result: str, branch: str | None = None) -> str:
        return f"{latest_result}..{self.axis.newest.tag}"

    def get_date(self, hash: str) -> int:
        with in_asvs_terms():
            return self.axis.find(hash).timestamp

    get_date_from_name = get_date

    def get_hashes_from_range(self, range: str) -> list[str]:
        with in_asvs_terms():
            return [release.tag for release in reversed(self.axis.select(range))]

    def get_hash_from_name(self, name: str | None) -> str:
        if name is None or name == self._default_branch:
            return self.axis.newest.tag
        with in_asvs_terms():
            return self.axis.find(name).tag

    def get_hash_from_parent(self, name: str) -> str:
        with in_asvs_terms():
            return self.axis.find(f"{name}^").tag

    def get_name_from_hash(self, commit: str) -> None:
        """None: a release's id is its name already."""

    def get_tags(self) -> dict[str, str]:
        return {release.tag: release.tag for release in self.axis.releases}

    def get_branch_commits(self, branch: str | None) -> list[str]:
        return [release.tag for release in reversed(self.axis.releases)]

    def get_revisions(self, commits: Iterable[str]) -> dict[str, int]:
        """Positions on the axis of the releases among `commits`; a name that is none has no position."""
        return {tag: self.axis.position(tag) for tag in commits if tag in self.axis}
