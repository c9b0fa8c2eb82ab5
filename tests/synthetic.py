"""A results tree of any size, with the shapes that real ones have; what is in it is known, so that a page can be held to it.

Five questions of four metrics (time, peak memory, operators, allocations); sessions of five neighbours that share one,
three rounds; the time of every tenth case grows by a fifth at every fortieth release.
"""

from __future__ import annotations

import datetime
import json
import random
from pathlib import Path

from asv.config import Config

import torch_history.releases.repository  # noqa: F401  asv reads a list of releases with this loaded

ROOT = Path(__file__).resolve().parents[1]
QUESTIONS = ("intersection", "saved_tensors", "warm_up", "batching", "selection")
METRICS = {"time": 3, "peak_memory": 1, "operators": 1, "allocations": 1}
"""Metric -> rounds in which it is measured."""

STEP = 40
NEIGHBOURS = 4


def tag(i: int) -> str:
    """The i-th release: asv tells releases apart by 8 characters."""
    return f"v{1 + i // 900}.{100 + i % 900}.0"


def write_axis(folder: Path, releases: int) -> None:
    first = datetime.date(2000, 1, 1)
    entries = [
        f'[[release]]\nversion = "{tag(i)[1:]}"\ndate = "{first + datetime.timedelta(days=9 * i)}"\n'
        'date_source = "index"\npythons = ["3.11"]\ncuda = "12.1"\n'
        for i in range(releases)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "releases.toml").write_text("\n".join(entries), encoding="utf-8")


def write_tree(folder: Path, releases: int, series: int = 300, machines: int = 2, first: int = 0) -> Config:
    """Writes releases.toml and results/ into `folder`; with `first`, only the results from that release on. Returns the
    configuration to publish it with."""
    write_axis(folder, releases)
    cases = [f"variant_{i}" for i in range(series // (len(QUESTIONS) * len(METRICS)))]
    benchmarks = [
        f"{question}.{question.title().replace('_', '')}.track_{metric}" for question in QUESTIONS for metric in METRICS
    ]
    params = [[repr(case) for case in cases], [repr("small")]]
    (folder / "results").mkdir(exist_ok=True)
    listed = {
        name: {
            "code": "",
            "name": name,
            "param_names": ["variant", "size"],
            "params": params,
            "pretty_name": name,
            "type": "track",
            "unit": "seconds" if name.endswith("_time") else "bytes",
            "version": "1",
        }
        for name in benchmarks
    }
    (folder / "results" / "benchmarks.json").write_text(json.dumps({**listed, "version": 2}), encoding="utf-8")
    for number in range(machines):
        machine = folder / "results" / f"machine-{number}"
        machine.mkdir(exist_ok=True)
        record = {"machine": machine.name, "cpu": f"CPU {number}", "num_cpu": "2", "device": "cpu", "threads": "1"}
        (machine / "machine.json").write_text(
            json.dumps({**record, "arch": "x86_64", "os": "Linux", "ram": "24 GiB", "version": 1}), encoding="utf-8"
        )
        for i in range(first, releases):
            _write_release(machine, i, benchmarks, cases, params)
    config = Config.from_json(json.loads((ROOT / "asv.conf.json").read_text(encoding="utf-8")))
    config.repo = str(folder / "releases.toml")
    config.results_dir = str(folder / "results")
    config.env_dir = str(folder / "env")
    config.html_dir = str(folder / "html" / "asv")
    return config


def number(machine: str, i: int, benchmark: str, case: int, round: int) -> float:
    """What is stored for a launch: seconds that differ by 1 % between launches, or a count that changes at a step."""
    steps = i // STEP if case % 10 == 0 else 0
    if not benchmark.endswith("_time"):
        return float(1000 * (case + 1) + steps)
    noise = random.Random(f"{machine} {i} {benchmark} {case} {round}").gauss(0, 0.01)
    return float(f"{(case + 1) * 1e-3 * 1.2**steps * (1 + noise):.7g}")


def _write_release(machine: Path, i: int, benchmarks: list[str], cases: list[str], params: list[list[str]]) -> None:
    sessions = [i // NEIGHBOURS] + ([i // NEIGHBOURS - 1] if i % NEIGHBOURS == 0 and i else [])
    lines, results = [], {}
    for name in benchmarks:
        for session in sessions:
            for round in range(1, METRICS[name.rpartition(".track_")[2]] + 1):
                numbers = [number(machine.name, i, name, case, round + 10 * session) for case in range(len(cases))]
                timed = name.endswith("_time")
                found = [
                    {"parameters": [variant, size], **({"samples": [value] * 3} if timed else {"value": value})}
                    for variant, value, size in zip(params[0], numbers, params[1] * len(numbers), strict=True)
                ]
                lines.append(
                    {
                        "session": f"session-{session:04}",
                        "round": round,
                        "launch": f"{session:04x}{round:02x}{i:04x}",
                        "release": tag(i),
                        "environment": "release-py3.11",
                        "benchmark": name,
                        "version": "1",
                        "started_at": f"2026-01-01T{session // 60 % 24:02}:{session % 60:02}:{round:02}+00:00",
                        "duration": 1.0,
                        "facts": {"conditions": {"load": 0.1}},
                        "cases": found,
                    }
                )
        results[name] = [numbers, params, "1", 1767225600000, 1.0]
    asvs = {
        "commit_hash": tag(i),
        "env_name": "release-py3.11",
        "date": 1767225600000,
        "params": {"machine": machine.name, "cpu": machine.name, "python": "3.11"},
        "python": "3.11",
        "requirements": {},
        "env_vars": {},
        "result_columns": ["result", "params", "version", "started_at", "duration"],
        "results": results,
        "durations": {},
        "version": 2,
    }
    path = machine / f"{tag(i)}-release-py3.11"
    Path(f"{path}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    Path(f"{path}.json").write_text(json.dumps(asvs), encoding="utf-8")
    facts = {"python": "3.11.7", "numpy": "1.26.4", "mkl": f"20{10 + i // 50}", "packages": [f"torch=={tag(i)[1:]}"]}
    Path(f"{path}.environments").write_text(
        json.dumps({"id": "00000000", "environment": facts}) + "\n", encoding="utf-8"
    )
