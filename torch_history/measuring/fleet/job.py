"""What runs on a node: `python -m torch_history.cli.fleets FLEET NUMBER`, whose last words are kept."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...system.errors import UserError
from ...system.signals import received, stop_on_signals
from .attempts import FINISHED, OPEN, Job, Order

MOST_REQUEUES = 20


def main(measure: Callable[[Order, tuple[str, ...], Path], None]) -> None:
    """Has `measure` measure what is missing of a job. Ends with exit code 1 and a sentence where it cannot be measured."""
    stop_on_signals()
    signal.signal(signal.SIGUSR1, _requeue)
    fleet, number = Path(sys.argv[1]), int(sys.argv[2])
    try:
        order, job = Order.load(fleet), Job(fleet, number)
        if job.state != OPEN:
            return
        attempt = job.begin()
        measure(order, order.jobs[number], attempt)
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
