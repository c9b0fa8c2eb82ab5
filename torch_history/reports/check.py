"""What is wrong in a folder of results, file by file and line by line? For results that come from somebody else."""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recorder import Refused, certificate

from ..releases.axis import Axis
from ..store import causes, certificates, sources
from ..store.details import DETAILS, read_details
from ..store.files import each_line, has_checksum, is_name, read_object
from ..store.launches import ENVIRONMENTS, Launch, environment_of, unfit
from ..store.machines import RECORD
from ..store.removed import CALIBRATION, Removal, removals

LISTED = "benchmarks.json"
NOTES = "NOTES.md"
EXCLUSIONS = "exclusions.jsonl"
EXCLUDED = {"machine", "session", "benchmark", "releases", "launches", "rule", "reason", "commit"}
"""What each line of EXCLUSIONS says at least."""
UNDER_OTHER_NAMES = (CALIBRATION, "agreement")
"""Folders of a machine whose launches go by names that are no releases."""
EARLY = datetime.timedelta(days=1)
"""How far ahead of this clock a launch may be dated: clocks and time zones differ."""


@dataclass
class Found:
    """What a check found: `problems` are sentences that begin with the file and the line."""

    problems: list[str] = field(default_factory=list)
    lines: int = 0
    without_checksum: int = 0
    earlier: int = 0
    """Launches of an earlier version of their benchmark, which none of the reports uses."""

    def say(self, path: Path, what: object, number: int = 0) -> None:
        self.problems.append(f"{str(path)!r}, line {number}: {what}." if number else f"{str(path)!r}: {what}.")

    @property
    def summary(self) -> str:
        return (
            f"{len(self.problems)} problems in {self.lines} lines; {self.without_checksum} lines are without checksum, "
            f"as older versions wrote them; {self.earlier} launches are of an earlier version of their benchmark."
        )


def check(results: Path, axis: Axis) -> Found:
    """Looks at every file of `results`."""
    found = Found()
    known: dict[str, set[str]] = defaultdict(set)
    for benchmark, version in sources.here().items():
        known[benchmark].add(version)
    for path in sorted(results.iterdir()):
        if path.name == certificates.FOLDER:
            _check_certificates(path, axis, found)
        elif path.is_dir():
            if why := unfit(path):
                found.say(path, why)
        elif path.name == LISTED:
            _add_listed(path, known, found)
        elif path.name == EXCLUSIONS:
            _check_exclusions(path, found)
        elif path.name != NOTES and ".damaged-" not in path.name:
            found.say(path, "it is no file of results")
    for folder in sorted(path for path in results.iterdir() if _of_machine(path)):
        _check_machine(folder, axis, known, found)
    return found


def _check_exclusions(path: Path, found: Found) -> None:
    """Each line says of which launches, how many, and why they were excluded."""
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        try:
            excluded = json.loads(line)
        except ValueError as error:
            found.say(path, error, number)
            continue
        if not isinstance(excluded, dict) or not excluded.keys() >= EXCLUDED:
            found.say(path, f"an exclusion has the keys {', '.join(sorted(EXCLUDED))}", number)


Group = tuple[str, str, bool, str, str]
"""Commit, machine's folder, whether of a calibration, session and benchmark: what one line of the log is about."""


def check_history(results: Path) -> list[str]:
    """Where the log and the git history of `results` disagree: what was removed without an entry, and entries that count
    other launches or cases than their commit removed. Raises NoHistory."""
    path = results / EXCLUSIONS
    removed = _counted(removals(results))
    problems, told = [], set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path.exists() else (), 1):
        try:
            entry = json.loads(line)
            group: Group = _group(entry)
            said = (entry["launches"], entry["cases"])
        except (KeyError, TypeError, ValueError):
            problems.append(f"'{path}', line {number}: it names no commit, machine, session, benchmark and counts.")
            continue
        if group in told:
            problems.append(f"'{path}', line {number}: an earlier line is about the same launches.")
        elif group not in removed:
            problems.append(f"'{path}', line {number}: commit {group[0][:8]} removed no such launch.")
        elif said != removed[group]:
            launches, cases = removed[group]
            problems.append(
                f"'{path}', line {number}: it says launches: {said[0]}, cases: {said[1]}. "
                f"Commit {group[0][:8]} removed launches: {launches}, cases: {cases}."
            )
        told.add(group)
    for group in sorted(removed.keys() - told):
        commit, machine, _, session, benchmark = group
        launches, cases = removed[group]
        problems.append(
            f"'{path}': commit {commit[:8]} removed launches of {benchmark}, session {session}, from {machine}, "
            f"and no line says why (launches: {launches}, cases: {cases})."
        )
    return problems


def _group(entry: Mapping[str, Any]) -> Group:
    names = (entry["commit"], entry["machine"], bool(entry.get("calibration")), entry["session"], entry["benchmark"])
    hash(names)  # a list instead of a name
    return names


def _counted(removed: Iterable[Removal]) -> dict[Group, tuple[int, int]]:
    """Group -> its launches and cases."""
    found: dict[Group, tuple[int, int]] = {}
    for one in removed:
        group = (one.commit, one.machine, one.calibration, one.launch.session, one.launch.benchmark)
        launches, cases = found.get(group, (0, 0))
        found[group] = (launches + 1, cases + len(one.launch.cases))
    return found


def _check_certificates(folder: Path, axis: Axis, found: Found) -> None:
    """Each is whole, and of a release on the axis."""
    if why := unfit(folder):
        found.say(folder, why)
        return
    for path in sorted(folder.iterdir()):
        if path.suffix == certificates.ASKED:
            try:
                certificate.read(path)
            except Refused as refused:
                found.problems.append(str(refused))
            continue
        if path.suffix != certificates.SUFFIX:
            found.say(path, "it is no certificate")
            continue
        try:
            release = certificates.parse(path).release
        except ValueError as error:
            found.say(path, error)
            continue
        if release not in axis:
            found.say(path, f"there is no release {release} on the axis")


def _check_details(path: Path, found: Found) -> None:
    try:
        read_details(path)
    except ValueError as error:
        found.say(path, error)


def _of_machine(path: Path) -> bool:
    return path.is_dir() and path.name != certificates.FOLDER and not unfit(path)


def _add_listed(path: Path, known: dict[str, set[str]], found: Found) -> None:
    try:
        for benchmark, of in read_object(path).items():
            if isinstance(of, dict):
                known[benchmark].add(str(of.get("version")))
    except ValueError as error:
        found.say(path, error)


def _check_machine(folder: Path, axis: Axis, known: Mapping[str, set[str]], found: Found) -> None:
    launches: list[tuple[Path, int, Launch]] = []
    for path in sorted(folder.iterdir()):
        if path.suffix == ".jsonl":
            launches += _launches(path, found)
        elif path.suffix == ENVIRONMENTS:
            _check_environments(path, found)
        elif path.suffix == ".json":
            _check_object(path, found)
        elif path.name == causes.FOLDER and path.is_dir():
            _check_causes(path, axis, known, found)
        elif path.suffix == DETAILS:
            _check_details(path, found)
        elif path.name not in UNDER_OTHER_NAMES and ".damaged-" not in path.name:
            found.say(path, "it is no file of results")
    if not (folder / RECORD).exists():
        found.say(folder / RECORD, "it is missing")
    for path in sorted(path for name in UNDER_OTHER_NAMES for path in (folder / name).glob("*")):
        for _ in _launches(path, found):
            pass
    for path, number, launch in launches:
        for problem in _of_launch(path, launch, axis):
            found.say(path, problem, number)
    _check_starts(launches, found)
    _check_versions(launches, known, found)


def _check_causes(folder: Path, axis: Axis, known: Mapping[str, set[str]], found: Found) -> None:
    """Evidence is whole, of releases on the axis and of a benchmark that is known."""
    for path in sorted(folder.iterdir()):
        try:
            evidence = causes.parse(path)
        except ValueError as error:
            found.say(path, error)
            continue
        for tag in (evidence.old, evidence.new):
            if tag not in axis:
                found.say(path, f"there is no release {tag} on the axis")
        if evidence.benchmark not in known:
            found.say(path, f"no benchmark {evidence.benchmark} is known here")
        elif evidence.version not in known[evidence.benchmark]:
            found.earlier += 1


def _check_object(path: Path, found: Found) -> None:
    try:
        data = read_object(path)
        if path.name == RECORD and data.get("machine") != path.parent.name:
            found.say(path, f"it is the record of another machine, {data.get('machine')!r}")
        if path.name == RECORD and (strange := [key for key, value in data.items() if not _is_of_a_record(key, value)]):
            found.say(path, f"its {strange[0]!r} is no short text that can be printed")
    except ValueError as error:
        found.say(path, error)


def _is_of_a_record(key: str, value: object) -> bool:
    return is_name(key) and (is_name(value) or (key == "version" and isinstance(value, int)))


def _check_environments(path: Path, found: Found) -> None:
    try:
        for number, line, environment in each_line(path, environment_of):
            found.lines += 1
            found.without_checksum += not has_checksum(line)
            if isinstance(environment, ValueError):
                found.say(path, environment, number)
    except ValueError as error:
        found.say(path, error)


def _launches(path: Path, found: Found) -> Iterator[tuple[Path, int, Launch]]:
    try:
        for number, line, launch in each_line(path, Launch.from_json):
            found.lines += 1
            found.without_checksum += not has_checksum(line)
            if isinstance(launch, ValueError):
                found.say(path, launch, number)
            else:
                yield path, number, launch
    except ValueError as error:
        found.say(path, error)


def _of_launch(path: Path, launch: Launch, axis: Axis) -> Iterator[str]:
    """What is wrong with a launch by itself."""
    if launch.release not in axis:
        yield f"there is no release {launch.release} on the axis"
    if path.stem != f"{launch.release}-{launch.environment}":
        yield f"it is of {launch.release} in {launch.environment}, which the file is not"
    try:
        started = datetime.datetime.fromisoformat(launch.started_at)
        if started.tzinfo is None:
            yield f"'{launch.started_at}' says no time zone"
        elif started > datetime.datetime.now(datetime.timezone.utc) + EARLY:
            yield f"it is dated in the future, {launch.started_at}"
    except ValueError:
        yield f"'{launch.started_at}' is no time"


def _check_starts(launches: list[tuple[Path, int, Launch]], found: Found) -> None:
    """One start of an interpreter is of one release in one session, and asks for a case once."""
    owner: dict[str, tuple[str, str, str]] = {}
    seen: dict[tuple[str, str, str], tuple[Path, int]] = {}
    for path, number, launch in launches:
        of = (launch.session, launch.release, launch.environment)
        if owner.setdefault(launch.launch, of) != of:
            found.say(path, f"the launch {launch.launch} is that of another release or session", number)
        if not any(case.samples for case in launch.cases):
            continue  # a count that is asked for again within a second is the same line
        same = (launch.launch, launch.benchmark, f"{launch.started_at} {launch.cases}")
        if same in seen:
            found.say(path, f"it stands there twice: as line {seen[same][1]} of {seen[same][0].name}", number)
        seen.setdefault(same, (path, number))


def _check_versions(launches: list[tuple[Path, int, Launch]], known: Mapping[str, set[str]], found: Found) -> None:
    """Sources that nobody here knows are told, unless they are those of an earlier version: in the same environment launches
    of the known one came later."""
    latest: dict[tuple[str, str], str] = {}
    for _, _, launch in launches:
        key = (launch.environment, launch.benchmark)
        if launch.version in known.get(launch.benchmark, ()):
            latest[key] = max(latest.get(key, ""), launch.started_at)
    for path, number, launch in launches:
        key = (launch.environment, launch.benchmark)
        if launch.version in known.get(launch.benchmark, ()):
            continue
        if launch.started_at <= latest.get(key, ""):
            found.earlier += 1
        elif launch.benchmark not in known:
            found.say(path, f"no benchmark {launch.benchmark} is known here", number)
        else:
            found.say(path, f"{launch.benchmark} {launch.version[:8]} is of sources that are not known here", number)
