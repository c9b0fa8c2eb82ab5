"""How does a folder of gigabytes travel? As a tar, compressed by xz and cut into parts with a list of digests:
`sha256sum --check SHA256SUMS && cat part* | tar xJ` unpacks it as well. It is a stranger's until it is checked."""

import hashlib
import lzma
import re
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...system.errors import UserError
from ...system.files import LONGEST_NAME, read_bytes

LIST = "SHA256SUMS"
MIB = 2**20

MEMORY = 128 * MIB
"""Bytes that decompressing may take at most; what is packed here asks for less."""

LARGEST = 4 * 2**30
"""Bytes that the files of a folder have at most together, once unpacked."""

LINE = re.compile(r"([0-9a-f]{64})  (part\d{2,3})")
NAME = re.compile(rf"(?!\.\.?\Z)[ -\[\]-~]{{1,{LONGEST_NAME}}}")
"""A file's or a folder's name: printable ASCII without a backslash."""

LONGEST_PATH = 300
"""Characters of a file's name with its folders."""

SHOWN = 80
"""Characters of a stranger's text that are repeated in a sentence."""


def digest(path: Path) -> str:
    """The sha256 of a file in hexadecimal."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(MIB):
            found.update(piece)
    return found.hexdigest()


def unpack(parts: Path, folder: Path) -> str:
    """Unpacks parts into `folder`, which appears once all is well. Returns one sha256 for all contents. Raises UserError."""
    if folder.exists():
        raise UserError(f"{folder} is there already. Name a folder that is not, or remove it.")
    paths = _whole(parts)
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True)
        with tarfile.open(fileobj=_Stream(_decompressed(paths)), mode="r|", bufsize=MIB) as archive:  # type: ignore
            files = _extract(archive, unfinished)
        unfinished.rename(folder)
    except (tarfile.TarError, lzma.LZMAError, EOFError, ValueError, ArithmeticError, RecursionError) as error:
        raise UserError(f"{parts} holds no parts of a release, or they are damaged. Copy them again.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    rows = "".join(f"{name} {sha256}\n" for name, sha256 in sorted(files.items()))
    return hashlib.sha256(rows.encode()).hexdigest()


def _whole(parts: Path) -> list[Path]:
    """The parts that the list names, in their order. Raises UserError where one is not as the list says."""
    try:
        listed = [LINE.fullmatch(line) for line in read_bytes(parts / LIST).decode("ascii", "replace").splitlines()]
    except (OSError, ValueError) as error:
        raise UserError(f"{parts / LIST} is no list of parts: {error}. Copy it again.") from error
    names: Mapping[str, str] = {line[2]: line[1] for line in listed if line}
    if len(names) != len(listed) or [*names] != [f"part{number:02}" for number in range(len(names))] or not names:
        raise UserError(f"{parts / LIST} is no list of parts that can be unpacked. Copy it again.")
    for name, sha256 in names.items():
        path = parts / name
        if not path.is_file():
            raise UserError(f"{path} is missing. Put every part next to {LIST}, then ask again.")
        if digest(path) != sha256:
            raise UserError(f"{path} did not arrive whole: its sha256 is not that of {LIST}. Copy it again.")
    return [parts / name for name in names]


class _Stream:
    """What pieces of bytes hold, to be read as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, b""

    def read(self, size: int) -> bytes:
        while len(self._rest) < size and (piece := next(self._pieces, b"")):
            self._rest += piece
        found, self._rest = self._rest[:size], self._rest[size:]
        return found


def _decompressed(paths: list[Path]) -> Iterator[bytes]:
    """What the xz streams in the parts hold, at most MIB bytes at a time and never none. Raises LZMAError."""
    decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)
    for path in paths:
        with path.open("rb") as stream:
            while data := stream.read(MIB):
                while data or not decoder.needs_input:
                    if found := decoder.decompress(data, MIB):
                        yield found
                    data = decoder.unused_data
                    if decoder.eof:
                        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)


def _extract(archive: tarfile.TarFile, folder: Path) -> dict[str, str]:
    """Writes an archive's files; returns name -> sha256. Raises UserError for anything that must not be written."""
    files: dict[str, str] = {}
    size = 0
    for member in archive:
        name, size = member.name, size + member.size
        if not member.isreg() or len(name) > LONGEST_PATH or not all(map(NAME.fullmatch, name.split("/"))):
            raise UserError(f"The parts hold {name[:SHOWN]!r}, which is no name of a file in a folder.")
        if size > LARGEST:
            raise UserError(f"The parts hold more than {LARGEST / 2**30:.0f} GiB.")
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            files[name] = _written(archive, member, folder / name)
        except (FileExistsError, NotADirectoryError) as error:
            raise UserError(f"The parts hold {name[:SHOWN]!r} twice, or as a file and a folder.") from error
    return files


def _written(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> str:
    """Writes a file; zeros take no room on the disk. Returns its sha256."""
    found, content = hashlib.sha256(), archive.extractfile(member)
    with path.open("xb") as stream:
        while content and (piece := content.read(MIB)):
            found.update(piece)
            if piece.count(0) == len(piece):
                stream.seek(len(piece), 1)
            else:
                stream.write(piece)
        stream.truncate()
    path.chmod(0o755 if member.mode & 0o100 else 0o644)
    return found.hexdigest()
