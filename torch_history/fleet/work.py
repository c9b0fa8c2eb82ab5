"""What runs on a node: one session of a fleet, gone on with where the last attempt was stopped.

submitit pickles a `Work` and calls it on the node, where this module is imported from the file system that all nodes share.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from asv.machine import MachineCollection
from rich.console import Console

from contract.request import Request

from ..analysis.agreement import ARMS, STAYS
from ..errors import UserError
from ..measuring.locks import allotted
from ..measuring.machine import asked, describe, of_visible
from ..measuring.machine_records import use
from ..measuring.plan import Arm, Plan, anchored
from ..measuring.recorded import RecorderEnvironment
from ..measuring.recording import RecordedResults
from ..measuring.session import Session, load_suite
from ..releases.environments import ReleaseEnvironment, cache, prune
from ..store.launches import Launch, node_of, read_launches
from ..system.scratch import temporary_files
from ..system.signals import stop_on_signals
from .attempts import Attempt, JobFolder, job_folder
from .followups import Followup, followups, judged
from .order import Order

JOB_VARIABLES = ("SLURM_JOB_ID", "SUBMITIT_LOCAL_JOB_ID", "SUBMITIT_DEBUG_JOB_ID")
OF_A_GPU = ("name", "serial", "uuid", "driver_version", "clocks.max.sm", "clocks.max.mem")
"""What nvidia-smi is asked of the GPU that is measured."""

KIND = ("device", "cpu", "num_cpu", "gpu", "driver", "threads", "card")
"""What the records of two nodes of one kind have in common."""

SLOWER = "slower"
"""What measure/planted.py puts into the cases of a node that is slowed on purpose."""


@dataclass(frozen=True)
class Work:
    """Job `number` of the fleet in a folder."""

    fleet: str
    number: int

    def __call__(self) -> str:
        """Measures what is missing of the job; says what it did. Raises UserError where it cannot be measured."""
        stop_on_signals()
        order, job, more = Order.load(Path(self.fleet)), job_folder(Path(self.fleet), self.number), self.more
        if job.done:
            return "Nothing is left to do."
        attempt = job.begin({**place(), "began_at": time.time()})
        try:
            self.measure(order, more.releases if more else order.jobs[self.number], attempt)
        except Exception as error:
            words = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            attempt.fail(words or type(error).__name__)
            raise
        counts = job.finish(attempt)
        return "Done." if counts else "Another attempt was done first, so this one does not count."

    @property
    def more(self) -> Followup | None:
        """What it measures further rounds of; None of a job that was asked for."""
        return followups(Path(self.fleet)).get(self.number)

    def measure(self, order: Order, releases: tuple[str, ...], attempt: Attempt) -> None:
        """Runs the session of `releases` into the folder of `attempt`. Raises UserError where that cannot be done."""
        more = self.more
        measure(order, releases, attempt, more, judged(Path(self.fleet), more.of, more.machine) if more else ())

    def checkpoint(self) -> Any:
        """What submitit runs when the job is requeued: the same again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def place() -> dict[str, str]:
    """The node and the job that this process belongs to, as the scheduler names them."""
    job = next((os.environ[name] for name in JOB_VARIABLES if name in os.environ), "")
    return {"node": os.environ.get("SLURMD_NODENAME") or socket.gethostname(), "job": job}


def about_node(device: str) -> dict[str, Any]:
    """What each launch says of where it ran: node, job, kernel and, of a GPU, what the driver's own tool tells of it."""
    facts: dict[str, Any] = {**place(), "kernel": platform.release()}
    if device == "cuda":
        command = ["nvidia-smi", f"--query-gpu={','.join(OF_A_GPU)}", "--format=csv,noheader,nounits", *of_visible()]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
        except (OSError, subprocess.SubprocessError) as error:
            raise UserError(
                f"A GPU is to be measured, and nvidia-smi does not describe it on {facts['node']}: {error}."
            ) from error
        values = [value.strip() for value in answer.splitlines()[0].split(",")]
        facts["gpu"] = dict(zip(OF_A_GPU, values, strict=True))
    return facts


def measure(
    order: Order,
    releases: tuple[str, ...],
    attempt: Attempt,
    more: Followup | None = None,
    judged: Sequence[Launch] = (),
) -> None:
    """Runs the session of `releases` into the folder of `attempt`; of `more` rounds, it measures what is undecided in
    those that were `judged` and its own. Raises UserError where that cannot be done."""
    if order.offline:
        # What the login node prefetched lies beside its environments, also where a node has its own.
        os.environ.update({"UV_OFFLINE": "1", "UV_CACHE_DIR": str(cache(Path(order.env)))})
    conf, axis = load_suite(Path(order.root))
    conf.results_dir, conf.env_dir = str(attempt.results), order.scratch or order.env
    env_dir = Path(conf.env_dir)
    request = _request(order)
    record = describe(request)
    node = about_node(record["device"])
    if order.nodes:
        node["kind"] = {name: record[name] for name in KIND if name in record}
    ours = _folder_of(order, record, node)
    _record_under(ours, attempt.folder / "machines.json")
    environment: Any = (
        RecorderEnvironment(conf, order.lane, request.card)
        if record["device"] == "recorder"
        else ReleaseEnvironment(conf, order.lane, {}, {})
    )
    sizes = order.sizes or request.sizes or (("paper",) if record["device"] == "cuda" else ("small",))
    measured = releases if more else anchored(releases, order.anchor or None)
    plan = _plan(order, measured, environment.name, sizes, node["node"])
    plan = replace(plan, anchor=order.anchor if len(measured) > len(releases) else "")
    earlier: Sequence[Launch] = ()
    sessions = attempt.sessions
    if order.only != "counts":
        # Rounds compare releases on one node. Where another one began the job, a session of this node measures the rest.
        sessions = sessions / node["node"]
        plan = _of_the_rest(plan, attempt, ours["machine"], node["node"], more)
        earlier = [*judged, *read_launches(attempt.results, more.machine)] if more else ()
    RecordedResults.node = node
    with temporary_files(), allotted(env_dir), _using(env_dir, measured):
        session = Session(
            conf, axis, plan, environment, folder=sessions, shares=_is_bound(record), request=request, earlier=earlier
        )
        session.measure(Console(soft_wrap=True))
    if order.removes and order.scratch:
        prune(env_dir, lambda tag: tag in measured and not _in_use(env_dir, tag))


def _plan(order: Order, releases: tuple[str, ...], environment: str, sizes: tuple[str, ...], node: str) -> Plan:
    """What a job measures: of a check the release under two names, slowed on purpose where that was asked for."""
    planted = SLOWER if order.slowed == node else ""
    arms = {name: Arm(releases[0], planted) for name in ARMS} if order.nodes else {}
    return Plan(
        releases=tuple(arms) or releases,
        environment=environment,
        questions="|".join(order.questions) or r"\w+",
        sizes=sizes,
        launches=order.launches,
        budget=order.budget or None,
        only=order.only,
        arms=arms,
    )


def _is_bound(record: dict[str, str]) -> bool:
    """Whether the scheduler bound this job to some of the node's processors, so that others may keep the rest busy without
    disturbing what one thread measures."""
    one_thread = record["device"] == "cpu" and record.get("threads", "1") == "1"
    return one_thread and len(os.sched_getaffinity(0)) < (os.cpu_count() or 1)


def _of_the_rest(plan: Plan, attempt: Attempt, machine: str, node: str, more: Followup | None) -> Plan:
    """What is left of a job: the rounds that no other node finished, and what earlier attempts did not spend of the budget.
    Raises UserError where `more` rounds belong into another folder than this node's."""
    if more and machine != more.machine:
        raise UserError(
            f"{node} keeps its times in {machine}, and more rounds are wanted in {more.machine}: the node is not as it was "
            "when the fleet began. Check the nodes again, and start a new fleet."
        )
    if budget := more.budget if more else plan.budget:
        before = [one for one in JobFolder(attempt.folder.parents[1]).attempts if one.number < attempt.number]
        plan = replace(plan, budget=max(1.0, budget - sum(one.seconds for one in before)))
    if more:
        return replace(plan, launches=0, only="times")
    return replace(plan, launches=max(1, plan.launches - _rounds_elsewhere(attempt, machine, node)))


def _rounds_elsewhere(attempt: Attempt, machine: str, node: str) -> int:
    """How many rounds of this job other nodes finished into the same folder. The last one of each may be torn."""
    last: dict[str, int] = {}
    for launch in read_launches(attempt.results, machine):
        if node_of(launch) != node:
            last[launch.session] = max(last.get(launch.session, 0), launch.round)
    return sum(round - 1 for round in last.values() if round)


def _request(order: Order) -> Request:
    request = asked()
    request = replace(request, device=order.device or request.device)
    return replace(request, device=describe(request)["device"])


def _folder_of(order: Order, record: dict[str, str], node: dict[str, Any]) -> dict[str, str]:
    """The record under which results are kept. Times of two nodes share a folder only where a check found that the nodes
    agree, and this one is still what was checked; counts are the same on all nodes of a kind."""
    if order.only == "counts":
        return record
    name = node["node"]
    checked = order.shares.get(record["machine"], {}).get(name, {})
    now = {**node, "kind": {of: record[of] for of in KIND if of in record}}
    same = checked and all(checked.get(what) == now.get(what) for what in STAYS)
    return {**record, "machine": f"{record['machine']}-on-{checked['with'] if same else name}"}


def _record_under(record: dict[str, str], collection: Path) -> None:
    """Names this machine to asv, whose list of machines lies in the home folder, which nodes share and would write at the
    same time: each attempt has a list of its own."""
    MachineCollection.get_machine_file_path = staticmethod(lambda: str(collection))
    use(record)


# --- environments on a node's own disk, which several jobs of the node share


def _mark_of(env_dir: Path, tag: str) -> Path:
    return env_dir / ".in-use" / tag


@contextlib.contextmanager
def _using(env_dir: Path, tags: Iterable[str]) -> Iterator[None]:
    """Keeps other jobs of this node from removing the environments of `tags`; the system frees the locks of a dead one."""
    with contextlib.ExitStack() as stack:
        for tag in tags:
            path = _mark_of(env_dir, tag)
            path.parent.mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context(path.open("w")), fcntl.LOCK_SH)
        yield


def _in_use(env_dir: Path, tag: str) -> bool:
    with _mark_of(env_dir, tag).open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
