"""How does an upgrade measure? In sessions of two or three releases of a user's own file, below a limit of disk."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asv.console import log
from asv.repo import get_repo
from rich.console import Console

from contract.request import Request

from ..analysis.causes import Known, evidence, not_there
from ..analysis.series import Series
from ..measuring.budget import Effort, effort
from ..measuring.choice import SCALES
from ..measuring.plan import Plan
from ..measuring.progress import shown_installing
from ..measuring.session import SESSIONS, Session
from ..measuring.subjects import OwnWorkload
from ..releases import environments
from ..releases.axis import Axis
from ..store.launches import Launch, read_environment
from ..store.skipped import remember
from ..system.errors import UserError
from .expectation import SIDES, rounds_of
from .room import Room

Case = tuple[str, ...]
"""Parameters of a series as they are stored: a function and a size."""


class NotInstalled(UserError):
    """A release that could not be installed; the text says why. `tag` names it."""

    def __init__(self, tag: str, sentence: str) -> None:
        super().__init__(sentence)
        self.tag = tag


@dataclass
class Sessions:
    """Measures releases against each other, and keeps the launches. `rounds` measure everything at the ends, then up to
    `budget` seconds go to what is inconclusive; a session that has spent them is not gone on with unless `goes_on`. `again`
    measures what is stored once more."""

    conf: Any
    axis: Axis
    own: OwnWorkload
    releases: environments.ReleaseEnvironment
    request: Request
    machine: str
    out: Console
    room: Room
    rounds: int
    budget: float
    goes_on: bool = False
    again: bool = False
    busy: str = ""
    """What keeps this machine busy, empty where nothing does. Then what no forecast decides gets no more rounds."""
    installed: list[str] = field(default_factory=list)
    """Releases that were measured, the last one last."""

    def __post_init__(self) -> None:
        self._begun: set[tuple[tuple[str, ...], tuple[Case, ...]]] = set()

    @property
    def environment(self) -> str:
        return self.releases.name

    @property
    def device(self) -> str:
        return self.request.device

    def measure(self, tags: tuple[str, ...], cases: Collection[Case]) -> None:
        """Measures `cases`, all where there are none, on releases in one session, unless that is stored. Raises
        NotInstalled, NoRoom, and KeyboardInterrupt, after which the same call goes on."""
        key = tags, tuple(cases)
        session = self._session(tags, cases, 0.0, again=self.again and key not in self._begun)
        self._begun.add(key)
        first = not (session.finished or session.spent)
        if first:
            self.install(tags)
            session.measure(self.out)
        left = self._effort(session)
        if self.budget and left.undecided and (first or self.goes_on or not session.spent):
            if self.busy and not left.is_decidable(self.budget):
                self.out.print(
                    f"{left.undecided} of {left.series} times are inconclusive. While the machine is busy, no "
                    f"{self.budget / 60:.0f} min would decide one. The same command continues with them when it is quiet.",
                    highlight=False,
                )
                return
            self.install(tags)
            self._session(tags, cases, self.budget).measure(self.out)

    def launches(self, tags: tuple[str, ...], cases: Collection[Case]) -> Sequence[Launch]:
        """What the session of `measure` has stored so far."""
        return self._session(tags, cases, 0.0).launches()

    def facts(self, tag: str) -> Mapping[str, Any]:
        """What is known of a release's environment."""
        return read_environment(Path(self.conf.results_dir), self.machine, tag, self.environment)

    def evidence(self) -> Sequence[Known]:
        """What `torch-history explain` has found of the file's changes."""
        return evidence(Path(self.conf.results_dir), self.machine, self.own.digest)

    def not_there(self) -> Mapping[tuple[Series, tuple[str, str]], Known]:
        """Series and the two releases between which `explain` did not see its change again -> what it says of that."""
        return not_there(Path(self.conf.results_dir), self.machine, self.own.digest)

    def _session(self, tags: tuple[str, ...], cases: Collection[Case], budget: float, again: bool = False) -> Session:
        """The session of this comparison, which is the same with every budget."""
        plan = Plan(
            releases=tags,
            environment=self.environment,
            questions=self.own.question,
            sizes=SCALES,
            launches=rounds_of(len(tags), self.rounds, self.budget > 0),
            budget=budget,
            workload=self.own.digest,
            cases=tuple(sorted(cases)),
            divides=len(tags) == SIDES,
        )
        folder = self.own.folder / SESSIONS
        return Session(self.conf, self.axis, plan, self.releases, again, folder, request=self.request)

    def _effort(self, session: Session) -> Effort:
        return effort(session.launches(), session.plan.pairs, session.plan.divides)

    def install(self, tags: tuple[str, ...]) -> None:
        """Installs what is not there, and makes room for it first. Raises NotInstalled, and NoRoom."""
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
