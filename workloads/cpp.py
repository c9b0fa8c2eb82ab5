"""Operators written in C++ with the torch library that the wheel carries, built once per environment.

`operators("selection")` builds `workloads/selection.cpp`, which registers `TORCH_LIBRARY(torch_history_selection, ...)`. The
compiler is called directly: importing torch.utils.cpp_extension asks for CUDA, and forks afterwards could not use a GPU.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NoReturn

import torch

from . import Unavailable

COMPILERS = ("g++", "clang++")

TEMPORARY = tempfile.gettempdir()
"""The folder for files of a while as it is at import; one that a measurement sets for a while holds nothing to keep."""


@functools.cache
def operators(name: str):
    """The operators of `workloads/<name>.cpp`, a namespace of torch.ops.

    Raises Unavailable where no compiler can build them for this wheel, RuntimeError where the source is wrong.
    """
    path = library(Path(__file__).with_name(f"{name}.cpp"))
    torch.ops.load_library(str(path))
    return getattr(torch.ops, f"torch_history_{name}")


def library(source: Path) -> Path:
    """The shared library built from `source`, from an earlier build where source, torch, flags and compiler are the same."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise Unavailable(f"{source.name} needs a C++ compiler, and neither {' nor '.join(COMPILERS)} is installed")
    identity = [source.read_text(encoding="utf-8"), torch.__version__, torch.__file__, _compiler(compiler), *_flags()]
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:16]
    folder = _folder()
    built, failed = (folder / f"{source.stem}-{digest}{ending}" for ending in (".so", ".failed"))
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if failed.exists():
            _refuse(source, failed.read_text(encoding="utf-8"))
        if not built.exists():
            scratch = folder / f".{built.name}.{os.getpid()}"
            command = [compiler, str(source), "-o", str(scratch), *_flags()]
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
            if answer.returncode:
                scratch.unlink(missing_ok=True)
                if answer.returncode > 0 and not re.search("Killed|No space left", answer.stderr):
                    failed.write_text(answer.stderr, encoding="utf-8")
                _refuse(source, answer.stderr)
            scratch.replace(built)
    return built


def standard() -> str:
    """The C++ standard that this wheel was built with and its headers need, such as c++17."""
    found = re.search(r"C\+\+ Version: (\d{4})", torch.__config__.show())
    return {"2014": "c++14", "2017": "c++17", "2023": "c++23"}.get(found[1] if found else "", "c++20")


def _flags() -> list[str]:
    root = Path(torch.__file__).parent
    includes = [root / "include", root / "include" / "torch" / "csrc" / "api" / "include"]
    libraries = root / "lib"
    return [
        "-O2",
        "-shared",
        "-fPIC",
        "-w",
        f"-std={standard()}",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
        *[f"-I{include}" for include in includes],
        f"-L{libraries}",
        f"-Wl,-rpath,{libraries}",
        "-lc10",
        "-ltorch",
        "-ltorch_cpu",
    ]


def _compiler(path: str) -> str:
    """The first line of what the compiler says of itself, its version in it."""
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.partition("\n")[0]


def _folder() -> Path:
    """Where libraries are kept: in the environment that is measured, else in one of this user's for files of a while."""
    environment = os.environ.get("ASV_ENV_DIR")
    if environment and os.access(environment, os.W_OK):
        folder = Path(environment, "cpp")
    else:
        folder = Path(TEMPORARY, f"torch-history-cpp-{os.getuid()}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise RuntimeError(f"{folder} belongs to another user, whose libraries are not loaded: remove it or set TMPDIR")
    return folder


def _refuse(source: Path, said: str) -> NoReturn:
    errors = [line.strip() for line in said.splitlines() if "error" in line] or [said.strip()[-300:]]
    if re.search(r"(unrecognized|invalid value).*-std=", said):
        raise Unavailable(f"{source.name} needs a compiler that knows {standard()}: {errors[0]}")
    raise RuntimeError(f"{source.name} was not built: {errors[0]}")
