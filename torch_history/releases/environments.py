"""Where does a release run? In a virtual environment of its own per release and Python, built once by uv.

asv's own environments hold one commit at a time, so switching would reinstall gigabytes; here a switch picks another
folder. What is installed is exactly what `releases.lock` lists, and a folder without its mark is never used.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from asv import environment, util
from asv.console import log
from asv.plugins.virtualenv import Virtualenv
from uv import find_uv_bin

from ..errors import UserError
from ..store.files import is_list_of, is_text, read_object, write_atomically
from .axis import Axis, Release

HARNESS = ("asv_runner==0.3.2", "numpy==1.26.4", "setuptools==77.0.3")
"""Beside torch, the same on every release, so that a difference is PyTorch's: what asv runs benchmarks with; the last
NumPy 1, the only one that both the oldest and the newest release accept; what torch.compile and C++ need to build."""

MARK = "torch-history.json"
"""The file written last into a finished environment: what was asked for, and every package that was installed."""

MEASURING_WITHOUT = ("PYTHONDONTWRITEBYTECODE", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "LD_PRELOAD")
"""Variables that a measuring process does not inherit: without compiled bytecode each of dozens of processes compiles
torch's Python again (3 s), and the others replace or reconfigure the allocator whose bytes are counted."""

LOCK_FILE = "releases.lock"
LOCK_HEADER = """\
# Every package that a release needs in a lane, exact, as resolved when the release was added: `torch-history lock`.
# An entry is never changed, so that a release is measured with the same packages for ever.
"""


refusals: dict[tuple[str, str], str] = {}
"""(tag, environment's name) -> why that release could not be measured there in this process; asv keeps no reason."""


class InstallationError(util.ProcessError):
    """An environment could not be built; the text says what failed and what to do. asv then skips the release."""

    def __init__(self, sentence: str) -> None:
        super().__init__([], 1, "", sentence)
        self.sentence = sentence

    def __str__(self) -> str:
        return self.sentence


class ReleaseEnvironment(Virtualenv):
    """The environments of one Python lane, of which one release's is selected at a time.

    `install_project` selects, and builds where needed. Raises InstallationError for a release that has no wheel for
    this Python or cannot be installed.
    """

    tool_name = "release"

    def __init__(self, conf: Any, python: str, requirements: dict[str, str], tagged_env_vars: Any) -> None:
        self._selected: str | None = None
        self._axis = Axis.load(conf.repo)
        self._python = python
        self._requirements = requirements
        self._executable = find_python(python)
        # Past Virtualenv's own constructor, which would look for the interpreter by its name on PATH alone.
        super(Virtualenv, self).__init__(conf, python, requirements, tagged_env_vars)
        self._root = Path(conf.env_dir).resolve()

    @classmethod
    def matches(cls, python: str) -> bool:
        return re.fullmatch(r"\d+\.\d+", python) is not None

    @property
    def name(self) -> str:
        return f"release-py{self._python}"

    def _get_installed_commit_hash(self) -> str | None:
        """The release that is selected and ready, None where there is none; asv installs only where this differs."""
        return self._selected

    def create(self) -> None:
        """Does nothing: which folder is needed is known once a release is selected."""

    def folder(self, release: Release) -> Path:
        return self._root / f"{release.tag}-py{self._python}"

    def install_project(self, conf: Any, repo: Any, commit_hash: str) -> None:
        release = self._axis.find(commit_hash)
        self._selected = None
        if self._python not in release.pythons:
            self._refuse(
                release,
                f"{release.tag} has no wheel for Python {self._python}; it has wheels for {', '.join(release.pythons)}. "
                f"Measure it in another lane: asv run --python={_nearest(self._python, release.pythons)} {release.tag}",
            )
        folder = self.folder(release)
        with _locked(folder):
            if not is_ready(folder, self._requirements_of(release)):
                self._build(release, folder)
        self._path = str(folder)
        self._global_env_vars["ASV_ENV_DIR"] = self._path
        self._global_env_vars["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor-cache")
        self._global_env_vars["TRITON_CACHE_DIR"] = str(folder / "triton-cache")
        self._set_commit_hash(release.tag)
        self._selected = release.tag
        refusals.pop((release.tag, self.name), None)

    def run_executable(self, executable: str, args: list[str], **kwargs: Any) -> Any:
        """As asv's, in surroundings that are the same for every release: see `MEASURING_WITHOUT`."""
        env = {**kwargs.pop("env", os.environ)}
        for name in MEASURING_WITHOUT:
            env.pop(name, None)
        return super().run_executable(executable, args, env=env, **kwargs)

    def _refuse(self, release: Release, sentence: str) -> NoReturn:
        if refusals.get((release.tag, self.name)) != sentence:
            log.error(sentence)
        refusals[release.tag, self.name] = sentence
        raise InstallationError(sentence)

    def _requirements_of(self, release: Release) -> list[str]:
        return [f"torch=={release.version}", *HARNESS, *release.pins]

    def _build(self, release: Release, folder: Path) -> None:
        log.info(f"Installing PyTorch {release.version} for Python {self._python}")
        requirements = self._requirements_of(release)
        _remove(folder)
        try:
            run_uv(["venv", "--python", self._executable, str(folder)])
            constraints = folder / "constraints.txt"
            constraints.write_text("\n".join(locked_packages(release, self._python)) + "\n", encoding="utf-8")
            python = str(folder / "bin" / "python")
            run_uv(["pip", "install", "--python", python, "--constraint", str(constraints), *requirements])
            packages = run_uv(["pip", "freeze", "--python", python]).split()
            write_atomically(folder / MARK, json.dumps({"requirements": requirements, "packages": packages}, indent=1))
        except (subprocess.CalledProcessError, OSError) as error:
            _remove(folder)
            self._refuse(release, _installation_sentence(release, self._python, self._root, error))
        except BaseException:
            _remove(folder)
            raise


def _remove(folder: Path) -> None:
    """Removes an environment, its mark first, so that what an interruption leaves is not taken for a finished one."""
    (folder / MARK).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def is_ready(folder: Path, requirements: list[str]) -> bool:
    """Whether `folder` is a finished environment of exactly `requirements`."""
    try:
        mark = read_object(folder / MARK)
    except ValueError:
        return False
    return mark.get("requirements") == requirements and (folder / "bin" / "python").exists()


def packages_of(folder: Path) -> list[str]:
    """Every package installed in a finished environment, as name==version. Raises ValueError where its mark is damaged."""
    packages: list[str] = read_object(folder / MARK).get("packages", [])
    if not is_list_of(is_text)(packages):
        raise ValueError("its packages are no list of names")
    return packages


def locked_packages(release: Release, python: str, path: Path = Path(LOCK_FILE)) -> list[str]:
    """The exact versions of everything that `release` needs on `python`, from `releases.lock`; none without an entry.
    Raises UserError where the file is damaged."""
    if not path.exists():
        return []
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is not valid TOML: {error}. Restore it: git checkout {path}.") from error
    return list(table.get(f"{release.tag} py{python}", []))


def resolve(release: Release, python: str) -> list[str]:
    """What uv would install today for `release` on `python`, exact versions. Raises InstallationError."""
    requirements = "\n".join([f"torch=={release.version}", *HARNESS, *release.pins])
    options = ["--python-version", python, "--python-platform", "x86_64-manylinux_2_28"]
    try:
        answer = run_uv(["pip", "compile", "-", "--no-header", "--no-annotate", *options], stdin=requirements)
    except subprocess.CalledProcessError as error:
        raise InstallationError(_installation_sentence(release, python, Path("."), error)) from error
    return answer.split()


def find_python(python: str) -> str:
    """The path of an interpreter of that version (`3.9`): one on this machine, else one that uv can download.

    Raises asv's EnvironmentUnavailable with a sentence.
    """
    try:
        return run_uv(["python", "find", "--no-project", "--system", "--no-python-downloads", python]).strip()
    except subprocess.CalledProcessError:
        pass
    try:
        run_uv(["python", "install", python])
        return run_uv(["python", "find", "--no-project", "--system", python]).strip()
    except subprocess.CalledProcessError as error:
        raise environment.EnvironmentUnavailable(
            f"Lane {python} needs Python {python}, which is neither on this machine nor could it be downloaded. "
            f"Install it so that `python{python}` runs, or choose another lane with --python."
        ) from error


def run_uv(arguments: list[str], stdin: str | None = None) -> str:
    """Runs the pinned uv and returns what it printed. Raises CalledProcessError with uv's own words in `stderr`."""
    command = [find_uv_bin(), "--no-progress", *arguments]
    answer = subprocess.run(command, input=stdin, capture_output=True, text=True, check=True)
    return answer.stdout


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lets one process at a time build or remove `folder`; another waits. The system frees the lock of a dead one."""
    locks = folder.parent / ".locks"
    locks.mkdir(parents=True, exist_ok=True)
    with (locks / folder.name).open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _nearest(python: str, offered: tuple[str, ...]) -> str:
    def minor(version: str) -> int:
        return int(version.split(".")[1])

    return min(offered, key=lambda other: abs(minor(other) - minor(python)))


def _installation_sentence(release: Release, python: str, root: Path, error: BaseException) -> str:
    said = str(getattr(error, "stderr", "") or error)
    subject = f"PyTorch {release.version} for Python {python} could not be installed"
    if "No space left" in said or "os error 28" in said:
        free = shutil.disk_usage(_existing(root)).free / 2**30
        return (
            f"{subject}: the disk is full ({free:.1f} GiB free; a release needs 2 to 5). "
            "Free some with `torch-history prune`."
        )
    if re.search(
        r"dns error|error sending request|failed to fetch|connect|timed out|request failed",
        said,
        re.IGNORECASE,
    ):
        return (
            f"{subject}: the package index is out of reach. Check the network or uv's index settings (UV_INDEX_URL), "
            "or measure a torch that is already installed: `torch-history run --installed`. Nothing half-built was kept."
        )
    return f"{subject}. uv said: {' '.join(said.split())[-600:]}"


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def prune(root: Path, wanted: Callable[[str], bool]) -> tuple[list[str], int]:
    """Removes the environments in `root` whose release's tag is `wanted`, and the copies of their packages in uv's cache,
    which share the disk's blocks with them. Returns their names and the bytes that the disk has gained."""
    if not root.exists():
        return [], 0
    before = shutil.disk_usage(root).free
    removed: list[str] = []
    packages: set[str] = set()
    for folder in sorted(root.glob("v*-py*/")):
        if not wanted(folder.name.rpartition("-py")[0]):
            continue
        with _locked(folder):
            if not folder.exists():
                continue
            with contextlib.suppress(ValueError):
                packages.update(package.partition("==")[0] for package in packages_of(folder))
            _remove(folder)
        removed.append(folder.name)
    heavy = sorted(name for name in packages if name.startswith(("torch", "triton", "nvidia", "cuda")))
    if heavy:
        try:
            run_uv(["cache", "clean", *heavy])
        except subprocess.CalledProcessError as error:
            log.warning(f"uv could not clear its cache, which still holds these packages: {error.stderr}")
    os.sync()
    return removed, max(0, shutil.disk_usage(root).free - before)


def lock(release: Release, python: str, path: Path = Path(LOCK_FILE)) -> bool:
    """Adds to `releases.lock` what `release` needs on `python`; returns False where it is there already."""
    if locked_packages(release, python, path):
        return False
    packages = resolve(release, python)
    text = path.read_text(encoding="utf-8") if path.exists() else LOCK_HEADER
    entry = "".join(f'    "{package}",\n' for package in packages)
    write_atomically(path, f'{text}\n"{release.tag} py{python}" = [\n{entry}]\n')
    return True
