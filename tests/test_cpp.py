"""Is C++ built once, anew where it must be, and refused in a sentence where it cannot be? With a compiler that is played,
and one real build."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .processes import program
from .torch_here import torch

# isort: split

from workloads import Unavailable, cpp


@pytest.fixture
def source(tmp_path, monkeypatch) -> Path:
    """A file of C++, in an environment of its own."""
    monkeypatch.setenv("ASV_ENV_DIR", str(tmp_path))
    path = tmp_path / "half.cpp"
    path.write_text("first", encoding="utf-8")
    return path


class Compiler:
    """A g++ that notes each build and then does what the shell commands `does` say, with the output's path in $out."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.builds = folder / "bin" / "g++", folder / "builds"
        self.does('echo library > "$out"')
        monkeypatch.setenv("PATH", f"{self.path.parent}{os.pathsep}{os.environ['PATH']}")

    def does(self, commands: str, version: str = "1") -> None:
        asked = f'if [ "$1" = --version ]; then echo "g++ {version}"; exit 0; fi'
        program(self.path, f'{asked}\nout="$3"; echo build >> "{self.builds}"\n{commands}')

    def count(self) -> int:
        return len(self.builds.read_text().splitlines()) if self.builds.exists() else 0


@pytest.fixture
def compiler(tmp_path, source, monkeypatch) -> Compiler:
    return Compiler(tmp_path, monkeypatch)


def test_no_compiler_is_said(source, monkeypatch):
    monkeypatch.setenv("PATH", str(source.parent))
    with pytest.raises(Unavailable, match=r"needs a C\+\+ compiler, and neither g\+\+ nor clang\+\+ is installed"):
        cpp.library(source)


def test_built_once_and_anew_for_another_source_or_compiler(source, compiler):
    first = cpp.library(source)
    assert first.parent == source.parent / "cpp"
    assert cpp.library(source) == first
    assert compiler.count() == 1
    source.write_text("second", encoding="utf-8")
    second = cpp.library(source)
    compiler.does('echo library > "$out"', version="2")
    assert len({first, second, cpp.library(source)}) == 3
    assert compiler.count() == 3


def test_processes_at_the_same_time_build_once(source, compiler):
    compiler.does('sleep 0.3; echo library > "$out"')
    with ThreadPoolExecutor(4) as pool:  # flock holds between open files, so between threads as between processes
        libraries = set(pool.map(cpp.library, [source] * 4))
    assert compiler.count() == 1
    assert [path.read_text() for path in libraries] == ["library\n"]


def test_failed_build_is_remembered_with_its_first_error(source, compiler):
    compiler.does('echo "half.cpp: In function:\nhalf.cpp:3:5: error: no such thing\nmore error" >&2; exit 1')
    for _ in range(3):
        with pytest.raises(RuntimeError, match=r"half\.cpp was not built: half\.cpp:3:5: error: no such thing$"):
            cpp.library(source)
    assert compiler.count() == 1


def test_killed_build_leaves_nothing_that_is_used(source, compiler):
    compiler.does('echo part > "$out"; kill -9 $$')
    with pytest.raises(RuntimeError):
        cpp.library(source)
    assert list((source.parent / "cpp").glob("*.so")) == []
    compiler.does('echo library > "$out"')
    assert cpp.library(source).read_text() == "library\n"


def test_standard_is_the_one_the_wheel_was_built_with(monkeypatch):
    major, minor = (int(number) for number in torch.__version__.split(".")[:2])
    assert cpp.standard() == ("c++14" if major < 2 else "c++17" if minor < 14 else "c++20")
    monkeypatch.setattr(torch.__config__, "show", lambda: "  - C++ Version: 202302\n")
    assert cpp.standard() == "c++23"


def test_real_build_runs_in_this_process(source):
    source.write_text(
        "#include <ATen/core/Tensor.h>\n#include <torch/library.h>\n"
        "double half(const at::Tensor& x, double y) { return x.data_ptr<float>()[1] / 2 + y; }\n"
        'TORCH_LIBRARY(torch_history_half, m) { m.def("half", half); }\n',
        encoding="utf-8",
    )
    torch.ops.load_library(str(cpp.library(source)))
    assert torch.ops.torch_history_half.half(torch.tensor([1.0, 5.0]), 1) == 3.5
