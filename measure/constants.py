"""Does every process have PyTorch's constants in its memory when it measures, or does that depend on what else was read?

A vector instruction whose mask leaves out every element may name a constant on a page that is not there. It reads nothing,
so the page never comes, and the processor finds that out in microcode, at each such instruction anew. Sleef's exp in the
wheels of 2.0 to 2.9 ends with one: silu of 256 x 1,024 numbers took 0.06 milliseconds where something had read the page and
2.6 where nothing had. A page may be missing from the process, for what the system kept of the file decides which pages come
along with their neighbours: `keep`. And from a virtual machine, whose host took it back, as far as a guest sees: `read`.
"""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path

LIBRARY = "libtorch_cpu.so"

HUGE = 2 * 2**20
"""Bytes of a huge page. In such pages a copy of 60 MB adds nothing to what a fork takes; in small ones it adds a third."""

_MOVED_THERE = 1 | 2  # MREMAP_MAYMOVE | MREMAP_FIXED of mremap(2)
_IN_HUGE_PAGES = 14  # MADV_HUGEPAGE of madvise(2)
_FAILED = ctypes.c_void_p(-1).value


def keep(library: str = LIBRARY) -> list[tuple[int, int]]:
    """Puts a copy of what this process only reads of `library` (no code) in its place and returns where: (address, bytes).
    There is nothing where it is not loaded. A copy is memory of the process itself, which is
    mapped whole, stays, and is so in every process that is forked from this one."""
    return [
        (begin, end - begin)
        for begin, end, permissions, _, path in mapped()
        if permissions == "r--p" and Path(path).name == library and _keep(begin, end - begin)
    ]


def read(places: list[tuple[int, int]]) -> int:
    """Reads a byte of every page of `places`, as `keep` returns them, in some milliseconds. Returns how many pages."""
    pages = 0
    for begin, size in places:
        area = memoryview((ctypes.c_char * size).from_address(begin)).cast("B")
        pages += len(area[:: mmap.PAGESIZE].tobytes())
    return pages


def _keep(begin: int, size: int) -> bool:
    libc = _libc()
    room = size + HUGE
    area = libc.mmap(None, room, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if area == _FAILED:
        return False
    libc.madvise(area, room, _IN_HUGE_PAGES)
    copy = area + (begin - area) % HUGE  # huge pages are moved whole between addresses that lie alike in theirs
    ctypes.memmove(copy, begin, size)
    libc.mprotect(copy, size, mmap.PROT_READ)
    moved = libc.mremap(copy, size, size, _MOVED_THERE, begin)
    libc.munmap(area, copy - area)
    libc.munmap(copy + size, area + room - copy - size)
    return bool(moved == begin)


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    address, bytes_, flags = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    libc.mmap.restype = libc.mremap.restype = address
    libc.mmap.argtypes = [address, bytes_, flags, flags, ctypes.c_int, ctypes.c_long]
    libc.mremap.argtypes = [address, bytes_, bytes_, flags, address]
    libc.mprotect.argtypes = libc.madvise.argtypes = [address, bytes_, flags]
    libc.munmap.argtypes = [address, bytes_]
    return libc


def mapped() -> list[tuple]:
    """Begin, end, permissions, offset and path of each range of this process's memory; no path where no file is there."""
    found = []
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        addresses, permissions, offset, _, _, *path = line.split(None, 5)
        begin, end = (int(address, 16) for address in addresses.split("-"))
        found.append((begin, end, permissions, int(offset, 16), "".join(path)))
    return found
