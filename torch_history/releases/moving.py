"""What does a move from one release to another bring besides time? Told from committed files alone, in rows."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.architectures import runs

from ..system.errors import UserError
from .axis import Axis, Release
from .requirement_files import MOST_PATCHES, Wanted
from .wheels import Wheel, size

CONTRACT = Path(__file__).resolve().parents[2] / "contract"
COMPANIONS = "companions.json"
"""Package -> version -> its torch, ANY for any, empty where not known. `python -m tools.companions` writes it."""

ANY = "any"

SHOWN = ("triton", "nvidia-cudnn", "nvidia-cublas", "nvidia-nccl")
"""Packages that torch brings and that a move is asked about."""


@dataclass(frozen=True)
class Row:
    """One thing that a move changes; whether it `stops` the move, and whether the file has to be `changed` with it."""

    name: str
    words: str
    stops: bool = False
    changed: bool = False


def allowed(wanted: Wanted, axis: Axis, where: str) -> tuple[list[Release], str]:
    """The releases that a file allows by torch, else those that its torchvision and torchaudio are built for, oldest first,
    and what it asks for, as a sentence begins. Raises UserError where there is none, or it is not known."""
    known = {"torch": {each.version: each.version for each in axis.releases}, **companions()}
    named = {name: wanted.packages[name] for name in known if name in wanted.packages}
    if not named:
        nothing = "asks for no torch, torchvision or torchaudio for Linux (x86_64) and the chosen Python"
        raise UserError(f"{where} {nothing}. Name a file that does, or choose another Python, such as --lane 3.12.")
    asked = {"torch": named["torch"]} if "torch" in named else named
    asks = f"{where} asks for {' and '.join(f'{name} {versions}'.rstrip() for name, versions in asked.items())}"
    fits = [{known[name][each] for each in of.filter(known[name])} - {"", ANY} for name, of in asked.items()]
    is_known = any(of for of, versions in zip(fits, asked.values(), strict=True) if versions or not any(asked.values()))
    found = [each for each in axis.releases if is_known and all(each.version in of for of in fits if of)]
    if found:
        return found, asks
    pins = sum(each.operator == "==" for each in asked.get("torch", ()))
    why = " at once, perhaps for different extras" if pins > 1 else ", which no release here is"
    others = ", which go with different torch" if all(fits) else ", and which torch goes with that is not known here"
    why = why if "torch" in asked else others
    ends = f"{axis.releases[0].version} to {axis.newest.version}"
    raise UserError(f"{asks}{why}. Name a file that asks for one torch from {ends}.")


def between(wanted: Wanted, axis: Axis, last: Release, where: str) -> tuple[Release, str]:
    """The oldest release that a file allows, and a sentence on that. Raises UserError where it is no older one."""
    found, asks = allowed(wanted, axis, where)
    old = found[0]
    if axis.position(old.tag) >= axis.position(last.tag):
        raise UserError(f"{where} asks for torch {old.version} or newer, and {last.version} is no move from there.")
    span = " to ".join(dict.fromkeys((old.version, found[-1].version)))
    if "torch" not in wanted.packages:
        asks += f", built for torch {span}"
    elif len(found) > 1:
        asks += f", so {span} may be installed"
    return old, f"{asks}. This is told from {old.version}." if len(found) > 1 else f"{asks}."


def rows(old: Release, new: Release, wheels: Mapping[str, Wheel], wanted: Wanted, capability: str) -> list[Row]:
    """What the move brings, in the order in which a person asks."""
    found = [_python(old, new, wanted)]
    before, after = wheels.get(old.tag), wheels.get(new.tag)
    if before and after:
        found += [_gpu(before, after, new, capability), *_wheel(before, after)]
    found += _companions(new, wanted)
    return [row for row in found if row.words]


def points(old: Release, new: Release, axis: Axis) -> list[dict[str, str]]:
    """What changed on the way that no number tells: `release`, `words` and `source`."""
    known = tomllib.loads((CONTRACT / "turning_points.toml").read_text(encoding="utf-8"))["point"]
    on_the_way = range(axis.position(old.tag) + 1, axis.position(new.tag) + 1)
    told = [point for point in known if axis.position(f"v{point['release']}") in on_the_way]
    return [{key: point[key] for key in ("release", "words", "source")} for point in told]


def _python(old: Release, new: Release, wanted: Wanted) -> Row:
    gone = [each for each in old.pythons if each not in new.pythons]
    words = f"{new.version} has wheels for Python {new.pythons[0]} to {new.pythons[-1]}."
    if not any(wanted.python.contains(f"{each}.{patch}") for each in new.pythons for patch in range(MOST_PATCHES)):
        return Row("Python", f"{words} The file asks for Python {wanted.python}, which has no wheel.", stops=True)
    return Row("Python", f"{words} No longer for {', '.join(gone)}." if gone else words)


def capability_of(gpu: str) -> str:
    """`7.5` of `RTX 2080`, `sm_75` or `7.5`. Raises UserError for a GPU that nobody knows here."""
    asked = gpu.strip().lower().removeprefix("nvidia ").replace("geforce ", "").removeprefix("tesla ")
    if match := re.fullmatch(r"(?:sm_)?(\d{1,2})\.?(\d)", asked):
        return f"{match[1]}.{match[2]}"
    for pattern, capability in _gpus()["patterns"]:
        if re.search(rf"\b(?:{pattern})", asked):
            return str(capability)
    raise UserError(f"'{gpu}' is no GPU known here. Write its compute capability, such as --gpu 7.5.")


def _gpus() -> dict[str, Any]:
    return tomllib.loads((CONTRACT / "gpus.toml").read_text(encoding="utf-8"))


def _gpu(before: Wheel, after: Wheel, new: Release, capability: str) -> Row:
    gone = [each for each in before.architectures if each not in after.architectures]
    words = f"The wheel has code for {', '.join(after.architectures)}."
    words += f" No longer for {', '.join(gone)}." if gone else ""
    if not capability:
        return Row("GPU", words)
    has_code = runs(f"sm_{capability.replace('.', '')}", after.architectures)
    answer = "has" if has_code else "has NO"
    return Row("GPU", f"{new.version} {answer} code for your GPU ({capability}). {words}", stops=not has_code)


def _wheel(before: Wheel, after: Wheel) -> list[Row]:
    """CUDA with its driver, glibc, sizes and the packages that come with it, where they differ."""
    found = []
    if before.cuda != after.cuda:
        driver = _gpus()["drivers"].get(after.cuda.partition(".")[0], "")
        found.append(Row("CUDA", f"{before.cuda} -> {after.cuda}, which needs NVIDIA's driver {driver} or newer."))
    if before.glibc != after.glibc:
        was = before.glibc or "an unknown version"
        found.append(Row("glibc", f"{after.glibc} or newer is needed; {was} was enough."))
    sizes = [f"{size(getattr(before, of))} -> {size(getattr(after, of))} {of}" for of in ("download", "installed")]
    found.append(Row("Size", f"{', '.join(sizes)}, with all packages."))
    moved = {name: (before.versions.get(name), after.versions.get(name)) for name in SHOWN}
    said = [
        f"{name.removeprefix('nvidia-')} {old or 'none'} -> {new or 'none'}"
        for name, (old, new) in moved.items()
        if old != new
    ]
    return [*found, Row("Libraries", f"{', '.join(said)}." if said else "")]


def companions() -> dict[str, dict[str, str]]:
    return json.loads((CONTRACT / COMPANIONS).read_text(encoding="utf-8"))


def _companions(new: Release, wanted: Wanted) -> list[Row]:
    """Which versions of the packages that a file names beside torch fit the new release."""
    found = []
    for name, built in companions().items():
        if name not in wanted.packages:
            continue
        fits = [version for version, of in built.items() if of in (new.version, ANY)]
        built_for = [version for version, of in built.items() if of == new.version]
        if built_for:
            words = f"{' or '.join(built_for)} is built for torch {new.version}."
        elif fits:
            words = f"None is built for torch {new.version}; {fits[-1]} accepts any torch."
        else:
            words = f"None is built for torch {new.version}, as far as this copy knows."
        kept = any(wanted.packages[name].contains(version) for version in fits)
        told = "" if kept else f" The file asks for {wanted.packages[name]}: change it, too."
        found.append(Row(name, words + told, stops=not fits, changed=not kept))
    numpy = wanted.packages.get("numpy")
    if numpy is not None and not any(pin.startswith("numpy<") for pin in new.pins):
        keeps = f"The file keeps {numpy}, which works with it; NumPy 2 does, too."
        found.append(Row("numpy", "1 and 2 both work with it." if numpy.contains("2.0") else keeps))
    return found
