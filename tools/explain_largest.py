"""Which causes of the largest changes does `explain` find, and does it find again what was found by hand?

`python -m tools.explain_largest` lists the largest changes of the committed history, one for each variant and metric, by
pair of releases, and then the causes of torch_history/analysis/causes.toml, each with the largest change that it explains,
in the history of Python 3.11 or else of 3.9.
Beside each stands what stored evidence says, of whichever machine. `--run` explains those that have none, a pair at a time,
for `--most` series or `--minutes`. `--write` puts both tables into docs/generated/causes.md.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from torch_history.analysis.causes import FOUND, FOUND_ON, FUSIONS, Cause, evidence
from torch_history.analysis.compare import choose_machine, told_findings
from torch_history.analysis.markdown import escape
from torch_history.analysis.series import History, Series, history
from torch_history.analysis.steps import Step, of_history
from torch_history.analysis.verdicts import Change, compare_history
from torch_history.explaining.finding import EXPLAINABLE
from torch_history.measuring.session import load_suite
from torch_history.releases.axis import Axis
from torch_history.store import causes
from torch_history.store.causes import Evidence
from torch_history.store.launches import read_environment, read_on_axis

from .page import write_into

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "generated" / "causes.md"
COMMAND = "python -m tools.explain_largest --write"
LANE = "release-py3.11"
OTHER_LANE = "release-py3.9"
"""Where a cause found by hand is looked for if no change of the first lane has it."""
LARGEST = 25

NOT_THERE = "not there on that machine"

SIGNALLED = 128
"""Exit codes above this one mean that somebody stopped the command."""


@dataclass(frozen=True)
class Row:
    """A change to be explained, from `old` to `new` by `ratio`, with its evidence and the machine's folder that has it."""

    series: Series
    old: str
    new: str
    ratio: float | None
    evidence: tuple[str, Evidence] | None = None

    @property
    def pair(self) -> tuple[str, str]:
        return self.old, self.new

    @property
    def words(self) -> str:
        return self.series.words


def largest(steps: Iterable[Step]) -> list[Row]:
    """The largest change of each variant and metric that can be explained, the largest first."""
    found: dict[tuple[str, ...], Row] = {}
    for step in sorted(steps, key=_size, reverse=True):
        series = step.series
        if _size(step) and series.metric in EXPLAINABLE:
            row = Row(series, step.old, step.new, step.ratio)
            found.setdefault((series.question, series.metric, *series.parameters[:1]), row)
    return list(found.values())[:LARGEST]


def found_by_hand(lanes: Iterable[History], axis: Axis) -> list[tuple[Cause, Row | None]]:
    """Each cause that was found by hand, with the largest change to its release that it explains, in the first lane that has
    one; None where no lane has."""
    lanes = list(lanes)
    return [(cause, next(filter(None, (_explained(cause, lane, axis) for lane in lanes)), None)) for cause in FOUND]


def _explained(cause: Cause, lane: History, axis: Axis) -> Row | None:
    measured = sorted({tag for releases in lane.values() for tag in releases}, key=axis.position)
    new = f"v{cause.release}"
    if new not in measured[1:]:
        return None
    old = measured[measured.index(new) - 1]
    fitting = [change for change in compare_history(lane, old, new) if _explains(cause, change) and _size(change)]
    most = max(fitting, key=_size, default=None)
    return Row(most.series, old, new, most.ratio) if most else None


def _explains(cause: Cause, change: Change) -> bool:
    series = change.series
    variant, size = (*(each.strip("'") for each in series.parameters), "", "")[:2]
    return (
        (cause.question, cause.verdict) == (series.question, change.verdict.words)
        and variant in cause.variants
        and series.metric in cause.metrics
        and cause.size in size
        and series.metric in EXPLAINABLE
    )


def _size(change: Step | Change) -> float:
    return abs(math.log(change.ratio)) if change.ratio and change.ratio > 0 else 0.0


def with_evidence(rows: Iterable[Row], results: Path) -> list[Row]:
    """The rows with what is stored of them: a cause before anything else, where several machines have some. Where times
    scattered too much nothing was looked for."""
    stored: dict[tuple[Series, str, str], tuple[str, Evidence]] = {}
    for folder in sorted(path.parent for path in results.glob(f"*/{causes.FOLDER}")):
        for one in causes.read(results, folder.name):
            if one.verdict == "INCONCLUSIVE":
                continue
            key = Series(one.environment, one.benchmark, one.parameters), one.old, one.new
            if key not in stored or (one.verdict in FOUND_ON and stored[key][1].verdict not in FOUND_ON):
                stored[key] = folder.name, one
    return [replace(row, evidence=stored.get((row.series, *row.pair))) for row in rows]


def in_order(rows: Iterable[Row]) -> list[Row]:
    """The rows by pair, pairs that serve most rows first."""
    of_pair: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        of_pair[row.pair].append(row)
    return [row for pair in sorted(of_pair.values(), key=len, reverse=True) for row in pair]


def explain(rows: Sequence[Row], most: int, minutes: float) -> None:
    """Explains those that have no evidence, one after another. What is stored stays where this is interrupted."""
    ends = time.monotonic() + 60 * minutes
    left = [row for row in in_order(rows) if not row.evidence][:most]
    for number, row in enumerate(left, start=1):
        if time.monotonic() >= ends:
            print(f"The time is over: {len(left) - number + 1} are left.", file=sys.stderr)
            break
        print(f"{number} of {len(left)}: {row.words}, {' to '.join(row.pair)}", file=sys.stderr)
        lane = ["--lane", row.series.environment.removeprefix("release-py")]
        command = [str(Path(sys.executable).with_name("torch-history")), "explain", *row.pair, row.words, *lane]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        if code:
            print(f"It ended with exit code {code}.", file=sys.stderr, flush=True)
        if code > SIGNALLED:
            break


def table(rows: Sequence[Row]) -> str:
    """What is known of the largest changes, by pair."""
    lines = ["| change | from, to | factor | verdict |", "|---|---|---:|---|"]
    for row in in_order(rows):
        said = _first(row.evidence[1]) if row.evidence else "not looked for yet"
        lines.append(f"| {row.words} | {', '.join(row.pair)} | {row.ratio:.3g} | {escape(said)} |")
    done = [row.evidence[1] for row in rows if row.evidence]
    there = [one for one in done if one.verdict != "NOT THERE"]
    found = [one for one in there if one.verdict in FOUND_ON]
    on = ", ".join(sorted({row.evidence[0] for row in rows if row.evidence}))
    said = f"Of the {len(rows)} largest changes {len(done)} were looked for, on {on}. {len(there)} of these were there"
    lines += ["", f"{said}, and {len(found)} have a cause or a part of one."]
    return "\n".join(lines)


def _first(one: Evidence) -> str:
    """The verdict, and the first of its evidence; `results/` has the rest."""
    return f"{one.verdict}: {one.words.partition(';')[0]}"


def table_by_hand(found: Sequence[tuple[Cause, Row | None]]) -> str:
    """Which causes found by hand the command finds again: it names a cause or a part for the largest change of the row."""
    lines = [
        "| found by hand | in | looked for in | the command's verdict | found again |",
        "|---|---|---|---|---|",
    ]
    counted: Counter[str] = Counter()
    for cause, row in found:
        one = row.evidence[1] if row and row.evidence else None
        verdict, is_again = _again(row, one)
        counted[is_again] += 1
        other = f", {row.series.environment}" if row and row.series.environment != LANE else ""
        where = f"{row.words}, {' to '.join(row.pair)}{other}" if row else ""
        lines.append(f"| {cause.words} | v{cause.release} | {where} | {escape(verdict)} | {is_again} |")
    there = counted["yes"] + counted["no"]
    looked = there + counted[NOT_THERE]
    said = f"Of {len(found)} causes {looked} were looked for. {there} of these were there on the machine that looked,"
    lines += ["", f"{said} and {counted['yes']} of them were found again."]
    return "\n".join(lines)


def kind_of(because: str) -> str:
    """How the cause of a change is known, by its words."""
    if because.startswith("cause unknown"):
        return "UNKNOWN: looked into, and not found"
    if " of the difference" in because:
        return (
            "PART, by `torch-history explain`" if because.startswith("in part") else "CAUSE, by `torch-history explain`"
        )
    if any(fusion in because for fusion in FUSIONS):
        return "fused groups were counted"
    if any(cause.words in because for cause in FOUND):
        return "found by hand"
    return "a number that moved with it" if " went from " in because else "unexplained: nobody looked into it"


def shares(lanes: Iterable[tuple[Sequence[Step], History]], results: Path, machine: str) -> str:
    """Of all changes of times that are told of the history, how the cause is known."""
    tally: Counter[str] = Counter()
    for steps, found in lanes:
        told = told_findings(steps, found, partial(read_environment, results, machine), evidence(results, machine))
        tally.update(kind_of(row.because) for each in told for row in each.finding.rows if row.series.varies)
    lines = ["| how the cause is known | changes | share |", "|---|---:|---:|"]
    lines += [f"| {kind} | {count:,} | {count / tally.total():.0%} |" for kind, count in tally.most_common()]
    return "\n".join(lines)


def _again(row: Row | None, one: Evidence | None) -> tuple[str, str]:
    if row is None:
        return "no time or count on a CPU changed there", "cannot be looked for"
    if one is None:
        return "", "not looked for yet"
    if one.verdict == "NOT THERE":
        return "", NOT_THERE
    return _first(one), "yes" if one.verdict in FOUND_ON else "no"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="explain those that have no evidence")
    parser.add_argument("--most", type=int, default=LARGEST, help="series to explain")
    parser.add_argument("--minutes", type=float, default=120, help="after which none is begun")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args()
    conf, axis = load_suite(ROOT)
    results = Path(conf.results_dir)
    machine = choose_machine(results, None, "")
    launches = list(read_on_axis(results, machine, axis))
    lanes = [history(launch for launch in launches if launch.environment == name) for name in (LANE, OTHER_LANE)]
    steps = [of_history(lane, axis) for lane in lanes]
    rows, by_hand = largest(steps[0]), found_by_hand(lanes, axis)
    if asked.run:
        wanted = with_evidence([*rows, *(row for _, row in by_hand if row)], results)
        explain(list({(row.series, row.pair): row for row in wanted}.values()), asked.most, asked.minutes)
    hand = [(cause, with_evidence([row], results)[0] if row else None) for cause, row in by_hand]
    text = "\n\n".join(
        [
            "## The largest changes",
            table(with_evidence(rows, results)),
            "## Causes found by hand",
            table_by_hand(hand),
            "## All changes of times",
            shares(zip(steps, lanes, strict=True), results, machine),
        ]
    )
    print(text)
    if asked.write:
        write_into(PAGE, COMMAND, f"{text}\n")


if __name__ == "__main__":
    main()
