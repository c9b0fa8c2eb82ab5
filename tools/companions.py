"""For which torch is each torchvision and torchaudio built? uv asks the package index: `python -m tools.companions`
adds to contract/companions.json what it lacks, two seconds for each version."""

import json
import re
from subprocess import CalledProcessError

from packaging.version import Version
from pypi_simple import PyPISimple

from torch_history.releases.moving import ANY, COMPANIONS, CONTRACT
from torch_history.releases.uv import run_uv
from torch_history.system.files import write_atomically

from .index import TIMEOUT, configured_index
from .sync import LANES

PACKAGES = ("torchvision", "torchaudio")


def torch_of(package: str, version: str) -> str:
    """The one torch that a version requires; ANY where it allows several, empty where it has no wheel for our Pythons."""
    for python in LANES:
        command = ["pip", "compile", "-", "--quiet", "--no-header", "--no-annotate", "--python-version", python]
        if newest := _compiled(command, f"{package}=={version}"):
            is_free = newest == ANY or _compiled(command, f"{package}=={version}\ntorch!={newest}")
            return ANY if is_free else newest
    return ""


def _compiled(command: list[str], lines: str) -> str:
    """The torch that uv chooses for some requirements, ANY where it installs none; empty where it finds no way."""
    try:
        found = re.search(r"^torch==([\d.]+)", run_uv(command, lines), re.MULTILINE)
    except CalledProcessError:
        return ""
    return found[1] if found else ANY


def main() -> None:
    path = CONTRACT / COMPANIONS
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    with PyPISimple(configured_index()) as index:
        for package in PACKAGES:
            of = known.setdefault(package, {})
            files = index.get_project_page(package, timeout=TIMEOUT).packages
            linux = {file.version or "" for file in files if "linux" in file.filename and "x86_64" in file.filename}
            for version in sorted(linux - of.keys(), key=Version):
                of[version] = torch_of(package, version)
                print(f"{package} {version} is built for torch: {of[version] or 'not known'}.", flush=True)
            known[package] = dict(sorted(of.items(), key=lambda one: Version(one[0])))
    write_atomically(path, json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
