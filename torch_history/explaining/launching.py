"""How is a release asked? One launch: an interpreter that does step after step and answers each."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contract.metrics import METRICS, PROCESS, SEQUENCE, START
from contract.request import PREFIX

from ..releases.environments import for_measuring
from ..system.children import Answering, Ended
from ..system.errors import UserError

LONGEST = 300.0  # seconds after which a launch is ended: what takes longer cannot be explained in minutes

MODULE = "benchmarks.explained"


class CannotExplain(UserError):
    """This series cannot be explained here; the text says why."""


class LaunchFailed(UserError):
    """A launch gave no answer; the text says what it said last."""


@dataclass(frozen=True)
class Side:
    """One of the two releases: its tag, its interpreter, and variables of its own."""

    tag: str
    python: Path
    variables: Mapping[str, str] = field(default_factory=dict)


Sides = tuple[Side, Side]  # old and new


@dataclass(frozen=True)
class Subject:
    """What is looked at: `workload` is a question of the suite in `root`, or an own file, its `text` read from a copy."""

    root: Path
    workload: str
    variant: str
    size: str
    metric: str
    threads: int = 1
    text: str = ""

    @property
    def is_once(self) -> bool:
        """Whether a process does it once only, such as its first call or an import."""
        return METRICS[self.metric].measured in (SEQUENCE, PROCESS, START)


class Launch:
    """One interpreter of `side`, open for steps until it is closed; it imports while others do, until the first is asked."""

    def __init__(self, side: Side, subject: Subject, variables: Mapping[str, str] | None = None) -> None:
        self._tag, self._is_ready = side.tag, False
        asked = {PREFIX + "THREADS": str(subject.threads), PREFIX + "WORKLOAD_TEXT": subject.text}
        env = surroundings(side, {**asked, **(variables or {})})
        self._process = Answering([str(side.python), "-W", "ignore", "-m", MODULE], env, subject.root)
        self._process.tell({name: getattr(subject, name) for name in ("workload", "variant", "size", "metric")})

    def ask(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one step. Raises LaunchFailed where there is none."""
        try:
            if not self._is_ready:
                self._process.answer(LONGEST)
                self._is_ready = True
            self._process.tell(step)
            return self._process.answer(LONGEST)
        except Ended as ended:
            raise LaunchFailed(f"{self._tag} gave no answer: {ended}.") from ended

    def close(self) -> None:
        """Ends the interpreter."""
        self._process.close()


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
    return {**found, **side.variables, **variables}
