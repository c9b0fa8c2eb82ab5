"""Are the releases that are carried to another machine what their wheels hold, and is everything else refused in words?"""

import contextlib
import hashlib
import io
import json
import lzma
import os
import shutil
import struct
import sys
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import msgspec
import pytest
from click.testing import CliRunner

from contract.carried import case_of, refusal
from contract.metrics import metric_of
from tools import kit as make
from tools.carry import prepare as carry
from tools.carry import reduce
from tools.carry.__main__ import main as carry_command
from tools.carry.pack import pack
from tools.carry.reduce import reduce_library, reduce_wheel
from torch_history.measuring.kit import carried, parts
from torch_history.measuring.kit.carried import About, Machine
from torch_history.measuring.kit.elf import Symbol, asked_of_others, sections
from torch_history.releases.environments import HARNESS, MARK
from torch_history.releases.pins import Lock
from torch_history.releases.uv import run_uv
from torch_history.store.details import add_details
from torch_history.store.launches import read_environment
from torch_history.system.errors import UserError

from .lab import AXIS
from .processes import ROOT, compiled, ran
from .result_files import cases


def elf(*named: tuple[str, bytes]) -> bytes:
    """A 64-bit ELF file with these sections, laid out by the ELF specification."""
    names, offsets, body = b"\0", [], b""
    for name, _ in (*named, (".shstrtab", b"")):
        offsets.append(len(names))
        names += name.encode() + b"\0"
    rows = [bytes(64)]
    for (_, data), name_at in zip((*named, ("", names)), offsets, strict=True):
        body += bytes(-len(body) % 8)
        rows.append(struct.pack("<IIQQQQIIQQ", name_at, 1, 0, 0, 64 + len(body), len(data), 0, 0, 8, 0))
        body += data
    body += bytes(-len(body) % 8)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHH", 3, 62, 1, 0, 0, 64 + len(body), 0, 64, 0, 0)
    return head + struct.pack("<HHH", 64, len(rows), len(rows) - 1) + body + b"".join(rows)


def cubin(*kernels: str) -> bytes:
    return elf(*((f".text.{kernel}", kernel.encode() * 20) for kernel in kernels))


def image(architecture: int, code: bytes, kind: int = reduce.CUBIN) -> bytes:
    code += bytes(-len(code) % 8)
    return struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(code), 0, 0, 0, 1, architecture, 0, 0, 0, 0, 0) + code


def container(*images: bytes) -> bytes:
    body = b"".join(images)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def unit(kernel: str) -> bytes:
    """A source file compiled for two architectures."""
    return container(image(75, cubin(kernel)), image(90, cubin(kernel)))


def library(*containers: bytes) -> bytes:
    return elf((".text", b"host code" * 9), (".nv_fatbin", b"".join(containers)), (".symtab", b"never loaded" * 8))


def architectures(data: bytes | bytearray) -> list[list[int]]:
    return [[i.architecture for i in c.images] for c in reduce.device_code(data)]


def odd(header: int, size: int) -> bytes:
    """A container whose image says that it is so large."""
    return container(struct.pack("<HHIQIIHHIIIQQQ", 2, 1, header, size, 0, 0, 0, 1, 90, 0, 0, 0, 0, 0) + bytes(64))


BEYOND = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 2**40) + bytes(64)
NO_CODE = {
    **{f"cut at {at}": (library(unit("one"))[:at], ".") for at in (0, 3, 40, 63, 100, 400, -1)},
    "no container": (library(b"not a container of anything!!!!!"), "no container"),
    "a container that ends after its section": (library(BEYOND), "no container"),
    **{f"{of}": (library(odd(*of)), "is not in its container") for of in ((0, 8), (64, 2**40), (8, 8))},
}


@pytest.mark.parametrize("what", NO_CODE)
def test_a_library_whose_device_code_cannot_be_read_is_refused(what):
    with pytest.raises(UserError, match=NO_CODE[what][1]):
        list(reduce.device_code(NO_CODE[what][0]))


def other(kernel: str) -> bytes:
    """A source file compiled for another architecture alone."""
    return container(image(75, cubin(kernel)))


def reduced(data: bytes) -> bytearray:
    made = bytearray(data)
    reduce_library(made, 90)
    return made


def test_nothing_but_device_code_and_tables_that_nobody_loads_is_changed() -> None:
    data = library(unit("wanted"), other("another"))
    made = reduced(data)
    assert len(made) == len(data)
    changed = {at for at in range(len(data)) if data[at] != made[at]}
    inside = {at for c in reduce.device_code(data) for at in range(c.at + 8, c.end)}
    tables = {at for s in sections(data) if s.name == ".symtab" for at in range(s.offset, s.offset + s.size)}
    assert changed
    assert changed <= inside | tables


def test_a_unit_has_the_images_for_the_card_alone_and_as_they_were() -> None:
    data = library(unit("wanted"), unit("also_wanted"))
    made = reduced(data)
    assert architectures(made) == [[90], [90]]
    for before, after in zip(reduce.device_code(data), reduce.device_code(made), strict=True):
        ours, now = before.images[1], after.images[0]
        assert made[now.at : now.end] == data[ours.at : ours.end]
        assert after.at == before.at
        assert not any(made[after.end : before.end])


def test_a_unit_without_code_for_the_card_has_the_smallest_for_another() -> None:
    made = reduced(library(unit("wanted"), other("planted"), other("one")))
    assert architectures(made) == [[90], [75], [75]]
    _, emptied, _ = reduce.device_code(made)
    assert b"one" in made[emptied.begin : emptied.end]
    assert b"planted" not in made


def test_a_unit_without_room_for_another_image_is_left_with_none() -> None:
    large, small = other("a_kernel_with_a_long_name" * 9), container(image(90, cubin("k"), kind=1))
    assert architectures(reduced(library(large, small))) == [[75], []]


def test_a_wheel_without_code_for_the_card_is_refused(tmp_path):
    (tmp_path / "wheel").mkdir()
    (tmp_path / "wheel" / "libtorch_cuda.so").write_bytes(library(other("old")))
    with pytest.raises(UserError, match="no code for sm_90"):
        reduce_wheel(tmp_path / "wheel", tmp_path / "made", 90, lambda words: None)


def test_what_nobody_loads_is_left_out_of_a_wheel(tmp_path):
    source = tmp_path / "wheel"
    kept = ("torch/__init__.py", "torch/lib/libshm.so", "torch/bin/torch_shm_manager", "torch/include/a.h")
    left = ("torch/bin/protoc", "torch/test/x.py", "torch/_C.pyi", "torch/lib/libshm/socket.h")
    for name in (*kept, *left):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(elf((".text", b"x")) if name.endswith(".so") else b"x")
    (source / "torch/lib/libtorch_cuda.so").write_bytes(library(unit("wanted")))
    reduce_wheel(source, tmp_path / "made", 90, lambda words: None)
    found = {p.relative_to(tmp_path / "made").as_posix() for p in (tmp_path / "made").rglob("*") if p.is_file()}
    assert found == {*kept, "torch/lib/libtorch_cuda.so"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Files of each kind: small, empty, a program, large ones that cannot be compressed, zeros, and a library."""
    made = tmp_path_factory.mktemp("carried") / "folder"
    (made / "deep" / "er").mkdir(parents=True)
    (made / "deep" / "small.py").write_text("small = 1\n" * 40)
    (made / "deep" / "er" / "empty").write_bytes(b"")
    (made / "run").write_text("#!/bin/sh\n")
    (made / "run").chmod(0o755)
    (made / "large.bin").write_bytes(os.urandom(1_100_000) + bytes(2**20))
    (made / "zeros.bin").write_bytes(bytes(3 * 2**20))
    rows = b"".join(struct.pack("<QQQ", 8 * n, 8, n) for n in range(50_000))
    (made / "lib.so").write_bytes(elf((".text", os.urandom(1_100_000)), (".zeros", bytes(2**20)), (".rows", rows)))
    return made


@pytest.fixture(scope="module")
def once(folder) -> Path:
    pack(folder, folder.with_name("parts"), 1_200_000)
    return folder.with_name("parts")


@pytest.fixture
def packed(once, tmp_path) -> Path:
    return shutil.copytree(once, tmp_path / "parts")


def contents(folder: Path) -> dict[str, tuple[str, bool]]:
    return {
        path.relative_to(folder).as_posix(): (hashlib.sha256(path.read_bytes()).hexdigest(), os.access(path, os.X_OK))
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_what_is_unpacked_is_what_was_packed(folder, packed, tmp_path):
    sizes = [path.stat().st_size for path in packed.glob("part*")]
    assert len(sizes) == 2
    assert max(sizes) <= 1_200_000
    rows = "".join(f"{name} {sha256}\n" for name, (sha256, _) in sorted(contents(folder).items()))
    assert parts.unpack(packed, tmp_path / "again") == hashlib.sha256(rows.encode()).hexdigest()
    assert contents(tmp_path / "again") == contents(folder)
    assert (tmp_path / "again" / "zeros.bin").stat().st_blocks * 512 < 2**20
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_packing_again_replaces_parts_and_leaves_a_folder_of_somebody_elses_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("from/file", "theirs/part00", "theirs/SHA256SUMS"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(name)
    for _ in range(2):
        assert [path.name for path in pack(Path("from"), Path("to"), 1_200_000)] == ["part00"]
        Path("to/part07").touch()
    said = CliRunner().invoke(carry_command, ["2.15.0", "theirs"])
    assert (said.exit_code, "holds files that this program did not make" in said.output) == (1, True)
    assert sorted(path.name for path in Path("theirs").iterdir() if path.read_text()) == ["SHA256SUMS", "part00"]


def test_an_interrupted_unpacking_begins_anew_and_nothing_is_unpacked_over_a_folder(folder, packed, tmp_path):
    (tmp_path / ".again.unfinished" / "left").mkdir(parents=True)
    parts.unpack(packed, tmp_path / "again")
    assert contents(tmp_path / "again") == contents(folder)
    with pytest.raises(UserError, match="is there already"):
        parts.unpack(packed, folder)


def test_a_part_that_did_not_arrive_whole_is_named(packed, tmp_path):
    part = packed / "part01"
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"part01 did not arrive whole"):
        parts.unpack(packed, tmp_path / "again")
    part.unlink()
    with pytest.raises(UserError, match=r"part01 is missing"):
        parts.unpack(packed, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_what_was_unpacked_and_is_no_release_leaves_nothing(packed, tmp_path, monkeypatch):
    monkeypatch.setattr(Machine, "of", lambda interpreter: MACHINE)
    with pytest.raises(UserError, match="no carried release"):
        carried.unpack(packed, tmp_path / "carried", sys.executable)
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


def as_parts(folder: Path, content: bytes) -> Path:
    """One part with this content, and its list."""
    folder.mkdir()
    (folder / "part00").write_bytes(content)
    (folder / parts.LIST).write_text(f"{hashlib.sha256(content).hexdigest()}  part00\n")
    return folder


def tar(*members: tuple[str, bytes, int]) -> bytes:
    """Members by name, type and bytes that they say they have, as a compressed tar."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:xz", preset=0) as archive:
        for name, kind, size in members:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, size, "/etc/passwd"
            archive.addfile(info, io.BytesIO(bytes(min(size, 100))) if size <= 100 else None)
    return stream.getvalue()


FILE = tarfile.REGTYPE
ELSEWHERE = ("../out", "/tmp/out", "a/../../out", "a//b", "./a", "a/.", "a\\b", "a\nb", "a\x1b[31m", "..", "n" * 300)
HOSTILE = {
    **{name: tar(("fine", FILE, 1), (name, FILE, 1)) for name in (*ELSEWHERE, "/".join("n" * 600))},
    **{"a link": tar(("a", tarfile.SYMTYPE, 0)), "a hard link": tar(("a", FILE, 1), ("b", tarfile.LNKTYPE, 0))},
    **{"a pipe": tar(("a", tarfile.FIFOTYPE, 0)), "a file twice": tar(("a", FILE, 1), ("a", FILE, 1))},
    "a file in a file": tar(("a", FILE, 1), ("a/b", FILE, 1)),
    **{"a file over a folder": tar(("a/b", FILE, 1), ("a", FILE, 1)), "6 GiB in a file": tar(("a", FILE, 6 * 2**30))},
    **{"a file that is cut short": tar(("a", FILE, 2**20)), "nothing": b"", "no xz": b"\xff" * 5000},
    **{"xz that is cut short": tar(("a", FILE, 100))[:60], "no tar": lzma.compress(b"\x01" * 5000)},
    "much memory": lzma.compress(b"", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 2**30}]),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_parts_that_no_release_has_are_refused(tmp_path, what):
    with pytest.raises(UserError, match="no name of a file" if what in ELSEWHERE else ".") as refused:
        parts.unpack(as_parts(tmp_path / "parts", HOSTILE[what]), tmp_path / "again")
    assert is_a_sentence(str(refused.value))
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


def test_what_is_small_on_disk_and_large_in_memory_is_never_all_in_memory(tmp_path):
    size, stream = 100 * parts.MIB, io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:xz", preset=0) as archive:
        info = tarfile.TarInfo("zeros")
        info.size = size
        archive.addfile(info, io.BytesIO(bytes(size)))
    packed = as_parts(tmp_path / "parts", stream.getvalue())
    tracemalloc.start()
    parts.unpack(packed, tmp_path / "again")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (tmp_path / "again" / "zeros").stat().st_size == size
    assert peak < 30 * parts.MIB


def is_a_sentence(words: str) -> bool:
    """Whether a terminal shows all of it, in a few lines, and none of it is Python's."""
    of_python = ("object has", "__init__", "unhashable", "dictionary update", "codec", "recursion")
    return words.isprintable() and len(words) < 500 and not any(each in words for each in of_python)


NO_LISTS = [b"", b"[]", b"\xff\x1b[31m", b"0" * 64 + b"  part01\n", b"0" * 64 + b"  ../part00\n"]


@pytest.mark.parametrize("text", [*NO_LISTS, 2 * (b"0" * 64 + b"  part00\n"), b"0" * 63 + b"  part00\n", None])
def test_a_file_that_is_no_list_of_parts_is_refused_and_a_pipe_not_waited_for(tmp_path, text):
    path = tmp_path / parts.LIST
    os.mkfifo(path) if text is None else path.write_bytes(text)
    with pytest.raises(UserError, match="no list of parts" if text is not None else "no regular file") as refused:
        parts.unpack(tmp_path, tmp_path / "again")
    assert is_a_sentence(str(refused.value))


def test_a_stub_loads_and_ends_the_process_with_the_name_that_was_called(tmp_path):
    code = "extern int ncclNew(void), nvshmem_go(void); extern char nvshmem_data[]; int f(int n)"
    code += "{ return n ? ncclNew() + nvshmem_go() : nvshmem_data[0]; }"
    asking = compiled(tmp_path / "libasking.so", code, "-shared")
    asked = {Symbol(name, "NVSHMEM", is_data) for name, is_data in (("nvshmem_go", False), ("nvshmem_data", True))}
    asked |= {Symbol("ncclNew", "", False)}
    assert {symbol.name for symbol in asked_of_others([asking])} >= {symbol.name for symbol in asked}
    carry.make_stubs(asked, tmp_path / "stubs")
    made = sorted(path for path in (tmp_path / "stubs").rglob("*") if path.is_file())
    assert [path.name for path in made] == ["libnccl.so.2", "libnvshmem_host.so.3"]
    load = "".join(f"ctypes.CDLL({str(path)!r}, ctypes.RTLD_GLOBAL);" for path in (*made, asking))
    ran(sys.executable, "-c", f"import ctypes;{load}ctypes.CDLL({str(asking)!r}).f(0)")
    loud = ran(sys.executable, "-c", f"import ctypes;{load}ctypes.CDLL({str(asking)!r}).f(1)", code=None)
    assert loud.returncode < 0
    assert "ncclNew was called" in loud.stderr


def test_what_a_stub_does_not_stand_for_is_asked_of_the_machine(tmp_path):
    code = "extern int cublasCreate(void); int f(void) { return cublasCreate(); }"
    path = compiled(tmp_path / "libuser.so", code, "-shared")
    about = plain_about(asked=sorted(s.name for s in asked_of_others([path]) if carry.NVIDIA.match(s.name)))
    assert about.asked == ["cublasCreate"]
    (tmp_path / "farm" / "cu").mkdir(parents=True)
    with pytest.raises(UserError, match="asks this machine's libraries for cublasCreate"):
        carried._refuse_missing(about, tmp_path / "farm")
    compiled(tmp_path / "farm" / "cu" / "libcublas.so", "int cublasCreate(void) { return 0; }", "-shared")
    carried._refuse_missing(about, tmp_path / "farm")


def plain_about(**changed: Any) -> About:
    stored = {"release": "v2.15.0", "python": "3.12", "cuda": "13.2", "architecture": 90, "wheel": "torch.whl"}
    stored |= {"sha256": "0" * 64, "code": "of sm_90 only", "asked": [], "library_calls": {}, "known": []}
    return msgspec.convert({**stored, **changed}, About)


WRONG = [
    json.dumps({**msgspec.structs.asdict(plain_about()), key: value})
    for key, value in (
        ("release", "../x"), ("release", "v2.15.0\n"), ("python", "3"), ("python", "3.12\n"), ("asked", [1]),
        ("asked", ["\x1b[31m"]), ("library_calls", []), ("library_calls", {"case": 1}), ("architecture", "90"),
        ("sha256", "0"), ("code", "\x1b[31m"), ("more", 1), ("\x1b[31m", 1),
    )
]  # fmt: skip


@pytest.mark.parametrize("text", [*WRONG, "[]", "{}", "null", "", "\xff", "[" * 200_000])
def test_what_says_nothing_of_a_carried_release_is_refused(tmp_path, text):
    (tmp_path / carried.ABOUT).write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match="no carried release") as refused:
        About.read(tmp_path / carried.ABOUT)
    assert is_a_sentence(str(refused.value))


MACHINE = Machine(
    "python3", "2.11.0+cu130", "13.0", "3.12", [], [], "/usr", ["nvidia-cublas==13.1.0.3", "torch==2.11.0"]
)


@pytest.fixture
def older(tmp_path) -> Path:
    """A folder with an environment of 2.15.0, and beside it what was unpacked to replace it."""
    for name in ("carried/v2.15.0/lib", "unpacked/site/torch", "unpacked/stubs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "carried" / "v2.15.0" / MARK).write_text("older")
    return tmp_path


def settled(folder: Path, **changed: Any) -> None:
    python = "{}.{}".format(*sys.version_info)
    machine = Machine(sys.executable, "2.11.0", "13.0", python, [], [], sys.prefix, [])
    about = plain_about(**{"python": python, **changed})
    carried.settle(folder / "unpacked", about, "0" * 64, machine, folder / "carried")


@pytest.mark.parametrize(
    ("is_killed_before", "changed", "words"),
    [
        *((False, {"python": "3.8"}, "Python 3.8"), (False, {"cuda": "12.8"}, "CUDA 12.8")),
        (False, {"asked": ["cublasCreate"]}, "asks this machine's libraries for cublasCreate"),
        (True, {"asked": ["cublasCreate"]}, "asks this machine's libraries for cublasCreate"),
    ],
)
def test_a_release_that_does_not_fit_is_refused_and_leaves_the_one_that_is_there(
    older, is_killed_before, changed, words
):
    if is_killed_before:
        (older / "carried" / "v2.15.0").rename(older / "carried" / ".v2.15.0.before")
        (older / "carried" / "v2.15.0").mkdir()
    with pytest.raises(UserError, match=words):
        settled(older, **changed)
    assert [path.name for path in (older / "carried").iterdir()] == ["v2.15.0"]
    assert (older / "carried" / "v2.15.0" / MARK).read_text() == "older"


def test_a_folder_of_somebody_elses_that_is_named_like_a_release_is_left_alone(older):
    (older / "carried" / "v2.15.0" / MARK).unlink()
    with pytest.raises(UserError, match=r"v2\.15\.0 is not this program's"):
        settled(older)
    assert [path.name for path in (older / "carried").glob("**/*")] == ["v2.15.0", "lib"]


def test_a_release_that_fits_replaces_the_one_that_is_there(older, monkeypatch):
    monkeypatch.setattr(carried, "_finish", lambda target, *others: (target / MARK).write_text("newer"))
    settled(older)
    assert [path.name for path in (older / "carried").iterdir()] == ["v2.15.0"]
    assert (older / "carried" / "v2.15.0" / MARK).read_text() == "newer"
    assert len([*(older / "carried").glob("v2.15.0/lib/python*/site-packages/torch")]) == 1


def test_the_recorders_cases_say_what_calls_a_library_on_any_card(tmp_path):
    for machine, calls in (("a", {}), ("b", {"cublasGemmEx": 3})):
        (tmp_path / machine).mkdir()
        found = {"q.Q 'v' 'a size'": {"kernels": {"k": 1}, "library_calls": calls}}
        add_details(tmp_path / machine / "v2.15.0-release-py3.11.recorded", "s", found)
    assert carry.recorded_calls(tmp_path, "v2.15.0") == {"q.Q 'v' 'a size'": {"cublasGemmEx"}}
    with pytest.raises(UserError, match=r"--device recorder 2\.14\.1"):
        carry.recorded_calls(tmp_path, "v2.14.1")


KNOWN = {"cuda": "13.0", "library_calls": {case_of("saved", "plain", "loop"): ["cublasGemmEx"]}, "known": ["saved"]}


@pytest.mark.parametrize(
    ("question", "variant", "device", "words"),
    [
        *(("saved", "plain", "cuda", "calls cublasGemmEx"), ("saved", "plain", "cpu", "")),
        *(("saved", "numpy", "cuda", ""), ("warm_up", "eager", "cuda", "does not count")),
        *(("warm_up", "eager", "cpu", ""), ("saved", "compiled", "cpu", "no Triton of its own")),
    ],
)
def test_what_would_not_test_the_release_is_refused_in_words(question, variant, device, words):
    found = refusal(KNOWN, question, variant, "loop", device)
    assert words in found if words else found == ""


PYTHON = "3.11"
COUNTED_ON = "amd-epyc-family-26-model-2-2-cores"


@pytest.fixture(scope="module")
def machine_python(tmp_path_factory) -> Iterator[Path]:
    """The interpreter of a machine that has PyTorch 2.11.0."""
    folder = tmp_path_factory.mktemp("there") / "machine"
    python = folder / "bin" / "python"
    run_uv(["venv", "--python", PYTHON, str(folder)])
    run_uv(["pip", "install", "--python", str(python), "torch==2.11.0", *HARNESS[1:]])
    yield python
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("digests", "said"),
    [
        ({"sha256": hashlib.sha256(b"a wheel").hexdigest()}, ""),
        ({"sha256": "0" * 64}, "did not arrive whole: its sha256 is not the index's"),
        ({"md5": hashlib.md5(b"a wheel").hexdigest()}, "or tells no sha256 of it"),
    ],
)
def test_a_wheel_is_taken_by_its_sha256_alone(digests, said, tmp_path, monkeypatch):
    name = f"torch-2.15.0-cp{PYTHON.replace('.', '')}-cp{PYTHON.replace('.', '')}-manylinux_2_28_x86_64.whl"
    page = SimpleNamespace(packages=[SimpleNamespace(filename=name, url="https://index.example/x", digests=digests)])
    body = SimpleNamespace(headers={}, raise_for_status=lambda: None, iter_content=lambda _: [b"a wh", b"eel"])
    monkeypatch.setattr(carry.PyPISimple, "get_project_page", lambda *_, **__: page)
    monkeypatch.setattr(carry.requests.Session, "get", lambda *_, **__: contextlib.nullcontext(body))
    asked = AXIS.find("2.15.0"), PYTHON, tmp_path, Lock({}, {}), lambda words: None
    with pytest.raises(UserError, match=said) if said else contextlib.nullcontext():
        carry._fetched(*asked)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([] if said else [b"a wheel"])


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Iterator[Path]:
    """The folder in which 2.15.0 was reduced."""
    folder = tmp_path_factory.mktemp("here")
    release = AXIS.find("2.15.0")
    lock = Lock.read(ROOT / "releases.lock")
    carry.prepare(release, PYTHON, 90, folder, ROOT / "results", lock, lambda words: None)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.releases
def test_a_carried_release_counts_as_the_committed_ones_did(work, machine_python, tmp_path, monkeypatch):
    monkeypatch.setattr("tools.carry.pack.FILTERS", "--lzma2=preset=0")  # in less time and into more bytes than usual
    pack(work / "payload", work / "parts", 60 * 2**20)
    assert carried.unpack(work / "parts", tmp_path / "releases", str(machine_python)) == ["v2.11.0", "v2.15.0"]
    make.make(tmp_path / "kit", PYTHON, lambda words: None)
    options = ["--no-ask", "--device", "cpu", "--only", "counts", "--question", "intersection"]
    options += ["--question", "batching", "--carried", str(tmp_path / "releases"), "--within", "20m"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHON": str(machine_python)}
    env["TORCH_HISTORY_MACHINE"] = "far"
    ran(str(tmp_path / "kit" / make.SCRIPT), *options, cwd=tmp_path, env=env)
    results = tmp_path / "kit" / make.SUITE / "results"
    for release in ("v2.11.0", "v2.15.0"):
        now = counted(results, "far", release, f"carried-cuda13.0-py{PYTHON}")
        committed = counted(ROOT / "results", COUNTED_ON, release, "release-py3.11")
        same = now.keys() & committed.keys()
        assert len(same) > 100
        assert {key: now[key] for key in same} == {key: committed[key] for key in same}
    said = read_environment(results, "far", "v2.15.0", f"carried-cuda13.0-py{PYTHON}")["origin"]
    assert "torch 2.15.0 carried" in said
    assert "this machine's: CUDA 13.0" in said


def counted(results: Path, machine: str, release: str, environment: str) -> dict[tuple[str, tuple[str, ...]], float]:
    """Benchmark and case -> its number on the version that is stored last."""
    stored = cases(results, machine, release, environment=environment, questions=("intersection", "batching"))
    counts = [(launch.benchmark, case) for launch, case in stored if metric_of(launch.benchmark).kind == "counts"]
    return {(name, case.parameters): case.value for name, case in counts if case.value is not None}


@pytest.mark.parametrize(("command", "words"), [(make.main, ()), (carry_command, ("2.15.0",))])
def test_a_disk_that_is_full_is_told_in_a_sentence(command, words, tmp_path, monkeypatch):
    full = OSError(28, "No space left on device")
    monkeypatch.setattr(make, "_copy", mock.Mock(side_effect=shutil.Error([("from", "to", str(full))])))
    monkeypatch.setattr(carry, "prepare", mock.Mock(side_effect=full))
    said = CliRunner().invoke(command, [*words, str(tmp_path / "new")]).output
    assert "[Errno 28] No space left on device. " in said
