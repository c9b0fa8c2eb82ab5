"""What of a torch wheel does a measurement on one GPU need? Its device code for that architecture, and all else but what
nobody loads.

A library keeps its size, and no address in it changes: what goes becomes zeros, which take no room once packed. A unit
with images for the wanted architecture has these as they were, at the front of its container, as a wheel for that
architecture alone would have it. One without has the smallest image for another architecture that the library has: a
kernel of it fails by name (cudaErrorNoKernelImageForDevice), never silently.
"""

import re
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from torch_history.measuring.kit import elf
from torch_history.system.errors import UserError

from . import fatbin
from .fatbin import Container

DROPPED = ("torch/bin/protoc", "torch/bin/test_", "torch/lib/libshm", "torch/share/", "torch/test/", "caffe2/")
"""What the files begin with that nothing loads: programs, tests and build files of PyTorch itself."""

LOADED = ("torch/lib/libshm.so",)
"""Files that begin as DROPPED does and are loaded."""

NOT_LOADED = (".a", ".cuh", ".pyi")
LIST_OF_FILES = "RECORD"
"""The file in a package's metadata that lists what a wheel installs: what is left out of it would be missing."""

LIBRARY = re.compile(r"\.so(\.|$)")
HEADERS = "torch/include/"
NEVER_LOADED_SECTIONS = (".symtab", ".strtab", ".comment")


class Code(NamedTuple):
    """The device code of libraries for one architecture: compilation units with code for it, and the bytes of that code."""

    units: int
    bytes: int


def reduce_library(data: bytearray, architecture: int) -> Code:
    """Empties in `data`, a library's bytes, what a GPU of `architecture` (90 for sm_90) does not need. Raises
    FormatError."""
    found = list(fatbin.device_code(data))
    others = [i for container in found for i in container.images if i.architecture != architecture]
    smallest = min(others, key=lambda image: image.size, default=None)
    another = bytes(data[smallest.at : smallest.end]) if smallest else b""
    units = size = 0
    for container in found:
        ours = [i for i in container.images if i.architecture == architecture and i.kind == fatbin.CUBIN]
        units += bool(ours)
        size += sum(image.size for image in ours)
        _fill(data, container, b"".join(bytes(data[i.at : i.end]) for i in ours) or another)
    for section in elf.sections(data):
        if section.name in NEVER_LOADED_SECTIONS and not section.address:
            data[section.offset : section.offset + section.size] = bytes(section.size)
    return Code(units, size)


def _fill(data: bytearray, container: Container, images: bytes) -> None:
    """Gives a container these images alone, none where they have no room, and zeros behind them up to where it ended."""
    room = container.end - container.begin
    images = images if len(images) <= room else b""
    data[container.begin : container.end] = images + bytes(room - len(images))
    struct.pack_into("<Q", data, container.at + fatbin.SIZE_AT, len(images))


def reduce_wheel(source: Path, target: Path, architecture: int, tell: Callable[[str], None]) -> Code:
    """Copies an unpacked wheel of torch into `target` without what is not needed, and returns what it has for that
    architecture. `tell` is given the name of each library. Raises UserError where that is nothing."""
    units = size = 0
    for path in _needed(source):
        to = target / path.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        if LIBRARY.search(path.name):
            tell(path.name)
            data = bytearray(path.read_bytes())
            code = reduce_library(data, architecture)
            to.write_bytes(data)
            units, size = units + code.units, size + code.bytes
            shutil.copymode(path, to)
        else:
            shutil.copy2(path, to)
    if not units:
        raise UserError(f"This release carries no code for sm_{architecture}, so it cannot be measured on such a GPU.")
    return Code(units, size)


def _needed(source: Path) -> Iterator[Path]:
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix()
        dropped = name.startswith(DROPPED) and not name.startswith(LOADED)
        dropped |= path.suffix in NOT_LOADED or path.name == LIST_OF_FILES
        if path.is_file() and (name.startswith(HEADERS) or not dropped):
            yield path
