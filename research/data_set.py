"""Labelled series for detectors of changes: `python -m research.data_set` makes datasets/yardstick/series.jsonl.gz again
from the committed launches, with a fixed seed."""

import gzip
import json
import math
import statistics
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from torch_history.analysis import calibration, steps
from torch_history.analysis.compare import choose_machine
from torch_history.analysis.series import History, Series, history
from torch_history.releases.axis import Axis
from torch_history.store.launches import Case, Launch, read_launches

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "datasets" / "yardstick" / "series.jsonl.gz"
SEED = 20261124

SIZES = (0.03, 0.05, 0.1, 0.2, 0.5)
"""Of planted changes, as shares of the lower level."""

BINS = {"below 1 %": 0.01, "1 to 3 %": 0.03, "3 to 10 %": 0.1, "10 % and more": math.inf}
"""Noise level -> its upper end: the standard deviation of a launch's logarithm."""

FOLDS = 5
"""Of series, the same in both lanes: a detector's setting for one is chosen by what scores best on the others."""


@dataclass(frozen=True)
class Effects:
    """What acts on launches of made series besides their noise: whether sessions act on all of a lane as they did in the
    committed results, and the standard deviations of logarithms of what each session and each round does to one series."""

    common: bool = False
    session: float = 0.0
    round: float = 0.0


BATCHES = {"level": Effects(), "sessions": Effects(True), "besides": Effects(True, 0.02, 0.018)}
"""Begin of a batch's name -> what acts there. The last is what the committed results show."""

PAIRS = {calibration.SECOND: "A/A", calibration.LONGER: "planted pair"}
"""Name of a release in a calibration -> the kind of series that it makes with the first name."""


@dataclass(frozen=True)
class Record:
    """A series with its labels. `launches` holds of each release [session, round, seconds]; `changes` holds of each true
    change [position, ratio]."""

    id: str
    batch: str
    lane: str
    benchmark: str
    parameters: list[str]
    kind: str
    noise: float
    releases: list[str]
    launches: list[list[tuple[str, int, float]]]
    changes: list[tuple[int, float]]

    @property
    def series(self) -> Series:
        return Series(self.lane, self.benchmark, tuple(self.parameters))

    @property
    def level(self) -> str:
        """Its noise level."""
        return next(words for words, end in BINS.items() if self.noise < end)

    @property
    def fold(self) -> int:
        return zlib.crc32(" ".join([self.benchmark, *self.parameters]).encode()) % FOLDS


Cells = dict[str, list[tuple[str, int, float]]]
"""Release -> its launches: session, round, seconds."""


def cells(releases: Mapping[str, Sequence[tuple[Launch, Case]]]) -> Cells:
    found = {
        tag: [(one.session, one.round, case.number) for one, case in of if case.number] for tag, of in releases.items()
    }
    return {tag: of for tag, of in found.items() if of}


def noise_of(of: Cells) -> dict[str, np.ndarray]:
    """Session -> what releases and rounds leave of the logarithms there."""
    sessions: dict[str, list[tuple[str, int, float]]] = defaultdict(list)
    for tag, launches in of.items():
        for session, turn, seconds in launches:
            sessions[session].append((tag, turn, math.log(seconds)))
    return {session: left(numbers) for session, numbers in sessions.items()}


def left(of: list[tuple[str, int, float]]) -> np.ndarray:
    """What releases and rounds leave of the logarithms of a session, widened by what these took from it."""
    tags, rounds = (sorted({one[i] for one in of}, key=str) for i in (0, 1))
    freedom = len(of) - len(tags) - len(rounds) + 1
    if freedom < 1:
        return np.zeros(0)
    design = [[tag == each for each in tags] + [turn == each for each in rounds] for tag, turn, _ in of]
    return _residuals(np.array(design, float), [one[2] for one in of])[0] * math.sqrt(len(of) / freedom)


def session_effects(lane: Iterable[Cells]) -> dict[str, float]:
    """How much slower each session was, as a logarithm: the median over series of a fit of releases and sessions."""
    found: dict[str, list[float]] = defaultdict(list)
    for of in lane:
        numbers = [(tag, one[0], math.log(one[2])) for tag, launches in of.items() for one in launches]
        tags, sessions = list(of), sorted({session for _, session, _ in numbers})
        design = np.zeros((len(numbers), len(tags) + len(sessions)))
        for row, (tag, session, _) in enumerate(numbers):
            design[row, [tags.index(tag), len(tags) + sessions.index(session)]] = 1
        effects = _residuals(design, [one[2] for one in numbers])[1][len(tags) :]
        for session, effect in zip(sessions, effects - effects.mean(), strict=True):
            found[session].append(float(effect))
    return {session: statistics.median(of) for session, of in found.items()}


def _residuals(design: np.ndarray, numbers: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """What a fit by least squares leaves of numbers, and its effects."""
    effects = np.linalg.lstsq(design, np.array(numbers), rcond=None)[0]
    return np.array(numbers) - design @ effects, effects


def planted(length: int, random: np.random.Generator) -> tuple[str, list[tuple[int, float]]]:
    """What is planted into a series of so many releases: nothing in half of them, a step in a third, else an excursion."""
    kind = str(random.choice(["quiet"] * 3 + ["step"] * 2 + ["excursion"]))
    size = float(random.choice(SIZES))
    ratio = round(1 + size if random.random() < 0.5 else 1 / (1 + size), 6)
    place, lasts = int(random.integers(1, length)), int(random.integers(1, steps.EXCURSION + 1))
    if kind == "quiet":
        return kind, []
    if kind == "step" or place + lasts >= length:
        return "step", [(place, ratio)]
    return kind, [(place, ratio), (place + lasts, round(1 / ratio, 6))]


def batch(
    name: str, lane: History, sessions: Mapping[str, float], effects: Effects, random: np.random.Generator
) -> Iterator[Record]:
    """Every time of a lane at one level, with the noise of its own sessions, what acts there, and what is planted."""
    for series, releases in lane.items():
        of = cells(releases)
        noise = noise_of(of)
        usual = np.concatenate([*noise.values()]) if noise else np.zeros(0)
        if not usual.any() or len(of) < 2:
            continue
        kind, changes = planted(len(of), random)
        of_session, of_round = _drawn(effects.session, random), _drawn(effects.round, random)
        made: Cells = {}
        for position, (tag, launches) in enumerate(of.items()):
            level = math.prod(ratio for place, ratio in changes if place <= position)
            made[tag] = []
            for session, turn, _ in launches:
                shift = float(random.choice(noise[session] if noise[session].any() else usual))
                shift += sessions.get(session, 0.0) + of_session[session] + of_round[session, turn]
                made[tag].append((session, turn, level * math.exp(shift)))
        yield record(name, series, made, kind, float(usual.std()), changes)


def _drawn(scatter: float, random: np.random.Generator) -> dict[object, float]:
    """What each session or round adds to the logarithms of a series, drawn when it is first asked for."""
    return defaultdict(lambda: float(random.normal(0, scatter)) if scatter else 0.0)


def calibrated() -> Iterator[Record]:
    """One release under two names, and the same release with time planted in its process."""
    for path in calibration.files(ROOT / "results"):
        times = [launch for launch in calibration.read(path).launches if not calibration.only_counts(launch)]
        found = history(times)
        for arm, kind in PAIRS.items():
            for series, releases in found.items():
                of = {tag: numbers for tag, numbers in cells(releases).items() if tag in (calibration.FIRST, arm)}
                known = kind == "A/A" or series.metric in (*calibration.STEADY, *calibration.SINGLE)
                if series.varies and known and len(of) == 2:
                    size = calibration.share(series) if arm == calibration.LONGER else 0.0
                    noise = np.concatenate([*noise_of(of).values()])
                    changes = [(1, 1 + size)] if size else []
                    name = f"{kind} {series.environment}"
                    yield record(name, series, of, kind, float(noise.std()) if noise.size else 0.0, changes)


def record(name: str, series: Series, of: Cells, kind: str, noise: float, changes: list[tuple[int, float]]) -> Record:
    launches = [[(session[:15], turn, float(f"{number:.5g}")) for session, turn, number in one] for one in of.values()]
    about = series.environment, series.benchmark, [*series.parameters]
    return Record("", name, *about, kind, float(f"{noise:.3g}"), list(of), launches, changes)


def stored_lanes(axis: Axis) -> dict[str, History]:
    """Lane -> the times of its committed history, releases in the axis' order, on the machine with most releases."""
    found = history(read_launches(ROOT / "results", choose_machine(ROOT / "results", None, "")))
    lanes: dict[str, History] = defaultdict(History)
    for series, of in sorted(found.items(), key=lambda item: item[0].environment):
        if series.varies:
            tags = sorted((tag for tag in of if tag in axis), key=axis.position)
            lanes[series.environment][series] = {tag: of[tag] for tag in tags}
    return lanes


def data_set(seed: int = SEED) -> list[Record]:
    """All series; the same every time for one seed and the same results."""
    lanes, random = stored_lanes(Axis.load(ROOT / "releases.toml")), np.random.default_rng(seed)
    common = {lane: session_effects(of for of in map(cells, found.values()) if of) for lane, found in lanes.items()}
    found: list[Record] = []
    for kind, effects in BATCHES.items():
        for lane, of in lanes.items():
            found += batch(f"{kind} {lane}", of, common[lane] if effects.common else {}, effects, random)
    found += calibrated()
    return [Record(**{**vars(one), "id": f"{number:04}"}) for number, one in enumerate(found)]


def line_of(one: Record) -> str:
    return json.dumps(asdict(one), separators=(",", ":")) + "\n"


def read() -> list[Record]:
    return [Record(**json.loads(line)) for line in gzip.decompress(DATA.read_bytes()).decode().splitlines()]


if __name__ == "__main__":
    DATA.write_bytes(gzip.compress("".join(map(line_of, data_set())).encode(), mtime=0))
