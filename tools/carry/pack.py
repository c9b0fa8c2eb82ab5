"""How does a folder of gigabytes become the parts that `kit unpack` unpacks? A tar is compressed piece by piece, on all
cores, and cut where a part is full."""

import lzma
import tarfile
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from torch_history.measuring.kit.parts import LIST, MIB, digest
from torch_history.system.files import write_atomically

PIECE = 16 * MIB
"""Bytes that are compressed by themselves: larger ones take hardly fewer bytes, and longer until an interruption ends."""

FILTERS = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 6}]
"""Most of a release is machine code of x86."""


class _Parts:
    """Compresses what is written, on so many cores, into parts of at most `limit` bytes in `target`. `tell` is given the
    bytes that were compressed."""

    def __init__(self, target: Path, limit: int, cores: int, tell: Callable[[int], None]) -> None:
        self.paths: list[Path] = []
        self._target, self._limit, self._cores, self._tell = target, limit, cores, tell
        self.pool = ThreadPoolExecutor(cores)
        self._waiting: deque[tuple[int, Future[bytes]]] = deque()
        self._done = 0

    def write(self, data: bytes) -> int:
        self._waiting.append((len(data), self.pool.submit(lzma.compress, bytes(data), filters=FILTERS)))
        self.put(2 * self._cores)
        return len(data)

    def put(self, left: int) -> None:
        """Puts what is compressed into parts, until so many pieces are left."""
        while len(self._waiting) > left:
            self._put()

    def _put(self) -> None:
        size, future = self._waiting.popleft()
        body = future.result()
        while body:
            if not self.paths or self.paths[-1].stat().st_size == self._limit:
                self.paths.append(self._target / f"part{len(self.paths):02}")
                self.paths[-1].write_bytes(b"")
            room = self._limit - self.paths[-1].stat().st_size
            with self.paths[-1].open("ab") as stream:
                stream.write(body[:room])
            body = body[room:]
        self._done += size
        self._tell(self._done)


def pack(folder: Path, target: Path, limit: int, cores: int, tell: Callable[[int, int], None]) -> list[Path]:
    """Packs every file in `folder` into parts in `target`, of at most `limit` bytes each, and lists them last. `tell` is
    given the bytes that are done, and all."""
    target.mkdir(parents=True, exist_ok=True)
    (target / LIST).unlink(missing_ok=True)
    plain = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    paths = sorted((path for path in plain if "__pycache__" not in path.parts), key=lambda path: (path.suffix, path))
    total = sum(path.stat().st_size for path in paths)
    made = _Parts(target, limit, cores, lambda done: tell(min(done, total), total))
    try:
        with tarfile.open(fileobj=made, mode="w|", bufsize=PIECE) as archive:  # type: ignore[call-overload]
            for path in paths:
                info = tarfile.TarInfo(path.relative_to(folder).as_posix())
                info.size, info.mode = path.stat().st_size, path.stat().st_mode & 0o777
                with path.open("rb") as stream:
                    archive.addfile(info, stream)
        made.put(0)
    finally:
        made.pool.shutdown(cancel_futures=True)
    write_atomically(target / LIST, "".join(f"{digest(path)}  {path.name}\n" for path in made.paths))
    return made.paths
