"""The files of results as a session writes them, with what a test does not care about filled in; and what is read there."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch_history.store.launches import Case, Launch, append_launches, read_launches

MILLISECONDS = 1767225600000
"""2026-01-01, as asv writes a date."""


def write_axis(path: Path, dates: Mapping[str, str], pythons: Sequence[str] = ("3.11",)) -> Path:
    """A releases.toml of these versions with their dates."""
    entries = (
        f'[[release]]\nversion = "{version}"\ndate = "{date}"\ndate_source = "index"\n'
        f'pythons = {[*pythons]}\ncuda = "12.1"\n\n'
        for version, date in dates.items()
    )
    path.write_text("".join(entries), encoding="utf-8")
    return path


def write_machine(folder: Path, **more: str) -> None:
    """The record of the machine that `folder` is named after."""
    folder.mkdir(parents=True, exist_ok=True)
    usual = {"cpu": "A processor", "num_cpu": "2", "arch": "x86_64", "os": "Linux", "ram": "8 GiB", "device": "cpu"}
    record = {"machine": folder.name, **usual, "threads": "1", **more, "version": 1}
    (folder / "machine.json").write_text(json.dumps(record), encoding="utf-8")


def benchmark(name: str, version: str, params: Sequence[Sequence[str]], unit: str) -> dict[str, Any]:
    """A benchmark as asv lists it; `params` are the variants and the sizes, each as its repr."""
    about = {"name": name, "pretty_name": name, "param_names": ["variant", "size"], "params": params, "code": ""}
    return {**about, "version": version, "type": "track", "unit": unit}


def write_benchmarks(results: Path, listed: Mapping[str, Any]) -> None:
    results.mkdir(parents=True, exist_ok=True)
    (results / "benchmarks.json").write_text(json.dumps({**listed, "version": 2}), encoding="utf-8")


def launch_line(
    release: str, name: str, version: str, cases: Sequence[Mapping[str, Any]], environment: str, **more: Any
) -> dict[str, Any]:
    """A launch as a line of a `.jsonl` has it, without its checksum."""
    which = {"session": "s", "round": 1, "launch": release, "release": release, "environment": environment}
    when = {"started_at": "2026-01-01T00:00:00+00:00", "duration": 1.0, "facts": {"torch": release[1:]}}
    return {**which, "benchmark": name, "version": version, **when, **more, "cases": cases}


def write_release(
    machine: Path,
    release: str,
    environment: str,
    lines: Iterable[Mapping[str, Any]],
    listed: Mapping[str, Any],
    numbers: Mapping[str, Sequence[float | None]],
) -> None:
    """A release's launches, and asv's own file: the `numbers` of benchmarks that are `listed`, case by case."""
    path = f"{machine}/{release}-{environment}"
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    Path(f"{path}.jsonl").write_text(text, encoding="utf-8")
    found = {n: [of, listed[n]["params"], listed[n]["version"], MILLISECONDS, 1.0] for n, of in numbers.items()}
    python = environment.rpartition("py")[2]
    record = json.loads((machine / "machine.json").read_text(encoding="utf-8"))
    del record["version"]
    asvs = {
        "commit_hash": release, "env_name": environment, "date": MILLISECONDS, "python": python,
        "params": {**record, "python": python}, "requirements": {}, "env_vars": {}, "durations": {},
        "result_columns": ["result", "params", "version", "started_at", "duration"], "results": found, "version": 2,
    }  # fmt: skip
    Path(f"{path}.json").write_text(json.dumps(asvs), encoding="utf-8")


def append(results: Path, *launches: Launch, machine: str = "here") -> None:
    """Adds launches to the files of their releases."""
    for of in dict.fromkeys((one.release, one.environment) for one in launches):
        path = results / machine / f"{'-'.join(of)}.jsonl"
        append_launches(path, [one for one in launches if (one.release, one.environment) == of])


def cases(results: Path, machine: str, release: str = "", **which: Any) -> list[tuple[Launch, Case]]:
    """Every stored case with its launch, of all releases or one, oldest first; `which` as `read_launches` has it."""
    launches = (one for one in read_launches(results, machine, **which) if release in ("", one.release))
    return [(one, case) for one in launches for case in one.cases]
