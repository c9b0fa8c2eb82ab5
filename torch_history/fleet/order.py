"""What was asked of a fleet? One file that the head writes before the first job, and every job reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ..errors import UserError
from ..system.files import read_bytes, write_atomically

FLEETS = "fleets"
"""Folder in `env/` with a folder for each fleet: on the file system that all nodes share."""

ORDER = "order.json"


def make_private(folder: Path) -> None:
    """Makes a folder that this user alone may enter, whatever the umask: jobs run what submitit has pickled in it. One that
    is there is closed to others. Raises OSError where it is another user's."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)


@dataclass(frozen=True)
class Order:
    """What a fleet measures, and where.

    `root` is the suite and `env` the folder of environments, both as every node sees them. `jobs`: the releases of each
    session; `anchor`: the one that all measure besides, empty for none. `budget` is in seconds of one job, 0 for none; what
    jobs do not need of it goes to follow-ups. `scratch`: a folder on each node's own disk for environments, empty for `env`.
    `offline`: nodes have no network. `removes`: environments on the scratch go when their job is done. `shares`: machine ->
    node -> what a check knew of that node, with the name of the one whose folder it shares (`with`). `nodes`: of a check,
    the node that each job runs on; `slowed` of them is slowed by a tenth on purpose.
    """

    root: str
    env: str
    results: str
    lane: str
    jobs: tuple[tuple[str, ...], ...]
    questions: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    launches: int = 3
    only: str = ""
    budget: float = 0.0
    device: str = ""
    scratch: str = ""
    offline: bool = False
    removes: bool = False
    shares: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    slowed: str = ""
    anchor: str = ""

    @property
    def adaptive(self) -> bool:
        """Whether rounds go on for what is undecided: where there is a budget, and times are measured."""
        return self.budget > 0 and self.only != "counts" and not self.nodes

    @property
    def digest(self) -> str:
        """The same for orders that measure the same: names the fleet. How the work is cut does not count, so that a fleet
        goes on with what an interruption left though more nodes were asked for."""
        tags = sorted({tag for job in self.jobs for tag in job})
        what = [tags, self.lane, self.questions, self.sizes, self.launches, self.only, self.budget > 0, self.device]
        return hashlib.sha256(json.dumps([*what, self.nodes, self.slowed]).encode()).hexdigest()[:10]

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / ORDER, msgspec.json.format(msgspec.json.encode(self), indent=1))

    @classmethod
    def load(cls, folder: Path) -> Order:
        """Raises UserError where `folder` holds no fleet."""
        try:
            return msgspec.json.decode(read_bytes(folder / ORDER), type=cls)
        except ValueError as error:
            raise UserError(
                f"{folder} holds no fleet: {ORDER} cannot be used ({error}). `torch-history fleet run` starts one."
            ) from error
