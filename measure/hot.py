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

from contract.bare import bare, definitions

from . import explain
from .constants import mapped

KERNEL, UNNAMED = "[kernel]", "[code made at run time]"


def running(call: Callable[[], object], length: float, file: str) -> dict:
    """`samples`: a library's path -> offset in the file -> samples of `perf` within `length` seconds. `operators`: name ->
    [share of the operators' own time, calls a call, share with all that it calls]. `functions`: name -> [calls a call,
    digest]; that of a function outside site-packages is empty. Raises CannotLook where perf cannot look."""
    explain.by_symbol(call, length, file)
    samples = _samples(file, [one for one in mapped() if "x" in one[2]])
    os.unlink(file)
    return {"samples": samples, "operators": _operators(call), "functions": _functions(call)}


def _samples(file: str, ranges: list) -> dict:
    """Library -> offset -> samples in a file of perf's; `ranges` of memory that can run are as `mapped` has them."""
    command = ["perf", "script", "-i", file, "--no-inline", "-F", "ip", "--symfs", "/nonexistent"]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    begins = [begin for begin, *_ in ranges]
    found: dict = defaultdict(Counter)
    for word in text.split():
        address = int(word, 16)
        place = bisect_right(begins, address) - 1
        path, offset = UNNAMED, 0
        if address >> 47:
            path = KERNEL
        elif place >= 0 and address < ranges[place][1] and ranges[place][4].startswith("/"):
            path, offset = ranges[place][4], address - ranges[place][0] + ranges[place][3]
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
    for name, node in definitions(tree):
        if not isinstance(node, ast.ClassDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found[first] = name, hashlib.blake2b(ast.dump(bare(node)).encode(), digest_size=8).hexdigest()
    return found
