"""Does our clock agree with PyTorch's own, `torch.utils.benchmark.Timer`? `make bench-clock` prints a table of ratios.

Both time the same calls in the same process, in turn. A launch's ratio is the median over its pairs of neighbouring
readings, and a row shows the median over launches. --write puts what is printed into docs/generated/clock.md.
"""

from __future__ import annotations

import argparse
import json
import operator
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from asv.environment import EnvironmentUnavailable
from asv.repo import get_repo
from asv.util import ProcessError, UserError
from rich.progress import track

from torch_history.analysis.verdicts import human
from torch_history.measuring.machine import describe
from torch_history.measuring.session import load_suite
from torch_history.releases.environments import ReleaseEnvironment

from .page import write_into

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "generated" / "clock.md"

LOWEST, HIGHEST = 0.97, 1.03
"""Ratios ours / theirs that count as agreement."""

NOT_JUDGED = "collector off in Timer"
"""The end of a call's name where the two clocks differ by intent."""

Launch = dict[str, tuple[list[float], list[float]]]
"""Call -> seconds by our clock and by the Timer, a number per reading: what `tools/clock_launch.py` prints."""


def launched(names: list[str], lane: str, launches: int) -> dict[str, list[Launch]]:
    """Release -> its launches, each a fresh process; every other round goes backwards."""
    conf, axis = load_suite(ROOT)
    repo = get_repo(conf)
    tags = [axis.find(name).tag for name in names]
    environment = ReleaseEnvironment(conf, lane, {}, {})
    found: dict[str, list[Launch]] = {tag: [] for tag in tags}
    turns = [tag for turn in range(launches) for tag in tags[:: -1 if turn % 2 else 1]]
    for tag in track(turns, description="launches"):
        environment.install_project(conf, repo, tag)
        answer = environment.run(["-m", "tools.clock_launch"], cwd=str(ROOT), display_error=False)
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
            ours, theirs = (
                human(statistics.median(statistics.median(of[call][clock]) for of in launches), "seconds")
                for clock in (0, 1)
            )
            each = ratios(launches, call)
            numbers = f"{statistics.median(each):.3f} | {min(each):.3f} to {max(each):.3f}"
            yield f"| {tag} | {call} | {ours} | {theirs} | {numbers} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="*", default=["2.0.1", "2.15.0"])
    parser.add_argument("--lane", default="3.11", help="Python of the environments")
    parser.add_argument("--launches", type=int, default=5, help="fresh processes per release")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args()
    if asked.launches < 1:
        parser.error("the comparison needs at least one launch")
    try:
        found = launched(asked.releases, asked.lane, asked.launches)
    except ProcessError as error:
        sys.exit(f"Nothing was compared: {(error.stderr.strip() or str(error)).splitlines()[-1]}")
    except (UserError, EnvironmentUnavailable) as error:
        sys.exit(str(error))
    judged = {
        f"{call} on {tag}": statistics.median(ratios(launches, call))
        for tag, launches in found.items()
        for call in launches[0]
        if not call.endswith(NOT_JUDGED)
    }
    apart = [f"{name} ({ratio:.3f})" for name, ratio in judged.items() if not LOWEST <= ratio <= HIGHEST]
    verdict = f"{len(judged) - len(apart)} of {len(judged)} ratios lie in {LOWEST} to {HIGHEST}"
    verdict += f"; outside are {', '.join(apart)}." if apart else "."
    text = "\n".join(table(found)) + "\n\n"
    text += f"{asked.launches} launches of each release on {describe()['machine']}. {verdict}\n"
    print(text)
    if asked.write:
        write_into(PAGE, "python -m tools.bench_clock --write", text)
    sys.exit(bool(apart))


if __name__ == "__main__":
    main()
