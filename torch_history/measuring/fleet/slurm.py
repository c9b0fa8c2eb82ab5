"""Where do jobs run? Through Slurm's own commands. A job's number is its index in an array of the fleet's name."""

import getpass
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...system.errors import UserError
from .attempts import Job

JOB = "torch_history.cli.fleets"
"""The module that is run on a node."""


class Slurm:
    """A cluster; `options` are sbatch's by name. Each method raises UserError where a command of Slurm's fails."""

    seconds = 15.0
    """Between two looks."""

    def __init__(self, fleet: Path, options: Mapping[str, str]) -> None:
        """Raises UserError where Slurm is not there, or an option cannot be printed."""
        self._fleet, self._options = fleet, options
        self._name = f"torch-history-{fleet.name}"
        if not shutil.which("sbatch"):
            raise UserError(
                "There is no sbatch on this machine, so it cannot submit to Slurm. Run this on a login node of the cluster, "
                "or measure here with `torch-history run`."
            )
        for name, value in options.items():
            if not f"{name}{value}".isprintable():
                raise UserError(
                    f"Slurm's option {name!r} is {value!r}, which holds a line break or another character that cannot be "
                    "printed. Nothing was submitted. Remove that character."
                )

    def submit(self, numbers: Sequence[int], at_once: int) -> None:
        """Hands over jobs, of which so many may run at a time. Slurm signals one a minute before its limit."""
        job = shlex.join([sys.executable, "-m", JOB, str(self._fleet)])
        Job(self._fleet, 0).log.parent.mkdir(exist_ok=True)
        _ask(
            "sbatch",
            "--requeue",
            "--signal=B:USR1@60",
            *(f"--{name}={value}" if value else f"--{name}" for name, value in self._options.items()),
            f"--job-name={self._name}",  # the last one counts, and jobs of another name would be submitted again
            f"--array={','.join(map(str, numbers))}%{at_once}",
            f"--output={self._fleet}/log/%a",
            "--open-mode=append",
            "--wrap",
            f'exec {job} "$SLURM_ARRAY_TASK_ID"',
        )

    def live(self) -> dict[int, str]:
        """Number of each job that waits or runs -> which of these, in words."""
        user, name = f"--user={getpass.getuser()}", f"--name={self._name}"
        said = _ask("squeue", "--noheader", "--array", user, name, "--format=%K|%T|%N|%r")
        rows = [line.strip().split("|", 3) for line in said.splitlines()]
        return {
            int(number): f"queued ({reason})" if state == "PENDING" else f"{state.lower()} on {node}"
            for number, state, node, reason in rows
        }

    def cancel(self) -> None:
        """Ends all jobs."""
        _ask("scancel", f"--user={getpass.getuser()}", f"--name={self._name}")


def _ask(*command: str) -> str:
    """What a command of Slurm's prints."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    except subprocess.SubprocessError as error:
        said = str(getattr(error, "stderr", "") or error).strip()
        raise UserError(f"{command[0]} failed: {said}. Change the options, or try again when Slurm answers.") from error
