"""Reads the code of releases into results/code/: which libraries they have, what they declare of operators, which
functions run in the suite's series, and what these functions' instructions are.

    python -m tools.fingerprint                  all releases of the axis, newest first
    python -m tools.fingerprint 2.14.1 2.15.0    these first, also those that have a series with too few samples

A release that is not installed is installed (2 to 5 GB) to see what runs in it, and removed again. It takes about five
minutes a release, and can be interrupted: what is done is kept."""

import io
import sys
import time
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from asv.repo import get_repo
from msgspec.structs import replace
from pypi_simple import DistributionPackage, PyPISimple

from tools.index import configured_index
from tools.sync import Remote
from tools.wheel_files import file_of
from torch_history.analysis.code import LEAST_SAMPLES, PYTHONS, RELEASE, same_code
from torch_history.cli import suite as suites
from torch_history.cli.suite import Suite
from torch_history.explaining import fingerprints
from torch_history.explaining.fingerprints import Case
from torch_history.explaining.launching import Launch, LaunchFailed, Side, Subject
from torch_history.measuring.machine import cpu
from torch_history.releases import environments
from torch_history.releases.pins import LOCK_FILE, Lock
from torch_history.store import code
from torch_history.system.scratch import scratch, temporary_files

SECONDS = 0.3
"""For which a series is looked at: about 900 samples."""

PIECE = 2**23
"""Bytes of a wheel that are read at a time."""

SIZES = {
    "intersection": ("small",),
    "batching": ("64 x 128", "4,096 x 64"),
    "selection": ("vector 1 % x 100", "vector 50 % x 100", "rows 50 % x 100", "vector 99 % x 1"),
    "saved_tensors": ("loop", "chain", "loop, no gradient"),
}
"""Question -> sizes in which its variants are looked at: enough to see each way that its code goes."""


def cases(ask: Any) -> list[Case]:
    """What is looked at: every variant in the SIZES of its question."""
    found = []
    for question, sizes in SIZES.items():
        step = {"do": "cases", "case": {"workload": question, "variant": "", "size": "", "metric": "time"}}
        known = ask(step)["cases"]
        found += [Case(question, variant, size, "time") for variant, size in known if size in sizes]
        if question == "saved_tensors":
            found += [Case(question, variant, size, "forward_time") for variant, size in known if size == "chain"]
    return found


def seen_in(suite: Suite, conf: Any, tag: str, python: str, folder: Path) -> dict[str, Any]:
    """What runs in a release, which is installed for it."""
    environment = environments.ReleaseEnvironment(conf, python, {}, {})
    environment.install_project(conf, get_repo(conf), tag)
    interpreter = environment.folder(suite.axis.find(tag)) / "bin" / "python"
    launch = Launch(Side(tag, interpreter), Subject(suite.root, "selection", "mask", "vector 1 % x 1", "time"))
    try:
        asked = cases(launch.ask)
        return fingerprints.see(asked, launch.ask, folder / "perf.data", SECONDS, print)
    finally:
        launch.close()


def contents(file: DistributionPackage, index: PyPISimple, folder: Path) -> tuple[list[Path], dict[str, str]]:
    """The libraries of a wheel, read from the index in pieces into `folder`, over those of another, and what it declares;
    old wheels hold no declarations."""
    paths, declared = [], {}
    with zipfile.ZipFile(io.BufferedReader(Remote(index.s, file), PIECE)) as archive:
        for name in fingerprints.LIBRARIES:
            if f"torch/lib/{name}" in archive.namelist():
                path = folder / name
                path.write_bytes(archive.read(f"torch/lib/{name}"))
                paths.append(path)
        if fingerprints.DECLARATIONS in archive.namelist():
            declared = fingerprints.declared(archive.read(fingerprints.DECLARATIONS))
    return paths, declared


def every_key() -> set[str]:
    """The functions that run in some series of some release."""
    every = (code.read(*of) for of in code.known())
    return {named for of in every if of for each in of.series.values() for named in each.symbols}


def is_another_lanes(of: tuple[str, str], every: Collection[tuple[str, str]]) -> bool:
    """Whether the wheel of another Python, which is looked at, has the same machine code."""
    tag, python = of
    lanes = f"{RELEASE}{python}", f"{RELEASE}{PYTHONS[0]}"
    return python != PYTHONS[0] and (tag, PYTHONS[0]) in every and bool(same_code(lanes, tag))


def main() -> None:
    named = sys.argv[1:]
    suite = suites.load()
    conf = suite.config()
    lock = Lock.read(suite.list.with_name(LOCK_FILE))
    every = [(release.tag, python) for python in PYTHONS for release in reversed(suite.axis.releases)]
    every = [(tag, python) for tag, python in every if f"{tag} py{python}" in lock.entries]
    first = [suite.axis.find(name).tag for name in named]
    with temporary_files(), scratch(suite.env, "fingerprint-") as folder, PyPISimple(configured_index()) as index:
        looked = [of for of in every if (of[0] in first or not named) and not is_another_lanes(of, every)]
        for number, (tag, python) in enumerate(looked, 1):
            known = code.read(tag, python)
            series = known.series.values() if known else ()
            if not series or (named and min(of.samples for of in series) < LEAST_SAMPLES):
                step(suite, conf, lock, index, (tag, python), f"{number} of {len(looked)}", folder, look=True)
        for number, (tag, python) in enumerate(every, 1):
            known = code.read(tag, python)
            if known is None or (known.series and known.asked != fingerprints.digest_of(every_key())):
                step(suite, conf, lock, index, (tag, python), f"{number} of {len(every)}", folder, look=False)


def step(
    suite: Suite, conf: Any, lock: Lock, index: PyPISimple, of: tuple[str, str], at: str, folder: Path, look: bool
) -> None:
    """Reads the code of one release; `look` says whether it is run as well, else what was seen of it stays."""
    tag, python = of
    began, known = time.monotonic(), code.read(tag, python)
    torch = next(entry for entry in lock.entries[f"{tag} py{python}"] if entry.startswith("torch=="))
    file = file_of(index, lock, torch, python)
    was_there = (suite.env / f"{tag}-py{python}" / environments.MARK).exists()
    try:
        seen = seen_in(suite, conf, tag, python, folder) if look else None
    except (environments.InstallationError, LaunchFailed) as error:
        print(f"{tag} on Python {python} is left out: {error}", flush=True)
        return
    finally:
        if look and not was_there:
            environments.prune(suite.env, lambda other: other == tag, python)
    keys = every_key() if look or (known and known.series) else ()
    paths, declared = contents(file, index, folder)
    found = fingerprints.of_release(tag, python, file.digests["sha256"], paths, seen, cpu(), keys, known)
    path = code.write(replace(found, declared=declared))
    took, size = time.monotonic() - began, path.stat().st_size
    print(f"{tag} on Python {python} ({at}): {len(found.series)} series, {len(found.symbols)} functions, "
          f"{size / 1000:.0f} kB, {took:.0f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
