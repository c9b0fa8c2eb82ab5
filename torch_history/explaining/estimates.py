"""How large is a difference, how much of it does a lever remove, and what could be chance? By medians of turns."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy import special

CONFIDENCE = 0.999  # of whether the difference is there at all: one A/A comparison in a thousand passes
SHARE_CONFIDENCE = 0.99  # of the interval of a share of the difference
MARGIN = 0.04  # a difference of up to 4 % is none that a series tells either (`MARGIN` in contract/metrics.py)
UNSEEN = 0.1  # a difference is not there where the interval of the ratio leaves room for none larger than this
PULLED_IN = 4.0  # robust standard deviations from its group's median beyond which a launch is pulled in to there
LEAST_NOISE = 0.002  # of a launch's logarithm: agreement beyond two in a thousand is chance
_NORMAL = 1.4826  # standard deviations of a normal distribution in a median absolute deviation
_MEDIAN = math.pi / 2  # the variance of a median in that of a mean


@dataclass(frozen=True)
class Group:
    """Seconds a call by turn, on the old and on the new release: each turn asks both within seconds."""

    old: Sequence[float]
    new: Sequence[float]

    @property
    def levels(self) -> tuple[float, float]:
        """The old release's median, and what the median ratio makes of it."""
        old = statistics.median(self.old)
        return old, old * math.exp(self.shift)

    @property
    def shifts(self) -> list[float]:
        """log(new / old) of each turn: what slows a turn down slows both."""
        return [math.log(new / old) for old, new in zip(self.old, self.new, strict=True)]

    @property
    def shift(self) -> float:
        return statistics.median(self.shifts)


@dataclass(frozen=True)
class Noise:
    """Standard deviations of a turn's log(new / old) and of a launch's logarithm, and their degrees of freedom."""

    deviation: float
    of_launch: float
    freedom: int

    @classmethod
    def of(cls, groups: Iterable[Group]) -> "Noise":
        """What all turns of `groups` tell."""
        groups = [group for group in groups if len(group.old) > 1]
        freedom = sum(len(group.old) - 1 for group in groups)
        if not freedom:
            return cls(math.inf, math.inf, 1)
        shifts = [group.shifts for group in groups]
        launches = [[math.log(number) for number in group.old] for group in groups]
        return cls(_deviation(shifts, freedom), _deviation(launches, freedom), freedom)

    def of_shift(self, turns: int) -> float:
        """The standard error of the median of so many turns."""
        return self.deviation * math.sqrt((_MEDIAN if turns > 2 else 1.0) / turns)

    def half(self, confidence: float) -> float:
        """Standard errors in half an interval."""
        return float(special.stdtrit(self.freedom, (1 + confidence) / 2))


def _deviation(groups: Sequence[Sequence[float]], freedom: int) -> float:
    """Of values about their groups' medians, those far out pulled in."""
    residuals = [abs(value - statistics.median(group)) for group in groups for value in group]
    limit = PULLED_IN * max(_NORMAL * statistics.median(residuals), LEAST_NOISE)
    squares = sum(min(residual, limit) ** 2 for residual in residuals)
    return max(math.sqrt(squares / freedom), LEAST_NOISE)


@dataclass(frozen=True)
class Ratio:
    """new / old with its interval."""

    ratio: float
    low: float
    high: float

    @property
    def is_there(self) -> bool:
        """Whether the releases differ: clear of chance, and by more than the margin."""
        return (self.low > 1 or self.high < 1) and abs(math.log(self.ratio)) > math.log1p(MARGIN)

    @property
    def is_absent(self) -> bool:
        """Whether the releases are known not to differ by more than UNSEEN."""
        return not self.is_there and max(self.high, 1 / self.low) <= 1 + UNSEEN


def ratio(group: Group, noise: Noise) -> Ratio:
    """new / old of a group."""
    shift = group.shift
    half = noise.half(CONFIDENCE) * noise.of_shift(len(group.old))
    return Ratio(math.exp(shift), math.exp(max(shift - half, -20)), math.exp(min(shift + half, 20)))


def removed(base: Group, lever: Group, noise: Noise) -> tuple[float, float, float]:
    """The share of the difference that a lever removes, with the ends of its interval, in seconds or as a ratio, whichever
    is less: what slows both by the same seconds, or quickens both by the same factor, removes nothing."""
    shift, left = base.shift, lever.shift
    if not shift:
        return 0.0, -math.inf, math.inf
    error, error_left = noise.of_shift(len(base.old)), noise.of_shift(len(lever.old))
    of_scale = noise.of_launch * math.sqrt(_MEDIAN / len(base.old) + _MEDIAN / len(lever.old))
    scale = lever.levels[0] / base.levels[0]
    as_ratio = left / shift
    in_seconds = scale * math.expm1(left) / math.expm1(shift)
    parts = (
        scale * math.exp(left) / math.expm1(shift) * error_left,
        in_seconds * math.exp(shift) / math.expm1(shift) * error,
        in_seconds * of_scale,
    )
    by_ratio = as_ratio, math.hypot(error_left, as_ratio * error) / abs(shift)
    kept, spread = max(by_ratio, (in_seconds, math.hypot(*parts)))
    gone, half = 1 - kept, noise.half(SHARE_CONFIDENCE) * spread
    return gone, gone - half, gone + half
