"""docs/generated/calibration.md and what `torch-history calibrate` prints: how often the verdicts were right."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from contract.metrics import CALL_MARGIN, MARGIN

from ..analysis.calibration import (
    FOLDER,
    IN_SINGLE,
    LEAST_HELD,
    MOST_FALSE,
    MOST_UNTOLD,
    NOMINAL,
    Calibration,
    Held,
    Planted,
    files,
    only_counts,
    per_cent,
    read,
    really_planted,
    scatter,
)
from ..analysis.foretold import foretold
from ..analysis.markdown import escape
from ..analysis.verdicts import FALSE_RATE, Change
from ..errors import SessionError
from ..store.launches import Launch
from ..system.files import warn


def text(calibration: Calibration) -> str:
    """The report, in Markdown that reads well in a terminal too."""
    parts = (_taken, _against_itself, *((_planted, _intervals) if calibration.is_planted else ()))
    lines = [line for part in parts for line in part(calibration)]
    missed = calibration.missed
    lines += ["Aims missed:", "", *[f"- {one}" for one in missed]] if missed else ["Aims missed: none."]
    return "\n".join(lines) + "\n"


def _taken(found: Calibration) -> list[str]:
    """What was measured, and how much two launches differ."""
    times = _launches_of_times(found)
    processes = sum(len(launch.cases) for launch in found.launches if launch.duration)
    minutes = sum(launch.duration for launch in found.launches) / 60
    rounds = statistics.median(min(change.launches) for change in found.same)
    most = max(min(change.launches) for change in found.same)
    blocks = {(launch.launch, launch.started_at) for launch in times}
    disturbed = {
        (launch.launch, launch.started_at) for launch in times if "disturbed" in launch.facts.get("conditions", {})
    }
    return [
        f"{found.release} in {found.environment}, started on {found.launches[0].started_at[:10]}. It took {processes:,} "
        f"processes and {minutes:.0f} minutes. A time was measured in {rounds:.0f} rounds (median), and in {most} at most. "
        f"{len(disturbed)} of {len(blocks)} parts of launches were disturbed.",
        f"Two launches of one round differ by {per_cent(scatter(times, min))} in their quickest sample, which verdicts use. "
        f"In their median sample they differ by {per_cent(scatter(times, statistics.median))}. "
        "Both figures are medians over steady times.",
        "",
    ]


def _launches_of_times(found: Calibration) -> list[Launch]:
    return [launch for launch in found.launches if not only_counts(launch)]


def _against_itself(found: Calibration) -> list[str]:
    """The false alarms."""
    tally = Counter(change.verdict.shown for change in found.same)
    return [
        f"**The same release under two names.** {len(found.same)} times: "
        + ", ".join(f"{count} {words}" for words, count in tally.most_common())
        + f". {per_cent(found.untold)} are inconclusive (aim: under {MOST_UNTOLD:.0%}). {_beside(found)}"
        f"{len(found.false_times)} ({per_cent(found.false_share)}) were reported as changed (aim: at most {MOST_FALSE:.0%})."
        + (
            f" Of the counts and bytes, {len(found.false_counts)} were reported as changed (aim: none)."
            if found.is_planted
            else ""
        ),
        "",
        *[f"- false: {escape(_in_words(change))}" for change in found.false_times],
        *[f"- false: {escape(words)}" for words in found.false_counts],
        "",
    ]


def _beside(found: Calibration) -> str:
    """How many unchanged times there are in all."""
    if not found.is_planted:
        return "Nothing was planted in any. Of these times, "
    return (
        f"In another {len(found.beside)} times of the planted arm nothing was planted. "
        f"Of all {len(found.same) + len(found.beside)} unchanged times, "
    )


def _planted(found: Calibration) -> list[str]:
    """How many planted changes were found."""
    return [
        "| planted | series | found | share | aim |",
        "|---|---:|---:|---:|---:|",
        *map(_row, [*found.times, *found.counts]),
        "",
    ]


def _intervals(found: Calibration) -> list[str]:
    """How many intervals hold the truth."""
    truth = (
        "The truth of steady calls is what their processes say was really planted."
        if really_planted(_launches_of_times(found))
        else UNTOLD
    )
    return [
        f"**Intervals.** Of intervals at {NOMINAL:.0%}, at least {LEAST_HELD:.0%} shall hold the truth, whatever the "
        "verdict, of each kind of series and size of change. In brackets: 95 % of draws of variants, because series of one "
        f"variant err together. {truth}",
        "",
        "| truth | series | hold it |",
        "|---|---:|---:|",
        *map(_held_row, found.held),
        "",
    ]


UNTOLD = (
    "These launches do not say what was really planted, so intervals are held against the size that was asked for. A delay "
    "was a share of what a call took before it was measured, and calls after an interrupted delay went without one. So rows "
    "with a delay err by more than their intervals."
)
"""Of launches from before processes told what was planted: what their truth is."""


def _in_words(change: Change) -> str:
    return (
        f"{change.series.words}: {change.verdict.shown}, {change.ratio or 0:.3f} times "
        f"({change.low or 0:.3f} to {change.high or 0:.3f}) in {min(change.launches)} rounds"
    )


def _row(planted: Planted) -> str:
    share = per_cent(planted.share) if planted.series else ""
    aim = "" if planted.aim is None else f"{planted.aim:.0%}"
    return f"| {planted.words} | {planted.series} | {planted.found} | {share} | {aim} |"


def _held_row(of: Held) -> str:
    """With the interval of the share, empty where there is nothing."""
    low, high = of.range
    share = f"{per_cent(of.share)} ({100 * low:.1f} to {100 * high:.1f})" if of.series else ""
    return f"| {of.words} | {of.series} | {share} |"


FORETOLD = (
    "**The noise of the history.** Each session of the history measured everything in two rounds. What its first two "
    f"releases say of noise foretells, at {NOMINAL:.0%}, by how much the ratio of its last two differs between the rounds. "
    "Nothing was chosen here, and a change between releases does not matter."
)
"""What the table of `foretold` shows."""


def _foretold(launches: Iterable[Launch]) -> list[str]:
    """How often what is foretold holds, by lane, question and metric."""
    lanes = foretold(launches)
    if not lanes:
        return []
    rows = sorted({of.words for held in lanes.values() for of in held})
    shares = {lane: {of.words: of for of in held} for lane, held in lanes.items()}
    lines = ["", FORETOLD, "", f"| times | {' | '.join(lanes)} |", f"|---|{'---:|' * len(lanes)}"]
    for words in rows:
        cells = [of_lane.get(words) for of_lane in shares.values()]
        lines.append(
            f"| {words} | {' | '.join(f'{per_cent(of.share)} of {of.series}' if of else '' for of in cells)} |"
        )
    total = [Held("", [one for of in held for one in of.of_variant]) for held in lanes.values()]
    lines.append(f"| all | {' | '.join(f'{per_cent(of.share)} of {of.series}' for of in total)} |")
    return [*lines, ""]


def _read(path: Path) -> Calibration | None:
    """A calibration; None where the file holds none, which a warning says."""
    try:
        return read(path)
    except SessionError as error:
        warn(str(error))
        return None


def document(
    results: Path,
    met: Mapping[str, Sequence[str]],
    launches_of: Mapping[str, Iterable[Launch]] = MappingProxyType({}),
) -> str:
    """docs/generated/calibration.md: of each machine what a person meets in its history (`met`, lines of Markdown), what its
    calibration showed, and how well the launches of its history are foretold."""
    parts = [
        "# How often the verdicts are right",
        "",
        "First come the changes that verdicts find in a machine's history, with its own rounds and noise. They are "
        "computed: a change is added to what was measured, and judged with everything else. The lanes of a machine hold "
        "wheels of the same sources, so they also show how often intervals hold. Then come measured calibrations.",
        "",
        "`torch-history calibrate` measures one release under two names. Any change reported between them is false. It "
        "measures the release a third time with delays planted in half of the cases. A planted delay is 5, 10 or 20 % of "
        f"the call, in a sixth of the cases each, and {IN_SINGLE} times as much in single calls of a sequence. "
        "Changes in half of all cases are easier to find than one alone.",
        "",
        "Counts are measured with one more operator, with 4 KiB more at the peak, and with a failure in every case. "
        "Calibration uses the same sessions, rounds, budget and verdicts as results do. The margin is "
        f"{MARGIN:.0%}, and {CALL_MARGIN:.0%} for single calls. At most {FALSE_RATE:.0%} of the reported changes may be "
        f"false. The measurements are in `results/<machine>/{FOLDER}/`. `torch-history document` writes this page.",
        "",
    ]
    measured: dict[str, list[str]] = defaultdict(list)
    for path in files(results):
        if found := _read(path):
            machine = path.parent.parent.name
            measured[machine] += [text(found), *_foretold(launches_of.get(machine, ()))]
    machines = measured.keys() | {machine for machine, lines in met.items() if lines}
    for machine in sorted(machines, key=lambda machine: (machine not in measured, machine)):
        parts += [f"## {escape(machine)}", "", *met.get(machine, ()), *measured[machine]]
    if not measured:
        parts += ["No machine has been calibrated yet.", ""]
    return "\n".join(parts)
