"""What runs in a call? Where in which library the processor is, which operators and which of Python's functions are called.

For a record of what a release's code is (`python -m tools.fingerprint`): it changes no version of a benchmark.
"""

from __future__ import annotations

import ast
import cProfile
import functools
import hashlib
import os
import pstats
import subprocess
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable

from contract.bare import bare

from . import explain

KERNEL, UNNAMED = "[kernel]", "[code made at run time]"


def running(call: Callable[[], object], length: float, file: str) -> dict:
    """`samples`: a library's path -> offset in the file -> samples of `perf` within `length` seconds. `operators`: name ->
    [share of the operators' own time, calls a call, share with all that it calls]. `functions`: name -> [calls a call,
    digest]; that of a function outside site-packages is empty. Raises CannotProfile where perf cannot look."""
    explain.by_symbol(call, length, file)
    samples = _samples(file, _mapped())
    os.unlink(file)
    return {"samples": samples, "operators": _operators(call), "functions": _functions(call)}


def _mapped() -> list:
    """Begin, end, offset and path of each range of this process' memory that can run."""
    found = []
    with open("/proc/self/maps", encoding="utf-8") as lines:
        for line in lines:
            parts = line.strip().split(None, 5)
            if "x" in parts[1]:
                begin, end = (int(part, 16) for part in parts[0].split("-"))
                found.append((begin, end, int(parts[2], 16), parts[5] if len(parts) > 5 else UNNAMED))
    return found


def _samples(file: str, mapped: list) -> dict:
    command = ["perf", "script", "-i", file, "--no-inline", "-F", "ip", "--symfs", "/nonexistent"]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    begins = [begin for begin, *_ in mapped]
    found: dict = defaultdict(Counter)
    for word in text.split():
        address = int(word, 16)
        place = bisect_right(begins, address) - 1
        path, offset = UNNAMED, 0
        if address >> 47:
            path = KERNEL
        elif place >= 0 and address < mapped[place][1] and mapped[place][3].startswith("/"):
            path, offset = mapped[place][3], address - mapped[place][0] + mapped[place][2]
        found[path][offset] += 1
    return found


def _operators(call: Callable[[], object]) -> dict:
    """Operators below the call, as PyTorch's profiler names them."""
    events, _ = explain._profiled(call, 1)
    whole = sum(event.self_cpu_time_total for event in events) or 1
    found: dict = {}
    for event in events:
        row = found.setdefault(event.name, [0.0, 0, 0.0])
        row[0] += event.self_cpu_time_total / whole
        row[1] += 1
        row[2] += event.cpu_time_total / whole
    return {name: [round(share, 4), calls, round(inside, 4)] for name, (share, calls, inside) in found.items()}


def _functions(call: Callable[[], object]) -> dict:
    """Python's functions that are called, as `torch/_tensor.py Tensor.backward`; those written in C by their own name."""
    profiler = cProfile.Profile()
    profiler.enable()
    call()
    profiler.disable()
    found: dict = {}
    for (path, line, name), row in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        if path == __file__ or "_lsprof" in name:
            continue
        named, digest = _named(path, line, name)
        found.setdefault(named, [0, digest])[0] += row[1]
    return found


def _named(path: str, line: int, name: str) -> tuple:
    """A function's name, which two releases share, and the digest of what it does."""
    if "site-packages/" not in path:
        return explain._function(path, name), ""
    qualified, digest = _digests(path).get(line, (name, ""))
    return f"{path.rpartition('site-packages/')[2]} {qualified}", digest


@functools.cache
def _digests(path: str) -> dict:
    """First line of each function of a file -> its qualified name and a digest of its code: no docstring, no annotations."""
    try:
        with open(path, encoding="utf-8") as stream:
            tree = ast.parse(stream.read())
    except (OSError, SyntaxError, ValueError):
        return {}
    found: dict = {}
    _walk(tree, "", found)
    return found


def _walk(node: ast.AST, prefix: str, found: dict) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
            _walk(child, f"{prefix}{child.name}.", found)
            code = ast.dump(bare(child)).encode()
            found[first] = f"{prefix}{child.name}", hashlib.blake2b(code, digest_size=8).hexdigest()
        else:
            _walk(child, f"{prefix}{child.name}." if isinstance(child, ast.ClassDef) else prefix, found)
