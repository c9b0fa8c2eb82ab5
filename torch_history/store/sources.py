"""Which version of each benchmark do these sources make? A test holds them to `version` in benchmarks/common.py."""

import ast
import functools
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from contract.metrics import HAS_RECORDED, METRICS, RECORDED, metrics_of
from contract.own_file import CLASSES, NEEDED, assigned

from ..system.files import warn
from ..system.program import SOURCES


@functools.cache
def versions(root: Path) -> dict[str, str]:
    """Benchmark -> its version in a checkout; empty where `root` is none. Raises OSError and SyntaxError."""
    if not (root / "benchmarks" / "common.py").is_file():
        return {}
    found: dict[str, str] = {}
    for path in sorted((root / "benchmarks").glob("*.py")):
        for question, workload in _questions(path):
            of = root / "workloads" / f"{workload}.py"
            metrics = metrics_of(ast.literal_eval(_assigned(of)["METRICS"]))
            metrics += RECORDED if {METRICS[metric].measured for metric in metrics} <= HAS_RECORDED else ()
            digests = _digests(root, sorted({of, *_used(of)}), {METRICS[metric].source for metric in metrics})
            found |= {f"{path.stem}.{question}.track_{metric}": digests[METRICS[metric].source] for metric in metrics}
    return found


def here() -> dict[str, str]:
    """`versions` of the suite in the working folder, else of the one that this program came with."""
    return versions(Path.cwd()) or versions(SOURCES)


def own_versions(question: str, text: Path) -> dict[str, str]:
    """Benchmark -> its version for an own file, whose `text` was kept, as `question`. Raises OSError."""
    digests = _digests(SOURCES, [text], {metric.source for metric in METRICS.values()})
    return {
        f"{question}.{CLASSES[metric.measured]}.track_{name}": digests[metric.source]
        for name, metric in METRICS.items()
        if metric.measured in CLASSES
    }


def that_count(seen: Iterable[tuple[str, str, str, str]]) -> dict[tuple[str, str], str]:
    """Environment and benchmark -> the version that counts, of (environment, benchmark, version, time): that of the
    sources here, else the one measured last. A warning names those of which another is dated later."""
    last: dict[tuple[str, str], str] = {}
    stored = set()
    for environment, benchmark, version, _ in sorted(seen, key=lambda one: one[3]):
        last[environment, benchmark] = version
        stored.add((environment, benchmark, version))
    several = len(stored) > len(last)
    ours = here() if several else {}
    counts = {key: ours[key[1]] if (*key, ours.get(key[1])) in stored else version for key, version in last.items()}
    for environment, benchmark in sorted(key for key in counts if counts[key] != last[key]):
        warn(
            f"{benchmark} in {environment} was measured in two versions: {counts[environment, benchmark][:8]} counts, "
            f"because it is that of the sources here. {last[environment, benchmark][:8]} is dated later and is skipped."
        )
    return counts


@functools.cache
def _assigned(path: Path) -> dict[str, Any]:
    return assigned(ast.parse(path.read_bytes()))


def _questions(path: Path) -> list[tuple[str, str]]:
    """Each class of the module that names its workload, with the workload."""
    return [
        (node.name, word.value.id)
        for node in ast.parse(path.read_bytes()).body
        if isinstance(node, ast.ClassDef)
        for word in node.keywords
        if word.arg == "workload" and isinstance(word.value, ast.Name)
    ]


def _used(workload: Path) -> set[Path]:
    """The modules beside a workload that it imports, or something of."""
    nodes = ast.parse(workload.read_bytes()).body
    beside = (node for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 1)
    names = {name for node in beside for name in ([node.module] if node.module else (each.name for each in node.names))}
    return {path for name in names if (path := workload.with_name(f"{name}.py")).is_file()}


def _digests(root: Path, workloads: Sequence[Path], names: Iterable[str]) -> dict[str, str]:
    """Source of metrics, by its name in a checkout's measure/ -> the version that it makes with these workloads."""
    seed = ast.literal_eval(_assigned(root / "benchmarks" / "common.py")["SEED"])  # benchmarks/common.py begins with it
    digests = {}
    for name in names:
        digest = hashlib.sha256(repr(seed).encode())
        for source in (*workloads, root / "measure" / f"{name}.py"):
            for path in (source, source.with_suffix(".cpp"), source.with_suffix(NEEDED)):
                if path.exists():
                    digest.update(path.read_bytes())
        digests[name] = digest.hexdigest()
    return digests
