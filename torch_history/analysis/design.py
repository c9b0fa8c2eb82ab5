"""What do the stored sessions of a question lack, and what would it cost to find more?

Sessions are told apart from releases by the releases that they share: `measuring/plan.py` says how many those should be.
How many rounds a change needs is read off the fit of the stored ones, with noise averaged over more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from . import special
from .calibration import IN_SINGLE
from .levels import Array, Fitted
from .power import SIZES, Pair, known, moves, steady
from .verdicts import error_rates_if_told, penalty

TIMES = [2 ** (step / 2) for step in range(15)]
"""Times as many rounds that are tried: 1 to 128."""


@dataclass(frozen=True)
class Ties:
    """How the sessions of a question hang together: `sessions` of several releases, `shares_few` of them that share fewer
    than the wanted number of releases with every other one, the release that most of them have (`anchor`) and how many lack
    it (`without_anchor`), and the releases that only one session has (`once`)."""

    sessions: int
    shares_few: int
    anchor: str
    without_anchor: int
    once: tuple[str, ...]


def ties(fit: Fitted, wanted: int) -> Ties:
    """Of sessions of times; `wanted` is how many releases two of them should share."""
    pairs = np.unique(np.hstack([(of.session, of.release) for of in fit.launches.values()]), axis=1)
    of_session = [pairs[1, pairs[0] == session] for session in np.unique(pairs[0])]
    several = [{*map(int, of)} for of in of_session if len(of) > 1]
    few = sum(
        all(len(one & other) < wanted for other in several if other is not one) for one in several if len(several) > 1
    )
    held = np.bincount(np.array([place for of in several for place in of], dtype=int), minlength=len(fit.releases))
    anchor = int(held.argmax()) if several else 0
    once = tuple(tag for tag, count in zip(fit.releases, held, strict=True) if count == 1)
    return Ties(len(several), few, fit.releases[anchor] if several else "", len(several) - int(held[anchor]), once)


@dataclass(frozen=True)
class Cost:
    """What it takes to find a change of one time, of this `size`, a share, while nothing else changes: how often it is
    `found` with the stored `rounds` of a pair (median), and how many rounds find each of the shares that are asked for, None
    where no number of rounds up to 128 times as many does."""

    size: float
    rounds: float
    found: float
    needed: tuple[float | None, ...]


def costs(fit: Fitted, patches: Sequence[Pair], shares: Sequence[float]) -> list[Cost]:
    """Of each size in SIZES, of calls that are made once IN_SINGLE times that, by the evidence of these pairs of patch
    releases; nothing where none of them is compared."""
    olds, news = (fit.places(pair[side] for pair in patches) for side in (0, 1))
    rounds = np.array([of.contrasts(olds, news).rounds for of in fit.levels.values()])
    if not rounds.any():
        return []
    found = np.array([_expected(fit.with_rounds(times), patches) for times in TIMES])
    stored = float(np.median(rounds[rounds > 0]))
    times = 1 if steady(fit.levels).any() else IN_SINGLE
    return [
        Cost(times * size, stored, float(of[0]), tuple(_needed(of, share, stored) for share in shares))
        for size, of in zip(SIZES, found.T, strict=True)
    ]


def _expected(fit: Fitted, patches: Sequence[Pair]) -> list[float]:
    """For each size the share of lone changes that is expected to be told: the estimate of each falls about its size with
    its error (taken as normal), and has to lie beyond the margin and beyond half the interval of a lone change."""
    chances: list[Array] = []
    for pair in patches:
        series, evidence = known(fit, pair)
        if not series:
            continue
        quiet = replace(evidence, shift=np.zeros_like(evidence.shift))
        half = quiet.half(1 - error_rates_if_told(quiet) / penalty(quiet.looks))
        bar = np.maximum(half, np.log1p(quiet.margin))
        chances.append(np.hstack([special.ndtr((moves(series, size) - bar) / quiet.error) for size in SIZES]))
    return [float(of.mean()) for of in np.vstack(chances).T]


def _needed(found: Array, share: float, rounds: float) -> float | None:
    """Rounds that find a share, between two of TIMES by a line over their logarithms."""
    at = next((i for i, of in enumerate(found) if of >= share), None)
    if at is None:
        return None
    if at == 0:
        return rounds
    part = (share - found[at - 1]) / (found[at] - found[at - 1])
    return rounds * TIMES[at - 1] * (TIMES[at] / TIMES[at - 1]) ** part
