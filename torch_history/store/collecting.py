"""How do results that were measured elsewhere become the suite's? Line by line, each once, in any order."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..system.errors import UserError
from ..system.files import append_lines, each_line, read_lines, read_object, warn, write_atomically
from ..system.locks import locked
from .asv_results import load_asvs
from .details import DETAILS, add_details, read_details
from .launches import ENVIRONMENTS, LINES, PACKED, Launch, append_environment, environment_of
from .machines import RECORD

KIND = ("device", "cpu", "num_cpu", "gpu", "threads", "card")
"""What two records of one machine's folder must have in common."""

Read = TypeVar("Read")


@dataclass
class Collected:
    """How many `lines` of launches were new, how many were there already, and how many were damaged in their source."""

    lines: int = 0
    known: int = 0
    damaged: int = 0


def collect(sources: Iterable[Path], results: Path, env: Path) -> Collected:
    """Adds what folders of results hold to `results`. Raises UserError where another process collects, or a folder is
    of another kind of machine; nothing of that source is then added."""
    collected = Collected()
    with locked(env / "collecting", f"collects into {results}"):
        for source in sources:
            folders = sorted(path.parent for path in source.glob(f"*/{RECORD}"))
            for folder in folders:
                _refuse_another_kind(folder, results / folder.name)
            for folder in folders:
                _collect_machine(folder, results / folder.name, collected)
    return collected


def _refuse_another_kind(source: Path, target: Path) -> None:
    if not (target / RECORD).exists():
        return
    ours, theirs = _whole(read_object, target / RECORD), _whole(read_object, source / RECORD)
    for name in KIND:
        if ours.get(name) != theirs.get(name):
            raise UserError(
                f"{source} was measured on another kind of machine than {target}: its {name} is '{theirs.get(name)}' and "
                f"not '{ours.get(name)}'. Their numbers cannot be compared: rename {target}, or set "
                "TORCH_HISTORY_MACHINE where that was measured."
            )


def _whole(read: Callable[[Path], Read], path: Path) -> Read:
    """What `read` finds in a file that has to be whole. Raises UserError where it is damaged."""
    try:
        return read(path)
    except ValueError as error:
        raise UserError(f"{path} cannot be used: {error}. Restore it from git, or move it away.") from error


def _collect_machine(source: Path, target: Path, collected: Collected) -> None:
    """Everything of one machine's folder. A file of the source that cannot be read is skipped with a warning."""
    target.mkdir(parents=True, exist_ok=True)
    if not (target / RECORD).exists():
        write_atomically(target / RECORD, json.dumps(_whole(read_object, source / RECORD), indent=4, sort_keys=True))
    for path in sorted([*source.glob("*.*"), *source.glob("calibration/*.jsonl*")]):
        place = target / path.relative_to(source)
        try:
            if path.name.endswith(LINES):
                _collect_launches(path, place.with_name(path.name.removesuffix(PACKED)), collected)
            elif path.suffix == ENVIRONMENTS:
                for line in read_lines(path, environment_of):
                    append_environment(place, line["environment"])
            elif path.suffix == DETAILS:
                _collect_details(path, place)
            elif path.suffix == ".json" and path.name != RECORD:
                _collect_asvs(path, place)
        except ValueError as error:
            warn(f"{path} is skipped: {error}.")


def _collect_launches(source: Path, target: Path, collected: Collected) -> None:
    """Appends lines of launches that neither the target nor its compressed file has: equal lines are one."""
    known: Counter[bytes] = Counter()
    for path in (target, target.with_name(f"{target.name}{PACKED}")):
        if path.exists() or path.is_symlink():
            known.update(line for line, is_launch in _whole(_lines, path) if is_launch)
    fresh = []
    for line, is_launch in _lines(source):
        if not is_launch:
            collected.damaged += 1
        elif known[line]:
            known[line] -= 1
            collected.known += 1
        else:
            fresh.append(line.decode())
    append_lines(target, fresh)
    collected.lines += len(fresh)


def _lines(path: Path) -> list[tuple[bytes, bool]]:
    """Each line of a file of launches, and whether it is one."""
    return [(line.strip(), isinstance(found, Launch)) for _, line, found in each_line(path, Launch.from_json)]


def _collect_details(source: Path, target: Path) -> None:
    """Adds the kernels by name of each case; of a case that the target has from a later session, that one's stay."""
    theirs, known = read_details(source), _whole(read_details, target)
    sessions: dict[str, dict[str, Any]] = defaultdict(dict)
    for case, found in theirs.items():
        if known.get(case, {}).get("session", "") <= found["session"] and known.get(case) != found:
            kept = {name: value for name, value in found.items() if name != "session"}
            sessions[found["session"]][case] = kept
    for session, details in sorted(sessions.items()):
        add_details(target, session, details)


def _collect_asvs(source: Path, target: Path) -> None:
    """Merges asv's own file of a release: of a benchmark that both have, the one that was begun later stays."""
    found = load_asvs(source)
    if target.exists():
        ours, theirs = _whole(load_asvs, target), found
        begun = {name: _column(ours, name, "started_at") or 0 for name in ours["results"]}
        later = [name for name in theirs["results"] if (_column(theirs, name, "started_at") or 0) > begun.get(name, -1)]
        rows = {name: [_column(theirs, name, column) for column in ours["result_columns"]] for name in later}
        found = {**theirs, **ours, "results": {**ours["results"], **rows}}
    write_atomically(target, json.dumps(found, separators=(",", ":")))


def _column(of: dict[str, Any], benchmark: str, column: str) -> Any:
    """A value of asv's result of a benchmark, None where it has none."""
    return dict(zip(of["result_columns"], of["results"][benchmark], strict=False)).get(column)
