"""Does a fleet finish without a hand on it, and with every launch once, while everything around it is killed at random?

`python -m tests.fleet_faults 30` runs the trial on a Slurm of its own and prints what it found. Jobs are played ones, so
that thirty faults hit them within minutes; what is killed, and the scheduler, are real.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tools.loopback_slurm import Cluster, cluster, missing
from torch_history.fleet.attempts import job_folder
from torch_history.fleet.collecting import collect
from torch_history.fleet.head import Head, only_head
from torch_history.fleet.order import Order
from torch_history.fleet.scheduler import Resources, scheduler
from torch_history.store.launches import Launch, read_launches
from torch_history.system.files import read_lines

from .fleet_stand_ins import CASES, FULL, LEDGER, MACHINE, PAUSE, PlayedWork, an_order

JOBS = 8
RELEASES_OF_A_JOB = 2
AGAIN_AFTER = 4.0
"""Seconds after which what was killed is started again, as a service manager does, or a node is resumed."""


def head(fleet: Path, nodes: int) -> int:
    """A head that looks after a fleet of played jobs until its end."""
    resources = Resources(nodes=nodes, partition="cpu", minutes=10)
    with only_head(fleet):
        done = Head(
            fleet, scheduler("slurm", resources, PlayedWork), nodes, lambda words: print(words, flush=True)
        ).watch(1)
    return 0 if done else 3


@dataclass
class Outcome:
    """What a trial found: `faults` by their names, launches in the results that are there `twice`, cases that are `missing`,
    launches that were written and are `lost`, and how many were `superseded`: written by a process after another one had
    taken over its job. `again`: how often jobs were begun beyond once."""

    faults: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    twice: int = 0
    missing: int = 0
    lost: int = 0
    superseded: int = 0
    again: int = 0
    seconds: float = 0.0
    finished: bool = False


class Trial:
    """A fleet of played jobs on a cluster, and the faults that hit it."""

    def __init__(self, running: Cluster, folder: Path, seed: int, cases: int, pause: float) -> None:
        self.cluster, self.folder, self.draw = running, folder, random.Random(seed)
        self.fleet = folder / "env" / "fleets" / f"trial{seed}"
        self.cases = cases
        tags = [f"v2.{number}.0" for number in range(JOBS * RELEASES_OF_A_JOB)]
        jobs = [tuple(tags[first : first + RELEASES_OF_A_JOB]) for first in range(0, len(tags), RELEASES_OF_A_JOB)]
        an_order(folder, *jobs).save(self.fleet)
        self._variables = {**running.surroundings, CASES: str(cases), PAUSE: str(pause)}
        self._head: subprocess.Popen[bytes] | None = None
        self._later: list[tuple[float, Callable[[], None]]] = []

    def run(self, faults: int, patience: float) -> Outcome:
        """Hits the fleet so often, each time while it has work, and waits for its end."""
        outcome = Outcome()
        began = time.monotonic()
        self._start_head()
        hits = [self._hit_job, self._hit_slurmd, self._hit_head, self._hit_controller, self._drain, self._break]
        hits += [self._scancel, self._requeue, self._limit, self._fill]
        drawn: list[Callable[[], str]] = []
        while time.monotonic() - began < patience:
            self._do_what_is_due()
            assert self._head is not None
            if self._head.poll() is not None:
                break
            if sum(outcome.faults.values()) < faults and self._running():
                drawn = drawn or self.draw.sample(hits, len(hits))
                if name := drawn.pop()():
                    outcome.faults[name] += 1
                time.sleep(self.draw.uniform(0.5, 2.0))
            time.sleep(0.3)
        outcome.finished = self._head is not None and self._head.poll() == 0
        self._stop_head()
        outcome.seconds = time.monotonic() - began
        self._judge(outcome)
        return outcome

    # --- the faults; each says its name, or nothing where it found nothing to hit

    def _hit_job(self) -> str:
        processes = self.cluster.processes("submitit.core._submit")
        if not processes:
            return ""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.draw.choice(processes), signal.SIGKILL)
        return "process of a job killed"

    def _hit_slurmd(self) -> str:
        name = self.draw.choice(self.cluster.names)
        if not self.cluster.runs(name):
            return ""
        self.cluster.kill(name)
        self._after(lambda: self.cluster.start(name))
        return "slurmd killed"

    def _hit_head(self) -> str:
        self._stop_head()
        self._start_head()
        return "head killed"

    def _hit_controller(self) -> str:
        if not self.cluster.runs("slurmctld"):
            return ""
        self.cluster.kill("slurmctld")

        def again() -> None:
            # A controller that was killed may start what still runs again, and drain the nodes that refuse.
            self.cluster.start("slurmctld")
            for name in self.cluster.names:
                self._after(lambda name=name: self._resume(name))  # type: ignore[misc]

        self._after(again)
        return "controller killed and restarted"

    def _drain(self) -> str:
        name = self.draw.choice(self.cluster.names)
        if not self._ask("scontrol", "update", f"nodename={name}", "state=drain", "reason=trial"):
            return ""
        self._after(lambda: self._resume(name))
        return "node drained"

    def _break(self) -> str:
        name = self.draw.choice(self.cluster.names)
        self.cluster.break_node(name, broken=True)

        def repair() -> None:
            self.cluster.break_node(name, broken=False)
            self._resume(name)

        self._after(repair)
        return "prolog failed, job held"

    def _scancel(self) -> str:
        return (
            "job cancelled by somebody"
            if (jobs := self._running()) and self._ask("scancel", self.draw.choice(jobs))
            else ""
        )

    def _requeue(self) -> str:
        named = "job preempted and requeued"
        return named if (jobs := self._running()) and self._ask("scontrol", "requeue", self.draw.choice(jobs)) else ""

    def _limit(self) -> str:
        jobs = self._running()
        limited = jobs and self._ask("scontrol", "update", f"jobid={self.draw.choice(jobs)}", "TimeLimit=1")
        return "time limit reached" if limited else ""

    def _fill(self) -> str:
        (self.fleet / FULL).touch()
        time.sleep(0.6)
        (self.fleet / FULL).unlink()
        return "disk full"

    def _resume(self, name: str) -> None:
        if not self._ask("scontrol", "update", f"nodename={name}", "state=resume"):
            self._after(lambda: self._resume(name))

    # --- what the trial needs

    def _running(self) -> list[str]:
        try:
            return self.cluster.ask("squeue", "--noheader", "--array", "--states=running", "--format=%i").split()
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return []

    def _ask(self, *command: str) -> bool:
        """Whether a command of Slurm's worked: what it is about may have ended meanwhile."""
        try:
            self.cluster.ask(*command)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return False
        return True

    def _after(self, do: Callable[[], None]) -> None:
        self._later.append((time.monotonic() + AGAIN_AFTER, do))

    def _do_what_is_due(self) -> None:
        due = [do for at, do in self._later if at <= time.monotonic()]
        self._later = [(at, do) for at, do in self._later if at > time.monotonic()]
        for do in due:
            do()

    def _start_head(self) -> None:
        command = [sys.executable, "-m", "tests.fleet_faults", "--head", str(self.fleet), str(len(self.cluster.names))]
        with (self.folder / "head.log").open("ab") as log:
            self._head = subprocess.Popen(command, env=self._variables, stdout=log, stderr=log)

    def _stop_head(self) -> None:
        if self._head is not None:
            self._head.kill()
            self._head.wait()

    def _judge(self, outcome: Outcome) -> None:
        """Collects twice, and counts."""
        order = Order.load(self.fleet)
        jobs = [job_folder(self.fleet, number) for number in range(JOBS)]
        for _ in range(2):
            collect([attempt for job in jobs if (attempt := job.counted)], Path(order.results), Path(order.env))
        launches = [*read_launches(Path(order.results), MACHINE)]
        found = Counter((launch.release, case.parameters) for launch in launches for case in launch.cases)
        outcome.cases = JOBS * RELEASES_OF_A_JOB * self.cases
        outcome.missing = outcome.cases - len(found)
        outcome.twice = sum(count - 1 for count in found.values())
        outcome.again = sum(len(job.attempts) - 1 for job in jobs)
        names = {launch.launch for launch in launches}
        for launch in read_lines(self.fleet / LEDGER, Launch.from_json):
            if launch.launch not in names:
                number = next(i for i, of_job in enumerate(order.jobs) if launch.release in of_job)
                later = [attempt for attempt in jobs[number].attempts if attempt.number > launch.facts["attempt"]]
                taken_over = any(attempt.began["began_at"] < launch.facts["at"] + 0.5 for attempt in later)
                outcome.superseded += taken_over
                outcome.lost += not taken_over


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", type=int, nargs="?", default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--head", nargs=2, metavar=("FLEET", "NODES"))
    asked = parser.parse_args()
    if asked.head:
        return head(Path(asked.head[0]), int(asked.head[1]))
    if words := missing():
        print(words, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder, cluster(4) as running:
        trial = Trial(running, Path(folder), asked.seed, asked.cases, 0.5)
        outcome = trial.run(asked.faults, 1200)
        print(Path(folder, "head.log").read_text())
        print(outcome)
    return 0 if outcome.finished and not (outcome.lost or outcome.twice or outcome.missing) else 3


if __name__ == "__main__":
    sys.exit(main())
