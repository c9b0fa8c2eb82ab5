"""What do turns of releases that were measured beside each other say? Neighbours disturb, so quiet moments count."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from ..store.launches import Case, Launch

Array = NDArray[np.float64]

PROCESS, CLUSTERED = 0.012, 2.2  # a process's standard deviation in logarithms; how much turns' scatter counts
QUIETEST = 0.1  # share of a session's turns in which the machine is held to be quiet: without chance or noise
LONG_CALL = 0.05  # seconds of a call that holds quiet and other moments alike: half of its turns are quiet for it

LOUD = 0.25
LEAST_QUIET = 5
"""Turns beyond quiet ones by so much, in logarithms, are left out of a launch with so many others."""

UNLIKE = 0.1  # by how much two releases differ in how they slow, per unit of logarithms, if never quiet
WILD = 3.0  # standard deviations, of those that most turns have, as which a turn counts that lies farther out
Rounds = dict[str, dict[object, tuple[Launch, Case]]]  # release -> round -> its launch of one series


class Compared(Case, frozen=True):
    """A case whose one sample is what its turns say; `variance` is that of its logarithm, beside what a process does."""

    variance: float = 0.0


class _Round(NamedTuple):
    """The releases of a round, and the logarithms of their turns (releases x turns)."""

    key: object
    tags: list[str]
    turns: Array


def compare(releases: Rounds) -> None:
    """Gives launches that took turns one number in place of samples: the round's level times what their turns say."""
    for rounds in _sessions(releases):
        quiet = _quiet(rounds)
        for one in rounds:
            _tell(one, quiet, releases)


def _sessions(releases: Rounds) -> Iterator[list[_Round]]:
    """The rounds of each session in which several releases took turns."""
    together: dict[object, list[str]] = defaultdict(list)
    for release, of_release in releases.items():
        for key, (_, case) in of_release.items():
            if case.turns and case.samples:
                together[key].append(release)
    found: dict[str, list[_Round]] = defaultdict(list)
    for key, tags in together.items():
        launches = [releases[tag][key] for tag in tags]
        if len(tags) > 1 and len({len(case.turns) for _, case in launches}) == 1:
            turns = np.log([case.turns for _, case in launches])
            found[launches[0][0].session].append(_Round(key, tags, turns))
    yield from found.values()


def _quiet(rounds: list[_Round]) -> dict[str, float]:
    """The logarithm of what each release takes in quiet moments of a session."""
    turns: dict[str, list[Array]] = defaultdict(list)
    for one in rounds:
        for tag, of in zip(one.tags, one.turns, strict=True):
            turns[tag].append(of)
    every = {tag: np.concatenate(of) for tag, of in turns.items()}
    return {
        tag: float(np.quantile(of, QUIETEST if np.median(of) < math.log(LONG_CALL) else 0.5))
        for tag, of in every.items()
    }


def _tell(one: _Round, quiet: Mapping[str, float], releases: Rounds) -> None:
    """Puts what a round says in place of samples. The mean of a turn takes a share of its releases' scatter away."""
    loud = one.turns - np.array([[quiet[tag]] for tag in one.tags])
    is_quiet = loud <= LOUD
    is_quiet &= is_quiet.sum(axis=0) > 1
    of_quiet = np.where(is_quiet, loud, 0.0).sum(axis=0) / np.maximum(is_quiet.sum(axis=0), 1)
    shifts, beside = [], []
    for release, turns in enumerate(one.turns):
        chosen = is_quiet[release]
        enough = chosen.sum() >= LEAST_QUIET
        shifts.append((turns - of_quiet)[chosen] if enough else turns - loud.mean(axis=0))
        beside.append(UNLIKE * max(float(np.median(loud[release][chosen] if enough else loud[release])), 0.0))
    effects = np.array([np.median(of) for of in shifts])
    quickest = [math.log(min(releases[tag][one.key][1].samples)) for tag in one.tags]
    numbers = np.exp(np.mean(quickest) + effects - effects.mean())
    share = len(one.tags) / (len(one.tags) - 1)
    for place, tag in enumerate(one.tags):
        launch, case = releases[tag][one.key]
        variance = (CLUSTERED * _of_median(shifts[place] - effects[place]) + beside[place] ** 2) * share
        level = float(f"{numbers[place]:.7g}")
        fields = {**structs.asdict(case), "samples": (level,), "turns": (), "variance": variance}
        releases[tag][one.key] = launch, Compared(**fields)


def _of_median(left: Array) -> float:
    """Of the median of what is `left`, where wild turns count as WILD, and few scatter little by chance."""
    most = WILD * 1.4826 * float(np.median(np.abs(left)))
    squares = np.clip(left, -most, most) ** 2
    return math.pi / 2 * float(squares.sum()) / max(len(left) - 3, 1) / len(left)
