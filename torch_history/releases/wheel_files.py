"""What do the files of the package index say of a release's wheels?

Nothing is installed or run: the list of files at a wheel's end and a few small files in it are read, a piece at a time.
`torch-history sync --wheels` adds to `wheels.json` what it lacks.
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import requests
from msgspec import to_builtins
from packaging.utils import canonicalize_name
from pypi_simple import DistributionPackage, NoSuchProjectError, PyPISimple

from ..system.files import write_atomically
from .axis import Axis, Release
from .pins import LOCK_FILE, Lock
from .remote import TIMEOUT, RemoteFile
from .wheels import CannotRead, Package, Wheel, load

LANES = ("3.11", "3.9")
"""Pythons whose wheel is read: the first that the release has locked packages for."""

LEAST_LIBRARY = 2**20
"""Bytes from which on a library is listed."""

LONGEST_FILE = 2**27
"""Bytes of a file within a wheel that is read."""

INIT = "torch/__init__.py"

GLIBC = ("2.2.5", "2.3", "2.3.2", "2.3.3", "2.3.4", *(f"2.{minor}" for minor in range(4, 100)))
"""Versions that symbols of glibc have on x86_64, in order."""

LEAST_READ, MOST_READ = 2**20, 2**24
"""Bytes of a library that are read at a time, and in all, to find which versions it needs: that table lies within the first
12 MiB of every library of torch's, while the names that it refers to lie at the end of half a gigabyte."""


def update(path: Path, axis: Axis, address: str, say: Callable[[str], None]) -> dict[str, Wheel]:
    """Reads the releases that `path` lacks from the index at `address`; each is stored as soon as it is read. Raises
    CannotRead where the index is out of reach or a wheel is not the one of the lock."""
    known = load(path)
    missing = [release for release in axis.releases if release.tag not in known]
    with PyPISimple(address) as session:
        index = _Index(session, Lock.read(path.with_name(LOCK_FILE)))
        for number, release in enumerate(missing, start=1):
            try:
                known[release.tag] = index.read(release)
            except (requests.RequestException, zipfile.BadZipFile, KeyError, NoSuchProjectError) as error:
                raise CannotRead(
                    f"The wheels of {release.tag} cannot be read ({type(error).__name__}). What was read is stored, and the "
                    "same command continues from there."
                ) from error
            ordered = {each.tag: to_builtins(known[each.tag]) for each in axis.releases if each.tag in known}
            write_atomically(path, json.dumps(ordered, indent=1) + "\n")
            say(f"{number} of {len(missing)}: {release.tag}, {known[release.tag].download / 2**30:.2f} GiB of wheels")
    return known


class _Index:
    """A package index, asked for what a lock names. What was read of a file is kept: releases share packages."""

    def __init__(self, session: PyPISimple, lock: Lock) -> None:
        self._session, self._lock = session, lock
        self._pages: dict[str, dict[str, DistributionPackage]] = {}
        self._packages: dict[str, Package] = {}

    def read(self, release: Release) -> Wheel:
        """Raises CannotRead where the lock or the index lacks a file, and what the session raises."""
        python = next((lane for lane in LANES if f"{release.tag} py{lane}" in self._lock.entries), "")
        if not python:
            raise CannotRead(f"releases.lock has no packages of {release.tag}. Run `torch-history lock`.")
        files = [self._file(locked, python) for locked in self._lock.entries[f"{release.tag} py{python}"]]
        files.sort(key=lambda file: (file.project != "torch", file.project))
        packages = tuple(self._package(file) for file in files)
        with zipfile.ZipFile(RemoteFile(self._session.s, files[0].url)) as archive:
            version = _text(archive, "torch/version.py")
            return Wheel(
                python,
                value_in(version, "cuda"),
                value_in(version, "git_version"),
                _cxx11_abi(archive),
                _glibc(archive),
                _architectures(archive),
                _libraries(archive),
                packages,
            )

    def _file(self, locked: str, python: str) -> DistributionPackage:
        """The file of `name==version` whose digest the lock has."""
        name = locked.partition("==")[0].partition("[")[0]
        if name not in self._pages:
            page = self._session.get_project_page(name, timeout=TIMEOUT)
            self._pages[name] = {each.digests.get("sha256", ""): each for each in page.packages}
        digests = self._lock.digests(locked, python)
        found = [self._pages[name][digest] for digest in digests if digest in self._pages[name]]
        if not found:
            raise CannotRead(f"The index has no file of {locked} whose sha256 is in releases.lock.")
        return min(found, key=lambda file: (not file.filename.endswith(".whl"), "x86_64" not in file.filename))

    def _package(self, file: DistributionPackage) -> Package:
        if file.filename not in self._packages:
            remote = RemoteFile(self._session.s, file.url)
            installed = 0
            if file.filename.endswith(".whl"):
                with zipfile.ZipFile(remote) as archive:
                    installed = sum(member.file_size for member in archive.infolist())
            name, version = canonicalize_name(file.project or ""), file.version or ""
            self._packages[file.filename] = Package(
                name, version, file.filename, file.digests["sha256"], remote.size, installed
            )
        return self._packages[file.filename]


def _text(archive: zipfile.ZipFile, name: str) -> str:
    return _content(archive, name).decode(errors="replace")


def _content(archive: zipfile.ZipFile, name: str) -> bytes:
    member = archive.getinfo(name)
    if member.file_size > LONGEST_FILE:
        raise CannotRead(f"{name} has {member.file_size:,} bytes; at most {LONGEST_FILE:,} are read.")
    return archive.read(member)


def value_in(text: str, name: str) -> str:
    """A string of torch/version.py, or "" where it is None."""
    found = re.search(rf"^{name}(?:\s*:[^=]*)?\s*=\s*['\"]([\w.+-]+)['\"]", text, re.MULTILINE)
    return found[1] if found else ""


def _cxx11_abi(archive: zipfile.ZipFile) -> bool | None:
    """By the flags of torch's own cmake file; newer wheels have no such flag, and a function that answers at once."""
    try:
        flag = re.search(r"_GLIBCXX_USE_CXX11_ABI=([01])", _text(archive, "torch/share/cmake/Torch/TorchConfig.cmake"))
        said = re.search(
            r"def compiled_with_cxx11_abi\(.*?\n    return (True|False)\n", _text(archive, INIT), re.DOTALL
        )
    except KeyError:
        return None
    return flag[1] == "1" if flag else said[1] == "True" if said else None


def _glibc(archive: zipfile.ZipFile) -> str:
    """The newest version of glibc that a library of torch's asks for: without it the loader refuses the library."""
    libraries = [name for name in archive.namelist() if re.fullmatch(r"torch/(lib/[^/]*\.so[^/]*|_C[^/]*\.so)", name)]
    needed = set().union(*(_needed(archive, name) for name in libraries))
    return max(needed, key=GLIBC.index, default="")


def _needed(archive: zipfile.ZipFile, name: str) -> set[str]:
    """The versions of glibc in the table .gnu.version_r of a library. They are known by the hashes that stand there."""
    found: set[str] = set()
    text, size = b"", 0
    with archive.open(name) as stream:
        while size < MOST_READ and (piece := stream.read(LEAST_READ)):
            before, text = len(found), text[-LONGEST_GROUP:] + piece
            size += len(piece)
            found.update(*(_of_group(text, match.start()) for match in _GROUP.finditer(text)))
            if found and len(found) == before:
                break  # the table is behind
    return found


LONGEST_GROUP = 2**12
_GROUP = re.compile(rb"(?=\x01\0.\0.{4}\x10\0\0\0)", re.DOTALL)
"""Where what a library needs of another may begin in that table, and its bytes at most: see NEED in kit/symbols.py."""

_VERSION = struct.Struct("<IHHII")
"""An entry of a group: hash, flags (none where the loader insists), number, place of the name, and bytes to the next."""


def _of_group(text: bytes, at: int) -> set[str]:
    """The versions of glibc in the group at `at`; none where what begins there is no whole group."""
    begin, count = at + _VERSION.size, text[at + 2]
    if len(text) < begin + count * _VERSION.size:
        return set()
    entries = [_VERSION.unpack_from(text, begin + place * _VERSION.size) for place in range(count)]
    if [following for *_, following in entries] != [_VERSION.size] * (count - 1) + [0]:
        return set()
    return {_BY_HASH[hash_] for hash_, flags, *_ in entries if not flags and hash_ in _BY_HASH}


def _hash_of(version: str) -> int:
    """What stands in the table for `GLIBC_<version>`: the hash that ELF's format defines."""
    value = 0
    for character in f"GLIBC_{version}".encode():
        value = (value << 4) + character
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value


_BY_HASH = {_hash_of(version): version for version in GLIBC}


def _architectures(archive: zipfile.ZipFile) -> tuple[str, ...]:
    """The string of the macro CUDA_ARCH_FLAGS, which torch/csrc/cuda/Module.cpp compiles in; empty for a build without."""
    try:
        content = _content(archive, "torch/lib/libtorch_python.so")
    except KeyError:
        return ()
    found = re.findall(rb"(?:(?:sm|compute)_\d{2,3}[af]? ?){2,}", content)
    return tuple(max(found, key=len).decode().split()) if found else ()


def _libraries(archive: zipfile.ZipFile) -> dict[str, int]:
    large = [member for member in archive.infolist() if member.file_size >= LEAST_LIBRARY and ".so" in member.filename]
    large.sort(key=lambda member: (-member.file_size, member.filename))
    return {re.sub(r"-[0-9a-f]{8,}", "", member.filename.rpartition("/")[2]): member.file_size for member in large}
