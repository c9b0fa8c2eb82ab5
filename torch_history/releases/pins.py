"""What is installed for a release? `releases.lock` has each package and the sha256 of its files, for good."""

import functools
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from msgspec import Meta, convert
from packaging.requirements import Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

from ..system.errors import UserError
from .axis import Release

LOCK_FILE = "releases.lock"
Digests = dict[str, Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]]

BACKEND = "UV_TORCH_BACKEND"
"""The variable by which a person has uv take PyTorch from another index, such as that of the CPU wheels."""

OF_ANOTHER_INDEX = ("torch", "triton", "pytorch-triton")
"""The packages that uv then takes from there; their files are not those that the lock knows."""


@dataclass(frozen=True)
class Lock:
    """`entries`: "v2.0.1 py3.11" -> name==version of each package. `sha256`: a file's name -> its digest in hexadecimal."""

    entries: dict[str, list[str]] = field(default_factory=dict)
    sha256: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Lock":
        """An empty one where there is no file. Raises UserError where it is damaged."""
        if not path.exists():
            return cls()
        try:
            entries = tomllib.loads(path.read_text(encoding="utf-8"))
            digests = convert(entries.pop("sha256", {}), Digests)
            return cls(convert(entries, dict[str, list[str]]), digests)
        except ValueError as error:
            raise UserError(f"{path} is damaged: {error}. Restore it: git checkout {path}.") from error

    def digests(self, package: str, python: str) -> list[str]:
        """The sha256 of each file that `package`, name==version, comes in for `python`; empty where none is known."""
        return [sha256 for file, sha256 in self.sha256.items() if _suits(file, package, python)]


@functools.cache
def _named(file: str) -> tuple[str, frozenset[Tag]]:
    """name==version of a wheel or a source archive by its name, and a wheel's tags. Raises UserError where it is neither."""
    try:
        if not file.endswith(".whl"):
            return "==".join(map(str, parse_sdist_filename(file))), frozenset()
        name, version, _, tags = parse_wheel_filename(file)
    except ValueError as error:
        raise UserError(f"'{file}' is no name of a wheel or a source archive, so its package is unknown.") from error
    return f"{name}=={version}", tags


@functools.cache
def _builds(python: str) -> set[tuple[str, str]]:
    """Interpreter and ABI of the wheels that a plain CPython of that version takes."""
    version = tuple(map(int, python.split(".")))
    tags = [*cpython_tags(version, platforms=["any"]), *compatible_tags(version, platforms=["any"])]
    return {(tag.interpreter, tag.abi) for tag in tags}


def _suits(file: str, package: str, python: str) -> bool:
    """Whether a file is of a package, and a plain CPython of that version takes it; of a source archive every one does."""
    of, tags = _named(file)
    return of == package and (not tags or any((tag.interpreter, tag.abi) in _builds(python) for tag in tags))


def key(release: Release, python: str) -> str:
    return f"{release.tag} py{python}"


def locked_packages(release: Release, python: str, path: Path = Path(LOCK_FILE)) -> list[str]:
    """The exact versions of all that `release` needs on `python`, or none. Raises UserError for a damaged lock."""
    return list(Lock.read(path).entries.get(key(release, python), []))


@dataclass(frozen=True)
class Installation:
    """What uv is told, `lines` being a file before the `arguments`; `origin` says where files come from, in words."""

    option: str
    lines: tuple[str, ...]
    arguments: tuple[str, ...]
    origin: str
    checked: bool


def installation(release: Release, python: str, requirements: Sequence[str]) -> Installation:
    """How `release` is installed: the locked files alone, others where a person chose an index. Raises UserError."""
    lock = Lock.read(Path(LOCK_FILE))
    packages = lock.entries.get(key(release, python))
    chosen = os.environ.get(BACKEND)
    if not packages:
        origin = f"{f'torch from the {chosen} index, ' if chosen else ''}not checked: {LOCK_FILE} has no entry for it"
        return Installation("--constraint", (), tuple(requirements), origin, checked=False)
    _refuse_misfit(release, python, packages, requirements)
    free = OF_ANOTHER_INDEX if chosen else ()
    lines = tuple(
        package if package.partition("==")[0] in free else _pinned(lock, release, package, python)
        for package in packages
    )
    if chosen:
        origin = f"torch from the {chosen} index, not checked"
        return Installation("--constraint", lines, tuple(requirements), origin, checked=False)
    return Installation("--requirement", lines, ("--require-hashes",), f"as {LOCK_FILE} says, checked", checked=True)


def _pinned(lock: Lock, release: Release, package: str, python: str) -> str:
    """A line for uv that takes this version and no other, with a local part neither, from one of the known files."""
    digests = lock.digests(package, python)
    if not digests:
        raise UserError(
            f"{LOCK_FILE} has no sha256 of {package}, which {release.tag} needs on Python {python}, so nothing can be "
            f"checked. Restore the file: git checkout {LOCK_FILE}."
        )
    return " ".join([package.replace("==", "===", 1), *(f"--hash=sha256:{digest}" for digest in digests)])


def _refuse_misfit(release: Release, python: str, packages: Iterable[str], requirements: Iterable[str]) -> None:
    versions: Mapping[str, str] = dict(package.split("==", 1) for package in packages)
    for asked in map(Requirement, requirements):
        version = versions.get(canonicalize_name(asked.name), "none")
        if version == "none" or not asked.specifier.contains(version, prereleases=True):
            raise UserError(
                f"{LOCK_FILE} pins {asked.name} to {version} for {release.tag} on Python {python}, but {asked} is needed. "
                "An entry is never changed: restore the lock or the list of releases with git, whichever was edited."
            )
