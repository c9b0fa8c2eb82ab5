"""docs/generated/calibration.md and what `torch-history calibrate` prints: how often the verdicts were right."""

from __future__ import annotations

import statistics
from collections import Counter
from pathlib import Path

from contract.metrics import CALL_MARGIN, MARGIN

from ..analysis.calibration import (
    FOLDER,
    IN_SINGLE,
    MOST_FALSE,
    MOST_UNTOLD,
    Calibration,
    Planted,
    files,
    only_counts,
    per_cent,
    read,
    scatter,
)
from ..analysis.compare import escape
from ..analysis.verdicts import FALSE_RATE, Change


def text(calibration: Calibration) -> str:
    """The report, in Markdown that reads well in a terminal too."""
    found = calibration
    times = [launch for launch in found.launches if not only_counts(launch)]
    processes = sum(len(launch.cases) for launch in found.launches if launch.duration)
    minutes = sum(launch.duration for launch in found.launches) / 60
    rounds = statistics.median(min(change.launches) for change in found.same)
    most = max(min(change.launches) for change in found.same)
    tally = Counter(change.verdict.shown for change in found.same)
    looked_at = len(found.same) + len(found.beside)
    blocks = {(launch.launch, launch.started_at) for launch in times}
    disturbed = {
        (launch.launch, launch.started_at) for launch in times if "disturbed" in launch.facts.get("conditions", {})
    }
    lines = [
        f"{found.release} in {found.environment}, started on {found.launches[0].started_at[:10]}. It took {processes:,} "
        f"processes and {minutes:.0f} minutes. A time was measured in {rounds:.0f} rounds (median), and in {most} at most. "
        f"{len(disturbed)} of {len(blocks)} parts of launches were disturbed.",
        f"Two launches of one round differ by {per_cent(scatter(times, min))} in their quickest sample, which verdicts use. "
        f"In their median sample they differ by {per_cent(scatter(times, statistics.median))}. "
        "Both figures are medians over steady times.",
        "",
        f"**The same release under two names.** {len(found.same)} times: "
        + ", ".join(f"{count} {words}" for words, count in tally.most_common())
        + f". {per_cent(found.untold)} are inconclusive (aim: under {MOST_UNTOLD:.0%}). In another {len(found.beside)} "
        f"times of the planted arm nothing was planted. Of all {looked_at} unchanged times, {len(found.false_times)} "
        f"({per_cent(found.false_share)}) were reported as changed (aim: at most {MOST_FALSE:.0%}). "
        f"Of the counts and bytes, {len(found.false_counts)} were reported as changed (aim: none).",
        "",
        *[f"- false: {escape(_in_words(change))}" for change in found.false_times],
        *[f"- false: {escape(words)}" for words in found.false_counts],
        "",
        "| planted | series | found | share | aim | interval contains it |",
        "|---|---:|---:|---:|---:|---:|",
        *[_row(planted) for planted in [*found.times, *found.counts]],
        "",
        f"Aims missed: {'; '.join(found.missed) or 'none'}.",
    ]
    return "\n".join(lines) + "\n"


def _in_words(change: Change) -> str:
    return (
        f"{change.series.words}: {change.verdict.shown}, {change.ratio or 0:.3f} times "
        f"({change.low or 0:.3f} to {change.high or 0:.3f}) in {min(change.launches)} rounds"
    )


def _row(planted: Planted) -> str:
    share = per_cent(planted.share) if planted.series else ""
    aim = "" if planted.aim is None else f"{planted.aim:.0%}"
    covered = "" if planted.covered is None or not planted.series else per_cent(planted.covered / planted.series)
    return f"| {planted.words} | {planted.series} | {planted.found} | {share} | {aim} | {covered} |"


def document(results: Path) -> str:
    """docs/generated/calibration.md: what each machine's calibration showed."""
    parts = [
        "# How often the verdicts are right",
        "",
        "`torch-history calibrate` measures one release under two names. Any change reported between them is false. It "
        "measures the release a third time with delays planted in half of the cases. A planted delay is 5, 10 or 20 % of "
        f"the call, in a sixth of the cases each, and {IN_SINGLE} times as much in single calls of a sequence.",
        "",
        "Counts are measured with one more operator, with 4 KiB more at the peak, and with a failure in every case. "
        "Calibration uses the same sessions, rounds, budget and verdicts as results do. The margin is "
        f"{MARGIN:.0%}, and {CALL_MARGIN:.0%} for single calls. At most {FALSE_RATE:.0%} of the reported changes may be "
        f"false. The measurements are in `results/<machine>/{FOLDER}/`. `torch-history document` writes this page.",
        "",
    ]
    for path in files(results):
        parts += [f"## {path.parent.parent.name}", "", text(read(path))]
    if not files(results):
        parts += ["No machine has been calibrated yet.", ""]
    return "\n".join(parts)
