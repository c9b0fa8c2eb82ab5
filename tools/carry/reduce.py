"""What of a torch wheel does a measurement on one GPU need? Its device code for that architecture, and all else but what
nobody loads.

A library keeps its size, and no address in it changes: what goes becomes zeros, which take no room once packed. A unit
with images for the wanted architecture has these as they were, at the front of its container, as a wheel for that
architecture alone would have it. One without has the smallest image for another architecture that the library has: a
kernel of it fails by name (cudaErrorNoKernelImageForDevice), never silently.

The section .nv_fatbin of a library is a row of containers, one per source file. A container is a row of images: one per
architecture, each a small ELF file of its own (a cubin), most of them compressed. NVIDIA documents no part of this, so all
that is read is checked, and what does not fit is refused in words.
"""

import re
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from torch_history.measuring.kit.elf import Bytes, Section, sections
from torch_history.system.errors import UserError

DROPPED = ("torch/bin/protoc", "torch/bin/test_", "torch/lib/libshm", "torch/share/", "torch/test/", "caffe2/")
"""What the files begin with that nothing loads: programs, tests and build files of PyTorch itself."""

LOADED = ("torch/lib/libshm.so",)
"""Files that begin as DROPPED does and are loaded."""

LIBRARY = re.compile(r"\.so(\.|$)")
HEADERS = "torch/include/"
NEVER_LOADED_SECTIONS = (".symtab", ".strtab", ".comment")

DEVICE_CODE = (".nv_fatbin", "__nv_relfatbin")
"""The sections that hold containers: of code that is linked as it is, and of code that is linked on the device."""

MAGIC = 0xBA55ED50
CONTAINER = struct.Struct("<IHHQ")
"""Magic, version, bytes of this header, bytes of the images that follow it."""

IMAGE = struct.Struct("<HHIQIIHHIIIQQQ")
"""Kind, version, bytes of this header, bytes that follow it, of those compressed, options, minor and major version,
architecture, place and length of a name, flags, zero, bytes once decompressed."""

CUBIN = 2
"""The kind of an image that is machine code for one architecture; another is text that a driver compiles for its own."""

ALIGNMENT = 8
ZEROS = 2**12


class Image(NamedTuple):
    """Code for one architecture: its header lies at `at`, `size` bytes of code follow it."""

    at: int
    header_size: int
    size: int
    kind: int
    architecture: int

    @property
    def end(self) -> int:
        return self.at + self.header_size + self.size


class Container(NamedTuple):
    """The images of one source file: they lie between `begin` and `end`, after a header at `at`."""

    at: int
    begin: int
    end: int
    images: tuple[Image, ...]


def containers(data: Bytes, section: Section) -> Iterator[Container]:
    """The containers of a section of device code, in the order of the file. Raises UserError where anything but
    padding stands between them, or one of them is not in the section."""
    at, end = section.offset, section.offset + section.size
    while at + CONTAINER.size <= end:
        magic, _, header, size = CONTAINER.unpack_from(data, at)
        if magic == 0:  # padding up to the next container
            at = _after_zeros(data, at, end)
            continue
        last = at + header + size
        if magic != MAGIC or header < CONTAINER.size or last > end:
            raise UserError(f"there is no container of device code at byte {at:,} of {section.name}'s file")
        yield Container(at, at + header, last, tuple(_images(data, at + header, last)))
        at = last + -last % ALIGNMENT


def _after_zeros(data: Bytes, at: int, end: int) -> int:
    """The first place after zeros, a whole number of ALIGNMENT bytes on."""
    while at + ZEROS <= end and not any(data[at : at + ZEROS]):
        at += ZEROS
    while at < end and not any(data[at : at + ALIGNMENT]):
        at += ALIGNMENT
    return at


def _images(data: Bytes, at: int, end: int) -> Iterator[Image]:
    while at + IMAGE.size <= end:
        kind, _, header, size, *_, architecture, _, _, _, _, _ = IMAGE.unpack_from(data, at)
        image = Image(at, header, size, kind, architecture)
        if header < IMAGE.size or image.end > end:
            raise UserError(f"an image of device code at byte {at:,} is not in its container")
        yield image
        at = image.end


def device_code(data: Bytes) -> Iterator[Container]:
    """All containers of a library, none where it has no device code. Raises UserError."""
    for section in sections(data):
        if section.name in DEVICE_CODE:
            yield from containers(data, section)


class Code(NamedTuple):
    """The device code of libraries for one architecture: compilation units with code for it, and the bytes of that code."""

    units: int
    bytes: int


def reduce_library(data: bytearray, architecture: int) -> Code:
    """Empties in a library's bytes `data` what a GPU of `architecture` (90 for sm_90) does not need. Raises UserError."""
    found = list(device_code(data))
    others = [i for container in found for i in container.images if i.architecture != architecture]
    smallest = min(others, key=lambda image: image.size, default=None)
    another = bytes(data[smallest.at : smallest.end]) if smallest else b""
    units = size = 0
    for container in found:
        ours = [i for i in container.images if i.architecture == architecture and i.kind == CUBIN]
        units += bool(ours)
        size += sum(image.size for image in ours)
        images = b"".join(bytes(data[i.at : i.end]) for i in ours) or another
        room = container.end - container.begin
        images = images if len(images) <= room else b""
        data[container.begin : container.end] = images + bytes(room - len(images))
        struct.pack_into("<Q", data, container.at + 8, len(images))  # where CONTAINER has their bytes
    for section in sections(data):
        if section.name in NEVER_LOADED_SECTIONS and not section.address:
            data[section.offset : section.offset + section.size] = bytes(section.size)
    return Code(units, size)


def reduce_wheel(source: Path, target: Path, architecture: int, tell: Callable[[str], None]) -> Code:
    """Copies an unpacked wheel of torch into `target` without what is not needed, and returns what it has for that
    architecture. `tell` is given the name of each library. Raises UserError where that is nothing."""
    units = size = 0
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix()
        dropped = name.startswith(DROPPED) and not name.startswith(LOADED)
        dropped |= path.suffix in (".a", ".cuh", ".pyi") or path.name == "RECORD"  # it lists what is left out, too
        if not path.is_file() or (dropped and not name.startswith(HEADERS)):
            continue
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
        raise UserError(
            f"This release carries no code for sm_{architecture}. A GPU runs code for earlier ones of its generation, too: "
            "name the newest of those, as --arch 86 for sm_89."
        )
    return Code(units, size)
