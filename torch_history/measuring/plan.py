"""What does a session measure? Which releases, split into sessions of neighbours, and what of each."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from ..errors import SessionError
from ..releases.axis import Axis, Release
from ..store.launches import Launch

AT_ONCE = 5
"""Releases of one session: each has an interpreter with torch in memory, half a gigabyte, while a round lasts."""


@dataclass(frozen=True)
class Arm:
    """What one name in a plan stands for: a release, and a change of measure/planted.py that is put into its cases."""

    tag: str
    planted: str = ""


@dataclass(frozen=True)
class Plan:
    """What a session measures. `launches` is the number of rounds that measure everything, 0 where another session did;
    counts and bytes are taken in the first only, because they do not vary. `budget` is in seconds: no round is begun that
    would end after it, and what of it is left after those rounds goes to what is undecided. `workload` is the digest of a
    user's own file, whose session is not this repository's. `only` is `times` or `counts` where the other is left out;
    counts alone are taken in every round. `arms` says what names in `releases` stand for that are no releases. `cases` are
    the parameters of what is measured where that is not everything. A plan that `divides` looks for the pair
    that holds what changed from the first release to the last: the others need no verdict then. `variants` are those that
    are measured where that is not all. `within` are the seconds in which all of it ends, whatever is missing then."""

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

    def arm(self, name: str) -> Arm:
        return self.arms.get(name, Arm(name))

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """What is compared: each release with the one after it; arms with the first."""
        first, *others = self.releases
        return [(first, other) for other in others] if self.arms else list(itertools.pairwise(self.releases))

    @property
    def digest(self) -> str:
        """The same for plans of which one goes on with what an interruption left of the other."""
        identity = {**asdict(self), "budget": self.budget is not None}
        del identity["within"]  # what one limit left out the next goes on with
        for choice in ("cases", "divides", "variants"):
            if not identity[choice]:
                del identity[choice]  # a plan of everything is the one that it was before there was a choice
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def measurable(releases: list[Release], python: str) -> tuple[list[Release], list[str]]:
    """Those of `releases` with a wheel for `python`, and one sentence for each that has none."""
    able = [release for release in releases if python in release.pythons]
    skipped = [
        f"{release.tag} is skipped: it has no wheel for Python {python}, only for {', '.join(release.pythons)}."
        for release in releases
        if release not in able
    ]
    return able, skipped


def neighbours(releases: Sequence[Release]) -> list[Sequence[Release]]:
    """`releases` in sessions of at most AT_ONCE, each of which begins with the last release of the one before."""
    sessions = max(1, math.ceil((len(releases) - 1) / (AT_ONCE - 1)))
    ends = [round(i * (len(releases) - 1) / sessions) for i in range(sessions + 1)]
    return [releases[first : last + 1] for first, last in itertools.pairwise(ends)]


def chosen(
    axis: Axis, specs: Sequence[str], lane: str, tell: Callable[[str], None], alone: bool = False
) -> list[Release]:
    """The releases of `lane` that `specs` name, without any the newest two; one alone brings the one before it along,
    unless it may be measured `alone`.
    `tell` is given a sentence about each that is left out or comes along. Raises SessionError where none is left."""
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
    if (
        not alone
        and len(able) == 1
        and (before := measurable(list(axis.releases[: axis.position(able[0].tag)]), lane)[0])
    ):
        tell(f"{before[-1].tag} is measured as well, so that one session contains both releases.")
        return [before[-1], *able]
    return able


def new_releases(axis: Axis, lane: str, stored: Iterable[Launch], environment: str) -> tuple[str, ...]:
    """The releases of a lane that came out since the newest that are `stored`, late patches of older lines too,
    each with the one before it."""
    able = measurable(list(axis.releases), lane)[0]
    tags = {launch.release for launch in stored if launch.environment == environment}
    measured = [release for release in able if release.tag in tags]
    since = max((release.date for release in measured), default=able[-1].date)
    new = [i for i, release in enumerate(able) if release not in measured and release.date >= since]
    return tuple(able[i].tag for i in sorted({max(at, 0) for i in new for at in (i - 1, i)}))
