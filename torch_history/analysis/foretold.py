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
from .series import Series, history
from .verdicts import Estimate, paired, weigh

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
    estimates: dict[Series, Estimate] = {}
    moved: dict[Series, float] = {}
    for series in sorted({series for series, _, _ in numbers}):
        shown = [[numbers.get((series, tag, turn), math.nan) for tag in (*tags[:2], *tags[-2:])] for turn in ROUNDS]
        (one, other, third, fourth) = np.array(shown).T
        if not np.isnan(shown).any():
            estimates[series] = paired((other - one)[None])[0]
            moved[series] = float(np.diff(fourth - third)[0])
    # A ratio from two rounds has the variance of one launch; two ratios of one round each differ with four times that.
    return {
        series: abs(moved[series]) <= 2 * said.error * float(special.stdtrit(said.freedom, (1 + NOMINAL) / 2))
        for series, said in weigh(estimates).items()
    }
