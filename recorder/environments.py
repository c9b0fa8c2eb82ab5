"""Where does a release run on the recorder? In an environment of torch, what its Python imports, and NVRTC: no other NVIDIA
package, so it is small and made in half a minute."""

import re
import subprocess
from pathlib import Path

from torch_history.releases.axis import Release
from torch_history.releases.environments import damage, find_python, install, is_anothers, is_ready
from torch_history.releases.pins import Installation, locked_packages
from torch_history.system.errors import UserError

ORIGIN = "releases.lock, without what the recorder stands in for"

LEFT_OUT = re.compile(r"nvidia-(?!cuda-nvrtc).*|cuda-.*|cmake|lit|wheel|packaging")
"""Packages of a release that the recorder stands in for, or that only building needs."""

SUITES_PYTHON = "3.11"
"""The one in asv.conf.json: where the suite runs, it is installed."""

OLD_SETUPTOOLS = "setuptools==69.5.1"
"""For releases before 2.3: they import pkg_resources.packaging, which setuptools 70 no longer has."""


def packages(release: Release, python: str) -> list[str]:
    """What is installed for `release` on that Python, exact, by `releases.lock`. Raises UserError if it is not there."""
    locked = locked_packages(release, python)
    if not locked:
        others = ", ".join(other for other in release.pythons if locked_packages(release, other)) or "no other"
        raise UserError(f"releases.lock has no entry for {release.tag} on Python {python}, and has one for {others}.")
    kept = [package for package in locked if not LEFT_OUT.fullmatch(package.partition("==")[0])]
    old = tuple(int(part) for part in release.version.split(".")[:2]) < (2, 3)
    return sorted(OLD_SETUPTOOLS if old and package.startswith("setuptools==") else package for package in kept)


def python_for(release: Release) -> str:
    """The suite's own Python where `releases.lock` has an environment of the release for it, else the newest that it has.
    Raises UserError where it has none."""
    for python in (SUITES_PYTHON, *reversed(release.pythons)):
        if locked_packages(release, python):
            return python
    raise UserError(f"releases.lock has no entry for {release.tag} on any Python: add it with `make sync`.")


def create(release: Release, python: str, folder: Path) -> Path:
    """An environment of `release` in `folder`, made where it is not there whole already; returns `folder`. Raises UserError
    where it cannot be installed, or the files there are another's; nothing half-made is kept."""
    wanted = packages(release, python)
    damaged = damage(folder) if is_ready(folder, wanted) else None
    if damaged == {}:
        return folder
    if is_anothers(folder):
        raise UserError(f"{folder} holds files that this program did not make. Nothing was changed: name a new folder.")
    plan = Installation("--requirement", tuple(wanted), ("--no-deps",), ORIGIN, checked=False)
    try:
        install(folder, plan, find_python(python), wanted, damaged or ())
    except subprocess.CalledProcessError as error:
        raise UserError(
            f"{release.tag} could not be installed for Python {python}. uv said: {error.stderr.strip()}"
        ) from error
    return folder
