"""Which counts are known? Those of the same packages, case and instruction set; one in SAMPLE is counted again."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from contract.metrics import COUNTS, metric_of

from ..store.launches import Case, Launch, files_of, machines_in, of_file, read_environments, read_file

SAMPLE = 10

SAME = ("torch", "packages", "cpu_capability", "threads", "allocator")
"""What must be equal of two environments."""

TAKEN = "taken"
"""The fact of a launch that counted nothing: the machine and the session whose counts it holds."""

Counted = tuple[str, str, tuple[str, ...]]
"""Benchmark, its version, and the parameters of a case."""


class Known(NamedTuple):
    """What was counted of a case, and by whom: `machine session`."""

    case: Case
    source: str


Stored = Mapping[str, Mapping[str, Mapping[Counted, Known]]]
"""What `stored` finds."""


def is_count(benchmark: str) -> bool:
    return metric_of(benchmark).kind == COUNTS


def identity(environment: Mapping[str, Any]) -> str:
    return json.dumps([environment.get(name) for name in SAME])


def stored(
    results: Path, environment: str, releases: Collection[str], questions: Collection[str], but: str
) -> dict[str, dict[str, dict[Counted, Known]]]:
    """Release -> identity -> what sessions other than `but` counted there on a CPU, all of them alike."""
    found: dict[str, dict[str, dict[Counted, Known]]] = defaultdict(lambda: defaultdict(dict))
    differ = set()
    for machine, path in ((name, file) for name in machines_in(results) for file in files_of(results / name)):
        release, lane = of_file(path)
        is_asked = release in releases and lane == environment
        records = read_environments(results, machine, release, lane) if is_asked else {}
        for launch in read_file(path, questions) if records else ():
            facts, record = launch.facts, records.get(launch.facts.get("environment", ""))
            is_other = facts.get("device") != "cpu" or facts.keys() & {TAKEN, "set"} or launch.session == but
            if is_other or not record or not is_count(launch.benchmark):
                continue
            of_record = found[launch.release][identity(record)]
            for case in (one for one in launch.cases if one.value is not None or one.unavailable):
                key = launch.benchmark, launch.version, case.parameters
                known = of_record.setdefault(key, Known(case, f"{machine} {launch.session}"))
                if _number(known.case) != _number(case):
                    differ.add((launch.release, identity(record), key))
    for release, of, key in differ:
        del found[release][of][key]
    return found


def _number(case: Case) -> tuple[object, str]:
    return case.value, case.unavailable


def sample(cases: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Those of `cases` that are counted again: a tenth, one at least."""
    ordered = sorted(cases, key=lambda case: hashlib.sha256(" ".join(case).encode()).digest())
    return {*ordered[: -(-len(ordered) // SAMPLE)]}


def difference(launches: Iterable[Launch], known: Mapping[Counted, Known]) -> tuple[int, str]:
    """How many counts of `launches` were compared with what is known, and the first that differs, in words."""
    compared = 0
    for launch in launches:
        for case in launch.cases if is_count(launch.benchmark) and TAKEN not in launch.facts else ():
            before = known.get((launch.benchmark, launch.version, case.parameters))
            if before is None or case.unmeasured:
                continue
            compared += 1
            if _number(case) != _number(before.case):
                name = " ".join([metric_of(launch.benchmark).words, *case.parameters])
                now, then = (one.reason or f"{one.value}" for one in (case, before.case))
                return compared, f"{name} on {launch.release} is {now}, and was {then} ({before.source})"
    return compared, ""


def taken_words(launches: Iterable[Launch]) -> str:
    """That counts were taken from other sessions, in a line; empty where none were."""
    taken = [launch for launch in launches if launch.facts.get(TAKEN)]
    cases = {(launch.benchmark.rpartition(".")[0], case.parameters) for launch in taken for case in launch.cases}
    if not cases:
        return ""
    releases = dict.fromkeys(launch.release for launch in taken)
    sources = dict.fromkeys(str(launch.facts[TAKEN]).partition(" ")[0] for launch in taken)
    what = "1 case" if len(cases) == 1 else f"{len(cases)} cases"
    return (
        f"Counts of {what} on {', '.join(releases)} are those stored of {', '.join(sources)}: same packages and instruction "
        f"set, and one case in {SAMPLE} was counted again, with the same result. --only counts counts all."
    )
