"""docs/generated/calibration.md and what `torch-history run --calibrate` prints: how often the verdicts were right."""

import itertools
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.version import Version

from contract.metrics import CALL_MARGIN, MARGIN

from ..analysis import calibration, code, power
from ..analysis.calibration import IN_SINGLE, LEAST_HELD, MOST_FALSE, MOST_UNTOLD, NOMINAL, per_cent
from ..analysis.markdown import escape
from ..analysis.power import ALL, LaneEvidence
from ..analysis.verdicts import FALSE_RATE
from ..system.errors import SessionError
from ..system.files import warn

AIMS = {"+5%": 0.21, "+10%": 0.83, power.NEW: MOST_FALSE, power.HELD: LEAST_HELD, power.HELD_FAR: 0.92}
"""What is counted of a machine's history -> what is aimed at of steady times: the least share, of NEW the largest."""

HEADER = f"""\
# How often the verdicts are right

`make document` writes this page from `results/`. The first table of a machine is computed from its history: a
change is added to one time, while nothing else changes, between patch releases of which nothing else is reported. The share
that is reported in its direction is the share that a person would see. Single calls get {IN_SINGLE} times the change.
The table also has what is reported between releases with the same code. With two lanes it has how often {NOMINAL:.0%}
intervals hold the difference of the lanes, between neighbours and between releases that are at least {power.FAR} releases
apart. Two lanes hold wheels of the same sources; these are other builds or one binary, as is told below the table.

`torch-history run --calibrate` measures one release under two names. Any change reported between them is false. It measures
the release a third time, with delays of 5, 10 or 20 % of a call, each planted in a sixth of the cases, and {IN_SINGLE}
times as much in single calls of a sequence. Changes in half of all cases are easier to find than one alone. Counts are
measured with one more operator, with 4 KiB more at the peak, and with a failure in every case. Sessions, rounds, budget and
verdicts are those of results. The margin is {MARGIN:.0%}, and {CALL_MARGIN:.0%} for single calls. At most {FALSE_RATE:.0%}
of the reported changes may be false. The measurements are in `results/<machine>/{calibration.FOLDER}/`.
"""


def document(results: Path, lanes_of: Mapping[str, Sequence[LaneEvidence]]) -> str:
    """docs/generated/calibration.md: of each machine which changes verdicts find in the history of its lanes, and what its
    calibrations showed. A file that holds none is left out, which a warning says."""
    said = {machine: [words] for machine, lanes in lanes_of.items() if (words := of_history(lanes))}
    for path in calibration.files(results):
        try:
            calibrated = text(calibration.read(path))
        except SessionError as error:
            warn(str(error))
        else:
            said.setdefault(path.parent.parent.name, []).append(calibrated)
    parts = ["\n".join([f"\n## {escape(machine)}\n", *words]) for machine, words in sorted(said.items())]
    return "".join([HEADER, *parts] if parts else [HEADER, "\nNothing is known of any machine yet.\n"])


def of_history(lanes: Sequence[LaneEvidence]) -> str:
    """The table of a machine's lanes and the aims that they miss; empty where no patch releases were measured."""
    found = power.counted(lanes)
    if not found.counts:
        return ""
    columns = list(dict.fromkeys(what for _, what in found.counts))
    lines = ["**One change alone.**", ""]
    head = [f"| question | {' | '.join(map(escape, columns))} |", "|---" + "|---:" * len(columns) + "|"]
    lines += head if found.questions else ["Nothing is counted: in every pair of patch releases a change is reported."]
    missed = []
    for question in found.questions:
        cells = []
        for what in columns:
            hits, of = found.counts.get((question, what), (0, 0))
            cells.append(f"{per_cent(hits / of)} of {of:,}" if of else "")
            name = what.partition(", ")[0]
            if question == ALL and of and (hits / of > AIMS[name]) is (name == power.NEW):
                bound = "at most" if name == power.NEW else "at least"
                missed.append(f"{what}: {cells[-1]} (aim: {bound} {AIMS[name]:.0%})")
        lines.append(f"| {escape(question)} | {' | '.join(cells)} |")
    aims = ["", *_missed(missed)] if ALL in found.questions else []
    return "\n".join([*lines, *aims, "", *_binaries(lanes)]) + "\n"


def _binaries(lanes: Sequence[LaneEvidence]) -> list[str]:
    """Which neighbours of a lane hold one binary, and which releases do in two lanes; docs/explain.md says when."""
    said = []
    for lane in lanes:
        pairs = [f"{old} -> {new}" for old, new in lane.near if code.is_nothing_new(lane.environment, old, new)]
        said.append(f"Neighbours with one binary in {escape(lane.environment)}: {', '.join(pairs) or 'none known'}.")
    for one, other in itertools.combinations(lanes, 2):
        both = sorted({*itertools.chain(*one.near)} & {*itertools.chain(*other.near)}, key=Version)
        named: dict[bool, list[str]] = {True: [], False: []}
        for tag in both:
            named[bool(code.same_code((one.environment, other.environment), tag))].append(tag)
        names = f"{escape(one.environment)} and {escape(other.environment)}"
        said.append(
            f"Of the releases in {names} one binary: {', '.join(named[True]) or 'none'}; "
            f"others, or not looked at: {', '.join(named[False]) or 'none'}."
        )
    return said


def _missed(aims: Sequence[str]) -> list[str]:
    return ["Aims missed:", "", *(f"- {escape(one)}" for one in aims)] if aims else ["Aims missed: none."]


def text(found: calibration.Calibration) -> str:
    """The report, in Markdown that reads well in a terminal too."""
    processes = sum(len(launch.cases) for launch in found.launches if launch.duration)
    minutes = sum(launch.duration for launch in found.launches) / 60
    rounds = [min(change.launches) for change in found.same]
    tally = Counter(change.verdict.shown for change in found.same)
    beside = f"In another {len(found.beside)} times nothing was planted. " if found.beside else ""
    lines = [
        f"{found.release} in {found.environment}, started on {found.launches[0].started_at[:10]}. It took {processes:,} "
        f"processes and {minutes:.0f} minutes. A time was measured in {statistics.median(rounds):.0f} rounds (median), and "
        f"in {max(rounds)} at most.",
        "",
        f"**The same release under two names.** {len(found.same)} times: "
        + ", ".join(f"{count} {words}" for words, count in tally.most_common())
        + f". {per_cent(found.untold)} are inconclusive (aim: under {MOST_UNTOLD:.0%}). {beside}"
        f"Of all {len(found.unchanged)} unchanged times, {len(found.false_times)} ({per_cent(found.false_share)}) were "
        f"reported as changed (aim: at most {MOST_FALSE:.0%}). {len(found.false_counts)} counts were (aim: none).",
        "",
    ]
    times = (
        f"{one.series.words}: {one.verdict.shown}, {one.ratio or 0:.3f} times ({one.low or 0:.3f} to {one.high or 0:.3f}) "
        f"in {min(one.launches)} rounds"
        for one in found.false_times
    )
    false = [f"- false: {escape(words)}" for words in (*times, *found.false_counts)]
    lines += [*false, ""] if false else []
    if found.beside or any(of.series for of in found.planted):  # else one release was compared with itself alone
        lines += _table("planted", "found", found.planted)
    lines += _table(f"{NOMINAL:.0%} intervals, where the truth is known", "hold it", found.held)
    return "\n".join([*lines, *_missed(found.missed)]) + "\n"


def _table(first: str, hits: str, rows: Sequence[calibration.Share]) -> list[str]:
    """Those of which there are any."""
    shown = [
        f"| {of.words} | {of.series} | {of.hits} | {per_cent(of.share)} | {of.aim:.0%} |" for of in rows if of.series
    ]
    return [f"| {first} | series | {hits} | share | aim |", "|---|---:|---:|---:|---:|", *shown, ""]
