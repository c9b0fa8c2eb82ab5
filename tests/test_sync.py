"""Does the axis grow by what an index has, and only by that? A page and wheels are served on loopback here."""

import io
import json
import re
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tools import sync
from torch_history.releases.axis import Axis
from torch_history.system.errors import UserError

AXIS = """\
# What this file is.

[[release]]
version = "2.0.1"
date = "2023-05-08"
date_source = "index"
pythons = ["3.11"]
cuda = "11.7"

# A comment on 2.2.0.
[[release]]
version = "2.2.0"
date = "2024-01-30"
date_source = "index"
pythons = ["3.11"]
cuda = "12.1"
"""

DAY = "2026-02-03T04:05:06Z"


def wheel(version: str, cuda: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("torch/big.bin", bytes(1_000_000))
        said = f"cuda: Optional[str] = '{cuda}'\n" if cuda else "cuda = None\n"
        archive.writestr("torch/version.py", f"__version__ = '{version}'\n{said}")
    return stream.getvalue()


class Index:
    """What the server answers: the page of a project, and wheels in pieces, or whole. `answer` stands for any page."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, dict[str, Any]]] = {}
        self.answer: tuple[int, str, bytes] | None = None
        self.pieces, self.sent = True, 0
        self.address = ""

    def add(self, version: str, *tags: str, cuda: str = "12.4", **more: Any) -> None:
        for tag in tags or ("cp311-cp311-manylinux_2_28_x86_64", "cp312-cp312-manylinux_2_28_x86_64"):
            self.files[f"torch-{version}-{tag}.whl"] = (wheel(version, cuda), {"upload-time": DAY, **more})

    def page(self, project: str) -> bytes:
        files = [
            {"filename": name, "url": f"/files/{name}", "hashes": {}, "size": len(data), **more}
            for name, (data, more) in self.files.items()
            if name.partition("-")[0] == project.replace("-", "_")
        ]
        return json.dumps({"meta": {"api-version": "1.1"}, "name": project, "versions": [], "files": files}).encode()


@pytest.fixture
def index() -> Iterator[Index]:
    held = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, kind, data, piece = 404, "text/plain", b"", None
            if held.answer:
                status, kind, data = held.answer
            elif self.path.startswith("/simple/"):
                status, kind, data = 200, "application/vnd.pypi.simple.v1+json", held.page(self.path.split("/")[2])
            elif self.path.startswith("/files/"):
                status, kind, data = 200, "application/octet-stream", held.files[self.path.removeprefix("/files/")][0]
                piece = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")) if held.pieces else None
            if piece:
                status, data = 206, data[int(piece[1]) : int(piece[2]) + 1]
                held.sent += len(data)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    held.address = f"http://127.0.0.1:{server.server_port}/simple/"
    yield held
    server.shutdown()
    server.server_close()


@pytest.fixture
def axis(tmp_path) -> Path:
    path = tmp_path / "releases.toml"
    path.write_text(AXIS, encoding="utf-8")
    return path


def synced(axis: Path, index: Index) -> tuple[Axis, list[str], str]:
    """The axis after `sync --write`, what was said besides, and the file's text."""
    new, sentences = sync.find(Axis.load(axis), index.address)
    text = sync.with_releases(axis.read_text(encoding="utf-8"), new)
    sync.write(axis, text)
    return Axis.load(axis), sentences, text


def test_a_new_release_is_described_and_put_last(axis, index):
    index.add("2.0.1")
    index.add("2.3.0", cuda="12.8")
    after, sentences, text = synced(axis, index)
    new = after.newest
    assert (new.tag, new.cuda, new.pythons, new.yanked) == ("v2.3.0", "12.8", ("3.11", "3.12"), "")
    assert (new.date.isoformat(), new.date_source) == ("2026-02-03", "index")
    assert text.startswith(AXIS)
    assert sentences == []
    assert index.sent < 200_000, "the wheel is not downloaded"


def test_a_late_patch_of_an_old_line_lies_where_it_belongs_and_nothing_else_moves(axis, index):
    index.add("2.1.3")
    after, _, text = synced(axis, index)
    assert [release.tag for release in after.releases] == ["v2.0.1", "v2.1.3", "v2.2.0"]
    at = text.index('[[release]]\nversion = "2.1.3"')
    entry = text[at:].partition("\n\n")[0] + "\n\n"
    assert text.replace(entry, "") == AXIS
    assert text[at + len(entry) :].startswith("# A comment on 2.2.0.")


def test_what_cannot_be_measured_is_left_out_in_words(axis, index):
    index.add("2.4.0", "cp311-cp311-win_amd64")
    index.add("2.5.0", "cp313-cp313t-manylinux_2_28_x86_64")
    index.add("2.6.0rc1")
    index.add("1.0.0")
    index.add("2.7.0", "cp312-cp312-manylinux_2_28_x86_64")
    index.add("2.9.0", **dict[str, Any]({"upload-time": None}))
    index.files["torch-2.10.0-cp311-cp311-manylinux_2_28_x86_64.whl"] = (b"no wheel", {"upload-time": DAY})
    after, sentences, _ = synced(axis, index)
    assert [release.tag for release in after.releases] == ["v2.0.1", "v2.2.0", "v2.7.0"]
    assert after.newest.pythons == ("3.12",)
    assert sentences == [
        "v2.5.0 is skipped: none of its wheels is for a plain CPython. Its entry can be written by hand.",
        "v2.9.0 is skipped: the index does not tell its date. Its entry can be written by hand.",
        "v2.10.0 is skipped: File is not a zip file. Its entry can be written by hand.",
    ]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((404, "text/plain", b""), "has no project 'torch'"),
        ((500, "text/plain", b""), "is out of reach (it answers 500)"),
        ((200, "image/png", b"\x89PNG"), "is no page of a package index"),
        ((200, "application/vnd.pypi.simple.v1+json", b'{"files": 3'), "is no page of a package index"),
        ((200, "text/html", b"<html>a login page</html>"), "names no wheel of torch"),
    ],
)
def test_an_index_that_answers_nonsense_is_named_and_nothing_is_written(axis, index, answer, said):
    index.answer = answer
    with pytest.raises(UserError, match=r"127\.0\.0\.1") as error:
        sync.find(Axis.load(axis), index.address.replace("http://", "http://user:secret@"))
    assert said in str(error.value)
    assert "secret" not in str(error.value)
    assert axis.read_text(encoding="utf-8") == AXIS


def test_an_entry_that_the_axis_refuses_leaves_it_as_it_was(axis):
    with pytest.raises(UserError):
        sync.write(axis, AXIS + AXIS)
    assert axis.read_text(encoding="utf-8") == AXIS
    assert [path.name for path in axis.parent.iterdir()] == ["releases.toml"]
