"""At which release did each series change? Bisection of several series at once, so that they share what is installed.
Nothing here measures: who calls says what it is to measure a release, and what two measured ones say of a series."""

import enum
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

LITTLE = 2.0
"""Where neither half of a span is seen to have changed, the search goes on in the half that moved so many times as far as
the other. With less the change came in several steps, or slowly, and no half holds it."""


class Moved(enum.Enum):
    """What two releases say of a series."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Look(NamedTuple):
    """What was seen of a series between two releases. `size` is the logarithm of new over old, without its sign; infinite
    where one of the two has no number."""

    moved: Moved
    size: float


@dataclass(frozen=True)
class Span:
    """Positions of two measured releases between which a series changed: after `old`, at `new` at the latest. `seen` is the
    narrowest pair around it that was seen to differ, which is the span itself unless noise hid it there."""

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
    """The state of a search over `count` releases, of which the first and the last are measured. `measure` is given what to
    measure and returns whether that could be done; `look` compares two measured positions. `most` is the number of releases
    that may be measured in all, the ends counted in; None for as many as it takes."""

    count: int
    measure: Callable[[int, Task], bool]
    look: Callable[[Hashable, int, int], Look]
    most: int | None = None
    spans: dict[Hashable, list[Span]] = field(default_factory=lambda: defaultdict(list))
    measured: set[int] = field(default_factory=set)
    out_of_reach: set[int] = field(default_factory=set)

    def run(self, series: Iterable[Hashable]) -> None:
        """Narrows the spans of those of `series` whose ends differ, until each is one step wide or nothing can be learnt.
        An interruption leaves the spans as far as they are known."""
        last = self.count - 1
        self.measured |= {0, last}
        for one in series:
            seen = self.look(one, 0, last)
            if seen.moved is Moved.YES:
                self.spans[one] = [Span(0, last, (0, last), seen.size)]
        while (middle := self.best()) is not None:
            self._split(middle)

    def best(self) -> int | None:
        """The release nearest to the middle of what is open of the largest change; None where nothing is, or no more
        releases may be measured."""
        if self.most is not None and len(self.measured) >= self.most:
            return None
        between = [
            (-min(span.size, 1.0), abs(2 * at - span.old - span.new), at)
            for spans in self.spans.values()
            for span in spans
            if not self._is_settled(span)
            for at in range(span.old + 1, span.new)
            if at not in self.out_of_reach
        ]
        return min(between)[2] if between else None

    def _split(self, middle: int) -> None:
        task: dict[tuple[int, int, int], list[Hashable]] = defaultdict(list)
        for series, spans in self.spans.items():
            for span in spans:
                if span.old < middle < span.new and not self._is_settled(span):
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
        """What is left of a span when its middle is known: the halves that changed, else the one that holds most of it,
        else the span, which is then settled."""
        halves = [(span.old, middle), (middle, span.new)]
        looks = [self.look(series, *half) for half in halves]
        changed = [
            Span(*half, seen=half, size=seen.size)
            for half, seen in zip(halves, looks, strict=True)
            if seen.moved is Moved.YES
        ]
        if changed:
            return changed
        sizes = [seen.size for seen in looks]
        if max(sizes) >= LITTLE * min(sizes) and max(sizes) > 0:
            larger = sizes.index(max(sizes))
            return [Span(*halves[larger], seen=span.seen, size=span.size)]
        self._settled.add((span.old, span.new, span.seen))
        return [span]

    def _is_settled(self, span: Span) -> bool:
        return span.is_exact or (span.old, span.new, span.seen) in self._settled

    _settled: set[tuple[int, int, tuple[int, int]]] = field(default_factory=set)


def expected_releases(count: int, changes: int = 1) -> int:
    """How many of `count` releases so many changes cost at most: both ends, and one for each halving for each change."""
    return min(count, 2 + changes * math.ceil(math.log2(max(1, count - 1))))
