"""How often are the verdicts right? What a calibration found: one release under two names, and planted changes.

The launches are kept in `results/<machine>/calibration/`, a line each as everywhere.
"""

from __future__ import annotations

import math
import statistics
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import SessionError
from ..store.launches import Launch, read_file
from .verdicts import Change, Series, Verdict, compare, human

FOLDER = "calibration"
"""Folder beside a machine's results, which neither asv nor `read_launches` of the machine looks into."""

FIRST, SECOND, LONGER = "first", "second", "longer"
TIMES = {FIRST: "", SECOND: "", LONGER: "time"}
COUNTS = {FIRST: "", SECOND: "", "operator": "operator", "peak": "peak", "failure": "failure"}
"""Name of an arm -> what measure/planted.py puts into its cases. Each is compared with the first."""

SHARES = (0.05, 0.1, 0.2)
LEAST_FOUND = (0.8, 0.95, 0.95)
MOST_FALSE = 0.01
MOST_UNTOLD = 0.25
"""What is aimed at: shares of times called changed where time was planted and where none was, and of CAN'T TELL."""

STEADY = ("time",)
SINGLE = ("first_call", "second_call", "median_call", "worst_call")
"""Metrics into which time is planted: steady calls, and single calls of a sequence."""

IN_SINGLE = 10
"""Single calls get so many times the share of steady ones: measure/planted.py."""


@dataclass(frozen=True)
class Planted:
    """How one planted change fared: of `series` that got it, `found` were called changed in its direction, and in `covered`
    the interval of the ratio holds what was planted. `aim` is the least share to be found."""

    words: str
    series: int
    found: int
    aim: float | None = None
    covered: int | None = None

    @property
    def share(self) -> float:
        return self.found / self.series if self.series else math.nan


@dataclass(frozen=True)
class Calibration:
    """What the launches of one calibration say. `same` are the verdicts on the release against itself, `beside` those on
    times without a change in the arm where others have one."""

    release: str
    environment: str
    launches: Sequence[Launch]
    same: Sequence[Change]
    beside: Sequence[Change]
    times: Sequence[Planted]
    counts: Sequence[Planted]
    false_counts: Sequence[str]

    @property
    def false_times(self) -> list[Change]:
        return [change for change in [*self.same, *self.beside] if change.verdict in (Verdict.SLOWER, Verdict.FASTER)]

    @property
    def false_share(self) -> float:
        return len(self.false_times) / max(1, len(self.same) + len(self.beside))

    @property
    def missed(self) -> list[str]:
        """The aims that this machine misses, in words; none is good."""
        missed = [
            f"{of.words} found in {per_cent(of.share)}"
            for of in self._planted
            if of.series and of.aim and not of.share >= of.aim
        ]
        if self.false_share > MOST_FALSE:
            missed.append(f"{per_cent(self.false_share)} of unchanged times reported as changed")
        if self.untold > MOST_UNTOLD:
            missed.append(f"{per_cent(self.untold)} of unchanged times are inconclusive")
        return missed + [f"an unchanged count reported as changed: {words}" for words in self.false_counts]

    @property
    def _planted(self) -> list[Planted]:
        return [*self.times, *self.counts]

    @property
    def untold(self) -> float:
        """Share of inconclusive verdicts among the times of the release against itself."""
        return sum(change.verdict is Verdict.CANT_TELL for change in self.same) / max(1, len(self.same))


def read(path: Path) -> Calibration:
    """The calibration kept in `path`. Raises SessionError where that holds none."""
    launches = list(read_file(path))
    counts = [launch for launch in launches if only_counts(launch)]
    times = [launch for launch in launches if not only_counts(launch)]
    if not counts or not times:
        raise SessionError(f"{path} contains no calibration. Run `torch-history calibrate`.")
    tag, _, environment = path.stem.partition("-")
    against_itself = _times(compare(times, FIRST, SECOND))
    longer = _times(compare(times, FIRST, LONGER))
    planted = [(change, share(change.series)) for change in longer]
    return Calibration(
        release=tag,
        environment=environment,
        launches=launches,
        same=against_itself,
        beside=[change for change, size in planted if not size and change.series.metric in (*STEADY, *SINGLE)],
        times=[
            _found(f"{times * size:+.0%} time: {words}", times * size, aim, planted, metrics)
            for words, metrics, times in (
                ("steady calls", STEADY, 1),
                ("single calls of a sequence", SINGLE, IN_SINGLE),
            )
            for size, aim in zip(SHARES, LEAST_FOUND, strict=True)
        ],
        counts=_planted_counts(counts),
        false_counts=_false_counts(counts),
    )


def share(series: Series) -> float:
    """What measure/planted.py plants in this case of the arm LONGER: the same checksum of its name."""
    if series.metric not in (*STEADY, *SINGLE):
        return 0.0
    case = " ".join(parameter.strip("'") for parameter in series.parameters)
    size = (*SHARES, 0.0, 0.0, 0.0)[zlib.crc32(case.encode()) % 6]
    return IN_SINGLE * size if series.metric in SINGLE else size


def only_counts(launch: Launch) -> bool:
    return Series(launch.environment, launch.benchmark, ()).is_counted


def _times(changes: Iterable[Change]) -> list[Change]:
    return [change for change in changes if change.series.varies and change.old is not None and change.new is not None]


def _found(
    words: str, size: float, aim: float, planted: Sequence[tuple[Change, float]], metrics: Sequence[str]
) -> Planted:
    changes = [change for change, of in planted if math.isclose(of, size) and change.series.metric in metrics]
    holding = [change for change in changes if (change.low or 0) <= 1 + size <= (change.high or 0)]
    found = [change for change in changes if change.verdict is Verdict.SLOWER]
    return Planted(words, len(changes), len(found), aim, len(holding))


def _planted_counts(launches: Sequence[Launch]) -> list[Planted]:
    operators = [change for change in compare(launches, FIRST, "operator") if change.series.metric == "operators"]
    peaks = [change for change in compare(launches, FIRST, "peak") if change.series.metric == "peak_memory"]
    failures = [change for change in compare(launches, FIRST, "failure") if change.old is not None]
    return [
        _exactly("one operator more", operators, Verdict.MORE, 1),
        _exactly("4 KiB more at the peak", peaks, Verdict.HUNGRIER, 4096),
        Planted("a failure", len(failures), sum(change.verdict is Verdict.BROKE for change in failures), 1.0),
    ]


def _exactly(words: str, changes: Sequence[Change], verdict: Verdict, more: float) -> Planted:
    known = [change for change in changes if change.old is not None]
    found = [
        change
        for change in known
        if change.verdict is verdict and change.new is not None and change.new - (change.old or 0) == more
    ]
    return Planted(words, len(known), len(found), 1.0)


def _false_counts(launches: Sequence[Launch]) -> list[str]:
    """Counts that are called changed although nothing was planted in them, in words."""
    changes = compare(launches, FIRST, SECOND)
    return [
        f"{change.series.words}: {human(change.old, change.series.unit)} and {human(change.new, change.series.unit)}"
        for change in changes
        if change.verdict not in (Verdict.SAME, Verdict.NEVER_RAN)
    ]


def scatter(launches: Iterable[Launch], number: Callable[[Sequence[float]], float]) -> float:
    """By how much two launches of the release in one round differ, as a share: the median over rounds and steady times,
    where `number` makes one number of a launch's samples."""
    found: dict[object, dict[str, float]] = defaultdict(dict)
    for launch in launches:
        for case in launch.cases:
            if case.samples and launch.release in (FIRST, SECOND):
                found[launch.benchmark, case.parameters, launch.round][launch.release] = number(case.samples)
    pairs = [of for of in found.values() if len(of) == 2]
    return statistics.median(abs(math.log(of[SECOND] / of[FIRST])) for of in pairs) if pairs else math.nan


def files(results: Path) -> list[Path]:
    """Every kept calibration, machine by machine."""
    return sorted(results.glob(f"*/{FOLDER}/*.jsonl"))


def per_cent(share: float) -> str:
    return f"{100 * share:.1f} %"
