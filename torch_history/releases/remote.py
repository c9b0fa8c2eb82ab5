"""A file of a package index, read in pieces."""

from __future__ import annotations

import io

import requests

TIMEOUT = 60
"""Seconds without an answer after which an index counts as out of reach."""


class RemoteFile(io.RawIOBase):
    """A file at an address, read in pieces; whole where its server gives none. A wheel has gigabytes, its list of files is
    at its end."""

    PIECE = 2**16

    def __init__(self, session: requests.Session, address: str) -> None:
        self._session, self._address, self._at = session, address, 0
        self._pieces: dict[int, bytes] = {}
        self._whole: bytes | None = None
        first = {"Range": "bytes=0-0", "Accept-Encoding": "identity"}
        answer = session.get(address, headers=first, stream=True, timeout=TIMEOUT)
        answer.raise_for_status()
        if answer.status_code == requests.codes.partial_content:
            self.size = int(answer.headers["Content-Range"].rpartition("/")[2])
            answer.close()
        else:
            self._whole = answer.content
            self.size = len(self._whole)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._bytes(self._at, min(self._at + len(buffer), self.size))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _bytes(self, begin: int, end: int) -> bytes:
        if self._whole is not None:
            return self._whole[begin:end]
        first, last = begin // self.PIECE, max(begin, end - 1) // self.PIECE
        missing = [number for number in range(first, last + 1) if number not in self._pieces]
        if missing:
            until = min((missing[-1] + 1) * self.PIECE, self.size) - 1
            ranges = {"Range": f"bytes={missing[0] * self.PIECE}-{until}", "Accept-Encoding": "identity"}
            answer = self._session.get(self._address, headers=ranges, timeout=TIMEOUT)
            answer.raise_for_status()
            for number in range(missing[0], missing[-1] + 1):
                at = (number - missing[0]) * self.PIECE
                self._pieces[number] = answer.content[at : at + self.PIECE]
        joined = b"".join(self._pieces[number] for number in range(first, last + 1))
        return joined[begin - first * self.PIECE : end - first * self.PIECE]
