"""Which claims hold, on which device and release, and what to do? For the README, each question's page, and one of all."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..analysis import bases
from ..analysis.bases import BASES, Row
from ..analysis.claims import (
    CLAIMS,
    PARTLY,
    UNKNOWN,
    UNMEASURED,
    Answer,
    Claim,
    Turn,
    answers,
    in_turn,
    setting_of,
    turns,
)
from ..analysis.markdown import code, escape
from ..analysis.series import History, history
from ..analysis.steps import Step, of_history
from ..releases.axis import Axis
from ..store.launches import Launch
from ..store.machines import record_of

HEADER = """\
# The claims, release by release

`torch-history document` writes this page from `results/`. Each question's page in [docs/questions](../questions) says how
its answer is decided.
"""

COUNTED = (
    "[Counted](../recorder.md) means: recorded without a GPU, no kernel ran. "
    "[Every count and refusal](../generated/recorded.md)."
)


@dataclass(frozen=True)
class Lane:
    """One machine in one environment: its `releases`, oldest first, what was measured, what it answers, question -> release
    -> answer, and the same as `bases` reads it."""

    machine: str
    environment: str
    releases: list[str]
    found: History
    answers: Mapping[str, Mapping[str, Answer]]
    told: bases.Answered

    @property
    def asked(self) -> dict[str, Claim]:
        return {question: claim for question, claim in CLAIMS.items() if question in self.told.words}


def lanes(results: Path, launches_of: Mapping[str, Iterable[Launch]], axis: Axis) -> list[Lane]:
    """Every lane that measured a release of the axis."""
    found = []
    for machine, launches in launches_of.items():
        launches = list(launches)
        for environment in sorted({launch.environment for launch in launches}):
            numbers = history(launch for launch in launches if launch.environment == environment)
            answered = answers(numbers)
            releases = sorted({tag for of in answered.values() for tag in of if tag in axis}, key=axis.position)
            words = {question: [(tag, of[tag].word) for tag in releases] for question, of in answered.items()}
            if releases:
                told = bases.answered_by(record_of(results / machine), environment, words, numbers, answered)
                found.append(Lane(machine, environment, releases, numbers, answered, told))
    return found


def table(rows: Sequence[Row], to_questions: str) -> str:
    """Each claim on all bases, and what to do on each device. `to_questions` leads to the folder of the questions' pages."""
    heads = ["question", "claim", *BASES.values(), "advice for a CPU", "advice for a GPU"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in rows:
        cells = [*(row.cells[device].words for device in BASES), row.cpu, row.gpu]
        link = f"[{row.question}]({to_questions}/{row.question}.md)"
        lines.append(f"| {link} | {row.words} | {' | '.join(map(_escaped, cells))} |")
    return "\n".join(lines)


def of_questions(rows: Sequence[Row], of_lanes: Sequence[Lane]) -> dict[str, str]:
    """Question -> what its page says: its claim on all bases, what to do, and the newest numbers of every lane of a GPU."""
    said = {}
    for row in rows:
        heads = [f"| {' | '.join(BASES.values())} |", "|---" * len(BASES) + "|"]
        cells = f"| {' | '.join(_escaped(row.cells[device].words) for device in BASES)} |"
        advice = [f"- Advice for a CPU: {_escaped(row.cpu)}", f"- Advice for a GPU: {_escaped(row.gpu)}"]
        said[row.question] = "\n".join([*heads, cells, "", *advice, "", COUNTED, *_numbers(row.question, of_lanes)])
    return said


def _numbers(question: str, of_lanes: Sequence[Lane]) -> list[str]:
    """A line per sentence: in which lanes of a GPU it is the newest answer, and the sentence."""
    said: dict[str, list[str]] = defaultdict(list)
    for lane in of_lanes:
        if lane.told.setting.device != "cpu" and question in lane.told.words:
            tag, answer = lane.told.newest[question]
            if answer.word != UNMEASURED or answer.beside:
                said[answer.sentence].append(f"{tag} in {code(lane.machine)}, {code(lane.environment)}")
    return ["", *(f"- {'; '.join(where)}: {escape(sentence)}" for sentence, where in said.items())] if said else []


def _escaped(words: str) -> str:
    """`words` as Markdown leaves them as they are, in a cell of a table too; names between backticks stay code."""
    return re.sub(r"&#96;(\w+)&#96;", r"`\1`", escape(words))


Tell = Callable[[list[Step], History, str], Sequence[str]]
"""Steps, what they were found in, and its machine -> a sentence for each step."""


def document(rows: Sequence[Row], of_lanes: Sequence[Lane], axis: Axis, tell: Tell) -> str:
    """docs/generated/answers.md: the claims on all bases, then of each lane each claim release by release, when and why it
    changed, and a sentence for the newest."""
    return "".join(
        [
            HEADER,
            f"\n{table(rows, '../questions')}\n\n{COUNTED}\n" if rows else "",
            *(part for lane in of_lanes for part in _of_lane(lane, axis, tell)),
        ]
    )


def _of_lane(lane: Lane, axis: Axis, tell: Tell) -> list[str]:
    releases, asked = lane.releases, lane.asked
    parts = [f"\n## {escape(lane.machine)}, {escape(lane.environment)}\n\n"]
    if missing := [question for question in CLAIMS if question not in asked]:
        parts.append(f"Not measured: {', '.join(missing)}.\n\n")
    parts.append("| claim | " + " | ".join(release.removeprefix("v") for release in releases) + " |\n")
    parts.append("|---" * (len(releases) + 1) + "|\n")
    for question, claim in asked.items():
        cells = [lane.answers[question][release].word for release in releases]
        parts.append(f"| [{claim.words}](../questions/{question}.md) | " + " | ".join(cells) + " |\n")
    steps = of_history(lane.found, axis)
    happened = list(zip(steps, tell(steps, lane.found, lane.machine), strict=True))
    parts.append("\n### What changed, when and why\n\n")
    for question, claim in asked.items():
        parts += _what_changed(question, claim, [(tag, lane.answers[question][tag]) for tag in releases], happened)
    parts.append(f"\n### On {releases[-1]}, {escape(setting_of(lane.found).words)}\n\n")
    for question, claim in asked.items():
        answer = lane.answers[question][releases[-1]]
        parts.append(f"- **{claim.words}: {answer.word}.** {_escaped(answer.sentence)}\n")
    return parts


def _what_changed(
    question: str, claim: Claim, found: Sequence[tuple[str, Answer]], happened: Sequence[tuple[Step, str]]
) -> list[str]:
    """Lines of one claim: its answers in turn, an inconclusive one, those that hold in part, and why it changed."""
    answered = [(tag, answer.word) for tag, answer in found]
    lines = [f"- **{claim.words}.** {in_turn(answered)}\n"]
    untold = [(tag, answer) for tag, answer in found if answer.word == UNKNOWN]
    lines += [f"  - {tag}, {UNKNOWN}: {_escaped(answer.sentence)}\n" for tag, answer in untold[-1:]]
    lines += [f"  - {tag}, {PARTLY}: {escape(answer.part)}.\n" for tag, answer in found if answer.part]
    return lines + [f"  - {_of_turn(turn)}\n" for turn in turns(question, answered, happened)]


def _of_turn(turn: Turn) -> str:
    return f"{turn.old} → {turn.new}, from *{turn.before}* to *{turn.after}*. {escape(turn.why)}"
