"""How far is an installation? By what lies on the disk: uv says nothing where a program reads its output."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .environments import cache, installed, size_of
from .wheels import Wheel

EVERY = 2.0
"""Seconds between two looks."""

UNPACKING, UNPACKED = ".tmp*", "archive-v0/*"
"""Where uv keeps a wheel that it is unpacking, and where it moves that when it is whole."""

GIGABYTE = 1e9


def missing(root: Path, wheel: Wheel) -> int:
    """Bytes that an installation of `wheel`, with all its packages, adds to the disk: what no environment in `root` has."""
    there = installed(root)
    return sum(one.installed for one in wheel.packages if f"{one.name}=={one.version}" not in there)


@contextlib.contextmanager
def watched(root: Path, wheel: Wheel | None, tell: Callable[[str], None]) -> Iterator[None]:
    """Calls `tell` from another thread, every few seconds while the block installs something into `root`, with how much has
    come; `wheel` is what is installed, None where that is not known."""
    place = cache(root)
    before, total, began = _entries(place), missing(root, wheel) if wheel else 0, time.monotonic()
    done = threading.Event()

    def look() -> None:
        while not done.wait(EVERY):
            size = sum(map(size_of, _entries(place) - before))
            if size:
                tell(words(size, total, time.monotonic() - began))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _entries(place: Path) -> set[Path]:
    return {path for pattern in (UNPACKING, UNPACKED) for path in place.glob(pattern)}


def words(size: int, total: int, seconds: float) -> str:
    """`1.9 of 4.4 GB, about 40 s left`: of so many bytes after so many seconds; without a `total` only what there is."""
    if size > total:
        return f"{size / GIGABYTE:.1f} GB"
    left = (total - size) * seconds / size
    time_left = f"{left / 60:.0f} min" if left >= 90 else f"{left:.0f} s"
    return f"{size / GIGABYTE:.1f} of {total / GIGABYTE:.1f} GB, about {time_left} left"
