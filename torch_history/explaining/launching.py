"""How is a release asked? One launch: an interpreter that does step after step and answers each."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contract.metrics import METRICS, PROCESS, SEQUENCE, START
from contract.request import PREFIX

from ..errors import UserError
from ..releases.environments import for_measuring
from ..system.children import dies_with_parent

LONGEST = 300.0
"""Seconds after which a launch is ended: what takes longer cannot be explained in minutes."""

MODULE = "benchmarks.explained"


class LaunchFailed(UserError):
    """A launch gave no answer; the text says what it said last."""


@dataclass(frozen=True)
class Side:
    """One of the two releases: its tag, its interpreter, and variables of its own."""

    tag: str
    python: Path
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Subject:
    """What is looked at: `workload` is a question of the suite in `root` or the path of an own file."""

    root: Path
    workload: str
    variant: str
    size: str
    metric: str
    threads: int = 1

    @property
    def is_once(self) -> bool:
        """Whether a process does it once only, such as its first call or an import."""
        return METRICS[self.metric].measured in (SEQUENCE, PROCESS, START)


class Launch:
    """One interpreter of `side`, open for steps until it is closed; it imports while others do, until the first is asked."""

    def __init__(
        self, side: Side, subject: Subject, variables: Mapping[str, str] | None = None, command: Iterable[str] = ()
    ) -> None:
        self._side = side
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [*command, str(side.python), "-W", "ignore", "-m", MODULE],
            cwd=subject.root,
            env=surroundings(side, {PREFIX + "THREADS": str(subject.threads), **(variables or {})}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            preexec_fn=dies_with_parent(),
        )
        self._ready = False
        case = {name: getattr(subject, name) for name in ("workload", "variant", "size", "metric")}
        self._write(case)

    def ask(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one step. Raises LaunchFailed where there is none."""
        if not self._ready:
            self._read()
            self._ready = True
        self._write(step)
        return self._read()

    def close(self) -> None:
        """Ends the interpreter."""
        self._process.kill()
        self._process.communicate()
        self._said.close()

    def _write(self, what: Mapping[str, Any]) -> None:
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # reading then finds that it has ended, and says why
            self._process.stdin.write(json.dumps(what).encode() + b"\n")
            self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout
        if not select.select([self._process.stdout], [], [], LONGEST)[0]:
            raise LaunchFailed(f"{self._side.tag} gave no answer within {LONGEST:.0f} seconds.")
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._said.seek(0)
            words = self._said.read().decode(errors="replace").strip().splitlines() or ["it ended without a word"]
            raise LaunchFailed(f"{self._side.tag} gave no answer: {words[-1][:300]}.")
        return dict(json.loads(line))


def surroundings(side: Side, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of a launch, as ReleaseEnvironment gives them to a measurement."""
    found = {name: value for name, value in for_measuring(os.environ).items() if name != "PYTHONPATH"}
    folder = side.python.parent.parent
    found.update(
        PATH=f"{folder / 'bin'}{os.pathsep}{found.get('PATH', '')}",
        PYTHONNOUSERSITE="1",
        TORCHINDUCTOR_CACHE_DIR=str(folder / "inductor-cache"),
        TRITON_CACHE_DIR=str(folder / "triton-cache"),
        ASV_ENV_DIR=str(folder),
    )
    paths = [each["PYTHONPATH"] for each in (variables, side.variables) if each.get("PYTHONPATH")]
    found.update({"PYTHONPATH": os.pathsep.join(paths)} if paths else {})
    without_paths = {name: value for name, value in {**side.variables, **variables}.items() if name != "PYTHONPATH"}
    return {**found, **without_paths}
