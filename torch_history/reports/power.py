"""What a person meets in a machine's history, in tables: which changes its verdicts find, how often intervals hold what its
lanes differ by, what a lane denies, and which aims for that are missed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..analysis import power
from ..analysis.calibration import IN_SINGLE, LEAST_HELD, MOST_FALSE, NOMINAL, per_cent
from ..analysis.markdown import escape
from ..analysis.power import ALL, LaneEvidence, Shares
from ..analysis.replication import LANES
from ..analysis.series import History
from ..releases.axis import Axis

LEAST_ALONE = {0.05: 0.21, 0.1: 0.83}
LEAST_HELD_OF_QUESTION = 0.85
LEAST_HELD_FAR = 0.92
MOST_DENIED = 0.058
"""What is aimed at besides LEAST_HELD of neighbours and MOST_FALSE: shares of lone changes that are found, by size, of
intervals that hold what two lanes differ by, and of changes that the other lane denies."""

NEAR, DISTANT = "neighbours", "far apart"

HELD = f"{NOMINAL:.0%} intervals hold the lanes' difference"

ALONE = (
    "**One change alone.** A change is planted into one time while nothing else changes, in each pair of patch releases of "
    "which nothing else is reported. The table shows the share that is reported in its direction. What a process does only "
    f"once gets {IN_SINGLE} times the change. With two lanes the last column shows how often {NOMINAL:.0%} intervals hold "
    "their difference between neighbours. Releases whose wheels are other builds are excluded."
)

TOGETHER = (
    f"**Changes of many times at once.** They are planted into {' or '.join(f'{share:.0%}' for share in power.SHARES)} of "
    "the times of a question, slower and faster, in patch releases of which nothing is reported. Many changes are easier to "
    "find than one. Two columns show what is reported and false: among the times without a change, and in patch releases "
    "with the same code as the release before."
)

INTERVALS = (
    f"**Intervals.** How often {NOMINAL:.0%} intervals hold the difference of two lanes: between neighbours, and between "
    f"releases that are at least {power.FAR} releases apart. The wheels of *one binary* hold the same machine code."
)

DENIALS = (
    "**Denials.** Of the changes that one lane reports and the other decides, the share for which the other lane says SAME "
    "or the opposite."
)

VERDICTS = "**Verdicts on neighbours.** Their shares in each lane."


@dataclass(frozen=True)
class Aim:
    """What is aimed at, and the shares that were reached, by where."""

    words: str
    limit: float
    reached: Mapping[str, float]
    is_least: bool = True

    @property
    def missed(self) -> bool:
        return any(share < self.limit if self.is_least else share > self.limit for share in self.reached.values())

    @property
    def row(self) -> str:
        bound = f"{'at least' if self.is_least else 'at most'} {100 * self.limit:g} %"
        reached = ", ".join(
            f"{per_cent(share)}{where and f' in {escape(where)}'}" for where, share in self.reached.items()
        )
        return f"| {self.words} | {bound} | {reached} | {'**missed**' if self.missed else 'reached'} |"


def of_lanes(lanes: Sequence[LaneEvidence]) -> list[str]:
    """By question, which lone changes each lane finds, and how often intervals hold what lanes differ by, from evidence on
    neighbours; nothing where no patch releases were measured."""
    found = _alone(lanes)
    return [ALONE, "", *_table(found), ""] if found.counts else []


def of_history(found: History, axis: Axis) -> list[str]:
    """All tables of one machine, after the aims; nothing where no patch releases were measured."""
    lanes = sorted({series.environment for series in found if series.environment.startswith(LANES)})
    near = [power.lane_evidence(found, lane, power.neighbours(found, lane, axis)) for lane in lanes]
    alone, held, denied, verdicts = _alone(near), _held(found, near), Shares(), Shares()
    if not alone.counts:
        return []
    together = {of.environment: Shares() for of in near}
    for of in near:
        power.planted_together(of, together[of.environment])
        power.verdicts(of, verdicts)
    for pair in itertools.combinations(near, 2):
        power.denials(power.both(*pair), denied)
    lines = [*_aims(alone, together, held, denied), ALONE, "", *_table(alone), ""]
    lines += [TOGETHER, ""]
    for lane, of_lane in together.items():
        lines += [f"In {escape(lane)}:", "", *_table(of_lane), ""]
    for words, shares in ((INTERVALS, held), (DENIALS, denied), (VERDICTS, verdicts)):
        lines += [words, "", *_table(shares), ""] if shares.counts else []
    return lines


def _alone(lanes: Sequence[LaneEvidence]) -> Shares:
    found = Shares()
    for lane in lanes:
        power.planted_alone(lane, found, f", {lane.environment}")
    for pair in itertools.combinations(lanes, 2) if found.counts else ():
        power.coverage(power.both(*pair), found, HELD)
    return found


def _held(found: History, near: Sequence[LaneEvidence]) -> Shares:
    held = Shares()
    distant = [power.lane_evidence(found, lane.environment, power.far(lane.pairs)) for lane in near]
    for words, lanes in ((NEAR, near), (DISTANT, distant)):
        for pair in itertools.combinations(lanes, 2):
            power.coverage(power.both(*pair), held, words)
            power.one_binary(power.both(*pair), held, f"{words}, one binary")
    return held


def _aims(alone: Shares, together: Mapping[str, Shares], held: Shares, denied: Shares) -> list[str]:
    """Those for steady times, as far as there are any."""
    questions = [question for question in held.questions if question != ALL]
    lowest = min(questions, key=lambda question: held.share(question, NEAR), default="")
    sizes = [(f"{size:+.0%}", least) for size, least in LEAST_ALONE.items()]
    of_lanes = [
        (f"{size} alone: found", least, {lane: alone.share(ALL, f"{size}, {lane}") for lane in together})
        for size, least in sizes
    ]
    quiet = {lane: of.share(ALL, power.FALSE_IN_QUIET) for lane, of in together.items()}
    aims = [
        *(Aim(*each) for each in of_lanes),
        Aim("nothing new: reported", MOST_FALSE, quiet, is_least=False),
        Aim("neighbours: intervals hold the difference", LEAST_HELD, {"": held.share(ALL, NEAR)}),
        Aim("neighbours, the lowest question", LEAST_HELD_OF_QUESTION, {lowest: held.share(lowest, NEAR)}),
        Aim("far apart: intervals hold the difference", LEAST_HELD_FAR, {"": held.share(ALL, DISTANT)}),
        Aim("changes that the other lane denies", MOST_DENIED, {"": denied.share(ALL, power.DENIED)}, is_least=False),
    ]
    rows = [aim.row for aim in aims if not any(map(math.isnan, aim.reached.values()))]
    return ["| steady times | aim | reached | |", "|---|---|---|---|", *rows, ""] if ALL in alone.questions else []


def _table(found: Shares) -> list[str]:
    """A row for each question, a column for each thing that is counted."""
    columns = list(dict.fromkeys(what for _, what in found.counts))
    lines = [f"| question | {' | '.join(map(escape, columns))} |", "|---" + "|---:" * len(columns) + "|"]
    for question in found.questions:
        counts = [(found.share(question, what), found.counts.get((question, what), (0, 0))[1]) for what in columns]
        cells = [f"{per_cent(share)} of {of:,}" if of else "" for share, of in counts]
        lines.append(f"| {escape(question)} | {' | '.join(cells)} |")
    return lines
