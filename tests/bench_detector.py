"""Does `torch_history/steps.py` find what is planted, and nothing else? One table beside asv's detector and Apache Otava.

`python -m tests.bench_detector --otava PYTHON --write`; PYTHON has apache-otava. All three read the same series: ours every
launch with its session, the others the median of each release. --write puts what is printed into docs/steps.md.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
import re
import statistics
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from asv.step_detect import detect_regressions, detect_steps
from rich.progress import track

from torch_history.steps import Kind, find_steps
from torch_history.verdicts import Series

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "steps.md"
BEGIN, END = "<!-- what follows is written by `python -m tests.bench_detector --write` -->\n", "<!-- end -->\n"

LAUNCHES = 5
DRIFTS = (0.0, 0.01, 0.03)
"""Standard deviation of what a session adds to a logarithm."""

ASV_THRESHOLD = 0.05
"""What asv's regressions page uses where asv.conf.json says nothing."""

NOISES: dict[str, Callable[[np.random.Generator], float]] = {
    "1 %": lambda random: random.normal(0, 0.01),
    "3 %": lambda random: random.normal(0, 0.03),
    "two values 4 % apart": lambda random: 0.04 * random.integers(2) + random.normal(0, 0.005),
    "1 %, every 20th launch 20 % slow": lambda random: random.normal(0, 0.01) + 0.2 * (random.random() < 0.05),
}
"""What one launch adds to the logarithm."""

OTAVA = """
import json, sys
from otava.analysis import compute_change_points
for line in sys.stdin:
    print(json.dumps([int(found.index) for found in compute_change_points(json.loads(line))[0]]), flush=True)
"""


@dataclass(frozen=True)
class Planted:
    """A change of level by a ratio of 1 + `size`; `kind` None plants nothing, `newest` plants it at the newest release."""

    words: str
    kind: Kind | None = None
    size: float = 0.0
    newest: bool = False

    def place(self, releases: int, random: np.random.Generator) -> tuple[int, int]:
        """The first release that it changes, and the one after the last."""
        if self.newest:
            return releases - 1, releases
        if self.kind is Kind.DRIFT:
            first = int(random.integers(2, releases - 21))
            return first, first + 20
        first = int(random.integers(releases // 3, 2 * releases // 3))
        return first, first + int(random.integers(1, 3)) if self.kind is Kind.SPIKE else releases

    def level(self, first: int, last: int, releases: int) -> np.ndarray:
        position = np.arange(releases)
        if self.kind is Kind.DRIFT:
            return math.log1p(self.size) * np.clip((position - first + 1) / (last - first), 0, 1)
        return math.log1p(self.size) * ((position >= first) & (position < last))


CHANGES = (
    Planted("nothing"),
    *(Planted(f"step of {size} %", Kind.STEP, size / 100) for size in (3, 5, 10)),
    *(Planted(f"step of {size} % at the newest", Kind.STEP, size / 100, newest=True) for size in (3, 5, 10)),
    Planted("spike of 10 %", Kind.SPIKE, 0.1),
    Planted("drift of 10 % over 20", Kind.DRIFT, 0.1),
)

Numbers = dict[str, dict[str, list[float]]]


def numbers(level: np.ndarray, noise: Callable[..., float], drift: float, random: np.random.Generator) -> Numbers:
    """Launches in sessions of 3 to 6 neighbours, each of which begins with the last release of the one before."""
    found: Numbers = {f"r{i:02}": {} for i in range(len(level))}
    first = 0
    for session in itertools.count():
        last = min(first + int(random.integers(3, 7)), len(level))
        added = random.normal(0, drift) if drift else 0.0
        for i in range(first, last):
            logs = [level[i] + added + noise(random) for _ in range(LAUNCHES)]
            found[f"r{i:02}"][f"s{session}"] = [math.exp(log) for log in logs]
        if last == len(level):
            return found
        first = last - 1
    raise AssertionError


Change = tuple[int, int, Kind | None]
"""First position that differs, last one, and what it is called by a detector that has names."""


def ours(series: Numbers) -> list[Change]:
    position = {release: i for i, release in enumerate(series)}
    found = find_steps(Series("release-py3.11", "question.Question.track_time", ()), series)
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

    A detector that has names must say drift; of one that has none, any change inside the drift is an answer."""
    if planted.kind is None:
        return False, len(found)
    inside = [change for change in found if first - 2 <= change[1] and change[0] <= last + 1]
    near = 0 if planted.newest else 1
    if planted.kind is Kind.DRIFT:
        hits = [change for change in inside if change[2] in (Kind.DRIFT, None)]
        return bool(hits), len(found) - len(inside)
    hits = [change for change in found if abs(change[0] - first) <= near and change[2] in (planted.kind, None)]
    ends = [change for change in found if planted.kind is Kind.SPIKE and abs(change[0] - last) <= near]
    return bool(hits), len({*found} - {*hits, *ends})


@functools.cache
def otava(python: str) -> subprocess.Popen[str]:
    return subprocess.Popen([python, "-c", OTAVA], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask_otava(python: str, values: list[float]) -> list[Change]:
    process = otava(python)
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(values) + "\n")
    process.stdin.flush()
    return [(i, i, None) for i in json.loads(process.stdout.readline())]


Setting = tuple[Planted, str, float]
Score = dict[str, tuple[bool, int]]


def score(setting: Setting, seed: int, python: str | None) -> Score:
    """Detector -> whether it found the change in one series, and its false alarms there."""
    planted, noise, drift = setting
    random = np.random.default_rng([seed, CHANGES.index(planted), list(NOISES).index(noise), DRIFTS.index(drift)])
    releases = int(random.integers(25, 41))
    first, last = planted.place(releases, random)
    series = numbers(planted.level(first, last, releases), NOISES[noise], drift, random)
    values = medians(series)
    found = {"ours": ours(series), "asv's steps": asv_steps(values), "asv's page": asv_page(values)}
    if python:
        found["Otava"] = ask_otava(python, values)
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


def table(found: dict[Setting, list[Score]]) -> Iterator[str]:
    """Lines of Markdown: in each cell the three drifts between sessions."""
    names = list(next(iter(found.values()))[0])
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
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args()
    settings = list(itertools.product(CHANGES, NOISES, DRIFTS))
    found = scores(settings, asked.series, asked.otava, asked.workers)
    said = "without Apache Otava, which was not given"
    if asked.otava:
        version = [asked.otava, "-c", "from importlib.metadata import version; print(version('apache-otava'))"]
        said = "with apache-otava " + subprocess.run(version, capture_output=True, text=True, check=True).stdout.strip()
    text = f"{asked.series} series per cell and drift, {4 * asked.series} where nothing is planted, {said}.\n\n"
    text += "\n".join(table(found)) + "\n"
    print(text)
    if asked.write:
        page = PAGE.read_text(encoding="utf-8")
        page = re.sub(
            f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: f"{BEGIN}\n{text}\n{END}", page, flags=re.DOTALL
        )
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
