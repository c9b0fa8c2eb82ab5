"""Does `explain` name a cause that was planted, and no other? A try of one cause takes minutes.

`python -m research.planted_causes 2.15.0` takes one installed torch for both releases and plants one cause after another
into the new one (research/planted/release.py). The program's own `Explanation` explains each by whole launches,
`--tries` times. `--write` puts the table into docs/generated/planted.md.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torch_history.analysis.markdown import escape
from torch_history.explaining.explanation import Explanation, Found
from torch_history.explaining.launching import Side, Subject
from torch_history.explaining.levers import load
from torch_history.measuring.machine import describe

from .page import write_into

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "generated" / "planted.md"
COMMAND = "python -m research.planted_causes --write"
WORKLOAD = Path(__file__).with_name("planted") / "call.py"

OFFSETS = range(0, 64, 4)
LEAST_MOVED = 1.1
"""A moved loop is planted where one of its addresses makes it so much slower than another one."""

LOOP = """
__asm__(".text\\n.p2align 6\\n.skip {offset}, 0x90\\n");
int planted_loop(const int *a, int n) {{
    int odd = 0;
    for (int i = 0; i < n; i++) {{ if (a[i] & 1) odd += a[i]; else odd ^= i; }}
    return odd;
}}
"""

TIMING = """
import ctypes, sys, time
n = 20_000
numbers, function = (ctypes.c_int * n)(*range(n)), ctypes.CDLL(sys.argv[1]).planted_loop
found = []
for _ in range(600):
    began = time.perf_counter(); function(numbers, n); found.append(time.perf_counter() - began)
print(min(found))
"""


@dataclass(frozen=True)
class Plant:
    """A cause: its `name`, variables of both sides, and which places and levers are right: parts of their names."""

    name: str
    words: str
    right: tuple[str, ...]
    new: Mapping[str, str]
    old: Mapping[str, str] = field(default_factory=dict)


OBJECTS = {"PLANTED_OBJECTS": "20"}
PLANTS = (
    Plant("nothing", "nothing: the release with itself", (), {"PLANTED_CAUSE": "nothing"}),
    Plant(
        "operator",
        "a slower operator, by a registered override",
        ("aten::relu", "aten::clamp_min", "slow_relu", "clamp"),
        {"PLANTED_CAUSE": "operator"},
    ),
    Plant("loop", "a loop in a Python function", ("release.py checks",), {"PLANTED_CAUSE": "loop"}),
    Plant(
        "copy",
        "twelve copies more",
        ("aten::copy_", "aten::clone", "Tensor.clone", "release.py entered", "copy", "memcpy", "memmove"),
        {"PLANTED_CAUSE": "copy"},
    ),
    Plant(
        "collector",
        "a garbage collector that runs more often",
        ("collector off", "gc_collect", "collect"),
        {**OBJECTS, "PLANTED_CAUSE": "collector"},
        OBJECTS,
    ),
    Plant(
        "vectors",
        "an environment without ATen's vector instructions",
        ("ATen without vectors", "ATen with AVX2", "aten::sigmoid", "aten::relu", "aten::mul", "aten::sum", "sigmoid"),
        {"ATEN_CPU_CAPABILITY": "default"},
    ),
    Plant(
        "allocator",
        "an environment with another allocator of Python",
        ("Python's allocator off", "malloc", "free"),
        {"PYTHONMALLOC": "malloc"},
    ),
)


def moved(folder: Path) -> list[Plant]:
    """The same loop in two libraries in `folder`, at the addresses where it is quickest and slowest. None without a
    compiler, and where the address makes too little of a difference on this processor."""
    if shutil.which("gcc") is None:
        return []
    took: dict[Path, float] = {}
    for offset in OFFSETS:
        library = folder / str(offset) / "libtwin.so"
        library.parent.mkdir(parents=True)
        source = library.with_suffix(".c")
        source.write_text(LOOP.format(offset=offset), encoding="utf-8")
        flat = ["-O2", "-fno-align-functions", "-fno-align-loops", "-fno-align-jumps", "-fno-if-conversion"]
        subprocess.run(["gcc", "-shared", "-fPIC", *flat, str(source), "-o", str(library)], check=True)
        timed = [sys.executable, "-c", TIMING, str(library)]
        took[library] = float(subprocess.run(timed, capture_output=True, text=True, check=True).stdout)
    old, new = min(took, key=lambda path: took[path]), max(took, key=lambda path: took[path])
    if took[new] / took[old] < LEAST_MOVED:
        return []
    places = ({"PLANTED_LIBRARY": str(path)} for path in (new, old))
    return [Plant("moved", "the same loop at another address", ("planted_loop",), *places)]


def explained(plant: Plant, python: Path, seconds: float = 210.0) -> Found:
    """The program's own explanation of the planted call by whole launches. After `seconds` no lever is pulled; of the
    release with itself none is."""
    subject = Subject(ROOT, str(WORKLOAD), "mixed", "one", "time")
    sides = Side("v1.0.0", python, plant.old), Side("v2.0.0", python, plant.new)
    levers = load() if plant.right else []
    with tempfile.TemporaryDirectory() as folder:
        return Explanation(subject, sides, levers, Path(folder), lambda words: None, seconds).explain()


def names(found: Found) -> list[str]:
    """Of the lever and of the place that a verdict's words tell."""
    pulled = [
        lever.name for lever in found.levers if lever.verdict == found.verdict and f"with {lever.words} " in found.words
    ]
    words = found.words.partition("; of ")[0].replace(", with what it calls,", "")
    held = [place.name for place in found.places if f"{place.name} holds " in words]
    return list(dict.fromkeys([*pulled[:1], *held]))


def is_right(found: Found, plant: Plant) -> bool | None:
    """Whether all that a verdict names was planted; None where it names nothing."""
    named = names(found) if found.verdict in ("CAUSE", "PART") else []
    return all(any(part in name for part in plant.right) for name in named) if named else None


def table(tried: Iterable[tuple[Plant, Sequence[Found]]]) -> str:
    """A row for each cause, with the words of the last try."""
    lines = [
        "| planted | new / old | the last try says | tries | right place | wrong CAUSE | nothing named |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    for plant, every in tried:
        right = [is_right(found, plant) for found in every]
        wrong = [found.verdict == "CAUSE" and of is False for found, of in zip(every, right, strict=True)]
        said = f"{every[-1].verdict}: {escape(every[-1].words)}"
        ratio = statistics.median(found.ratio.ratio for found in every)
        counts = f"{len(every)} | {right.count(True)} | {sum(wrong)} | {right.count(None)}"
        lines.append(f"| {plant.words} | {ratio:.2f} | {said} | {counts} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("release", help="an installed release, such as 2.15.0")
    parser.add_argument("--tries", type=int, default=1)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args()
    python = ROOT / "env" / f"v{asked.release}-py3.11" / "bin" / "python"
    if not python.exists():
        sys.exit(f"{asked.release} is not installed in env/. Install it with `torch-history run {asked.release}`.")
    tried = []
    with tempfile.TemporaryDirectory() as folder:
        for plant in [*PLANTS, *moved(Path(folder))]:
            tried.append((plant, [explained(plant, python) for _ in range(asked.tries)]))
            print(table(tried[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    text = f"torch {asked.release}, {describe().get('cpu', 'a processor')}.\n\n{table(tried)}"
    print(text)
    if asked.write:
        write_into(PAGE, COMMAND, text)


if __name__ == "__main__":
    main()
