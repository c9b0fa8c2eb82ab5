"""Does a fleet of real releases find what one machine finds, and is it done when its plan says so?

`python -m tests.fleet_shown --lane 3.9 v1.8.0 v1.8.1 ...` measures one question's counts of these releases on one machine
and then on 1, 2 and 4 nodes of a Slurm of its own, in a copy of the checkout. With `--times` it measures the question's
times on one machine and on 4 nodes, and compares the verdicts. With `--check` nodes measure the first release, the last node
slowed by a tenth, and the program says which agree. The releases have to be installed in env/.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tools.loopback_slurm import Cluster, cluster, missing
from torch_history.analysis.series import Series, Verdict
from torch_history.analysis.verdicts import NOT_MEASURED, compare
from torch_history.fleet.attempts import job_folder
from torch_history.fleet.order import Order
from torch_history.store.launches import Launch, machines_in, read_launches

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = "one-machine"


class Shown:
    """A copy of the checkout beside a cluster, in which fleets measure; `lane` and `releases` are what they measure."""

    def __init__(self, folder: Path, running: Cluster, lane: str, releases: Sequence[str], question: str) -> None:
        self.folder, self.lane, self.releases, self.question = folder, lane, releases, question
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in listed.splitlines():
            if not name.startswith("results/"):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name)
        (folder / "env").mkdir()
        (folder / "results").mkdir()
        for tag in releases:
            (folder / "env" / f"{tag}-py{lane}").symlink_to((ROOT / "env" / f"{tag}-py{lane}").resolve())
        self._variables = {**running.surroundings, "PYTHONPATH": str(folder), "COLUMNS": "200"}

    def command(self, *words: str) -> str:
        """What a command of the program prints. Raises CalledProcessError."""
        command = [sys.executable, "-c", "from torch_history.__main__ import main; main()", *words]
        answer = subprocess.run(command, cwd=self.folder, env=self._variables, capture_output=True, text=True)
        if answer.returncode:
            sys.exit(f"{' '.join(words)} ended with {answer.returncode}:\n{answer.stdout}{answer.stderr}")
        return answer.stdout

    def asked(self, only: str, rounds: int) -> list[str]:
        return [
            "--lane",
            self.lane,
            "--only",
            only,
            "--question",
            self.question,
            "--rounds",
            str(rounds),
            *self.releases,
        ]

    def one_machine(self, only: str, rounds: int) -> Path:
        """Measures everything without a fleet; returns the folder that keeps it. What only the first run builds, such as
        operators in C++, is built before by one that is thrown away: the fleet finds it there."""
        self.command("run", *self.asked("counts", 1))
        for machine in machines_in(self.folder / "results"):
            shutil.rmtree(self.folder / "results" / machine)
        self.command("run", "--again", *self.asked(only, rounds))
        return self.keep(f"{REFERENCE}-{only}")[0]

    def fleet(self, only: str, rounds: int, nodes: int) -> tuple[float, float]:
        """Measures everything on so many nodes: the seconds that were forecast, and those from the first job's start to
        the last one's end. All nodes are this machine, so times are measured by one after the other: two at once would slow
        each other."""
        where = ["--nodes", str(nodes), "--machine", f"{REFERENCE}-{only}"]
        at_once = 1 if only == "times" else len(os.sched_getaffinity(0))
        alone = ["--sbatch", "licenses=alone"] if only == "times" else []
        said = self.command("fleet", "plan", *where, "--processors", str(at_once), *self.asked(only, rounds))
        forecast = re.search(rf"^{nodes} nodes?: done after ([\d.]+) minutes", said, re.MULTILINE)
        run = ["fleet", "run", "--again", "--poll", "1", "--partition", "cpu", *alone]
        self.command(*run, *where, *self.asked(only, rounds))
        newest = max(
            (self.folder / "env" / "fleets").glob("*/order.json"), key=lambda path: path.stat().st_mtime
        ).parent
        jobs = [job_folder(newest, number) for number in range(len(Order.load(newest).jobs))]
        began = min(attempt.began["began_at"] for job in jobs for attempt in job.attempts)
        ended = max((job.folder / "done.json").stat().st_mtime for job in jobs)
        assert forecast, said
        return 60 * float(forecast[1]), ended - began

    def keep(self, name: str) -> list[Path]:
        """Renames what was measured last, so that the next measurement begins with nothing."""
        kept: list[Path] = []
        for machine in machines_in(self.folder / "results"):
            if not machine.startswith((REFERENCE, "fleet-")):
                target = self.folder / "results" / (f"{name}-{machine}" if kept or "on-" in machine else name)
                (self.folder / "results" / machine).rename(target)
                kept.append(target)
        return kept

    def launches(self, folder: Path) -> list[Launch]:
        return [*read_launches(self.folder / "results", folder.name)]


def exact(launches: Sequence[Launch]) -> dict[object, object]:
    """Every count and byte, and why there is none."""
    return {
        (launch.release, launch.benchmark, case.parameters): (case.value, case.unavailable, case.failed)
        for launch in launches
        for case in launch.cases
        if Series(launch.environment, launch.benchmark, case.parameters).is_counted
    }


def show_counts(shown: Shown, most: int) -> bool:
    """Prints whether counts on nodes are those of one machine, and makespans as ratios. Returns whether all are equal."""
    reference = exact(shown.launches(shown.one_machine("counts", 1)))
    first, equal = 0.0, True
    for nodes in (number for number in (1, 2, 4) if number <= most):
        forecast, took = shown.fleet("counts", 1, nodes)
        folders = shown.keep(f"fleet-{nodes}")
        found = exact([launch for folder in folders for launch in shown.launches(folder)])
        first = first or took
        differing = sum(found.get(key) != value for key, value in reference.items()) + len(
            found.keys() - reference.keys()
        )
        equal = equal and not differing
        print(
            f"counts on {nodes} nodes: {len(found)} numbers, {differing} differ from one machine's; took {took:.0f} s, "
            f"{took / first:.2f} of one node's; forecast {forecast:.0f} s, {forecast / took - 1:+.0%}",
            flush=True,
        )
    return equal


def show_times(shown: Shown, nodes: int, rounds: int) -> None:
    """Prints how the verdicts on neighbours, measured on several nodes, compare with those of one machine."""
    reference = shown.launches(shown.one_machine("times", rounds))
    forecast, took = shown.fleet("times", rounds, nodes)
    print(f"times on {nodes} nodes took {took:.0f} s; forecast {forecast:.0f} s, {forecast / took - 1:+.0%}")
    told: Counter[str] = Counter()
    for folder in shown.keep("fleet-times"):
        launches = shown.launches(folder)
        print(
            f"{folder.name}: {sorted({launch.facts['node']['node'] for launch in launches})}, {len(launches)} launches"
        )
        for old, new in itertools.pairwise(shown.releases):
            here = {change.series: change for change in compare(launches, old, new) if change.reason != NOT_MEASURED}
            there = {change.series: change for change in compare(reference, old, new)}
            for series in here.keys() & there.keys():
                told[f"{there[series].verdict.shown} on one machine, {here[series].verdict.shown} on a node"] += 1
    total, against = sum(told.values()), sum(count for words, count in told.items() if contradict(words))
    print("\n".join(f"{count:5} {words}" for words, count in told.most_common()))
    both = sum(count for words, count in told.items() if Verdict.CANT_TELL.shown not in words)
    print(f"{against} of {total} verdicts contradict each other; {both} of them are decided on both sides.")


def show_check(shown: Shown, nodes: Sequence[str], rounds: int) -> None:
    """Prints what the check says of nodes of which the last is slowed on purpose, and where times would then be kept. They
    measure one after the other, as in Shown.fleet."""
    asked = ["--lane", shown.lane, "--question", shown.question, "--rounds", str(rounds), "--partition", "cpu"]
    alone = ["--sbatch", "licenses=alone", "--slow", nodes[-1]]
    print(shown.command("fleet", "check", "--poll", "2", *alone, *asked, shown.releases[0]))


def contradict(words: str) -> bool:
    """Whether two verdicts cannot both be right: of those that tell something, different ones."""
    here, there = (part.partition(" on ")[0] for part in words.split(", "))
    return here != there and Verdict.CANT_TELL.shown not in (here, there)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--lane", default="3.11")
    parser.add_argument("--question", default="batching")
    parser.add_argument("--nodes", type=int, default=4, choices=(1, 2, 3, 4))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    if words := missing():
        print(words, file=sys.stderr)
        return 1
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the beginning, {time.strftime('%Y-%m-%d')}")
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder, cluster(asked.nodes) as running:
        shown = Shown(Path(folder).resolve(), running, asked.lane, asked.releases, asked.question)
        if asked.times:
            show_times(shown, asked.nodes, asked.rounds)
            return 0
        if asked.check:
            show_check(shown, running.names, asked.rounds)
            return 0
        return 0 if show_counts(shown, asked.nodes) else 3


if __name__ == "__main__":
    sys.exit(main())
