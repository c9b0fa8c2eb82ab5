"""How does somebody else see it? By a script of plain PyTorch: all that the variant's expression uses is copied."""

import ast
import functools
from pathlib import Path
from typing import Any

from contract.metrics import METRICS, SEQUENCE

from ..system.errors import UserError
from .counting import COUNTED
from .launching import Subject

SEED = 20240229  # as in benchmarks/common.py

OURS = "workloads"

TABLES = ("functions", "variants")  # names of what a workload calls, by variant
OF_OWN_FILES = ("setup", "before")  # make what functions are called with, and prepare each call

AS_TUPLE = "arguments = arguments if isinstance(arguments, tuple) else (arguments,)"

_TIMING = """
torch.manual_seed({seed})
{prepare}
for _ in range(3):
    call()
timer = torch.utils.benchmark.Timer("call()", globals={"call": call}, num_threads={threads}, timer=time.{clock})
print("seconds a call:", min(timer.blocked_autorange(min_run_time=1).times))
"""

_FIRST_CALL = """
torch.set_num_threads({threads})
torch.manual_seed({seed})
# The compilers of torch begin with empty caches.
os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.environ["TMPDIR"] = tempfile.mkdtemp()
{prepare}
{before}begin = time.perf_counter()
call()
print("seconds:", time.perf_counter() - begin)
"""

_COUNTING = """
torch.set_num_threads({threads})
torch.manual_seed({seed})
{prepare}
for _ in range(3):
    call()


def counted(call):
    try:
        from torch.autograd.profiler_legacy import profile
    except ImportError:  # Before torch 1.10.
        from torch.autograd.profiler import profile
    # This profiler is old, but only its records are in order.
    torch.autograd._enable_profiler_legacy(profile(profile_memory=True).config())
    result = call()
    records = [record for thread in torch.autograd._disable_profiler_legacy() for record in thread]
    # Each change of the allocated bytes.
    changes = [record.cpu_memory_usage() for record in records if record.kind() == "memory_alloc"]
    # The highest level is the peak.
    level = peak = 0
    for change in changes:
        level += change
        peak = max(peak, level)
    return {
        "peak_memory": peak,
        "retained": level,
        "allocations": sum(change > 0 for change in changes),
        "operators": sum(record.kind() == "push" and "::" in record.name() for record in records),
    }


print("{metric} a call:", counted(call)["{metric}"])
"""


class CannotReproduce(UserError):
    """No script can be made of this case; the text says why."""


_parsed = functools.cache(ast.parse)  # nobody changes a tree: `_Copy` makes new nodes


class _Source:
    """One module: its statements, and which of them defines a name."""

    def __init__(self, path: Path) -> None:
        self.path, self.body = path, _parsed(path.read_text(encoding="utf-8")).body
        self.defines: dict[str, list[ast.stmt]] = {}
        for statement in self.body:
            for name in _defined(statement):
                self.defines.setdefault(name, []).append(statement)

    def names(self, table: str, variant: str) -> bool:
        """Whether a table has the variant as a literal key."""
        value = getattr(self.defines[table][-1], "value", None) if table in self.defines else None
        return isinstance(value, ast.Dict) and any(getattr(key, "value", None) == variant for key in value.keys)


def script(subject: Subject, head: str, clock: str = "cpu") -> str:
    """A script that prints the seconds of a call, or what it counts; `head` is its comment. Raises CannotReproduce."""
    own = subject.workload.endswith(".py")
    if subject.metric == "worst_call" or (subject.is_once and METRICS[subject.metric].measured != SEQUENCE):
        raise CannotReproduce(
            "What is measured is a new process, or one of many calls, and no call that a script could make."
        )
    path = Path(subject.text or subject.workload) if own else subject.root / OURS / f"{subject.workload}.py"
    copied = _Copy(subject.root / OURS)
    source = copied.source(path)
    table = _table_with(source, subject.variant)
    copied.reduce = {table: subject.variant, "sizes": subject.size}
    for name in (table, "inputs", *(OF_OWN_FILES if own else ())):
        copied.need(source, name)
    imports, measuring = ["torch"], _COUNTING
    if subject.metric not in COUNTED:
        imports = ["os", "tempfile", "time", "torch"] if subject.is_once else ["time", "torch", "torch.utils.benchmark"]
        measuring = _FIRST_CALL if subject.is_once else _TIMING
    filled = {
        "seed": str(SEED),
        "prepare": _prepared(source, table, subject, own),
        "metric": subject.metric,
        "before": "call()\n" if subject.metric == "second_call" else "",
        "threads": str(subject.threads),
        # The processor's time adds up over threads.
        "clock": "process_time" if subject.threads == 1 and clock != "wall" else "perf_counter",
    }
    for name, value in filled.items():
        measuring = measuring.replace("{" + name + "}", value)
    comment = "".join(f"# {line}".rstrip() + "\n" for line in head.splitlines())
    lines = "\n".join(f"import {name}" for name in imports)
    body = "\n\n\n".join(copied.text())
    return f"{comment}from __future__ import annotations\n\n{lines}\n\n{body}\n{measuring}"


def names(path: Path, variant: str) -> bool:
    """Whether a workload's table names the variant literally, so that a script can hold it alone."""
    source = _Source(path)
    return any(source.names(table, variant) for table in TABLES)


def _prepared(source: _Source, table: str, subject: Subject, own: bool) -> str:
    """The lines that make `call`."""
    offered = {"size": repr(subject.size), "device": "'cpu'", "seed": str(SEED)}
    inputs = source.defines["inputs"][-1]
    arguments = inputs.args if isinstance(inputs, ast.FunctionDef) else None
    names = [each.arg for each in (*arguments.args, *arguments.kwonlyargs)] if arguments else []
    given = ", ".join(f"{name}={offered[name]}" for name in names if name in offered)
    lines = [f"arguments = inputs({given})"]
    if own:
        lines.append(AS_TUPLE)
    if own and "setup" in source.defines:
        lines += ["arguments = setup(*arguments)", AS_TUPLE]
    entry = f"{table}[{subject.variant!r}]"
    lines.append(f"call = lambda: {entry}(*arguments)" if table == "functions" else f"call = {entry}(arguments)")
    if own and "before" in source.defines:
        lines += ["# Each call is prepared, and that is timed too.", "prepared = call"]
        lines.append("call = lambda: (before(*arguments), prepared())[1]")
    if subject.is_once and not own:
        lines += ["# Each call takes the next argument.", "each, called = iter(arguments), call"]
        lines.append("call = lambda: called(next(each))")
    if subject.metric == "forward_time":
        lines.append("call = call.forward")
    return "\n".join(lines)


def _table_with(source: _Source, variant: str) -> str:
    """The table that names the variant; the last one where none does so literally. Raises CannotReproduce."""
    tables = [name for name in TABLES if name in source.defines]
    if not tables:
        raise CannotReproduce(f"{source.path.name} defines no functions by name, so no script can be made of it.")
    return next((name for name in tables if source.names(name, variant)), tables[-1])


class _Copy:
    """The definitions that a script needs, in the order of their sources."""

    def __init__(self, ours: Path) -> None:
        self._ours = ours
        self.source = functools.cache(_Source)
        self._needed: dict[Path, set[int]] = {}
        self._owner: dict[str, tuple[Path, ast.stmt]] = {}
        self.reduce: dict[str, str] = {}
        """Table -> the one key of it that is copied."""

    def need(self, source: _Source, name: str) -> None:
        """Copies what defines `name` in `source`, and what that uses."""
        for statement in source.defines.get(name, []):
            self._copy(source, name, statement)

    def _copy(self, source: _Source, name: str, statement: ast.stmt) -> None:
        needed = self._needed.setdefault(source.path, set())
        if id(statement) in needed:
            return
        if isinstance(statement, ast.ImportFrom) and (module := self._ours_of(statement)):
            self.need(module, next(alias.name for alias in statement.names if (alias.asname or alias.name) == name))
            return
        owner, known = self._owner.setdefault(name, (source.path, statement))
        if owner != source.path and not (_is_import(known) and _is_import(statement)):
            raise CannotReproduce(f"{name} is defined in two modules, so one script cannot hold both.")
        needed.add(id(statement))
        names = (node.id for node in ast.walk(self._reduced(statement)) if isinstance(node, ast.Name))
        for used in dict.fromkeys(names):
            self.need(source, used)

    def text(self) -> list[str]:
        """Imports first, then the modules that others use."""
        imports: list[str] = []
        rest: list[str] = []
        for path in reversed(list(self._needed)):
            for statement in self.source(path).body:
                if id(statement) in self._needed[path]:
                    (imports if _is_import(statement) else rest).append(ast.unparse(self._reduced(statement)))
        shown = dict.fromkeys(line for line in imports if line != "import torch")
        return [*(["\n".join(shown)] if shown else []), *rest]

    def _ours_of(self, statement: ast.ImportFrom) -> _Source | None:
        """The module of `workloads` that a statement imports from, None for others'."""
        module = statement.module or ""
        if not statement.level and module.partition(".")[0] != OURS:
            return None
        name = module.removeprefix(OURS).removeprefix(".") or "__init__"
        if name == "cpp":
            raise CannotReproduce("Its code is C++, which a script of Python does not hold.")
        return self.source(self._ours / f"{name}.py")

    def _reduced(self, statement: ast.stmt) -> ast.stmt:
        """A table of many keys with the one that is wanted."""
        names = [name for name in _defined(statement) if name in self.reduce]
        value = getattr(statement, "value", None)
        if not names or not isinstance(value, ast.Dict):
            return statement
        wanted = self.reduce[names[0]]
        pairs = [(k, v) for k, v in zip(value.keys, value.values, strict=True) if getattr(k, "value", None) == wanted]
        if not pairs:
            return statement
        reduced = ast.Dict(keys=[pairs[0][0]], values=[pairs[0][1]])
        return ast.Assign(targets=[ast.Name(names[0], ast.Store())], value=reduced, lineno=statement.lineno)


def _defined(statement: ast.stmt) -> list[str]:
    """Names that a statement of a module gives a meaning."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in statement.names]
    targets: list[Any] = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    nodes = (node for target in targets if target is not None for node in ast.walk(target))
    return [node.id for node in nodes if isinstance(node, ast.Name)]


def _is_import(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import | ast.ImportFrom)
