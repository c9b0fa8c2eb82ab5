"""What do the files of the package index say of a release's wheels?

Nothing is installed or run: the list of files at a wheel's end and a few small files in it are read, a piece at a time.
`torch-history sync --wheels` adds to `wheels.json` what it lacks.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import requests
from msgspec import to_builtins
from packaging.utils import canonicalize_name, parse_wheel_filename
from pypi_simple import DistributionPackage, NoSuchProjectError, PyPISimple

from ..store.files import write_atomically
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

GLIBC = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}


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
                _glibc(files[0].filename),
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


def _glibc(file: str) -> str:
    platforms = [tag.platform for tag in parse_wheel_filename(file)[3]]
    found = [match for match in (re.match(r"manylinux_(\d+)_(\d+)_", platform) for platform in platforms) if match]
    if found:
        return ".".join(map(str, min((int(match[1]), int(match[2])) for match in found)))
    return next((GLIBC[name] for platform in platforms if (name := platform.partition("_")[0]) in GLIBC), "")


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
