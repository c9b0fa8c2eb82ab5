"""How does an upgrade measure? In sessions of two or three releases of a user's own file, below a limit of disk."""

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from asv.console import log
from asv.repo import get_repo
from rich.console import Console

from contract.request import Request

from ...analysis.causes import Known, evidence, known_of
from ...releases import environments
from ...releases.axis import Axis
from ...store.causes import NOT_LOOKED_INTO
from ...store.launches import Launch, read_environment
from ...store.own import remember
from ...system.errors import UserError
from ..budget import Effort
from ..choice import SCALES, START
from ..plan import Plan
from ..progress import shown_installing
from ..session import SESSIONS, Session
from ..subjects import OwnWorkload
from .room import SIDES, Room

Case = tuple[str, ...]
"""Parameters of a series as they are stored: a function and a size."""


class NotInstalled(UserError):
    """A release that could not be installed; the text says why. `tag` names it."""

    def __init__(self, tag: str, sentence: str) -> None:
        super().__init__(sentence)
        self.tag = tag


class Spent(Exception):
    """The budget is spent, and what was asked for is not measured."""


@dataclass
class Sessions:
    """Measures releases against each other in the seconds `left`. A session that spent its share is not gone on with
    unless `goes_on`; `again` measures what is stored once more."""

    conf: Any
    axis: Axis
    own: OwnWorkload
    releases: environments.ReleaseEnvironment
    request: Request
    machine: str
    out: Console
    room: Room
    left: float
    goes_on: bool = False
    again: bool = False
    measured: float = 0.0
    """Seconds in which it measured."""
    installed: list[str] = field(default_factory=list)
    """Releases that were measured, the last one last."""
    _begun: dict[tuple[tuple[str, ...], tuple[Case, ...]], Session] = field(default_factory=dict)

    @property
    def environment(self) -> str:
        return self.releases.name

    @property
    def device(self) -> str:
        return self.request.device

    def measure(self, tags: tuple[str, ...], cases: Collection[Case], share: float = 1.0) -> None:
        """Measures `cases`, or all, in one session and a `share` of the time. Raises NotInstalled, UserError, Spent."""
        key = tags, tuple(cases)
        session = self._session(tags, cases, share * self.left, self.again and key not in self._begun)
        if session.finished or (session.spent and not self.goes_on and key not in self._begun):
            return
        if self.left < START:
            raise Spent
        self._begun[key] = session
        self.install(tags)
        began = time.monotonic()
        try:
            session.measure(self.out, last=share == 1.0)
        finally:
            took = time.monotonic() - began
            self.left, self.measured = self.left - took, self.measured + took

    def launches(self, tags: tuple[str, ...], cases: Collection[Case]) -> Sequence[Launch]:
        """What the session of `measure` has stored so far."""
        return self._session(tags, cases).launches()

    def effort(self, tags: tuple[str, ...], cases: Collection[Case]) -> Effort:
        """What that session leaves undecided."""
        return (self._begun.get((tags, tuple(cases))) or self._session(tags, cases)).effort()

    def can_go_on(self, tags: tuple[str, ...], cases: Collection[Case]) -> bool:
        """Whether that session leaves something undecided, and there is time for it."""
        return self.left >= START and self.effort(tags, cases).undecided > 0

    def facts(self, tag: str) -> Mapping[str, Any]:
        """What is known of a release's environment."""
        return read_environment(Path(self.conf.results_dir), self.machine, tag, self.environment)

    def evidence(self) -> Sequence[Known]:
        """What `torch-history explain` has found of the file's changes."""
        return evidence(Path(self.conf.results_dir), self.machine, self.own.digest)

    def not_there(self) -> Sequence[Known]:
        """What `torch-history explain` says of changes that it did not see again."""
        return known_of(Path(self.conf.results_dir), self.machine, NOT_LOOKED_INTO, self.own.digest)

    def _session(
        self, tags: tuple[str, ...], cases: Collection[Case], budget: float = 0.0, again: bool = False
    ) -> Session:
        """The session of this comparison, which is the same with every budget."""
        own, only = self.own, "counts" if self.device == "recorder" else ""
        plan = Plan(tags, self.environment, own.question, SCALES, launches=1, budget=budget, workload=own.digest)
        plan = replace(plan, only=only, cases=tuple(sorted(cases)), divides=len(tags) == SIDES)
        folder = self.own.folder / SESSIONS
        return Session(self.conf, self.axis, plan, self.releases, again, folder, request=self.request, apart=True)

    def install(self, tags: tuple[str, ...]) -> None:
        """Installs what is not there, and makes room for it first. Raises NotInstalled, and UserError."""
        self.room.make([self.axis.find(tag) for tag in tags], self.installed)
        for tag in tags:
            if tag in self.installed:
                self.installed.remove(tag)
            release = self.axis.find(tag)
            step = f"{'Preparing' if self.room.is_there(release) else 'Installing'} {tag}"
            try:
                with log.set_level(logging.CRITICAL), shown_installing(self.out, step):
                    self.releases.install_project(self.conf, get_repo(self.conf), tag)
            except environments.InstallationError as error:
                remember(self.own.folder, self.environment, tag, str(error))
                raise NotInstalled(tag, str(error)) from error
            self.installed.append(tag)
