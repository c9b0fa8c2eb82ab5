"""What was asked of a fleet, and how does a job continue with no launch lost or counted twice? Each start is an attempt
with a folder of its own, which begins with a copy of the one before; the first that finishes counts. No lock holds
between nodes: renaming a folder and making a link are single steps on every shared file system."""

import contextlib
import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ...system.errors import UserError
from ...system.files import read_bytes, write_atomically

RESULTS = "results"
"""Folder of an attempt with what it measured."""

FINISHED = "finished"
"""File of an attempt that measured everything; one that counts without it was closed before."""

COUNTS = "counts"
"""Link of a job to the attempt that counts; it leads nowhere where none had begun."""

OPEN = "open"

FLEETS = "fleets"
"""Folder in `env/` with a folder for each fleet: on the file system that all nodes share."""

ORDER = "order.json"

PLACES = ("clusters", "constraint", "gpus", "gpus-per-node", "gpus-per-task", "gres", "nodelist", "partition")
"""The options of sbatch that choose nodes: a fleet elsewhere is another fleet."""


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
    places: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The same for orders that measure the same in one place, however many nodes were asked for."""
        tags = sorted({tag for job in self.jobs for tag in job})
        measured = [tags, self.lane, self.questions, self.sizes, self.launches, self.only, self.budget > 0, self.device]
        return hashlib.sha256(json.dumps([*measured, self.env, "slurm", *self.places]).encode()).hexdigest()[:10]

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


@dataclass(frozen=True)
class Job:
    """One job of a fleet, by its number, and the releases that it measures."""

    fleet: Path
    number: int
    releases: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return self.fleet / "jobs" / f"{self.number:04}"

    @property
    def log(self) -> Path:
        """Where all attempts write what they say."""
        return self.fleet / "log" / str(self.number)

    @property
    def attempts(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9]*"))

    @property
    def state(self) -> str:
        """`open`, `done`, or `cancelled` where it was closed before it was done."""
        link = self.folder / COUNTS
        if not link.is_symlink():
            return OPEN
        return "done" if (link / FINISHED).exists() else "cancelled"

    @property
    def results(self) -> Path:
        """What counts, once the job is no longer open."""
        return self.folder / COUNTS / RESULTS

    @property
    def lines(self) -> int:
        """How many lines of launches the newest attempt holds, those that it began with included."""
        newest = self.attempts[-1:]
        return sum(path.read_bytes().count(b"\n") for of in newest for path in of.glob(f"{RESULTS}/*/*.jsonl"))

    def begin(self) -> Path:
        """The folder of a new attempt, with what the last one had on disk, where a line may be torn."""
        self.folder.mkdir(parents=True, exist_ok=True)
        before = self.attempts
        copy = Path(tempfile.mkdtemp(prefix=".", dir=self.folder))
        if before:
            shutil.copytree(before[-1], copy, ignore=shutil.ignore_patterns(".*", FINISHED), dirs_exist_ok=True)
        (copy / RESULTS).mkdir(exist_ok=True)
        number = len(before)
        while True:
            number += 1
            try:
                return copy.rename(self.folder / f"{number:03}")
            except OSError:  # another attempt was first to have that number
                if not (self.folder / f"{number:03}").exists():
                    raise

    def close(self, attempt: Path | None) -> None:
        """Says that this attempt counts, unless another one was first; None where no attempt has begun."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            (self.folder / COUNTS).symlink_to(attempt.name if attempt else "none")
