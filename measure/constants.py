"""Does every process have PyTorch's constants in its memory when it measures, or does that depend on what else was read?

A vector instruction whose mask leaves out every element may name a constant on a page that is not there. It reads nothing,
so the page never comes, and the processor finds that out in microcode, at each such instruction anew. Sleef's exp in the
wheels of 2.0 to 2.9 ends with one: silu of 256 x 1,024 numbers took 0.06 milliseconds where something had read the page and
2.6 where nothing had. A page may be missing from the process, because others came along with a neighbour, and from a virtual
machine, whose host takes back what was idle for a minute; to read it for good brings it in either case.
"""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path

LIBRARY = "libtorch_cpu.so"

_MAPS = Path("/proc/self/maps")


def read(library: str = LIBRARY) -> int:
    """Reads a byte of every page that this process can only read of `library` (no code) and returns how many pages these
    are: 0 where it is not loaded, or the system is not Linux. It takes some milliseconds."""
    pages = 0
    for begin, size in _read_only(library):
        area = memoryview((ctypes.c_char * size).from_address(begin)).cast("B")
        pages += len(area[:: mmap.PAGESIZE].tobytes())
    return pages


def _read_only(library: str) -> list[tuple[int, int]]:
    """Where this process has what it can read of `library` and neither write nor execute: (address, bytes)."""
    found = []
    for line in _MAPS.read_text().splitlines() if _MAPS.exists() else []:
        addresses, permissions, *_, path = line.split(None, 5)
        if permissions == "r--p" and Path(path).name == library:
            begin, end = (int(address, 16) for address in addresses.split("-"))
            found.append((begin, end - begin))
    return found
