"""How much cheaper is a run here than with asv's own defaults? `make bench-asv` prints the ratio of one run.

Both take the same benchmarks on the same two releases, from nothing and with empty caches. asv by default has one
environment that pip fills again for each release, and starts a process for each parameter set; here uv fills an
environment per release once, and processes are forked from one import.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RELEASES = "v2.14.0..v2.15.0"
BENCHMARKS = r"^batching\.Batching\.track_(time|operators)\('\w+', '64 x 128'\)"
OURS = ("environments", "launches")
"""Plugins that asv's defaults do without."""

DEFAULTS = {
    "environment_type": "virtualenv",
    "launch_method": "spawn",
    "install_command": ["in-dir={env_dir} python -m pip install --quiet torch=={commit}"],
    "uninstall_command": ["return-code=any python -m pip uninstall --quiet --yes torch"],
    "build_command": [],
    "matrix": {"req": {"numpy": ["1.26.4"]}},
}


def suite(folder: Path, changes: dict) -> Path:
    """A copy of the suite in `folder` whose asv.conf.json has `changes`."""
    shutil.copytree(
        ROOT, folder, ignore=shutil.ignore_patterns(".git", ".venv", "env", "html", "results", "__pycache__", ".*cache")
    )
    conf = json.loads((folder / "asv.conf.json").read_text())
    if changes:
        conf["plugins"] = [plugin for plugin in conf["plugins"] if not plugin.endswith(OURS)]
    (folder / "asv.conf.json").write_text(json.dumps({**conf, **changes}))
    return folder


def seconds(folder: Path) -> tuple[float, int]:
    """How long `asv run` takes in `folder`, installation included, and how many numbers it stored."""
    (folder / "home").mkdir()
    surroundings = {
        **os.environ,
        "HOME": str(folder / "home"),
        "PYTHONPATH": str(folder),
        "UV_CACHE_DIR": str(folder / "uv-cache"),
        "PIP_NO_CACHE_DIR": "1",
        "TORCH_HISTORY_MACHINE": "bench",
    }
    begin = time.perf_counter()
    command = [sys.executable, "-m", "asv", "run", "--bench", BENCHMARKS, RELEASES]
    answer = subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, text=True, check=False)
    lasted = time.perf_counter() - begin
    stored = 0
    for path in (folder / "results" / "bench").glob("v*.json"):
        for result in json.loads(path.read_text())["results"].values():
            stored += sum(isinstance(value, (int, float)) and value == value for value in result[0] or [])
    if not stored:
        sys.exit(f"Nothing was measured:\n{answer.stdout[-2000:]}{answer.stderr[-2000:]}")
    return lasted, stored


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="torch-history-") as scratch:
        found = {}
        for name, changes in (("torch-history", {}), ("asv's defaults", DEFAULTS)):
            folder = suite(Path(scratch, name.replace(" ", "-")), changes)
            found[name] = seconds(folder)
            shutil.rmtree(folder)
            print(f"{name:<15} {found[name][0]:7.1f} s for {found[name][1]} numbers", flush=True)
    (ours, numbers), (theirs, same) = found.values()
    print(f"asv's defaults take {theirs / ours:.1f} times as long ({numbers} and {same} numbers).")


if __name__ == "__main__":
    main()
