"""What of a torch wheel does a measurement on one GPU need? Its device code for that architecture, where a measured
case may launch it, and all else but what nobody loads.

A library keeps its size, and no address in it changes: what goes becomes zeros, which take no room once packed. A unit
that is kept has the images for the wanted architecture as they were, at the front of its container, as a wheel for
that architecture alone would have it. One that is emptied has the smallest image for another architecture that the
library has: a kernel of it fails by name (cudaErrorNoKernelImageForDevice), never silently.
"""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from recorder.record import demangled
from torch_history.kit import elf
from torch_history.system.errors import UserError

from . import fatbin
from .fatbin import Container

OPERATORS = re.compile(
    r"CatArrayBatchedCopy|MulFunctor|(maximum|minimum)_kernel_cuda|direct_copy_kernel|sum_functor|clamp_|silu|FillFunctor"
    r"|CUDAFunctor(OnSelf)?_add|index_elementwise_kernel|indexSelect|gather|[nN]on_?[zZ]ero|masked_|take_|where_kernel"
    r"|Compare(Eq)?Functor|compare_|arange|RangeF|DeviceSelect|DeviceCompact|DeviceScan|DeviceReduce"
    r"|(or|and)_kernel_cuda|bitwise|logical|AbsFunctor"
)
"""Kernels of the operators that the suite's variants, and the checks of their results, call on a GPU. The recorder saw
the names of some of them only: of what is selected by values it knows waits alone. Of a unit that holds one of them
all is kept."""

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


@dataclass(frozen=True)
class Code:
    """The device code of a library for one architecture: compilation units with code for it, of those how many were
    kept, and the bytes of code of either."""

    library: str
    units: int
    kept: int
    bytes: int
    bytes_kept: int


Wanted = Callable[[frozenset[str]], bool]
"""Whether a unit with kernels of these mangled names is kept."""


def launching(recorded: Collection[str]) -> Wanted:
    """Whether a unit holds a kernel of these names, as the recorder has them, or one of OPERATORS."""
    plain = {_plain(name) for name in recorded}

    def wanted(kernels: frozenset[str]) -> bool:
        names = [demangled(name) for name in kernels]
        return any(_plain(name) in plain or OPERATORS.search(name) for name in names)

    return wanted


def _plain(name: str) -> str:
    return name.removeprefix("void ").strip()


def reduce_library(data: bytearray, architecture: int, wanted: Wanted, name: str = "") -> Code:
    """Empties in `data`, a library's bytes, what a GPU of `architecture` (90 for sm_90) does not need. Raises
    FormatError."""
    found = list(fatbin.device_code(data))
    others = [i for container in found for i in container.images if i.architecture != architecture]
    smallest = min(others, key=lambda image: image.size, default=None)
    another = bytes(data[smallest.at : smallest.end]) if smallest else b""
    units = kept = size = size_kept = 0
    for container in found:
        ours = [i for i in container.images if i.architecture == architecture and i.kind == fatbin.CUBIN]
        keeps = bool(ours) and wanted(frozenset().union(*(fatbin.kernels(data, image) for image in ours)))
        units += bool(ours)
        kept += keeps
        size += sum(image.size for image in ours)
        size_kept += sum(image.size for image in ours) if keeps else 0
        _fill(data, container, b"".join(bytes(data[i.at : i.end]) for i in ours) if keeps else another)
    for section in elf.sections(data):
        if section.name in NEVER_LOADED_SECTIONS and not section.address:
            data[section.offset : section.offset + section.size] = bytes(section.size)
    return Code(name, units, kept, size, size_kept)


def _fill(data: bytearray, container: Container, images: bytes) -> None:
    """Gives a container these images alone, none where they have no room, and zeros behind them up to where it ended."""
    room = container.end - container.begin
    images = images if len(images) <= room else b""
    data[container.begin : container.end] = images + bytes(room - len(images))
    struct.pack_into("<Q", data, container.at + fatbin.SIZE_AT, len(images))


def reduce_wheel(
    source: Path, target: Path, architecture: int, wanted: Wanted, tell: Callable[[str], None]
) -> list[Code]:
    """Copies an unpacked wheel of torch into `target` without what is not needed, and returns what each library with
    device code kept of it. `tell` is given the name of each library. Raises UserError where none has code for
    `architecture`."""
    found = []
    for path in _needed(source):
        to = target / path.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        if LIBRARY.search(path.name):
            tell(path.name)
            data = bytearray(path.read_bytes())
            code = reduce_library(data, architecture, wanted, path.name)
            to.write_bytes(data)
            found += [code] if code.units else []
            shutil.copymode(path, to)
        else:
            shutil.copy2(path, to)
    if not any(code.kept for code in found):
        raise UserError(f"This release carries no code for sm_{architecture}, so it cannot be measured on such a GPU.")
    return found


def _needed(source: Path) -> Iterator[Path]:
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix()
        dropped = name.startswith(DROPPED) and not name.startswith(LOADED)
        dropped |= path.suffix in NOT_LOADED or path.name == LIST_OF_FILES
        if path.is_file() and (name.startswith(HEADERS) or not dropped):
            yield path
