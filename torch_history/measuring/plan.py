"""What does a session measure? Which releases, split into sessions of neighbours, and what of each."""

import hashlib
import itertools
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypeVar

from packaging.version import Version

from contract.metrics import metric_of

from ..releases.axis import Axis, Release
from ..store.launches import Launch
from ..system.errors import SessionError

AT_ONCE = 6
"""Releases of one session: each has an interpreter with torch in memory, half a gigabyte, while a round lasts."""

SIZES, LARGEST = (("1.12", 2.0), ("2.0", 3.5), ("2.6", 4.5)), 5.5
"""A version -> gigabytes that the environment of an earlier release takes at most; and those of a newer one."""

SHARED = 2
"""Releases that neighbouring sessions share: one ties the two, the second shows what a session does to a series."""


def gigabytes(version: str) -> float:
    """What a release takes on the disk at most, about; `v2.1.0` or `2.1.0`."""
    return next((size for newer, size in SIZES if Version(version) < Version(newer)), LARGEST)


@dataclass(frozen=True)
class Arm:
    """What one name in a plan stands for: a release, and a change of measure/planted.py that is put into its cases."""

    tag: str
    planted: str = ""


@dataclass(frozen=True)
class Plan:
    """What a session measures. `launches` is the number of rounds that measure everything; counts are taken in the first
    only. `budget` is in seconds: what those rounds leave of it goes to what is undecided. `workload` is the digest of a
    user's own file. `only` is `times` or `counts` where the other is left out; counts alone are taken in every round. `arms`
    says what names in `releases` stand for that are no releases. `cases` are parameters, and `variants` names, of what is
    measured where that is not all. A plan that `divides` looks for the pair that holds what changed from the first release
    to the last: the others need no verdict then. `within` are the seconds in which all of it ends, whatever is missing then.
    `anchor` is one of `releases` that other sessions have, too: it ties them, and is no neighbour of the others."""

    releases: tuple[str, ...]
    environment: str
    questions: str
    sizes: tuple[str, ...]
    launches: int
    budget: float | None = None
    workload: str = ""
    only: str = ""
    arms: Mapping[str, Arm] = field(default_factory=dict)
    cases: tuple[tuple[str, ...], ...] = ()
    divides: bool = False
    variants: tuple[str, ...] = ()
    within: float | None = None
    anchor: str = ""

    def arm(self, name: str) -> Arm:
        return self.arms.get(name, Arm(name))

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """What is compared: each release with the one after it; arms with the first."""
        first, *others = (name for name in self.releases if name != self.anchor)
        return [(first, other) for other in others] if self.arms else list(itertools.pairwise([first, *others]))

    @property
    def digest(self) -> str:
        """The same for plans of which one goes on with what an interruption left of the other."""
        identity = {**asdict(self), "budget": self.budget is not None}
        del identity["within"]  # what one limit left out the next goes on with
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def measurable(releases: list[Release], python: str) -> tuple[list[Release], list[str]]:
    """Those of `releases` with a wheel for `python`, and one sentence for each that has none."""
    able = [release for release in releases if python in release.pythons]
    lacking = [release for release in releases if python not in release.pythons]
    why = f"is skipped: it has no wheel for Python {python}, only for"
    return able, [f"{release.tag} {why} {', '.join(release.pythons)}." for release in lacking]


Some = TypeVar("Some")


def in_sessions(
    releases: Sequence[Some], shared: int = SHARED, anchor: Some | None = None, nodes: int = 1
) -> list[Sequence[Some]]:
    """`releases` in the fewest sessions of neighbours that keep so many nodes busy, each of which begins with the last
    `shared` of the one before; several that share releases, or one with an anchor, have room for that."""
    steps, room = max(0, len(releases) - shared), AT_ONCE - shared - (shared > 0)
    least = 1 if len(releases) <= AT_ONCE - (anchor is not None) else math.ceil(steps / room)
    sessions = min(max(1, steps), math.ceil(least / nodes) * nodes)
    ends = [round(i * steps / sessions) for i in range(sessions + 1)]
    return [releases[first : last + shared] for first, last in itertools.pairwise(ends)]


def anchored(group: Sequence[Some], anchor: Some | None) -> tuple[Some, ...]:
    """A session of neighbours with the release that all sessions have: first where it is none of them."""
    return tuple(group) if anchor is None or anchor in group else (anchor, *group)


def middle(releases: Sequence[Some]) -> Some:
    """The anchor of `releases` that are measured in several sessions."""
    return releases[len(releases) // 2]


def anchor_of(axis: Axis, stored: Iterable[Launch], environment: str) -> str:
    """The release that most stored sessions of a lane have times of, of these the newest; empty where nothing is stored."""
    sessions: dict[str, set[str]] = defaultdict(set)
    for launch in stored:
        if launch.environment == environment and metric_of(launch.benchmark).kind == "times" and launch.release in axis:
            sessions[launch.release].add(launch.session)
    return max(sessions, key=lambda tag: (len(sessions[tag]), axis.position(tag)), default="")


def chosen(
    axis: Axis, specs: Sequence[str], lane: str, tell: Callable[[str], None], alone: bool = False
) -> list[Release]:
    """The releases that `specs` name, or the newest two; one brings the one before it, unless it may be `alone`."""
    named = {release.tag for spec in specs for release in axis.select(spec)}
    wanted = [release for release in axis.releases if release.tag in named] if specs else list(axis.releases)
    able, skipped = measurable(wanted, lane)
    if not able:
        raise SessionError(
            " ".join(skipped) + f" Nothing is left to measure in lane {lane}. Choose another one with --lane."
        )
    if not specs:
        return able[-2:]
    for sentence in skipped:
        tell(sentence)
    before = measurable(list(axis.releases[: axis.position(able[0].tag)]), lane)[0]
    if before and len(able) == 1 and not alone:
        tell(f"{before[-1].tag} is measured as well, so that one session contains both releases.")
        return [before[-1], *able]
    return able


def new_releases(axis: Axis, lane: str, stored: Iterable[Launch], environment: str) -> tuple[str, ...]:
    """Releases since the newest `stored`, late patches too, with those that their sessions share with others."""
    able = measurable(list(axis.releases), lane)[0]
    tags = {launch.release for launch in stored if launch.environment == environment}
    measured = [release for release in able if release.tag in tags]
    since = max((release.date for release in measured), default=able[-1].date)
    new = [i for i, release in enumerate(able) if release not in measured and release.date >= since]
    return tuple(able[i].tag for i in sorted({max(i - before, 0) for i in new for before in range(SHARED + 1)}))
