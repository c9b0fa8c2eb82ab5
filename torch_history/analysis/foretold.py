"""Is the noise of the history as large as its verdicts take it to be? Two releases of a session foretell what two others do.

Every session measured everything in two rounds. What the first two releases there say of noise is held against the last
two: how much more the ratio of these differs between the rounds is nothing but noise, and no one chose these times.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from ..store.launches import Launch
from . import special
from .calibration import NOMINAL, Held, Variant, variant
from .levels import Launches, cells_of, noises, within_sessions
from .series import Series, history

ROUNDS = (1, 2)

_Number = tuple[Series, str, int]
"""Series, release and round."""


def foretold(launches: Iterable[Launch]) -> dict[str, list[Held]]:
    """Lane -> by question and kind, how often a difference between rounds lies where NOMINAL of them should, from releases
    that tell nothing of the noise."""
    numbers: dict[tuple[str, str], dict[_Number, float]] = defaultdict(dict)
    for series, releases in history(launch for launch in launches if launch.round in ROUNDS).items():
        for tag, pairs in releases.items() if series.varies else ():
            for launch, case in pairs:
                if case.number:
                    numbers[series.environment, launch.session][series, tag, launch.round] = math.log(case.number)
    within: dict[str, dict[str, dict[Variant, list[bool]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for (lane, _), of_session in sorted(numbers.items()):
        for series, holds in _of_session(of_session).items():
            within[lane][f"{series.question} {series.metric}"][variant(series)].append(holds)
    return {
        lane: [Held(words, list(of.values())) for words, of in sorted(by.items())]
        for lane, by in sorted(within.items())
    }


def _of_session(numbers: dict[_Number, float]) -> dict[Series, bool]:
    """Of each time that all four releases have in both rounds: whether what was foretold holds."""
    tags = sorted({tag for _, tag, _ in numbers})
    if len(tags) < 4:
        return {}
    first: dict[str, dict[Series, Launches]] = defaultdict(dict)
    moved: dict[Series, float] = {}
    for series in sorted({series for series, _, _ in numbers}):
        shown = np.array(
            [[numbers.get((series, tag, turn), math.nan) for tag in (*tags[:2], *tags[-2:])] for turn in ROUNDS]
        )
        if not np.isnan(shown).any():
            first[series.question][series] = Launches(*PLACES, shown[:, :2].ravel())
            moved[series] = float(np.diff(shown[:, 3] - shown[:, 2])[0])
    found = {}
    for of in first.values():
        squares = [within_sessions(launches, cells_of(launches), 1) for launches in of.values()]
        for series, noise in zip(of, noises(list(of), squares), strict=True):
            # Four launches are in the difference between two rounds of a ratio, each with the noise of one.
            often = float(special.stdtrit(noise.freedom[0], (1 + NOMINAL) / 2))
            found[series] = abs(moved[series]) <= 2 * math.sqrt(noise.variance[0]) * often
    return found


PLACES = np.array([0, 1, 0, 1]), np.zeros(4, dtype=np.intp), np.array([0, 0, 1, 1])
"""Release, session and round of the launches of two releases in ROUNDS."""
