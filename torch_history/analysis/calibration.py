"""How often are the verdicts right? What a calibration found: one release under two names, and planted changes."""

import math
import statistics
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..store.launches import Launch, read_file, unfit
from ..system.errors import SessionError
from ..system.files import files_in
from . import special
from .series import History, Series, Verdict, history
from .verdicts import Change, compare, compare_history, evidence_between, human

FOLDER = "calibration"  # beside a machine's results; neither asv nor `read_launches` looks into it

FIRST, SECOND, LONGER = "first", "second", "longer"
TIMES = {FIRST: "", SECOND: "", LONGER: "time"}
ITSELF = {FIRST: "", SECOND: ""}
COUNTS = {FIRST: "", SECOND: "", "operator": "operator", "peak": "peak", "failure": "failure"}
"""Name of an arm -> what measure/planted.py puts into its cases. Each is compared with the first."""

SHARES = (0.05, 0.1, 0.2)
LEAST_FOUND = (0.8, 0.95, 0.95)
MOST_FALSE = 0.01
MOST_UNTOLD = 0.25
"""What is aimed at: shares of times called changed where time was planted and where none was, and of CAN'T TELL."""

NOMINAL = 0.95
LEAST_HELD = 0.93
"""What intervals say of themselves, and the least share of them that shall hold the truth."""

MANY = 40  # intervals from which their own share is held against LEAST_HELD; of fewer, what chance explains

STEADY = ("time",)
SINGLE = ("first_call", "second_call", "median_call", "worst_call")
"""Metrics into which time is planted: steady calls, and single calls of a sequence."""

IN_SINGLE = 10  # single calls get so many times the share of steady ones: measure/planted.py

KINDS = (("steady calls", STEADY, 1), ("single calls of a sequence", SINGLE, IN_SINGLE))
"""Kinds of series: words, metrics and how many times SHARES they get."""

FACT = "planted"  # begin of the name of a launch's fact that says what was planted: measure/planted.py


@dataclass(frozen=True)
class Share:
    """Of so many `series` it is so of `hits`; `aim` is the least share, which few may miss by chance if `by_chance`."""

    words: str
    series: int
    hits: int
    aim: float
    by_chance: bool = False

    @property
    def share(self) -> float:
        return self.hits / self.series if self.series else math.nan

    @property
    def misses(self) -> bool:
        if self.by_chance and self.series < MANY:
            return bool(self.series) and float(special.bdtr(self.hits, self.series, self.aim)) < 0.05
        return self.share < self.aim


@dataclass(frozen=True)
class Calibration:
    """Verdicts on times of the release against itself (`same`) and on unchanged ones `beside` others; what was found of
    planted times and counts, how often intervals `held` the truth, and `false_counts` in words."""

    release: str
    environment: str
    launches: Sequence[Launch]
    same: Sequence[Change]
    beside: Sequence[Change]
    planted: Sequence[Share]
    held: Sequence[Share]
    false_counts: Sequence[str]

    @property
    def unchanged(self) -> list[Change]:
        return [*self.same, *self.beside]

    @property
    def false_times(self) -> list[Change]:
        return [change for change in self.unchanged if change.verdict in (Verdict.SLOWER, Verdict.FASTER)]

    @property
    def false_share(self) -> float:
        return len(self.false_times) / max(1, len(self.unchanged))

    @property
    def untold(self) -> float:
        """Share of inconclusive verdicts among the times of the release against itself."""
        return sum(change.verdict is Verdict.CANT_TELL for change in self.same) / max(1, len(self.same))

    @property
    def missed(self) -> list[str]:
        """The aims that this machine misses, in words; none is good."""
        missed = [f"{of.words} found in {per_cent(of.share)}" for of in self.planted if of.misses]
        if self.false_share > MOST_FALSE:
            missed.append(f"{per_cent(self.false_share)} of unchanged times reported as changed")
        if self.untold > MOST_UNTOLD:
            missed.append(f"{per_cent(self.untold)} of unchanged times are inconclusive")
        missed += [f"{of.words}: {per_cent(of.share)} of intervals hold it" for of in self.held if of.misses]
        return missed + [f"an unchanged count reported as changed: {words}" for words in self.false_counts]


def read(path: Path) -> Calibration:
    """The calibration kept in `path`. Raises SessionError where that holds none."""
    launches = list(read_file(path))
    times, counts = ([one for one in launches if only_counts(one) is counted] for counted in (False, True))
    if not times or (not counts and any(launch.release == LONGER for launch in times)):
        raise SessionError(f"{path} contains no calibration. Run `torch-history run --calibrate`.")
    tag, _, environment = path.stem.partition("-")
    measured = history(times)
    same, longer = (_times(compare_history(measured, FIRST, arm)) for arm in (SECOND, LONGER))
    if not same:
        raise SessionError(f"{path} contains no time that both arms have. Measure for longer.")
    timed = [change for change in longer if change.series.metric in (*STEADY, *SINGLE)]
    return Calibration(
        release=tag,
        environment=environment,
        launches=launches,
        same=same,
        beside=[change for change in timed if not share(change.series)],
        planted=[*_planted_times(timed), *_planted_counts(counts)],
        held=_held(measured, times),
        false_counts=[
            f"{one.series.words}: {human(one.old, one.series.unit)} and {human(one.new, one.series.unit)}"
            for one in compare(counts, FIRST, SECOND)
            if one.verdict not in (Verdict.SAME, Verdict.NEVER_RAN)
        ],
    )


def _times(changes: Iterable[Change]) -> list[Change]:
    return [change for change in changes if change.series.varies and change.old is not None and change.new is not None]


def _planted_times(changes: Sequence[Change]) -> list[Share]:
    """By kind of series and size of change."""
    found = []
    for kind, metrics, multiple in KINDS:
        for size, aim in zip(SHARES, LEAST_FOUND, strict=True):
            of = [c for c in changes if c.series.metric in metrics and math.isclose(share(c.series), multiple * size)]
            hits = sum(change.verdict is Verdict.SLOWER for change in of)
            found.append(Share(f"{multiple * size:+.0%} time: {kind}", len(of), hits, aim))
    return found


def _planted_counts(launches: Sequence[Launch]) -> list[Share]:
    found = []
    for words, arm, metric, verdict, more in (
        ("one operator more", "operator", "operators", Verdict.MORE, 1),
        ("4 KiB more at the peak", "peak", "peak_memory", Verdict.HUNGRIER, 4096),
        ("a failure", "failure", "", Verdict.BROKE, None),
    ):
        known = [c for c in compare(launches, FIRST, arm) if c.old is not None and metric in ("", c.series.metric)]
        hits = [c for c in known if c.verdict is verdict and (more is None or (c.new or 0) - (c.old or 0) == more)]
        found.append(Share(words, len(known), len(hits), 1.0))
    return found


def _held(measured: History, launches: Iterable[Launch]) -> list[Share]:
    """How often intervals hold a truth that is known: of unchanged times, and steady calls whose delay was told."""
    really = _really_planted(launches)
    found: dict[tuple[float, str], list[bool]] = defaultdict(list)
    for fit in measured.fits.values():
        lows, highs = evidence_between(fit, [(FIRST, SECOND), (FIRST, LONGER)]).interval(NOMINAL)
        for series, *ends in zip(fit.levels, lows, highs, strict=True):
            for size, low, high in zip((0.0, share(series)), *ends, strict=True):
                truth = really.get(series) if size else 1.0
                for kind in (kind for kind, metrics, _ in KINDS if series.metric in metrics):
                    if truth and not np.isnan(low):
                        found[size, kind].append(bool(low <= truth <= high))
    named = ((f"{size:+.0%} time" if size else "unchanged", kind, of) for (size, kind), of in sorted(found.items()))
    return [Share(f"{what}: {kind}", len(of), sum(of), LEAST_HELD, by_chance=True) for what, kind, of in named]


def _really_planted(launches: Iterable[Launch]) -> dict[Series, float]:
    """Series of steady calls -> how many times as long calls of LONGER were made: the geometric mean over launches."""
    found: dict[Series, list[float]] = defaultdict(list)
    for launch in launches:
        for case in launch.cases:
            series = Series(launch.environment, launch.benchmark, case.parameters)
            told = launch.facts.get(f"{FACT} {series.case}")
            if launch.release == LONGER and case.samples and told and series.metric in STEADY:
                found[series].append(math.log(told))
    return {series: math.exp(statistics.fmean(of)) for series, of in found.items()}


def share(series: Series) -> float:
    """What measure/planted.py plants in this case of the arm LONGER: the same checksum of its name."""
    if series.metric not in (*STEADY, *SINGLE):
        return 0.0
    size = (*SHARES, 0.0, 0.0, 0.0)[zlib.crc32(series.case.encode()) % 6]
    return IN_SINGLE * size if series.metric in SINGLE else size


def only_counts(launch: Launch) -> bool:
    return Series(launch.environment, launch.benchmark, ()).is_counted


def files(results: Path) -> list[Path]:
    """Every kept calibration, machine by machine."""
    machines = (folder for folder in sorted(results.glob("*/")) if not unfit(folder))
    return [path for folder in machines for path in files_in(folder / FOLDER, "*.jsonl")]


def per_cent(share: float) -> str:
    return f"{100 * share:.1f} %"
