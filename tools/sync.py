"""Which releases does the package index have that the axis has not? Put where they belong in `releases.toml`, by what
their wheels say, and their packages into `releases.lock`; what stands there is neither moved nor changed."""

import io
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import requests
from msgspec import to_builtins
from packaging.utils import parse_wheel_filename
from packaging.version import Version
from pypi_simple import DistributionPackage, NoSuchProjectError, PyPISimple

from torch_history.cli import suite as suites
from torch_history.releases import environments
from torch_history.releases.axis import Axis, Release
from torch_history.releases.pins import BACKEND, LOCK_FILE, Lock, key
from torch_history.releases.uv import run_uv, told
from torch_history.system.errors import UserError
from torch_history.system.files import write_atomically

from .index import TIMEOUT, configured_index, value_in, without_secrets

PROJECT = "torch"

PLATFORM = re.compile(r"(many)?linux\w*_x86_64")

LANES = (suites.DEFAULT_LANE, "3.9")
"""Python versions for which packages are pinned."""

PIECE = 2**16
"""Bytes of a wheel that are read at a time, at least."""

CONFIGURE = "Check the network, UV_DEFAULT_INDEX and PIP_INDEX_URL."

ENTRIES_HEADER = """\
# Every package that a release needs in a lane, exact, as resolved when the release was added: `make sync`.
# An entry is never changed, so that a release is measured with the same packages for ever.
"""
HASHES_HEADER = """\
# The sha256 of every file that these packages come in for Linux on x86_64 and the Pythons above. Nothing else is installed.
[sha256]
"""


def find(axis: Axis, address: str) -> tuple[list[Release], list[str]]:
    """The releases at `address` that the axis lacks, oldest first, and what a person should know besides, in sentences.
    Raises UserError where the index cannot be asked, or does not answer sensibly."""
    shown = without_secrets(address)
    new, sentences = [], []
    with PyPISimple(address) as index:
        try:
            packages = index.get_project_page(PROJECT, timeout=TIMEOUT).packages
        except NoSuchProjectError as error:
            raise UserError(f"The package index {shown} has no project '{PROJECT}'. {CONFIGURE}") from error
        except Exception as error:
            if isinstance(error, requests.RequestException) and not isinstance(error, ValueError):
                raise UserError(f"The package index {shown} is out of reach ({_reason(error)}). {CONFIGURE}") from error
            # Its parsers raise what they meet in an answer that is no page of an index.
            raise UserError(f"What {shown} answers is no page of a package index. {CONFIGURE}") from error
        wheels = _wheels(packages)
        if not wheels:
            raise UserError(f"The package index {shown} names no wheel of {PROJECT} for Linux on x86_64. {CONFIGURE}")
        oldest = min(Version(release.version) for release in axis.releases)
        for version, of_version in sorted(wheels.items()):
            if version < oldest or f"v{version}" in axis:
                continue
            try:
                new.append(_described(index, version, of_version))
            except (requests.RequestException, zipfile.BadZipFile, KeyError, ValueError) as error:
                sentences.append(f"v{version} is skipped: {_reason(error)}. Its entry can be written by hand.")
    return new, sentences


def _reason(error: BaseException) -> str:
    """An error in a few words, without an address that may hold a password."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"it answers {error.response.status_code}"
    if isinstance(error, requests.RequestException):
        return f"no answer within {TIMEOUT} seconds" if isinstance(error, requests.Timeout) else "no connection"
    return str(error).rstrip(".") or type(error).__name__


def _wheels(packages: Iterable[DistributionPackage]) -> dict[Version, list[DistributionPackage]]:
    """Version -> its wheels for CPython on Linux x86_64, final releases only."""
    found: dict[Version, list[DistributionPackage]] = defaultdict(list)
    for package in packages:
        try:
            _, version, _, tags = parse_wheel_filename(package.filename)
        except ValueError:
            continue
        suits = any(PLATFORM.fullmatch(tag.platform) and tag.interpreter.startswith("cp") for tag in tags)
        if suits and not version.is_prerelease and not version.local:
            found[version].append(package)
    return dict(found)


def _described(index: PyPISimple, version: Version, wheels: Sequence[DistributionPackage]) -> Release:
    """An entry for the axis. Raises ValueError where the index does not tell all, and what reading its wheel raises."""
    tags = [tag for wheel in wheels for tag in parse_wheel_filename(wheel.filename)[3]]
    plain = [tag for tag in tags if not tag.abi.endswith("t")]  # free-threaded builds (cp313t) are another interpreter
    minors = {int(match[1]) for tag in plain if (match := re.fullmatch(r"cp3(\d+)", tag.interpreter))}
    pythons = tuple(f"3.{minor}" for minor in sorted(minors))
    if not pythons:
        raise ValueError("none of its wheels is for a plain CPython")
    uploads = [each.upload_time for each in wheels if each.upload_time]
    if not uploads:
        raise ValueError("the index does not tell its date")
    with zipfile.ZipFile(io.BufferedReader(Remote(index.s, wheels[-1]), PIECE)) as archive:
        cuda = value_in(archive.read("torch/version.py").decode(errors="replace"), "cuda")
    why = next((each.yanked_reason for each in wheels if each.yanked_reason), "no reason is given")
    date, yanked = min(uploads).date(), why if all(each.is_yanked for each in wheels) else ""
    return Release(version=str(version), date=date, date_source="index", pythons=pythons, cuda=cuda, yanked=yanked)


class Remote(io.RawIOBase):
    """A file of the index, read in pieces: a wheel has gigabytes, and the list of its files is at its end."""

    def __init__(self, session: requests.Session, file: DistributionPackage) -> None:
        if file.size is None:
            raise ValueError("the index does not tell how large its wheel is")
        self._session, self._address, self._size, self._at = session, file.url, file.size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        last = min(self._at + len(buffer), self._size) - 1
        if last < self._at:
            return 0
        asked = {"Range": f"bytes={self._at}-{last}", "Accept-Encoding": "identity"}
        with self._session.get(self._address, headers=asked, stream=True, timeout=TIMEOUT) as answer:
            answer.raise_for_status()
            if answer.status_code != requests.codes.partial_content:
                raise ValueError("its server sends no part of a file")
            content = answer.content
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


ENTRY = r'(?:^#[^\n]*\n)*^\[\[release\]\]\n(?:(?!\[\[).*\n)*?version = "([^"]+)"'
"""An entry's beginning, with the comments above it, and its version."""


def with_releases(text: str, new: Sequence[Release]) -> str:
    """The text of `releases.toml` with `new` put before the first higher version; all that stands stays as it is, byte by
    byte. Comments above an entry belong to it."""
    for release in new:
        entry = _entry(release)
        places = re.finditer(ENTRY, text, re.MULTILINE)
        after = next((place for place in places if Version(place[1]) > Version(release.version)), None)
        before, rest = (text, "") if after is None else (text[: after.start()], f"\n{text[after.start() :]}")
        text = f"{before.rstrip()}\n\n{entry}{rest}"
    return text


def _entry(release: Release) -> str:
    """In TOML, whose texts and lists are written as in JSON. What is empty is left out, but not the version of CUDA."""
    fields = {**to_builtins(release), "yanked": " ".join(release.yanked.split())}
    lines = [f"{name} = {json.dumps(of, ensure_ascii=False)}" for name, of in fields.items() if of or name == "cuda"]
    return "\n".join(["[[release]]", *lines]) + "\n"


def write(path: Path, text: str) -> None:
    """Writes the axis, if it is one. Raises UserError and leaves the file as it was where it is none."""
    scratch = path.with_name(f"{path.name}.new")
    try:
        write_atomically(scratch, text)
        Axis.load(scratch)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def lock(release: Release, python: str, requirements: Sequence[str], path: Path = Path(LOCK_FILE)) -> bool:
    """Adds to `releases.lock` what `release` needs on `python`; what stands there is not changed. Returns whether anything
    was missing. Raises UserError."""
    held = Lock.read(path)
    if key(release, python) in held.entries:
        return False
    packages, files = _asked_of_index(release, python, requirements)
    for name, digest in files.items():
        if held.sha256.get(name, digest) != digest:
            raise UserError(
                f"{path} says that {name} has the sha256 {held.sha256[name]}, and the package index has another, {digest}: "
                "a file that was published does not change. Nothing was written; ask whoever runs that index."
            )
    text = path.read_text(encoding="utf-8") if path.exists() else ENTRIES_HEADER
    standing = text.partition(HASHES_HEADER)[0].rstrip()  # byte by byte as it is
    entry = "".join(f'    "{package}",\n' for package in packages)
    digests = "".join(f'"{name}" = "{digest}"\n' for name, digest in sorted((held.sha256 | files).items()))
    write_atomically(path, f'{standing}\n\n"{key(release, python)}" = [\n{entry}]\n\n{HASHES_HEADER}{digests}')
    return True


def _asked_of_index(release: Release, python: str, requirements: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """name==version of all that uv would install for `requirements`, and sha256 of each possible file. Raises UserError."""
    subject = f"What {release.tag} needs on Python {python} could not be pinned"
    platform = ["--python-version", python, "--python-platform", "x86_64-manylinux_2_28"]
    options = [*platform, "--format", "pylock.toml", "--no-header", "--quiet"]
    try:
        answer = tomllib.loads(run_uv(["pip", "compile", "-", *options], stdin="\n".join(requirements)))
    except subprocess.CalledProcessError as error:
        raise UserError(f"{subject}: {told(error)}. Nothing was written.") from error
    packages, files = [], {}
    for package in answer["packages"]:
        name, version = str(package["name"]), str(package.get("version", ""))
        if Version(version).local:
            raise UserError(
                f"{subject}: uv chose {name} {version}, a private build. Unset UV_FIND_LINKS, UV_INDEX and {BACKEND}."
            )
        packages.append(f"{name}=={version}")
        for file in package.get("wheels") or [package["sdist"]]:
            digest = file.get("hashes", {}).get("sha256")
            if digest is None:
                raise UserError(f"{subject}: the package index gives no sha256 of {name} {version}.")
            files[unquote(Path(urlsplit(file.get("url") or file["path"]).path).name)] = digest
    return packages, files


def main() -> None:
    """Ends with a sentence and exit code 1 where the index cannot be asked, or something cannot be pinned."""
    suite = suites.load()
    try:
        new, sentences = find(suite.axis, configured_index())
        text = with_releases(suite.list.read_text(encoding="utf-8"), new)
        for sentence in sentences:
            print(sentence)
        write(suite.list, text)
        for release in Axis.load(suite.list).releases:
            for lane in LANES:
                if lane in release.pythons and lock(release, lane, environments.requirements_of(release)):
                    print(f"Pinned the packages of {release.tag} on Python {lane}.")
    except UserError as error:
        sys.exit(str(error))
    names = ", ".join(release.tag for release in new)
    print(f"Added {names}. Measure them with `torch-history run NEW`." if names else "The axis has every release.")


if __name__ == "__main__":
    main()
