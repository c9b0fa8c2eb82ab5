"""What does a user's own file need besides torch? Packages in a folder of their own, which the release does not see.

They are resolved against exactly the packages of that release, none of which is changed, and put on the path of the
processes that measure that file.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ..system.files import is_list_of, is_text, read_object, write_atomically
from . import intact
from .uv import INDEX, OUT_OF_REACH, run_uv

FOLDER = "added"
"""Folder in a release's environment with a folder for each list of requirements; it goes with the environment."""

MARK = "added.json"
"""The file written last into a finished folder: what was asked for, and each package with its version."""

PLATFORM = "x86_64-manylinux_2_28"

OF_TORCH = ("torch",)
"""Packages that the release itself decides."""


class AddingError(Exception):
    """The packages cannot be had for a release; the text is a sentence that says why."""


def problem(requirement: str) -> str:
    """Why a requirement is refused, in words without a full stop; empty where it is not. Only names, extras, versions and
    markers are taken: an address or an option could run anything."""
    try:
        parsed = Requirement(requirement)
    except InvalidRequirement:
        return f"`{requirement}` is no package with a version: write `torchvision` or `transformers==4.44.*`"
    if parsed.url:
        return f"`{requirement}` names an address, and only packages of the index are installed"
    if canonicalize_name(parsed.name) in OF_TORCH:
        return f"`{requirement}` names torch, which is what is compared: name its releases on the command line"
    return ""


def name_of(requirement: str) -> str:
    """The name in a requirement that `problem` does not refuse, as an index has it."""
    return canonicalize_name(Requirement(requirement).name)


def resolved(
    subject: str, python: str, packages: Sequence[str], requirements: Sequence[str], options: Sequence[str] = ()
) -> list[str]:
    """name==version of what `requirements` need on `python` besides `packages`, the name==version that the release has.
    Only wheels are taken: building a source runs it. Raises AddingError, which begins with `subject`."""
    answer = _compiled(subject, python, packages, requirements, options)
    there = {_name(package) for package in packages}
    lines = [line.partition(" ;")[0].strip() for line in answer.splitlines()]
    return [line for line in lines if "==" in line and _name(line) not in there]


class Sized(NamedTuple):
    """A package that is to be added: name==version, and the bytes of its wheel; None where the index does not say."""

    package: str
    size: int | None


def sized(
    subject: str, python: str, packages: Sequence[str], requirements: Sequence[str], options: Sequence[str] = ()
) -> list[Sized]:
    """`resolved` with the sizes of the wheels, of several that fit the largest. Nothing is installed."""
    answer = _compiled(subject, python, packages, requirements, [*options, "--format", "pylock.toml"])
    there = {_name(package) for package in packages}
    try:
        found = tomllib.loads(answer).get("packages", [])
        return [
            Sized(f"{each['name']}=={each['version']}", _largest(each.get("wheels", [])))
            for each in found
            if canonicalize_name(each["name"]) not in there
        ]
    except (AttributeError, KeyError, TypeError, tomllib.TOMLDecodeError) as error:
        raise AddingError(f"{', '.join(requirements)} cannot be sized for {subject}: uv's answer is damaged") from error


def _largest(wheels: Sequence[dict[str, object]]) -> int | None:
    sizes = [wheel.get("size") for wheel in wheels]
    known = [size for size in sizes if isinstance(size, int)]
    return max(known) if known and len(known) == len(sizes) else None


def _compiled(
    subject: str, python: str, packages: Sequence[str], requirements: Sequence[str], options: Sequence[str]
) -> str:
    """What uv resolves `requirements` to beside `packages`. Raises AddingError."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as held:
        held.write("\n".join(packages) + "\n")
        held.flush()
        what = ["--python-version", python, "--python-platform", PLATFORM, "--constraint", held.name, "--no-build"]
        forms = ["--no-header", "--no-annotate", "--quiet", *options]
        try:
            return run_uv(["pip", "compile", "-", *what, *forms], stdin="\n".join(requirements))
        except subprocess.CalledProcessError as error:
            raise AddingError(_sentence(subject, requirements, str(error.stderr))) from error


def folder_of(environment: Path, requirements: Sequence[str]) -> Path:
    """Where the packages for `requirements` lie in a release's environment."""
    asked = json.dumps(sorted(requirements))
    return environment / FOLDER / hashlib.sha256(asked.encode()).hexdigest()[:16]


def path_of(folder: Path) -> Path:
    """What is put on a process's path."""
    return folder / "site-packages"


def add(
    environment: Path,
    subject: str,
    python: str,
    packages: Sequence[str],
    requirements: Sequence[str],
    options: Sequence[str],
    lock: int,
) -> Path:
    """Installs what `requirements` need into a folder of a release's environment, which is locked by the open file `lock`,
    and returns what to put on the path. Does nothing where that was finished before and is as it was. Raises
    AddingError."""
    folder = folder_of(environment, requirements)
    damaged: intact.Damage = {}
    if (folder / MARK).exists():
        damaged = intact.damage(folder)
        if not damaged:
            return path_of(folder)

    def forget(packages: Iterable[str]) -> None:
        if packages:
            run_uv(["cache", "clean", *options, *packages])

    def fresh() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        path_of(folder).mkdir(parents=True)
        if found:
            what = ["--python", str(environment / "bin" / "python"), "--target", str(path_of(folder))]
            run_uv(["pip", "install", *what, "--no-deps", "--no-build", *options, *found], holding=[lock])

    try:
        found = resolved(subject, python, packages, requirements, options)
        forget(damaged)
        intact.install(folder, fresh, forget)
        write_atomically(folder / MARK, json.dumps({"requirements": sorted(requirements), "packages": found}, indent=1))
    except subprocess.CalledProcessError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise AddingError(_sentence(subject, requirements, str(error.stderr))) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return path_of(folder)


def packages_in(environment: Path) -> set[str]:
    """name==version of everything that was added to a release's environment. Raises ValueError where a mark is damaged."""
    found: set[str] = set()
    for mark in environment.glob(f"{FOLDER}/*/{MARK}"):
        packages = read_object(mark).get("packages", [])
        if not is_list_of(is_text)(packages):
            raise ValueError("its packages are no list of names")
        found.update(packages)
    return found


def _name(package: str) -> str:
    return canonicalize_name(package.partition("==")[0].partition("[")[0])


def _sentence(subject: str, requirements: Sequence[str], said: str) -> str:
    words = f"{', '.join(requirements)} cannot be had for {subject}"
    if OUT_OF_REACH.search(said):
        return f"{words}: the package index is out of reach. Check the network or {INDEX}."
    return f"{words}. uv said: {' '.join(said.split())[-600:]}"
