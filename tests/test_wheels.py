"""Is what is told of a wheel what lies in it? Wheels made here and served a piece at a time, and the committed facts."""

from __future__ import annotations

import datetime
import functools
import hashlib
import http.server
import json
import re
import struct
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from torch_history.cli import main
from torch_history.kit import symbols
from torch_history.releases import wheel_files, wheels
from torch_history.releases.axis import Axis, Release
from torch_history.releases.wheels import CannotRead, Package, Wheel

ROOT = Path(__file__).resolve().parents[1]
VERSION = "__version__ = '9.0.0'\ncuda: Optional[str] = '12.6'\ngit_version = 'abc123'\nhip: Optional[str] = None\n"
CMAKE = 'set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=0")\n'
PYTHON = b"\0junk sm_50 \0" + b"sm_70 sm_80 sm_90a compute_90" + b"\0" * 2**20
CUDA = bytes(3 * 2**20)


class _Pieces(http.server.SimpleHTTPRequestHandler):
    """Serves files and answers to ranges, as package indexes do."""

    def do_GET(self) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not wanted:
            return super().do_GET()
        content = Path(self.translate_path(self.path)).read_bytes()
        begin, end = int(wanted[1]), min(int(wanted[2]) + 1, len(content))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(content)}")
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        self.wfile.write(content[begin:end])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """The address of an index with torch 9.0.0 and a package that it needs, which a releases.lock in `tmp_path` names."""
    torch = archive(
        tmp_path / "torch/torch-9.0.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        {
            "torch/version.py": VERSION.encode(),
            "torch/share/cmake/Torch/TorchConfig.cmake": CMAKE.encode(),
            wheel_files.INIT: b"",
            "torch/lib/libtorch_python.so": PYTHON,
            "torch/lib/libtorch_cuda-12345678.so": CUDA,
            "torch/lib/libgomp.so.1": OF_2_17,
        },
    )
    nccl = archive(tmp_path / "nvidia-nccl-cu12/nvidia_nccl_cu12-2.1-py3-none-manylinux2014_x86_64.whl", {"a": b"four"})
    for file in (torch, nccl):
        link = f'<a href="{file.name}#sha256={digest(file)}">{file.name}</a>'
        (file.parent / "index.html").write_text(f"<html><body>{link}</body></html>")
    hashes = "".join(f'"{file.name}" = "{digest(file)}"\n' for file in (torch, nccl))
    (tmp_path / "releases.lock").write_text(
        f'"v9.0.0 py3.11" = ["nvidia-nccl-cu12==2.1", "torch==9.0.0"]\n\n[sha256]\n{hashes}'
    )
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Pieces, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def archive(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in members.items():
            written.writestr(name, content)
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


AXIS = Axis([Release("9.0.0", datetime.date(2030, 1, 1), "index", ("3.11",), "12.6")])


def test_facts_are_what_lies_in_the_wheels(index: str, tmp_path: Path) -> None:
    said: list[str] = []
    found = wheel_files.update(tmp_path / wheels.FILE, AXIS, index, said.append)["v9.0.0"]
    assert (found.cuda, found.commit, found.cxx11_abi, found.glibc) == ("12.6", "abc123", False, "2.17")
    assert found.architectures == ("sm_70", "sm_80", "sm_90a", "compute_90")
    assert found.libraries == {"libtorch_cuda.so": len(CUDA), "libtorch_python.so": len(PYTHON)}
    torch, nccl = found.packages
    assert (torch.name, nccl.name) == ("torch", "nvidia-nccl-cu12")
    assert torch.download == (tmp_path / "torch" / torch.file).stat().st_size
    assert torch.installed == len(VERSION) + len(CMAKE) + len(PYTHON) + len(CUDA) + len(OF_2_17)
    assert found.installed == torch.installed + 4
    assert said == ["1 of 1: v9.0.0, 0.00 GiB of wheels"]


def needing(*hashes: int) -> bytes:
    """What .gnu.version_r says of one library that another needs, by hashes as readelf shows them."""
    entries = [(each, 0, 2, 99, 16 * (each != hashes[-1])) for each in hashes]
    head = struct.pack("<HHIII", 1, len(hashes), 99, 16, 0)
    return head + b"".join(struct.pack("<IHHII", *entry) for entry in entries)


OF_2_17 = needing(0x09691A75, 0x06969197)
OF_2_34 = needing(0x069691B4)


def test_glibc_is_what_the_libraries_need_and_not_what_the_name_of_the_file_says(tmp_path: Path) -> None:
    path = archive(
        tmp_path / "a" / "torch-9.0.0-cp311-cp311-manylinux1_x86_64.whl",
        {
            "torch/lib/liba.so": bytes(wheel_files.LEAST_READ - 8) + OF_2_17 + bytes(2**20),  # across two pieces
            "torch/lib/libc.so": OF_2_34[16:] + OF_2_17,  # bytes that look like an entry, in no table
            "torch/lib/libb.so": bytes(wheel_files.MOST_READ) + OF_2_34,  # no table lies that far in
            "torch/lib/readme.txt": OF_2_34,
            "torch/bin/tool.so": OF_2_34,
        },
    )
    with zipfile.ZipFile(path) as wheel:
        assert wheel_files._glibc(wheel) == "2.17"
    path = archive(tmp_path / "b" / "a.whl", {"torch/_C.so": OF_2_34, "torch/lib/liba.so": OF_2_17})
    with zipfile.ZipFile(path) as wheel:
        assert wheel_files._glibc(wheel) == "2.34"
    with zipfile.ZipFile(archive(tmp_path / "c" / "a.whl", {"torch/lib/liba.so": b"no library"})) as wheel:
        assert wheel_files._glibc(wheel) == ""


def test_the_hashes_find_what_the_names_of_a_real_library_say(tmp_path: Path) -> None:
    paths = sorted(Path(np.__file__).parents[1].glob("numpy*/**/*.so*"))
    names = {symbol.version for path in paths for symbol in symbols.symbols(path).asked}
    named = {name.removeprefix("GLIBC_") for name in names if name.startswith("GLIBC_")}
    content = {f"torch/lib/{number}.so": path.read_bytes() for number, path in enumerate(paths)}
    with zipfile.ZipFile(archive(tmp_path / "a" / "a.whl", content)) as wheel:
        assert wheel_files._glibc(wheel) == max(named, key=wheel_files.GLIBC.index)


def test_what_is_known_is_not_read_again(index: str, tmp_path: Path) -> None:
    path = tmp_path / wheels.FILE
    first = wheel_files.update(path, AXIS, index, print)
    assert wheel_files.update(path, AXIS, "http://127.0.0.1:9/", print) == first == wheels.load(path)


def test_wheel_that_is_not_the_locks_is_refused(index: str, tmp_path: Path) -> None:
    lock = tmp_path / "releases.lock"
    lock.write_text(re.sub(r'"[0-9a-f]{64}"', f'"{"0" * 64}"', lock.read_text()))
    with pytest.raises(CannotRead, match=r"no file of .* whose sha256 is in releases.lock"):
        wheel_files.update(tmp_path / wheels.FILE, AXIS, index, print)
    assert not (tmp_path / wheels.FILE).exists()


def test_wheel_without_its_files_is_refused_in_a_sentence(index: str, tmp_path: Path) -> None:
    file = next((tmp_path / "torch").glob("*.whl"))
    known = digest(file)
    file.unlink()
    file.write_bytes(b"no archive")
    with pytest.raises(CannotRead, match=r"The wheels of v9.0.0 cannot be read \(BadZipFile\)"):
        wheel_files.update(tmp_path / wheels.FILE, AXIS, index, print)
    assert known


@pytest.mark.parametrize("text", ["[]", '{"v1.0.0": {"cuda": 5}}', "{"])
def test_damaged_file_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / wheels.FILE
    path.write_text(text)
    with pytest.raises(CannotRead, match="is damaged"):
        wheels.load(path)


def wheel(architectures: tuple[str, ...], *packages: tuple[str, str]) -> Wheel:
    made = (Package(name, version, "", "", 10**9, 2 * 10**9) for name, version in (("torch", "1"), *packages))
    return Wheel("3.11", "12.1", "a" * 40, True, "2.28", architectures, {}, tuple(made))


def test_only_what_differs_is_told() -> None:
    old, new = (
        wheel(("sm_50", "sm_70"), ("nvidia-nccl-cu12", "2.1")),
        wheel(("sm_70", "sm_90"), ("nvidia-nccl-cu13", "2.2")),
    )
    assert list(wheels.differences(old, new)) == [
        ("GPU architectures", "sm_50", "sm_90"),
        ("nvidia-nccl", "2.1", "2.2"),
    ]
    assert list(wheels.differences(old, old)) == []


@pytest.mark.committed
def test_committed_facts_agree_with_the_axis_and_the_lock() -> None:
    axis, known = Axis.load(ROOT / "releases.toml"), wheels.load(ROOT / wheels.FILE)
    for release in axis.releases:
        of = known[release.tag]
        assert of.cuda == release.cuda, release.tag
        assert not release.archs or set(release.archs) <= set(of.architectures), release.tag
        assert of.packages[0].version == release.version
        assert of.commit
        assert of.architectures


@pytest.mark.committed
def test_command_prints_what_differs() -> None:
    answer = CliRunner().invoke(main, ["facts", "2.3.1", "2.15.0"])
    assert answer.exit_code == 0
    assert "GPU architectures" in answer.output
    assert max(map(len, answer.output.splitlines())) <= 80
    assert "from the wheels for Python 3.11.\n" in answer.output
    older = CliRunner().invoke(main, ["facts", "1.8.0", "2.15.0"]).output
    assert "from the wheels for Python 3.9 and 3.11.\n" in older
    both = json.loads(CliRunner().invoke(main, ["facts", "2.3.1", "2.15.0", "--json"]).output)
    assert sorted(both) == ["v2.15.0", "v2.3.1"]
