"""Which sections and symbols has a library, and what does it ask of others? One that none has ends `import torch`."""

import mmap
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ...system.errors import UserError

Bytes = bytes | bytearray | memoryview

ELF = b"\x7fELF"

ENTRY = struct.Struct("<IBBHQQ")
"""Of .dynsym: place of the name, type and binding, visibility, section (0: in another library), value, size."""

NEED = struct.Struct("<HHIII")
"""Of .gnu.version_r, for a library: version, how many, its name, bytes to the first AUX, and to the next NEED."""

AUX = struct.Struct("<IHHII")
"""Of .gnu.version_r, for a version: hash, flags, number, place of its name, and bytes to the next."""


class Section(NamedTuple):
    """A section of an ELF file: `offset` and `size` in bytes of it, `address` where it is loaded, 0 where it is not."""

    name: str
    offset: int
    size: int
    address: int


class Symbol(NamedTuple):
    """A name that a library asks of others: with the version that it wants, empty where any will do."""

    name: str
    version: str
    is_data: bool


class Symbols(NamedTuple):
    asked: frozenset[Symbol]
    defined: frozenset[str]


def sections(data: Bytes) -> list[Section]:
    """The sections of a 64-bit little-endian ELF file that have bytes in it. Raises UserError."""
    if bytes(data[:4]) != ELF or len(data) < 64 or data[4] != 2 or data[5] != 1:
        raise UserError("this is no 64-bit ELF file")
    (table,) = struct.unpack_from("<Q", data, 0x28)
    entry, count, names_at = struct.unpack_from("<HHH", data, 0x3A)
    if entry < 64 or names_at >= count or table + entry * count > len(data):
        raise UserError("the table of sections is not in the file, which may be cut short")
    rows = [struct.unpack_from("<IIQQQQ", data, table + i * entry) for i in range(count)]
    kept = [row for row in rows if row[1] not in (0, 8)]  # SHT_NOBITS: it has no bytes in the file
    if any(offset + size > len(data) for _, _, _, _, offset, size in kept):
        raise UserError("a section is not in the file, which may be cut short")
    names = rows[names_at]
    texts = bytes(data[names[4] : names[4] + names[5]])
    return [Section(_text(texts, name), offset, size, address) for name, _, _, address, offset, size in kept]


def _text(texts: bytes, at: int) -> str:
    return texts[at : texts.find(b"\0", at)].decode("utf-8", "replace")


def symbols(path: Path) -> Symbols:
    """What a library asks of others and defines; nothing where it is no ELF. Raises UserError where it is damaged."""
    with path.open("rb") as stream:
        if stream.read(4) != ELF:
            return Symbols(frozenset(), frozenset())
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
            try:
                return _symbols(view)
            except struct.error as error:
                raise UserError(f"the symbols of {path.name} cannot be read: {error}") from error


def _symbols(data: Bytes) -> Symbols:
    parts = {s.name: bytes(data[s.offset : s.offset + s.size]) for s in sections(data) if s.name in _TABLES}
    rows, texts = parts.get(".dynsym", b""), parts.get(".dynstr", b"")
    numbers = parts.get(".gnu.version", b"")
    versions = _versions(parts.get(".gnu.version_r", b""), texts)
    asked, defined = set(), set()
    for index in range(1, len(rows) // ENTRY.size):
        name, kind, _, section, _, _ = ENTRY.unpack_from(rows, index * ENTRY.size)
        text = _text(texts, name)
        if section:
            defined.add(text)
        else:
            (number,) = struct.unpack_from("<H", numbers, 2 * index) if numbers else (0,)
            asked.add(Symbol(text, versions.get(number & 0x7FFF, ""), kind & 0xF == 1))  # less "hidden"; STT_OBJECT
    return Symbols(frozenset(asked), frozenset(defined))


_TABLES = (".dynsym", ".dynstr", ".gnu.version", ".gnu.version_r")


def _versions(table: bytes, texts: bytes) -> dict[int, str]:
    """Number of a version -> its name."""
    found = {}
    at, following = 0, 1
    while following and table:
        _, count, _, first, following = NEED.unpack_from(table, at)
        inner = at + first
        for _ in range(count):
            _, _, number, name, next_one = AUX.unpack_from(table, inner)
            found[number] = _text(texts, name)
            inner += next_one
        at += following
    return found


def libraries(folder: Path) -> list[Path]:
    """The shared libraries below a folder, each once, in the order of their names."""
    found = {path.resolve(): path for path in sorted(folder.rglob("*.so*")) if path.is_file()}
    return list(found.values())


def asked_of_others(paths: Iterable[Path]) -> frozenset[Symbol]:
    """What libraries that are loaded together ask of any but each other."""
    each = [symbols(path) for path in paths]
    defined = frozenset().union(*(of.defined for of in each))
    return frozenset(symbol for of in each for symbol in of.asked if symbol.name not in defined)
