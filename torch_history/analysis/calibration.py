"""How often are the verdicts right? What a calibration found: one release under two names, and planted changes.

The launches are kept in `results/<machine>/calibration/`, a line each as everywhere.
"""

from __future__ import annotations

import math
import statistics
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import SessionError
from ..store.launches import Launch, read_file, unfit
from ..system.files import files_in
from . import special
from .series import History, Series, Verdict, history
from .verdicts import Change, Evidence, compare, compare_history, evidence_of, human

FOLDER = "calibration"
"""Folder beside a machine's results, which neither asv nor `read_launches` of the machine looks into."""

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

MANY = 40
"""Series of a kind and size of change from which the share itself is held against LEAST_HELD: one is 2.5 %. Of fewer it is
missed where chance explains so few less than once in twenty times."""

RESAMPLES = 2000

STEADY = ("time",)
SINGLE = ("first_call", "second_call", "median_call", "worst_call")
"""Metrics into which time is planted: steady calls, and single calls of a sequence."""

IN_SINGLE = 10
"""Single calls get so many times the share of steady ones: measure/planted.py."""

KINDS = (("steady calls", STEADY, 1), ("single calls of a sequence", SINGLE, IN_SINGLE))
"""Kinds of series: words, metrics and how many times SHARES they get."""

FACT = "planted"
"""Begin of the name of a launch's fact that says what was really planted into a case: measure/planted.py."""


@dataclass(frozen=True)
class Planted:
    """How one planted change fared: of `series` that got it, `found` were called changed in its direction. `aim` is the
    least share to be found."""

    words: str
    series: int
    found: int
    aim: float | None = None

    @property
    def share(self) -> float:
        return self.found / self.series if self.series else math.nan

    @property
    def misses(self) -> bool:
        return bool(self.series and self.aim and not self.share >= self.aim)


@dataclass(frozen=True)
class Held:
    """Times with a known truth, by variant: whether the interval at NOMINAL holds it, whatever their verdict."""

    words: str
    of_variant: Sequence[Sequence[bool]]

    @property
    def series(self) -> int:
        return sum(map(len, self.of_variant))

    @property
    def holding(self) -> int:
        return sum(map(sum, self.of_variant))

    @property
    def share(self) -> float:
        return self.holding / self.series if self.series else math.nan

    @property
    def range(self) -> tuple[float, float]:
        """The middle 95 % of the share when variants are drawn again, because series of one variant err together; NaN of
        none."""
        if not self.series:
            return math.nan, math.nan
        random, counts = np.random.default_rng(0), np.array([(sum(of), len(of)) for of in self.of_variant])
        drawn = counts[random.integers(len(counts), size=(RESAMPLES, len(counts)))].sum(axis=1)
        low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [0.025, 0.975])
        return float(low), float(high)

    @property
    def misses(self) -> bool:
        """Whether it is below LEAST_HELD: by its share, or of few series by more than chance."""
        if self.series >= MANY:
            return self.share < LEAST_HELD
        return bool(self.series) and float(special.bdtr(self.holding, self.series, LEAST_HELD)) < 0.05


@dataclass(frozen=True)
class Calibration:
    """What the launches of one calibration say. `same` are the verdicts on times of the release against itself, `beside`
    those on times without a change in the arm where others have one; `times` and `counts` are what was planted, `held` how
    often intervals hold it, and `false_counts` the counts that are told as changed and were not, in words."""

    release: str
    environment: str
    launches: Sequence[Launch]
    same: Sequence[Change]
    beside: Sequence[Change]
    times: Sequence[Planted]
    held: Sequence[Held]
    counts: Sequence[Planted]
    false_counts: Sequence[str]

    @property
    def is_planted(self) -> bool:
        """Whether changes were planted, and not only one release compared with itself."""
        return bool(self.beside or any(of.series for of in [*self.times, *self.counts]))

    @property
    def false_times(self) -> list[Change]:
        return [change for change in [*self.same, *self.beside] if change.verdict in (Verdict.SLOWER, Verdict.FASTER)]

    @property
    def false_share(self) -> float:
        return len(self.false_times) / max(1, len(self.same) + len(self.beside))

    @property
    def untold(self) -> float:
        """Share of inconclusive verdicts among the times of the release against itself."""
        return sum(change.verdict is Verdict.CANT_TELL for change in self.same) / max(1, len(self.same))

    @property
    def missed(self) -> list[str]:
        """The aims that this machine misses, in words; none is good."""
        missed = [_not_found(of) for of in self.times if of.misses]
        if self.false_share > MOST_FALSE:
            missed.append(f"{per_cent(self.false_share)} of unchanged times reported as changed")
        if self.untold > MOST_UNTOLD:
            missed.append(f"{per_cent(self.untold)} of unchanged times are inconclusive")
        return [
            *missed,
            *(f"{of.words}: {per_cent(of.share)} of intervals hold it" for of in self.held if of.misses),
            *(_not_found(of) for of in self.counts if of.misses),
            *(f"an unchanged count reported as changed: {words}" for words in self.false_counts),
        ]


def _not_found(of: Planted) -> str:
    return f"{of.words} found in {per_cent(of.share)}"


def read(path: Path) -> Calibration:
    """The calibration kept in `path`. Raises SessionError where that holds none."""
    launches = list(read_file(path))
    counts = [launch for launch in launches if only_counts(launch)]
    times = [launch for launch in launches if not only_counts(launch)]
    if not times or (not counts and any(launch.release == LONGER for launch in times)):
        raise SessionError(f"{path} contains no calibration. Run `torch-history calibrate`.")
    tag, _, environment = path.stem.partition("-")
    if not _times(compare(times, FIRST, SECOND)):
        raise SessionError(f"{path} contains no time that both arms have. Measure for longer.")
    measured = history(times)
    longer = _times(compare_history(measured, FIRST, LONGER))
    planted = [(change, share(change.series)) for change in longer]
    return Calibration(
        release=tag,
        environment=environment,
        launches=launches,
        same=_times(compare_history(measured, FIRST, SECOND)),
        beside=[change for change, size in planted if not size and change.series.metric in (*STEADY, *SINGLE)],
        times=[
            _found(f"{times_as_much * size:+.0%} time: {words}", times_as_much * size, aim, planted, metrics)
            for words, metrics, times_as_much in KINDS
            for size, aim in zip(SHARES, LEAST_FOUND, strict=True)
        ],
        held=_held(measured, really_planted(times)),
        counts=_planted_counts(counts),
        false_counts=_false_counts(counts),
    )


def _held(measured: History, really: Mapping[Series, float]) -> list[Held]:
    """By kind of series and size of change; those without a change are of both arms. `really` is what `really_planted`
    tells."""
    found: dict[tuple[str, float], dict[Variant, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for arm in (SECOND, LONGER):
        truth = really if arm == LONGER else {}
        for series, said in evidence(measured, FIRST, arm).items():
            if series.metric not in (*STEADY, *SINGLE):
                continue
            size = share(series) if arm == LONGER else 0.0
            low, high = said.interval(NOMINAL)
            words = KINDS[series.metric in SINGLE][0]
            found[words, size][variant(series)].append(bool(low <= truth.get(series, 1 + size) <= high))
    held = []
    for kind, _, multiple in KINDS:
        for share_of in (0.0, *SHARES):
            of = [by for key, by in found.items() if key[0] == kind and math.isclose(key[1], multiple * share_of)]
            truth_said = f"{multiple * share_of:+.0%} time: {kind}" if share_of else f"unchanged: {kind}"
            held.append(Held(truth_said, [one for by in of for one in by.values()]))
    return held


Variant = tuple[str, str]
"""A question and a variant of it."""


def variant(series: Series) -> Variant:
    return series.question, series.parameters[0] if series.parameters else ""


def evidence(found: History, old: str, new: str) -> dict[Series, Evidence]:
    """Of each time that rounds tie on both."""
    return {series: said for fit in found.fits.values() for series, said in evidence_of(fit, old, new).items()}


def really_planted(launches: Iterable[Launch]) -> dict[Series, float]:
    """Series of steady calls -> how many times as long the calls of the arm LONGER were made, as their processes told it:
    the geometric mean over launches. Launches of before that was told are not in it."""
    found: dict[Series, list[float]] = defaultdict(list)
    for launch in launches:
        for case in launch.cases:
            series = Series(launch.environment, launch.benchmark, case.parameters)
            told = launch.facts.get(f"{FACT} {_case(series)}")
            if launch.release == LONGER and case.samples and told and series.metric in STEADY:
                found[series].append(math.log(told))
    return {series: math.exp(statistics.fmean(of)) for series, of in found.items()}


def share(series: Series) -> float:
    """What measure/planted.py plants in this case of the arm LONGER: the same checksum of its name."""
    if series.metric not in (*STEADY, *SINGLE):
        return 0.0
    size = (*SHARES, 0.0, 0.0, 0.0)[zlib.crc32(_case(series).encode()) % 6]
    return IN_SINGLE * size if series.metric in SINGLE else size


def _case(series: Series) -> str:
    return " ".join(parameter.strip("'") for parameter in series.parameters)


def only_counts(launch: Launch) -> bool:
    return Series(launch.environment, launch.benchmark, ()).is_counted


def _times(changes: Iterable[Change]) -> list[Change]:
    return [change for change in changes if change.series.varies and change.old is not None and change.new is not None]


def _found(
    words: str, size: float, aim: float, planted: Sequence[tuple[Change, float]], metrics: Sequence[str]
) -> Planted:
    changes = [change for change, of in planted if math.isclose(of, size) and change.series.metric in metrics]
    found = [change for change in changes if change.verdict is Verdict.SLOWER]
    return Planted(words, len(changes), len(found), aim)


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
    machines = (folder for folder in sorted(results.glob("*/")) if not unfit(folder))
    return [path for folder in machines for path in files_in(folder / FOLDER, "*.jsonl")]


def per_cent(share: float) -> str:
    return f"{100 * share:.1f} %"
