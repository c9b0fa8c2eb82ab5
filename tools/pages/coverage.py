"""How much was measured, and of how much is known what changed in its code? For docs/generated/coverage.md."""

import functools
import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from torch_history.analysis.code import TIMES, of_times, pair_of
from torch_history.analysis.markdown import escape
from torch_history.analysis.series import History, Verdict
from torch_history.analysis.verdicts import Change, compare_history
from torch_history.explaining.finding import TIMES as STEADY
from torch_history.releases.axis import Axis

HEADER = """\
# How much was measured

`make document` writes this page from `results/`. A case is a variant in one size on one release. *Ran* are those
with any number. A time is compared with that of the release before it. *Launches* is the median over these times, each
of the release with fewer. *Inconclusive* is the share of them that the rounds do not decide; the aim is at most a third. On
the site, the page of a release says which cases did not run, and why.

| machine | lane | question | releases | cases | ran | times | launches | inconclusive | counts and bytes | changed |
|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|
"""


LARGEST = 60
"""Changes of a lane whose classes are counted."""

CLASSES = f"""
## What changed in the code

Of each lane measured on a processor, the {LARGEST} largest changes between neighbours of the time of a repeated call,
by what the code of both wheels says: docs/explain.md explains the classes. *None* are of releases in which nobody has looked
at what runs. What a process does once, such as a first call, has no class.

| machine | lane | changes | classes |
|---|---|---:|---|
"""


def document(lanes: Mapping[str, Mapping[str, History]], axis: Axis) -> str:
    """The page for the lanes of each machine."""
    rows, classes = [], []
    for machine, of_machine in lanes.items():
        for environment, lane in of_machine.items():
            between = functools.cache(functools.partial(compare_history, lane))
            for question in sorted({series.question for series in lane}):
                cells = [machine, environment, question.replace("_", " "), *_cells(lane, question, between, axis)]
                rows.append(f"| {' | '.join(map(escape, cells))} |\n")
            cells = [machine, environment, *_classes(lane, between, axis)]
            classes += [f"| {' | '.join(map(escape, cells))} |\n"] if cells[2] != "0" else []
    return HEADER + "".join(rows) + CLASSES + "".join(classes)


def _releases(tags: Iterable[str], axis: Axis) -> list[str]:
    """Those on the axis, oldest first."""
    return sorted({tag for tag in tags if tag in axis}, key=axis.position)


def _classes(lane: History, between: Callable[[str, str], list[Change]], axis: Axis) -> tuple[str, str]:
    """How many of the largest changes of a lane are looked at, and how many are of each class."""
    told: list[tuple[float, str]] = []
    tags = _releases((tag for one, of in lane.items() if one.metric in STEADY for tag in of), axis)
    for old, new in itertools.pairwise(tags):
        every = [change for change in between(old, new) if change.series.metric in STEADY]
        changes = [change for change in every if change.verdict in TIMES and change.ratio]
        known = of_times(changes, pair_of(next(iter(lane)).environment, old, new), every)
        for change in changes:
            kind = known[change.series].kind.value if change.series in known else "none"
            told.append((abs(math.log(change.ratio or 1)), kind))
    counts = Counter(kind for _, kind in sorted(told, reverse=True)[:LARGEST])
    return str(counts.total()), ", ".join(f"{count} {kind}" for kind, count in counts.most_common())


def _cells(lane: History, question: str, between: Callable[[str, str], list[Change]], axis: Axis) -> list[str]:
    """What is known of one question in one lane; empty where there are no times, or no counts."""
    ran: dict[tuple[tuple[str, ...], str], bool] = defaultdict(bool)
    for series, of in lane.items():
        for tag, pairs in of.items() if series.question == question else ():
            ran[series.parameters, tag] |= any(case.number is not None for _, case in pairs)
    tags = _releases((tag for (_, tag), has_number in ran.items() if has_number), axis)
    every = (change for pair in itertools.pairwise(tags) for change in between(*pair))
    changes = [change for change in every if change.series.question == question]
    both = [change for change in changes if change.old is not None and change.new is not None]
    times = [change for change in both if change.series.varies and not change.reason]
    counts = [change for change in both if change.series.is_counted]
    return [
        f"{len(tags)}: {tags[0]} to {tags[-1]}" if tags else "none",
        f"{len(ran):,}",
        f"{sum(ran.values()) / len(ran):.0%}",
        f"{len(times):,}" if times else "",
        f"{statistics.median(min(change.launches) for change in times):g}" if times else "",
        f"{sum(change.verdict is Verdict.CANT_TELL for change in times) / len(times):.0%}" if times else "",
        f"{len(counts):,}" if counts else "",
        f"{sum(change.verdict is not Verdict.SAME for change in counts):,}" if counts else "",
    ]
