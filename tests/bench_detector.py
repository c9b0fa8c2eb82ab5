"""Does `torch_history/analysis/steps.py` find what is planted, and nothing else? A table beside asv's and Apache Otava's.

`python -m tests.bench_detector --otava PYTHON`; PYTHON has apache-otava. All three read the same series: ours every
launch with its session, the others the median of each release. Noise is drawn, or replayed from the launches in results/.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from asv.step_detect import detect_regressions, detect_steps
from rich.progress import track

from torch_history.analysis.steps import HISTORY_ERROR, NEWEST_ERROR, SMALLEST, Kind, of_history
from torch_history.analysis.verdicts import history
from torch_history.releases.axis import Axis
from torch_history.store.launches import read_launches

from .test_verdicts import timed

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"

AXIS = Axis.load(ROOT / "releases.toml")

LAUNCHES = 5
DRIFTS = (0.0, 0.01, 0.03)
"""Standard deviation of what a session adds to a logarithm."""

ASV_THRESHOLD = 0.05
"""What asv's regressions page uses where asv.conf.json says nothing."""

REPEATED = 3
"""Launches of a release in a session from which noise is replayed; where fewer are stored, samples of one stand for them."""

ENOUGH = 20
"""Numbers of a stored time from which noise is replayed; fewer do not show its tails."""

Array = np.ndarray


@functools.cache
def stored() -> list[Array]:
    """Of each time in results/: how far launches lie from the mean of their release and session, widened by what that mean
    took from them."""
    machines = [path.parent.name for path in sorted(RESULTS.glob("*/machine.json"))]
    launches = [each for machine in machines for each in read_launches(RESULTS, machine)]
    found = []
    for series, releases in history(launches).items():
        sessions: defaultdict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
        for launch, case in itertools.chain.from_iterable(releases.values()):
            if case.samples:
                sessions[launch.release, launch.session].append(case.samples)
        cells = [[*map(statistics.median, of)] if len(of) >= REPEATED else of[0] for of in sessions.values()]
        logs = [np.log(cell) for cell in cells if len(cell) >= REPEATED]
        if series.unit == "seconds" and sum(map(len, logs)) >= ENOUGH:
            found.append(np.concatenate([(log - log.mean()) * math.sqrt(len(log) / (len(log) - 1)) for log in logs]))
    return found


def replayed(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Of one stored time."""
    return random.choice(stored()[random.integers(len(stored()))], shape)


NOISES: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "1 %": lambda random, shape: random.normal(0, 0.01, shape),
    "3 %": lambda random, shape: random.normal(0, 0.03, shape),
    "two values 4 % apart": lambda random, shape: (
        0.04 * random.integers(2, size=shape) + random.normal(0, 0.005, shape)
    ),
    "1 %, every 20th launch 20 % slow": lambda random, shape: (
        random.normal(0, 0.01, shape) + 0.2 * (random.random(shape) < 0.05)
    ),
    "replayed": replayed,
}
"""What launches add to the logarithm: a row for each release and session of a series, in it its launches."""

STRICTNESS = tuple(10 ** -(half / 2) for half in range(2, 17))
"""Significances that Otava is tried with, from 0.1 to 10⁻⁸, to find the one that errs no more often than ours may."""

OTAVA_DEFAULT = 0.001
LIKE = "Otava, as strict as ours"
ERRS = NEWEST_ERROR + HISTORY_ERROR
"""False alarms that ours may show per quiet series."""

OTAVA = f"""
import json, sys
from otava.analysis import compute_change_points
def found(values, max_pvalue, min_magnitude):
    points, _ = compute_change_points(values, max_pvalue=max_pvalue, min_magnitude=min_magnitude)
    return [int(point.index) for point in points]
for line in sys.stdin:
    values = json.loads(line)
    asked = [({OTAVA_DEFAULT}, 0.0), *((strictness, {SMALLEST}) for strictness in {STRICTNESS})]
    print(json.dumps([found(values, *each) for each in asked]), flush=True)
"""


@dataclass(frozen=True)
class Planted:
    """A change of level by a ratio of 1 + `size`; `kind` None plants nothing, `newest` plants it at the newest release;
    one that is not `named` may be told as another kind."""

    words: str
    kind: Kind | None = None
    size: float = 0.0
    newest: bool = False
    named: bool = True

    def place(self, releases: int, random: np.random.Generator) -> tuple[int, int]:
        """The first release that it changes, and the one after the last."""
        if self.newest:
            return releases - 1, releases
        if self.kind is Kind.DRIFT:
            first = int(random.integers(2, releases - 21))
            return first, first + 20
        first = int(random.integers(releases // 3, 2 * releases // 3))
        return first, first + int(random.integers(1, 3)) if self.kind is Kind.EXCURSION else releases

    def level(self, first: int, last: int, releases: int) -> Array:
        position = np.arange(releases)
        if self.kind is Kind.DRIFT:
            return math.log1p(self.size) * np.clip((position - first + 1) / (last - first), 0, 1)
        return math.log1p(self.size) * ((position >= first) & (position < last))


CHANGES = (
    Planted("nothing"),
    *(Planted(f"step of {size} %", Kind.STEP, size / 100) for size in (3, 5, 10)),
    *(Planted(f"step of {size} % at the newest", Kind.STEP, size / 100, newest=True) for size in (3, 5, 10)),
    Planted("spike of 10 %", Kind.EXCURSION, 0.1),
    Planted("drift of 10 % over 20", Kind.DRIFT, 0.1, named=False),
    Planted("drift of 10 % over 20, called a drift", Kind.DRIFT, 0.1),
)

Numbers = dict[str, dict[str, list[float]]]


def numbers(level: Array, noise: str, drift: float, random: np.random.Generator) -> Numbers:
    """Launches in sessions of 3 to 6 neighbours, each of which begins with the last release of the one before."""
    found: Numbers = {f"r{i:02}": {} for i in range(len(level))}
    launches = iter(NOISES[noise](random, (2 * len(level), LAUNCHES)))
    first = 0
    for session in itertools.count():
        last = min(first + int(random.integers(3, 7)), len(level))
        added = random.normal(0, drift) if drift else 0.0
        for i in range(first, last):
            found[f"r{i:02}"][f"s{session}"] = np.exp(level[i] + added + next(launches)).tolist()
        if last == len(level):
            return found
        first = last - 1
    raise AssertionError


Change = tuple[int, int, Kind | None]
"""First position that differs, last one, and what it is called by a detector that has names."""


def ours(series: Numbers) -> list[Change]:
    tags = dict(zip(series, (release.tag for release in AXIS.releases), strict=False))
    launches = [
        launch
        for release, sessions in series.items()
        for session, seconds in sessions.items()
        for launch in timed(tags[release], seconds, session=session)
    ]
    position = {tag: i for i, tag in enumerate(tags.values())}
    found = of_history(history(launches), AXIS)
    return [
        (position[step.old] + 1 if step.kind is Kind.DRIFT else position[step.new], position[step.until], step.kind)
        for step in found
    ]


def medians(series: Numbers) -> list[float]:
    return [statistics.median(x for values in of.values() for x in values) for of in series.values()]


def asv_steps(values: list[float]) -> list[Change]:
    return [(step[0], step[0], None) for step in detect_steps(values)[1:]]


def asv_page(values: list[float]) -> list[Change]:
    _, _, found = detect_regressions(detect_steps(values), ASV_THRESHOLD)
    return [(after, after, None) for _, after, _, _ in found or []]


def judge(found: list[Change], planted: Planted, first: int, last: int) -> tuple[bool, int]:
    """Whether the change was found, within one release of where it is, the newest exactly; and the number of false alarms.

    Inside a drift any place is an answer; where kinds are asked for, a detector that has none need not tell them."""
    if planted.kind is None:
        return False, len(found)
    inside = [change for change in found if first - 2 <= change[1] and change[0] <= last + 1]
    near = 0 if planted.newest else 1
    if planted.kind is Kind.DRIFT:
        hits = [change for change in inside if change[2] in (Kind.DRIFT, None) or not planted.named]
        return bool(hits), len(found) - len(inside)
    hits = [change for change in found if abs(change[0] - first) <= near and change[2] in (planted.kind, None)]
    ends = [change for change in found if planted.kind is Kind.EXCURSION and abs(change[0] - last) <= near]
    return bool(hits), len({*found} - {*hits, *ends})


@functools.cache
def otava(python: str) -> subprocess.Popen[str]:
    return subprocess.Popen([python, "-c", OTAVA], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask_otava(python: str, values: list[float]) -> dict[str, list[Change]]:
    """With its defaults, and with each of STRICTNESS where a change below SMALLEST is not told, as ours does not."""
    process = otava(python)
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(values) + "\n")
    process.stdin.flush()
    answers = json.loads(process.stdout.readline())
    return {
        name: [(i, i, None) for i in places]
        for name, places in zip(["Otava", *map(str, STRICTNESS)], answers, strict=True)
    }


Setting = tuple[Planted, str, float]
Score = dict[str, tuple[bool, int]]


def score(setting: Setting, seed: int, python: str | None) -> Score:
    """Detector -> whether it found the change in one series, and its false alarms there."""
    planted, noise, drift = setting
    random = np.random.default_rng([seed, CHANGES.index(planted), list(NOISES).index(noise), DRIFTS.index(drift)])
    releases = int(random.integers(25, 41))
    first, last = planted.place(releases, random)
    series = numbers(planted.level(first, last, releases), noise, drift, random)
    values = medians(series)
    found = {"ours": ours(series), "asv's steps": asv_steps(values), "asv's page": asv_page(values)}
    if python:
        found |= ask_otava(python, values)
    return {name: judge(changes, planted, first, last) for name, changes in found.items()}


def scores(settings: list[Setting], series: int, python: str | None, workers: int) -> dict[Setting, list[Score]]:
    tasks = [(setting, seed) for setting in settings for seed in range(series * (4 if setting[0].kind is None else 1))]
    with ProcessPoolExecutor(workers) as pool:
        work = functools.partial(_score, python=python)
        done = list(track(pool.map(work, tasks, chunksize=20), total=len(tasks), description="series"))
    found: dict[Setting, list[Score]] = {setting: [] for setting in settings}
    for (setting, _), each in zip(tasks, done, strict=True):
        found[setting].append(each)
    return found


def _score(task: tuple[Setting, int], python: str | None) -> Score:
    return score(*task, python)


def like(found: dict[Setting, list[Score]], noise: str, drift: float) -> str:
    """The least strict Otava that shows no more false alarms in quiet series of this noise than ours may; the strictest if
    all show more."""
    quiet = found[CHANGES[0], noise, drift]
    names = map(str, STRICTNESS)
    return next(
        (name for name in names if statistics.fmean(one[name][1] for one in quiet) <= ERRS), str(STRICTNESS[-1])
    )


def table(found: dict[Setting, list[Score]]) -> Iterator[str]:
    """Lines of Markdown: in each cell the three drifts between sessions."""
    names = ["ours", "asv's steps", "asv's page"]
    if "Otava" in next(iter(found.values()))[0]:
        names += ["Otava", LIKE]
        for (_, noise, drift), of in found.items():
            for one in of:
                one[LIKE] = one[like(found, noise, drift)]
    yield "| planted | noise of a launch | " + " | ".join(names) + " |"
    yield "|---|---|" + "---|" * len(names)
    for planted, noise in itertools.product(CHANGES, NOISES):
        cells = []
        for name in names:
            each = [[one[name] for one in found[planted, noise, drift]] for drift in DRIFTS]
            if planted.kind is None:
                cells.append(" / ".join(f"{statistics.fmean(n for _, n in of):.2f}" for of in each))
            else:
                cells.append(" / ".join(f"{statistics.fmean(hit for hit, _ in of):.0%}"[:-1] for of in each) + " %")
        what = "nothing: false alarms per series" if planted.kind is None else planted.words
        yield f"| {what} | {noise} | " + " | ".join(cells) + " |"
    others = [[of for (planted, _, _), each in found.items() if planted.kind for of in each]]
    alarms = [f"{statistics.fmean(one[name][1] for of in others for one in of):.2f}" for name in names]
    yield "| any change: false alarms per series beside it | all | " + " | ".join(alarms) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--series", type=int, default=50, help="series per setting; of nothing planted, four times as many"
    )
    parser.add_argument("--otava", help="a Python with apache-otava; without it its column is left out")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    settings = list(itertools.product(CHANGES, NOISES, DRIFTS))
    found = scores(settings, asked.series, asked.otava, asked.workers)
    said = "without Apache Otava, which was not given"
    if asked.otava:
        version = [asked.otava, "-c", "from importlib.metadata import version; print(version('apache-otava'))"]
        said = "with apache-otava " + subprocess.run(version, capture_output=True, text=True, check=True).stdout.strip()
    text = f"{asked.series} series per cell and drift, {4 * asked.series} where nothing is planted, {said}; "
    text += f"noise replayed from {len(stored())} stored times.\n\n"
    text += "\n".join(table(found)) + "\n"
    print(text)


if __name__ == "__main__":
    main()
