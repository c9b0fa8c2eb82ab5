"""Which claims hold, on which device and release, and what to do? For the README, each question's page, and one of all."""

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from torch_history.analysis import bases
from torch_history.analysis.bases import BASES, Row
from torch_history.analysis.claims import DECIDED, answers, in_turn
from torch_history.analysis.markdown import escape
from torch_history.analysis.series import History
from torch_history.releases.axis import Axis
from torch_history.store.machines import record_of

HEADER = """\
# The claims, release by release

`make document` writes this page from `results/`. The page of a question says how its answer is decided; when and why answers
changed, and the numbers behind each, are on the page *Claims* of the site. None of the three bases stands in the place of
another: measured on a CPU, *recorded* of CUDA (counted; no kernel ran), and measured on a GPU.

"""

COUNTED = (
    "[Counted](../recorder.md) means: recorded without a GPU, no kernel ran. The numbers of each machine are on the page "
    "*Claims* of the site."
)


def lanes(results: Path, of: Mapping[str, Mapping[str, History]], axis: Axis) -> list[tuple[bases.Answered, list[str]]]:
    """What every lane `of` a machine answers that measured a release of the axis, and these releases, oldest first."""
    found = []
    for machine, of_machine in of.items():
        for environment, numbers in of_machine.items():
            if releases := numbers.tags(axis):
                answered = answers(numbers, releases)
                told = bases.answered_by(record_of(results / machine), environment, numbers, answered)
                found.append((told, releases))
    return found


def table(rows: Sequence[Row], to_questions: str) -> str:
    """Each claim on all bases. `to_questions` leads to the folder of the questions' pages, which say what to do."""
    heads = ["question", "claim", *BASES.values()]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in rows:
        cells = (_escaped(row.cells[device]) for device in BASES)
        link = f"[{row.question}]({to_questions}/{row.question}.md)"
        lines.append(f"| {link} | {row.words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def of_questions(rows: Sequence[Row]) -> dict[str, str]:
    """Question -> what its page says: its claim on all bases, and what to do."""
    said = {}
    for row in rows:
        heads = [f"| {' | '.join(BASES.values())} |", "|---" * len(BASES) + "|"]
        cells = f"| {' | '.join(_escaped(row.cells[device]) for device in BASES)} |"
        advice = [f"- Advice for a CPU: {_escaped(row.cpu)}", f"- Advice for a GPU: {_escaped(row.gpu)}"]
        said[row.question] = "\n".join([*heads, cells, "", *advice, "", COUNTED])
    return said


def _escaped(words: str) -> str:
    """`words` as Markdown leaves them as they are, in a cell of a table too; names between backticks stay code."""
    return re.sub(r"&#96;([\w.]+)&#96;", r"`\1`", escape(words))


def findings(rows: Sequence[Row], axis: Axis) -> str:
    """A line for each of three claims: what was measured last on a CPU and on a GPU."""
    return "\n".join(
        f"- *{row.words}.* CPU: {_last(row.bands['cpu'], axis)} GPU: {_last(row.bands['cuda'], axis)}"
        for row in rows
        if row.question in ("intersection", "batching", "selection")
    )


def _last(band: Mapping[str, str], axis: Axis) -> str:
    """What `band` says last, and since when: `Does not hold from v2.1.0 to v2.15.0.`"""
    decided = sorted((one for one in band.items() if one[1] in DECIDED), key=lambda one: axis.position(one[0]))
    newest_first = itertools.takewhile(lambda one: one[1] == decided[-1][1], reversed(decided))
    return f"{in_turn([*newest_first][::-1])}."
