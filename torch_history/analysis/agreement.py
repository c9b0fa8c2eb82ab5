"""Do nodes of one kind take the same time? One release, which each of them measured under two names, compared across nodes.

Numbers of two nodes share a folder of results only where this says that the nodes agree. The launches that say so are kept
in `results/<machine>/agreement/`, a line each, as those of a calibration are.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from contract.metrics import MARGIN

from ..store.launches import Case, Launch, node_of, read_file
from ..system.files import files_in
from . import special
from .calibration import FIRST, MOST_UNTOLD, SECOND, per_cent
from .series import Verdict
from .verdicts import FALSE_RATE, Change, compare

FOLDER = "agreement"
"""Folder beside a machine's results, which neither asv nor `read_launches` of the machine looks into."""

ARMS = {FIRST: "", SECOND: ""}
"""The names under which each node measures the release."""

CONTROL = "control.Control.track_time"
"""Name under which the work without torch, which is timed beside every case, is compared as one more time."""

LEAST_TIMES = 6
"""Times that two nodes must have in common; fewer say too little of a node."""

NEAR = MARGIN / 2
"""By how much the median of all times may differ: that is known far better than a single one."""

CHANCE = 0.01
"""More times differ than chance makes differ, where so many would differ in fewer than one of a hundred equal nodes."""

STAYS = ("kernel", "kind")
"""Of a node, what must be as it was when it was checked."""


def beyond_chance(changed: int, times: int) -> bool:
    """Whether so many of `times` differ that chance does not explain them: each is told wrong in FALSE_RATE of cases, so how
    many are is binomial."""
    return changed > 0 and bool(special.bdtrc(changed - 1, times, FALSE_RATE) < CHANCE)


@dataclass(frozen=True)
class Between:
    """Two nodes: `ratio` is what the second takes of the first's time, the median of their `times`; of these `changed`
    differ and `untold` are inconclusive. `reason` says why they cannot be compared at all."""

    first: str
    second: str
    ratio: float = math.nan
    times: int = 0
    changed: int = 0
    untold: int = 0
    reason: str = ""

    @property
    def agree(self) -> bool:
        """Whether all times together are the same, no more of them differ than chance makes differ, and enough are told."""
        known = not self.reason and self.times >= LEAST_TIMES and self.untold <= MOST_UNTOLD * self.times
        return known and abs(math.log(self.ratio)) <= NEAR and not beyond_chance(self.changed, self.times)

    @property
    def words(self) -> str:
        """A sentence."""
        said = f"{self.first} and {self.second} {'agree' if self.agree else 'do not agree'}"
        if self.reason:
            return f"{said}: {self.reason}."
        return (
            f"{said}: {self.second} takes {self.ratio:.3f} of {self.first}'s time; of {self.times} times {self.changed} "
            f"differ and {self.untold} are inconclusive."
        )


@dataclass(frozen=True)
class Agreement:
    """What a check found: `release` and the `nodes` that measured it, each pair of them, and by node how many of its own
    times differ between the two names, 0 where chance explains them."""

    release: str
    nodes: Mapping[str, Mapping[str, Any]]
    pairs: Sequence[Between]
    unsteady: Mapping[str, int]

    @property
    def groups(self) -> dict[str, str]:
        """Node -> the first node of its group. A node joins the first group with each member of which it agrees."""
        agreeing = {
            frozenset((pair.first, pair.second))
            for pair in self.pairs
            if pair.agree and not self.unsteady.get(pair.first) and not self.unsteady.get(pair.second)
        }
        members: dict[str, list[str]] = {}
        for node in self.nodes:
            joined = next(
                (
                    first
                    for first, of_group in members.items()
                    if all(frozenset((node, other)) in agreeing for other in of_group)
                ),
                node,
            )
            members.setdefault(joined, []).append(node)
        return {node: first for first, of_group in members.items() for node in of_group}

    @property
    def words(self) -> list[str]:
        """What was found, a sentence each."""
        groups = self.groups
        said = [pair.words for pair in self.pairs]
        said += [
            f"{node} does not agree with itself: {count} of its own times differ between two names of {self.release}."
            for node, count in self.unsteady.items()
            if count
        ]
        for first in dict.fromkeys(groups.values()):
            together = [node for node in groups if groups[node] == first]
            shared = f"{', '.join(together)} share a folder for times."
            said.append(shared if len(together) > 1 else f"{first} has its own folder for times.")
        return said


def shares(results: Path, machines: Iterable[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Machine -> node that shares a folder with another one -> what was known of it, and whose folder (`with`)."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for machine in machines:
        if agreement := newest(results, machine):
            groups = agreement.groups
            together = [node for node, first in groups.items() if [*groups.values()].count(first) > 1]
            found[machine] = {node: {**agreement.nodes[node], "with": groups[node]} for node in together}
    return found


def files(results: Path, machine: str) -> list[Path]:
    """The kept checks of a machine."""
    return files_in(results / machine / FOLDER, "*.jsonl")


def newest(results: Path, machine: str) -> Agreement | None:
    """What the newest check of a machine's nodes says; None where there is none."""
    kept = [(path, [*read_file(path)]) for path in files(results, machine)]
    dated = [(max(launch.started_at for launch in launches), path, launches) for path, launches in kept if launches]
    return of(max(dated)[2], max(dated)[1].stem.partition("-")[0]) if dated else None


def of(launches: Iterable[Launch], release: str) -> Agreement:
    """What launches of the two names of a release say; of each node those of its newest session."""
    by_node = _newest_of_each(launches)
    nodes = {node: _about(found) for node, found in by_node.items()}
    pairs = [_between(first, second, by_node, nodes) for first, second in itertools.combinations(by_node, 2)]
    unsteady = {node: _unsteady(found) for node, found in by_node.items()}
    return Agreement(release, nodes, pairs, unsteady)


def _unsteady(launches: Sequence[Launch]) -> int:
    """How many of a node's times differ between the two names; 0 where chance explains them."""
    changes = [change for change in compare(launches, FIRST, SECOND) if change.series.varies]
    changed = len(_differing(changes))
    return changed if beyond_chance(changed, len(changes)) else 0


def _newest_of_each(launches: Iterable[Launch]) -> dict[str, list[Launch]]:
    sessions: dict[str, dict[str, list[Launch]]] = defaultdict(lambda: defaultdict(list))
    for launch in launches:
        if (node := node_of(launch)) and launch.release in ARMS:
            sessions[node][launch.session].append(launch)
    return {node: max(sessions[node].items())[1] for node in sorted(sessions, key=_place)}


def _place(node: str) -> tuple[int, str]:
    """n9 before n10, as nodes are numbered."""
    return len(node), node


def _about(launches: Sequence[Launch]) -> dict[str, Any]:
    """What must stay as it is: see STAYS."""
    node = launches[-1].facts["node"]
    return {name: node[name] for name in STAYS if name in node}


def _between(
    first: str, second: str, launches: Mapping[str, Sequence[Launch]], nodes: Mapping[str, Mapping[str, Any]]
) -> Between:
    kinds = [nodes[node].get("kind", {}) for node in (first, second)]
    for name in sorted(kinds[0].keys() | kinds[1].keys()):
        values = [kind.get(name, "none") for kind in kinds]
        if values[0] != values[1]:
            return Between(first, second, reason=f"their {name} differ, '{values[0]}' and '{values[1]}'")
    renamed = [launch for node in (first, second) for launch in _as(node, launches[node])]
    changes = [
        change for change in compare(renamed, first, second) if change.old is not None and change.new is not None
    ]
    times = [change for change in changes if change.series.varies]
    if len(times) < LEAST_TIMES:
        return Between(first, second, reason=f"they have only {len(times)} times in common; check them again together")
    return Between(
        first,
        second,
        ratio=statistics.median(change.ratio or math.nan for change in times),
        times=len(times),
        changed=len(_differing(times)),
        untold=sum(change.verdict is Verdict.CANT_TELL for change in times),
    )


def _as(node: str, launches: Iterable[Launch]) -> list[Launch]:
    """Launches of one node as if the node was a release: both names are one, and round k of each node is compared with round
    k of another. Nothing ties these rounds, so they differ as much as two nodes at two moments do. The control is a time."""
    found = []
    for launch in launches:
        ours = structs.replace(launch, release=node, session=FOLDER)
        found.append(ours)
        control = launch.facts.get("conditions", {}).get("control", {})
        if cases := tuple(Case((repr(name),), samples=(seconds,)) for name, seconds in sorted(control.items())):
            found.append(structs.replace(ours, benchmark=CONTROL, version=FOLDER, cases=cases))
    return found


def _differing(changes: Iterable[Change]) -> list[Change]:
    return [change for change in changes if change.verdict in (Verdict.SLOWER, Verdict.FASTER)]


def heading(agreement: Agreement) -> str:
    """How many nodes were checked with what."""
    untold = sum(pair.untold for pair in agreement.pairs)
    total = sum(pair.times for pair in agreement.pairs)
    share = f", {per_cent(untold / total)} of all times inconclusive" if total else ""
    return f"{len(agreement.nodes)} nodes measured {agreement.release}{share}."
