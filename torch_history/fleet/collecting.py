"""How do the results of a fleet's jobs become the suite's? Line by line, each once, however often and in any order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..analysis import agreement
from ..errors import UserError
from ..store.asv_results import load_asvs, read_benchmarks
from ..store.details import DETAILS, add_details, read_details
from ..store.launches import ENVIRONMENTS, Launch, append_environment, environment_of
from ..store.machines import RECORD
from ..store.removed import CALIBRATION
from ..system.files import (
    append_lines,
    each_line,
    read_bytes,
    read_lines,
    read_object,
    set_aside,
    warn,
    write_atomically,
)
from .attempts import Attempt
from .head import locked
from .order import FLEETS, make_private

KIND = ("device", "cpu", "num_cpu", "gpu", "threads", "card")
"""What two records of one machine's folder must have in common."""

CANNOT_GROW = "cannot be added to"
RESTORE = "Restore it from git, or move it away."


@dataclass
class Collected:
    """How many `lines` of launches were new, how many were there already, and how many were damaged in a job's folder."""

    lines: int = 0
    known: int = 0
    damaged: int = 0


def collect(attempts: Iterable[Attempt], results: Path, env: Path) -> Collected:
    """Adds what `attempts` measured to `results`. Raises UserError where another process collects at the same time, or where
    a folder is of another kind of machine; nothing of that attempt is then added."""
    collected = Collected()
    make_private(env / FLEETS)
    with locked(env / FLEETS / "collecting", f"collects into {results}"):
        for attempt in attempts:
            _collect_folder(attempt.results, results, collected)
            _copy_benchmarks(attempt.results, results)
    return collected


def collect_folder(source: Path, results: Path, env: Path) -> Collected:
    """Adds what a folder of results holds to `results`. Raises UserError as `collect` does."""
    collected = Collected()
    make_private(env / FLEETS)
    with locked(env / FLEETS / "collecting", f"collects into {results}"):
        _collect_folder(source, results, collected)
    return collected


def _collect_folder(source: Path, results: Path, collected: Collected) -> None:
    folders = sorted(path.parent for path in source.glob(f"*/{RECORD}"))
    for folder in folders:
        _refuse_another_kind(folder, results / folder.name)
    for folder in folders:
        _collect_machine(folder, results / folder.name, collected)


def collect_check(attempts: Iterable[Attempt], release: str, environment: str, results: Path, env: Path) -> list[str]:
    """Adds what the jobs of a check measured to `results/<machine>/agreement/`; returns the machines. Raises UserError where
    another process collects at the same time."""
    machines = []
    make_private(env / FLEETS)
    with locked(env / FLEETS / "collecting", f"collects into {results}"):
        for attempt in attempts:
            for record in sorted(attempt.results.glob(f"*/{RECORD}")):
                known = _record(record.parent)
                machine = str(known["machine"]).removesuffix(f"-on-{attempt.began.get('node', '')}")
                target = results / machine
                (target / agreement.FOLDER).mkdir(parents=True, exist_ok=True)
                if not (target / RECORD).exists():
                    write_atomically(
                        target / RECORD, json.dumps({**known, "machine": machine}, indent=4, sort_keys=True)
                    )
                for path in sorted(record.parent.glob("*.jsonl")):
                    _collect_launches(path, target / agreement.FOLDER / f"{release}-{environment}.jsonl", Collected())
                machines.append(machine)
    return sorted(set(machines))


def _refuse_another_kind(source: Path, target: Path) -> None:
    """Raises UserError where the two records are of different machines."""
    if not (target / RECORD).exists():
        return
    ours, theirs = _record(target), _record(source)
    differing = [name for name in KIND if ours.get(name) != theirs.get(name)]
    if differing:
        name = differing[0]
        raise UserError(
            f"{source} was measured on another kind of machine than {target}: its {name} is '{theirs.get(name)}' and not "
            f"'{ours.get(name)}'. Their numbers cannot be compared: rename {target}, or set "
            "TORCH_HISTORY_MACHINE on those nodes."
        )


def _record(folder: Path) -> dict[str, Any]:
    """Raises UserError where the record of a machine is damaged."""
    try:
        return read_object(folder / RECORD)
    except ValueError as error:
        raise UserError(f"{folder / RECORD} cannot be used: {error}. {RESTORE}") from error


def _collect_machine(source: Path, target: Path, collected: Collected) -> None:
    """Everything of one machine's folder; asv's own files last, which are made from what asv had in both."""
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted([*source.glob("*.jsonl"), *source.glob(f"{CALIBRATION}/*.jsonl")]):
        place = target / path.relative_to(source)
        place.parent.mkdir(exist_ok=True)
        _collect_launches(path, place, collected)
    for path in sorted(source.glob(f"*{ENVIRONMENTS}")):
        for line in read_lines(path, environment_of):
            append_environment(target / path.name, line["environment"])
    for path in sorted(source.glob(f"*{DETAILS}")):
        _collect_details(path, target / path.name)
    if not (target / RECORD).exists():
        write_atomically(target / RECORD, json.dumps(_record(source), indent=4, sort_keys=True))
    for path in sorted(source.glob("*.json")):
        if path.name != RECORD:
            _collect_asvs(path, target)


def _collect_launches(source: Path, target: Path, collected: Collected) -> None:
    """Appends the lines of launches that the target lacks. A line names its launch, and holds some of its cases: equal lines
    are one measurement."""
    try:
        lines = list(each_line(source, Launch.from_json))
    except ValueError as error:
        warn(f"{source} is skipped: {error}.")
        collected.damaged += 1
        return
    known = _known(target)
    fresh = []
    for _, line, found in lines:
        text = line.strip()
        if isinstance(found, ValueError):
            collected.damaged += 1
        elif known[text]:
            known[text] -= 1
            collected.known += 1
        else:
            fresh.append(text.decode())
    append_lines(target, fresh)
    collected.lines += len(fresh)


def _known(target: Path) -> Counter[bytes]:
    """How often each line of launches stands in a file. Raises UserError where it cannot be read."""
    if not target.exists() and not target.is_symlink():
        return Counter()
    try:
        every = each_line(target, Launch.from_json)
        return Counter(line.strip() for _, line, found in every if isinstance(found, Launch))
    except ValueError as error:
        raise UserError(f"{target} {CANNOT_GROW}: {error}. {RESTORE}") from error


def _collect_details(source: Path, target: Path) -> None:
    """Adds the kernels by name of each case; of a case that the target has from a later session, that one's stay."""
    try:
        theirs = read_details(source)
    except ValueError as error:
        warn(f"{source} is skipped: {error}.")
        return
    try:
        known = read_details(target)
    except ValueError as error:
        raise UserError(f"{target} {CANNOT_GROW}: {error}. {RESTORE}") from error
    sessions: dict[str, dict[str, Any]] = {}
    for case, found in theirs.items():
        if known.get(case, {}).get("session", "") <= found["session"] and known.get(case) != found:
            sessions.setdefault(found["session"], {})[case] = {
                name: value for name, value in found.items() if name not in ("session", "differs")
            }
    for session, details in sorted(sessions.items()):
        add_details(target, session, details)


def _collect_asvs(source: Path, target: Path) -> None:
    """Merges asv's own file of a release: of a benchmark that both have, what was measured later stays. A damaged one is
    left where it is, or kept under another name, with a warning: launches are what counts."""
    path = target / source.name
    try:
        merged = load_asvs(source)
    except ValueError as error:
        warn(f"{source} is skipped: {error}.")
        return
    if path.exists():
        try:
            merged = _merged(load_asvs(path), merged)
        except ValueError as error:
            warn(f"{path} was damaged: {error}. It is kept as {set_aside(path)}, and a new one was started.")
    write_atomically(path, json.dumps(merged, separators=(",", ":")))


def _merged(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """asv's results in both; of a benchmark that both have, the one that was begun later."""
    results = dict(ours["results"])
    for name, row in theirs["results"].items():
        if name not in results or _begun(theirs, name) > _begun(ours, name):
            columns = dict(zip(theirs["result_columns"], row, strict=False))
            results[name] = [columns.get(column) for column in ours["result_columns"]]
    return {**theirs, **ours, "results": results}


def _begun(of: dict[str, Any], benchmark: str) -> float:
    """When asv's result of a benchmark was begun, in milliseconds since 1970; 0 where it is not known."""
    return dict(zip(of["result_columns"], of["results"][benchmark], strict=False)).get("started_at") or 0


def _copy_benchmarks(source: Path, results: Path) -> None:
    """asv's list of benchmarks, which any run writes again."""
    path = source / "benchmarks.json"
    if path.exists():
        try:
            read_benchmarks(path)
            write_atomically(results / path.name, read_bytes(path))
        except ValueError as error:
            warn(f"{path} is skipped: {error}.")
