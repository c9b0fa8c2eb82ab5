"""Where does a release run? In a virtual environment of its own per release and Python, built once by uv from exactly what
`releases.lock` lists; a folder without its mark is never used. asv's own hold one commit at a time, so that switching would
reinstall gigabytes. Packages are kept in a cache of our own, shared through hard links."""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from asv import environment, util
from asv.console import log
from asv.plugins.virtualenv import Virtualenv
from packaging.utils import canonicalize_name

from contract import surroundings
from contract.request import ADDED, Request

from ..system.errors import UserError
from ..system.files import read_object, warn, write_atomically
from . import added, intact
from .added import AddingError, Sized, Wanted
from .axis import Axis, Release
from .pins import BACKEND, Installation, installation, locked_packages
from .uv import OUT_OF_REACH, forget, run_uv, told

HARNESS = ("asv_runner==0.3.2", "numpy==1.26.4", "setuptools==77.0.3")
"""The same on every release: asv's runner, the last NumPy 1, which all accept, and what torch.compile and C++ need."""

MARK = "torch-history.json"
"""Written last into a finished environment: what was asked for, its origin, and each package with its digest."""

CACHE = ".uv-cache"
"""Where uv keeps what it unpacked, unless UV_CACHE_DIR says: on the same disk, so that releases share files."""

WRITTEN_BY_UV = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json")
"""Files of an installed package that are not its own, and differ from one installation to the next."""


refusals: dict[tuple[str, str], str] = {}
"""(tag, environment's name) -> why that release could not be measured there in this process; asv keeps no reason."""


_intact: set[Path] = set()
"""Environments of which every file was found right in this process."""


class InstallationError(util.ProcessError):
    """An environment could not be built; the text says what failed and what to do. asv then skips the release."""

    def __init__(self, sentence: str) -> None:
        super().__init__([], 1, "", sentence)

    def __str__(self) -> str:
        return self.stderr


class ReleaseEnvironment(Virtualenv):
    """The environments of one lane, of which `install_project` selects one release's, built where needed.
    Raises InstallationError. `request` is what its processes are asked for, None the surroundings."""

    request: Request | None = None

    needed: tuple[str, ...] = ()
    """Packages that a user's own file needs besides; they lie in a folder of their own."""

    added: Path | None = None
    """What puts these on a process's path, for the release that is selected; None where nothing does."""

    tool_name = "release"

    def __init__(self, conf: Any, python: str, requirements: dict[str, str], tagged_env_vars: Any) -> None:
        self._selected: str | None = None
        self._axis = Axis.load(conf.repo)
        self._requirements = requirements
        # Past Virtualenv's own constructor, which would look for an interpreter at once, and by its name on PATH alone.
        super(Virtualenv, self).__init__(conf, python, requirements, tagged_env_vars)
        self.root = Path(conf.env_dir).resolve()
        """The folder that holds them."""

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
        return self.root / f"{release.tag}-py{self._python}"

    def install_project(self, conf: Any, repo: Any, commit_hash: str) -> None:
        release = self._axis.find(commit_hash)
        self._selected = None
        if self._python not in release.pythons:
            minor = int(self._python.partition(".")[2])
            nearest = min(release.pythons, key=lambda other: abs(int(other.partition(".")[2]) - minor))
            self._refuse(
                release,
                f"{release.tag} has no wheel for Python {self._python}; it has wheels for {', '.join(release.pythons)}. "
                f"Measure it in another lane: asv run --python={nearest} {release.tag}",
            )
        folder = self.folder(release)
        with _locked(folder, f"Waiting for another process that installs or removes {release.tag} in {folder}") as lock:
            self._make(release, folder, lock)
            try:
                self.added = self._wanted(release, packages_of(folder)).add(folder, lock) if self.needed else None
            except (AddingError, OSError) as error:
                self._refuse(release, str(error))
        self._path = str(folder)
        self._global_env_vars["ASV_ENV_DIR"] = self._path
        self._global_env_vars["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor-cache")
        self._global_env_vars["TRITON_CACHE_DIR"] = str(folder / "triton-cache")
        self._set_commit_hash(release.tag)
        self._selected = release.tag
        refusals.pop((release.tag, self.name), None)

    def _make(self, release: Release, folder: Path, lock: int) -> None:
        """Builds what is not there whole, or is no longer as it was installed, under `lock`, which uv holds too."""
        found = damage(folder) if is_ready(folder, asked_of(release)) else None
        if found == {}:
            return
        if is_anothers(folder):
            self._refuse(release, f"{folder} holds what torch-history did not make. Move it to another place.")
        if found:
            log.error(
                f"{release.tag} in {folder} is not as its packages say: {intact.words(found)} differ. It is installed "
                "again. Other releases that share these files are looked at before they are measured."
            )
        try:
            plan = installation(release, self._python, requirements_of(release))
            interpreter = find_python(self._python)
        except (UserError, environment.EnvironmentUnavailable) as error:
            self._refuse(release, str(error))
        words = f"Installing PyTorch {release.version} for Python {self._python}"
        log.info(words if plan.checked else f"{words}: {plan.origin}.")
        try:
            install(folder, plan, interpreter, asked_of(release), found or (), [lock])
        except (subprocess.CalledProcessError, OSError) as error:
            self._refuse(release, _installation_sentence(release, self._python, self.root, error))

    def adding(self, release: Release) -> list[Sized]:
        """What is `needed` of a release and not there yet, asked before anything is installed. Raises AddingError."""
        if not self.needed or (added.folder_of(self.folder(release), self.needed) / added.MARK).exists():
            return []
        packages = locked_packages(release, self._python) or requirements_of(release)
        return self._wanted(release, packages).sized()

    def _wanted(self, release: Release, packages: Sequence[str]) -> Wanted:
        subject, options = f"{release.tag} on Python {self._python}", tuple(cache_options(self.root))
        return Wanted(subject, self._python, tuple(packages), self.needed, options)

    def surroundings(self, inherited: dict[str, str]) -> dict[str, str]:
        """The variables of a measuring process: see `for_measuring`."""
        env = for_measuring(inherited)
        if self.added:
            env["ASV_PYTHONPATH"] = str(self.added)  # asv makes it the PYTHONPATH of what the process starts
        env[ADDED] = str(self.added or "")
        return {**env, **(self.request.variables() if self.request else {})}

    def run_executable(self, executable: str, args: list[str], **kwargs: Any) -> Any:
        """As asv's, in surroundings that are the same for every release: see `for_measuring`."""
        env = self.surroundings({**kwargs.pop("env", os.environ)})
        return super().run_executable(executable, args, env=env, **kwargs)

    def _refuse(self, release: Release, sentence: str) -> NoReturn:
        if refusals.get((release.tag, self.name)) != sentence:
            log.error(sentence)
        refusals[release.tag, self.name] = sentence
        raise InstallationError(sentence)


LISTED = "packages.txt"
"""The file written first into an environment: what uv is told to install. Who finds it knows that this program made that."""


def install(
    folder: Path,
    plan: Installation,
    interpreter: str,
    asked: list[str],
    damaged: Iterable[str] = (),
    holding: Sequence[int] = (),
) -> None:
    """Makes an environment anew as planned, marked as `asked` for, by `intact.install`; nothing half-made is kept. uv keeps
    the open files `holding`. Raises CalledProcessError, OSError and UserError."""
    options, python = cache_options(folder.parent), str(folder / "bin" / "python")

    def fresh() -> None:
        _remove(folder)
        folder.mkdir(parents=True)
        (folder / LISTED).write_text("\n".join(plan.lines) + "\n", encoding="utf-8")
        run_uv(["venv", "--allow-existing", "--python", interpreter, str(folder)], holding=holding)
        what = [plan.option, str(folder / LISTED), *options, *plan.arguments]
        run_uv(["pip", "install", "--link-mode", "hardlink", "--python", python, *what], holding=holding)

    try:
        intact.install(folder, fresh, options, damaged)
        packages = run_uv(["pip", "freeze", "--python", python]).split()
        mark = {"requirements": asked, "origin": plan.origin, "packages": packages, "digests": digests(folder)}
        write_atomically(folder / MARK, json.dumps(mark, indent=1))
    except BaseException:
        _remove(folder)
        raise


def for_measuring(variables: Mapping[str, str]) -> dict[str, str]:
    """`surroundings.for_measuring`; says once which variables that could alter a number are not inherited."""
    if lost := surroundings.lost(variables):
        warn(
            f"These variables are set here and are not passed on to what is measured: {', '.join(lost)}. To measure with "
            f"some of them, name them in {surroundings.KEEP}."
        )
    return surroundings.for_measuring(variables)


def setup() -> None:
    """asv calls this when it loads the plugin: `asv run -E existing` measures as all others do, in the same surroundings."""
    run = environment.ExistingEnvironment.run
    if hasattr(run, "__wrapped__"):
        return

    @functools.wraps(run)
    def started(self: Any, args: list[str], **kwargs: Any) -> Any:
        return run(self, args, env=for_measuring(kwargs.pop("env", os.environ)), **kwargs)

    environment.ExistingEnvironment.run = started


def requirements_of(release: Release) -> list[str]:
    """What a release's environment must have; all else follows from it."""
    return [f"torch=={release.version}", *HARNESS, *release.pins]


def asked_of(release: Release) -> list[str]:
    """What a finished environment must have been built for, to be the one that is wanted."""
    chosen = os.environ.get(BACKEND)
    return [*requirements_of(release), *([f"{BACKEND}={chosen}"] if chosen else [])]


def cache(root: Path) -> Path:
    """Where uv keeps what it unpacked for the environments in `root`: in a folder of theirs, or where a person said."""
    return Path(os.environ.get("UV_CACHE_DIR") or root / CACHE).resolve()


def cache_options(root: Path) -> list[str]:
    """How uv is told of `cache`."""
    return ["--cache-dir", str(cache(root))]


def digests(folder: Path) -> dict[str, str]:
    """name==version of each package -> the sha256 of the list of its files with theirs, wherever it is installed."""
    found = {}
    for record in intact.records(folder):
        # Scripts in bin/ name their interpreter.
        own = [row for row in intact.rows(record) if not row[0].startswith("..")]
        rows = [row for row in own if not (".dist-info/" in row[0] and row[0].rpartition("/")[2] in WRITTEN_BY_UV)]
        name, version = record.parent.name.removesuffix(".dist-info").split("-", 1)
        text = "".join(f"{path} {digest}\n" for path, digest in sorted(rows))
        found[f"{canonicalize_name(name)}=={version}"] = hashlib.sha256(text.encode()).hexdigest()
    return found


def _remove(folder: Path) -> None:
    """Removes an environment, its mark first, so that what an interruption leaves is not taken for a finished one; its
    list last, so that it is known who made that."""
    _intact.discard(folder)
    (folder / MARK).unlink(missing_ok=True)
    for path in folder.glob("*"):
        shutil.rmtree(path, ignore_errors=True)  # of what is no folder, nothing
        if path.name != LISTED:
            path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def is_ready(folder: Path, requirements: list[str]) -> bool:
    """Whether `folder` is a finished environment of exactly `requirements`."""
    try:
        mark = read_object(folder / MARK)
    except ValueError:
        return False
    return mark.get("requirements") == requirements and (folder / "bin" / "python").exists()


def damage(folder: Path) -> intact.Damage:
    """Files and RECORDs that are not as they were installed; where all is right that holds for this process."""
    if folder in _intact:
        return {}
    found = intact.damage(folder)
    with contextlib.suppress(ValueError):
        said, now = read_object(folder / MARK).get("digests"), digests(folder)
        if isinstance(said, dict):
            for package in {package for package, _ in said.items() ^ now.items()}:
                found.setdefault(package.partition("==")[0], []).append("RECORD")
    if not found:
        _intact.add(folder)
    return found


def packages_of(folder: Path) -> list[str]:
    """Every package installed in a finished environment, as name==version. Raises ValueError where its mark is damaged."""
    return added.listed(folder / MARK)


def find_python(python: str) -> str:
    """An interpreter of that version, here or by uv. Raises asv's EnvironmentUnavailable, and UserError."""
    with contextlib.suppress(subprocess.CalledProcessError):
        return run_uv(["python", "find", "--no-project", "--system", "--no-python-downloads", python]).strip()
    try:
        run_uv(["python", "install", python])
        return run_uv(["python", "find", "--no-project", "--system", python]).strip()
    except subprocess.CalledProcessError as error:
        raise environment.EnvironmentUnavailable(
            f"Lane {python} needs Python {python}, which is neither on this machine nor could it be downloaded. "
            f"Install it so that `python{python}` runs, or choose another lane with --lane (asv: --python)."
        ) from error


@contextlib.contextmanager
def _locked(folder: Path, waiting: str = "") -> Iterator[int]:
    """Lets one process at a time build or remove `folder`; another waits, and says so. Yields the locked open file."""
    locks = folder.parent / ".locks"
    locks.mkdir(parents=True, exist_ok=True)
    with (locks / folder.name).open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting:
                log.info(f"{waiting}.")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield stream.fileno()


def _installation_sentence(release: Release, python: str, root: Path, error: BaseException) -> str:
    said = str(getattr(error, "stderr", "") or error)
    subject = f"PyTorch {release.version} for Python {python} could not be installed"
    if "No space left" in said or "os error 28" in said:
        file = getattr(error, "filename", None) or next(iter(re.findall(r"(?<![\w:/])/[^\s`:]+", said)[-1:]), root)
        there = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
        free = shutil.disk_usage(there).free / 2**30
        return (
            f"{subject}: the disk is full ({free:.1f} GiB free; a release needs 2 to 5), so {file} could not be written. "
            "Free some with `torch-history prune`."
        )
    if "Hash mismatch" in said or "no trusted hash" in said:
        return (
            f"{subject}: what the package index has is not the file that releases.lock names by its sha256, and "
            f"nothing was kept. Ask the index that the release came from (UV_DEFAULT_INDEX, UV_FIND_LINKS, {BACKEND}). "
            f"uv said: {' '.join(said.split())[-600:]}"
        )
    advice = ""
    if OUT_OF_REACH.search(said):
        advice = " Or measure a torch that is already installed: `torch-history run --installed`."
    return f"{subject}: {told(error)}. Nothing half-built was kept.{advice}"


def prune(root: Path, wanted: Callable[[str], bool], lane: str = "") -> list[str]:
    """Removes the environments in `root` whose release's tag is `wanted`, of one `lane` or of all, and from our own cache
    the packages that no environment has, but not from one that UV_CACHE_DIR names. Returns their names."""
    removed: list[str] = []
    for folder in (each for each in _made(root, lane) if wanted(_tag(each))):
        with _locked(folder):
            if folder.exists():
                _remove(folder)
                removed.append(folder.name)
    if (root / CACHE).exists():
        _clean(root / CACHE)
    return removed


def made_in(root: Path, lane: str) -> list[str]:
    """Tags of the releases that this program installed into `root` for one lane."""
    return [_tag(folder) for folder in _made(root, lane) if (folder / MARK).exists()]


def size_of(folder: Path) -> int:
    """Bytes that the files in `folder` take on the disk, each once however many names it has there."""
    found: dict[tuple[int, int], int] = {}
    for path, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(FileNotFoundError):
                file = os.lstat(os.path.join(path, name))
                found[file.st_dev, file.st_ino] = file.st_blocks * 512
    return sum(found.values())


def _made(root: Path, lane: str) -> list[Path]:
    """The environments in `root`, of one lane or of all."""
    return [folder for folder in sorted(root.glob(f"v*-py{lane or '*'}/")) if is_ours(folder)]


def is_anothers(folder: Path) -> bool:
    """Whether something is there that this program did not make."""
    return folder.exists() and not is_ours(folder) and (not folder.is_dir() or any(folder.iterdir()))


def is_ours(folder: Path) -> bool:
    """Whether this program made it, so that it may be removed. What a link leads to was made elsewhere."""
    return not folder.is_symlink() and any((folder / name).exists() for name in (MARK, LISTED))


def _tag(folder: Path) -> str:
    return folder.name.rpartition("-py")[0]


def _clean(place: Path) -> None:
    """Removes from our own cache, by their names, packages of which no environment has a file, and what killed installations
    left there."""
    option, about = ["--cache-dir", str(place.resolve())], place.glob("archive-v*/*/*.dist-info/METADATA")
    try:
        forget(option, {path.parent.name.partition("-")[0] for path in about if path.stat().st_nlink == 1})
        run_uv(["cache", "prune", *option])
    except (subprocess.CalledProcessError, UserError) as error:
        why = getattr(error, "stderr", None) or error
        log.warning(f"uv could not clear {place}, which still holds these packages: {why}")
