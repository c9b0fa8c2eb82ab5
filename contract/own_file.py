"""What may be said in a user's own file? The names that are read of it; docs/own-workload.md says what each is for."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterable
from typing import Any

from .metrics import METRICS, PROCESS, RESIDENT, SEQUENCE, STEADY

KEYS = (
    *("inputs", "functions", "variants", "iterators", "command", "commands", "setup", "before", "expected", "check"),
    *("sizes", "METRICS", "TOLERANCE", "WARM_UP_CALLS", "threads", "needs", "requirements"),
)

CALLED = ("functions", "variants", "iterators")
NAMING = (*CALLED, "command", "commands")
"""Those that name what is measured, in a process of ours or as one of its own."""

TESTS, SCRIPT = "tests", "script"
"""What is measured of a file that has none of NAMING: its test functions, else all of it as a process."""

LITERALS: dict[str, tuple[type, ...]] = {"threads": (int,), "needs": (list, tuple), "requirements": (list, tuple)}
"""Those that are read before the file is run, so they are written out in it -> their types."""

CLASSES = {STEADY: "Own", SEQUENCE: "FirstCalls", RESIDENT: "Memory", PROCESS: "Command"}
"""How a metric is measured -> the class of its benchmarks, such as `mine.Own.track_time`."""


MEASURABLE = tuple(
    metric.name for metric in METRICS.values() if metric.measured in CLASSES and metric.source != "counted"
)
"""What a user's own file may name in METRICS, in the order in which it is listed. The recorder counts more by itself."""

LONGEST_NAME = 100
"""Characters of a name of a function or a size: it stands in sentences, and with others in the name of a file."""

NEEDED = ".needs"
"""The ending of a file that is kept with the text of a user's file: the digests of the files that it needs."""


def assigned(tree: ast.Module) -> dict[str, Any]:
    """The names that a file gives at its top -> the tree of the value, None where it is no assignment."""
    found: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = None
        elif isinstance(node, ast.Assign):
            found.update({target.id: node.value for target in node.targets if isinstance(target, ast.Name)})
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node.value
    return found


def form_of(tree: ast.Module, naming: Collection[str] = NAMING) -> tuple[str, list[str]]:
    """What a file is that gives nothing of `naming`: TESTS with the names of its functions `test_*` that take nothing, as
    pytest would call them, or SCRIPT. Empty for a file that names something, or may: one with a function `inputs`, or that
    imports all names of another."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    named = {node.name for node in functions}
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in naming:
            named.add("*")
        elif isinstance(node, ast.alias):
            named.add(node.asname or node.name)
    if named & {*naming, "inputs", "*"}:
        return "", []
    free = [node.name for node in functions if node.name.startswith("test_") and not ast.unparse(node.args)]
    return (TESTS, free) if free else (SCRIPT, [])


def nearest(name: str, known: Iterable[str]) -> str:
    """` Did you mean `time`?`, or nothing where no known name is near."""
    by_lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), by_lower, 1, 0.8)
    return f" Did you mean `{by_lower[found[0]]}`?" if found else ""
