"""Which functions does a library hold, where, and from which source file? Read from its file, which is not run."""

import functools
import mmap
import struct
import subprocess
from pathlib import Path

import numpy as np

from ..system.errors import UserError

_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_RELOCATION = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])

FUNCTION, FILE, INDIRECT = 2, 4, 10  # types of symbols: STT_FUNC, STT_FILE and STT_GNU_IFUNC of the ELF specification.
LARGEST_FUNCTION = 2**22  # bytes before an address in which the function that holds it is looked for


class NotALibrary(UserError):
    """The file is no 64-bit library with symbols; the text says which."""


class Library:
    """A 64-bit ELF library in little-endian order. Functions are numbered in the order of their addresses."""

    def __init__(self, path: Path) -> None:
        """Raises NotALibrary, and OSError where the file cannot be read."""
        with path.open("rb") as stream:
            self._data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            self._read()
        except (struct.error, KeyError, ValueError, IndexError, OverflowError, StopIteration) as error:
            raise NotALibrary(f"{path.name} is no library whose symbols can be read ({error})") from error

    def _read(self) -> None:
        if self._data[:4] != b"\x7fELF":
            raise ValueError("it does not begin as one")
        program, sections = struct.unpack_from("<QQ", self._data, 32)
        programs, _, count, names = struct.unpack_from("<HHHH", self._data, 56)
        self._rows = [struct.unpack_from("<IIQQQQIIQQ", self._data, sections + 64 * i) for i in range(count)]
        self.sections = {self._text(self._rows[names][4] + row[0]): row[2:7] for row in self._rows}
        heads = [struct.unpack_from("<IIQQQQQQ", self._data, program + 56 * i) for i in range(programs)]
        self._loads = [(head[3], head[3] + head[5], head[2]) for head in heads if head[0] == 1]
        self._symbols, self._names = self._table(".symtab" if ".symtab" in self.sections else ".dynsym")
        kind = self._symbols["info"] & 15
        numbers = np.flatnonzero(np.isin(kind, (FUNCTION, INDIRECT)) & (self._symbols["section"] != 0))
        numbers = numbers[self._symbols["size"][numbers] > 0]
        self._order = numbers[np.argsort(self._symbols["value"][numbers], kind="stable")]
        self._begins = self._symbols["value"][self._order].astype(np.int64)
        self._files = np.flatnonzero(kind == FILE)

    def _table(self, name: str) -> tuple[np.ndarray, int]:
        """The entries of a table of symbols, and where its names begin."""
        _, _, offset, size, link = self.sections[name]
        return np.frombuffer(self._data, _SYMBOL, size // _SYMBOL.itemsize, offset), self._rows[link][4]

    def _text(self, at: int) -> str:
        return self._data[at : self._data.find(b"\0", at)].decode("latin1")

    def __len__(self) -> int:
        return len(self._order)

    def content(self, section: str) -> memoryview:
        """The bytes of a section. Raises KeyError."""
        _, _, offset, size, _ = self.sections[section]
        return memoryview(self._data)[offset : offset + size]

    def address(self, offset: int) -> int | None:
        """Where what lies at this offset of the file is loaded."""
        return next((at + offset - where for at, end, where in self._loads if where <= offset < where + end - at), None)

    def read(self, address: int, size: int) -> bytes:
        """What is loaded at an address; nothing where the file has nothing for it."""
        where = next((where + address - at for at, end, where in self._loads if at <= address < end), None)
        return b"" if where is None else self._data[where : where + size]

    def begin(self, number: int) -> int:
        return int(self._begins[number])

    def size(self, number: int) -> int:
        return int(self._symbols["size"][self._order[number]])

    def name(self, number: int) -> str:
        return self._text(self._names + int(self._symbols["name"][self._order[number]]))

    def source(self, number: int) -> str:
        """The source file of a function that only its file sees; empty of one that all see, whose file no table tells."""
        place = int(self._order[number])
        if self._symbols["info"][place] >> 4:
            return ""
        before = int(np.searchsorted(self._files, place)) - 1
        return self._text(self._names + int(self._symbols["name"][self._files[before]])) if before >= 0 else ""

    def holding(self, address: int) -> int | None:
        """The function whose code holds an address; of several at one place the first."""
        number = int(np.searchsorted(self._begins, address, "right")) - 1
        while number >= 0 and address - self._begins[number] < LARGEST_FUNCTION:
            if address < self._begins[number] + self.size(number):
                return int(np.searchsorted(self._begins, self._begins[number], "left"))
            number -= 1
        return None

    def section_at(self, address: int) -> str:
        """The name of the section that is loaded at an address; empty where none is."""
        loaded = (
            of for of, (flags, at, _, size, _) in self.sections.items() if flags & 2 and at <= address < at + size
        )
        return next(loaded, "")

    def imported(self, slot: int) -> str:
        """What the loader writes into a slot of the table of addresses: a function's name; empty where it is no slot."""
        if slot not in self._slots:
            return ""
        symbol, addend = self._slots[slot]
        if symbol:
            entries, names = self._table(".dynsym")
            return self._text(names + int(entries["name"][symbol]))
        return self.called(addend)

    @functools.cached_property
    def _slots(self) -> dict[int, tuple[int, int]]:
        found = {}
        for name in (".rela.plt", ".rela.dyn"):
            if name in self.sections:
                _, _, offset, size, _ = self.sections[name]
                rows = np.frombuffer(self._data, _RELOCATION, size // _RELOCATION.itemsize, offset)
                for at, info, addend in rows[np.isin(rows["info"] & 0xFFFFFFFF, (1, 6, 7, 8, 37))].tolist():
                    found[at] = info >> 32, addend
        return found

    def called(self, address: int) -> str:
        """What code at an address is called: a function, the import that a stub jumps to, or the section."""
        number = self.holding(address)
        if number is not None:
            return self.name(number)
        stub = self.read(address, 16)
        jump = stub.find(b"\xff\x25")  # jmp *slot(%rip)
        if self.section_at(address).startswith(".plt") and 0 <= jump <= 10:
            (away,) = struct.unpack_from("<i", stub, jump + 2)
            return self.imported(address + jump + 6 + away)
        return self.section_at(address)

    @functools.cached_property
    def plain_names(self) -> list[str]:
        """The names as C++ writes them, in both ABIs alike. Raises OSError and CalledProcessError without c++filt."""
        names = "\n".join(self.name(number) for number in range(len(self)))
        said = subprocess.run(["c++filt", "-i"], input=names, capture_output=True, text=True, check=True).stdout
        return [name.replace("std::__cxx11::", "std::") for name in said.split("\n")[: len(self)]]
