"""How is a history cut into jobs, how long does each take, and when are N nodes done with all?

A job is a session of neighbouring releases, whose rounds are interleaved on one node. Seconds come from stored launches.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from contract.metrics import metric_of

from ..measuring.plan import AT_ONCE, SHARED, anchored, middle, overlapping
from ..store.launches import Launch

START_SECONDS = 12.0
"""What a job takes before its first case where nothing is stored: starting Python and asv, looking for the benchmarks in one
release. Measured on two cores: 9 to 14 seconds."""

INSTALL_SECONDS = 90.0
"""What an environment takes that is not there yet, with the wheels in the cache; a network adds its own."""

GIGABYTES = 5.0
"""The most that a release's environment takes on a disk: 2 of the oldest to 5 of the newest."""

UNKNOWN_SECONDS = 100.0
"""Of one release in one round of one question and kind of which nothing is stored: the slowest on a CPU takes 104."""

KINDS = ("counts", "times")

SESSION_BEGAN = "%Y%m%dT%H%M%S"
"""The name of a session up to its dash: when it began, in UTC."""


@dataclass(frozen=True)
class Job:
    """`releases` of one session, oldest first, the `seconds` that it is forecast to take, and the `gigabytes` that it has to
    install. `number` counts from 0, longest first: in that order nodes take jobs. `anchor` is the release that all jobs
    measure besides, empty of a single job and of counts."""

    number: int
    releases: tuple[str, ...]
    seconds: float
    gigabytes: float
    anchor: str = ""


@dataclass(frozen=True)
class Rates:
    """Seconds that one release takes in one round: `of` (question, kind, release), and `usual` of (question, kind) where
    nothing is known of that release. A round that takes times and counts together takes those of both. `start`: seconds of a
    job before its first case."""

    of: Mapping[tuple[str, str, str], float]
    usual: Mapping[tuple[str, str], float]
    start: float = START_SECONDS

    @property
    def questions(self) -> list[str]:
        return sorted({question for question, _ in self.usual})

    def seconds(self, release: str, question: str, kind: str) -> float:
        usual = self.usual.get((question, kind), UNKNOWN_SECONDS)
        return self.of.get((question, kind, release), usual)


@dataclass(frozen=True)
class Work:
    """What is asked of each release, which says how long it takes: `questions`, `only` times or counts or both where empty,
    the `launches` that measure everything, and the `budget` of one job in seconds, 0 for none."""

    questions: tuple[str, ...]
    only: str
    launches: int
    budget: float = 0.0

    def seconds(self, rates: Rates, releases: Sequence[str]) -> float:
        """Seconds of a session of `releases`, from its first case to its last one."""
        return max(self._once(rates, releases), self.budget)

    def _once(self, rates: Rates, releases: Sequence[str]) -> float:
        """Of the rounds that measure everything; counts that come with times are taken in the first only."""
        rounds = {"times": self.launches, "counts": self.launches if self.only == "counts" else 1}
        kinds = [kind for kind in KINDS if self.only in ("", kind)]
        return sum(
            rounds[kind] * rates.seconds(release, question, kind)
            for release, question, kind in itertools.product(releases, self.questions, kinds)
        )


def rates(launches: Iterable[Launch]) -> Rates:
    """What stored launches say of the time that a release takes. A session's round counts where it is of one kind or the
    first; of rounds that take both kinds the times are what later rounds take."""
    launches = list(launches)
    taken: dict[tuple[str, str, str, int], float] = defaultdict(float)
    kinds: dict[tuple[str, str, str, int], set[str]] = defaultdict(set)
    cases: dict[tuple[str, str, str, int], set[tuple[str, ...]]] = defaultdict(set)
    for launch in launches:
        key = (launch.benchmark.partition(".")[0], launch.release, launch.session, launch.round)
        taken[key] += launch.duration
        kinds[key].add(metric_of(launch.benchmark).kind)
        cases[key].update(case.parameters for case in launch.cases)
    return replace(_rates(taken, kinds, cases), start=_start(launches))


def _start(launches: Iterable[Launch]) -> float:
    """Seconds from the beginning of a session, which its name tells, to its first launch: the least of those stored, which
    had nothing to install; START_SECONDS where none took less."""
    waits: dict[str, float] = {}
    for launch in launches:
        with contextlib.suppress(ValueError):  # a name or a start that is no time tells nothing
            began = datetime.strptime(launch.session.partition("-")[0], SESSION_BEGAN)
            wait = (datetime.fromisoformat(launch.started_at).replace(tzinfo=None) - began).total_seconds()
            waits[launch.session] = min(waits.get(launch.session, wait), wait)
    return min((wait for wait in waits.values() if wait >= 0), default=START_SECONDS)


def _rates(taken: Mapping[Any, float], kinds: Mapping[Any, set[str]], cases: Mapping[Any, set[Any]]) -> Rates:
    """Rates from the seconds, kinds and cases of each (question, release, session, round)."""
    whole: dict[str, int] = defaultdict(int)
    for (question, *_), of_key in cases.items():
        whole[question] = max(whole[question], len(of_key))
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    both: dict[tuple[str, str], list[float]] = defaultdict(list)
    for key, seconds in taken.items():
        question, release = key[:2]
        everything = seconds / len(cases[key]) * whole[question] if cases[key] else 0.0
        if not everything:
            continue
        if len(kinds[key]) == 1:
            found[(question, *kinds[key], release)].append(everything)
        else:
            both[question, release].append(everything)
    for (question, release), seconds_of_both in both.items():
        for kind in KINDS:
            if (question, kind, release) not in found:
                found[question, kind, release].append(statistics.median(seconds_of_both) / len(KINDS))
    of = {key: statistics.median(seconds) for key, seconds in found.items()}
    usual: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (question, kind, _), of_release in of.items():
        usual[question, kind].append(of_release)
    return Rates(of, {key: statistics.median(seconds) for key, seconds in usual.items()})


def cut(releases: Sequence[str], sessions: int, apart: bool) -> list[tuple[str, ...]]:
    """`releases` in so many sessions of neighbours as `overlapping` has them, so that every pair is measured on one node;
    `apart`, as counts allow, which no node changes, none is in two."""
    return [*map(tuple, overlapping(releases, sessions, 0 if apart else SHARED))]


def jobs(releases: Sequence[str], work: Work, rates: Rates, nodes: int, installed: Callable[[str], bool]) -> list[Job]:
    """The jobs of `releases`, longest first, in the cut that `nodes` nodes are done with soonest; of cuts within a hundredth
    of that, the one of the fewest jobs. No session has more than AT_ONCE releases."""
    apart = work.only == "counts"
    steps = max(1, len(releases) - (0 if apart else SHARED))
    size = AT_ONCE if apart else AT_ONCE - 1 - SHARED
    least = 1 if len(releases) <= AT_ONCE else -(-steps // size)
    cuts = range(least, max(least, min(steps, least + 4 * nodes)) + 1)
    forecasts = [_forecast(cut(releases, sessions, apart), work, rates, installed) for sessions in cuts]
    spans = [makespan([job.seconds for job in forecast], nodes) for forecast in forecasts]
    return next(forecast for forecast, span in zip(forecasts, spans, strict=True) if span <= 1.01 * min(spans))


def _forecast(
    sessions: Sequence[tuple[str, ...]], work: Work, rates: Rates, installed: Callable[[str], bool]
) -> list[Job]:
    anchor = middle([*dict.fromkeys(itertools.chain(*sessions))]) if len(sessions) > 1 and work.only != "counts" else ""
    costs = []
    for position, tags in enumerate(sessions):
        measured = anchored(tags, anchor or None)
        missing = sum(not installed(tag) for tag in measured)
        seconds = rates.start + missing * INSTALL_SECONDS + work.seconds(rates, measured)
        costs.append((-seconds, position, tags, missing * GIGABYTES))
    return [
        Job(number, tags, -seconds, gigabytes, anchor)
        for number, (seconds, _, tags, gigabytes) in enumerate(sorted(costs))
    ]


def makespan(seconds: Iterable[float], nodes: int) -> float:
    """Seconds until `nodes` nodes, each of which takes the next job as soon as it is free, are done with jobs of these."""
    free = [0.0] * nodes
    for of_job in seconds:
        heapq.heapreplace(free, free[0] + of_job)
    return max(free)
