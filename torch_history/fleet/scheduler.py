"""How are jobs handed to an executor of submitit, and what does it say of them? Slurm is asked by squeue and scontrol, which
answer without accounting; of processes on this machine the system knows.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..errors import UserError
from .work import Work

NAMED = "torch-history"
"""What names of our jobs begin with; the fleet and the number of the submission follow."""

OVER = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "TIMEOUT",
)
"""States of Slurm's in which a job has ended for good: where it requeues one, it calls that PENDING again."""

OWN_FAULT = ("FAILED", "OUT_OF_MEMORY", "TIMEOUT", "DEADLINE")
"""Those of them that a job brings upon itself, rather than a node, an administrator or a job of more weight."""

HELD = ("launch failed requeued held", "launch_failed_requeued_held", "JobHoldMaxRequeue")
"""Reasons for which Slurm itself keeps a job that it requeued from starting again until somebody releases it."""

SIGNAL_SECONDS = 60
"""Before a time limit Slurm sends the job a signal so many seconds ahead, on which submitit requeues it."""


COMMANDS = ("sbatch", "srun", "squeue", "sinfo", "scontrol", "scancel")
"""Of Slurm's, which submitit or this module calls."""


class Unreachable(Exception):
    """The scheduler does not answer now; what it runs goes on, and it may answer later."""


@dataclass(frozen=True)
class Seen:
    """A job as the scheduler sees it: its `id`, the `submission` and the place in it that it came from, its `state` in
    Slurm's words, the `reason` for which it waits, the `node` it runs on, and the time that is `left`."""

    id: str
    submission: int
    place: int
    state: str
    reason: str = ""
    node: str = ""
    left: str = ""

    @property
    def over(self) -> bool:
        return self.state.split()[0] in OVER

    @property
    def held(self) -> bool:
        return not self.over and any(words.lower() in self.reason.lower() for words in HELD)


@dataclass(frozen=True)
class Resources:
    """What a job asks of the scheduler; what is empty or None is left to its defaults. `nodes`: how many jobs may run at a
    time. `minutes`: the time limit of one job. `more`: further options of sbatch by name."""

    nodes: int = 1
    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    gres: str = ""
    cpus: int | None = None
    memory: str = ""
    exclusive: bool = False
    minutes: int = 60
    more: Mapping[str, str] = field(default_factory=dict)

    def of_sbatch(self, bound: Mapping[str, str]) -> dict[str, Any]:
        """These as submitit's parameters for Slurm; `bound` are the options that say on which nodes a job may run."""
        named = {
            "slurm_partition": self.partition,
            "slurm_account": self.account,
            "slurm_qos": self.qos,
            "slurm_constraint": self.constraint,
            "slurm_gres": self.gres,
            "slurm_mem": self.memory,
            "slurm_exclusive": self.exclusive,
        }
        given: dict[str, Any] = {name: value for name, value in named.items() if value}
        if self.cpus:
            given["slurm_cpus_per_task"] = self.cpus
        more = {"requeue": True, **bound, **self.more}
        return {**given, "slurm_array_parallelism": self.nodes, "slurm_additional_parameters": more}


def _refuse_lines(options: Mapping[str, Any]) -> None:
    """Each option becomes a line of the script that sbatch is given, where what follows a line break is run as a command.
    Raises UserError where an option has one, or another character that cannot be printed."""
    for name, value in options.items():
        if not f"{name}{value}".isprintable():
            raise UserError(
                f"Slurm's option {name.removeprefix('slurm_')!r} is {str(value)!r}, which holds a line break or another "
                "character that cannot be printed. Nothing was submitted: give it without that."
            )


class Scheduler(Protocol):
    """What the head asks of an executor."""

    queues: bool
    """Whether more may be submitted than run at a time."""

    def submit(self, fleet: Path, submission: int, numbers: Sequence[int], nodes: Sequence[str] = ()) -> list[str]:
        """Hands over jobs, which only `nodes` may run where any are named; returns their ids. Raises Unreachable, or
        UserError where they are refused."""

    def seen(self, fleet: Path) -> list[Seen]:
        """What it knows of this fleet's jobs, ended ones for a while too. Raises Unreachable."""

    def release(self, ids: Iterable[str]) -> None:
        """Lets held jobs start again. Raises Unreachable."""

    def cancel(self, ids: Iterable[str]) -> None:
        """Ends jobs. Raises Unreachable."""


def scheduler(name: str, resources: Resources, work: type[Work] = Work) -> Scheduler:
    """By the name that submitit has for the executor. Raises UserError where it cannot be used here."""
    try:
        import submitit  # noqa: F401
    except ImportError as error:
        raise UserError(
            "A fleet needs the package submitit: install torch-history with its extra, torch-history[fleet]."
        ) from error
    if name == "slurm":
        _require_slurm()
        return Slurm(resources, work)
    return Here(name, resources, work)


def _require_slurm() -> None:
    """Raises UserError where a command of Slurm's is missing."""
    if missing := [name for name in COMMANDS if not shutil.which(name)]:
        raise UserError(
            f"There is no {' and no '.join(missing)} on this machine, so it cannot submit to Slurm. Run this on a login "
            "node of the cluster, or use --executor local, which runs the jobs here."
        )


class Slurm:
    """A cluster. Names of jobs say which fleet and submission they are of, so that nothing is lost where the head is killed
    right after it has submitted."""

    queues = True

    def __init__(self, resources: Resources, work: type[Work]) -> None:
        self._resources, self._work = resources, work

    def submit(self, fleet: Path, submission: int, numbers: Sequence[int], nodes: Sequence[str] = ()) -> list[str]:
        import submitit
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        options = self._resources.of_sbatch(self._bound(nodes))
        _refuse_lines({"output": fleet, **options, **options["slurm_additional_parameters"]})
        executor = submitit.AutoExecutor(folder=fleet / "log" / "%j", cluster="slurm")
        executor.update_parameters(
            name=f"{NAMED}-{fleet.name}-{submission}",
            timeout_min=self._resources.minutes,
            slurm_signal_delay_s=SIGNAL_SECONDS,
            **options,
        )
        try:
            return [job.job_id for job in executor.submit_array([self._work(str(fleet), number) for number in numbers])]
        except (FailedJobError, FailedSubmissionError, subprocess.CalledProcessError) as error:
            words = str(getattr(error, "stderr", "") or error).strip()
            if _transient(words):
                raise Unreachable(words) from error
            raise UserError(
                f"Slurm refused the jobs: {words.splitlines()[-1] if words else error}. Change its options."
            ) from error

    def _bound(self, nodes: Sequence[str]) -> dict[str, str]:
        """The options of sbatch for a job that any one of `nodes` may run: it has none of that meaning for more than one,
        so the others of the partition are excluded."""
        if len(nodes) == 1:
            return {"nodelist": nodes[0]}
        others = [node for node in _nodes(self._resources.partition) if node not in nodes] if nodes else []
        return {"exclude": ",".join(others)} if others else {}

    def seen(self, fleet: Path) -> list[Seen]:
        fields = "%F|%K|%A|%j|%T|%r|%N|%L"
        text = _ask(
            "squeue", "--noheader", "--array", "--states=all", f"--user={getpass.getuser()}", f"--format={fields}"
        )
        prefix = f"{NAMED}-{fleet.name}-"
        found = []
        for line in text.splitlines():
            job, index, _, name, state, reason, node, left = line.strip().split("|", 7)
            submission = name.removeprefix(prefix)
            if not name.startswith(prefix) or not submission.isdecimal():
                continue
            place = int(index) if index.isdecimal() else 0
            named = f"{job}_{index}" if index.isdecimal() else job
            found.append(Seen(named, int(submission), place, state, reason, node, left))
        return found

    def release(self, ids: Iterable[str]) -> None:
        for job in ids:
            _ask("scontrol", "release", job)

    def cancel(self, ids: Iterable[str]) -> None:
        if named := list(ids):
            _ask("scancel", *named)


def nodes_of(partition: str) -> list[str]:
    """The nodes that a partition has, or the default one where none is named. Raises UserError where Slurm does not tell."""
    _require_slurm()
    try:
        return _nodes(partition)
    except Unreachable as error:
        raise UserError(f"The scheduler does not answer ({error}). Name the nodes with --node.") from error


def _nodes(partition: str) -> list[str]:
    """`nodes_of`. Raises Unreachable."""
    said = _ask("sinfo", "--noheader", "--Node", "--format=%N|%P", *([f"--partition={partition}"] if partition else []))
    rows = [line.strip().split("|") for line in said.splitlines() if "|" in line]
    return list(dict.fromkeys(node for node, of in rows if partition or of.endswith("*")))


def _ask(*command: str) -> str:
    """What a command of Slurm's prints. Raises Unreachable where the controller does not answer, UserError otherwise."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired as error:
        raise Unreachable(f"{command[0]} did not answer within two minutes") from error
    if answer.returncode:
        words = answer.stderr.strip() or f"exit code {answer.returncode}"
        if _transient(words):
            raise Unreachable(words)
        raise UserError(f"`{' '.join(command)}` failed: {words}")
    return answer.stdout


def _transient(words: str) -> bool:
    """Whether what Slurm said means that its controller is away for a while."""
    known = (
        "Unable to contact",
        "Connection refused",
        "Connection reset",
        "is not connected",
        "Broken pipe",
        "timed out",
        "in standby",
        "temporarily",
        "Zero Bytes",
    )
    return any(part.lower() in words.lower() for part in known)


class Here:
    """Processes on this machine: submitit's `local`, and `debug`, which runs each job within the head."""

    queues = False

    def __init__(self, name: str, resources: Resources, work: type[Work]) -> None:
        self._name, self._resources, self._work = name, resources, work
        self._running: dict[str, Any] = {}

    def submit(self, fleet: Path, submission: int, numbers: Sequence[int], nodes: Sequence[str] = ()) -> list[str]:
        import submitit

        executor = submitit.AutoExecutor(folder=fleet / "log" / "%j", cluster=self._name)
        executor.update_parameters(timeout_min=self._resources.minutes)
        ids = []
        for place, number in enumerate(numbers):
            job = executor.submit(self._work(str(fleet), number))
            if self._name == "debug":
                job.exception()  # runs it; what goes wrong is kept in the job's folder, as it would be anywhere
                continue
            ids.append(job.job_id)
            self._running[job.job_id] = job
            _note(fleet, submission, place, job.job_id)
        return ids

    def seen(self, fleet: Path) -> list[Seen]:
        for job in self._running.values():
            job.done()  # asks the system, so that one that has ended is no zombie
        found = []
        for path in sorted((fleet / "processes").glob("*-*")):
            submission, place = map(int, path.name.split("-"))
            process = path.read_text(encoding="utf-8")
            state = "RUNNING" if _alive(process, fleet) else "FAILED"  # which counts only where the job is not done
            found.append(Seen(process, submission, place, state, node=os.uname().nodename))
        return found

    def release(self, ids: Iterable[str]) -> None:
        """Nothing is ever held here."""

    def cancel(self, ids: Iterable[str]) -> None:
        for process in ids:
            os.kill(int(process), signal.SIGTERM)


def _note(fleet: Path, submission: int, place: int, process: str) -> None:
    """Keeps the process of a job, so that a head that is started again finds it."""
    path = fleet / "processes" / f"{submission}-{place}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(process, encoding="utf-8")


def _alive(process: str, fleet: Path) -> bool:
    """Whether a process of this fleet still runs: its number may be another's by now."""
    try:
        words = Path("/proc", process, "cmdline").read_bytes()
        state = Path("/proc", process, "stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return fleet.name.encode() in words and state != "Z"
