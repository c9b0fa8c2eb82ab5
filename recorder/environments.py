"""Where does a release run on the recorder? In an environment of torch, what its Python imports, and NVRTC: no other NVIDIA
package, so it is small and made in half a minute."""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from torch_history.releases import intact
from torch_history.releases.axis import Release
from torch_history.releases.environments import (
    cache,
    cache_options,
    clean_cache,
    damage,
    digests,
    find_python,
    is_ready,
)
from torch_history.releases.pins import locked_packages
from torch_history.releases.uv import run_uv
from torch_history.system.files import write_atomically

from . import Refused

MARK = "torch-history.json"
"""As in torch_history.releases.environments: written last into a finished environment."""

BEGUN = "torch-history.begun"
"""Written first into an environment: who finds it may remove the folder, which nobody else made."""

LEFT_OUT = re.compile(r"nvidia-(?!cuda-nvrtc).*|cuda-.*|cmake|lit|wheel|packaging")
"""Packages of a release that the recorder stands in for, or that only building needs."""

OLD_SETUPTOOLS = "setuptools==69.5.1"
"""For releases before 2.3: they import pkg_resources.packaging, which setuptools 70 no longer has."""


def packages(release: Release, python: str) -> list[str]:
    """What is installed for `release` on that Python, exact, from `releases.lock`.

    Up to 1.12 the wheel holds NVRTC itself. Raises Refused where the lock does not know the release.
    """
    locked = locked_packages(release, python)
    if not locked:
        raise Refused(
            f"releases.lock has no entry for {release.tag} on Python {python}: choose a Python that it has wheels "
            f"for, or add it with `make sync`. It has wheels for {', '.join(release.pythons)}."
        )
    kept = [package for package in locked if not LEFT_OUT.fullmatch(package.partition("==")[0])]
    old = tuple(int(part) for part in release.version.split(".")[:2]) < (2, 3)
    return sorted(OLD_SETUPTOOLS if old and package.startswith("setuptools==") else package for package in kept)


def python_for(release: Release) -> str:
    """The newest Python that `releases.lock` has an environment of the release for. Raises Refused where it has none."""
    for python in reversed(release.pythons):
        if locked_packages(release, python):
            return python
    raise Refused(f"releases.lock has no entry for {release.tag} on any Python: add it with `make sync`.")


def create(release: Release, python: str, folder: Path) -> Path:
    """An environment of `release` in `folder`, made where it is not there whole already; returns `folder`.

    Raises Refused where it cannot be installed; nothing half-made is kept.
    """
    wanted = packages(release, python)
    place = folder.parent
    damaged = damage(folder) if is_ready(folder, wanted) else None
    if damaged == {}:
        return folder
    _clear(folder)
    try:
        clean_cache(place, damaged or ())
        fresh = functools.partial(_install, wanted, find_python(python), folder)
        intact.install(folder, fresh, functools.partial(clean_cache, place))
        mark = {
            "requirements": wanted,
            "packages": wanted,
            "origin": "releases.lock, without what the recorder stands in for",
            "digests": digests(folder),
            "cache": str(cache(place)),
        }
        write_atomically(folder / MARK, json.dumps(mark, indent=1))
    except subprocess.CalledProcessError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise Refused(
            f"{release.tag} could not be installed for Python {python}. uv said: {error.stderr.strip()}"
        ) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _install(wanted: list[str], interpreter: str, folder: Path) -> None:
    """Makes an environment anew and installs into it exactly what is wanted."""
    _clear(folder)
    run_uv(["venv", "--allow-existing", "--python", interpreter, str(folder)])
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write("\n".join(wanted))
        listed.flush()
        what = ["--no-deps", "--requirement", listed.name, *cache_options(folder.parent)]
        run_uv(["pip", "install", "--python", str(folder / "bin" / "python"), *what])


def _clear(folder: Path) -> None:
    """Makes room for an environment: removes what this program left there. Raises Refused where the files are another's."""
    ours = (folder / MARK).exists() or (folder / BEGUN).exists()
    if folder.exists() and not ours and (not folder.is_dir() or any(folder.iterdir())):
        raise Refused(f"{folder} holds files that this program did not make. Nothing was changed: name a new folder.")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / BEGUN).touch()
