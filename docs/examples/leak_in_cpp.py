"""A leak in C++, which no profiler of torch sees: the system's count of the process's memory does."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

SOURCE = """
#include <cstring>
extern "C" int leak(int bytes) { std::memset(new char[bytes], 1, bytes); return bytes; }
extern "C" int clean(int bytes) { char *made = new char[bytes]; std::memset(made, 1, bytes); delete[] made; return bytes; }
"""


def inputs():
    return (2**20,)


def setup(size):
    folder = Path(tempfile.mkdtemp())
    (folder / "leak.cpp").write_text(SOURCE)
    subprocess.run(["g++", "-shared", "-fPIC", "-o", folder / "leak.so", folder / "leak.cpp"], check=True)
    return ctypes.CDLL(str(folder / "leak.so")), size


functions = {"clean": lambda library, size: library.clean(size), "leaking": lambda library, size: library.leak(size)}
METRICS = ("resident_growth",)
