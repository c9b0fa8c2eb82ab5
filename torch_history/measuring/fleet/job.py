"""What runs on a node: `python -m torch_history.measuring.fleet.job FLEET NUMBER`, whose last words are kept."""

import os
import platform
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...system.errors import UserError
from ...system.signals import received, stop_on_signals
from .attempts import FINISHED, OPEN, RESULTS, Job, Order

MOST_REQUEUES = 20


def main(measure: Callable[[Order, tuple[str, ...], Path], None] | None = None) -> None:
    """Measures what is missing of a job. Ends with exit code 1 and a sentence where it cannot be measured."""
    stop_on_signals()
    signal.signal(signal.SIGUSR1, _requeue)
    fleet, number = Path(sys.argv[1]), int(sys.argv[2])
    try:
        order, job = Order.load(fleet), Job(fleet, number)
        if job.state != OPEN:
            return
        attempt = job.begin()
        (measure or run_session)(order, order.jobs[number], attempt)
        (attempt / FINISHED).touch()
        job.close(attempt)
    except UserError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(128 + received())


def _requeue(*_: Any) -> None:
    """Slurm ends a job that is requeued, and starts it again; after MOST_REQUEUES it is left to its limit."""
    if int(os.environ.get("SLURM_RESTART_COUNT") or 0) < MOST_REQUEUES:
        subprocess.run(["scontrol", "requeue", os.environ["SLURM_JOB_ID"]], check=False)


def run_session(order: Order, releases: tuple[str, ...], attempt: Path) -> None:
    """Runs a session into the folder of `attempt`; times have a folder for each node. Raises UserError."""
    from rich.console import Console

    from ...releases.environments import ReleaseEnvironment, cache
    from ...system.locks import alone
    from ...system.scratch import temporary_files
    from ..machine import asked, decided, describe
    from ..machine_records import use
    from ..plan import Plan, anchored
    from ..recording import RecordedResults
    from ..session import Session, load_suite
    from ..subjects import RecorderEnvironment

    if order.offline:
        # What the login node installed lies beside its environments, also where a node has its own.
        os.environ.update({"UV_OFFLINE": "1", "UV_CACHE_DIR": str(cache(Path(order.env)))})
    conf, axis = load_suite(Path(order.root))
    conf.results_dir, conf.env_dir = str(attempt / RESULTS), order.scratch or order.env
    request = asked()
    request = decided(replace(request, device=order.device or request.device))
    record, node = describe(request), os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    if order.only != "counts":
        record["machine"] += f"-on-{node}"
    use(record)
    RecordedResults.node = {"node": node, "job": os.environ.get("SLURM_JOB_ID", ""), "kernel": platform.release()}
    environment: Any = ReleaseEnvironment(conf, order.lane, {}, {})
    if request.device == "recorder":
        environment = RecorderEnvironment(conf, order.lane, request.card)
    measured = anchored(releases, order.anchor or None)
    plan = Plan(
        releases=measured,
        environment=environment.name,
        questions="|".join(order.questions) or r"\w+",
        sizes=order.sizes or request.sizes or (("paper",) if request.device == "cuda" else ("small",)),
        launches=order.launches,
        budget=order.budget or None,
        only=order.only,
        anchor=order.anchor if len(measured) > len(releases) else "",
    )
    # Bound to some processors of its node, a job with one thread is not disturbed by what keeps the others busy.
    shares = request.device == "cpu" and request.threads == 1 and len(os.sched_getaffinity(0)) < (os.cpu_count() or 1)
    with temporary_files(), alone(environment.root, shared=True):
        session = Session(conf, axis, plan, environment, folder=attempt / "sessions", shares=shares, request=request)
        session.measure(Console(soft_wrap=True))


if __name__ == "__main__":
    main()
