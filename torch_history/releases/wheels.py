"""What does a release bring besides time? Sizes, libraries, GPU architectures and requirements, from its wheels alone.

Nothing is installed or run: the list of files at a wheel's end and a few small files in it are read from the package
index, a piece at a time. `wheels.json`, beside releases.lock, keeps what was read; `torch-history sync --wheels` adds what
it lacks.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import requests
from msgspec import Meta, Struct, ValidationError, convert, to_builtins
from packaging.utils import canonicalize_name, parse_wheel_filename
from pypi_simple import DistributionPackage, NoSuchProjectError, PyPISimple

from ..errors import UserError
from ..store.files import read_object, write_atomically
from .axis import Axis, Release
from .pins import LOCK_FILE, Lock
from .remote import TIMEOUT, RemoteFile

FILE = "wheels.json"

LANES = ("3.11", "3.9")
"""Pythons whose wheel is read: the first that the release has locked packages for."""

LEAST_LIBRARY = 2**20
"""Bytes from which on a library is listed."""

LONGEST_FILE = 2**27
"""Bytes of a file within a wheel that is read."""

INIT = "torch/__init__.py"

GLIBC = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}

Bytes = Annotated[int, Meta(ge=0, le=2**44)]
Text = Annotated[str, Meta(max_length=200)]


class CannotRead(UserError):
    """The wheels of a release cannot be read; the text says which and why."""


class Package(Struct, frozen=True):
    """One package that a release installs: bytes of its file, and of the files in it."""

    name: Text
    version: Text
    file: Text
    sha256: Text
    download: Bytes
    installed: Bytes


class Wheel(Struct, frozen=True):
    """What a release's own wheel for one `python` says, and all `packages` that come with it, torch first.

    `cuda`, `commit`: torch/version.py. `cxx11_abi`: the cmake file for C++ extensions; None where it says nothing.
    `glibc`: the least version by the wheel's platform tag; empty for a tag that promises none. `architectures`: what
    `torch.cuda.get_arch_list()` answers, from libtorch_python.so. `libraries`: bytes of each file from 1 MiB on."""

    python: Text
    cuda: Text
    commit: Text
    cxx11_abi: bool | None
    glibc: Text
    architectures: tuple[Text, ...]
    libraries: dict[Text, Bytes]
    packages: tuple[Package, ...]

    @property
    def download(self) -> int:
        """Bytes that an installation into an empty environment downloads."""
        return sum(package.download for package in self.packages)

    @property
    def installed(self) -> int:
        """Bytes that it writes, without the bytecode that Python adds."""
        return sum(package.installed for package in self.packages)

    @property
    def versions(self) -> dict[str, str]:
        """Package -> version, CUDA's suffix taken off: `nvidia-cudnn-cu12` and `nvidia-cudnn-cu13` are one package."""
        return {re.sub(r"-cu\d+$", "", package.name): package.version for package in self.packages}


def load(path: Path) -> dict[str, Wheel]:
    """Tag -> what is known; empty where there is no file. Raises CannotRead where it is damaged."""
    if not path.exists():
        return {}
    try:
        return convert(read_object(path), dict[str, Wheel])
    except (ValidationError, ValueError) as error:
        raise CannotRead(f"{path} is damaged: {error}. Restore it: git checkout {path}.") from error


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
                _value(version, "cuda"),
                _value(version, "git_version"),
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


def _value(text: str, name: str) -> str:
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


# --- in words


def differences(old: Wheel, new: Wheel) -> Iterator[tuple[str, str, str]]:
    """What differs, a row each: what it is, before, now."""
    before, now = told(old), told(new)
    rows = [(what, before[what], now[what]) for what in OF_EACH]
    rows.insert(OF_EACH.index("CUDA") + 1, (ARCHITECTURES, *_sides(old.architectures, new.architectures)))
    packages = sorted({*before, *now} - {*OF_EACH, COMMIT})
    rows += [(name, before.get(name, "-"), now.get(name, "-")) for name in (*packages, COMMIT)]
    return ((what, one, other) for what, one, other in rows if one != other)


ARCHITECTURES, COMMIT = "GPU architectures", "commit"

OF_EACH = (
    "download, with all packages",
    "installed, with all packages",
    "torch itself, installed",
    "CUDA",
    "C++11 ABI",
    "least glibc",
)
"""What is said of every wheel before its packages and its commit."""


def told(wheel: Wheel) -> dict[str, str]:
    """What a wheel brings but its architectures, in words: what it is -> what it says, the version of a package."""
    of_each = (
        size(wheel.download),
        size(wheel.installed),
        size(wheel.packages[0].installed),
        wheel.cuda or "none",
        _abi(wheel.cxx11_abi),
        wheel.glibc or "not promised",
    )
    packages = {name: version for name, version in wheel.versions.items() if name != "torch"}
    return {**dict(zip(OF_EACH, of_each, strict=True)), **packages, COMMIT: wheel.commit[:10]}


def _sides(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, str]:
    """What only one of them has."""
    dropped = [each for each in old if each not in new]
    added = [each for each in new if each not in old]
    return " ".join(dropped) or "-", " ".join(added) or "-"


def _abi(value: bool | None) -> str:
    return "not said" if value is None else "yes" if value else "no"


def size(count: int) -> str:
    """Bytes for a person, in powers of ten as the package index tells them."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"


PAGE = """\
# What the wheels bring

Made by `torch-history document` from `wheels.json`, which `torch-history sync --wheels` reads from the wheels of the package
index. Nothing was installed or run. Sizes are those of torch with all packages that `releases.lock` pins, NumPy included, in
powers of ten. The architectures are what `torch.cuda.get_arch_list()` answers. `torch-history facts OLD NEW` says what
differs between two releases.

"""

COLUMNS = (
    "release", "Python", "download", "installed", "torch alone", "CUDA", "cuDNN", "NCCL", "Triton", "NumPy", "glibc",
    "C++11 ABI", "GPU architectures",
)  # fmt: skip


def document(known: dict[str, Wheel], axis: Axis) -> str:
    """A page with a row for each release, oldest first; one that was not read is named."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|---|---:|---:|---:|" + "---|" * (len(COLUMNS) - 5)]
    for release in axis.releases:
        wheel = known.get(release.tag)
        if wheel is None:
            lines.append(f"| {release.tag} | not read |" + " |" * (len(COLUMNS) - 2))
            continue
        has = wheel.versions
        cells = [
            release.tag, wheel.python, size(wheel.download), size(wheel.installed), size(wheel.packages[0].installed),
            wheel.cuda or "none", has.get("nvidia-cudnn", "inside torch"), has.get("nvidia-nccl", "inside torch"),
            has.get("triton", "none"), has.get("numpy", "none"), wheel.glibc or "not promised", _abi(wheel.cxx11_abi),
            " ".join(wheel.architectures),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return PAGE + "\n".join(lines) + "\n"
