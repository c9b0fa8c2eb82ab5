"""Which torch does a file of requirements ask for? Read without a network, and without running anything."""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from ..system.errors import UserError

LARGEST_FILE = 2**26
"""Bytes of a file of requirements; a lock file of a large project has some millions."""

CONDA = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cpu": "torch"}
"""Name of a package of conda -> its name on the package index, where they differ."""

MEASURED_ON = {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"}
"""What markers are read for, whatever this machine is."""

MOST_PATCHES = 50
"""Patch releases of a Python that a file may name; none has had so many."""

_TEXT = r"""["'][^"']*["']"""
CHOICE = re.compile(rf"extra *[!=]= *{_TEXT}|{_TEXT} *[!=]= *extra|{_TEXT} +(not +)?in +(extras|dependency_groups)")
"""A condition of a marker on what a person chooses of a project."""

_Asked = tuple[str, SpecifierSet | None, list[str]]
"""A package, the versions that are asked for, and the markers, of which one must hold."""

FORMS = "requirements.txt, pyproject.toml, uv.lock, poetry.lock, pylock.toml, Pipfile.lock or environment.yml"


@dataclass(frozen=True)
class Wanted:
    """Package -> the versions that a file allows; `python` is what it says of Python, empty where it says nothing."""

    packages: dict[str, SpecifierSet]
    python: SpecifierSet


def read(path: Path, python: str) -> Wanted:
    """What the file at `path` asks for on Linux with that Python, with all of its extras and groups. Raises UserError."""
    packages: dict[str, SpecifierSet] = {}
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UserError(f"{path} is larger than {LARGEST_FILE / 2**20:.0f} MiB. Name {FORMS}.")
        asked, python_of_file = _of_form(path, _text(path))
        pythons = _python(python_of_file)
        for name, versions, markers in asked:
            if any(_holds(marker, python) for marker in markers):
                if versions is None and name == "torch":
                    raise ValueError("the address of torch does not say which torch it is")
                before = packages.get(canonicalize_name(name), SpecifierSet())
                packages[canonicalize_name(name)] = before & (versions or SpecifierSet())
    except OSError as error:
        raise UserError(f"{error.filename or path} cannot be read: {error.strerror}. Name {FORMS}.") from error
    except (ValueError, TypeError, AttributeError, KeyError, yaml.YAMLError, RecursionError) as error:
        said = f"it has no {error}" if isinstance(error, KeyError) else str(error).partition("\n")[0]
        raise UserError(f"{path} cannot be read as its name says: {said}. Name {FORMS}.") from error
    return Wanted(packages, pythons)


def _text(path: Path) -> str:
    """What a file says; `pip freeze > requirements.txt` of PowerShell writes UTF-16, and editors of Windows a mark."""
    return (said := path.read_bytes()).decode(json.detect_encoding(said))


def _holds(marker: str, python: str) -> bool:
    """Whether a marker holds where releases are measured, if a person chooses so."""
    here = {**MEASURED_ON, "python_version": python, "python_full_version": f"{python}.{MOST_PATCHES - 1}"}
    return not marker or Marker(CHOICE.sub("os_name == 'posix'", marker)).evaluate(here)


def _locked(name: str, versions: str, package: dict[str, Any]) -> _Asked:
    """A locked package. Of markers uv writes several, and poetry one, or one for each group that has one."""
    found = package.get("resolution-markers") or package.get("markers") or package.get("marker") or ""
    found = [found.get(group, "") for group in package["groups"]] if isinstance(found, dict) else found
    return name, versions_of(versions), found if isinstance(found, list) else [found]


def _of_form(path: Path, text: str) -> tuple[list[_Asked], str]:
    """The packages of a file by the form that its name tells, and what it says of Python."""
    if path.suffix in (".yml", ".yaml"):
        return _conda(path, yaml.safe_load(text))
    if path.name == "Pipfile.lock":
        groups = json.loads(text)
        of = {**groups.get("develop", {}), **groups.get("default", {})}
        said = str(next(iter(groups.get("_meta", {}).get("requires", {}).values()), ""))
        pinned = [_locked(name, each.get("version", ""), each) for name, each in of.items()]
        return pinned, f"=={said}.*" if re.fullmatch(r"[\d.]+", said) else said
    if path.suffix in (".lock", ".toml"):
        table = tomllib.loads(text)
        locked = table.get("package", table.get("packages"))
        python = table.get("requires-python") or table.get("metadata", {}).get("python-versions", "")
        if isinstance(locked, list):
            pinned = [_locked(each["name"], f"=={each['version']}", each) for each in locked if "version" in each]
            return pinned, python
        return _project(table)
    return list(_lines(path, text, ())), ""


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


def _python(said: str) -> SpecifierSet:
    """What a file says of Python, poetry's spaces as commas; any where it says one or another, which is no one condition."""
    return SpecifierSet() if "|" in said else versions_of(re.sub(r"(?<=[\d*]) +(?=[<>=!~^])", ",", said))


def _lines(path: Path, text: str, seen: tuple[Path, ...]) -> Iterator[_Asked]:
    """The lines of a file for pip, and of the files that it includes by `-r` and `-c`."""
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = re.sub(r"(^|\s)#.*$", "", line).strip()
        if include := re.fullmatch(r"(?:-r|-c|--requirement|--constraint)[ =]*(.+)", line):
            other = (path.parent / include[1].strip(" \"'")).resolve()
            if other not in seen and len(seen) < 20:
                yield from _lines(other, _text(other), (*seen, path.resolve()))
        elif line and not line.startswith("-"):
            yield from _required(re.split(r"\s--\w", line)[0])


def _required(line: str) -> Iterator[_Asked]:
    """One requirement, none of a bare path but a wheel's; an address counts by the version in it."""
    wheel = re.match(r"(?:\S*/)?([\w.]+)-\d[^/\s]*\.whl", line)
    try:
        requirement = Requirement(f"{wheel[1]} @ {line}" if wheel else line)
    except InvalidRequirement as error:
        if re.match(r"[./]|\w+(\+\w+)?://", line):
            return
        raise ValueError(f"'{line}' is no requirement") from error
    versions = _at(requirement.url) if requirement.url else versions_of(str(requirement.specifier))
    yield requirement.name, versions, [str(requirement.marker or "")]


def _at(address: str) -> SpecifierSet | None:
    """The version of what lies at an address, by its file's name or tag; None where neither tells it."""
    named = re.search(r"[-@/]v?(\d+(?:\.\d+)+)[^/]*$", address)
    return versions_of(f"=={named[1]}") if named else None


def _project(table: dict[str, Any]) -> tuple[list[_Asked], str]:
    """What pyproject.toml asks for: its dependencies, those of its extras and groups, and poetry's."""
    project, poetry = table.get("project", {}), table.get("tool", {}).get("poetry", {})
    lines = [*project.get("dependencies", [])]
    for group in (*project.get("optional-dependencies", {}).values(), *table.get("dependency-groups", {}).values()):
        lines += [line for line in group if isinstance(line, str)]
    pairs = [pair for line in lines for pair in _required(line)]
    groups = [poetry, {"dependencies": poetry.get("dev-dependencies", {})}, *poetry.get("group", {}).values()]
    of_poetry = [pair for group in groups for pair in group.get("dependencies", {}).items() if pair[0] != "python"]
    asked = poetry.get("dependencies", {}).get("python", "")
    python = project.get("requires-python", "") or (asked.get("version", "") if isinstance(asked, dict) else asked)
    pairs += [pair for named in of_poetry for pair in _of_poetry(*named)]
    return pairs, python


def _of_poetry(name: str, asked: Any) -> Iterator[_Asked]:
    """Poetry's condition of a package, a text or a table, or several of them for different platforms and Pythons."""
    for each in asked if isinstance(asked, list) else [asked]:
        of = each if isinstance(each, dict) else {"version": each}
        pythons = [versions_of(part) for part in re.split(r"\|\|?", of.get("python", ""))]
        alike = (
            " and ".join(f"python_full_version {one.operator} '{one.version}'" for one in each) for each in pythons
        )
        markers = [f"({' or '.join(alike)})"] if all(pythons) else []
        markers += [f"sys_platform == '{of['platform']}'"] if "platform" in of else []
        markers += [f"({of['markers']})"] if "markers" in of else []
        address = of.get("url") or of.get("path") or (f"{of['git']}@{of.get('tag', '')}" if "git" in of else "")
        versions = _at(address) if address else versions_of(of.get("version", ""))
        yield name, versions, [" and ".join(markers)]


def _conda(path: Path, table: dict[str, Any]) -> tuple[list[_Asked], str]:
    """What a file for conda asks for, the part for pip with it: `pytorch::pytorch=2.3` is any 2.3 of torch. A version that
    only conda has, such as `jpeg=9e`, is any."""
    pairs: list[_Asked] = []
    for each in table["dependencies"] or ():
        if isinstance(each, dict):
            pairs += _lines(path, "\n".join(each.get("pip") or ()), ())
            continue
        name, condition = re.findall(r"([\w.-]*) *(.*)", each.rpartition("::")[2])[0]
        if bracket := re.match(r"\[(?:.*[, ])?version *= *(['\"]?)(.*?)(?:\1 *[],]|\1$)", condition):
            condition = bracket[2]
        condition = re.sub(r"(?<=[\w.*])(=| +)[^=<>!~, ]+ *$|^\[.*", "", condition)  # a build, or other facts
        if match := re.match(r"=([^=]+)", condition):
            condition = f"=={match[1].rstrip('*. ')}.*".removeprefix("==.*")
        is_plain = name in CONDA or re.fullmatch(r"[\d.*<>=!~, ]*", condition)
        versions = versions_of(condition) if is_plain else SpecifierSet()
        pairs.append((CONDA.get(name, name), versions, [""]))
    return pairs, next((str(versions) for name, versions, _ in pairs if name == "python"), "")
