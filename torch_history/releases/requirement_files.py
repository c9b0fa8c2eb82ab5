"""Which torch does a file of requirements ask for? Read without a network, and without running anything."""

import contextlib
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from ..system.errors import UserError

LARGEST_FILE = 2**26
"""Bytes of a file of requirements; a lock file of a large project has some millions."""

CONDA = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cpu": "torch"}
"""Name of a package of conda -> its name on the package index, where they differ."""

FORMS = "requirements.txt, pyproject.toml, uv.lock, poetry.lock, pylock.toml, Pipfile.lock or environment.yml"


@dataclass(frozen=True)
class Wanted:
    """Package -> the versions that a file allows; `python` is what it says of Python, empty where it says nothing."""

    packages: dict[str, SpecifierSet]
    python: SpecifierSet


def read(path: Path) -> Wanted:
    """What the file at `path` asks for. Raises UserError."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UserError(f"{path} is larger than {LARGEST_FILE / 2**20:.0f} MiB. Name {FORMS}.")
        pairs, python = _of_form(path, path.read_text(encoding="utf-8"))
        known = [(canonicalize_name(name), versions) for name, versions in pairs]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}. Name {FORMS}.") from error
    except (ValueError, TypeError, AttributeError, yaml.YAMLError, RecursionError) as error:
        said = str(error).partition("\n")[0]
        raise UserError(f"{path} cannot be read as its name says: {said}. Name {FORMS}.") from error
    packages: dict[str, SpecifierSet] = {}
    for name, versions in known:
        packages[name] = packages.get(name, SpecifierSet()) & versions
    return Wanted(packages, python)


def _of_form(path: Path, text: str) -> tuple[list[tuple[str, SpecifierSet]], SpecifierSet]:
    """The packages of a file by the form that its name tells, and what it says of Python."""
    if path.suffix in (".yml", ".yaml"):
        return _conda(yaml.safe_load(text))
    if path.name == "Pipfile.lock":
        groups = json.loads(text)
        of = {**groups.get("develop", {}), **groups.get("default", {})}
        return [(name, versions_of(str(each.get("version", "")))) for name, each in of.items()], SpecifierSet()
    if path.suffix in (".lock", ".toml"):
        table = tomllib.loads(text)
        locked = table.get("package", table.get("packages"))
        python = str(table.get("requires-python", ""))
        if isinstance(locked, list):
            pinned = [(each["name"], versions_of(f"=={each['version']}")) for each in locked if "version" in each]
            return pinned, versions_of(python)
        return _project(table)
    return list(_lines(path, text, ())), SpecifierSet()


def versions_of(text: str) -> SpecifierSet:
    """`==2.3.1+cu121` as `==2.3.1`, `^2.1` and `~2.1` as poetry has them, `*` and nothing as any. Raises ValueError."""
    text = re.sub(r"\+[\w.]+", "", text.strip())
    if text in ("", "*"):
        return SpecifierSet()
    try:
        return SpecifierSet(",".join(_poetry(part.strip()) for part in text.split(",")))
    except InvalidSpecifier as error:
        raise ValueError(f"'{text}' names no versions") from error


def _poetry(part: str) -> str:
    """One condition of poetry's or conda's as the package index writes it."""
    match = re.fullmatch(r"(\^|~|)(\d+(?:\.\d+)*)(\.\*|)", part)
    if not match or (match[1] and match[3]):
        return part
    kind, version, any_patch = match.groups()
    numbers = [int(number) for number in version.split(".")]
    if not kind:
        return f"=={version}{any_patch}"
    last = next((i for i, number in enumerate(numbers) if number), 0) if kind == "^" else min(1, len(numbers) - 1)
    below = [*numbers[:last], numbers[last] + 1]
    return f">={version},<{'.'.join(map(str, below))}"


def _lines(path: Path, text: str, seen: tuple[Path, ...]) -> Iterator[tuple[str, SpecifierSet]]:
    """The lines of a file for pip, and of the files that it includes by `-r` and `-c`."""
    for line in re.sub(r"\\\n", " ", text).splitlines():
        line = re.sub(r"(^|\s)#.*$", "", line).strip()
        include = re.fullmatch(r"(?:-r|-c|--requirement|--constraint)[ =]*(.+)", line)
        if include:
            other = (path.parent / include[1].strip()).resolve()
            if other not in seen and len(seen) < 20:
                yield from _lines(other, other.read_text(encoding="utf-8"), (*seen, path.resolve()))
        elif line and not line.startswith("-"):
            yield from _required(re.split(r"\s--\w", line)[0])


def _required(line: str) -> Iterator[tuple[str, SpecifierSet]]:
    """One requirement, none where it is for another system; an address counts by the version in its file's name."""
    try:
        requirement = Requirement(line)
    except InvalidRequirement as error:
        if re.match(r"[./]|\w+(\+\w+)?://", line):
            return
        raise ValueError(f"'{line}' is no requirement") from error
    with contextlib.suppress(UndefinedEnvironmentName):
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            return
    named = re.search(r"/torch\w*-(\d+(?:\.\d+)+)[^/]*\.whl", requirement.url or "")
    yield requirement.name, versions_of(f"=={named[1]}" if named else str(requirement.specifier))


def _project(table: dict[str, Any]) -> tuple[list[tuple[str, SpecifierSet]], SpecifierSet]:
    """What pyproject.toml asks for: its dependencies, those of its extras and groups, and poetry's."""
    project, poetry = table.get("project", {}), table.get("tool", {}).get("poetry", {})
    lines = [*project.get("dependencies", [])]
    for group in (*project.get("optional-dependencies", {}).values(), *table.get("dependency-groups", {}).values()):
        lines += [line for line in group if isinstance(line, str)]
    pairs = [pair for line in lines for pair in _required(line)]
    groups = [poetry, *poetry.get("group", {}).values()]
    of_poetry = {name: asked for group in groups for name, asked in group.get("dependencies", {}).items()}
    python = str(project.get("requires-python", "")) or _version(of_poetry.pop("python", ""))
    return pairs + [(name, versions_of(_version(asked))) for name, asked in of_poetry.items()], versions_of(python)


def _version(asked: Any) -> str:
    """Poetry's condition, whether it stands alone, in a table, or in the first of several."""
    if isinstance(asked, list):
        asked = asked[0]
    return str(asked.get("version", "")) if isinstance(asked, dict) else str(asked)


def _conda(table: dict[str, Any]) -> tuple[list[tuple[str, SpecifierSet]], SpecifierSet]:
    """What a file for conda asks for, the part for pip with it: `pytorch::pytorch=2.3` is any 2.3 of torch."""
    pairs, python = [], SpecifierSet()
    for each in table["dependencies"]:
        if isinstance(each, dict):
            pairs += [pair for line in each.get("pip", []) for pair in _required(line) if not line.startswith("-")]
            continue
        name, _, condition = re.sub(r"[=<>!~]", r" \g<0>", each.rpartition("::")[2], count=1).partition(" ")
        if re.match(r"=[^=]", condition.strip()):
            version = condition.strip()[1:].partition("=")[0].rstrip("*.")
            condition = f"=={version}.*"
        versions = versions_of(condition.split("=py")[0])
        if name == "python":
            python = versions
        pairs.append((CONDA.get(name, name), versions))
    return pairs, python
