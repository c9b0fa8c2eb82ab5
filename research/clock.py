"""Does our clock agree with PyTorch's own, `torch.utils.benchmark.Timer`? `make bench-clock` writes a table of ratios of the
same calls in the same process into docs/generated/clock.md: the median over launches of the median over pairs of
readings."""

import json
import operator
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from asv.repo import get_repo

from tools.pages import write_into
from torch_history.analysis.verdicts import human
from torch_history.measuring.machine import describe
from torch_history.measuring.session import load_suite
from torch_history.releases.environments import ReleaseEnvironment

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "generated" / "clock.md"
COMMAND = "make bench-clock"

RELEASES = ("2.0.1", "2.15.0")
LANE = "3.11"
LAUNCHES = 5
"""Fresh processes of each release."""

LOWEST, HIGHEST = 0.97, 1.03
"""Ratios ours / theirs that count as agreement."""

Launch = dict[str, tuple[list[float], list[float]]]
"""Call -> seconds by our clock and by the Timer, a number per reading: what `research/clock_launch.py` prints."""


def launched() -> dict[str, list[Launch]]:
    """Release -> its launches; every other round goes backwards. Raises what installing and running a release raises."""
    conf, axis = load_suite(ROOT)
    repo, environment = get_repo(conf), ReleaseEnvironment(conf, LANE, {}, {})
    tags = [axis.find(name).tag for name in RELEASES]
    found: dict[str, list[Launch]] = {tag: [] for tag in tags}
    for turn in range(LAUNCHES):
        for tag in tags[:: -1 if turn % 2 else 1]:
            environment.install_project(conf, repo, tag)
            answer = environment.run(["-m", "research.clock_launch"], cwd=str(ROOT), display_error=False)
            found[tag].append(json.loads(answer.splitlines()[-1]))
    return found


def ratios(launches: list[Launch], call: str) -> list[float]:
    """Ours / theirs, a number per launch: readings that are neighbours share what the machine does meanwhile."""
    return [statistics.median(map(operator.truediv, *of[call])) for of in launches]


def table(found: dict[str, list[Launch]]) -> Iterator[str]:
    """Lines of Markdown, a row per release and call."""
    yield "| release | call | ours | Timer | ours / Timer | lowest and highest launch |"
    yield "|---|---|---|---|---|---|"
    for tag, launches in found.items():
        for call in launches[0]:
            by_clock = zip(*(map(statistics.median, of[call]) for of in launches), strict=True)
            ours, theirs = (human(statistics.median(levels), "seconds") for levels in by_clock)
            each = ratios(launches, call)
            numbers = f"{statistics.median(each):.3f} | {min(each):.3f} to {max(each):.3f}"
            yield f"| {tag} | {call} | {ours} | {theirs} | {numbers} |"


def main() -> None:
    """Exit code 1 where a ratio is outside."""
    found = launched()
    judged = [statistics.median(ratios(launches, call)) for launches in found.values() for call in launches[0]]
    within = sum(LOWEST <= ratio <= HIGHEST for ratio in judged)
    said = f"{LAUNCHES} launches of each release on {describe()['machine']}."
    said += f" {within} of {len(judged)} ratios lie in {LOWEST} to {HIGHEST}."
    write_into(PAGE, COMMAND, "\n".join([*table(found), "", said, ""]))
    print(said)
    sys.exit(within < len(judged))


if __name__ == "__main__":
    main()
