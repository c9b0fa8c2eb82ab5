"""What does an environment cost against a plain `uv pip install`, and a switch? `make bench` prints the ratio of one run.

Both install the same packages from uv's cache, in turn, several times; the ratio is of the medians.
"""

from __future__ import annotations

import functools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from asv.repo import get_repo
from uv import find_uv_bin

from torch_history.measuring.session import load_suite
from torch_history.releases.environments import CACHE, ReleaseEnvironment, find_python
from torch_history.releases.pins import locked_packages

ROOT = Path(__file__).resolve().parents[1]
LANE = "3.11"
TURNS = 3


def seconds(work: Callable[[], object]) -> float:
    """How long `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main(names: list[str]) -> None:
    """Builds the environments of the two releases `names` in turn with plain installs, then switches between them."""
    conf, axis = load_suite(ROOT)
    repo = get_repo(conf)
    releases = [axis.find(name) for name in names]
    with tempfile.TemporaryDirectory(dir=ROOT) as scratch:
        conf.env_dir = scratch
        os.environ.setdefault("UV_CACHE_DIR", str(ROOT / "env" / CACHE))
        environment = ReleaseEnvironment(conf, LANE, {}, {})
        plain = Path(scratch, "plain")

        def install(release: int) -> None:
            uv = [find_uv_bin(), "--quiet"]
            subprocess.run([*uv, "venv", "--python", find_python(LANE), str(plain)], check=True)
            packages = locked_packages(releases[release], LANE)
            subprocess.run([*uv, "pip", "install", "--python", str(plain / "bin" / "python"), *packages], check=True)

        def select(release: int) -> None:
            environment.install_project(conf, repo, releases[release].tag)

        install(0)
        shutil.rmtree(plain)
        ours: list[float] = []
        theirs: list[float] = []
        for turn in range(TURNS):
            for build, times in ((select, ours), (install, theirs))[:: 1 if turn % 2 else -1]:
                times.append(seconds(functools.partial(build, 0)))
            shutil.rmtree(plain)
            if turn < TURNS - 1:
                shutil.rmtree(environment.folder(releases[0]))
        select(1)
        switches = [seconds(functools.partial(select, release)) for release in (0, 1) * 10]
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"build of {releases[0].tag}: {[round(s, 1) for s in ours]} s; plain: {[round(s, 1) for s in theirs]} s")
    print(f"build / plain = {ratio:.2f} (at most 1.5)")
    print(f"switch between {' and '.join(names)}: worst of {len(switches)} {max(switches):.3f} s (under 1)")


if __name__ == "__main__":
    main(sys.argv[1:] or ["1.13.1", "2.15.0"])
