"""How long does one release's whole recorder session take, and does it count what results/ holds? Nothing there is changed.

    python -m tools.bench_recorder 2.15.0                            every question, as tools.count_history asks them
    python -m tools.bench_recorder 2.15.0 --question intersection    only this one
    python -m tools.bench_recorder 2.15.0 --only product             only cases whose variant or size contains this word

Prints seconds of the clock, seconds of processors (user and system) and the load, and each number that differs from the last
committed one. Seconds of processors are nearly the same on a busy machine, those of the clock are not. Exit code 3 where a
number differs. The release is installed first, and removed with `torch-history prune`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from contract.request import Request
from torch_history.measuring import session as sessions
from torch_history.measuring.locks import alone
from torch_history.measuring.machine import decided, describe
from torch_history.measuring.machine_records import use
from torch_history.measuring.plan import Plan
from torch_history.measuring.recorded import RecorderEnvironment
from torch_history.measuring.session import Session, load_suite
from torch_history.store.launches import Launch, read_launches
from torch_history.system.scratch import temporary_files

from .count_history import MEMORY, OTHERS, ROOT, lanes_of

Answers = dict[tuple[str, ...], Any]
"""Benchmark and parameters -> the number, or the reason for having none."""


def answers(launches: list[Launch], only: str) -> Answers:
    """The last answer to each case whose variant or size contains `only`."""
    return {
        (launch.benchmark, *case.parameters): case.number if case.number is not None else case.reason
        for launch in sorted(launches, key=lambda launch: launch.started_at)
        for case in launch.cases
        if any(only in word for word in case.parameters)
    }


def differences(now: Answers, stored: Answers) -> list[str]:
    """A line for each of the cases counted `now` that is not stored, or stored with another answer."""
    missing = "nothing"
    return [
        f"{' '.join(case)}: {now[case]} now, {stored.get(case, missing)} stored"
        for case in sorted(now)
        if now[case] != stored.get(case, missing)
    ]


def main() -> None:
    """Prints what the module's text says."""
    asked = _asked()
    suite = load_suite(ROOT)
    release = suite[1].find(asked.release)
    lane = next(lane for lane, of in lanes_of(suite[1]) if of == release)
    request = decided(Request(device="recorder", card=asked.card))
    machine = describe(request)["machine"]
    use(describe(request))
    stored = [
        launch
        for launch in read_launches(ROOT / "results", machine)
        if (launch.release, launch.environment) == (release.tag, f"release-py{lane}")
    ]
    if asked.beside:
        sessions.most_beside = lambda: asked.beside
    environment = RecorderEnvironment(suite[0], lane, request.card)
    environment.install_project(suite[0], None, release.tag)
    before, began = os.times(), time.monotonic()
    found = measured(plans(release.tag, environment.name, asked, stored), environment, request, suite)
    seconds, after = time.monotonic() - began, os.times()
    user, system = after.children_user - before.children_user, after.children_system - before.children_system
    print(f"{release.tag} on {machine}: {seconds:.0f} s, of processors {user:.0f} s user and {system:.0f} s system")
    print(f"load {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} processors")
    now = answers(found, asked.only)
    differing = differences(now, answers(stored, asked.only))
    print(f"{len(now)} answers, {len(differing)} differ from those in results/", *differing, sep="\n")
    sys.exit(3 if differing or not now else 0)


def plans(tag: str, environment: str, asked: argparse.Namespace, stored: list[Launch]) -> list[Plan]:
    """The sessions of a release, as tools.count_history has them, of what is asked."""
    cases = tuple(sorted({case[1:] for case in answers(stored, asked.only)})) if asked.only else ()
    found = []
    for questions, sizes in ((MEMORY, ("small", "paper")), (OTHERS, ("small",))):
        if named := "|".join(name for name in questions if asked.question in ("", name)):
            found.append(Plan((tag,), environment, named, sizes, 1, only="counts", cases=cases))
    return found


def measured(plans: list[Plan], environment: RecorderEnvironment, request: Request, suite: Any) -> list[Launch]:
    """What sessions of these plans find, each begun anew; their results are in a folder that is removed."""
    conf, axis = suite
    with temporary_files(), alone(Path(conf.env_dir)), tempfile.TemporaryDirectory() as folder:
        conf.results_dir = str(Path(folder, "results"))
        for plan in plans:
            session = Session(conf, axis, plan, environment, folder=Path(folder, "sessions"), request=request)
            session.measure(Console(stderr=True))
        return list(read_launches(Path(conf.results_dir), describe(request)["machine"]))


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("release")
    parser.add_argument("--question", default="", choices=(*MEMORY, *OTHERS))
    parser.add_argument("--only", default="", help="only cases whose variant or size contains this word")
    parser.add_argument("--card", default="")
    parser.add_argument(
        "--beside", type=int, default=0, help="interpreters at the same time, instead of the usual number"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
