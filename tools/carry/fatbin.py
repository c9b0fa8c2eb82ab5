"""What device code does a library carry, and for which GPU? The section .nv_fatbin of an ELF file, read as nvcc writes
it.

It is a row of containers, one per source file. A container is a row of images: one per architecture, each a small ELF
file of its own (a cubin), most of them compressed. NVIDIA documents no part of this, so all that is read is checked,
and what does not fit is refused in words.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from torch_history.measuring.kit.elf import Bytes, FormatError, Section, sections

DEVICE_CODE = (".nv_fatbin", "__nv_relfatbin")
"""The sections that hold containers: of code that is linked as it is, and of code that is linked on the device."""

MAGIC = 0xBA55ED50
CONTAINER = struct.Struct("<IHHQ")
"""Magic, version, bytes of this header, bytes of the images that follow it."""

IMAGE = struct.Struct("<HHIQIIHHIIIQQQ")
"""Kind, version, bytes of this header, bytes that follow it, of those compressed, options, minor and major version,
architecture, place and length of a name, flags, zero, bytes once decompressed."""

SIZE_AT = 8
"""Where in the header of a container the bytes of its images stand, 8 of them."""

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
    def begin(self) -> int:
        """Where the code begins."""
        return self.at + self.header_size

    @property
    def end(self) -> int:
        return self.begin + self.size


class Container(NamedTuple):
    """The images of one source file: they lie between `begin` and `end`, after a header at `at`."""

    at: int
    begin: int
    end: int
    images: tuple[Image, ...]


def containers(data: Bytes, section: Section) -> Iterator[Container]:
    """The containers of a section of device code, in the order of the file. Raises FormatError where anything but
    padding stands between them, or one of them is not in the section."""
    at, end = section.offset, section.offset + section.size
    while at + CONTAINER.size <= end:
        magic, _, header, size = CONTAINER.unpack_from(data, at)
        if magic == 0:  # padding up to the next container
            at = _after_zeros(data, at, end)
            continue
        last = at + header + size
        if magic != MAGIC or header < CONTAINER.size or last > end:
            raise FormatError(f"there is no container of device code at byte {at:,} of {section.name}'s file")
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
            raise FormatError(f"an image of device code at byte {at:,} is not in its container")
        yield image
        at = image.end


def device_code(data: Bytes) -> Iterator[Container]:
    """All containers of a library, none where it has no device code. Raises FormatError."""
    for section in sections(data):
        if section.name in DEVICE_CODE:
            yield from containers(data, section)
