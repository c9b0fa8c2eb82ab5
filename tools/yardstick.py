"""How good is a detector of changes? A labelled data set from the committed launches, and a score for any detector on it.

`python -m tools.yardstick make` writes datasets/yardstick/series.jsonl.gz anew. `python -m tools.yardstick score --detector NAME`
prints a table; NAME is ours, asv, hud5, hud7, otava, pelt, or a command that reads series as JSON lines. `--write` writes the page.
"""  # noqa: E501

from __future__ import annotations

import argparse
import functools
import gzip
import itertools
import json
import math
import shlex
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from tools.detectors import ROOT, asv_places, elsewhere, large, left, ordered, stored_lanes
from torch_history.analysis import calibration, steps, verdicts
from torch_history.analysis.series import History
from torch_history.analysis.steps import Kind
from torch_history.releases.axis import Axis
from torch_history.store.launches import Case, Launch

DATA = ROOT / "datasets" / "yardstick" / "series.jsonl.gz"
PAGE = ROOT / "docs" / "generated" / "yardstick.md"
SEED = 20261124

SIZES = (0.03, 0.05, 0.1, 0.2, 0.5)
"""Of planted changes, as shares of the lower level."""

BINS = (0.01, 0.03, 0.1, math.inf)
"""Upper ends of the noise levels: the standard deviation of a launch's logarithm."""

DRAWS = 1000
"""Bootstrap samples of series for the interval of F1."""

HUD = {"hud5": 0.05, "hud7": 0.07}
"""Between neighbours, as shares: RELATIVE_THRESHOLD of PyTorch HUD's dashboard for compilers, and
DEFAULT_REGRESSION_DELTA_THRESHOLD of TorchBench's nightly check. WORDS links to both."""

HUD_GRID = (0.03, 0.05, 0.07, 0.1, 0.15, 0.2)
"""Thresholds between neighbours at which the same rule is scored."""

OUTSIDE = {"otava": "Otava", "pelt": "PELT (ruptures)"}

WORDS = f"""# A yardstick for detectors

`python -m tools.yardstick score --others PYTHON --write` writes this page from the [data set](../../datasets/yardstick/README.md).

A reported position counts only if the level changes at exactly this release. F1 is the harmonic mean of precision and recall. Its
interval holds 95 % of {DRAWS} samples of the series. Half of the series of this table are quiet, and precision depends on that
share. *Alarm* is the share of quiet series with any report, with Wilson's 95 % interval. asv, Otava and PELT read the median of each
release, and their changes below 2 % are dropped, as this program's are. HUD reports neighbours whose medians differ by more than
5 % or 7 %. 5 % is `RELATIVE_THRESHOLD` of PyTorch
[HUD's dashboard](https://github.com/pytorch/test-infra/blob/06c20d63406fedfbf34e374db375dafaeff2e4b6/torchci/components/benchmark/compilers/common.tsx)
for compilers, 7 % is `DEFAULT_REGRESSION_DELTA_THRESHOLD` of TorchBench's nightly
[regression detector](https://github.com/pytorch/benchmark/blob/061e0ec50c8981e72640fc7e02604d27c340990e/userbenchmark/torch-nightly/regression_detector.py).
Noise is the standard deviation of one launch.

In the batches called *level*, sessions have no effect of their own. In those called *sessions*, each session is as much slower or
faster as it was in the committed results.
"""  # noqa: E501

Places = dict[str, list[int]]
"""Id of a series -> the positions that a detector reports."""


@dataclass(frozen=True)
class Record:
    """A series with its labels. `launches` holds of each release [session, round, seconds]; `changes` holds [position, ratio] of
    each true change; `judged` the positions whose truth is known, None for all."""  # noqa: E501

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
    judged: list[int] | None = None

    @property
    def levels(self) -> list[float]:
        return [statistics.median(seconds for *_, seconds in of) for of in self.launches]


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


def session_effects(lane: Iterable[Cells]) -> dict[str, float]:
    """How much slower each session was than the others, as a logarithm: the median over series of a fit of releases and sessions."""  # noqa: E501
    found: dict[str, list[float]] = defaultdict(list)
    for of in lane:
        numbers = [(tag, one[0], math.log(one[2])) for tag, launches in of.items() for one in launches]
        tags, sessions = list(of), sorted({session for _, session, _ in numbers})
        design = np.zeros((len(numbers), len(tags) + len(sessions)))
        for row, (tag, session, _) in enumerate(numbers):
            design[row, [tags.index(tag), len(tags) + sessions.index(session)]] = 1
        effects = np.linalg.lstsq(design, np.array([one[2] for one in numbers]), rcond=None)[0][len(tags) :]
        for session, effect in zip(sessions, effects - effects.mean(), strict=True):
            found[session].append(float(effect))
    return {session: statistics.median(of) for session, of in found.items()}


def planted(length: int, random: np.random.Generator) -> tuple[str, list[tuple[int, float]]]:
    """What is planted into a series of so many releases: in half of them nothing, in a third a step, in a sixth an excursion."""  # noqa: E501
    kind = str(random.choice(["quiet"] * 3 + ["step"] * 2 + ["excursion"]))
    size = float(random.choice(SIZES))
    ratio = round(1 + size if random.random() < 0.5 else 1 / (1 + size), 6)
    place, lasts = int(random.integers(1, length)), int(random.integers(1, steps.EXCURSION + 1))
    if kind == "quiet":
        return kind, []
    if kind == "step" or place + lasts >= length:
        return "step", [(place, ratio)]
    return kind, [(place, ratio), (place + lasts, round(1 / ratio, 6))]


def batch(name: str, history: History, effects: Mapping[str, float], random: np.random.Generator) -> Iterator[Record]:
    """Every time of a lane at one level, with the noise of its own sessions, the effects of sessions, and what is planted."""  # noqa: E501
    for series, releases in history.items():
        of = cells(releases)
        noise = noise_of(of)
        usual = np.concatenate([*noise.values()]) if noise else np.zeros(0)
        if not usual.any() or len(of) < 2:
            continue
        kind, changes = planted(len(of), random)
        launches = []
        for position, drawn_for in enumerate(of.values()):
            level = math.prod(ratio for place, ratio in changes if place <= position)
            made = []
            for session, turn, _ in drawn_for:
                own = noise[session] if noise[session].any() else usual
                number = level * math.exp(float(random.choice(own)) + effects.get(session, 0.0))
                made.append((session[:15], turn, float(f"{number:.5g}")))
            launches.append(made)
        about = series.environment, series.benchmark, [*series.parameters]
        yield Record("", name, *about, kind, float(f"{usual.std():.3g}"), list(of), launches, changes)


def calibrated() -> Iterator[Record]:
    """One release under two names, and the same release with time planted in its process."""
    for path in calibration.files(ROOT / "results"):
        times = [launch for launch in calibration.read(path).launches if not calibration.only_counts(launch)]
        found = verdicts.history(times)
        for arm, kind in ((calibration.SECOND, "A/A"), (calibration.LONGER, "planted pair")):
            for series, releases in found.items():
                of = {tag: numbers for tag, numbers in cells(releases).items() if tag in (calibration.FIRST, arm)}
                known = kind == "A/A" or series.metric in (*calibration.STEADY, *calibration.SINGLE)
                if series.varies and known and len(of) == 2:
                    size = calibration.share(series) if arm == calibration.LONGER else 0.0
                    yield as_measured(series, of, kind, [(1, 1 + size)] if size else [])


def replicated(lanes: Mapping[str, History], axis: Axis) -> Iterator[Record]:
    """Series in which two lanes tell a step at the same release in the same direction; other positions are not judged."""
    told: dict[tuple[str, tuple[str, ...], str, bool], dict[str, steps.Step]] = defaultdict(dict)
    for lane, history in lanes.items():
        for step in steps.of_history(history, axis):
            if step.kind is Kind.STEP and step.ratio:
                place = step.series.benchmark, step.series.parameters, step.new, step.ratio > 1
                told[place][lane] = step
    places: dict[verdicts.Series, list[steps.Step]] = defaultdict(list)
    for of_lanes in told.values():
        if len(of_lanes) > 1:
            step = next(iter(of_lanes.values()))
            places[step.series].append(step)
    for series, found in sorted(places.items())[::2]:
        of = cells(lanes[series.environment][series])
        changes = sorted((list(of).index(step.new), round(step.ratio or 1, 4)) for step in found)
        yield as_measured(series, of, "replicated", changes, [place for place, _ in changes])


def as_measured(
    series: verdicts.Series, of: Cells, kind: str, changes: list[tuple[int, float]], judged: list[int] | None = None
) -> Record:
    noise = np.concatenate([*noise_of(of).values()])
    size = float(f"{noise.std():.3g}") if noise.size else 0.0
    launches = [[(session[:15], turn, float(f"{number:.5g}")) for session, turn, number in one] for one in of.values()]
    about = series.environment, series.benchmark, [*series.parameters]
    return Record("", f"{kind} {series.environment}", *about, kind, size, list(of), launches, changes, judged)


def data_set(seed: int = SEED) -> list[Record]:
    """All series; the same every time for one seed."""
    axis = Axis.load(ROOT / "releases.toml")
    lanes = {lane: ordered(history, axis) for lane, history in stored_lanes().items()}
    random = np.random.default_rng(seed)
    found: list[Record] = []
    for lane, history in lanes.items():
        found += batch(f"level {lane}", history, {}, random)
        effects = session_effects(of for of in map(cells, history.values()) if of)
        found += batch(f"sessions {lane}", history, effects, random)
    found += [*calibrated(), *replicated(lanes, axis)]
    return [Record(**{**vars(record), "id": f"{number:04}"}) for number, record in enumerate(found)]


def line_of(record: Record) -> str:
    return json.dumps(asdict(record), separators=(",", ":")) + "\n"


def read() -> list[Record]:
    return [Record(**json.loads(line)) for line in gzip.decompress(DATA.read_bytes()).decode().splitlines()]


def ours(records: Sequence[Record]) -> Places:
    """This program, batch by batch: it learns the noise from series that were measured together."""
    axis = Axis.load(ROOT / "releases.toml")
    tags = [release.tag for release in axis.releases]
    batches: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        batches[record.batch].append(record)
    found: Places = {record.id: [] for record in records}
    for of in batches.values():
        names = {verdicts.Series(one.lane, one.benchmark, tuple(one.parameters)): one for one in of}
        for step in steps.of_history({series: as_history(one, tags) for series, one in names.items()}, axis):
            places = [tags.index(step.new)] + [tags.index(step.until) + 1] * (step.kind is Kind.EXCURSION)
            found[names[step.series].id] += places
    return found


def as_history(record: Record, tags: Sequence[str]) -> dict[str, list[tuple[Launch, Case]]]:
    """A record as launches of the first releases of the axis."""
    made = {}
    for tag, launches in zip(tags, record.launches, strict=False):
        made[tag] = [
            (
                Launch(
                    session, turn, f"{session}-{turn}-{tag}", tag, record.lane, record.benchmark, "", "", 0.0, {}, ()
                ),
                Case(tuple(record.parameters), samples=(seconds,)),
            )
            for session, turn, seconds in launches
        ]
    return made


def by_levels(places: Callable[[list[float]], list[int]], records: Sequence[Record]) -> Places:
    return {one.id: places(one.levels) for one in records}


def hud(levels: Sequence[float], threshold: float) -> list[int]:
    """Positions whose level differs from the one before by more than the threshold."""
    return [place for place, (old, new) in enumerate(itertools.pairwise(levels), 1) if abs(new / old - 1) > threshold]


def command(line: str, records: Sequence[Record]) -> Places:
    """What a program says that reads a series without its labels on each line, and writes a list of positions on each.

    Raises ValueError where it answers otherwise."""
    hidden = {"kind", "noise", "changes", "judged"}
    asked = "".join(json.dumps({k: v for k, v in asdict(one).items() if k not in hidden}) + "\n" for one in records)
    said = subprocess.run(shlex.split(line), input=asked, stdout=subprocess.PIPE, text=True, check=True).stdout
    answers = [json.loads(answer) for answer in said.splitlines()]
    if len(answers) != len(records) or not all(isinstance(one, list) for one in answers):
        raise ValueError(
            f"{line!r} must write one list of positions per series: {len(records)} lines, not {len(answers)}"
        )
    return {one.id: answer for one, answer in zip(records, answers, strict=True)}


def reports(name: str, records: Sequence[Record], python: str | None) -> Places:
    if name == "ours":
        return ours(records)
    if name == "asv":
        return by_levels(lambda levels: large(levels, asv_places(levels), True), records)
    if name in HUD:
        return by_levels(lambda levels: hud(levels, HUD[name]), records)
    if name in OUTSIDE:
        if not python:
            raise ValueError(f"{name} needs --others PYTHON, a Python that has NumPy, apache-otava and ruptures")
        levels = [one.levels for one in records]
        said = elsewhere(python, levels, OUTSIDE[name])
        each = zip(records, levels, said, strict=True)
        return {one.id: large(of, answer[OUTSIDE[name]][0], True) for one, of, answer in each}
    return command(name, records)


Grid = dict[str, dict[str, Places]]
"""Detector -> what it was made as strict as, in words -> what it then reports."""


def grid(records: Sequence[Record], python: str | None) -> Grid:
    """The other detectors that can be made more or less strict, at some strictnesses, their usual ones among them."""
    found: Grid = {
        "hud": {f"{at:.0%}": by_levels(functools.partial(hud, threshold=at), records) for at in HUD_GRID},
    }
    levels = [one.levels for one in records]
    for name, method in OUTSIDE.items() if python else ():
        answers = [answer[method] for answer in elsewhere(str(python), levels, method)]
        found[name] = {
            _strictness(name, number): {
                one.id: large(of, answer[number], True)
                for one, of, answer in zip(records, levels, answers, strict=True)
            }
            for number in range(len(answers[0]))
        }
    return found


def _strictness(name: str, number: int) -> str:
    """In words, the first being the detector's usual one."""
    return "as usual" if number == 0 else f"{number} step{'s' if number > 1 else ''} stricter"


def best_of(records: Sequence[Record], said: Mapping[str, Places], strict: Grid) -> Iterator[str]:
    """A row for each noise level: this program at its only setting, and the best that each other reaches on these labels."""
    yield f"| noise | ours | {' | '.join(strict)} |"
    yield "|---|---:|" + "---:|" * len(strict)
    for level, of in _levels(records):
        best = []
        for settings in strict.values():
            f1 = {words: _f1(of, places) for words, places in settings.items()}
            words = max(f1, key=lambda each: f1[each] if not math.isnan(f1[each]) else -1.0)
            best.append(f"{share(f1[words])} ({words})")
        yield f"| {level} | {share(_f1(of, said['ours']))} | {' | '.join(best)} |"


def _levels(records: Sequence[Record]) -> Iterator[tuple[str, list[Record]]]:
    """The records of each noise level, the quietest first."""
    for level in dict.fromkeys(bin_of(one.noise) for one in sorted(records, key=lambda one: one.noise)):
        yield level, [one for one in records if bin_of(one.noise) == level]


def _f1(records: Sequence[Record], places: Places) -> float:
    return score(np.array([counts(one, places[one.id]) for one in records]))[2]


def other_seeds(seeds: int, python: str | None) -> Iterator[str]:
    """F1 on data sets that other seeds plant in the same noise: the least and the most of each detector."""
    names = ["ours", "asv", *HUD, *(OUTSIDE if python else ())]
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for seed in range(SEED + 1, SEED + 1 + seeds):
        made = [one for one in data_set(seed) if one.kind in MADE]
        said = {name: reports(name, made, python) for name in names}
        for kind in BATCHES:
            for level, of in _levels([one for one in made if one.batch.startswith(kind)]):
                for name in names:
                    found[kind, level][name].append(_f1(of, said[name]))
    yield f"| batches | noise | {' | '.join(names)} |"
    yield "|---|---|" + "---:|" * len(names)
    for (kind, level), of_names in found.items():
        cells_of = [f"{share(min(of_names[name]))} to {share(max(of_names[name]))}" for name in names]
        yield f"| {kind} | {level} | {' | '.join(cells_of)} |"


MADE = ("quiet", "step", "excursion")
BATCHES = ("level", "sessions")
"""Kinds of series that are made, and of batches of them."""


def counts(record: Record, said: Iterable[int]) -> tuple[int, int, int]:
    """True, false and missed reports of one series."""
    true = {place for place, _ in record.changes}
    heard = {place for place in said if record.judged is None or place in record.judged}
    return len(true & heard), len(heard - true), len(true - heard)


def score(counted: np.ndarray) -> tuple[float, float, float]:
    """Precision, recall and F1 of rows of `counts`; NaN where nothing is to be found or nothing was reported."""
    hit, false, missed = counted.sum(axis=0)
    return tuple(
        part / whole if whole else math.nan
        for part, whole in ((hit, hit + false), (hit, hit + missed), (2 * hit, 2 * hit + false + missed))
    )  # type: ignore[return-value]


def f1_interval(counted: np.ndarray) -> tuple[float, float]:
    """95 % of the bootstrap samples of series."""
    random = np.random.default_rng(SEED)
    drawn = counted[random.integers(0, len(counted), (DRAWS, len(counted)))].sum(axis=1)
    f1 = 2 * drawn[:, 0] / np.maximum(2 * drawn[:, 0] + drawn[:, 1] + drawn[:, 2], 1)
    low, high = np.quantile(f1, [0.025, 0.975])
    return float(low), float(high)


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share (Wilson 1927)."""
    z = 1.96
    middle, half = hits / of + z * z / 2 / of, z * math.sqrt(hits / of * (1 - hits / of) / of + z * z / 4 / of**2)
    return max((middle - half) / (1 + z * z / of), 0.0), (middle + half) / (1 + z * z / of)


def bin_of(noise: float) -> str:
    index = next(i for i, end in enumerate(BINS) if noise < end)
    return ("below 1 %", "1 to 3 %", "3 to 10 %", "10 % and more")[index]


def table(records: Sequence[Record], said: Mapping[str, Places]) -> Iterator[str]:
    """A row for each noise level and detector."""
    yield "| noise | series | detector | precision | recall | F1 | interval | alarm | interval |"
    yield "|---|---:|---|---:|---:|---:|---|---:|---|"
    for level in dict.fromkeys(bin_of(one.noise) for one in sorted(records, key=lambda one: one.noise)):
        of = [one for one in records if bin_of(one.noise) == level]
        for name, places in said.items():
            counted = np.array([counts(one, places[one.id]) for one in of])
            quiet = [bool(places[one.id]) for one in of if not one.changes]
            low, high = f1_interval(counted)
            cells_of = [*map(share, score(counted)), f"{share(low)} to {share(high)}"]
            ends = [share(end) for end in wilson(sum(quiet), len(quiet))] if quiet else ["", ""]
            cells_of += [share(sum(quiet) / len(quiet)), " to ".join(ends)] if quiet else ["", ""]
            yield f"| {level} | {len(of)} | {name} | {' | '.join(cells_of)} |"


def share(number: float) -> str:
    return "" if math.isnan(number) else f"{100 * number:.1f}%"


def led(records: Sequence[Record], said: Mapping[str, Places], where: str) -> Iterator[str]:
    """A sentence for each noise level: who has the best F1."""
    for level in dict.fromkeys(bin_of(one.noise) for one in sorted(records, key=lambda one: one.noise)):
        of = [one for one in records if bin_of(one.noise) == level]
        f1 = {name: score(np.array([counts(one, places[one.id]) for one in of]))[2] for name, places in said.items()}
        best = max(f1, key=lambda name: f1[name])
        if "ours" not in f1:
            yield f"- {where}, noise {level}: {best} leads of those asked, with {share(f1[best])}."
        elif best == "ours":
            yield f"- {where}, noise {level}: this program leads, with {share(f1['ours'])}."
        else:
            yield f"- {where}, noise {level}: this program does **not** lead: {best} has {share(f1[best])}, ours {share(f1['ours'])}."  # noqa: E501


def by_size(records: Sequence[Record], said: Mapping[str, Places]) -> Iterator[str]:
    """Recall of each kind and size of change."""
    groups: dict[tuple[str, float], list[Record]] = defaultdict(list)
    for one in records:
        if one.changes:
            ratio = one.changes[0][1]
            groups[one.kind, 0.0 if one.kind == "replicated" else round(max(ratio, 1 / ratio) - 1, 2)].append(one)
    yield f"| kind | size | series | {' | '.join(said)} |"
    yield "|---|---:|---:|" + "---:|" * len(said)
    for (kind, size), of in sorted(groups.items()):
        recalls = [score(np.array([counts(one, places[one.id]) for one in of]))[1] for places in said.values()]
        yield f"| {kind} | {f'{size:.0%}' if size else 'any'} | {len(of)} | {' | '.join(map(share, recalls))} |"


PAIRS = """## Pairs and replicated steps

*A/A* is one release measured under two names. In a *planted pair* one of both got more time in its process. These come from the
[calibration](calibration.md). *Replicated* steps are those that this program found at the same release in both lanes of the whole
history. They were chosen by what it found, so its recall there says little about it. Only these releases are judged.
"""  # noqa: E501


NOT_ASKED = (
    "Otava and PELT were not asked here. On [another page](steps.md) they find more of the steps of 10 % than this program."
    "\n"
)


BEST = """## Others at their best strictness: batches called {batches}

F1 of each detector at the setting of a grid that scores best on these very labels. That favours the others, because this
program has one setting. *hud* is the rule of neighbours with any of the thresholds {thresholds}."""


def page(records: Sequence[Record], said: Mapping[str, Places], strict: Grid | None = None) -> str:
    """Markdown. With `strict`, others are shown at their best strictness as well."""
    made = [one for one in records if one.kind in MADE]
    parts: list[str] = []
    leads: list[str] = []
    for batch_kind in BATCHES:
        of = [one for one in made if one.batch.startswith(batch_kind)]
        parts.append("\n".join([f"## Batches called {batch_kind}\n", *table(of, said)]))
        leads += led(of, said, batch_kind)
        if strict and "ours" in said:
            head = BEST.format(batches=batch_kind, thresholds=", ".join(f"{at:.0%}" for at in HUD_GRID))
            parts.append("\n".join([f"{head}\n", *best_of(of, said, strict)]))
    parts.append("\n".join(["## Recall by kind and size\n", *by_size(made, said)]))
    pairs = [one for one in records if one.kind in ("A/A", "planted pair")]
    rest = [one for one in records if one not in made]
    parts.append("\n".join([PAIRS, *table(pairs, said), "", *by_size(rest, said)]))
    return (
        "\n\n".join(
            [
                WORDS.rstrip(),
                "\n".join(["## Who leads on F1\n", *([] if "otava" in said else [NOT_ASKED]), *leads]),
                *parts,
            ]
        )
        + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["make", "score"])
    parser.add_argument(
        "--detector", action="append", help="ours, asv, hud5, hud7, otava, pelt or a command; may be repeated"
    )
    parser.add_argument("--others", metavar="PYTHON", help="a Python that has NumPy, apache-otava and ruptures")
    parser.add_argument("--seeds", type=int, default=0, help="score data sets of so many other seeds as well")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args()
    if asked.task == "make":
        DATA.write_bytes(gzip.compress("".join(map(line_of, data_set())).encode(), mtime=0))
        return
    records = read()
    names = asked.detector or ["ours", "asv", *HUD, *(OUTSIDE if asked.others else ())]
    if asked.write and "ours" not in names:
        parser.error("the page is about this program: --write needs the detector 'ours'")
    said = {name: reports(name, records, asked.others) for name in names}
    text = page(records, said, grid(records, asked.others))
    if asked.seeds:
        table_of_seeds = other_seeds(asked.seeds, asked.others)
        text += (
            "\n".join([f"\n## Data sets of {asked.seeds} other seeds\n", "Least and most F1.\n", *table_of_seeds])
            + "\n"
        )
    print(text)
    if asked.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
