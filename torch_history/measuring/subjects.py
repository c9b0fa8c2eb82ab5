"""What is measured instead of the suite on installed releases: a user's own file, or the torch that is already there."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asv_runner
from asv import util
from asv.environment import ExistingEnvironment
from packaging.version import Version

from contract.request import Request

from ..errors import SessionError
from ..program import cache
from ..releases.axis import Axis, Release
from ..store.files import write_atomically


@dataclass(frozen=True)
class OwnWorkload:
    """A user's file, measured like a question of this suite but kept apart: all that is found lies in `folder`, outside the
    repository."""

    question: str
    digest: str
    folder: Path
    path: Path
    text: Path
    """The file's text as it was read, which stays as it is while the file may be edited or removed."""

    @classmethod
    def of(cls, path: Path) -> OwnWorkload:
        """Reads the file, and keeps its text for what measures it. Raises SessionError where it is no readable Python."""
        path = path.resolve()
        try:
            text = path.read_bytes()
            compile(text, path.name, "exec", dont_inherit=True)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SessionError(
                f"The workload {path} cannot be read: {reason}. Give the path of a Python file."
            ) from error
        except SyntaxError as error:
            raise SessionError(
                f"The workload cannot be measured: line {error.lineno} of {path.name} is no Python: {error.msg}."
            ) from error
        place = hashlib.sha256(str(path).encode()).hexdigest()[:8]
        folder, digest = cache() / f"{path.stem}-{place}", hashlib.sha256(text).hexdigest()
        kept = folder / "measured" / digest[:16] / path.name
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, text)
        return cls(question=re.sub(r"\W", "_", path.stem), digest=digest, folder=folder, path=path, text=kept)


class InstalledEnvironment(ExistingEnvironment):
    """The torch that an interpreter has already, measured as it is and without network.

    The interpreter needs torch and numpy; asv_runner, which is pure Python, is lent to it where it has none. `request` is
    what its processes are asked for; None leaves them to the surroundings.
    """

    request: Request | None = None

    def __init__(self, conf: Any, executable: str) -> None:
        super().__init__(conf, executable, {}, {})
        self._lent = tempfile.TemporaryDirectory(prefix="torch-history-")
        Path(self._lent.name, "asv_runner").symlink_to(Path(asv_runner.__file__).parent)
        facts = self._probe()
        self.torch: str = facts["torch"]
        self._python: str = facts["python"]

    @property
    def name(self) -> str:
        return f"installed-py{self._python}"

    def _probe(self) -> dict[str, str]:
        facts = "{'torch': torch.__version__, 'python': '%d.%d' % sys.version_info[:2]}"
        code = f"import json, sys, numpy, torch; print(json.dumps({facts}))"
        try:
            answer = util.check_output([self._executable, "-c", code], dots=False, display_error=False)
        except util.ProcessError as error:
            last = (error.stderr.strip().splitlines() or ["it ended without a message"])[-1]
            raise SessionError(
                f"{self._executable} cannot be measured: {last}. Name an interpreter that has torch and numpy with --python."
            ) from error
        return dict(json.loads(answer))

    def run(self, args: list[str], **kwargs: Any) -> Any:
        env = {**kwargs.pop("env", os.environ)}
        env.update(self.request.variables() if self.request else {})
        env.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # so that a number means the same GPU here as to nvidia-smi
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [env.get("PYTHONPATH"), self._lent.name]))
        return super().run(args, env=env, **kwargs)

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
