"""Measures how often the verdicts are right on this machine: one release under two names, and changes planted in it."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from asv.config import Config
from rich.console import Console

from contract.request import Request

from ..analysis.calibration import COUNTS, FOLDER, ITSELF, TIMES
from ..releases.axis import Axis, Release
from ..system.files import write_atomically
from .plan import Arm, Plan
from .session import Session


def measure(
    conf: Config,
    axis: Axis,
    release: Release,
    environment: Any,
    plan: Plan,
    again: bool,
    console: Console,
    request: Request | None = None,
    itself: bool = False,
) -> Path:
    """Measures both sessions, times and counts, as `plan` says of times, or goes on with them; returns the file that keeps
    their launches. Of a release against `itself` there are only times, and nothing is planted."""
    conf = copy.copy(conf)
    kept = Path(conf.results_dir)
    scratch = Path(conf.env_dir, FOLDER)
    conf.results_dir = str(scratch / "results")
    counts = replace(plan, only="counts", launches=1, budget=None)
    sessions = []
    for kind, planted in [(plan, ITSELF)] if itself else [(counts, COUNTS), (plan, TIMES)]:
        only = kind.only or "times"
        arms = {name: Arm(release.tag, what) for name, what in planted.items()}
        of_kind = replace(kind, only=only, releases=tuple(planted), arms=arms)
        session = Session(conf, axis, of_kind, environment, again, folder=scratch / "sessions", request=request)
        if not session.finished:
            console.print(f"Calibrating {only} with {release.tag} on {session.machine.machine}.")
            session.measure(console)
        sessions.append(session)
    found = sorted((one for session in sessions for one in session.launches()), key=lambda one: one.started_at)
    path = kept / sessions[0].machine.machine / FOLDER / f"{release.tag}-{environment.name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(launch.to_json() + "\n" for launch in found))
    return path
