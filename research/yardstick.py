"""How good is a detector of changes? Its score on the labelled series of datasets/yardstick/.

    make yardstick                              this program and four others; writes docs/generated/yardstick.md
    python -m research.yardstick "COMMAND"      prints the same table of a program that reads series as lines of JSON

Otava and PELT run in an environment of their own, which uv makes and caches.
"""

import itertools
import json
import math
import shlex
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np
from asv.step_detect import detect_steps
from uv import find_uv_bin

from tools.pages import write_into
from torch_history.analysis import steps
from torch_history.analysis.series import History
from torch_history.analysis.steps import SMALLEST, Kind
from torch_history.releases.axis import Axis
from torch_history.store.launches import Case, Launch

from .data_set import BATCHES, BINS, FOLDS, PAIRS, ROOT, SEED, Record, read

PAGE = ROOT / "docs" / "generated" / "yardstick.md"
COMMAND = "make yardstick"

DRAWS = 1000
"""Samples of series for the interval of F1."""

HUD_GRID = (0.05, 0.03, 0.07, 0.1, 0.15, 0.2)
"""Between neighbours, as shares: the threshold of PyTorch HUD's dashboard for compilers first, and others, among them that
of TorchBench's nightly check. The page links to both."""

ASV_GRID = (0.05, 0.02, 0.03, 0.07, 0.1, 0.15, 0.2)
"""asv's `regressions_thresholds`, its default first."""

PACKAGES = ("apache-otava==0.8.0", "ruptures==1.1.10", "numpy==2.2.0")

LABELS = ("kind", "noise", "changes")
"""Fields of a series that no detector sees."""

Places = dict[str, list[int]]
"""Id of a series -> the positions that a detector reports."""

Settings = dict[str, Places]
"""A detector's setting in words -> what it then reports. Its usual one is first."""


def lanes(records: Iterable[Record], tags: Sequence[str]) -> Iterator[tuple[History, list[Record]]]:
    """The series of each batch as a history, which share sessions and rounds. Their releases are the first of `tags`."""
    batches: dict[str, list[Record]] = defaultdict(list)
    for one in records:
        batches[one.batch].append(one)
    for of in batches.values():
        yield History((one.series, _as_launches(one, tags)) for one in of), of


def _as_launches(one: Record, tags: Sequence[str]) -> dict[str, list[tuple[Launch, Case]]]:
    def of_round(tag: str, session: str, turn: int, seconds: float) -> tuple[Launch, Case]:
        name = f"{session}-{turn}-{tag}"
        launch = Launch(session, turn, name, tag, one.lane, one.benchmark, "", "", 0.0, {}, ())
        return launch, Case(tuple(one.parameters), samples=(seconds,))

    of_releases = zip(tags, one.launches, strict=False)
    return {tag: [of_round(tag, *launch) for launch in launches] for tag, launches in of_releases}


def hud(levels: Sequence[float], threshold: float) -> list[int]:
    """Positions whose level differs from the one before by more than the threshold."""
    return [place for place, (old, new) in enumerate(itertools.pairwise(levels), 1) if abs(new / old - 1) > threshold]


def asv(levels: Sequence[float], threshold: float) -> list[int]:
    """Positions at which asv's own step detection sees a new level, if it differs by the threshold."""
    return large(levels, [place for _, place, *_ in detect_steps([*levels], [1.0] * len(levels))][:-1], threshold)


def large(levels: Sequence[float], places: Sequence[int], least: float = SMALLEST) -> list[int]:
    """Positions at which the median of what lies between changes moved by `least`, a share."""
    ends = [0, *places, len(levels)]
    middles = [statistics.median(levels[one:other]) for one, other in itertools.pairwise(ends)]
    moved = [abs(math.log(new / old)) for old, new in itertools.pairwise(middles)]
    return [place for place, of in zip(places, moved, strict=True) if of >= math.log1p(least)]


def everyone(records: Sequence[Record]) -> dict[str, Settings]:
    """What each detector reports, by its settings. The others than this program read the levels of releases, less what it
    finds that sessions do to all series of a question."""
    axis = Axis.load(ROOT / "releases.toml")
    tags = [release.tag for release in axis.releases]
    ours: Places = {one.id: [] for one in records}
    levels: dict[str, list[float]] = {}
    for history, of in lanes(records, tags):
        ids = {one.series: one.id for one in of}
        for step in steps.of_history(history, axis):
            ours[ids[step.series]].append(tags.index(step.new))
            if step.kind is Kind.EXCURSION:
                ours[ids[step.series]].append(tags.index(step.until) + 1)
        for series, releases in history.items():
            fit = history.fits[series.environment, series.question]
            levels[ids[series]] = [fit.shown(series, tag) for tag in releases]
    return {
        "ours": {"its own": ours},
        "asv": {f"{at:.0%}": {key: asv(of, at) for key, of in levels.items()} for at in ASV_GRID},
        "hud": {f"{at:.0%}": {key: hud(of, at) for key, of in levels.items()} for at in HUD_GRID},
        **outside(levels),
    }


def outside(levels: Mapping[str, Sequence[float]]) -> dict[str, Settings]:
    """What research/other_detectors.py says of each series. Raises CalledProcessError where it does not run."""
    packages = [word for package in PACKAGES for word in ("--with", package)]
    command = [find_uv_bin(), "run", "--quiet", "--no-project", "--isolated", *packages, "python", "other_detectors.py"]
    lines = "".join(json.dumps(of) + "\n" for of in levels.values())
    folder = ROOT / "research"
    said = subprocess.run(command, cwd=folder, input=lines, stdout=subprocess.PIPE, text=True, check=True).stdout
    found: dict[str, Settings] = defaultdict(lambda: defaultdict(dict))
    for (key, of), line in zip(levels.items(), said.splitlines(), strict=True):
        for name, settings in json.loads(line).items():
            for setting, places in settings.items():
                found[name][setting][key] = large(of, places)
    return found


def asked(command: str, records: Sequence[Record]) -> Places:
    """What a program says that reads a series without its labels on each line, and writes a list of positions on each.
    Raises ValueError where it answers otherwise."""
    hidden = [{key: value for key, value in asdict(one).items() if key not in LABELS} for one in records]
    lines = "".join(json.dumps(one) + "\n" for one in hidden)
    said = subprocess.run(shlex.split(command), input=lines, stdout=subprocess.PIPE, text=True, check=True).stdout
    answers = [json.loads(answer) for answer in said.splitlines()]
    if len(answers) != len(records) or not all(isinstance(one, list) for one in answers):
        raise ValueError(
            f"{command!r} must write one list of positions per series: {len(records)} lines, not {len(answers)}"
        )
    return {one.id: answer for one, answer in zip(records, answers, strict=True)}


def counts(one: Record, said: Iterable[int]) -> tuple[int, int, int]:
    """True, false and missed reports of one series."""
    true, heard = {place for place, _ in one.changes}, {*said}
    return len(true & heard), len(heard - true), len(true - heard)


def score(records: Iterable[Record], places: Places) -> tuple[float, float, float]:
    """Precision, recall and F1; NaN where nothing is to be found or nothing was reported."""
    hit, false, missed = np.sum([counts(one, places[one.id]) for one in records], axis=0)
    parts = (hit, hit + false), (hit, hit + missed), (2 * hit, 2 * hit + false + missed)
    precision, recall, f1 = (float(part / whole) if whole else math.nan for part, whole in parts)
    return precision, recall, f1


def interval(records: Sequence[Record], places: Places) -> str:
    """Where F1 of 95 % of samples of the series lies."""
    counted = np.array([counts(one, places[one.id]) for one in records])
    drawn = np.random.default_rng(SEED).integers(0, len(counted), (DRAWS, len(counted)))
    hit, false, missed = counted[drawn].sum(axis=1).T
    f1 = 2 * hit / np.maximum(2 * hit + false + missed, 1)
    return " to ".join(share(float(end)) for end in np.quantile(f1, [0.025, 0.975]))


def chosen(records: Sequence[Record], found: Settings) -> Places:
    """What a detector reports of each series at the setting that is best on the other folds of its kind and noise level."""
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for one in records:
        groups[one.batch.split()[0], one.level].append(one)
    said: Places = {}
    for of, fold in itertools.product(groups.values(), range(FOLDS)):
        others = [one for one in of if one.fold != fold]

        def f1(places: Places, others: Sequence[Record] = others) -> float:
            of_all = score(others, places)[2] if others else math.nan
            return 1.0 if math.isnan(of_all) else of_all  # nothing is to be found, and nothing is reported

        best = max(found.values(), key=f1)
        said |= {one.id: best[one.id] for one in of if one.fold == fold}
    return said


def table(records: Sequence[Record], said: Mapping[str, Places]) -> Iterator[str]:
    """A row for each noise level and detector."""
    yield "| noise | series | detector | precision | recall | F1 | interval of F1 | alarm |"
    yield "|---|---:|---|---:|---:|---:|---|---:|"
    for level in BINS:
        of = [one for one in records if one.level == level]
        quiet = [one.id for one in of if not one.changes]
        for name, places in said.items() if of else ():
            alarm = sum(bool(places[key]) for key in quiet) / len(quiet) if quiet else math.nan
            cells = [*map(share, score(of, places)), interval(of, places), share(alarm)]
            yield f"| {level} | {len(of)} | {name} | {' | '.join(cells)} |"


def by_size(records: Iterable[Record], said: Mapping[str, Places]) -> Iterator[str]:
    """Recall of each kind and size of change."""
    groups: dict[tuple[str, float], list[Record]] = defaultdict(list)
    for one in records:
        if one.changes:
            ratio = one.changes[0][1]
            groups[one.kind, round(max(ratio, 1 / ratio) - 1, 2)].append(one)
    yield f"| kind | size | series | {' | '.join(said)} |"
    yield "|---|---:|---:|" + "---:|" * len(said)
    for (kind, size), of in sorted(groups.items()):
        yield f"| {kind} | {size:.0%} | {len(of)} | {' | '.join(share(score(of, each)[1]) for each in said.values())} |"


def share(number: float) -> str:
    return "" if math.isnan(number) else f"{100 * number:.1f}%"


def tables(records: Sequence[Record], said: Mapping[str, Places]) -> str:
    """Markdown."""
    made = {kind: [one for one in records if one.batch.split()[0] == kind] for kind in BATCHES}
    pairs = [one for one in records if one.kind in PAIRS.values()]
    parts = [[f"## Batches called {kind}\n", *table(of, said)] for kind, of in made.items()]
    parts.append(["## Recall by kind and size\n", *by_size(records, said)])
    parts.append(["## Pairs of calibrations\n", *table(pairs, said)])
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def main() -> None:
    records = read()
    if sys.argv[1:]:
        print(tables(records, {"yours": asked(sys.argv[1], records)}))
    else:
        said = {name: chosen(records, found) for name, found in everyone(records).items()}
        write_into(PAGE, COMMAND, tables(records, said))


if __name__ == "__main__":
    main()
