"""Do the numbers still come out? In another form, different beyond rounding, within it, or the same."""

import bisect
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contract.metrics import ROUNDING

from ..store.launches import Returned, Tensor
from .series import History, Series

EXACT = re.compile(r"bool|u?int\d*")

MOST_TOLD = 10  # results that have a sentence each


@dataclass(frozen=True)
class Result:
    """`forms`: `tensors`, `dtype`, `shape` or `strides` -> what they were and are. `difference`: the largest, as a
    share of the largest number, None if unknown; `by_chance`: it differs from call to call, and is not judged; `since`:
    the neighbouring releases, of those measured, between which it changed."""

    series: Series
    forms: Mapping[str, tuple[Any, Any]]
    difference: float | None = None
    rounding: float = 0.0
    by_chance: bool = False
    not_finite: tuple[int, int] = (0, 0)
    since: tuple[tuple[str, str], ...] = ()

    @property
    def is_beyond(self) -> bool:
        """Whether its numbers differ by more than rounding."""
        if self.by_chance:
            return False
        return len({*self.not_finite}) == 2 or (self.difference is not None and self.difference > self.rounding)

    @property
    def changed(self) -> bool:
        return bool(self.forms) or self.is_beyond

    @property
    def kind(self) -> str:
        """The words under which it is counted."""
        if self.is_beyond:
            return "DIFFERENT"
        if self.forms:
            return f"of another {'layout' if {*self.forms} == {'strides'} else next(iter(self.forms))}"
        if self.by_chance or self.difference is None:
            return "different at each call" if self.by_chance else "the same in form, its numbers not compared"
        return "different within rounding" if self.difference else "the same"

    def sentence(self, axis: Sequence[str] = ()) -> str:
        """What changed, and since when; releases that are neighbours on `axis` name the newer one alone."""
        said = [f"{what} {before} -> {now}" for what, (before, now) in self.forms.items()]
        if len({*self.not_finite}) == 2:
            said.append("DIFFERENT: {} numbers were not finite, and {} are".format(*self.not_finite))
        elif self.is_beyond:
            said.append(f"DIFFERENT by {self.difference:.2g} of its largest number (rounding: {self.rounding:.2g})")
        neighbours = set(itertools.pairwise(axis))
        since = [f"since {new}" if (old, new) in neighbours else f"between {old} and {new}" for old, new in self.since]
        name = f"{self.series.question.replace('_', ' ')} {self.series.case}".rstrip()
        return f"Result of {name}: {'; '.join(said)}{', ' * bool(since)}{' and '.join(since)}."

    def as_data(self, axis: Sequence[str]) -> dict[str, Any]:
        """As JSON has it, the sentence where it changed."""
        own = {name: getattr(self, name) for name in ("kind", "forms", "difference", "rounding", "not_finite", "since")}
        said = self.sentence(axis) if self.changed else ""
        return {"question": self.series.question, "parameters": self.series.plain, **own, "sentence": said}


def results(found: History, old: str, new: str) -> list[Result]:
    """Of each case of which both releases returned something, those that changed first."""
    told = [_between(series, of, old, new) for series, of in found.returned.items() if old in of and new in of]
    return sorted(told, key=lambda one: (not one.is_beyond, not one.forms, -(one.difference or 0.0)))


def sentences(told: Sequence[Result], axis: Sequence[str] = ()) -> list[str]:
    """One for each that changed, and one for all; nothing where nothing was returned."""
    changed = [one.sentence(axis) for one in told if one.changed]
    left_out = [f"{len(changed) - MOST_TOLD} more results changed."] * (len(changed) > MOST_TOLD)
    return [*changed[:MOST_TOLD], *left_out, *([summary(told)] if told else [])]


def summary(told: Iterable[Result]) -> str:
    """`Of 12 results 1 is DIFFERENT, 3 are different within rounding, 8 are the same.`"""
    tally = Counter(one.kind for one in told)
    counted = ", ".join(f"{count} {'is' if count == 1 else 'are'} {kind}" for kind, count in tally.items())
    return f"Of {tally.total()} {'result' if tally.total() == 1 else 'results'} {counted}."


def _between(series: Series, of: Mapping[str, Returned], old: str, new: str) -> Result:
    """With the steps on the way. Two releases of which neither was held against the other differ by the largest of these."""
    found, ends = judged(series, of[old], of[new], old, new), sorted(map(_order, (old, new)))
    tags = sorted((tag for tag in of if ends[0] <= _order(tag) <= ends[1]), key=_order)
    steps = [judged(series, of[one], of[other], one, other) for one, other in itertools.pairwise(tags)]
    if found.difference is None and steps and all(step.difference is not None for step in steps):
        worst = max(steps, key=lambda step: (step.is_beyond, step.difference or 0.0))
        found = replace(found, difference=worst.difference, rounding=worst.rounding)
    changed = [pair for pair, step in zip(itertools.pairwise(tags), steps, strict=True) if step.changed]
    return replace(found, since=tuple(changed)) if found.changed else found


def _order(tag: str) -> list[int]:
    """A release's place among others, by its version."""
    return [int(number) for number in re.findall(r"[0-9]{1,9}", tag)]


def judged(series: Series, before: Returned, now: Returned, old: str, new: str) -> Result:
    """By what is stored of these two alone."""
    counts = [sum(tensor.count for tensor in one.tensors) for one in (before, now)]
    pairs = list(_aligned(before.tensors, now.tensors)) if len({*counts}) == 1 else []
    forms = {} if pairs else {"tensors": (counts[0], counts[1])}
    for what in ("dtype", "shape", "strides"):
        for one, other in ((before.tensors[i], now.tensors[j]) for i, j in pairs):
            if _form(one, what) != _form(other, what) and (what != "strides" or one.shape == other.shape):
                forms.setdefault(what, (getattr(one, what), getattr(other, what)))
    held = [_held(before, now, i, j, old, new) for i, j in pairs]
    known = [(difference, rounding) for difference, rounding in held if difference is not None]
    is_known = bool(pairs) and len(known) == len(held)
    difference, rounding = max(known, key=lambda one: (one[0] > one[1], one[0])) if is_known else (None, 0.0)
    finite = [sum(tensor.not_finite for tensor in one.tensors) for one in (before, now)]
    by_chance = any(map(_is_by_chance, (before, now)))
    return Result(series, forms, difference, rounding, by_chance, (finite[0], finite[1]) if pairs else (0, 0))


def _aligned(before: Sequence[Tensor], now: Sequence[Tensor]) -> Iterator[tuple[int, int]]:
    """Which rows hold the same tensors of both, by their places: rows of one may be parts of a row of the other."""
    ends = [list(itertools.accumulate(tensor.count for tensor in one)) for one in (before, now)]
    for first in sorted({0, *ends[0], *ends[1]})[:-1]:
        yield bisect.bisect_right(ends[0], first), bisect.bisect_right(ends[1], first)


def _form(tensor: Tensor, what: str) -> Any:
    """What is compared: strides say nothing where a tensor has one number or none along a dimension, or another shape."""
    if what != "strides":
        return getattr(tensor, what)
    is_empty = 0 in tensor.shape
    return [step for size, step in zip(tensor.shape, tensor.strides, strict=False) if size > 1 and not is_empty]


def _held(before: Returned, now: Returned, i: int, j: int, old: str, new: str) -> tuple[float | None, float]:
    """How much row `j` of the new differs from row `i` of the old, None if unknown, and what is rounding there."""
    one, other = before.tensors[i], now.tensors[j]
    if one.digest and (one.dtype, one.shape, one.digest) == (other.dtype, other.shape, other.digest):
        return 0.0, 0.0
    stored = now.differences.get(old, ())[j : j + 1] or before.differences.get(new, ())[i : i + 1]
    return (stored[0] if stored else None), max(map(_rounding, (one.dtype, other.dtype)))


def _rounding(dtype: str) -> float:
    name = dtype.removeprefix("numpy.").partition(" ")[0]
    return 0.0 if EXACT.fullmatch(name) else ROUNDING.get(name, max(ROUNDING.values()))


def _is_by_chance(of: Returned) -> bool:
    """Whether two calls on one release differ by more than rounding, or in their form."""
    return any(
        difference is None or difference > _rounding(tensor.dtype)
        for difference, tensor in zip(of.again, of.tensors, strict=False)
    )
