"""What does a release bring besides time? `wheels.json` says it, filled by tools/wheel_files from the wheels."""

import re
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, convert

from ..system.errors import UserError
from ..system.files import read_object

FILE = "wheels.json"

Bytes = Annotated[int, Meta(ge=0, le=2**44)]
Text = Annotated[str, Meta(max_length=200)]


class Package(Struct, frozen=True):
    """One package that a release installs: bytes of what is downloaded, and of the files in it."""

    name: Text
    version: Text
    download: Bytes
    installed: Bytes


class Wheel(Struct, frozen=True):
    """What a release's own wheel for one `python` says, and all `packages` that come with it, torch first.

    `cuda`, `commit`: torch/version.py. `cxx11_abi`: the cmake file for C++ extensions; None where it says nothing.
    `glibc`: the least version that its libraries need; empty where none names one. `architectures`: what
    `torch.cuda.get_arch_list()` answers, from libtorch_python.so. `libraries`: bytes of each file from 1 MiB on."""

    python: Text
    cuda: Text
    commit: Text
    cxx11_abi: bool | None
    glibc: Text
    architectures: tuple[Text, ...]
    libraries: dict[Text, Bytes]
    packages: tuple[Package, ...]

    @property
    def download(self) -> int:
        """Bytes that an installation into an empty environment downloads."""
        return sum(package.download for package in self.packages)

    @property
    def installed(self) -> int:
        """Bytes that it writes, without the bytecode that Python adds."""
        return sum(package.installed for package in self.packages)

    @property
    def versions(self) -> dict[str, str]:
        """Package -> version, CUDA's suffix taken off: `nvidia-cudnn-cu12` and `nvidia-cudnn-cu13` are one package."""
        return {re.sub(r"-cu\d+$", "", package.name): package.version for package in self.packages}


def load(path: Path) -> dict[str, Wheel]:
    """Tag -> what is known; empty where there is no file. Raises UserError where it is damaged."""
    if not path.exists():
        return {}
    try:
        return convert(read_object(path), dict[str, Wheel])
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}. Restore it: git checkout {path}.") from error


def told(wheel: Wheel) -> dict[str, str]:
    """What a wheel brings but its architectures, in words: what it is -> what it says, the version of a package."""
    return {
        "download, with all packages": size(wheel.download),
        "installed, with all packages": size(wheel.installed),
        "torch itself, installed": size(wheel.packages[0].installed),
        "CUDA": wheel.cuda or "none",
        "C++11 ABI": {None: "not said", True: "yes", False: "no"}[wheel.cxx11_abi],
        "least glibc": wheel.glibc or "not known",
        **{name: version for name, version in wheel.versions.items() if name != "torch"},
        "commit": wheel.commit[:10],
    }


def size(count: int) -> str:
    """Bytes for a person, in powers of ten as the package index tells them."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"
