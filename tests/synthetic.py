"""A results tree of any size, whose numbers are known: five questions of four metrics, sessions of five neighbours that
share one, three rounds; the time of every tenth case grows by a fifth at every fortieth release."""

import datetime
import itertools
import json
import random
from pathlib import Path
from typing import Any

from asv.config import Config

import torch_history.releases.repository  # noqa: F401  asv reads a list of releases with this loaded

from .processes import ROOT
from .result_files import benchmark, launch_line, write_axis, write_benchmarks, write_machine, write_release

QUESTIONS = ("intersection", "saved_tensors", "warm_up", "batching", "selection")
METRICS = {"time": 3, "peak_memory": 1, "operators": 1, "allocations": 1}
"""Metric -> rounds in which it is measured."""

ENVIRONMENT = "release-py3.11"
STEP = 40
NEIGHBOURS = 4


def tag(i: int) -> str:
    """The i-th release: asv tells releases apart by 8 characters."""
    return f"v{1 + i // 900}.{100 + i % 900}.0"


def write_tree(folder: Path, releases: int, series: int, machines: int = 2) -> Config:
    """Writes releases.toml and results/ into `folder`. Returns the configuration to publish it with."""
    first = datetime.date(2000, 1, 1)
    folder.mkdir(parents=True, exist_ok=True)
    dates = {tag(i)[1:]: str(first + datetime.timedelta(days=9 * i)) for i in range(releases)}
    write_axis(folder / "releases.toml", dates)
    cases = [f"variant_{i}" for i in range(series // (len(QUESTIONS) * len(METRICS)))]
    benchmarks = [
        f"{question}.{question.title().replace('_', '')}.track_{metric}" for question in QUESTIONS for metric in METRICS
    ]
    params = [[repr(case) for case in cases], [repr("small")]]
    units = {name: "seconds" if name.endswith("_time") else "bytes" for name in benchmarks}
    listed = {name: benchmark(name, "1", params, unit) for name, unit in units.items()}
    write_benchmarks(folder / "results", listed)
    for number in range(machines):
        machine = folder / "results" / f"machine-{number}"
        write_machine(machine, cpu=f"CPU {number}")
        for i in range(releases):
            _write_release(machine, i, listed)
    names = {"repo": "releases.toml", "results_dir": "results", "env_dir": "env", "html_dir": "html/asv"}
    places = {name: str(folder / path) for name, path in names.items()}
    return Config.from_json({**json.loads((ROOT / "asv.conf.json").read_text(encoding="utf-8")), **places})


def number(machine: str, i: int, benchmark: str, case: int, round: int) -> float:
    """What is stored for a launch: seconds that differ by 1 % between launches, or a count that changes at a step."""
    steps = i // STEP if case % 10 == 0 else 0
    if not benchmark.endswith("_time"):
        return float(1000 * (case + 1) + steps)
    noise = random.Random(f"{machine} {i} {benchmark} {case} {round}").gauss(0, 0.01)
    return float(f"{(case + 1) * 1e-3 * 1.2**steps * (1 + noise):.7g}")


def _write_release(machine: Path, i: int, listed: dict[str, dict[str, Any]]) -> None:
    sessions = [i // NEIGHBOURS] + ([i // NEIGHBOURS - 1] if i % NEIGHBOURS == 0 and i else [])
    lines, newest = [], {}
    for name, session in itertools.product(listed, sessions):
        variants, (size,) = listed[name]["params"]
        for round in range(1, METRICS[name.rpartition(".track_")[2]] + 1):
            numbers = [number(machine.name, i, name, case, round + 10 * session) for case in range(len(variants))]
            found = [{"samples": [one] * 3} if name.endswith("_time") else {"value": one} for one in numbers]
            cases = [{"parameters": [of, size], **number} for of, number in zip(variants, found, strict=True)]
            more = {"round": round, "launch": f"{session:04x}{round:02x}{i:04x}", "session": f"session-{session:04}"}
            more |= {"facts": {"conditions": {"load": 0.1}}}
            more |= {"started_at": f"2026-01-01T{session // 60 % 24:02}:{session % 60:02}:{round:02}+00:00"}
            lines.append(launch_line(tag(i), name, "1", cases, ENVIRONMENT, **more))
            newest[name] = numbers
    write_release(machine, tag(i), ENVIRONMENT, lines, listed, newest)
    facts = {"python": "3.11.7", "numpy": "1.26.4", "mkl": f"20{10 + i // 50}", "packages": [f"torch=={tag(i)[1:]}"]}
    text = json.dumps({"id": "00000000", "environment": facts})
    (machine / f"{tag(i)}-{ENVIRONMENT}.environments").write_text(text + "\n", encoding="utf-8")
