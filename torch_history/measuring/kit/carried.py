"""How does a carried release run without a network? On the CUDA libraries and beside the torch that are there."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import asv_runner
import msgspec
from msgspec import Meta, Struct
from packaging.version import Version

from contract.carried import CARRIED

from ...releases.axis import Axis, Release
from ...releases.environments import MARK, ReleaseEnvironment, digests, for_measuring
from ...system.errors import SessionError, UserError
from ...system.files import read_bytes, read_object, write_atomically
from . import parts
from .elf import libraries, symbols

ABOUT = "about.json"
"""The file in an unpacked release that says what it is."""

SITE = "site"
"""The folder in an unpacked release with what a wheel puts into site-packages."""

STUBS = "stubs"
"""Its libraries in the place of NVIDIA's that a machine may have too old: one that is called ends the process."""

BESIDE = "machine.pth"
"""The file in an environment by which Python looks at the machine's own packages after the carried ones."""

IMPORT = "import torch; torch.zeros(2).sum().item(); print(torch.__version__)"

FACTS = """
import importlib.metadata, json, sys, numpy, torch
import nvidia
print(json.dumps({
    "torch": torch.__version__, "cuda": torch.version.cuda or "", "python": "%d.%d" % sys.version_info[:2],
    "paths": [path for path in sys.path if path.endswith("-packages")], "nvidia": list(nvidia.__path__),
    "prefix": sys.prefix,
    "packages": sorted({d.metadata["Name"].lower().replace("_", "-") + "==" + d.version
                        for d in importlib.metadata.distributions() if d.metadata["Name"]}),
}))
"""


Words = Annotated[str, Meta(pattern=r"\A[ -~]{1,300}\Z")]
Name = Annotated[str, Meta(pattern=r"\A[!-~]{1,300}\Z")]
Minor = Annotated[str, Meta(pattern=r"\A[0-9]{1,3}\.[0-9]{1,3}\Z")]
Tag = Annotated[str, Meta(pattern=r"\Av[0-9]{1,3}(\.[0-9]{1,3}){2}\Z")]
Digest = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class About(Struct, frozen=True, forbid_unknown_fields=True):
    """What was carried. `cuda`: what the release was built for. `code`: in words, how much of its device code.
    `asked`: the symbols that NVIDIA's libraries must have. `library_calls`: case -> the calls of such libraries that
    the recorder saw. `known`: the questions that it counted."""

    release: Tag
    python: Minor
    cuda: Minor
    architecture: int
    wheel: Name
    sha256: Digest
    code: Words
    asked: list[Name]
    library_calls: dict[str, list[Name]]
    known: list[Name]

    @classmethod
    def read(cls, path: Path) -> "About":
        """Raises UserError where it is not there or damaged."""
        try:
            return msgspec.json.decode(read_bytes(path), type=cls)
        except (ValueError, RecursionError) as error:
            words = "".join(each for each in str(error) if each.isprintable())[: parts.SHOWN]
            raise UserError(
                f"What was unpacked is no carried release, by its {path.name}: {words}. Carry the release again."
            ) from error


@dataclass(frozen=True)
class Machine:
    """The interpreter that is there, with its torch; `paths` of its packages, and folders of NVIDIA's."""

    interpreter: str
    torch: str
    cuda: str
    python: str
    paths: list[str]
    nvidia: list[str]
    prefix: str
    packages: list[str]

    @classmethod
    def of(cls, interpreter: str) -> "Machine":
        """Raises UserError where it has no torch, NumPy, or libraries of NVIDIA's that came as packages."""
        try:
            told = _asked_of(interpreter, FACTS)
        except subprocess.CalledProcessError as error:
            last = (error.stderr.strip().splitlines() or ["it ended without a message"])[-1]
            raise UserError(
                f"{interpreter} cannot measure a carried release: {last}. It must have torch, NumPy and NVIDIA's "
                "libraries as packages. Name another one with --python."
            ) from error
        return cls(interpreter, **json.loads(told.strip().splitlines()[-1]))

    @property
    def libraries(self) -> str:
        """Its libraries of NVIDIA's in words."""
        named = {"cuBLAS": "nvidia-cublas", "cuDNN": "nvidia-cudnn", "NVRTC": "nvidia-cuda-nvrtc"}
        versions = [each.partition("==") for each in self.packages]
        found = {name: [of for each, _, of in versions if each.startswith(of_it)] for name, of_it in named.items()}
        each = [f"{name} {of[0]}" for name, of in found.items() if of]
        return f"CUDA {self.cuda} ({', '.join(each)})"


def _asked_of(interpreter: str, code: str) -> str:
    """What `code` prints in surroundings as those of a measurement. Raises CalledProcessError."""
    env = {name: value for name, value in for_measuring(os.environ).items() if name != "PYTHONPATH"}
    return subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=True, env=env).stdout


def unpack(packed: Path, folder: Path, interpreter: str) -> list[str]:
    """Unpacks a release, makes its environment in `folder`, and one of the torch of `interpreter`. Returns all tags."""
    machine = Machine.of(interpreter)
    unpacked, is_new = folder / ".unpacked", not folder.exists()
    shutil.rmtree(unpacked, ignore_errors=True)
    try:
        sha256 = parts.unpack(packed, unpacked)
        about = About.read(unpacked / ABOUT)
        settle(unpacked, about, sha256, machine, folder)
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)
        if is_new:
            with contextlib.suppress(OSError):  # it holds what was made
                folder.rmdir()
    installed(machine, about, folder)
    return sorted(path.parent.name for path in folder.glob(f"v*/{MARK}"))


def settle(unpacked: Path, about: About, sha256: str, machine: Machine, folder: Path) -> None:
    """Moves an unpacked release into an environment, `folder`/<tag>. Raises UserError where it does not fit."""
    _refuse_misfit(about, machine)
    target = folder / about.release
    origin = (
        f"torch {about.release[1:]} carried: of {about.wheel} (sha256 {about.sha256}) {about.code}, built for CUDA "
        f"{about.cuda}. All else is this machine's: {machine.libraries}, NumPy and the other packages. NCCL and NVSHMEM are "
        "stubs that nothing calls. Every file was checked by its sha256 before it was moved here"
    )
    own = {f"torch=={about.release[1:]}": sha256}
    with _replacing(target):
        site = _environment(target, machine)
        for child in (unpacked / SITE).iterdir():
            child.rename(site / child.name)
        farm = site / "nvidia"  # links to the folders of the machine's libraries, and copies of those that have a stub
        farm.mkdir()
        for stub in (unpacked / STUBS).iterdir():
            shutil.copytree(stub, farm / stub.name)
        for child in (child for path in machine.nvidia for child in sorted(Path(path).iterdir())):
            if child.is_dir() and not (farm / child.name).exists():
                (farm / child.name).symlink_to(child.resolve())
        _refuse_missing(about, farm)
        _finish(target, origin, own, about, machine, about.release)


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[None]:
    """Makes room for an environment at `target`, which its files name. One that is there comes back where the block
    fails, or where it was killed and the next fails; else it is removed. Raises UserError where it is anything else."""
    before, begun = (target.with_name(f".{target.name}.{what}") for what in ("before", "begun"))
    if (target / MARK).exists():
        shutil.rmtree(before, ignore_errors=True)
        target.rename(before)
    elif os.path.lexists(target) and not before.exists() and not begun.exists():
        raise UserError(f"{target} is not this program's. Nothing in it was changed: name another FOLDER.")
    begun.touch()
    shutil.rmtree(target, ignore_errors=True)
    try:
        yield
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        if before.exists():
            before.rename(target)
        raise
    finally:
        begun.unlink()
    shutil.rmtree(before, ignore_errors=True)


def installed(machine: Machine, about: About, folder: Path) -> Path:
    """Makes an environment of the torch that is installed, so that it is of the same kind as those that are carried."""
    tag = f"v{Version(machine.torch).base_version}"
    target = folder / tag
    if (target / MARK).exists():
        return target
    own = {name: digest for name, digest in digests(Path(machine.prefix)).items() if name.startswith("torch==")}
    origin = f"torch {machine.torch} as it is installed on this machine, with its {machine.libraries}; not checked"
    with _replacing(target):
        _environment(target, machine)
        _finish(target, origin, own, about, machine, tag)
    return target


def _refuse_misfit(about: About, machine: Machine) -> None:
    if about.python != machine.python:
        raise UserError(
            f"{about.release} was carried for Python {about.python}, and {machine.interpreter} is Python {machine.python}. "
            f"Carry it again: python -m tools.carry {about.release[1:]} --for-python {machine.python} FOLDER"
        )
    if about.cuda.partition(".")[0] != machine.cuda.partition(".")[0]:
        raise UserError(
            f"{about.release} is built for CUDA {about.cuda}, and the libraries of this machine are CUDA {machine.cuda}'s. "
            "Carry a release that is built for the same major version."
        )


def _environment(target: Path, machine: Machine) -> Path:
    """An environment whose packages are the machine's; returns where others go, which come before them."""
    command = [machine.interpreter, "-m", "venv", "--without-pip", str(target)]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True)
    except subprocess.CalledProcessError as error:
        raise UserError(f"`{' '.join(command)}` failed: {error.stderr.strip() or error.stdout.strip()}") from error
    site = target / "lib" / f"python{machine.python}" / "site-packages"
    (site / BESIDE).write_text("".join(f"{path}\n" for path in machine.paths), encoding="utf-8")
    return site


def _refuse_missing(about: About, farm: Path) -> None:
    there = frozenset().union(*(symbols(path).defined for one in farm.iterdir() for path in libraries(one.resolve())))
    if missing := sorted(set(about.asked) - there):
        raise UserError(
            f"{about.release} asks this machine's libraries for {missing[0]}, and {len(missing) - 1} more that they do not "
            "have: they are too old for it. Carry an older release, or measure on newer libraries."
        )


def _finish(target: Path, origin: str, own: Mapping[str, str], about: About, machine: Machine, release: str) -> None:
    """Imports an environment's torch, and writes its mark. Raises UserError where that is another one."""
    python = str(target / "bin" / "python")
    try:
        said = _asked_of(python, IMPORT).strip()
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or [f"it ended with {error.returncode}"])[-1]
        raise UserError(f"torch of {release} cannot be imported here: {last}") from error
    if f"v{Version(said).base_version}" != release:
        raise UserError(f"{target} imports torch {said}, and not that of {release}. PYTHONPATH may lead elsewhere.")
    mark = {
        "requirements": [f"torch=={release[1:]}"],
        "origin": origin,
        "packages": [*(each for each in machine.packages if not each.startswith("torch==")), f"torch=={release[1:]}"],
        "digests": dict(own),
        "cache": "",
        "kind": f"carried-cuda{machine.cuda}-py{machine.python}",
        "python": machine.python,
        CARRIED: {"cuda": machine.cuda, "library_calls": about.library_calls, "known": about.known},
    }
    write_atomically(target / MARK, json.dumps(mark, indent=1))


class CarriedEnvironment(ReleaseEnvironment):
    """The environments that `unpack` made in a folder; see ReleaseEnvironment. asv_runner is lent to each."""

    tool_name = "carried"

    def __init__(self, conf: Any, folder: Path) -> None:
        """Raises SessionError where `folder` holds none, or environments of several kinds."""
        marks = {path.parent.name: _mark(path) for path in sorted(folder.glob(f"v*/{MARK}"))}
        kinds = {(mark["kind"], mark["python"]) for mark in marks.values()}
        if len(kinds) != 1:
            what = "no carried release" if not kinds else f"environments of {len(kinds)} kinds"
            raise SessionError(f"{folder} holds {what}. Make it with `torch-history kit unpack PARTS FOLDER`.")
        self._kind, python = next(iter(kinds))
        super().__init__(conf, python, {}, {})
        self.root = folder.resolve()
        self._there = set(marks)
        self._lent = tempfile.TemporaryDirectory(prefix="torch-history-")
        Path(self._lent.name, "asv_runner").symlink_to(Path(asv_runner.__file__).parent)

    @property
    def name(self) -> str:
        return self._kind

    def folder(self, release: Release) -> Path:
        return self.root / release.tag

    def releases(self, axis: Axis, specs: Sequence[str]) -> list[Release]:
        """Those that `specs` name, all without any. Raises SessionError where one is not in the folder."""
        there = [release for release in axis.releases if release.tag in self._there]
        named = {release.tag for spec in specs for release in axis.select(spec)} if specs else self._there
        if missing := sorted(named - self._there):
            raise SessionError(
                f"{missing[0]} is not in {self.root}, which has {', '.join(release.tag for release in there)}. Carry it "
                "there with `python -m tools.carry` and `kit unpack`."
            )
        return [release for release in there if release.tag in named]

    def _make(self, release: Release, folder: Path, lock: int) -> None:
        if not (folder / MARK).exists():
            missing = f"{release.tag} is not in {self.root}"
            self._refuse(release, f"{missing}. Unpack its parts there: torch-history kit unpack")

    def surroundings(self, inherited: dict[str, str]) -> dict[str, str]:
        return {**super().surroundings(inherited), "ASV_PYTHONPATH": self._lent.name}


def _mark(path: Path) -> dict[str, Any]:
    """Raises SessionError where an environment's mark is damaged."""
    try:
        mark = read_object(path)
        if not isinstance(mark.get("kind"), str) or not isinstance(mark.get("python"), str):
            raise ValueError("it is no carried release's")
    except (OSError, ValueError) as error:
        raise SessionError(f"{path} cannot be read: {error}. Unpack the release again.") from error
    return mark
