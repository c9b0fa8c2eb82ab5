"""What do the files of a release say of it? `python -m tools.wheel_files` adds to `wheels.json` what it lacks of the
releases that are installed. Nothing of them is run."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import requests
from msgspec import to_builtins
from packaging.utils import canonicalize_name
from pypi_simple import DistributionPackage, NoSuchProjectError, PyPISimple

from torch_history.cli import suite as suites
from torch_history.releases import intact
from torch_history.releases.axis import Axis
from torch_history.releases.environments import MARK
from torch_history.releases.pins import LOCK_FILE, Lock, key
from torch_history.releases.wheels import FILE, Package, Wheel, load
from torch_history.system.errors import UserError
from torch_history.system.files import write_atomically

from .index import TIMEOUT, configured_index, value_in
from .sync import LANES

PIECE = 2**24
"""Bytes of a library that are read at a time."""


def update(path: Path, axis: Axis, env: Path, address: str, say: Callable[[str], None]) -> dict[str, Wheel]:
    """Reads the releases that `path` lacks from their environments in `env`, and the sizes of their downloads from the index
    at `address`. Raises UserError where the index is out of reach or has other files than the lock names."""
    known = load(path)
    lock = Lock.read(path.with_name(LOCK_FILE))
    with PyPISimple(address) as index:
        for release in axis.releases:
            if release.tag in known:
                continue
            python = next((lane for lane in LANES if key(release, lane) in lock.entries), LANES[0])
            folder = env / f"{release.tag}-py{python}"
            if not (folder / MARK).exists():
                say(f"{release.tag} is not read, for it is not installed: `torch-history run {release.version}`.")
                continue
            try:
                files = [file_of(index, lock, each, python) for each in lock.entries.get(key(release, python), [])]
            except (requests.RequestException, NoSuchProjectError) as error:
                raise UserError(f"What {release.tag} downloads cannot be read ({type(error).__name__}).") from error
            known[release.tag] = _wheel(folder, python, files)
            ordered = {each.tag: to_builtins(known[each.tag]) for each in axis.releases if each.tag in known}
            write_atomically(path, json.dumps(ordered, indent=1) + "\n")
            say(f"{release.tag} was read.")
    return known


def file_of(index: PyPISimple, lock: Lock, locked: str, python: str) -> DistributionPackage:
    """The file of `name==version` whose digest the lock has. Raises UserError where the index has none, or not its size."""
    page = index.get_project_page(locked.partition("==")[0].partition("[")[0], timeout=TIMEOUT)
    digests = lock.digests(locked, python)
    found = [file for file in page.packages if file.digests.get("sha256") in digests]
    if not found:
        raise UserError(f"The index has no file of {locked} whose sha256 is in releases.lock.")
    file = min(found, key=lambda file: (not file.filename.endswith(".whl"), "x86_64" not in file.filename))
    if file.size is None:
        raise UserError(f"The index does not tell how large {file.filename} is.")
    return file


def _wheel(folder: Path, python: str, files: list[DistributionPackage]) -> Wheel:
    """What an environment holds of the packages in `files`, torch first. Raises UserError where it lacks one."""
    sizes = _sizes(folder)
    named = {canonicalize_name(file.project or ""): file for file in files}
    if missing := sorted(named.keys() - sizes.keys()):
        raise UserError(f"{folder} lacks {', '.join(missing)}, which releases.lock names. Install it again.")
    packages = []
    for name, file in sorted(named.items(), key=lambda each: (each[0] != "torch", each[0])):
        size, installed = file.size or 0, sum(sizes[name].values())
        packages.append(Package(name, file.version or "", size, installed))
    torch = next(iter(folder.glob("lib/python*/site-packages/torch")))
    version = _text(torch / "version.py")
    large = sorted((-size, path) for path, size in sizes["torch"].items() if size >= 2**20 and ".so" in path)
    return Wheel(
        python,
        value_in(version, "cuda"),
        value_in(version, "git_version"),
        _cxx11_abi(torch),
        _glibc(torch),
        _architectures(torch),
        {re.sub(r"-[0-9a-f]{8,}", "", path.rpartition("/")[2]): -size for size, path in large},
        tuple(packages),
    )


def _sizes(folder: Path) -> dict[str, dict[str, int]]:
    """Package -> its files -> bytes, without the bytecode that Python adds."""
    found: dict[str, dict[str, int]] = {}
    for record in intact.records(folder):
        files = {path: record.parents[1] / path for path, _ in intact.rows(record) if not path.endswith(".pyc")}
        name = canonicalize_name(record.parent.name.partition("-")[0])
        found[name] = {path: file.stat().st_size for path, file in files.items() if file.is_file()}
    return found


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _cxx11_abi(torch: Path) -> bool | None:
    """By the flags of torch's own cmake file; newer wheels have no such flag, and a function that answers at once."""
    flag = re.search(r"_GLIBCXX_USE_CXX11_ABI=([01])", _text(torch / "share/cmake/Torch/TorchConfig.cmake"))
    function = r"def compiled_with_cxx11_abi\(.*?\n    return (True|False)\n"
    said = re.search(function, _text(torch / "__init__.py"), re.DOTALL)
    return flag[1] == "1" if flag else said[1] == "True" if said else None


def _glibc(torch: Path) -> str:
    """The newest version of glibc that a library of torch's names: without it the loader refuses the library."""
    found = set()
    for library in [*torch.glob("lib/*.so*"), *torch.glob("_C*.so")]:
        with library.open("rb") as stream:
            rest = b""
            while piece := stream.read(PIECE):
                text = rest + piece
                found |= {match[1].decode() for match in re.finditer(rb"\0GLIBC_(2\.[\d.]+)(?=\0)", text)}
                rest = text[-64:]
    return max(found, key=lambda version: [int(part) for part in version.split(".")], default="")


def _architectures(torch: Path) -> tuple[str, ...]:
    """The string of the macro CUDA_ARCH_FLAGS, which torch/csrc/cuda/Module.cpp compiles in; empty for a build without."""
    library = torch / "lib" / "libtorch_python.so"
    content = library.read_bytes() if library.is_file() else b""
    found = re.findall(rb"(?:(?:sm|compute)_\d{2,3}[af]? ?){2,}", content)
    return tuple(max(found, key=len).decode().split()) if found else ()


def main() -> None:
    suite = suites.load()
    path = suite.list.with_name(FILE)
    try:
        known = update(path, suite.axis, suite.env, configured_index(), print)
    except UserError as error:
        sys.exit(str(error))
    print(f"{FILE} knows the wheels of {len(known)} releases.")


if __name__ == "__main__":
    main()
