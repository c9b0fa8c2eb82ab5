"""Measures how often the verdicts are right on this machine: one release under two names, and changes planted in it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
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
    questions: Sequence[str],
    launches: int,
    budget: float,
    again: bool,
    console: Console,
    request: Request | None = None,
    itself: bool = False,
    within: float | None = None,
) -> Path:
    """Measures both sessions, times and counts, or goes on with them; returns the file that keeps their launches. Of a
    release against `itself` there are only times, and nothing is planted. `within`: seconds in which that ends."""
    conf = copy.copy(conf)
    kept = Path(conf.results_dir)
    scratch = Path(conf.env_dir, FOLDER)
    conf.results_dir = str(scratch / "results")
    sessions = []
    for only, planted in [("times", ITSELF)] if itself else [("counts", COUNTS), ("times", TIMES)]:
        plan = Plan(
            releases=tuple(planted),
            environment=environment.name,
            questions="|".join(questions) or r"\w+",
            sizes=("paper",) if request and request.device == "cuda" else ("small",),
            launches=1 if only == "counts" else launches,
            budget=budget if only == "times" and not within else None,
            only=only,
            arms={name: Arm(release.tag, what) for name, what in planted.items()},
            within=within,
        )
        session = Session(conf, axis, plan, environment, again, folder=scratch / "sessions", request=request)
        if not session.finished:
            console.print(f"Calibrating {only} with {release.tag} on {session.machine.machine}.")
            session.measure(console)
        sessions.append(session)
    found = sorted(
        (launch for session in sessions for launch in session.launches()), key=lambda launch: launch.started_at
    )
    path = kept / sessions[0].machine.machine / FOLDER / f"{release.tag}-{environment.name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(launch.to_json() + "\n" for launch in found))
    return path
