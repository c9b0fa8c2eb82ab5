"""At which release did each series change? Bisection of several at once, so that they share what is installed."""

import enum
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

LITTLE = 2.0
"""How much more one half must have moved for the search to go on there, where neither is seen to have changed."""


class Moved(enum.Enum):
    """What two releases say of a series."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    NOTHING = "nothing"
    """One of both has no number of it."""


class Look(NamedTuple):
    """What was seen of a series between two releases; `size` is |log(new / old)|, infinite without a number."""

    moved: Moved
    size: float


@dataclass(frozen=True)
class Span:
    """A series changed after `old`, at `new` at the latest; `seen` is the narrowest pair that was seen to differ."""

    old: int
    new: int
    seen: tuple[int, int]
    size: float

    @property
    def is_exact(self) -> bool:
        return self.new == self.old + 1


Task = Mapping[tuple[int, int, int], Sequence[Hashable]]
"""An old, a middle and a new position that are measured in one session -> the series that are."""


@dataclass
class Search:
    """A search over `count` releases, both ends measured. `measure` says if that could be done, `look` compares two
    positions. `most` releases may be measured, None for as many as it takes."""

    count: int
    measure: Callable[[int, Task], bool]
    look: Callable[[Hashable, int, int], Look]
    most: int | None = None
    spans: dict[Hashable, list[Span]] = field(default_factory=lambda: defaultdict(list))
    measured: set[int] = field(default_factory=set)
    out_of_reach: set[int] = field(default_factory=set)
    silent: set[tuple[Hashable, int]] = field(default_factory=set)
    """Series and releases that were measured and say nothing of it."""

    def run(self, series: Iterable[Hashable]) -> None:
        """Narrows the spans of those of `series` whose ends differ, until nothing can be learnt or it is stopped. Run again,
        it hears what was measured since."""
        last = self.count - 1
        self.measured |= {0, last}
        self._settled.clear()
        self.silent.clear()
        for one in series:
            seen = self.look(one, 0, last)
            if seen.moved is Moved.YES:
                self.spans[one] = [Span(0, last, (0, last), seen.size)]
        while (middle := self.best()) is not None:
            self._split(middle)

    def best(self) -> int | None:
        """The release nearest to the middle of the largest open change, beyond `most` one that was measured, or None."""
        is_full = self.most is not None and len(self.measured) >= self.most
        between = [
            (-min(span.size, 1.0), abs(2 * at - span.old - span.new), at)
            for series, spans in self.spans.items()
            for span in spans
            if not self._is_settled(span)
            for at in range(span.old + 1, span.new)
            if at not in self.out_of_reach and (series, at) not in self.silent and (at in self.measured or not is_full)
        ]
        return min(between)[2] if between else None

    def _split(self, middle: int) -> None:
        task: dict[tuple[int, int, int], list[Hashable]] = defaultdict(list)
        for series, spans in self.spans.items():
            for span in spans:
                if span.old < middle < span.new and not self._is_settled(span) and (series, middle) not in self.silent:
                    task[span.old, middle, span.new].append(series)
        if not self.measure(middle, task):
            self.out_of_reach.add(middle)
            return
        self.measured.add(middle)
        for (old, _, new), of_span in task.items():
            for series in of_span:
                self.spans[series] = [
                    part
                    for span in self.spans[series]
                    for part in (self._halves(series, span, middle) if (span.old, span.new) == (old, new) else [span])
                ]

    def _halves(self, series: Hashable, span: Span, middle: int) -> list[Span]:
        """The halves that changed, else the one that holds most of it, else the span, which is then settled."""
        looks = {half: self.look(series, *half) for half in ((span.old, middle), (middle, span.new))}
        changed = [Span(*half, seen=half, size=seen.size) for half, seen in looks.items() if seen.moved is Moved.YES]
        if changed:
            return changed
        if all(seen.moved is Moved.NOTHING for seen in looks.values()):
            self.silent.add((series, middle))
            return [span]
        larger = max(looks, key=lambda half: looks[half].size)
        most, least = looks[larger].size, min(seen.size for seen in looks.values())
        if most >= LITTLE * least and most > 0:
            return [Span(*larger, seen=span.seen, size=span.size)]
        self._settled.add((span.old, span.new, span.seen))
        return [span]

    def _is_settled(self, span: Span) -> bool:
        return span.is_exact or (span.old, span.new, span.seen) in self._settled

    _settled: set[tuple[int, int, tuple[int, int]]] = field(default_factory=set)


def expected_releases(count: int, changes: int = 1) -> int:
    """How many of `count` releases so many changes cost at most: both ends, and one for each halving for each change."""
    return min(count, 2 + changes * math.ceil(math.log2(max(1, count - 1))))
