"""How long does a command of torch-history take to start and to answer? Ratios of processor time, measured in one run.

`make bench-start` prints them; `--write` writes docs/generated/start.md. A command is compared with `python -c pass` or with
reading all launches by `json` alone, in turn with it. The ratio is the median over the turns: the machine's clock changes by
a third within minutes, and two runs that follow one another share it.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "generated" / "start.md"
TITLE = "# What commands take to start and to answer"
LEAD = (
    "`python -m tools.bench_start --write` writes this page. Seconds are processor time, the median of several runs. Each "
    "command ran in turn with what it is compared with, and the ratio is the median of the turns' ratios."
)

NOTHING = (sys.executable, "-c", "pass")
READING = (
    sys.executable,
    "-c",
    "import glob, json\nfor path in glob.glob('results/*/*.jsonl'):\n    with open(path) as file:\n"
    "        for line in file:\n            json.loads(line)",
)


@dataclass(frozen=True)
class Aim:
    """A command of torch-history and the most that it may take, in times of what `against` takes."""

    arguments: tuple[str, ...]
    against: tuple[str, ...]
    most: float
    runs: int

    @property
    def words(self) -> str:
        return " ".join(("torch-history", *self.arguments))


AIMS = (
    Aim(("--help",), NOTHING, 6, 15),
    Aim(("run", "--help"), NOTHING, 6, 15),
    Aim(("compare", "2.15.0"), NOTHING, 6, 15),
    Aim(("nonsense",), NOTHING, 6, 15),
    Aim(("compare", "2.3.1", "2.15.0", "--question", "batching"), READING, 3, 9),
    Aim(("compare", "2.3.1", "2.15.0"), READING, 3, 9),
    Aim(("regressions",), READING, 8, 9),
)
"""Help and wrong usage are held against an interpreter that does nothing, what reads results against reading them once."""


def main() -> None:
    """Prints a table of the aims; exit code 1 where one is missed."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/generated/start.md")
    asked = parser.parse_args()
    rows = ["| command | seconds | against | seconds | ratio | at most |", "|---|---:|---|---:|---:|---:|"]
    missed = 0
    for aim in AIMS:
        turns = _turns(aim)
        taken, other = (statistics.median(seconds) for seconds in zip(*turns, strict=True))
        ratio = statistics.median(command / against for command, against in turns)
        missed += ratio > aim.most
        against = "`python -c pass`" if aim.against is NOTHING else "reading the results by `json`"
        rows.append(
            f"| `{aim.words}` | {taken:.3f} | {against} | {other:.3f} | {ratio:.1f} | {aim.most:g} |"
            + (" missed" if ratio > aim.most else "")
        )
        print(rows[-1], flush=True)
    if asked.write:
        PAGE.write_text("\n\n".join([TITLE, LEAD, "\n".join(rows)]) + "\n", encoding="utf-8")
    sys.exit(1 if missed else 0)


def _turns(aim: Aim) -> list[tuple[float, float]]:
    """Of each turn, seconds of processor time of the command and of what it is compared with."""
    command = (str(Path(sys.executable).with_name("torch-history")), *aim.arguments)
    for each in (command, aim.against):
        _seconds(each)  # compiles what has no bytecode yet
    return [(_seconds(command), _seconds(aim.against)) for _ in range(aim.runs)]


def _seconds(command: tuple[str, ...]) -> float:
    """Processor time of one process and of what it waited for."""
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


if __name__ == "__main__":
    main()
