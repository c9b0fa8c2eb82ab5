"""How does a folder of gigabytes become parts that `torch_history.kit.parts` unpacks? Cut into pieces, a library where its
sections end, and each compressed in the way that a trial finds best for it: machine code, tables and text differ.
"""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import math
import stat
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from torch_history.kit import elf
from torch_history.kit.parts import (
    FORM,
    INDEX,
    MIB,
    PIECE,
    TOGETHER,
    WAYS,
    File,
    Index,
    PartsError,
    Piece,
    Way,
    digest,
    each,
    workers,
)
from torch_history.system.files import write_atomically

SMALL = 1 * MIB
"""Files of fewer bytes are compressed together, sorted by their endings, as one file."""

TRIED = 2 * MIB
"""Bytes from the middle of a piece on which the ways to compress it are tried."""

LEAST_LOOK_BACK = 4096
"""Bytes that LZMA looks back at least."""


@dataclass(frozen=True)
class _Job:
    """Bytes of `source` from `at` on that become a piece of `file`; what was compressed is kept in `kept`."""

    file: str
    source: Path
    at: int
    size: int
    kept: Path


def pack(
    folder: Path, target: Path, limits: Iterable[int], kept: Path, cores: int, tell: Callable[[int, int], None]
) -> Index:
    """Packs every file in `folder` into parts in `target`, of at most so many bytes each as `limits` says; the last of
    them holds for all that follow. What was compressed is kept in `kept`, so that an interrupted packing goes on.
    `tell` is given the bytes that are done, and all. Raises PartsError."""
    target.mkdir(parents=True, exist_ok=True)
    kept.mkdir(parents=True, exist_ok=True)
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if _is_plain(path)}
    files = {name: File(path.stat().st_size, _is_executable(path), digest(path)) for name, path in paths.items()}
    small = sorted((name for name in files if files[name].size < SMALL), key=lambda name: (Path(name).suffix, name))
    together = kept / "together"
    together.write_bytes(b"".join(paths[name].read_bytes() for name in small))
    jobs = [*_jobs(TOGETHER, together, kept)]
    for name, path in paths.items():
        if files[name].size >= SMALL:
            jobs += _jobs(name, path, kept)
    with contextlib.closing(_compressed(jobs, cores, tell)) as compressing:
        made = list(compressing)
    index = _write(target, files, small, jobs, made, limits)
    together.unlink()
    return index


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts


def _is_executable(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IXUSR)


def _jobs(file: str, source: Path, kept: Path) -> Iterator[_Job]:
    size = source.stat().st_size
    ends = sorted({*_ends_of_sections(source, size), size})
    begin = 0
    for end in ends:
        count = math.ceil((end - begin) / PIECE)
        for number in range(count):
            first, last = (begin + (end - begin) * at // count for at in (number, number + 1))
            yield _Job(file, source, first, last - first, kept)
        begin = end


def _ends_of_sections(path: Path, size: int) -> Iterator[int]:
    """Where a library is cut, in its bytes: around each section that is large; nowhere in another file."""
    with path.open("rb") as stream:
        if stream.read(4) != elf.ELF:
            return
    for section in elf.sections(path.read_bytes()):
        if section.size >= SMALL:
            yield from (end for end in (section.offset, section.offset + section.size) if 0 < end < size)


def _compressed(
    jobs: list[_Job], cores: int, tell: Callable[[int, int], None]
) -> Generator[tuple[Way, bytes], None, None]:
    done, total = 0, sum(job.size for job in jobs)
    with workers(cores) as pool:
        for job, made in zip(jobs, each(pool, _compress, jobs), strict=True):
            done += job.size
            tell(done, total)
            yield made


def _compress(job: _Job) -> tuple[Way, bytes]:
    """The way in which a piece takes the fewest bytes, and these bytes; as they are kept, where they are."""
    with job.source.open("rb") as stream:
        stream.seek(job.at)
        data = stream.read(job.size)
    name = hashlib.sha256(data).hexdigest()
    for way in WAYS:
        if (found := job.kept / f"{name}.{way}").exists():
            return way, found.read_bytes()
    middle = max(0, len(data) // 2 - TRIED // 2)
    tried = data[middle : middle + TRIED]
    way = min(WAYS, key=lambda name: len(_made(tried, name, preset=1)))
    body = _made(data, way)
    write_atomically(job.kept / f"{name}.{way}", body)
    return way, body


def _made(data: bytes, way: Way, **changed: int) -> bytes:
    """`data` compressed. What looks back no further than `data` is long takes less memory, and is unpacked all the same."""
    last = {**WAYS[way][-1], "dict_size": max(LEAST_LOOK_BACK, len(data)), **changed}
    return lzma.compress(data, lzma.FORMAT_RAW, filters=[*WAYS[way][:-1], last])


def _write(
    target: Path,
    files: dict[str, File],
    small: list[str],
    jobs: list[_Job],
    made: list[tuple[Way, bytes]],
    limits: Iterable[int],
) -> Index:
    """Puts what was compressed into parts, the largest first into the first part that has room for it."""
    bodies: list[list[bytes]] = []
    rooms: list[int] = []
    allowed = list(limits)
    places: dict[int, tuple[int, int]] = {}
    for number in sorted(range(len(made)), key=lambda number: -len(made[number][1])):
        body = made[number][1]
        part = next((at for at, room in enumerate(rooms) if len(body) <= room), len(rooms))
        if part == len(rooms):
            rooms.append(allowed[min(part, len(allowed) - 1)])
            bodies.append([])
        if len(body) > rooms[part]:
            raise PartsError(f"A part of {rooms[part]:,} bytes is too small for a piece of {len(body):,}. Allow more.")
        places[number] = part, sum(map(len, bodies[part]))
        bodies[part].append(body)
        rooms[part] -= len(body)
    names = [f"part{number:02}" for number in range(len(bodies))]
    parts = {}
    for name, blobs in zip(names, bodies, strict=True):
        write_atomically(target / name, b"".join(blobs))
        parts[name] = File((target / name).stat().st_size, False, digest(target / name))
    pieces = [
        Piece(job.file, job.at, job.size, way, names[places[number][0]], places[number][1], len(body))
        for number, (job, (way, body)) in enumerate(zip(jobs, made, strict=True))
    ]
    text = msgspec.json.encode(Index(FORM, files, small, pieces, parts))
    write_atomically(target / INDEX, lzma.compress(text))
    return Index.read(target / INDEX)
