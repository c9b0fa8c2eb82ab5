"""Moves the lines of launches in results/ into files that gzip compresses: what is compressed is read back and compared
before the lines go. A command that was interrupted is finished by the next. New measurements append to a new file."""

import gzip
from collections.abc import Iterator
from pathlib import Path

from torch_history.cli import suite
from torch_history.store.launches import PACKED
from torch_history.system.files import read_bytes, write_atomically
from torch_history.system.locks import alone

RESULTS = Path("results")
MOVING = ".moving"
"""Ending of a file whose lines are being moved: nobody reads it, and the next `pack` finishes it."""


def pack(lines: Path) -> int:
    """Moves the lines of a file that ends in .jsonl into the one that ends in .jsonl.gz; returns the bytes of all its lines.
    Nobody may append meanwhile. Raises ValueError where either cannot be read."""
    moving, packed = lines.with_name(lines.name + MOVING), lines.with_name(lines.name + PACKED)
    if not moving.exists():
        lines.rename(moving)
    fresh = read_bytes(moving)
    fresh += b"" if fresh.endswith(b"\n") or not fresh else b"\n"
    before = read_bytes(packed) if packed.exists() else b""
    every = before if before.endswith(fresh) else before + fresh  # it was interrupted between writing and removing
    write_atomically(packed, gzip.compress(every, mtime=0))
    if read_bytes(packed) != every:
        raise ValueError(f"{packed} does not hold what was compressed. Its new lines are in {moving}.")
    moving.unlink()
    return pack(lines) if lines.exists() else len(every)


def due(results: Path) -> Iterator[Path]:
    """The files of lines in machines' folders, and those of an interrupted command."""
    for path in sorted(results.glob("*/v*.jsonl*")):
        if path.name.endswith((".jsonl", f".jsonl{MOVING}")):
            yield path.with_name(path.name.removesuffix(MOVING))


def main() -> None:
    with alone(suite.load().env):
        sizes = {path: pack(path) for path in dict.fromkeys(due(RESULTS))}
    now = sum(path.with_name(path.name + PACKED).stat().st_size for path in sizes)
    print(f"{len(sizes)} files with {sum(sizes.values()) / 2**20:.1f} MiB of lines take {now / 2**20:.1f} MiB now.")


if __name__ == "__main__":
    main()
