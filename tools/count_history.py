"""Counts the axis on the recorder: release by release, each installed, counted and removed, so that few lie on the disk.

    python -m tools.count_history                     the default card, all questions
    python -m tools.count_history --card hopper       the questions of memory alone
    python -m tools.count_history --refused cudaIpc   only cases that were refused in words that contain this
    python -m tools.count_history --backward 2026-11-26T16:27 --card hopper --card turing
                                                      only cases with gradients and calls of cuBLAS that were last counted
                                                      before that moment (UTC), on both cards
    python -m tools.count_history 2.15.0 2.0.1        only these releases, in this order

Stopped and started again it continues where it was, and what results/ contains already is not counted again.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from rich.console import Console

from contract.request import Request
from torch_history.measuring.locks import alone
from torch_history.measuring.machine import decided, describe
from torch_history.measuring.machine_records import use
from torch_history.measuring.plan import Plan
from torch_history.measuring.recorded import FOLDER, RecorderEnvironment
from torch_history.measuring.session import Session, load_suite
from torch_history.releases.axis import Axis, Release
from torch_history.releases.environments import prune
from torch_history.store.details import DETAILS, read_details
from torch_history.store.launches import Case, read_launches
from torch_history.store.sources import versions
from torch_history.system.scratch import temporary_files

ROOT = Path(__file__).resolve().parents[1]

MEMORY = ("intersection", "saved_tensors")
OTHERS = ("batching", "selection", "warm_up")

ANY = ".track_host_waits"
"""A number that every case has."""

GRADIENTS = ".track_gradients"

FREE_GIB = 12
"""Disk that is left to others: a release takes about 3 GiB while it is counted."""


def lanes_of(axis: Axis) -> list[tuple[str, Release]]:
    """Each release with the lane that it is counted in: 3.11 where it has a wheel for it, else 3.9."""
    newer = [("3.11", release) for release in axis.releases if "3.11" in release.pythons]
    return newer + [("3.9", release) for release in axis.releases if "3.11" not in release.pythons]


def is_counted(machine: str, release: Release, lane: str, questions: tuple[str, ...]) -> bool:
    """Whether each case of these questions that is stored of any release is stored of this one, by the sources here."""
    seen: dict[tuple[str, str], set[tuple[str, ...]]] = defaultdict(set)
    for launch in read_launches(ROOT / "results", machine, questions=questions):
        if launch.benchmark.endswith(ANY) and launch.version == versions(ROOT).get(launch.benchmark):
            cases = {(launch.benchmark, *case.parameters) for case in launch.cases}
            seen[launch.release, launch.environment] |= cases
    mine = seen[release.tag, f"release-py{lane}"]
    return {case[0].partition(".")[0] for case in mine} == set(questions) and mine == set.union(*seen.values())


Cases = dict[str, set[tuple[str, ...]]]
"""Question -> the parameters of its cases."""


def last_answers(machine: str, release: Release, lane: str, metric: str) -> dict[tuple[str, ...], tuple[str, Case]]:
    """Question with its class, and parameters -> when the last launch of `metric` began and what it found, by the sources
    here."""
    last: dict[tuple[str, ...], tuple[str, Case]] = {}
    for launch in sorted(read_launches(ROOT / "results", machine), key=lambda launch: launch.started_at):
        if (launch.release, launch.environment) != (release.tag, f"release-py{lane}"):
            continue
        if launch.benchmark.endswith(metric) and launch.version == versions(ROOT).get(launch.benchmark):
            name = launch.benchmark.rpartition(".")[0]
            last |= {(name, *case.parameters): (launch.started_at, case) for case in launch.cases}
    return last


def refused_cases(machine: str, release: Release, lane: str, words: str) -> Cases:
    """The cases of this release of which the last launch was refused in a sentence that contains `words`."""
    found: Cases = defaultdict(set)
    for (name, *_), (_, case) in last_answers(machine, release, lane, ANY).items():
        if words in case.unavailable:
            found[name.partition(".")[0]].add(case.parameters)
    return found


def backward_cases(machine: str, release: Release, lane: str, before: str) -> Cases:
    """The cases of this release that have gradients and call cuBLAS, and were last counted `before` that moment (UTC)."""
    found: Cases = defaultdict(set)
    details = read_details(ROOT / "results" / machine / f"{release.tag}-release-py{lane}{DETAILS}")
    for (name, *_), (began, case) in last_answers(machine, release, lane, GRADIENTS).items():
        called = details.get(" ".join((name, *case.parameters)), {}).get("library_calls")
        if case.value and called and began < before:
            found[name.partition(".")[0]].add(case.parameters)
    return found


def count_cases(release: Release, lane: str, request: Request, question: str, cases: set[tuple[str, ...]]) -> None:
    """Counts some cases of one question on one release in one launch. Raises UserError where that cannot be done."""
    print(f"{release.tag} {request.card} {question}, {len(cases)} cases again", flush=True)
    conf, axis = load_suite(ROOT)
    use(describe(request))  # after the suite, whose plugin names this machine by its processor
    environment = RecorderEnvironment(conf, lane, request.card)
    plan = Plan(
        releases=(release.tag,),
        environment=environment.name,
        questions=question,
        sizes=("small", "paper"),
        launches=1,
        only="counts",
        cases=tuple(sorted(cases)),
    )
    with temporary_files(), alone(Path(conf.env_dir)):
        Session(conf, axis, plan, environment, request=request).measure(Console(stderr=True))


def count(release: Release, lane: str, card: str, questions: tuple[str, ...], sizes: tuple[str, ...]) -> int:
    """Counts some questions on one release in one launch, and says how the command ended."""
    command = [str(Path(sys.executable).with_name("torch-history")), "run", release.tag]
    command += ["--lane", lane, "--device", "recorder", "--rounds", "1", *(["--card", card] if card else [])]
    command += [f"--question={question}" for question in questions] + [f"--size={size}" for size in sizes]
    print(f"{release.tag} {' '.join(questions)} {' '.join(sizes)}", flush=True)
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL).returncode


def main() -> None:
    """Counts release after release. Ends with 1 where one could not be counted, after the others."""
    asked = _asked()
    axis = Axis.load(ROOT / "releases.toml")
    wanted = [axis.find(name) for name in asked.releases]
    lanes = [(lane, release) for lane, release in lanes_of(axis) if asked.lane in (None, lane)]
    if wanted:
        lanes = sorted((each for each in lanes if each[1] in wanted), key=lambda each: wanted.index(each[1]))
    failed = []
    for lane, release in lanes:
        if shutil.disk_usage(ROOT).free < FREE_GIB * 2**30:
            sys.exit(
                f"Less than {FREE_GIB} GiB of disk are free, so nothing more is installed: make room and start again."
            )
        failed += [release.tag for card in asked.card or [""] if not _done(release, lane, card, asked)]
        prune(ROOT / "env" / FOLDER, release.tag.__eq__)
    if failed:
        sys.exit(f"These could not be counted in full: {', '.join(failed)}.")


def _done(release: Release, lane: str, card: str, asked: argparse.Namespace) -> bool:
    """Counts what was asked for of one release on one card, and says whether all of it could be."""
    request = decided(Request(device="recorder", card=card))
    machine = describe(request)["machine"]
    if asked.refused:
        again = refused_cases(machine, release, lane, asked.refused)
    elif asked.backward:
        again = backward_cases(machine, release, lane, asked.backward)
    else:
        return _counted(machine, release, lane, card)
    for question, cases in again.items():
        count_cases(release, lane, request, question, cases)
    return True


def _counted(machine: str, release: Release, lane: str, card: str) -> bool:
    """Counts what is missing of one release, and says whether all of it could be."""
    parts = [(MEMORY, ("small", "paper")), *([] if card else [(OTHERS, ("small",))])]
    missing = [part for part in parts if not is_counted(machine, release, lane, part[0])]
    return all(count(release, lane, card, *part) in (0, 4) for part in missing)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("releases", nargs="*", help="only these, in this order")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--refused", default="", help="count again what was refused in words that contain this")
    again.add_argument(
        "--backward", default="", help="count again what has gradients and calls cuBLAS, if counted before"
    )
    parser.add_argument("--card", action="append", help="may be given several times")
    parser.add_argument("--lane", choices=("3.11", "3.9"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
