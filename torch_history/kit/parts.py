"""How does a folder of gigabytes travel through calls of a limited size? As parts, each small enough, with one list of
digests.

Files are cut into pieces, each compressed by itself, so that all cores unpack beside each other, with Python's
standard library alone. A library is cut where its sections end, and each piece is compressed in the way that a trial
finds best for it: machine code, tables and text differ. What is unpacked is a stranger's until every sha256 has been
checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import multiprocessing
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, Struct

from contract.children import dies_with_parent

from ..system.errors import UserError
from ..system.files import LONGEST_NAME, read_bytes

INDEX = "index.json.xz"
FORM = 1
MIB = 2**20

PIECE = 32 * MIB
"""Bytes of a piece at most: larger ones take no fewer bytes once compressed, and keep fewer cores busy."""

MEMORY = 256 * MIB
"""Bytes that decompressing the list takes at most, beside what it is decompressed to."""

MOST_JSON = 16 * MIB
"""Bytes of JSON that are decoded at most; the list of a release with 12,000 files has 2.4 million."""

TOGETHER = ""
"""The name that the pieces of all small files have in the list."""

LARGEST = 4 * 2**30
"""Bytes that the files of a folder have at most together, once unpacked."""

_LZMA = {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": PIECE}
Way = Literal["text", "code", "table"]
WAYS: dict[Way, list[dict[str, Any]]] = {
    "text": [_LZMA],
    "code": [{"id": lzma.FILTER_X86}, {**_LZMA, "lc": 4, "pb": 0}],
    "table": [{"id": lzma.FILTER_DELTA, "dist": 24}, _LZMA],
}
"""Name -> how a piece is compressed. Tables of symbols and relocations have rows of 24 bytes."""

T = TypeVar("T")

Size = Annotated[int, Meta(ge=0, le=LARGEST)]
Digest = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]

NAME = re.compile(rf"(?!\.\.?\Z)[ -\[\]-~]{{1,{LONGEST_NAME}}}")
"""A file's or a folder's name: printable ASCII without a backslash."""

LONGEST_PATH = 300
"""Characters of a file's name with its folders."""

SHOWN = 80
"""Characters of a stranger's text that are repeated in a sentence."""

FOLDER_MODE = 0o755


class PartsError(UserError):
    """Parts that cannot be made or unpacked; the text says which, why, and what to do."""


class Piece(NamedTuple):
    """`size` bytes of `file` from `at` on, compressed in one of WAYS: `length` bytes of a part from `where` on."""

    file: str
    at: Size
    size: Annotated[int, Meta(ge=1, le=PIECE)]
    way: Way
    part: str
    where: Size
    length: Annotated[int, Meta(ge=1, le=2 * PIECE)]


class File(NamedTuple):
    size: Size
    executable: bool
    sha256: Digest


class _Form(Struct):
    form: int


class Index(Struct, frozen=True, forbid_unknown_fields=True):
    """What the parts hold. `small` are the files that are compressed together, in their order; `parts`: name ->
    sha256."""

    form: int
    files: Annotated[dict[str, File], Meta(min_length=1)]
    small: list[str]
    pieces: list[Piece]
    parts: dict[str, File]

    @classmethod
    def read(cls, path: Path) -> Index:
        """Raises PartsError where it is damaged, or names what must not be written."""
        try:
            text = _decompressed(read_bytes(path))
            if (form := decode(text, _Form).form) != FORM:
                raise ValueError(f"it is of form {form}, and this program reads form {FORM}")
            found = decode(text, cls)
            _check(found)
            return found
        except (ValueError, lzma.LZMAError) as error:
            raise PartsError(f"{path} is no list of parts that can be unpacked: {error}. Copy it again.") from error

    @property
    def sizes(self) -> dict[str, int]:
        """Name -> bytes of each file that pieces make up: the large ones, and the small ones TOGETHER."""
        small = set(self.small)
        large = {name: of.size for name, of in self.files.items() if name not in small}
        return {TOGETHER: sum(self.files[name].size for name in self.small), **large}


def decode(text: bytes, kind: type[T]) -> T:
    """The JSON of a stranger as `kind`. Raises ValueError, in words that can be printed, where it is something else."""
    if len(text) > MOST_JSON:
        raise ValueError(f"it has more than {MOST_JSON // MIB} MiB of JSON")
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        words = "".join(each if each.isprintable() else "?" for each in str(error))
        raise ValueError(words if len(words) <= 2 * SHOWN else f"{words[:SHOWN]} … {words[-SHOWN:]}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError("it is no JSON of this program's") from error


def _decompressed(data: bytes) -> bytes:
    """The first bytes that `data` is decompressed to, one more than are decoded. Raises LZMAError, or ValueError where it
    is cut short."""
    stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)
    found = stream.decompress(data, MOST_JSON + 1)
    if not stream.eof and len(found) <= MOST_JSON:
        raise ValueError("it is cut short")
    return found


def _check(index: Index) -> None:
    """Raises ValueError where what `index` says cannot be, or would write outside its folder."""
    for name in (*index.files, *index.parts):
        if len(name) > LONGEST_PATH or not all(map(NAME.fullmatch, name.split("/"))):
            raise ValueError(f"{name[:SHOWN]!r} is no name of a file in a folder")
    if folders := [name for name in index.parts if "/" in name]:
        raise ValueError(f"the part {folders[0][:SHOWN]!r} is in another folder")
    for one, following in pairwise(sorted(name.split("/") for name in index.files)):
        if following[: len(one)] == one:
            raise ValueError(f"{'/'.join(one)[:SHOWN]!r} is a file and a folder in it")
    if unknown := Counter(index.small) - Counter(index.files.keys()):
        raise ValueError(f"{min(unknown)[:SHOWN]!r} is not among its files, or is twice among the small ones")
    if sum(of.size for of in index.files.values()) > LARGEST:
        raise ValueError(f"its files have more than {LARGEST / 2**30:.0f} GiB")
    _check_pieces(index)


def _check_pieces(index: Index) -> None:
    """Raises ValueError unless the pieces lie in parts, and make up every file from its first byte to its last."""
    sizes = index.sizes
    ends = dict.fromkeys(sizes, 0)
    for piece in sorted(index.pieces):
        if piece.at != ends.get(piece.file):
            raise ValueError(f"its pieces do not make up {piece.file[:SHOWN]!r}")
        ends[piece.file] += piece.size
        if piece.part not in index.parts or piece.where + piece.length > index.parts[piece.part].size:
            raise ValueError(f"a piece is not in the part {piece.part[:SHOWN]!r}")
    if wrong := [name for name, size in sizes.items() if ends[name] != size]:
        raise ValueError(f"its pieces do not make up {wrong[0][:SHOWN]!r}")


def digest(path: Path) -> str:
    """The sha256 of a file in hexadecimal."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(MIB):
            found.update(piece)
    return found.hexdigest()


def digest_of(files: Mapping[str, File]) -> str:
    """One sha256 for the contents of many files."""
    rows = "".join(f"{name} {of.sha256}\n" for name, of in sorted(files.items()))
    return hashlib.sha256(rows.encode()).hexdigest()


@contextlib.contextmanager
def workers(cores: int) -> Iterator[ProcessPoolExecutor]:
    """Processes for as many cores, which end at once with whatever ends this block, or this process."""
    die = dies_with_parent()
    pool = ProcessPoolExecutor(cores, initializer=_begin, initargs=(die,))
    try:
        yield pool
    except BaseException:
        for process in multiprocessing.active_children():
            process.kill()
        raise
    finally:
        pool.shutdown()


def each(pool: ProcessPoolExecutor, work: Callable[[Any], T], jobs: Iterable[Any]) -> Iterator[T]:
    """What `work` returns for each job, in their order. Nothing is cancelled where one fails: the workers end."""
    for future in [pool.submit(work, job) for job in jobs]:
        yield future.result()


def _begin(die: Callable[[], None]) -> None:
    """What a worker does first: who presses Ctrl+C asks this program to stop, which ends its workers."""
    die()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


# --- unpacking


def unpack(parts: Path, folder: Path, cores: int | None = None) -> Index:
    """Unpacks `parts`, a folder with all of them and their list, into `folder`, which appears once every file's sha256
    is that of the list; where one is not, nothing is kept. What an interruption left is removed first. Raises
    PartsError."""
    index = Index.read(parts / INDEX)
    if folder.exists():
        raise PartsError(f"{folder} is there already. Name a folder that is not, or remove it.")
    for name, of in index.parts.items():
        _refuse_part(parts / name, of)
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        _unpack_all(index, parts, unfinished, cores or os.cpu_count() or 1).rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return index


def _unpack_all(index: Index, parts: Path, unfinished: Path, cores: int) -> Path:
    """The folder in `unfinished` with every file of `index`. Raises PartsError where one is not what was packed."""
    made, together = unfinished / "files", unfinished / "together"
    targets = {name: made / name if name else together for name in index.sizes}
    _lay_out(index, targets)
    with workers(cores) as pool:
        jobs = [(parts / piece.part, piece, targets[piece.file]) for piece in index.pieces]
        for _ in each(pool, _unpack, jobs):
            pass
        _take_apart(index, made, together)
        checks = [(made / name, name, of) for name, of in index.files.items()]
        wrong = [name for name in each(pool, _differs, checks) if name]
    if wrong:
        raise PartsError(f"{wrong[0]} is not what was packed (sha256), and {len(wrong) - 1} more. Nothing was kept.")
    return made


def _refuse_part(path: Path, of: File) -> None:
    if not path.is_file():
        raise PartsError(f"{path} is missing. Put every part next to {INDEX}, then ask again.")
    if path.stat().st_size != of.size or digest(path) != of.sha256:
        raise PartsError(f"{path} did not arrive whole: its sha256 is not that of {INDEX}. Copy it again.")


def _lay_out(index: Index, targets: Mapping[str, Path]) -> None:
    """Makes each file that pieces make up in its size, all of it zeros."""
    for name, size in index.sizes.items():
        targets[name].parent.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
        with targets[name].open("wb") as stream:
            stream.truncate(size)


def _unpack(job: tuple[Path, Piece, Path]) -> None:
    part, piece, target = job
    with part.open("rb") as stream:
        stream.seek(piece.where)
        body = stream.read(piece.length)
    try:
        found = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=WAYS[piece.way]).decompress(body, piece.size + 1)
    except lzma.LZMAError as error:
        raise PartsError(f"A piece of {piece.file or 'the small files'} cannot be decompressed: {error}.") from error
    if len(found) != piece.size:
        raise PartsError(f"A piece of {piece.file or 'the small files'} has not the size that {INDEX} says.")
    if found.count(0) == len(found):
        return  # the file holds zeros there
    with target.open("r+b") as stream:
        stream.seek(piece.at)
        stream.write(found)


def _take_apart(index: Index, folder: Path, together: Path) -> None:
    """Makes the small files, then gives every file its mode."""
    with together.open("rb") as stream:
        for name in index.small:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
            path.write_bytes(stream.read(index.files[name].size))
    for name, of in index.files.items():
        (folder / name).chmod(0o755 if of.executable else 0o644)


def _differs(job: tuple[Path, str, File]) -> str:
    """The name of a file that is not what the list says, else nothing."""
    path, name, of = job
    return "" if digest(path) == of.sha256 else name
