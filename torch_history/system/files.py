"""What can be used of a stored file? All that is whole; what is damaged or foreign is left out in one sentence per file."""

import contextlib
import errno
import fcntl
import functools
import io
import itertools
import json
import logging
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

LARGEST_FILE = 2**28  # bytes of a file that is read; a release's launches so far are 3 MB
DEEPEST = 50  # arrays and objects within each other in JSON that is read; what this program writes has 6

LONGEST_NAME = 150
"""Characters in a name that comes with results: it becomes part of names of files, of which systems allow 255 bytes."""

CHECKSUM = re.compile(rb',"crc32":"([0-9a-f]{8})"}\s*$')
"""The last key of a line, over the bytes of the object without it."""


WRONG_DATA = (ArithmeticError, LookupError, TypeError, ValueError)
"""What numbers and names of strangers may raise that no check at reading foresaw. A full disk or a lost file is none."""


@functools.cache
def warn(sentence: str) -> None:
    """Says `sentence` once in this process, however often the file is read."""
    logging.getLogger(__name__).warning(sentence)


def readable(path: Path, read: Callable[[Path], T]) -> T | None:
    """What `read` makes of a file; None, with a warning, where it raises ValueError."""
    try:
        return read(path)
    except ValueError as error:
        warn(f"{str(path)!r} is skipped: {error}.")
        return None


def parse(text: str | bytes) -> Any:
    """The JSON in `text`. Raises ValueError for none, nested beyond DEEPEST, or half a character."""
    text = text.encode() if isinstance(text, str) else text
    try:
        data = json.loads(text)
        require_shallow(data)
        if b"\\u" in text:
            json.dumps(data, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ValueError("it is no JSON") from error
    return data


def require_shallow(data: Any, left: int = DEEPEST) -> None:
    """Raises ValueError where data nests more than `left` times: nobody shall reach the end of the stack with it."""
    for value in data.values() if type(data) is dict else data if type(data) is list else ():
        if type(value) in (dict, list):
            if left <= 1:
                raise ValueError(f"lists and objects lie within each other more than {DEEPEST} times")
            require_shallow(value, left - 1)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object that a file holds. Raises ValueError, in words that follow the file's name, where there is none."""
    data = parse(read_bytes(path))
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")
    return data


def open_regular(path: Path, follow: bool = False) -> io.BufferedReader:
    """Opens a file. Raises ValueError where it cannot be read, is no regular file, or a link not to `follow`."""
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        descriptor = os.open(path, flags)
    except OSError as error:
        linked = path.is_symlink() and not follow
        raise ValueError("it is a link" if linked else f"it cannot be read ({error.strerror})") from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return open(descriptor, "rb")
    os.close(descriptor)
    raise ValueError(
        f"it cannot be read ({os.strerror(errno.EISDIR)})" if stat.S_ISDIR(mode) else "it is no regular file"
    )


def read_bytes(path: Path) -> bytes:
    """All of a file, decompressed if it ends in .gz. Raises ValueError as `open_regular`, and where it is too large."""
    with open_regular(path) as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH)
            if (size := os.fstat(stream.fileno()).st_size) > LARGEST_FILE:
                raise ValueError(f"it is larger than {LARGEST_FILE // 2**20} MiB")
            data = stream.read(size)
        except OSError as error:
            raise ValueError(f"it cannot be read ({error.strerror})") from error
    return _decompressed(data) if path.suffix == ".gz" else data


def _decompressed(data: bytes) -> bytes:
    """What gzip compressed, at most LARGEST_FILE bytes. Raises ValueError, in words that follow the file's name."""
    stream = zlib.decompressobj(wbits=31)
    try:
        found = stream.decompress(data, LARGEST_FILE + 1)
    except zlib.error as error:
        raise ValueError("gzip cannot decompress it") from error
    if len(found) > LARGEST_FILE:
        raise ValueError(f"it holds more than {LARGEST_FILE // 2**20} MiB")
    if not stream.eof or stream.unused_data:
        raise ValueError("gzip wrote less of it, or more")
    return found


def files_in(folder: Path, pattern: str) -> list[Path]:
    """The files in `folder` whose names match, sorted; none where it is a link, which may lead anywhere."""
    return [] if folder.is_symlink() else sorted(folder.glob(pattern))


def sealed(line: str) -> str:
    """A line's JSON object with a checksum as its last key."""
    return f'{line[:-1]},"crc32":"{zlib.crc32(line.encode()):08x}"}}'


def unsealed(line: bytes) -> bytes:
    """A line without its checksum, which older ones lack. Raises ValueError where the checksum is of something else."""
    found = CHECKSUM.search(line)
    if not found:
        return line
    text = line[: found.start()] + b"}"
    if zlib.crc32(text) != int(found[1], 16):
        raise ValueError("it was changed since it was written: its checksum is of something else")
    return text


def each_line(
    path: Path, read: Callable[[bytes], T], asked: Callable[[bytes], bool] = bool
) -> Iterator[tuple[int, bytes, T | ValueError]]:
    """Number and bytes of each line that is `asked` for, with what `read` makes of it, or its ValueError."""
    for number, ended in enumerate(io.BytesIO(read_bytes(path)), start=1):
        line = ended.removesuffix(b"\n")
        if line.strip() and asked(line):
            try:
                yield number, line, read(unsealed(line))
            except ValueError as error:
                yield number, line, error


def read_lines(path: Path, read: Callable[[bytes], T], asked: Callable[[bytes], bool] = bool) -> Iterator[T]:
    """What `read` makes of each line that is `asked` for; damaged ones are left out, with one warning."""
    first, wrong = "", 0
    try:
        for number, _, found in each_line(path, read, asked):
            if isinstance(found, ValueError):
                first = first or f"{path}, line {number} is skipped: {found}."
                wrong += 1
            else:
                yield found
    except ValueError as error:
        warn(f"{path} is skipped: {error}.")
    if wrong:
        warn(first if wrong == 1 else f"{first} {wrong - 1} more of its lines are skipped as well.")


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Gives an OSError that names no file, as that of a full disk does not, the name of the file that was written."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def write_atomically(path: Path, content: str | bytes) -> None:
    """Writes `content`, text as UTF-8, so that a reader, or whoever finds the file after a crash, sees all of it or none."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with naming(path), scratch.open("wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def append_lines(path: Path, lines: list[str]) -> None:
    """Appends whole lines in one write under a lock, on disk when this returns; begins a new line after a torn one."""
    if not lines:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path), path.open("ab+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - 1))
        torn = stream.read(1) not in (b"", b"\n")
        text = "".join(line + "\n" for line in lines)
        stream.write((b"\n" if torn else b"") + text.encode())
        stream.flush()
        os.fsync(stream.fileno())


DAMAGED = ".damaged-"  # in the name of a file that was set aside


def set_aside(path: Path) -> str:
    """Renames a damaged file so that nobody reads it and nothing of it is lost; returns its new name."""
    numbered = (path.with_name(f"{path.name}{DAMAGED}{i}") for i in itertools.count(1))
    return path.rename(next(free for free in numbered if not free.exists())).name


def is_name(value: Any) -> bool:
    """Whether `value` can stand in a sentence and in the name of a file."""
    return isinstance(value, str) and len(value) <= LONGEST_NAME and value.isprintable()


def is_number(value: Any) -> bool:
    """Whether `value` is a finite number, which JSON written by Python may not be."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max
