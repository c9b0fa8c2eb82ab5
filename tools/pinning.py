"""What exactly is to be installed for a release that `releases.lock` lacks? Asked of the package index once."""

import subprocess
import tomllib
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.version import Version

from torch_history.releases.axis import Release
from torch_history.releases.pins import BACKEND, LOCK_FILE, Lock, LockError, key
from torch_history.releases.uv import run_uv, told
from torch_history.system.files import write_atomically

ENTRIES_HEADER = """\
# Every package that a release needs in a lane, exact, as resolved when the release was added: `make sync`.
# An entry is never changed, so that a release is measured with the same packages for ever.
"""
HASHES_HEADER = """\
# The sha256 of every file that these packages come in for Linux on x86_64 and the Pythons above. Nothing else is installed.
[sha256]
"""


def lock(release: Release, python: str, requirements: Sequence[str], path: Path = Path(LOCK_FILE)) -> bool:
    """Adds to `releases.lock` what `release` needs on `python`; what stands there is not changed. Returns whether anything
    was missing. Raises LockError."""
    held = Lock.read(path)
    if key(release, python) in held.entries:
        return False
    packages, files = _asked_of_index(release, python, requirements)
    for name, digest in files.items():
        if held.sha256.get(name, digest) != digest:
            raise LockError(
                f"{path} says that {name} has the sha256 {held.sha256[name]}, and the package index has another, {digest}: "
                "a file that was published does not change. Nothing was written; ask whoever runs that index."
            )
    text = path.read_text(encoding="utf-8") if path.exists() else ENTRIES_HEADER
    standing = text.partition(HASHES_HEADER)[0].rstrip()  # byte by byte as it is
    entry = "".join(f'    "{package}",\n' for package in packages)
    digests = "".join(f'"{name}" = "{digest}"\n' for name, digest in sorted((held.sha256 | files).items()))
    write_atomically(path, f'{standing}\n\n"{key(release, python)}" = [\n{entry}]\n\n{HASHES_HEADER}{digests}')
    return True


def _asked_of_index(release: Release, python: str, requirements: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """name==version of all that uv would install for `requirements`, and the sha256 of each file that could be taken. Raises
    LockError."""
    subject = f"What {release.tag} needs on Python {python} could not be pinned"
    platform = ["--python-version", python, "--python-platform", "x86_64-manylinux_2_28"]
    options = [*platform, "--format", "pylock.toml", "--no-header", "--quiet"]
    try:
        answer = tomllib.loads(run_uv(["pip", "compile", "-", *options], stdin="\n".join(requirements)))
    except subprocess.CalledProcessError as error:
        raise LockError(f"{subject}: {told(error)}. Nothing was written.") from error
    packages, files = [], {}
    for package in answer["packages"]:
        name, version = str(package["name"]), str(package.get("version", ""))
        if Version(version).local:
            raise LockError(
                f"{subject}: uv chose {name} {version}, a private build. Unset UV_FIND_LINKS, UV_INDEX and {BACKEND}."
            )
        packages.append(f"{name}=={version}")
        for file in package.get("wheels") or [package["sdist"]]:
            digest = file.get("hashes", {}).get("sha256")
            if digest is None:
                raise LockError(f"{subject}: the package index gives no sha256 of {name} {version}.")
            files[unquote(Path(urlsplit(file.get("url") or file["path"]).path).name)] = digest
    return packages, files
