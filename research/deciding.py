"""How many comparisons does a minute of measuring decide, and how many of them wrongly? This checkout beside another one.

    make bench-deciding OTHER=../earlier MINUTES=4 LOADS="0 1 4"

Beside each number of busy processes both calibrate for so many minutes, one after the other: the newest release is compared
with itself, and with itself plus 5, 10 or 20 % in half of its times. Each judges by its own rules. OTHER is a clone of
another commit in which `make .venv/ready` was called; without it this checkout is measured alone. Use a clone of this one as
well: its calibrations in `results/` and docs/generated/deciding.md are written again. Besides the minutes that are named,
each takes two to count.
"""

import argparse
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

READ = """
import datetime, json, sys
from pathlib import Path
from torch_history.analysis.calibration import share
from torch_history.analysis.verdicts import compare
from torch_history.store.launches import read_file
ARMS = ("second", "longer")
launches = list(read_file(Path(sys.argv[1])))
timed = {launch.session for launch in launches if launch.release == "longer"}
launches = [launch for launch in launches if launch.session in timed]
began = [datetime.datetime.fromisoformat(launch.started_at).timestamp() for launch in launches]
ended = [start + launch.duration for start, launch in zip(began, launches)]
times = {arm: [of for of in compare(launches, "first", arm) if of.series.varies and of.ratio] for arm in ARMS}
told = [(arm == "longer" and share(of.series), of.verdict.words) for arm in times for of in times[arm]]
print(json.dumps({"minutes": (max(ended) - min(began)) / 60, "told": told}))
"""
"""Run with the Python of a checkout: minutes of its last calibration of times, and of each comparison the share of time that
was planted and the verdict by the checkout's own rules."""

PAGE = Path("docs/generated/deciding.md").absolute()
COLUMNS = ["busy beside", "checkout", "minutes", "decided", "a minute", "false", "+5 %", "+10 %", "+20 %"]

DECIDED = ("SAME", "SLOWER", "FASTER")


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Within, so many processes each keep a processor busy."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def calibrated(checkout: Path, minutes: str, question: str) -> tuple[str, dict[str, Any]]:
    """The machine, and what READ says after a calibration in `checkout`. Raises CalledProcessError."""
    program = ".venv/bin/torch-history"
    offered = subprocess.run(
        [program, "run", "--help"], cwd=checkout, capture_output=True, text=True, check=True
    ).stdout
    asks = ["run", "--calibrate"] if "--calibrate" in offered else ["calibrate"]  # as earlier commits have it
    command = [program, *asks, "--again", "--budget", f"{minutes}m", "--question", question]
    ended = subprocess.run(command, cwd=checkout, stdout=subprocess.DEVNULL, check=False)
    if ended.returncode not in (0, 3):  # 3 says that an aim of the calibration was missed
        raise subprocess.CalledProcessError(ended.returncode, command)
    written = max(checkout.glob("results/*/calibration/*.jsonl"), key=lambda path: path.stat().st_mtime)
    read = [".venv/bin/python", "-c", READ, str(written.absolute())]
    said = subprocess.run(read, cwd=checkout, capture_output=True, check=True).stdout
    return written.parents[1].name, json.loads(said)


def row(load: int, name: str, found: dict[str, Any]) -> list[str]:
    """A line of the table."""
    told: Sequence[tuple[float, str]] = found["told"]

    def of(share: float, words: Sequence[str]) -> str:
        these = [verdict for planted, verdict in told if planted == share]
        return f"{sum(verdict in words for verdict in these)}/{len(these)}"

    decided = sum(words in DECIDED for _, words in told)
    shares = [of(0.0, DECIDED[1:]), *(of(share, ["SLOWER"]) for share in (0.05, 0.1, 0.2))]
    minutes = found["minutes"]
    return [str(load), name, f"{minutes:.1f}", f"{decided}/{len(told)}", f"{decided / minutes:.2f}", *shares]


def commit(checkout: Path) -> str:
    said = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=checkout, capture_output=True, text=True)
    return said.stdout.strip()


def page(lines: Sequence[Sequence[str]], asked: argparse.Namespace, machine: str) -> str:
    """The page with this table in place of one of the same machine, minutes and commits; others stay."""
    lead = (
        "`make bench-deciding` writes this page. The newest release is compared with itself, and with planted time. *False* "
        "counts what was called changed and was not. The last columns count the SLOWER among times that grew so much."
    )
    other = f" and {commit(asked.other)} (other)" if asked.other else ""
    heading = f"{machine}: {asked.minutes} minutes of {asked.question} with {commit(Path())} (this){other}"
    table = [f"|{'|'.join(line)}|" for line in (COLUMNS, ["-:"] * len(COLUMNS), *lines)]
    before = PAGE.read_text(encoding="utf-8").split("\n## ")[1:] if PAGE.exists() else []
    kept = [section for section in before if not section.startswith(heading)]
    sections = sorted([*kept, "\n".join([heading, "", *table, ""])])
    return "\n## ".join([f"# How many comparisons a minute decides\n\n{lead}\n", *sections])


def main() -> None:
    parser = argparse.ArgumentParser(description="How many comparisons does a minute of measuring decide?")
    parser.add_argument("--other", type=Path, help="a clone of another commit")
    parser.add_argument("--minutes", default="4")
    parser.add_argument("--loads", default="0 1 4", help="numbers of busy processes beside it")
    parser.add_argument("--question", default="batching")
    asked = parser.parse_args()
    checkouts = {"other": asked.other, "this": Path()} if asked.other else {"this": Path()}
    lines = []
    print(*COLUMNS, sep=" | ")
    for load in map(int, asked.loads.split()):
        for name, checkout in checkouts.items():
            with busy(load):
                machine, found = calibrated(checkout, asked.minutes, asked.question)
            lines.append(row(load, name, found))
            print(*lines[-1], sep=" | ", flush=True)
            PAGE.write_text(page(lines, asked, machine), encoding="utf-8")


if __name__ == "__main__":
    main()
