"""How good is a detector of changes? A labelled data set from the committed launches, and a score for any detector on it.

`python -m tools.yardstick make` writes datasets/yardstick/series.jsonl.gz anew. `python -m tools.yardstick score --detector NAME`
prints tables; NAME is ours, asv, hud, otava, pelt, or a command that reads series as JSON lines. `--write` writes the page.
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
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from tools.detectors import ROOT, asv_places, elsewhere, large, left, ordered, shown, stored_lanes
from torch_history.analysis import calibration, steps, verdicts
from torch_history.analysis.series import History, Series
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

FOLDS = 5
"""Of series, the same in both lanes: a detector's setting for one is chosen by what scores best on the others."""

HUD_GRID = (0.05, 0.03, 0.07, 0.1, 0.15, 0.2)
"""Between neighbours, as shares: RELATIVE_THRESHOLD of PyTorch HUD's dashboard for compilers, and others, among them
DEFAULT_REGRESSION_DELTA_THRESHOLD of TorchBench's nightly check. WORDS links to both."""

ASV_GRID = (0.05, 0.02, 0.03, 0.07, 0.1, 0.15, 0.2)
"""asv's `regressions_thresholds`, its default first."""

OUTSIDE = {"otava": "Otava", "pelt": "PELT (ruptures)"}


@dataclass(frozen=True)
class Effects:
    """What acts on launches of made series beside their noise: whether sessions act on all of a lane as they did in the
    committed results, and the standard deviations of logarithms of what each session and each round does to one series."""

    common: bool = False
    session: float = 0.0
    round: float = 0.0


BATCHES = {"level": Effects(), "sessions": Effects(True), "besides": Effects(True, 0.02, 0.018)}
"""Begin of a batch's name -> what acts there. The last is what the committed results show."""

MADE = ("quiet", "step", "excursion")
"""Kinds of series that are made."""

WORDS = """# A yardstick for detectors

`python -m tools.yardstick score --others PYTHON --write` writes this page from the [data set](../../datasets/yardstick/README.md).

A reported position counts only if the level changes at exactly this release. F1 is the harmonic mean of precision and recall. Its
interval holds 95 % of {draws} samples of the series. Half of the series of this table are quiet, and precision depends on that
share. *Alarm* is the share of quiet series with any report, with Wilson's 95 % interval.

This program has one setting, and knows sessions and rounds. The others know neither, so they read the median of each release less what
each session does to all series of a question, which this program estimates. For a fifth of the series each is used at the setting that
has the best F1 on the other four fifths of the same noise level. The settings are the penalty of PELT, the significance of Otava, the
threshold of asv, and that of the rule of neighbours, called *hud*: those of PyTorch
[HUD's dashboard](https://github.com/pytorch/test-infra/blob/06c20d63406fedfbf34e374db375dafaeff2e4b6/torchci/components/benchmark/compilers/common.tsx)
for compilers (5 %) and of TorchBench's nightly
[regression detector](https://github.com/pytorch/benchmark/blob/061e0ec50c8981e72640fc7e02604d27c340990e/userbenchmark/torch-nightly/regression_detector.py)
(7 %) are among them. Changes below 2 % are dropped, as this program's are. Noise is the standard deviation of one launch.

In the batches called *level*, sessions have no effect of their own. In those called *sessions*, each session is as much slower or
faster as it was in the committed results. In those called *besides*, each session and each round also moves each series by itself, by
{session:.1%} and {round:.1%} (standard deviations), as they do in the committed results.
""".format(draws=DRAWS, **vars(BATCHES["besides"]))  # noqa: E501

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
    def series(self) -> Series:
        return Series(self.lane, self.benchmark, tuple(self.parameters))

    @property
    def group(self) -> tuple[str, str]:
        """What is scored together: batches of one kind, at one noise level."""
        return self.batch.split()[0], bin_of(self.noise)

    @property
    def fold(self) -> int:
        """The same in both lanes."""
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


def batch(
    name: str, history: History, sessions: Mapping[str, float], effects: Effects, random: np.random.Generator
) -> Iterator[Record]:
    """Every time of a lane at one level, with the noise of its own sessions, what acts there, and what is planted."""
    for series, releases in history.items():
        of = cells(releases)
        noise = noise_of(of)
        usual = np.concatenate([*noise.values()]) if noise else np.zeros(0)
        if not usual.any() or len(of) < 2:
            continue
        kind, changes = planted(len(of), random)
        besides = [acting(effects.session, random), acting(effects.round, random)]
        launches = []
        for position, drawn_for in enumerate(of.values()):
            level = math.prod(ratio for place, ratio in changes if place <= position)
            made = []
            for session, turn, _ in drawn_for:
                own = noise[session] if noise[session].any() else usual
                shift = float(random.choice(own)) + sessions.get(session, 0.0)
                shift += besides[0][session] + besides[1][session, turn]
                made.append((session[:15], turn, float(f"{level * math.exp(shift):.5g}")))
            launches.append(made)
        about = series.environment, series.benchmark, [*series.parameters]
        yield Record("", name, *about, kind, float(f"{usual.std():.3g}"), list(of), launches, changes)


def acting(scatter: float, random: np.random.Generator) -> dict[object, float]:
    """What each session or round adds to the logarithms of a series, drawn when it is first asked for."""
    return defaultdict(lambda: float(random.normal(0, scatter)) if scatter else 0.0)


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
    places: dict[Series, list[steps.Step]] = defaultdict(list)
    for of_lanes in told.values():
        if len(of_lanes) > 1:
            step = next(iter(of_lanes.values()))
            places[step.series].append(step)
    for series, found in sorted(places.items())[::2]:
        of = cells(lanes[series.environment][series])
        changes = sorted((list(of).index(step.new), round(step.ratio or 1, 4)) for step in found)
        yield as_measured(series, of, "replicated", changes, [place for place, _ in changes])


def as_measured(
    series: Series, of: Cells, kind: str, changes: list[tuple[int, float]], judged: list[int] | None = None
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
    common = {lane: session_effects(of for of in map(cells, history.values()) if of) for lane, history in lanes.items()}
    for kind, effects in BATCHES.items():
        for lane, history in lanes.items():
            sessions = common[lane] if effects.common else {}
            found += batch(f"{kind} {lane}", history, sessions, effects, random)
    found += [*calibrated(), *replicated(lanes, axis)]
    return [Record(**{**vars(record), "id": f"{number:04}"}) for number, record in enumerate(found)]


def line_of(record: Record) -> str:
    return json.dumps(asdict(record), separators=(",", ":")) + "\n"


def read() -> list[Record]:
    return [Record(**json.loads(line)) for line in gzip.decompress(DATA.read_bytes()).decode().splitlines()]


@dataclass(frozen=True)
class Data:
    """Records, and what this program makes of them: batch by batch, because it learns noise from series that were measured
    together. The releases of a record are the first of `axis` there."""

    records: Sequence[Record]
    axis: Axis = field(default_factory=lambda: Axis.load(ROOT / "releases.toml"))

    @property
    def tags(self) -> list[str]:
        return [release.tag for release in self.axis.releases]

    @functools.cached_property
    def lanes(self) -> list[tuple[History, dict[Series, Record]]]:
        batches: dict[str, dict[Series, Record]] = defaultdict(dict)
        for record in self.records:
            batches[record.batch][record.series] = record
        histories = (
            History((series, as_history(one, self.tags)) for series, one in of.items()) for of in batches.values()
        )
        return list(zip(histories, batches.values(), strict=True))

    @functools.cached_property
    def levels(self) -> dict[str, list[float]]:
        """Id of a series -> the levels of its releases, less what sessions do to all series of a question."""
        return {of[series].id: shown(found, series) for found, of in self.lanes for series in found}


def ours(data: Data) -> Places:
    """This program."""
    found: Places = {record.id: [] for record in data.records}
    for history, of in data.lanes:
        for step in steps.of_history(history, data.axis):
            places = [data.tags.index(step.new)]
            places += [data.tags.index(step.until) + 1] * (step.kind is Kind.EXCURSION)
            found[of[step.series].id] += places
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


Settings = dict[str, Places]
"""A detector's setting in words -> what it then reports. Its usual one is first."""


def settings(name: str, data: Data, python: str | None) -> Settings:
    """Of a detector. Raises ValueError where it needs another Python."""
    levels = data.levels
    if name == "ours":
        return {"its own": ours(data)}
    if name == "hud":
        return {f"{at:.0%}": {key: hud(of, at) for key, of in levels.items()} for at in HUD_GRID}
    if name == "asv":
        places = {key: asv_places(of) for key, of in levels.items()}
        return {f"{at:.0%}": {key: large(levels[key], of, True, at) for key, of in places.items()} for at in ASV_GRID}
    if name not in OUTSIDE:
        return {"its own": command(name, data.records)}
    if not python:
        raise ValueError(f"{name} needs --others PYTHON, a Python that has NumPy, apache-otava and ruptures")
    answers = [answer[OUTSIDE[name]] for answer in elsewhere(python, [*levels.values()], OUTSIDE[name])]
    return {
        f"setting {number}": {
            key: large(of, answer[number], True) for (key, of), answer in zip(levels.items(), answers, strict=True)
        }
        for number in range(len(answers[0]))
    }


def chosen(records: Sequence[Record], found: Settings) -> Places:
    """What a detector reports of each series at the setting that scores best on the other folds of its group."""
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for one in records:
        groups[one.group].append(one)
    said: Places = {}
    for of, fold in itertools.product(groups.values(), range(FOLDS)):
        others = [one for one in of if one.fold != fold]
        best = max(found.values(), key=lambda places: _f1(others, places)) if others else next(iter(found.values()))
        said |= {one.id: best[one.id] for one in of if one.fold == fold}
    return said


def _levels(records: Sequence[Record]) -> Iterator[tuple[str, list[Record]]]:
    """The records of each noise level, the quietest first."""
    for level in dict.fromkeys(bin_of(one.noise) for one in sorted(records, key=lambda one: one.noise)):
        yield level, [one for one in records if bin_of(one.noise) == level]


def _counted(records: Sequence[Record], places: Places) -> np.ndarray:
    return np.array([counts(one, places[one.id]) for one in records])


def _f1(records: Sequence[Record], places: Places) -> float:
    """1 where nothing is to be found and nothing is reported."""
    f1 = score(_counted(records, places))[2]
    return 1.0 if math.isnan(f1) else f1


def other_seeds(seeds: int, python: str | None) -> Iterator[str]:
    """F1 on data sets that other seeds plant in the same noise: the least and the most of each detector."""
    names = everyone(python)
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for seed in range(SEED + 1, SEED + 1 + seeds):
        made = [one for one in data_set(seed) if one.kind in MADE]
        said = reports(names, made, python)
        for kind in BATCHES:
            for level, of in _levels([one for one in made if one.group[0] == kind]):
                for name in names:
                    found[kind, level][name].append(_f1(of, said[name]))
    yield f"| batches | noise | {' | '.join(names)} |"
    yield "|---|---|" + "---:|" * len(names)
    for (kind, level), of_names in found.items():
        cells_of = [f"{share(min(of_names[name]))} to {share(max(of_names[name]))}" for name in names]
        yield f"| {kind} | {level} | {' | '.join(cells_of)} |"


def everyone(python: str | None) -> list[str]:
    """The detectors that can be asked."""
    return ["ours", "asv", "hud", *(OUTSIDE if python else ())]


def reports(names: Iterable[str], records: Sequence[Record], python: str | None) -> dict[str, Places]:
    """What detectors report, each at the settings that are `chosen`."""
    data = Data(records)
    return {name: chosen(records, settings(name, data, python)) for name in names}


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


def bootstrap(counted: np.ndarray) -> np.ndarray:
    """F1 of samples of the series: of as many series always the same, so that two detectors can be compared by pairs."""
    random = np.random.default_rng(SEED)
    drawn = counted[random.integers(0, len(counted), (DRAWS, len(counted)))].sum(axis=1)
    return np.asarray(2 * drawn[:, 0] / np.maximum(2 * drawn[:, 0] + drawn[:, 1] + drawn[:, 2], 1))


def middle(drawn: np.ndarray) -> str:
    """Where 95 % of the samples lie, in words."""
    return " to ".join(share(float(end)) for end in np.quantile(drawn, [0.025, 0.975]))


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
    for level, of in _levels(records):
        for name, places in said.items():
            counted = _counted(of, places)
            quiet = [bool(places[one.id]) for one in of if not one.changes]
            cells_of = [*map(share, score(counted)), middle(bootstrap(counted))]
            ends = [share(end) for end in wilson(sum(quiet), len(quiet))] if quiet else ["", ""]
            cells_of += [share(sum(quiet) / len(quiet)), " to ".join(ends)] if quiet else ["", ""]
            yield f"| {level} | {len(of)} | {name} | {' | '.join(cells_of)} |"


def share(number: float) -> str:
    return "" if math.isnan(number) else f"{100 * number:.1f}%"


def led(records: Sequence[Record], said: Mapping[str, Places], where: str) -> Iterator[str]:
    """A sentence for each noise level: whether this program has the best F1 and the interval of the difference says so."""
    for level, of in _levels(records) if len(said) > 1 else ():
        f1 = {name: _f1(of, places) for name, places in said.items()}
        drawn = {name: bootstrap(_counted(of, places)) for name, places in said.items()}
        best = max((name for name in said if name != "ours"), key=lambda name: f1[name])
        apart = drawn["ours"] - drawn[best]
        low, high = np.quantile(apart, [0.025, 0.975])
        verdict = "this program leads" if low > 0 else f"{best} leads" if high < 0 else "nobody is sure to lead"
        numbers = (
            f"{share(f1['ours'])} for this program and {share(f1[best])} for {best}, a difference of {middle(apart)}"
        )
        yield f"- {where}, noise {level}: {verdict}. F1 is {numbers}."


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


NOT_ASKED = "Otava and PELT were not asked here.\n"


def page(records: Sequence[Record], said: Mapping[str, Places]) -> str:
    """Markdown."""
    made = [one for one in records if one.kind in MADE]
    parts: list[str] = []
    leads: list[str] = []
    for kind in BATCHES:
        of = [one for one in made if one.group[0] == kind]
        parts.append("\n".join([f"## Batches called {kind}\n", *table(of, said)]))
        leads += led(of, said, kind) if "ours" in said else ()
    parts.append("\n".join(["## Recall by kind and size\n", *by_size(made, said)]))
    pairs = [one for one in records if one.kind in ("A/A", "planted pair")]
    rest = [one for one in records if one.kind not in MADE]
    parts.append("\n".join([PAIRS, *table(pairs, said), "", *by_size(rest, said)]))
    head = ["## Who leads on F1\n", *([] if "otava" in said else [NOT_ASKED]), *leads]
    return "\n\n".join([WORDS.rstrip(), "\n".join(head), *parts]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["make", "score"])
    parser.add_argument("--detector", action="append", help="ours, asv, hud, otava, pelt or a command; may be repeated")
    parser.add_argument("--others", metavar="PYTHON", help="a Python that has NumPy, apache-otava and ruptures")
    parser.add_argument("--seeds", type=int, default=0, help="score data sets of so many other seeds as well")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args()
    if asked.task == "make":
        DATA.write_bytes(gzip.compress("".join(map(line_of, data_set())).encode(), mtime=0))
        return
    records = read()
    names = asked.detector or everyone(asked.others)
    if asked.write and "ours" not in names:
        parser.error("the page is about this program: --write needs the detector 'ours'")
    text = page(records, reports(names, records, asked.others))
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
