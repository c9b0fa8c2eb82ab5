"""Does the axis grow by what an index has, and only by that? Small wheels are served on loopback here."""

from __future__ import annotations

import hashlib
import html
import io
import json
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from torch_history import cli
from torch_history.cli import suite
from torch_history.releases import sync
from torch_history.releases.axis import Axis

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


def wheel(version: str, cuda: str = "12.4", built: tuple[int, int, int] = (2026, 3, 4)) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("torch/big.bin", bytes(300_000))
        info = zipfile.ZipInfo("torch/version.py", (*built, 1, 2, 4))
        archive.writestr(
            info, f"__version__ = '{version}'\ncuda: Optional[str] = '{cuda}'\n" if cuda else "cuda = None\n"
        )
    return stream.getvalue()


class Index:
    """What the server answers: files by name, their pages as JSON or HTML, with or without times, metadata and ranges."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, dict[str, Any]]] = {}
        self.metadata: dict[str, str] = {}
        self.as_json = True
        self.ranges = True
        self.answer: tuple[int, str, bytes] | None = None
        self.sent = 0
        self.address = ""

    def add(self, version: str, *tags: str, cuda: str = "12.4", **more: Any) -> None:
        for tag in tags or ("cp311-cp311-manylinux_2_28_x86_64", "cp312-cp312-manylinux_2_28_x86_64"):
            self.files[f"torch-{version}-{tag}.whl"] = (wheel(version, cuda), more)

    def page(self) -> tuple[str, bytes]:
        if self.as_json:
            files = [
                {"filename": name, "url": f"/files/{name}", "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
                 "core-metadata": name in self.metadata, **more}
                for name, (data, more) in self.files.items()
            ]  # fmt: skip
            page = {"meta": {"api-version": "1.1"}, "name": "torch", "versions": [], "files": files}
            return "application/vnd.pypi.simple.v1+json", json.dumps(page).encode()
        links = "".join(
            f'<a href="/files/{name}"'
            + (f' data-yanked="{html.escape(str(more["yanked"]))}"' if "yanked" in more else "")
            + f">{name}</a>\n"
            for name, (_, more) in self.files.items()
        )
        return "text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode()


@pytest.fixture
def index() -> Iterator[Index]:
    held = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers = 200, {}
            kind, data = "application/octet-stream", b""
            if held.answer:
                status, kind, data = held.answer
            elif self.path.rstrip("/").endswith("/torch"):
                kind, data = held.page()
            elif self.path.endswith(".metadata"):
                data = held.metadata[self.path.rpartition("/")[2].removesuffix(".metadata")].encode()
            elif self.path.startswith("/files/"):
                data = held.files[self.path.removeprefix("/files/")][0]
                asked = self.headers.get("Range", "")
                if held.ranges and asked:
                    first, _, last = asked.removeprefix("bytes=").partition("-")
                    headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
                    status, data = 206, data[int(first) : int(last) + 1]
                held.sent += len(data)
            else:
                status = 404
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers.items():
                self.send_header(name, value)
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
def axis(tmp_path: Path) -> Path:
    path = tmp_path / "releases.toml"
    path.write_text(AXIS, encoding="utf-8")
    return path


def synced(axis: Path, index: Index) -> tuple[Axis, list[str], str]:
    """The axis after `sync --write`, what was said besides, and the file's text."""
    found = sync.find(Axis.load(axis), index.address)
    text = sync.with_releases(axis.read_text(encoding="utf-8"), found.new)
    sync.write(axis, text)
    return Axis.load(axis), found.sentences, text


@pytest.mark.parametrize("as_json", [True, False])
def test_a_new_release_is_described_and_put_last(axis: Path, index: Index, as_json: bool) -> None:
    index.as_json = as_json
    index.add("2.0.1")
    index.add("2.3.0", cuda="12.8")
    after, sentences, text = synced(axis, index)
    new = after.newest
    assert (new.tag, new.cuda, new.pythons, new.yanked) == ("v2.3.0", "12.8", ("3.11", "3.12"), "")
    assert (new.date.isoformat(), new.date_source) == ("2026-03-08", "estimated")
    assert text.startswith(AXIS)
    assert sentences == []


def test_what_the_index_tells_needs_no_wheel(axis: Path, index: Index) -> None:
    index.add("2.3.0", **{"upload-time": "2026-02-03T04:05:06Z"})
    index.metadata = dict.fromkeys(
        index.files,
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.3.0\n"
        'Requires-Dist: nvidia-cuda-runtime-cu12 (==12.6.77) ; platform_system == "Linux"\n',
    )
    after, _, _ = synced(axis, index)
    assert (after.newest.date.isoformat(), after.newest.date_source, after.newest.cuda) == (
        "2026-02-03",
        "index",
        "12.6",
    )
    assert index.sent == 0


@pytest.mark.parametrize("ranges", [True, False])
def test_a_wheel_is_read_in_pieces_where_its_server_gives_them(axis: Path, index: Index, ranges: bool) -> None:
    index.ranges = ranges
    index.add("2.3.0", "cp311-cp311-manylinux_2_28_x86_64")
    after, _, _ = synced(axis, index)
    assert after.newest.cuda == "12.4"
    assert (index.sent < 200_000) == ranges


def test_a_late_patch_of_an_old_line_lies_where_it_belongs_and_nothing_else_moves(axis: Path, index: Index) -> None:
    index.add("2.1.3")
    after, _, text = synced(axis, index)
    assert [release.tag for release in after.releases] == ["v2.0.1", "v2.1.3", "v2.2.0"]
    at = text.index('[[release]]\nversion = "2.1.3"')
    entry = text[at:].partition("\n\n")[0] + "\n\n"
    assert text.replace(entry, "") == AXIS
    assert text[at + len(entry) :].startswith("# A comment on 2.2.0.")


@pytest.mark.parametrize("as_json", [True, False])
def test_a_yanked_release_is_added_with_its_reason(axis: Path, index: Index, as_json: bool) -> None:
    index.as_json = as_json
    index.add("2.3.0", yanked='it is "broken" <b>')
    index.add("2.0.1", yanked="too old")
    after, sentences, _ = synced(axis, index)
    assert after.newest.yanked == 'it is "broken" <b>'
    assert sentences == ["v2.0.1 has been yanked since it was added: too old."]


def test_what_cannot_be_measured_is_left_out_in_words(axis: Path, index: Index) -> None:
    index.add("2.4.0", "cp311-cp311-win_amd64")
    index.add("2.5.0", "cp313-cp313t-manylinux_2_28_x86_64")
    index.add("2.6.0rc1")
    index.add("1.0.0")
    index.add("2.7.0", "cp312-cp312-manylinux_2_28_x86_64")
    index.files["torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl"] = (b"no wheel", {})
    after, sentences, _ = synced(axis, index)
    assert [release.tag for release in after.releases] == ["v2.0.1", "v2.2.0", "v2.7.0"]
    assert after.newest.pythons == ("3.12",)
    assert sentences[0] == "v2.5.0 is skipped: none of its wheels is for a plain CPython."
    assert sentences[1].startswith("v2.8.0 is skipped: File is not a zip file")
    assert sentences[2] == "v2.4.0 is skipped: it has no wheel for Linux on x86_64."


def test_a_second_time_nothing_is_new(axis: Path, index: Index) -> None:
    index.add("2.3.0")
    _, _, text = synced(axis, index)
    assert synced(axis, index)[2] == text


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
def test_an_index_that_answers_nonsense_is_named_and_nothing_is_written(
    axis: Path, index: Index, answer: tuple[int, str, bytes], said: str
) -> None:
    index.answer = answer
    with pytest.raises(sync.CannotSync, match=r"127\.0\.0\.1") as error:
        sync.find(Axis.load(axis), index.address.replace("http://", "http://user:secret@"))
    assert said in str(error.value)
    assert "secret" not in str(error.value)
    assert axis.read_text(encoding="utf-8") == AXIS


def test_an_index_out_of_reach_is_said(axis: Path) -> None:
    with pytest.raises(sync.CannotSync, match=r"http://127\.0\.0\.1:9/simple/ is out of reach \(no connection\)"):
        sync.find(Axis.load(axis), "http://127.0.0.1:9/simple/")


def test_an_entry_that_the_axis_refuses_leaves_it_as_it_was(axis: Path) -> None:
    from torch_history.releases.axis import AxisError

    with pytest.raises(AxisError):
        sync.write(axis, AXIS + AXIS)
    assert axis.read_text(encoding="utf-8") == AXIS
    assert [path.name for path in axis.parent.iterdir()] == ["releases.toml"]


@pytest.fixture
def command(axis: Path, monkeypatch: pytest.MonkeyPatch, root: Path, tmp_path: Path) -> Callable[..., Any]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(root)
    loaded = suite.load
    monkeypatch.setattr(suite, "load", lambda: replace(loaded(), list=axis, axis=Axis.load(axis)))
    return lambda *arguments: CliRunner().invoke(cli.main, ["sync", *arguments])


def test_the_command_shows_the_difference_and_writes_it_when_asked(
    command: Callable[..., Any], axis: Path, index: Index
) -> None:
    index.add("2.3.0")
    shown = command("--index", index.address)
    assert shown.exit_code == 0, shown.output
    assert '+version = "2.3.0"' in shown.output
    assert "New: v2.3.0. Nothing was written" in shown.output
    assert axis.read_text(encoding="utf-8") == AXIS
    assert "Added v2.3.0." in command("--index", index.address, "--write").output
    assert "v2.3.0" in Axis.load(axis)
    assert "The axis has every release of the index." in command("--index", index.address).output


def test_the_index_is_the_configured_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Callable[..., Any], index: Index
) -> None:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", "UV_CONFIG_FILE", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)  # whose uv.toml nobody named
    Path("uv.toml").write_text('index-url = "http://found.example/simple"')
    assert sync.configured_index() == sync.PYPI_SIMPLE_ENDPOINT
    monkeypatch.setenv("PIP_INDEX_URL", "http://pip.example/simple")
    assert sync.configured_index() == "http://pip.example/simple"
    monkeypatch.undo()
    settings = tmp_path / "uv.toml"
    settings.write_text('[[index]]\nname = "ours"\nurl = "http://uv.example/simple"\ndefault = true\n')
    monkeypatch.setenv("UV_CONFIG_FILE", str(settings))
    monkeypatch.delenv("UV_INDEX_URL", raising=False)
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    assert sync.configured_index() == "http://uv.example/simple"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "ours=http://named.example/simple")
    assert sync.configured_index() == "http://named.example/simple"
