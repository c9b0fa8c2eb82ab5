"""What does a user's own file need besides torch? Packages that are resolved against exactly those of the release, in a
folder of their own, which is put on the path of the processes that measure that file."""

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ..system.files import read_object, write_atomically
from . import intact
from .uv import run_uv, told

FOLDER = "added"
"""Folder in a release's environment with a folder for each list of requirements; it goes with the environment."""

MARK = "added.json"
"""The file written last into a finished folder: what was asked for, and each package with its version."""

PLATFORM = "x86_64-manylinux_2_28"


class AddingError(Exception):
    """The packages cannot be had for a release; the text is a sentence that says why."""


def problem(requirement: str) -> str:
    """Why a requirement is refused; empty where it is not. An address or an option could run anything."""
    try:
        parsed = Requirement(requirement)
    except InvalidRequirement:
        return f"`{requirement}` is no package with a version: write `torchvision` or `transformers==4.44.*`"
    if parsed.url:
        return f"`{requirement}` names an address, and only packages of the index are installed"
    if canonicalize_name(parsed.name) == "torch":
        return f"`{requirement}` names torch, which is what is compared: name its releases on the command line"
    return ""


def name_of(requirement: str) -> str:
    """The name in a requirement that `problem` does not refuse, as an index has it."""
    return canonicalize_name(Requirement(requirement).name)


class Sized(NamedTuple):
    """A package that is to be added: name==version, and the bytes of its wheel; None where the index does not say."""

    package: str
    size: int | None


@dataclass(frozen=True)
class Wanted:
    """`requirements` on a `python` beside `packages` (name==version) of a release, the `subject` of sentences."""

    subject: str
    python: str
    packages: tuple[str, ...]
    requirements: tuple[str, ...]
    options: tuple[str, ...] = ()

    def sized(self) -> list[Sized]:
        """What is needed besides, with the largest size of its wheels: a source would be run. Raises AddingError."""
        there = {canonicalize_name(re.split(r"==|\[", package)[0]) for package in self.packages}
        try:
            with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as held:
                held.write("\n".join(self.packages) + "\n")
                held.flush()
                what = ["--python-version", self.python, "--python-platform", PLATFORM, "--constraint", held.name]
                forms = ["--no-build", "--no-header", "--no-annotate", "--quiet", "--format", "pylock.toml"]
                lines = "\n".join(self.requirements)
                answer = run_uv(["pip", "compile", "-", *what, *forms, *self.options], stdin=lines)
            packages = tomllib.loads(answer).get("packages", [])
            besides = [each for each in packages if canonicalize_name(each["name"]) not in there]
            return [Sized(f"{each['name']}=={each['version']}", _largest(each.get("wheels", []))) for each in besides]
        except subprocess.CalledProcessError as error:
            raise self._error(told(error)) from error
        except (AttributeError, KeyError, TypeError, tomllib.TOMLDecodeError) as error:
            raise self._error("uv's answer is damaged") from error

    def add(self, environment: Path, lock: int) -> Path:
        """Installs what is needed, unless that is there whole, beside an environment which the open file `lock` locks;
        returns what to put on the path. Raises AddingError."""
        folder = folder_of(environment, self.requirements)
        path, python = folder / "site-packages", str(environment / "bin" / "python")
        damaged = intact.damage(folder) if (folder / MARK).exists() else None
        if damaged == {}:
            return path

        def fresh() -> None:
            shutil.rmtree(folder, ignore_errors=True)
            path.mkdir(parents=True)
            if found:
                what = ["--link-mode", "hardlink", "--python", python, "--target", str(path)]
                run_uv(["pip", "install", *what, "--no-deps", "--no-build", *self.options, *found], holding=[lock])

        try:
            found = [one.package for one in self.sized()]
            intact.install(folder, fresh, self.options, damaged or ())
            mark = {"requirements": sorted(self.requirements), "packages": found}
            write_atomically(folder / MARK, json.dumps(mark, indent=1))
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, subprocess.CalledProcessError):
                raise self._error(told(error)) from error
            raise
        return path

    def _error(self, why: str) -> AddingError:
        return AddingError(f"{', '.join(self.requirements)} cannot be had for {self.subject}: {why}.")


def _largest(wheels: Sequence[dict[str, object]]) -> int | None:
    known = [size for wheel in wheels if isinstance(size := wheel.get("size"), int)]
    return max(known) if known and len(known) == len(wheels) else None


def folder_of(environment: Path, requirements: Sequence[str]) -> Path:
    """Where the packages for `requirements` lie in a release's environment."""
    asked = json.dumps(sorted(requirements))
    return environment / FOLDER / hashlib.sha256(asked.encode()).hexdigest()[:16]


def listed(mark: Path) -> list[str]:
    """Every package that a mark lists, as name==version. Raises ValueError where it is damaged."""
    packages: list[str] = read_object(mark).get("packages", [])
    if not isinstance(packages, list) or not all(isinstance(each, str) for each in packages):
        raise ValueError("its packages are no list of names")
    return packages
