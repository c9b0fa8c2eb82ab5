"""What did the jobs of a fleet leave undecided, and which nodes measure more rounds of it?

A job spends its budget on its own pairs of releases. What it does not need goes to what others left undecided, as further
jobs on nodes that are free. Both judge as one session does: `effort` on the launches of all jobs that measured a pair. Each
round beyond those of everything is another look at a pair, in whichever session it was measured (docs/verdicts.md).
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..measuring.budget import Effort, effort
from ..store.launches import Launch, machines_in, node_of, read_launches
from ..system.files import read_bytes, write_atomically
from .attempts import Attempt, JobFolder, job_folder
from .order import Order
from .planning import START_SECONDS

FOLDER = "followups"
"""Folder of a fleet with a file for each of them, written before it is submitted. Its name is the number of the job."""


@dataclass(frozen=True)
class Followup:
    """A job of further rounds. `releases` are neighbours, each pair of which job `of` and the follow-ups before left
    undecided; `machine` is the folder that keeps these rounds, which only `nodes` add to; `budget` is in seconds."""

    of: int
    releases: tuple[str, ...]
    machine: str
    nodes: tuple[str, ...]
    budget: float


def followups(fleet: Path) -> dict[int, Followup]:
    """Number of a job -> the follow-up that it is, in order."""
    paths = sorted((fleet / FOLDER).glob("*.json"))
    return {int(path.stem): msgspec.json.decode(read_bytes(path), type=Followup) for path in paths}


def ask(fleet: Path, number: int, wanted: Followup) -> None:
    """Writes down that job `number` measures this."""
    path = fleet / FOLDER / f"{number:04}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, msgspec.json.encode(wanted))


def judged(fleet: Path, of: int, machine: str) -> list[Launch]:
    """What job `of` and its follow-ups that are done wrote into the folder of a machine."""
    numbers = [of, *(number for number, wanted in followups(fleet).items() if wanted.of == of)]
    counted = [attempt for number in numbers if (attempt := job_folder(fleet, number).counted)]
    return [launch for attempt in counted for launch in read_launches(attempt.results, machine)]


@dataclass(frozen=True)
class Part:
    """Neighbouring releases of one job, each pair of which is undecided, and what deciding each takes."""

    of: int
    releases: tuple[str, ...]
    machine: str
    nodes: tuple[str, ...]
    efforts: tuple[Effort, ...]

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.efforts)

    @property
    def cost(self) -> float:
        """Seconds for each time that is decided."""
        return self.seconds / sum(one.undecided for one in self.efforts)

    def fits(self, budget: float) -> bool:
        """Whether anything of it can be measured in so many seconds, the start of the job counted in."""
        return any(one.within(budget - START_SECONDS) for one in self.efforts)

    def joined(self, other: Part) -> Part | None:
        """Both in one session, where the other one goes on where this one ends."""
        if (self.of, self.releases[-1]) != (other.of, other.releases[0]):
            return None
        return Part(
            self.of,
            (*self.releases, *other.releases[1:]),
            self.machine,
            self.nodes,
            (*self.efforts, *other.efforts),
        )

    def followup(self, budget: float) -> Followup:
        return Followup(self.of, self.releases, self.machine, self.nodes, budget)


class Judge:
    """What is undecided in one fleet; `tied` where a scheduler can be told on which nodes a job may run. It keeps what it
    found of each job until a follow-up of that is done."""

    def __init__(self, fleet: Path, order: Order, tied: bool) -> None:
        self._fleet, self._order, self._tied = fleet, order, tied
        self._found: dict[tuple[int, ...], list[Part]] = {}

    def due(self, free: int, busy: Collection[str]) -> list[Followup]:
        """The jobs of further rounds that `free` nodes can take, where `busy` ones measure. None where nothing is undecided,
        no budget is left, or the fleet was cancelled."""
        order, asked = self._order, followups(self._fleet)
        jobs = [job_folder(self._fleet, number) for number in range(len(order.jobs))]
        more = [job_folder(self._fleet, number) for number in asked]
        if not order.adaptive or free < 1 or any(job.done and not job.done["finished"] for job in (*jobs, *more)):
            return []
        pairs = [part for of, job in enumerate(jobs) if job.done for part in self._undecided(of, asked)]
        parts = self._for_nodes(pairs, free, {*busy} | _bound(self._fleet, asked))
        left = self._left(jobs, asked) if parts else 0.0
        for shares in range(len(parts), 0, -1):
            budget = min(left / shares, order.budget)
            if chosen := [part for part in parts if part.fits(budget)][: min(free, shares)]:
                return [part.followup(budget) for part in chosen]
        return []

    def _left(self, jobs: Sequence[JobFolder], asked: dict[int, Followup]) -> float:
        """Seconds of the budgets of jobs that are done, less what follow-ups took or may take."""
        unspent = sum(max(0.0, self._order.budget - job.seconds) for job in jobs if job.done)
        spent = 0.0
        for number, wanted in asked.items():
            job = job_folder(self._fleet, number)
            spent += max(START_SECONDS, job.seconds) if job.done else wanted.budget
        return unspent - spent

    def _undecided(self, of: int, asked: dict[int, Followup]) -> list[Part]:
        """The pairs of a job that are worth further rounds: no follow-up measures them now, and none came to nothing."""
        ours = {number: wanted for number, wanted in asked.items() if wanted.of == of}
        done = tuple(number for number in ours if job_folder(self._fleet, number).done)
        barren = {
            number for number in done if (last := job_folder(self._fleet, number).counted) is None or not last.lines()
        }
        shut = {
            pair
            for number, wanted in ours.items()
            if number not in done or number in barren
            for pair in itertools.pairwise(wanted.releases)
        }
        if (of, *done) not in self._found:
            self._found = {key: parts for key, parts in self._found.items() if key[0] != of}
            self._found[(of, *done)] = self._judge(of)
        return [part for part in self._found[(of, *done)] if part.releases not in shut]

    def _judge(self, of: int) -> list[Part]:
        """The undecided pairs of a job, whoever measures them now."""
        attempt = job_folder(self._fleet, of).counted
        if attempt is None or not (machine := _folder_of(attempt)):
            return []
        launches = judged(self._fleet, of, machine)
        nodes = tuple(sorted(_sharing(self._order, machine) | {node_of(launch) for launch in launches} - {""}))
        efforts = {pair: effort(launches, [pair]) for pair in itertools.pairwise(self._order.jobs[of])}
        return [Part(of, pair, machine, nodes, (found,)) for pair, found in efforts.items() if found.undecided]

    def _for_nodes(self, parts: Sequence[Part], free: int, busy: set[str]) -> list[Part]:
        """Parts for `free` nodes, those first that decide most in a second: of the nodes that share a folder no more than
        there are that measure nothing."""
        of_nodes: dict[tuple[str, ...], list[Part]] = defaultdict(list)
        for part in parts:
            of_nodes[part.nodes].append(part)
        found = []
        for nodes, together in of_nodes.items():
            room = min(free, len({*nodes} - busy)) if self._tied else free
            found += sorted(_merged(together, room), key=lambda part: part.cost)[:room] if room else []
        return sorted(found, key=lambda part: part.cost)


def _bound(fleet: Path, asked: Mapping[int, Followup]) -> set[str]:
    """The nodes that alone may run a follow-up that is not done."""
    return {
        wanted.nodes[0]
        for number, wanted in asked.items()
        if len(wanted.nodes) == 1 and not job_folder(fleet, number).done
    }


def _merged(parts: Sequence[Part], free: int) -> list[Part]:
    """Parts in as few jobs as there are free nodes, as far as they are neighbours; the quickest are put together first."""
    found = [*parts]
    while len(found) > free:
        joined = {at: both for at, (one, next) in enumerate(itertools.pairwise(found)) if (both := one.joined(next))}
        if not joined:
            break
        at = min(joined, key=lambda at: joined[at].seconds)
        found[at : at + 2] = [joined[at]]
    return found


def _folder_of(attempt: Attempt) -> str:
    """The machine's folder that holds most of an attempt: one more is there where another node had begun the job."""
    sizes = Counter({machine: attempt.lines(machine) for machine in machines_in(attempt.results)})
    return next((machine for machine, _ in sizes.most_common(1)), "")


def _sharing(order: Order, machine: str) -> set[str]:
    """The nodes whose times are kept in a folder, by the check that the fleet began with."""
    return {
        node
        for name, nodes in order.shares.items()
        for node, known in nodes.items()
        if machine == f"{name}-on-{known['with']}"
    }
