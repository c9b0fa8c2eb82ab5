"""What was asked of a fleet? One file on the shared file system, which the head writes before the first job starts."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ...system.errors import UserError
from ...system.files import read_bytes, write_atomically

FLEETS = "fleets"
"""Folder in `env/` with a folder for each fleet: on the file system that all nodes share."""

ORDER = "order.json"


@dataclass(frozen=True)
class Order:
    """What a fleet measures, and where. `root` is the suite and `env` the folder of environments, as every node sees them.
    `jobs`: the releases of each session; `anchor`: the one that all measure besides, empty for none. `budget`: seconds of
    one job, 0 for none. `scratch`: a folder on each node's disk for environments. `offline`: nodes have no network."""

    root: str
    env: str
    lane: str
    jobs: tuple[tuple[str, ...], ...]
    anchor: str = ""
    questions: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    launches: int = 3
    only: str = ""
    budget: float = 0.0
    device: str = ""
    scratch: str = ""
    offline: bool = False

    @property
    def name(self) -> str:
        """The same for orders that measure the same in one place. How the work is cut does not count, so that a fleet
        continues although another number of nodes was asked for."""
        tags = sorted({tag for job in self.jobs for tag in job})
        measured = [tags, self.lane, self.questions, self.sizes, self.launches, self.only, self.budget > 0, self.device]
        return hashlib.sha256(json.dumps([*measured, self.env, "slurm"]).encode()).hexdigest()[:10]

    def save(self, fleet: Path) -> None:
        write_atomically(fleet / ORDER, msgspec.json.format(msgspec.json.encode(self), indent=1))

    @classmethod
    def load(cls, fleet: Path) -> "Order":
        """Raises UserError where `fleet` holds no order."""
        try:
            return msgspec.json.decode(read_bytes(fleet / ORDER), type=cls)
        except ValueError as error:
            raise UserError(
                f"{fleet} holds no fleet: {ORDER} cannot be used ({error}). `torch-history fleet run` starts one."
            ) from error
