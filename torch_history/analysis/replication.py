"""Does another binary of the same releases say the same, and another processor? A lane with the same binary repeats a
change and does not replicate it. Why builds differ: docs/explain.md."""

import enum
import functools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..store.launches import files_of, machines_in, of_file, read_launches
from ..store.machines import processor_of, record_of
from ..system.files import WRONG_DATA, warn
from .code import RELEASE, same_code
from .series import TIMES, History, Series, Verdict, history
from .verdicts import Change, compare_history, times

DECIDED = (*TIMES, Verdict.SAME)  # verdicts on a time that was decided


class Standing(enum.Enum):
    """Whether a change of a time was seen in another place, too."""

    REPLICATED = "replicated"
    NOT_REPLICATED = "not replicated"
    NOT_TESTABLE = "not testable"


class Replication(NamedTuple):
    """The standing of a change, the place that gives it, what that says, and one that has the change `also`."""

    standing: Standing
    place: str = ""
    verdict: str = ""
    ratio: float | None = None
    also: str = ""

    def words(self, seen: str, disputed: str, alone: str) -> str:
        """Whichever of the three applies, with what is known in the place of `{names}`; empty where nothing is."""
        if self.standing is Standing.NOT_TESTABLE:
            return ""
        said = seen if self.standing is Standing.REPLICATED else disputed if self.also else alone
        ratio = self.ratio or 1.0
        return said.format(place=self.place, also=self.also, verdict=self.verdict, factor=times(max(ratio, 1 / ratio)))


UNTESTED = Replication(Standing.NOT_TESTABLE)


class Elsewhere(NamedTuple):
    """What is said of a change in lanes of another binary, on other machines, and in lanes of the same binary."""

    wheels: Replication = UNTESTED
    machines: Replication = UNTESTED
    repeats: Replication = UNTESTED

    @property
    def words(self) -> str:
        """As the sentence of the change says it, empty where nothing is known."""
        of_wheels = self.wheels.words(
            "replicated in {place}",
            "replicated in {also}, but {verdict} in {place}",
            "this wheel only: {verdict} in {place}",
        )
        of_repeats = self.repeats.words(
            "repeated in {place}, which has the same binary",
            "repeated in {also}, but {verdict} in {place}, which have the same binary",
            "not repeated: {verdict} in {place}, which has the same binary",
        )
        of_machines = self.machines.words(
            "seen on another machine, too ({place}: {factor} times)",
            "seen on another machine, too ({also}), but {verdict} on a third one ({place})",
            "this machine only: {verdict} on another one ({place})",
        )
        return ", ".join(filter(None, (of_wheels, of_machines, of_repeats)))


NOWHERE = Elsewhere()


class Place(NamedTuple):
    """A lane of a machine: the machine's record, its releases, what it says of times from one to another, and the
    `name` by which a sentence calls it."""

    machine: Mapping[str, Any]
    environment: str
    tags: Collection[str]
    changes: Callable[[str, str], Iterable[Change]]
    name: str = ""


@dataclass(frozen=True)
class OtherPlaces:
    """What measured the same as one lane, `environment`: other lanes of its machine, and that lane of other machines."""

    lanes: Sequence[Place] = ()
    machines: Sequence[Place] = ()
    environment: str = ""

    def of(self, changes: Iterable[Change], old: str, new: str) -> dict[Series, Elsewhere]:
        """Each told change of a time from one release to another -> what the others say of it."""
        told = [change for change in changes if change.verdict in TIMES]
        if not told:
            return {}
        lanes, machines = ([one for one in of if {old, new}.issubset(one.tags)] for of in (self.lanes, self.machines))
        others, repeats = ([place for place in lanes if self._is_one(place, old, new) is one] for one in (False, True))
        said = [
            [(place.name, {change.series[1:]: change for change in place.changes(old, new)}) for place in places]
            for places in (others, machines, repeats)
        ]
        return {
            change.series: Elsewhere(
                *(replication(change, [(name, of.get(change.series[1:])) for name, of in places]) for places in said)
            )
            for change in told
        }

    def _is_one(self, place: Place, old: str, new: str) -> bool | None:
        """Whether a lane's wheels of both releases hold the same binaries as this lane's do; None where nobody looked."""
        found = [same_code((self.environment, place.environment), tag) for tag in (old, new)]
        return False if False in found else all(found) or None


NO_PLACES = OtherPlaces()


def replication(change: Change, places: Iterable[tuple[str, Change | None]]) -> Replication:
    """What other places say of a change, each by its name; one that decides otherwise is enough for NOT_REPLICATED."""
    decided = [(name, other) for name, other in places if other and other.verdict in DECIDED]
    if not decided:
        return UNTESTED
    alike = [name for name, other in decided if other.verdict is change.verdict]
    standing = Standing.REPLICATED if len(alike) == len(decided) else Standing.NOT_REPLICATED
    name, other = next((one for one in decided if one[1].verdict is not change.verdict), decided[0])
    return Replication(standing, name, other.verdict.words, other.ratio, "".join(alike[:1]))


def held_against(machine: Mapping[str, Any], environment: str, places: Iterable[Place]) -> OtherPlaces:
    """Other lanes of `machine`, and `environment` on other machines of the same kind."""
    lanes, machines = [], []
    for other in sorted(places, key=lambda one: (str(one.machine["machine"]), one.environment)):  # told in this order
        if other.machine["machine"] == machine["machine"]:
            both = {environment, other.environment}
            if len(both) == 2 and all(each.startswith(RELEASE) for each in both):
                lanes.append(other._replace(name=other.environment))
        elif other.environment == environment and alike(machine, other.machine):
            name = processor_of(other.machine) or str(other.machine["machine"])
            machines.append(other._replace(name=name))
    return OtherPlaces(lanes, machines, environment)


def other_places(results_dir: Path, machine: str, environment: str, found: History) -> OtherPlaces:
    """What else in `results_dir` measured what is in `found`, with its versions of the benchmarks."""
    versions = {one.benchmark: pairs[-1][0].version for one, of in found.items() for pairs in of.values() if pairs}
    questions = {benchmark.partition(".")[0] for benchmark in versions}

    @functools.cache
    def read(name: str, lane: str) -> History:
        stored = read_launches(results_dir, name, lane, questions)
        return history(one for one in stored if versions.get(one.benchmark) == one.version)

    def changes(name: str, lane: str, old: str, new: str) -> list[Change]:
        try:
            theirs = read(name, lane)
            is_copied = name != machine and theirs.is_copied(found, old, new)
            return [] if is_copied else compare_history(theirs, old, new)
        except WRONG_DATA as error:
            # Results come from anywhere: whatever another machine's raise must not end a command about this one.
            why = f"{type(error).__name__}: {error}"
            warn(f"{results_dir / name}: {lane} cannot be read ({why}), so it says nothing here.")
            return []

    lanes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name in machines_in(results_dir):
        for tag, lane in map(of_file, files_of(results_dir / name)):
            lanes[name, lane].add(tag)
    places = (
        Place(record_of(results_dir / name), lane, tags, functools.partial(changes, name, lane))
        for (name, lane), tags in lanes.items()
    )
    return held_against(record_of(results_dir / machine), environment, places)


def alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two machines measure the same: on the same kind of device, with as many threads and the same variables set."""
    usual = {"device": "cpu", "threads": "1", "set": ""}
    return all(one.get(key, value) == other.get(key, value) for key, value in usual.items())
