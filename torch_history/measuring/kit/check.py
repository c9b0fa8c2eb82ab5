"""What is wrong in a folder of results, file by file and line by line? For results that come from somebody else."""

import contextlib
import datetime
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar

from msgspec import Meta, Struct, ValidationError, convert

from recorder import certificate

from ...releases.axis import Axis
from ...store import causes, certificates, code, machines, sources
from ...store.asv_results import load_asvs, read_benchmarks
from ...store.details import DETAILS, read_details
from ...store.launches import ENVIRONMENTS, LINES, Launch, environment_of, of_file, unfit
from ...store.machines import RECORD
from ...system.errors import UserError
from ...system.files import CHECKSUM, DAMAGED, LONGEST_NAME, each_line, parse

LISTED = "benchmarks.json"
NOTES = "NOTES.md"
UNDER_OTHER_NAMES = ("calibration",)
"""Folders of a machine whose launches go by names that are no releases."""
OF_ANY_TORCH = "installed-"
"""How the environments begin whose torch a person named a release for: `run --installed --as`."""
NO_FOLDER = "no folder belongs here, where git might take it for a repository and run what that names"
EXCLUSIONS = "exclusions.jsonl"
"""Lists which launches were taken out of the results, and why; none of them may count."""

Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
Names = tuple[Name, ...]
Count = Annotated[int, Meta(ge=1)]


class Exclusion(Struct, frozen=True):
    """A line of the list: so many launches of one benchmark in one session, begun from `first` to `last`, and how many cases
    of them. `variants` and `sizes` are those of the cases where a launch keeps others; of whole launches they are empty."""

    machine: Name
    session: Name
    benchmark: Name
    environments: Names
    releases: Names
    variants: Names
    sizes: Names
    launches: Count
    cases: Count
    first: Name
    last: Name
    rule: Name
    reason: str

    @classmethod
    def from_json(cls, line: bytes) -> "Exclusion":
        """Raises ValueError where `line` says no such thing."""
        try:
            return convert(parse(line), cls)
        except ValidationError as error:
            raise ValueError(f"it is no exclusion: {error}") from error

    def lists(self, launch: Launch) -> bool:
        """Whether `launch` has a number that was taken out."""
        return (
            (launch.session, launch.benchmark) == (self.session, self.benchmark)
            and launch.release in self.releases
            and launch.environment in self.environments
            and self.first <= launch.started_at <= self.last
            and any(self._lists(case.parameters) for case in launch.cases if case.number is not None)
        )

    def _lists(self, parameters: tuple[str, ...]) -> bool:
        variant, *sizes = (word.strip("'") for word in parameters)
        return not self.variants or (variant in self.variants and {*sizes} <= {*self.sizes})


@dataclass
class Found:
    """What a check found: `problems` are sentences that begin with the file and the line."""

    problems: list[str] = field(default_factory=list)
    lines: int = 0
    without_checksum: int = 0
    earlier: int = 0
    """Launches of an earlier version of their benchmark, which none of the reports uses."""
    folder_of: dict[str, Path] = field(default_factory=dict)
    """Launch -> the folder that it was found in first."""
    excluded: dict[str, list[Exclusion]] = field(default_factory=lambda: defaultdict(list))
    """Session -> what of it was taken out of the results."""

    def say(self, path: Path, what: object, number: int = 0) -> None:
        self.problems.append(f"{str(path)!r}, line {number}: {what}." if number else f"{str(path)!r}: {what}.")

    @contextlib.contextmanager
    def telling(self, path: Path) -> Iterator[None]:
        """Says of a file what a ValueError says that is raised within."""
        try:
            yield
        except ValueError as error:
            self.say(path, error)

    @property
    def summary(self) -> str:
        return (
            f"{len(self.problems)} problems in {self.lines} lines; {self.without_checksum} lines are without checksum, "
            f"as older versions wrote them; {self.earlier} launches are of an earlier version of their benchmark."
        )


def check(results: Path, axis: Axis, trusted: bool = True) -> Found:
    """Looks at every file of `results`. Where they are `trusted`, their list of benchmarks says which sources are known."""
    found = Found()
    known: dict[str, set[str]] = defaultdict(set)
    for benchmark, version in sources.here().items():
        known[benchmark].add(version)
    machines = []
    for path in _entries(results, found):
        if path.is_dir() and path.name == code.NAME_OF_FOLDER:
            for file in _files(path, found):
                with found.telling(file):
                    if code.parse(file).release not in axis:
                        found.say(file, "there is no such release on the axis")
        elif path.is_dir() and path.name != certificates.FOLDER:
            machines += [path]
        elif path.is_dir():
            _check_certificates(path, axis, found)
        elif path.name == LISTED:
            with found.telling(path):
                for each in read_benchmarks(path):
                    known[each.name] |= {each.version} if trusted else set()
        elif path.name == EXCLUSIONS:
            with found.telling(path):
                for number, _, entry in each_line(path, Exclusion.from_json):
                    if isinstance(entry, ValueError):
                        found.say(path, entry, number)
                    else:
                        found.excluded[entry.session].append(entry)
        elif path.name != NOTES:
            found.say(path, "it is no file of results")
    for folder in machines:
        if why := unfit(folder):
            found.say(folder, why)
        else:
            _check_machine(folder, axis, known, found)
    return found


def _entries(folder: Path, found: Found) -> Iterator[Path]:
    """The files and folders in a folder, by name; of what is neither, or was set aside, `found` says so."""
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            found.say(path, "it is a link" if path.is_symlink() else "it is no regular file")
        elif DAMAGED in path.name:
            found.say(path, "it was damaged and is kept for nobody but you. Take from it what you need, and remove it")
        else:
            yield path


def _files(folder: Path, found: Found) -> Iterator[Path]:
    """The files among `_entries`, where no folder is expected."""
    for path in _entries(folder, found):
        if path.is_file():
            yield path
        else:
            found.say(path, NO_FOLDER)


T = TypeVar("T")


def _lines(path: Path, read: Callable[[bytes], T], found: Found) -> Iterator[tuple[int, T]]:
    """Number of each line and what `read` makes of it; of those of which it makes nothing `found` says so."""
    with found.telling(path):
        for number, line, entry in each_line(path, read):
            found.lines += 1
            found.without_checksum += CHECKSUM.search(line) is None
            if isinstance(entry, ValueError):
                found.say(path, entry, number)
            else:
                yield number, entry


def _check_certificates(folder: Path, axis: Axis, found: Found) -> None:
    """Each is whole, and of a release on the axis."""
    if why := unfit(folder):
        found.say(folder, why)
        return
    for path in _files(folder, found):
        if path.suffix == certificates.ASKED:
            try:
                certificate.read(path)
            except UserError as refused:
                found.say(path, str(refused).replace(str(path), "it").rstrip("."))
        elif path.suffix != certificates.SUFFIX:
            found.say(path, "it is no certificate")
        else:
            with found.telling(path):
                release = certificates.parse(path).release
                if release not in axis:
                    found.say(path, f"there is no release {release} on the axis")


def _check_machine(folder: Path, axis: Axis, known: Mapping[str, set[str]], found: Found) -> None:
    launches: list[tuple[Path, int, Launch]] = []
    for path in _entries(folder, found):
        if path.is_dir() and path.name == causes.FOLDER:
            _check_causes(path, axis, known, found)
        elif path.is_dir() and path.name in UNDER_OTHER_NAMES:
            for file in _files(path, found):
                _check_copies(_launches(file, found), path, found)
        elif path.is_dir():
            found.say(path, NO_FOLDER)
        elif path.name.endswith(LINES):
            launches += _launches(path, found)
        elif path.suffix == ENVIRONMENTS:
            list(_lines(path, environment_of, found))
        elif path.suffix in CHECKS:
            with found.telling(path):
                CHECKS.get(path.name, CHECKS[path.suffix])(path)
        else:
            found.say(path, "it is no file of results")
    if not (folder / RECORD).exists():
        found.say(folder / RECORD, "it is missing")
    for path, number, launch in launches:
        for problem in _of_launch(path, launch, axis):
            found.say(path, problem, number)
        if any(entry.lists(launch) for entry in found.excluded.get(launch.session, ())):
            found.say(path, f"{EXCLUSIONS} says that it was taken out", number)
    _check_copies(launches, folder, found)
    _check_starts(launches, found)
    _check_versions(launches, known, found)


def _check_causes(folder: Path, axis: Axis, known: Mapping[str, set[str]], found: Found) -> None:
    """Evidence is whole, of releases on the axis and of a benchmark that is known."""
    for path in _files(folder, found):
        with found.telling(path):
            evidence = causes.parse(path)
            for tag in (evidence.old, evidence.new):
                if tag not in axis:
                    found.say(path, f"there is no release {tag} on the axis")
            if evidence.benchmark not in known:
                found.say(path, f"no benchmark {evidence.benchmark} is known here")
            elif evidence.version not in known[evidence.benchmark]:
                found.earlier += 1


def _require_record(path: Path) -> None:
    """Raises ValueError where it is no record, or another machine's."""
    machine = machines.parse(path)["machine"]
    if machine != path.parent.name:
        raise ValueError(f"it is the record of another machine, {machine!r}")


CHECKS: Mapping[str, Callable[[Path], object]] = {RECORD: _require_record, ".json": load_asvs, DETAILS: read_details}
"""Name or ending of a file in a machine's folder -> what raises ValueError where it is wrong."""


def _launches(path: Path, found: Found) -> list[tuple[Path, int, Launch]]:
    return [(path, number, launch) for number, launch in _lines(path, Launch.from_json, found)]


def _of_launch(path: Path, launch: Launch, axis: Axis) -> Iterator[str]:
    """What is wrong with a launch by itself."""
    if launch.release not in axis:
        yield f"there is no release {launch.release} on the axis"
    if of_file(path) != (launch.release, launch.environment):
        yield f"it is of {launch.release} in {launch.environment}, which the file is not"
    torch = str(launch.facts.get("torch"))
    if torch.partition("+")[0] != launch.release.removeprefix("v") and not launch.environment.startswith(OF_ANY_TORCH):
        yield f"it was measured on torch {torch[:80]!r}, which is not {launch.release}"
    try:
        started = datetime.datetime.fromisoformat(launch.started_at)
        if started.tzinfo is None:
            yield f"'{launch.started_at}' says no time zone"
        elif started > datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1):  # clocks differ
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


def _check_copies(launches: list[tuple[Path, int, Launch]], folder: Path, found: Found) -> None:
    """A launch is one start of an interpreter on one machine: one that stands in two folders is a copy."""
    copies: dict[tuple[Path, Path], list[str]] = defaultdict(list)
    for path, _, launch in launches:
        if (first := found.folder_of.setdefault(launch.launch, folder)) != folder:
            copies[path, first].append(launch.launch)
    for (path, first), names in copies.items():
        found.say(path, f"{len(names)} of its lines are copies: the launch {names[0]} is one of {str(first)!r}")


def _check_versions(launches: list[tuple[Path, int, Launch]], known: Mapping[str, set[str]], found: Found) -> None:
    """Tells unknown sources, unless launches of the known version came later in the same environment."""
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
