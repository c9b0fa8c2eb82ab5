"""Counts the axis on the recorder: release by release, each installed, counted and removed, so that few lie on the disk.

    python -m tools.count_history                     the default card, all questions
    python -m tools.count_history --card hopper       the questions of memory alone

Stopped and started again it goes on where it was. What is finished lies in results/, to be committed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from torch_history.measuring.recorded import FOLDER
from torch_history.releases.axis import Axis, Release
from torch_history.releases.environments import prune

ROOT = Path(__file__).resolve().parents[1]

MEMORY = ("intersection", "saved_tensors")
OTHERS = ("batching", "selection", "warm_up")

FREE_GIB = 12
"""Disk that is left to others: a release takes about 3 GiB while it is counted."""


def lanes_of(axis: Axis) -> list[tuple[str, Release]]:
    """Each release with the lane that it is counted in: 3.11 where it has a wheel for it, else 3.9."""
    newer = [("3.11", release) for release in axis.releases if "3.11" in release.pythons]
    return newer + [("3.9", release) for release in axis.releases if "3.11" not in release.pythons]


def count(release: Release, lane: str, card: str, questions: tuple[str, ...], sizes: tuple[str, ...]) -> int:
    """Counts some questions on one release in two launches, and says how the command ended."""
    command = [str(Path(sys.executable).with_name("torch-history")), "run", release.tag]
    command += ["--lane", lane, "--device", "recorder", "--rounds", "2", *(["--card", card] if card else [])]
    command += [f"--question={question}" for question in questions] + [f"--size={size}" for size in sizes]
    print(f"{release.tag} {' '.join(questions)} {' '.join(sizes)}", flush=True)
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL).returncode


def main() -> None:
    """Counts release after release. Ends with 1 where one could not be counted, after the others."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--card", default="")
    parser.add_argument("--lane", choices=("3.11", "3.9"))
    asked = parser.parse_args()
    root, failed = ROOT / "env" / FOLDER, []
    parts = [(MEMORY, ("small",)), (MEMORY, ("paper",)), *([] if asked.card else [(OTHERS, ("small",))])]
    for lane, release in lanes_of(Axis.load(ROOT / "releases.toml")):
        if asked.lane not in (None, lane):
            continue
        if shutil.disk_usage(ROOT).free < FREE_GIB * 2**30:
            sys.exit(
                f"Less than {FREE_GIB} GiB of disk are free, so nothing more is installed: make room and start again."
            )
        if any(count(release, lane, asked.card, *part) not in (0, 4) for part in parts):
            failed.append(release.tag)
        prune(root, release.tag.__eq__)
    if failed:
        sys.exit(f"These could not be counted in full: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
