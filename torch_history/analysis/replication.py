"""Does another wheel of the same releases say the same, and another processor?

A release is built once for each Python, and a lane holds one build. Two builds of one source differ in where loops and data
lie, which can move a time by a few per cent and now and then by a third. A processor with other caches and other vector
instructions can move it further. So a change that one lane tells is held against the verdict of every other lane of its
machine, and of the same lane on every other machine, that measured the same two releases.
"""

from __future__ import annotations

import enum
import functools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..store.launches import files_of, machines_in, of_file, read_launches
from ..store.machines import processor_of, record_of
from ..system.files import WRONG_DATA, warn
from .series import History, Series, Verdict, history
from .verdicts import Change, compare_history, times

TOLD = (Verdict.SLOWER, Verdict.FASTER)
"""Verdicts on a time that has changed."""

DECIDED = (*TOLD, Verdict.SAME)
"""Verdicts on a time that was decided."""

LANES = "release-py"
"""How the environments begin that hold a build of their own for each Python."""


class Standing(enum.Enum):
    """Whether a change of a time was seen in another place, too."""

    REPLICATED = "replicated"
    NOT_REPLICATED = "not replicated"
    NOT_TESTABLE = "not testable"


class Replication(NamedTuple):
    """The standing of a change, the place that gives it and what that place says, all empty where none can. `also` is one
    that has the change where another one, which gives the standing, has not."""

    standing: Standing
    place: str = ""
    verdict: str = ""
    ratio: float | None = None
    also: str = ""


UNTESTED = Replication(Standing.NOT_TESTABLE)


class Elsewhere(NamedTuple):
    """What is said of a change in other lanes, which have wheels of their own, and on other machines."""

    wheels: Replication = UNTESTED
    machines: Replication = UNTESTED

    @property
    def words(self) -> str:
        """As the sentence of the change says it, empty where nothing is known."""
        lane, machine = self.wheels, self.machines
        told = [
            _words(
                lane,
                f"replicated in {lane.place}",
                f"replicated in {lane.also}, but {lane.verdict} in {lane.place}",
                f"this wheel only: {lane.verdict} in {lane.place}",
            ),
            _words(
                machine,
                f"seen on another machine, too ({machine.place}: {_factor(machine)})",
                f"seen on another machine, too ({machine.also}), but {machine.verdict} on a third one ({machine.place})",
                f"this machine only: {machine.verdict} on another one ({machine.place})",
            ),
        ]
        return ", ".join(filter(None, told))


def _words(said: Replication, seen: str, disputed: str, alone: str) -> str:
    """Whichever applies: seen in another place, seen in one and not in another, or not seen in any other."""
    if said.standing is Standing.NOT_TESTABLE:
        return ""
    if said.standing is Standing.REPLICATED:
        return seen
    return disputed if said.also else alone


NOWHERE = Elsewhere()


class Place(NamedTuple):
    """Another lane, or with `is_machine` the same lane of another machine: the releases that it has, and what it says of
    times from one of them to another."""

    name: str
    is_machine: bool
    tags: Collection[str]
    changes: Callable[[str, str], Iterable[Change]]


_Changes = dict[tuple[str, tuple[str, ...]], Change]
"""A series without its lane -> what became of it."""


@dataclass(frozen=True)
class OtherPlaces:
    """What measured the same as one lane; read when it is asked for."""

    places: Sequence[Place]
    _known: dict[tuple[int, str, str], _Changes] = field(default_factory=dict)

    def of(self, changes: Iterable[Change], old: str, new: str) -> dict[Series, Elsewhere]:
        """Each told change of a time from one release to another -> what the others say of it."""
        told = [change for change in changes if change.verdict in TOLD]
        able = [i for i, place in enumerate(self.places) if {old, new} <= {*place.tags}] if told else []

        def said(change: Change, on_machines: bool) -> Replication:
            return replication(
                change,
                [
                    (self.places[i].name, self._changes(i, old, new).get(_anywhere(change.series)))
                    for i in able
                    if self.places[i].is_machine is on_machines
                ],
            )

        return {change.series: Elsewhere(said(change, False), said(change, True)) for change in told}

    def words(self, change: Change, old: str, new: str) -> str:
        """What they say of one change, for its sentence."""
        return self.of([change], old, new).get(change.series, NOWHERE).words

    def _changes(self, place: int, old: str, new: str) -> _Changes:
        key = place, old, new
        if key not in self._known:
            found = self.places[place].changes(old, new)
            self._known[key] = {_anywhere(change.series): change for change in found}
        return self._known[key]


def replication(change: Change, places: Iterable[tuple[str, Change | None]]) -> Replication:
    """What other places say of one change, each by its name; None where a place lacks the series. One that decides
    otherwise is enough for NOT_REPLICATED."""
    decided = [(name, other) for name, other in places if other and other.verdict in DECIDED]
    alike = [(name, other) for name, other in decided if other.verdict is change.verdict]
    for name, other in decided:
        if other.verdict is not change.verdict:
            also = alike[0][0] if alike else ""
            return Replication(Standing.NOT_REPLICATED, name, other.verdict.words, other.ratio, also)
    for name, other in alike:
        return Replication(Standing.REPLICATED, name, other.verdict.words, other.ratio)
    return UNTESTED


def _factor(said: Replication) -> str:
    ratio = said.ratio or 1.0
    return f"{times(max(ratio, 1 / ratio))} times"


def _anywhere(series: Series) -> tuple[str, tuple[str, ...]]:
    """A series without its lane."""
    return series.benchmark, series.parameters


class Measured(NamedTuple):
    """A lane of a machine: the machine's record, the releases that it has, and what it says of times from one to another."""

    machine: Mapping[str, Any]
    environment: str
    tags: Collection[str]
    changes: Callable[[str, str], Iterable[Change]]


def held_against(machine: Mapping[str, Any], environment: str, measured: Iterable[Measured]) -> OtherPlaces:
    """Those of `measured` that say something of what `machine` did in `environment`: its other lanes, and that lane on other
    machines of the same kind."""
    places = []
    for other in measured:
        is_machine = other.machine["machine"] != machine["machine"]
        if is_machine and other.environment == environment and alike(machine, other.machine):
            places.append(
                Place(
                    processor_of(other.machine) or str(other.machine["machine"]),
                    True,
                    frozenset(other.tags),
                    other.changes,
                )
            )
        lanes = {environment, other.environment}
        if not is_machine and len(lanes) == 2 and all(lane.startswith(LANES) for lane in lanes):
            places.append(Place(other.environment, False, frozenset(other.tags), other.changes))
    return OtherPlaces(tuple(places))


def other_places(results_dir: Path, machine: str, environment: str, found: History) -> OtherPlaces:
    """What else in `results_dir` measured what is in `found`, of `machine` in `environment`, each with the versions of the
    benchmarks that are in `found`."""
    versions = {
        series.benchmark: pairs[-1][0].version for series, of in found.items() for pairs in of.values() if pairs
    }
    questions = {benchmark.partition(".")[0] for benchmark in versions}

    here = _sessions(found)

    @functools.cache
    def read(name: str, lane: str) -> History:
        stored = read_launches(results_dir, name, lane, questions)
        return history(one for one in stored if versions.get(one.benchmark) == one.version)

    def changes(name: str, lane: str, old: str, new: str) -> list[Change]:
        try:
            theirs = read(name, lane)
            copied = name != machine and any(
                _sessions(theirs).get(tag, set()) & here.get(tag, set()) for tag in (old, new)
            )
            return [] if copied else compare_history(theirs, old, new)
        except WRONG_DATA as error:
            # Results come from anywhere: whatever another machine's raise must not end a command about this one.
            warn(
                f"{results_dir / name}: {lane} cannot be read ({type(error).__name__}: {error}), so it says nothing here."
            )
            return []

    return held_against(
        record_of(results_dir / machine),
        environment,
        [
            Measured(record_of(results_dir / name), lane, tags, functools.partial(changes, name, lane))
            for name in machines_in(results_dir)
            for lane, tags in _lanes(results_dir / name).items()
        ],
    )


def _sessions(found: History) -> dict[str, set[str]]:
    """Release -> the sessions that measured it. A session is of one machine: another that has it holds a copy, which
    confirms nothing."""
    sessions: dict[str, set[str]] = defaultdict(set)
    for of in found.values():
        for tag, pairs in of.items():
            sessions[tag].update(launch.session for launch, _ in pairs)
    return sessions


def alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two machines measure the same: on the same kind of device, with as many threads and the same variables set."""
    usual = {"device": "cpu", "threads": "1", "set": ""}
    return all(one.get(key, value) == other.get(key, value) for key, value in usual.items())


def _lanes(folder: Path) -> dict[str, set[str]]:
    """Lane -> the releases that a machine's folder has files of."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in files_of(folder):
        tag, lane = of_file(path)
        found[lane].add(tag)
    return found
