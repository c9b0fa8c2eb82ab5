"""What would differ if the excluded launches counted? Each rule's launches are put back, and neighbours are compared again.

`python -m tools.excluded --write` writes docs/generated/exclusions.md, in about two minutes. It needs the whole git history.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torch_history.analysis import claims
from torch_history.analysis.replication import TOLD
from torch_history.analysis.series import History, Verdict, history
from torch_history.analysis.verdicts import Change, compare_history
from torch_history.cli import suite as suites
from torch_history.releases.axis import Axis
from torch_history.reports.check import EXCLUSIONS
from torch_history.store.launches import Launch, read_on_axis
from torch_history.store.removed import Removal, removals

PAGE = Path("docs/generated/exclusions.md")

MOST_NAMED = 3
"""Comparisons that are named for each rule; the page is not a list of them all."""

HEADER = """\
# What was excluded, and what would differ

`python -m tools.excluded --write` writes this page from `results/` and its git history.
[Notes on the results](../../results/NOTES.md) give the reason of each rule. `torch-history check --history` shows that
nothing else was removed.

For each rule, its launches are put back, and each release that has some is compared with its neighbours again. Launches
of a calibration take part in no verdict. Of a benchmark with several versions, only launches of the current one count.
"""


class Otherwise(NamedTuple):
    """One series between two releases whose verdict is another with the excluded launches."""

    old: str
    new: str
    without: Change
    having: Change

    @property
    def kind(self) -> str:
        return kind(self.without.verdict, self.having.verdict)

    @property
    def size(self) -> float:
        """By how much the two ratios differ, as a logarithm."""
        ratios = self.without.ratio, self.having.ratio
        return abs(math.log((ratios[1] or 1.0) / (ratios[0] or 1.0)))


KINDS = (
    "told as changed, SAME with them",
    "SAME, told as changed with them",
    "opposite",
    "more inconclusive",
    "fewer inconclusive",
)


def kind(without: Verdict, having: Verdict) -> str:
    """Which of KINDS two verdicts on a time are, empty for equal ones and for those that say nothing of a time."""
    if without in TOLD and having in TOLD:
        return "" if without is having else KINDS[2]
    steps = {
        (True, Verdict.SAME): KINDS[0],
        (True, Verdict.CANT_TELL): KINDS[3],
        (False, Verdict.CANT_TELL): KINDS[3] if without is Verdict.SAME else "",
    }
    if without is Verdict.SAME and having in TOLD:
        return KINDS[1]
    if without is Verdict.CANT_TELL and having in (*TOLD, Verdict.SAME):
        return KINDS[4]
    return steps.get((without in TOLD, having), "")


def compared_again(launches: Sequence[Launch], back: Sequence[Launch], axis: Axis) -> Iterator[Otherwise | None]:
    """Each time of neighbours that `back` concerns, in one lane: None where the verdict is the same with `back`."""
    touched = {launch.release for launch in back}
    before, after = (_times(history(of)) for of in (launches, [*launches, *back]))
    tags = sorted({tag for of in before.values() for tag in of}, key=axis.position)
    for old, new in itertools.pairwise(tags):
        if old in touched or new in touched:
            now = {change.series: change for change in compare_history(after, old, new)}
            for change in compare_history(before, old, new):
                if change.confidence is not None or now[change.series].confidence is not None:
                    found = Otherwise(old, new, change, now[change.series])
                    yield found if found.kind else None


def _times(found: History) -> History:
    return found.only(lambda series: series.varies)


def rules(log: Path) -> dict[tuple[str, str, str], str]:
    """Commit, session and benchmark of a group -> its rule."""
    entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return {(one["commit"], one["session"], one["benchmark"]): one["rule"] for one in entries}


def section(rule: str, removed: Sequence[Removal], machines: Mapping[str, Sequence[Launch]], axis: Axis) -> str:
    """What a rule removed, and what would differ."""
    cases = sum(len(one.launch.cases) for one in removed)
    lines = [f"\n## {rule}\n", f"{len(removed):,} launches with {cases:,} cases."]
    lanes: dict[tuple[str, str], list[Launch]] = defaultdict(list)
    for one in removed:
        if not one.calibration and one.now in machines and one.launch.release in axis:
            lanes[one.now, one.launch.environment].append(one.launch)
    found = [
        result
        for (machine, lane), back in sorted(lanes.items())
        for result in compared_again([one for one in machines[machine] if one.environment == lane], back, axis)
    ]
    return "\n".join([*lines, *told(found)]) + "\n"


def told(found: Sequence[Otherwise | None]) -> list[str]:
    """The counts of what differs, and the comparisons that differ most."""
    differing = [one for one in found if one]
    if not found:
        return ["No verdict on a time would use them."]
    if not differing:
        return [f"{len(found):,} times were compared again. No verdict differs."]
    counts = Counter(one.kind for one in differing)
    most = sorted((one for one in differing if one.kind in KINDS[:3]), key=lambda one: -one.size)[:MOST_NAMED]
    return [
        f"{len(found):,} times were compared again. {len(differing):,} verdicts differ:\n",
        *(f"- {name}: {counts[name]:,}" for name in KINDS if counts[name]),
        *(["\nThose that differ most:\n"] if most else []),
        *map(_named, most),
    ]


def _named(one: Otherwise) -> str:
    without, having = (f"{change.verdict.shown} ({change.ratio or math.nan:.2f} times)" for change in one[2:])
    return f"- {one.old} to {one.new}, {one.without.series.words}: without them {without}, with them {having}."


CLAIMS_TOO = """
## The claims with all of it put back

Each claim is answered again, release by release, with every excluded launch of its lane.
"""


def claims_again(removed: Sequence[Removal], machines: Mapping[str, Sequence[Launch]], axis: Axis) -> str:
    """What the answers to the claims would be with all that was removed."""
    lanes: dict[tuple[str, str], list[Launch]] = defaultdict(list)
    for one in removed:
        if not one.calibration and one.now in machines and one.launch.release in axis:
            lanes[one.now, one.launch.environment].append(one.launch)
    asked, differing = 0, []
    for (machine, lane), back in sorted(lanes.items()):
        launches = [one for one in machines[machine] if one.environment == lane]
        without, having = (claims.answers(history(of)) for of in (launches, [*launches, *back]))
        for question, of_release in without.items():
            for release in sorted(of_release, key=axis.position):
                asked += 1
                words = [answered[question][release].word for answered in (without, having)]
                if words[0] != words[1]:
                    differing.append(f"- {lane}, {question}, {release}: without them {words[0]}, with them {words[1]}.")
    told = f"{asked:,} answers were given again. {len(differing) or 'None'} differ{'' if len(differing) > 1 else 's'}"
    return "\n".join([CLAIMS_TOO, f"{told}{':' if differing else '.'}\n", *differing]).rstrip() + "\n"


def page(results: Path, axis: Axis) -> str:
    """The page. Raises NoHistory."""
    rule_of = rules(results / EXCLUSIONS)
    by_rule: dict[str, list[Removal]] = defaultdict(list)
    removed = removals(results)
    for one in removed:
        by_rule[rule_of[one.commit, one.launch.session, one.launch.benchmark]].append(one)
    machines = {one.now for one in removed if (results / one.now).is_dir()}
    launches = {machine: list(read_on_axis(results, machine, axis)) for machine in machines}
    sections = [section(rule, of, launches, axis) for rule, of in sorted(by_rule.items())]
    return "".join([HEADER, *sections, claims_again(removed, launches, axis)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE} instead of printing it")
    asked = parser.parse_args()
    suite = suites.load()
    text = page(suite.results, suite.axis)
    if asked.write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
