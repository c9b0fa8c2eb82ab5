"""What is measured besides the suite on installed releases: an own file, the torch that is there, the recorder."""

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asv_runner
from asv import util
from asv.environment import ExistingEnvironment
from packaging.version import InvalidVersion, Version

from contract.own_file import KEYS, LITERALS, NEEDED, SCRIPT, TESTS, assigned, form_of, nearest
from contract.request import Request
from contract.surroundings import KEEP
from recorder.build import DROPPED, Built, build
from recorder.environments import create

from ..releases import added
from ..releases.axis import Axis, Release
from ..releases.environments import ReleaseEnvironment, for_measuring
from ..system.errors import SessionError, UserError
from ..system.files import open_regular, read_bytes, write_atomically
from ..system.program import cache

LARGEST = 2**22
"""Bytes of a user's file."""

OURS = {"torch", "numpy", "asv_runner", "benchmarks", "contract", "measure", "recorder", "workloads"}
TAKEN = (sys.stdlib_module_names - {"test"}) | OURS
"""Modules that what measures a file imports, or may; `test` is nobody's but Python's own."""

WANTED = {
    "threads": "a whole number, such as threads = 2",
    "needs": 'a list of files, such as needs = ["data.npz"]',
    "requirements": 'a list of packages, such as requirements = ["torchvision"]',
}
"""What each name must be that is read before the file is run."""


@dataclass(frozen=True)
class OwnWorkload:
    """A user's file, measured like a question; all that is found lies in `folder`, outside the repository."""

    question: str
    digest: str
    folder: Path
    path: Path
    text: Path
    """The file's text as it was read, which stays as it is while the file may be edited or removed."""
    threads: int | None = None
    """CPU threads that it asks for; None where it does not."""
    requirements: tuple[str, ...] = ()
    """Packages besides torch that it needs. They stand in its text, so a change of them is another version."""
    taken: str = ""
    """What is measured of a file that does not say it, in a sentence."""

    @property
    def packages(self) -> list[str]:
        """The names of what it asks for, as an index has them."""
        return [added.name_of(requirement) for requirement in self.requirements]

    @classmethod
    def of(cls, path: Path) -> "OwnWorkload":
        """Reads the file, and keeps its text. Raises SessionError where it is no Python, or lacks something."""
        path = path.resolve()
        if question_of(path) in TAKEN:
            raise SessionError(
                f"The workload {path} cannot be measured: `import {path.stem}` would then mean this file, also in PyTorch. "
                f"Give it another name, such as my_{path.name}."
            )
        try:
            text = read_bytes(path)
            if len(text) > LARGEST:
                raise ValueError(f"it is larger than {LARGEST // 2**20} MiB")
            tree = ast.parse(text, path.name)
            compile(text, path.name, "exec", dont_inherit=True)
            if path.suffix != ".py" or not tree.body:
                raise ValueError("nothing is in it" if path.suffix == ".py" else "its name does not end in .py")
        except (ValueError, RecursionError, MemoryError) as error:
            reason = error if isinstance(error, ValueError) else "its expressions lie too deep within each other"
            said = f"The workload {path} cannot be measured: {reason}. Give the path of a Python file."
            raise SessionError(said) from error
        except SyntaxError as error:
            said = f"The workload cannot be measured: line {error.lineno} of {path.name} is no Python: {error.msg}."
            raise SessionError(said) from error
        if dotted := [node.lineno for node in tree.body if isinstance(node, ast.ImportFrom) and node.level]:
            said = f"line {dotted[0]} of {path.name} imports from `.`, but the file is run alone. Put it beside"
            raise SessionError(f"The workload cannot be measured: {said} its package, whose name replaces the dot.")
        place = hashlib.sha256(str(path).encode()).hexdigest()[:8]
        read = _literals(tree, path.name)
        _refuse_misspelled(tree, path.name)
        data = "".join(f"{name} {_needed(path, str(name))}\n" for name in read.get("needs", ())).encode()
        folder, digest = cache() / f"{path.stem}-{place}", hashlib.sha256(text + data).hexdigest()
        kept = folder / "measured" / digest[:16] / path.name
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, text)
        if data:
            write_atomically(kept.with_suffix(NEEDED), data)
        asks = read.get("threads"), _requirements(read, path.name), _taken(tree, path.name)
        return cls(question_of(path), digest, folder, path, kept, *asks)


def _taken(tree: ast.Module, name: str) -> str:
    form, tests = form_of(tree)
    lead = f"{name} names no `functions`, so"
    if form == TESTS:
        return f"{lead} its tests without arguments are measured: {', '.join(tests)}."
    script = f"{lead} it is run as a script without arguments: the time and memory of the whole process are measured."
    return script if form == SCRIPT else ""


def question_of(path: Path) -> str:
    """What a user's file is called as a module, and as a question."""
    return re.sub(r"\W", "_", path.stem)


def _literals(tree: ast.Module, name: str) -> dict[str, Any]:
    """What the file says that is read before it is run. Raises SessionError where that is not written out."""
    found: dict[str, Any] = {}
    for key, value in assigned(tree).items():
        if key not in LITERALS or value is None:
            continue
        try:
            found[key] = ast.literal_eval(value)
        except (ValueError, TypeError):  # it is no constant, which the next line refuses
            found[key] = None
        if not isinstance(found[key], LITERALS[key]) or (key == "threads" and found[key] < 1):
            raise SessionError(f"The workload cannot be measured: `{key}` in {name} must be {WANTED[key]}.")
    return found


def _requirements(said: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The packages that the file asks for. Raises SessionError where one of them is refused."""
    found = tuple(said.get("requirements", ()))
    for each in found:
        why = added.problem(each) if isinstance(each, str) else f"{each!r} is no name of a package"
        if why:
            raise SessionError(f"The workload cannot be measured: in `requirements` of {name}, {why}.")
    return found


def _refuse_misspelled(tree: ast.Module, name: str) -> None:
    """Raises SessionError where a name that the file gives and never uses is nearly one of those that are read of it."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    given = assigned(tree)
    for key in given.keys() - used - set(KEYS):
        if meant := nearest(key, set(KEYS) - given.keys()):
            raise SessionError(
                f"The workload cannot be measured: {name} gives `{key}`, which nothing reads.{meant} If the name is "
                "right, use it in the file or choose another."
            )


def _needed(path: Path, name: str) -> str:
    """The digest of a file beside the workload. Raises SessionError where it cannot be read."""
    try:
        found = hashlib.sha256()  # a kit runs on a Python without `file_digest`
        with open_regular(path.parent / name, follow=True) as stream:
            while piece := stream.read(2**20):
                found.update(piece)
        return found.hexdigest()
    except (OSError, ValueError) as error:
        said = f"The workload cannot be measured because of {path.parent / name}, which it needs: {error}."
        raise SessionError(said) from error


class InstalledEnvironment(ExistingEnvironment):
    """The torch that an interpreter has, without network; asv_runner is lent to it. `request` as in releases."""

    request: Request | None = None

    def __init__(self, conf: Any, executable: str) -> None:
        super().__init__(conf, executable, {}, {})
        self._lent = tempfile.TemporaryDirectory(prefix="torch-history-")
        Path(self._lent.name, "asv_runner").symlink_to(Path(asv_runner.__file__).parent)
        facts = self._probe()
        self.torch: str = facts["torch"]
        self._python: str = facts["python"]
        self.identity = [self.torch, executable]
        """Another torch is measured in another session."""

    @property
    def name(self) -> str:
        return f"installed-py{self._python}"

    def _probe(self) -> dict[str, str]:
        facts = "{'torch': torch.__version__, 'python': '%d.%d' % sys.version_info[:2]}"
        code = f"import json, os, sys, numpy, torch; print(json.dumps({facts}), flush=True); os._exit(0)"
        try:
            answer = self.run(["-c", code], dots=False, display_error=False)
        except util.ProcessError as error:
            last = (error.stderr.strip().splitlines() or ["it ended without a message"])[-1]
            raise SessionError(
                f"{self._executable} cannot be measured: {last}. Name an interpreter that has torch and numpy with "
                f"--python. If they lie where PYTHONPATH says, pass that on: {KEEP}=PYTHONPATH."
            ) from error
        return dict(json.loads(answer.strip().splitlines()[-1]))  # importing torch may print, too

    def run(self, args: list[str], **kwargs: Any) -> Any:
        """As asv's, in the surroundings that releases are measured in: see `for_measuring`."""
        env = for_measuring(kwargs.pop("env", os.environ))
        env.update(self.request.variables() if self.request else {})
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [env.get("PYTHONPATH"), self._lent.name]))
        return util.check_output([self._executable, *args], env=env, **kwargs)

    def release(self, axis: Axis, recorded_as: str | None) -> Release:
        """The release to record under: the one asked for, else the installed one. Raises SessionError where that is none."""
        if recorded_as:
            return axis.find(recorded_as)
        tag = f"v{Version(self.torch).base_version}"
        if tag not in axis or Version(self.torch).is_prerelease:
            raise SessionError(
                f"torch {self.torch} in {self._executable} is no release on the axis, so there is nowhere to record it. "
                f"Say under which release it belongs, such as --as {axis.newest.tag}; the result will say so."
            )
        return axis.find(tag)


FOLDER = "recorder"
"""Folder in `env/`: these environments hold another set of packages than those that are measured on a device."""


class RecorderEnvironment(ReleaseEnvironment):
    """The environments of one lane on the recorder, of which one release's is selected at a time; see ReleaseEnvironment."""

    def __init__(self, conf: Any, python: str, card: str, own: OwnWorkload | None = None) -> None:
        """Raises SessionError where a user's `own` file needs more than torch."""
        if own and own.requirements:
            said = f"{own.path.name} has `requirements`, and the recorder has only torch. Measure it on cpu or cuda."
            raise SessionError(said)
        super().__init__(conf, python, {}, {})
        self.root = self.root / FOLDER
        self._card = card
        self._built: dict[str, Built] = {}

    def _make(self, release: Release, folder: Path, lock: int) -> None:
        try:
            create(release, self._python, folder)
            if release.tag not in self._built:
                self._built[release.tag] = build(folder)
        except UserError as refused:
            self._refuse(release, str(refused))

    def surroundings(self, inherited: dict[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in super().surroundings(inherited).items() if name not in DROPPED}
        built = self._built.get(self._selected or "")
        return {**kept, **built.variables(self._card)} if built else kept


MOST_SECONDS = 120
"""In which an interpreter must have imported torch."""


def installed_version(surroundings: Mapping[str, str]) -> str:
    """`torch.__version__` (2.3.1 of 2.3.1+cu121) in the active venv, else of `python` on PATH. Raises UserError."""
    path, active = surroundings.get("PATH", os.defpath), surroundings.get("VIRTUAL_ENV")
    python = str(Path(active, "bin", "python")) if active else shutil.which("python", path=path)
    python = python or shutil.which("python3", path=path)
    if python is None:
        raise UserError("`--from installed` found no `python` on PATH. Name the release, such as --from 2.3.1.")
    # Without the caller's folder, where a file torch.py would be taken for the package.
    command = [python, "-I", "-c", "import os, torch; print(torch.__version__, flush=True); os._exit(0)"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, check=True)
        return Version(answer.stdout.strip().splitlines()[-1]).public
    except subprocess.CalledProcessError as error:
        why = (error.stderr.strip().splitlines() or ["it ended without a message"])[-1]
    except (OSError, InvalidVersion, IndexError, subprocess.TimeoutExpired) as error:
        why = str(error)
    raise UserError(
        f"`--from installed` asked {python} for its torch, and {why}. Activate the environment that has torch, or name the "
        "release, such as --from 2.3.1."
    )
