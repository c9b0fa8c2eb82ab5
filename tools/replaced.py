"""Which stored counts does a later launch contradict, because the recorder counted wrongly? Takes them out, and logs that.

    python -m tools.replaced recorded-hopper-sm90-no-kernel-ran 2026-11-26T16:27     takes them out of results/
    git commit ...
    python -m tools.replaced --log COMMIT RULE REASON                                adds what a commit took out to the log

Counts do not vary: where a launch after that moment (UTC) found another number for a case than one before, the one before
is wrong. Only such a number is taken out; the launch's others stay. `torch-history check --history` holds the log, which is
results/exclusions.jsonl, against the git history.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from torch_history.reports.check import EXCLUSIONS
from torch_history.store.launches import Launch
from torch_history.store.removed import Removal, removals
from torch_history.system.files import each_line, sealed, write_atomically

RESULTS = Path(__file__).resolve().parents[1] / "results"

Place = tuple[str, ...]
"""Release, environment, benchmark, its version, and the parameters of a case."""


def places(launch: Launch) -> list[Place]:
    """Where each case of a launch belongs."""
    of = (launch.release, launch.environment, launch.benchmark, launch.version)
    return [(*of, *case.parameters) for case in launch.cases]


def without_contradicted(launches: Sequence[Launch], since: str) -> Iterator[Launch | None]:
    """Each launch without the numbers that a launch `since` then contradicts; None where none of its cases is left."""
    now = {
        place: case.number
        for launch in sorted(launches, key=lambda launch: launch.started_at)
        if launch.started_at >= since
        for place, case in zip(places(launch), launch.cases, strict=True)
        if case.number is not None
    }
    for launch in launches:
        kept = tuple(
            case
            for place, case in zip(places(launch), launch.cases, strict=True)
            if launch.started_at >= since or case.number is None or now.get(place, case.number) == case.number
        )
        same = len(kept) == len(launch.cases)
        yield launch if same else structs.replace(launch, cases=kept) if kept else None


def take_out(path: Path, since: str) -> int:
    """Takes contradicted numbers out of one file of launches, whose other lines keep their bytes. Returns how many.

    Raises ValueError where a line is damaged.
    """
    lines, launches = [], []
    for number, line, launch in each_line(path, Launch.from_json):
        if isinstance(launch, ValueError):
            raise ValueError(f"{path}, line {number}: {launch}.")
        lines.append(line)
        launches.append(launch)
    left = list(without_contradicted(launches, since))
    kept = [
        line if after is before else sealed(after.to_json()).encode()
        for line, before, after in zip(lines, launches, left, strict=True)
        if after
    ]
    taken = sum(len(one.cases) for one in launches) - sum(len(one.cases) for one in left if one)
    if taken:
        write_atomically(path, b"".join(line + b"\n" for line in kept))
    return taken


def entries(removed: Iterable[Removal], rule: str, reason: str) -> list[dict[str, Any]]:
    """A line of the log for each benchmark of each session of which launches or cases were removed."""
    groups: dict[tuple[str, str, bool, str, str], list[Launch]] = defaultdict(list)
    for one in removed:
        launch = one.launch
        groups[one.commit, one.machine, one.calibration, launch.session, launch.benchmark].append(launch)
    return [_entry(group, launches, rule, reason) for group, launches in sorted(groups.items())]


def _entry(group: tuple[str, str, bool, str, str], launches: list[Launch], rule: str, reason: str) -> dict[str, Any]:
    commit, machine, calibration, session, benchmark = group
    words = [[word.strip("'") for word in case.parameters] for launch in launches for case in launch.cases]
    began = sorted(launch.started_at for launch in launches)
    return {
        "machine": machine,
        "calibration": calibration,
        "session": session,
        "environments": sorted({launch.environment for launch in launches}),
        "benchmark": benchmark,
        "releases": sorted({launch.release for launch in launches}),
        "variants": sorted({variant for variant, *_ in words}),
        "sizes": sorted({size for _, *sizes in words for size in sizes}),
        "launches": len(launches),
        "cases": len(words),
        "first": began[0],
        "last": began[-1],
        "rule": rule,
        "reason": reason,
        "source": "results/NOTES.md",
        "commit": commit,
        "parts_of_launches": True,
    }


def log(name: str, rule: str, reason: str) -> int:
    """Adds what the commit `name` took out to the log, in full. Returns how many lines that are."""
    commit = subprocess.run(["git", "rev-parse", name], cwd=RESULTS, capture_output=True, text=True, check=True)
    found = entries((one for one in removals(RESULTS) if one.commit == commit.stdout.strip()), rule, reason)
    path = RESULTS / EXCLUSIONS
    text = path.read_text(encoding="utf-8") + "".join(json.dumps(one) + "\n" for one in found)
    write_atomically(path, text)
    return len(found)


def main() -> None:
    """Does what the module's text says."""
    match sys.argv[1:]:
        case ["--log", commit, rule, reason]:
            print(f"{log(commit, rule, reason)} lines were added to {EXCLUSIONS}")
        case [machine, since]:
            for path in sorted((RESULTS / machine).glob("*.jsonl")):
                if taken := take_out(path, since):
                    print(f"{path.name}: {taken} numbers that a launch since {since} contradicts")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
