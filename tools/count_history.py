"""Counts the axis on the recorder: release by release, each installed, counted and removed, so that few lie on the disk.

    python -m tools.count_history                     the default card, all questions
    python -m tools.count_history --card hopper       the questions of memory alone

Stopped and started again it continues where it was, and what results/ contains already is not counted again.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from contract.request import Request
from torch_history.measuring.machine import describe
from torch_history.measuring.recorded import FOLDER
from torch_history.releases.axis import Axis, Release
from torch_history.releases.environments import prune
from torch_history.store.launches import read_launches
from torch_history.store.sources import versions

ROOT = Path(__file__).resolve().parents[1]

MEMORY = ("intersection", "saved_tensors")
OTHERS = ("batching", "selection", "warm_up")

ANY = ".track_host_waits"
"""A number that every case has."""

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


def count(release: Release, lane: str, card: str, questions: tuple[str, ...], sizes: tuple[str, ...]) -> int:
    """Counts some questions on one release in one launch, and says how the command ended."""
    command = [str(Path(sys.executable).with_name("torch-history")), "run", release.tag]
    command += ["--lane", lane, "--device", "recorder", "--rounds", "1", *(["--card", card] if card else [])]
    command += [f"--question={question}" for question in questions] + [f"--size={size}" for size in sizes]
    print(f"{release.tag} {' '.join(questions)} {' '.join(sizes)}", flush=True)
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL).returncode


def main() -> None:
    """Counts release after release. Ends with 1 where one could not be counted, after the others."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--card", default="")
    parser.add_argument("--lane", choices=("3.11", "3.9"))
    asked = parser.parse_args()
    machine = describe(Request(device="recorder", card=asked.card))["machine"]
    root, failed = ROOT / "env" / FOLDER, []
    parts = [(MEMORY, ("small", "paper")), *([] if asked.card else [(OTHERS, ("small",))])]
    for lane, release in lanes_of(Axis.load(ROOT / "releases.toml")):
        if asked.lane not in (None, lane):
            continue
        if shutil.disk_usage(ROOT).free < FREE_GIB * 2**30:
            sys.exit(
                f"Less than {FREE_GIB} GiB of disk are free, so nothing more is installed: make room and start again."
            )
        missing = [part for part in parts if not is_counted(machine, release, lane, part[0])]
        if any(count(release, lane, asked.card, *part) not in (0, 4) for part in missing):
            failed.append(release.tag)
        prune(root, release.tag.__eq__)
    if failed:
        sys.exit(f"These could not be counted in full: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
