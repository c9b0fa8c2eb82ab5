"""Stand-ins for what a fleet needs a cluster and gigabytes for: a job that writes launches without torch, and a scheduler
that a test plays."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace as replaced

from torch_history.analysis.agreement import ARMS
from torch_history.errors import UserError
from torch_history.fleet.attempts import Attempt
from torch_history.fleet.followups import judged
from torch_history.fleet.order import Order
from torch_history.fleet.scheduler import Seen, Unreachable
from torch_history.fleet.work import Work, place
from torch_history.measuring.budget import effort
from torch_history.store.launches import Case, Launch, append_launches, read_launches
from torch_history.system.files import append_lines

MACHINE = "a-node"
CASES = "TORCH_HISTORY_TEST_CASES"
PAUSE = "TORCH_HISTORY_TEST_PAUSE"
"""How many cases a played session has on each release, and the seconds that one takes."""

LEDGER = "ledger"
"""File of a fleet in which every launch is written down when it is on disk, whichever attempt it is of."""

FULL = "full"
"""File of a fleet that stands for a full disk while it is there."""


class PlayedWork(Work):
    """A job whose session asks no release: each case is one launch with a name of its own."""

    def measure(self, order: Order, releases: tuple[str, ...], attempt: Attempt) -> None:
        cases, pause = int(os.environ.get(CASES, "3")), float(os.environ.get(PAUSE, "0"))
        folder = attempt.results / MACHINE
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "machine.json").write_text(
            json.dumps({"machine": MACHINE, "device": "cpu", "cpu": "A", "version": 1})
        )
        stored = read_launches(attempt.results, MACHINE)
        done = {(launch.release, case.parameters) for launch in stored for case in launch.cases}
        for release in releases:
            for number in range(cases):
                if (release, (str(number),)) not in done:
                    time.sleep(pause)
                    if (Path(self.fleet) / FULL).exists():
                        raise UserError("The disk of this node is full.")
                    launch = played(release, number, order.lane, attempt=attempt.number)
                    append_launches(folder / f"{release}-release-py{order.lane}.jsonl", [launch])
                    append_lines(Path(self.fleet) / LEDGER, [launch.to_json()])


class CheckingWork(Work):
    """A job of a check: two names of a release whose times are made, a tenth longer on the node that the order slows."""

    def measure(self, order: Order, releases: tuple[str, ...], attempt: Attempt) -> None:
        where = place()
        folder = attempt.results / f"{MACHINE}-on-{where['node']}"
        folder.mkdir(parents=True)
        record = {"machine": folder.name, "device": "cpu", "cpu": "A", "version": 1}
        (folder / "machine.json").write_text(json.dumps(record))
        speed = 1.1 if order.slowed == where["node"] else 1.0
        draw = random.Random(where["node"])
        for round, name in itertools.product(range(1, order.launches + 1), ARMS):
            seconds = [1e-5 * number * speed * math.exp(draw.gauss(0, 0.005)) for number in range(1, 13)]
            cases = tuple(Case((repr(number),), samples=(one,)) for number, one in enumerate(seconds))
            facts = {"node": {**where, "kernel": "6.1", "kind": {"cpu": "A"}}}
            one = replaced(
                played(name, 0), round=round, facts=facts, cases=cases, benchmark="batching.Batching.track_time"
            )
            append_launches(folder / f"{name}-release-py{order.lane}.jsonl", [replaced(one, session=f"s{self.number}")])


ROUND_SECONDS = 2.0
"""What a case of `TimedWork` says that it took on one release."""


class TimedWork(Work):
    """A session of times, all cases in its first rounds and then, of a follow-up, those that are undecided. Times of the
    variant `noisy` scatter by 4 %, where the order's question is `noisy`; `slower` is 20 % slower from each release to the
    next; others are the same."""

    def measure(self, order: Order, releases: tuple[str, ...], attempt: Attempt) -> None:
        more = self.more
        node = place()["node"]
        shared = order.shares.get(MACHINE, {}).get(node, {}).get("with", node)
        folder = attempt.results / f"{MACHINE}-on-{shared}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "machine.json").write_text(
            json.dumps({"machine": folder.name, "device": "cpu", "cpu": "A", "version": 1})
        )
        if not more:
            for round in range(1, order.launches + 1):
                self._round(folder, round, {(variant,): releases for variant in VARIANTS}, order)
            return
        earlier, pairs = judged(Path(self.fleet), more.of, more.machine), [*itertools.pairwise(releases)]
        for round in itertools.count(1):
            left = more.budget - ROUND_SECONDS * len(VARIANTS) * len(releases) * (round - 1)
            chosen = effort([*earlier, *read_launches(attempt.results, folder.name)], pairs).within(left)
            if not chosen:
                return
            self._round(folder, round, {case: of.releases for (_, case), of in chosen.items()}, order)

    def _round(self, folder: Path, round: int, cases: Mapping[tuple[str, ...], tuple[str, ...]], order: Order) -> None:
        for (variant,), releases in cases.items():
            for tag in releases:
                noisy = variant == "noisy" and (not order.questions or tag in order.questions)
                draw = random.Random(f"{tag} {variant} {round} {self.number}")
                level = 1.2 ** int(tag.split(".")[1]) if variant == "slower" else 1.0
                seconds = level * math.exp(draw.gauss(0, 0.04 if noisy else 0.002))
                one = replaced(
                    played(tag, 0, order.lane),
                    session=f"s{self.number}",
                    round=round,
                    duration=ROUND_SECONDS,
                    benchmark="selection.Selection.track_time",
                    cases=(Case((variant,), samples=(seconds,)),),
                )
                append_launches(folder / f"{tag}-release-py{order.lane}.jsonl", [one])


VARIANTS = ("even", "noisy", "slower")


class FailingWork(Work):
    """A job that never gets anywhere."""

    def measure(self, order: Order, releases: tuple[str, ...], attempt: Attempt) -> None:
        raise UserError(f"The disk of this node is full, so {releases[0]} cannot be installed.")


def played(release: str, number: int, lane: str = "3.11", attempt: int = 0) -> Launch:
    """A launch of one case, whose name no other launch has."""
    cases = (Case((str(number),), value=float(number)),)
    facts = {"node": place(), "attempt": attempt, "at": time.time()}
    benchmark = "batching.Batching.track_operators"
    moment = "2026-11-23T10:00:00+00:00"
    return Launch("s", 1, secrets.token_hex(8), release, f"release-py{lane}", benchmark, "v", moment, 1.0, facts, cases)


def an_order(folder: Path, *jobs: tuple[str, ...]) -> Order:
    """An order of these jobs, whose suite and results are in `folder`."""
    return Order(
        root=str(folder),
        env=str(folder / "env"),
        results=str(folder / "results"),
        lane="3.11",
        jobs=jobs,
        only="counts",
    )


@dataclass
class PlayedScheduler:
    """A queue that a test moves by hand: `jobs` as it would tell of them, and what it was asked to do."""

    queues: bool = True
    jobs: dict[str, Seen] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    submitted: list[list[int]] = field(default_factory=list)
    bound: list[tuple[str, ...]] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    away: bool = False

    def submit(self, fleet: Path, submission: int, numbers: Sequence[int], nodes: Sequence[str] = ()) -> list[str]:
        self._answer()
        self.bound.append(tuple(nodes))
        self.submitted.append([*numbers])
        ids = []
        for at, number in enumerate(numbers):
            name = f"{submission}_{at}"
            self.jobs[name] = Seen(name, submission, at, "PENDING")
            self.numbers[name] = number
            ids.append(name)
        return ids

    def seen(self, fleet: Path) -> list[Seen]:
        self._answer()
        return [*self.jobs.values()]

    def release(self, ids: Iterable[str]) -> None:
        self.released += ids

    def cancel(self, ids: Iterable[str]) -> None:
        self.cancelled += ids

    def _answer(self) -> None:
        if self.away:
            raise Unreachable("Unable to contact slurm controller")

    def turn(self, name: str, state: str, reason: str = "", node: str = "n1") -> None:
        """Lets a job be in another state from now on."""
        before = self.jobs[name]
        self.jobs[name] = Seen(name, before.submission, before.place, state, reason, node)

    def run(self, fleet: Path, name: str, work: type[Work] = PlayedWork) -> None:
        """Runs a job to its end in this process."""
        try:
            work(str(fleet), self.numbers[name])()
            self.turn(name, "COMPLETED")
        except UserError:
            self.turn(name, "FAILED")
