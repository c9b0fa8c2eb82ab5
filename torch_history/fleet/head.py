"""Who looks after a fleet? A process that submits what is missing until all is done, and may be killed at any time.

All that it knows is on the shared file system and with the scheduler, so the next head continues where the last one was
stopped.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..system.files import read_object, write_atomically
from .attempts import Attempt, JobFolder, job_folder
from .followups import Judge, ask, followups
from .order import Order, make_private
from .scheduler import OWN_FAULT, Scheduler, Seen, Unreachable

FAILURES = 3
"""A job that fails so many times in a row without a single new launch is given up."""

POLL_SECONDS = 15.0
"""Between two looks at the queue: four calls of the scheduler a minute, however many jobs there are."""

HEAD = "head"
"""File in a fleet's folder that its head holds locked; it names the process."""


@dataclass(frozen=True)
class Standing:
    """How a job stands: its `number`, `releases`, `state` in one word (queued, running, done, failed, waiting, closed),
    `where` it runs or why it waits, the `round` it is in, how many `launches` it has on disk, how often it was `begun`, the
    time `left`, and its last `words` where it failed. `further` where it measures more rounds of what is undecided."""

    number: int
    releases: tuple[str, ...]
    state: str
    where: str = ""
    round: int = 0
    launches: int = 0
    begun: int = 0
    left: str = ""
    words: str = ""
    further: bool = False


@contextlib.contextmanager
def only_head(fleet: Path) -> Iterator[None]:
    """Keeps a second head from looking after the same fleet. Raises UserError where another one does."""
    for folder in (fleet.parent, fleet):
        make_private(folder)
    with locked(fleet / HEAD, f"looks after the fleet {fleet.name}"):
        yield


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Holds a lock of the system's on a file that names the process. Raises UserError where another process holds it, which
    does `what`, and where the file system has no locks."""
    with path.open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            stream.seek(0)
            raise UserError(
                f"Another torch-history, {stream.read().strip() or 'unknown'}, {what}. Wait until it ends, or interrupt it: "
                "jobs run on, and this command continues from there."
            ) from error
        except OSError as error:
            raise UserError(
                f"{path} cannot be locked ({error.strerror}), so a second head could not be refused. Mount its file system "
                "with locks (flock on Lustre), or put the fleet on one that has them with --folder."
            ) from error
        stream.truncate(0)
        stream.write(f"process {os.getpid()} on {socket.gethostname()}")
        stream.flush()
        yield


class Head:
    """The jobs of one fleet: what of them is missing, and what the scheduler says."""

    def __init__(self, fleet: Path, scheduler: Scheduler, nodes: int, tell: Callable[[str], None]) -> None:
        self.fleet, self.order = fleet, Order.load(fleet)
        self._scheduler, self._nodes, self._tell = scheduler, nodes, tell
        self._away = False
        self._judge = Judge(fleet, self.order, scheduler.queues)

    @property
    def jobs(self) -> list[JobFolder]:
        """Those that were asked for, then the follow-ups."""
        return [job_folder(self.fleet, number) for number in [*range(len(self.order.jobs)), *followups(self.fleet)]]

    def watch(self, poll: float = POLL_SECONDS) -> bool:
        """Submits, releases and submits again until every job is done or given up; returns whether all are done."""
        self._forgive()
        before: dict[int, str] = {}
        while True:
            done = self._done()
            standings = self._look()
            for standing in standings:
                words = sentence(standing)
                if before.get(standing.number) != words:
                    self._tell(words)
                    before[standing.number] = words
            ended = all(standing.state in ("done", "failed", "closed") for standing in standings)
            judged = self._done() == done  # what ended during the look has left its node since
            if ended and judged and not (self._away and self.order.adaptive):
                return all(standing.state == "done" for standing in standings)
            time.sleep(poll)

    def _done(self) -> set[int]:
        return {number for number, job in enumerate(self.jobs) if job.done}

    def start(self) -> list[Standing]:
        """Submits what is missing, and how the jobs stand then."""
        self._forgive()
        self._look()
        return self.standings(self._seen() or [])

    def _forgive(self) -> None:
        """Lets jobs that were given up be tried again: somebody has asked for that."""
        for job in self.jobs:
            if not job.done and fruitless(job) >= FAILURES:
                for attempt in job.attempts:
                    attempt.forgive()

    def _look(self) -> list[Standing]:
        """One look at the queue, and what it asks for."""
        seen = self._seen()
        if seen is None:
            return self.standings([])
        try:
            self._note_ended(seen)
            seen = self._drop_done(seen)
            self._release(seen)
            self._follow_up(seen)
            self._submit(seen)
            seen = self._scheduler.seen(self.fleet)
        except Unreachable as error:
            self._tell_away(error)
        return self.standings(seen)

    def _seen(self) -> list[Seen] | None:
        """What the scheduler knows; None where it does not answer."""
        try:
            seen = self._scheduler.seen(self.fleet)
        except Unreachable as error:
            self._tell_away(error)
            return None
        if self._away:
            self._tell("The scheduler answers again.")
        self._away = False
        return seen

    def _tell_away(self, error: Unreachable) -> None:
        if not self._away:
            self._tell(f"The scheduler does not answer: {error}. Its jobs run on; this command tries again.")
        self._away = True

    # --- submissions: each is written down before it is made

    @property
    def _submissions(self) -> dict[int, list[int]]:
        """Number of a submission -> the jobs in it, in the order of their places."""
        found = {}
        for path in self.fleet.glob("submissions/*.json"):
            found[int(path.stem)] = list(read_object(path)["jobs"])
        return found

    def _submit(self, seen: Sequence[Seen]) -> None:
        """Submits the jobs that nobody is working on, as far as there is room for them."""
        live = self._live(seen)
        missing = [
            number
            for number, job in enumerate(self.jobs)
            if number not in live and not job.done and fruitless(job) < FAILURES
        ]
        first = not self._submissions and self._scheduler.queues
        room = len(missing) if first else max(0, self._nodes - len(live))
        bound: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for number in missing[:room]:
            bound[self._nodes_of(number)].append(number)
        for nodes, chosen in bound.items():
            self._hand_over(chosen, nodes)

    def _follow_up(self, seen: Sequence[Seen]) -> None:
        """Writes down jobs of further rounds for nodes that have nothing else to do; they are submitted as others."""
        live = self._live(seen)
        open = [number for number, job in enumerate(self.jobs) if not job.done and fruitless(job) < FAILURES]
        busy = {one.node for one in live.values() if one.node}
        for number, wanted in enumerate(self._judge.due(self._nodes - len(open), busy), start=len(self.jobs)):
            ask(self.fleet, number, wanted)
            first, last, of = wanted.releases[0], wanted.releases[-1], wanted.of
            self._tell(f"Job {of} left times of {first} to {last} inconclusive: job {number} measures more rounds.")

    def _nodes_of(self, number: int) -> tuple[str, ...]:
        """The nodes that a job is bound to; empty where any may run it."""
        if self.order.nodes:
            return (self.order.nodes[number],)
        further = followups(self.fleet).get(number)
        return further.nodes if further else ()

    def _hand_over(self, chosen: list[int], nodes: tuple[str, ...]) -> None:
        """Submits jobs together, after it has been written down."""
        number = max(self._submissions, default=0) + 1
        begun = {str(of): len(self.jobs[of].attempts) for of in chosen}
        path = self.fleet / "submissions" / f"{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({"jobs": chosen, "begun": begun}))
        try:
            self._scheduler.submit(self.fleet, number, chosen, nodes)
        except UserError as error:
            path.unlink()
            if not any(number in followups(self.fleet) for number in chosen):
                raise
            self._give_up(chosen, str(error))
            return
        words = ", ".join(map(str, chosen)) if len(chosen) < 9 else f"{chosen[0]} to {chosen[-1]}"
        self._tell(f"Submitted job{'s' if len(chosen) > 1 else ''} {words}.")

    def _give_up(self, chosen: list[int], words: str) -> None:
        """Lets follow-ups fail that the scheduler refuses, as where their node is gone: what was asked for is done."""
        for job in (self.jobs[number] for number in chosen):
            for _ in range(FAILURES):
                job.begin({"began_at": time.time()}).fail(words)

    def _live(self, seen: Sequence[Seen]) -> dict[int, Seen]:
        """Number of a job -> where the scheduler has it, unless it has ended."""
        submissions = self._submissions
        return {
            submissions[one.submission][one.place]: one
            for one in seen
            if not one.over and one.submission in submissions and one.place < len(submissions[one.submission])
        }

    def _drop_done(self, seen: Sequence[Seen]) -> list[Seen]:
        """`seen` without what Slurm requeued although it is done, as after a controller was killed: it would have nothing to
        do, and take the place of what has. It is cancelled where it waits."""
        done = [one for number, one in self._live(seen).items() if self.jobs[number].done]
        with contextlib.suppress(UserError):  # it may have ended meanwhile
            self._scheduler.cancel([one.id for one in done if one.state.startswith("PENDING")])
        return [one for one in seen if one not in done]

    def _release(self, seen: Sequence[Seen]) -> None:
        """Lets what Slurm requeued and holds start again. A user who holds a job is not overruled."""
        held = [one for one in seen if one.held]
        for one in held:
            self._tell(f"Slurm holds {one.id} ({one.reason}): it is released.")
        self._scheduler.release([one.id for one in held])

    def _note_ended(self, seen: Sequence[Seen]) -> None:
        """Keeps the last words of what ended by its own fault and could not say so itself: a process that was killed, or
        one that did not get as far as to begin."""
        live = self._live(seen)
        submissions = self._submissions
        for one in seen:
            if one.submission not in submissions or one.state.split()[0] not in OWN_FAULT:
                continue
            number = submissions[one.submission][one.place]
            path = self.fleet / "submissions" / f"{one.submission}.json"
            known = read_object(path)
            ended = known.get("ended", [])
            if number in live or number in ended or self.jobs[number].done:
                continue
            job = self.jobs[number]
            if len(job.attempts) == known["begun"][str(number)]:
                job.begin({"node": one.node, "job": one.id, "began_at": time.time()})
            attempt = job.newest
            if attempt and not attempt.last_words:
                attempt.fail(f"{one.state.lower()} on {one.node or 'no node'}. {self._log(one)}")
            write_atomically(path, json.dumps({**known, "ended": [*ended, number]}))

    def _log(self, one: Seen) -> str:
        """The last line that a job printed as an error, and where the rest is."""
        logs = sorted(self.fleet.glob(f"log/*/{one.id}_*_log.err"))
        if not logs:
            return "It left no log."
        lines = [line for line in logs[-1].read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        return f"{lines[-1][:300] if lines else 'It printed nothing'} ({logs[-1]})"

    # --- how the jobs stand

    def standings(self, seen: Sequence[Seen]) -> list[Standing]:
        live = self._live(seen)
        return [self._standing(number, job, live.get(number)) for number, job in enumerate(self.jobs)]

    def look(self) -> list[Standing]:
        """How the jobs stand, nothing changed. Where the scheduler does not answer, as the disk has it."""
        return self.standings(self._seen() or [])

    def _standing(self, number: int, job: JobFolder, seen: Seen | None) -> Standing:
        newest = job.counted or job.newest
        known: dict[str, Any] = {
            "launches": newest.lines() if newest else 0,
            "begun": len(job.attempts),
            "round": newest.round() if newest else 0,
        }
        further = followups(self.fleet).get(number)
        releases = further.releases if further else self.order.jobs[number]
        known["further"] = further is not None
        if done := job.done:
            state = "done" if done.get("finished") else "closed"
            return Standing(number, releases, state, where=_node(newest), **known)
        if seen is not None:
            running = seen.state.split()[0] in ("RUNNING", "COMPLETING")
            where = seen.node if running else seen.reason
            return Standing(number, releases, "running" if running else "queued", where, left=seen.left, **known)
        if fruitless(job) >= FAILURES:
            words = next((attempt.last_words for attempt in reversed(job.attempts) if attempt.last_words), "")
            return Standing(number, releases, "failed", where=_node(newest), words=words, **known)
        return Standing(number, releases, "waiting", **known)

    def cancel(self) -> list[Standing]:
        """Ends all jobs for good; what they measured stays and can be collected. Raises UserError where the scheduler does
        not answer."""
        try:
            live = self._live(self._scheduler.seen(self.fleet))
            self._scheduler.cancel([one.id for one in live.values()])
        except Unreachable as error:
            raise UserError(
                f"The scheduler does not answer ({error}), so no job was cancelled. Try again later."
            ) from error
        for job in self.jobs:
            if not job.done:
                job.finish(job.newest, finished=False)
        return self.standings([])


def fruitless(job: JobFolder) -> int:
    """How many attempts of a job failed since it had its last new launch."""
    attempts = job.attempts
    if not attempts:
        return 0
    now = attempts[-1].lines()
    failed = [attempt for attempt in attempts if attempt.last_words and not attempt.forgiven]
    return sum(1 for attempt in failed if attempt.began.get("lines", 0) == now and attempt.lines() == now)


def _node(attempt: Attempt | None) -> str:
    return str(attempt.began.get("node", "")) if attempt else ""


def sentence(standing: Standing) -> str:
    """How a job stands, in a line."""
    first, last = standing.releases[0], standing.releases[-1]
    named = f"Job {standing.number}, {'more rounds of ' if standing.further else ''}{first}"
    named += f" to {last}" if last != first else ""
    where = f" on {standing.where}" if standing.where and standing.state in ("running", "done", "failed") else ""
    why = f" ({standing.where})" if standing.where and standing.state == "queued" else ""
    round = f", round {standing.round}" if standing.state == "running" and standing.round else ""
    words = f" {FAILURES} times. Its last words: {standing.words}" if standing.state == "failed" else "."
    return f"{named}: {standing.state}{where}{why}{round}{words}"


def numbered(folder: Path) -> Path:
    """`folder`, or where it is there already the same name with the next free number."""
    names = itertools.chain([folder], (folder.with_name(f"{folder.name}-{i}") for i in itertools.count(2)))
    return next(path for path in names if not path.exists())
