"""Which releases does the package index have that the axis has not? Found, described from the index and the wheels, and put
where they belong in `releases.toml`; what stands there is neither moved nor changed.
"""

from __future__ import annotations

import datetime
import difflib
import email
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import requests
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version
from pypi_simple import PYPI_SIMPLE_ENDPOINT, DistributionPackage, NoMetadataError, NoSuchProjectError, PyPISimple

from ..errors import UserError
from ..system.files import write_atomically
from .axis import Axis, Release
from .remote import TIMEOUT, RemoteFile

PROJECT = "torch"

LAG = datetime.timedelta(days=4)
"""From a wheel's build to its upload it took 0 to 8 days so far; the middle, where the index tells no day."""

PLATFORM = re.compile(r"(many)?linux\w*_x86_64")


class CannotSync(UserError):
    """The index cannot be asked, or does not answer sensibly; the text says which and what to do."""


@dataclass(frozen=True)
class Found:
    """What the index has: `new` are entries for the axis, `sentences` what a person should know besides."""

    new: list[Release]
    sentences: list[str]


def configured_index() -> str:
    """The address of the package index that uv is configured with, as `run_uv` lets it be, else pip, else the one that both
    use without."""
    for variable in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if address := os.environ.get(variable):
            return re.sub(r"^[\w-]+=(?=\w+://)", "", address)
    named = os.environ.get("UV_CONFIG_FILE")
    return (_of_uv(Path(named)) if named else "") or _of_pip() or PYPI_SIMPLE_ENDPOINT


def _of_uv(path: Path) -> str:
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    for index in settings.get("index", []):
        if index.get("default"):
            return str(index.get("url", ""))
    return str(settings.get("index-url", "") or settings.get("pip", {}).get("index-url", ""))


def _of_pip() -> str:
    """pip's own answer, which its files, its variables and its virtual environment decide."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return os.environ.get("PIP_INDEX_URL", "")
    found = dict(re.findall(r"^(\S+?)\.index-url='(.*)'$", answer, re.MULTILINE))
    return found.get(":env:") or found.get("install") or found.get("global") or ""


def without_secrets(address: str) -> str:
    """An address as it may be shown: without a name and a password in it."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def find(axis: Axis, address: str) -> Found:
    """The releases at `address` that the axis lacks, oldest first. Raises CannotSync."""
    shown = without_secrets(address)
    with PyPISimple(address) as index:
        try:
            packages = index.get_project_page(PROJECT, timeout=TIMEOUT).packages
        except NoSuchProjectError as error:
            raise CannotSync(f"The package index {shown} has no project '{PROJECT}'. {CONFIGURE}") from error
        except Exception as error:
            if isinstance(error, requests.RequestException) and not isinstance(error, ValueError):
                said = f"The package index {shown} is out of reach ({_reason(error)}). {CONFIGURE}"
                raise CannotSync(said) from error
            # Its parsers raise what they meet in an answer that is no page of an index.
            raise CannotSync(f"What {shown} answers is no page of a package index. {CONFIGURE}") from error
        wheels = _wheels(packages)
        if not wheels:
            raise CannotSync(f"The package index {shown} names no wheel of {PROJECT} for Linux on x86_64. {CONFIGURE}")
        new, sentences = [], []
        oldest = min(Version(release.version) for release in axis.releases)
        for version, of_version in sorted(wheels.items()):
            if version < oldest:
                continue
            yanked = all(package.is_yanked for package in of_version)
            if f"v{version}" in axis:
                known = axis.releases[axis.position(f"v{version}")]
                if yanked and not known.yanked:
                    sentences.append(f"{known.tag} has been yanked since it was added: {_why(of_version)}.")
                continue
            try:
                new.append(_described(index, version, of_version))
            except (CannotSync, requests.RequestException, zipfile.BadZipFile, KeyError, ValueError) as error:
                sentences.append(f"v{version} is skipped: {_reason(error)}.")
        without = sorted({version for version in _versions(packages) if version >= oldest} - wheels.keys())
        sentences += [
            f"v{version} is skipped: it has no wheel for Linux on x86_64."
            for version in without
            if f"v{version}" not in axis
        ]
    return Found(new, sentences)


CONFIGURE = (
    "Check the network and the settings of uv (UV_DEFAULT_INDEX) and pip (PIP_INDEX_URL), or name one with --index."
)


def _reason(error: BaseException) -> str:
    """An error in a few words, without an address that may hold a password."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"it answers {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT} seconds"
    if isinstance(error, requests.RequestException):
        return "no connection"
    return str(error).rstrip(".") or type(error).__name__


def _versions(packages: Iterable[DistributionPackage]) -> set[Version]:
    """Every final version among them."""
    found = set()
    for package in packages:
        try:
            version = Version(package.version or "")
        except InvalidVersion:
            continue
        if not version.is_prerelease and not version.local:
            found.add(version)
    return found


def _wheels(packages: Iterable[DistributionPackage]) -> dict[Version, list[DistributionPackage]]:
    """Version -> its wheels for CPython on Linux x86_64, final releases only."""
    found: dict[Version, list[DistributionPackage]] = defaultdict(list)
    for package in packages:
        try:
            _, version, _, tags = parse_wheel_filename(package.filename)
        except (InvalidWheelFilename, InvalidVersion):
            continue
        suits = any(PLATFORM.fullmatch(tag.platform) and tag.interpreter.startswith("cp") for tag in tags)
        if suits and not version.is_prerelease and not version.local:
            found[version].append(package)
    return dict(found)


def _pythons(wheels: Sequence[DistributionPackage]) -> tuple[str, ...]:
    """`3.11` of every wheel whose interpreter is a plain CPython: free-threaded builds (cp313t) are another one."""
    found = set()
    for wheel in wheels:
        _, _, _, tags = parse_wheel_filename(wheel.filename)
        for tag in tags:
            match = re.fullmatch(r"cp3(\d+)", tag.interpreter)
            if match and not tag.abi.endswith("t"):
                found.add(int(match[1]))
    return tuple(f"3.{minor}" for minor in sorted(found))


def _why(wheels: Sequence[DistributionPackage]) -> str:
    return next((wheel.yanked_reason for wheel in wheels if wheel.yanked_reason), "no reason is given")


def _described(index: PyPISimple, version: Version, wheels: Sequence[DistributionPackage]) -> Release:
    """An entry for the axis. Raises ValueError where its wheels do not say what the axis must know."""
    pythons = _pythons(wheels)
    if not pythons:
        raise ValueError("none of its wheels is for a plain CPython")
    wheel = next(
        wheel for wheel in wheels if any(tag.interpreter == f"cp{pythons[-1].replace('.', '')}" for tag in _tags(wheel))
    )
    uploads = [each.upload_time for each in wheels if each.upload_time]
    cuda = _cuda_of_metadata(index, wheel)
    inside = None if cuda and uploads else _Inside.of(index, wheel)
    if not cuda and inside:
        cuda = inside.cuda
    date = min(uploads).date() if uploads else (inside.built + LAG if inside else None)
    if date is None:
        raise ValueError("its date is unknown")
    return Release(
        version=str(version),
        date=date,
        date_source="index" if uploads else "estimated",
        pythons=pythons,
        cuda=cuda,
        yanked=_why(wheels) if all(each.is_yanked for each in wheels) else "",
    )


def _tags(wheel: DistributionPackage) -> Iterable[Tag]:
    return parse_wheel_filename(wheel.filename)[3]


def _cuda_of_metadata(index: PyPISimple, wheel: DistributionPackage) -> str:
    """CUDA of a wheel by the runtime that it requires; empty where its metadata are not served apart or name none."""
    if not wheel.has_metadata:
        return ""
    try:
        message = email.message_from_string(
            index.get_package_metadata(wheel, verify=bool(wheel.metadata_digests), timeout=TIMEOUT)
        )
    except (NoMetadataError, requests.RequestException, UnicodeDecodeError):
        return ""
    for requirement in message.get_all("Requires-Dist", []):
        match = re.match(
            r"(?:nvidia-cuda-runtime(?:-cu\d+)?|cuda-toolkit)(?:\[[^\]]*\])?\s*\(?==\s*(\d+\.\d+)", requirement
        )
        if match:
            return match[1]
    return ""


@dataclass(frozen=True)
class _Inside:
    """What a wheel's own files say: CUDA by torch/version.py, empty for a build without, and the day it was built."""

    cuda: str
    built: datetime.date

    @classmethod
    def of(cls, index: PyPISimple, wheel: DistributionPackage) -> _Inside:
        with zipfile.ZipFile(RemoteFile(index.s, wheel.url)) as archive:
            member = archive.getinfo("torch/version.py")
            text = archive.read(member).decode("utf-8")
        cuda = re.search(r"^cuda(?:\s*:[^=]*)?\s*=\s*['\"]([\d.]+)['\"]", text, re.MULTILINE)
        return cls(cuda[1] if cuda else "", datetime.date(*member.date_time[:3]))


# --- the axis


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
    pythons = ", ".join(f'"{python}"' for python in release.pythons)
    reason = release.yanked.replace("\\", "\\\\").replace('"', '\\"')
    lines = [
        "[[release]]",
        f'version = "{release.version}"',
        f'date = "{release.date.isoformat()}"',
        f'date_source = "{release.date_source}"',
        f"pythons = [{pythons}]",
        f'cuda = "{release.cuda}"',
        *([f'yanked = "{" ".join(reason.split())}"'] if release.yanked else []),
    ]
    return "\n".join(lines) + "\n"


def difference(path: Path, text: str) -> str:
    """What would change in `path`, as diff prints it; empty where nothing would."""
    before = path.read_text(encoding="utf-8")
    lines = difflib.unified_diff(
        before.splitlines(True), text.splitlines(True), str(path.name), f"{path.name} (new)", n=1
    )
    return "".join(lines)


def write(path: Path, text: str) -> None:
    """Writes the axis, if it is one. Raises AxisError and leaves the file as it was where it is none."""
    scratch = path.with_name(f"{path.name}.new")
    try:
        write_atomically(scratch, text)
        Axis.load(scratch)
    finally:
        scratch.unlink(missing_ok=True)
    write_atomically(path, text)
