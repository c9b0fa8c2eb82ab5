"""What belongs together? Changes or steps of one variant or one cause, over sizes, are one finding."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .causes import Basis, Because, listed
from .code import SAME_CODE, WhatChanged
from .series import SAID_FIRST, TIMES, Name, Series, Verdict
from .verdicts import Change, bound, human, times

LEAST_AMOUNT = 1e5  # bytes from which a change of several rows may be said as an amount, in MB
ALIKE = 1.25  # how many times the least of several amounts the largest is at most, where they are told as one
CPP = "cpp_"  # begin of variants that call the same operators from C++: they belong to the rest of their name
UNSEEN = "1.00"  # a factor that reads as no change at all
MOST_NAMED = 3  # variants that a title names of many
LONGEST_REASON = 160  # characters of the reason that a sentence gives for what no longer runs

MISSING = (Verdict.BROKE, Verdict.FIXED)
"""Verdicts on what has a number in one release alone: all metrics of a case that go together are one case of a finding."""


@dataclass(frozen=True)
class Row(Change):
    """A change between two releases, or a step at one `release`, in words; why, and what changed in the code."""

    because: Because | None = None
    release: str = ""
    code: WhatChanged | None = None

    @property
    def variant(self) -> str:
        return self.series.variant.removeprefix(CPP)

    @property
    def nearest(self) -> float:
        """The bound of its interval nearest to no change, as a logarithm to nine places: more differ by processor."""
        if not self.ratio or not self.low or not self.high:
            return math.inf
        return round(max(0.0, math.log(self.low) if self.ratio > 1 else -math.log(self.high)), 9)


@dataclass(frozen=True)
class Finding:
    """Rows, the surest first, with the cause that most of the explained ones have, and how many have it."""

    rows: tuple[Row, ...]
    because: Because | None
    explained: int

    @property
    def best(self) -> Row:
        """The row whose interval is farthest from no change."""
        return self.rows[0]

    @property
    def verdict(self) -> Verdict:
        return self.best.verdict

    @property
    def code(self) -> WhatChanged | None:
        """What changed in the code of most of its rows: that of the surest row of the class that most have."""
        known = [row.code for row in self.rows if row.code]
        kinds = Counter(found.kind for found in known)
        return next((found for found in known if found.kind is kinds.most_common(1)[0][0]), None)

    @property
    def cases(self) -> int:
        return len({row.series.parameters for row in self.rows})

    @property
    def ratios(self) -> tuple[float, float] | None:
        """The least and the largest ratio new / old; None where a row has none."""
        known = [row.ratio for row in self.rows if row.ratio]
        return (min(known), max(known)) if len(known) == len(self.rows) else None

    @property
    def title(self) -> str:
        """`selection time, take_reused`; of a cause that has a title its own; of a single row its series."""
        if self.because and self.because.title:
            return self.because.title
        series = self.best.series
        metrics = dict.fromkeys(row.series.metric for row in self.rows)
        question, metric = (name.replace("_", " ") for name in (series.question, listed([*metrics])))
        variants = listed(self.variants, len({row.variant for row in self.rows}) - len(self.variants))
        if self.verdict in MISSING:
            return f"{question}, {series.case if self.cases == 1 else variants}"
        return series.words if len(self.rows) == 1 else f"{question} {metric}, {variants}"

    @property
    def variants(self) -> list[str]:
        """Those that its title names."""
        every = list(dict.fromkeys(row.variant for row in self.rows))
        return every if len(every) <= MOST_NAMED + 1 else every[:MOST_NAMED]

    @property
    def names(self) -> list[Name]:
        """What its title names: one series, or variants. A cause's title names none."""
        if self.because and self.because.title:
            return []
        alone = self.cases == 1 if self.verdict in MISSING else len(self.rows) == 1
        return self.best.series.names if alone else [(self.best.series.question, name) for name in self.variants]

    @property
    def brief(self) -> str:
        """`Indexing x[index]: 1.15 to 1.92 times slower in 23 cases`"""
        return f"{self.title}: {_how(self)}" + (f" in {self.cases} cases" if self.cases > 1 else "")

    @property
    def words(self) -> str:
        """`Indexing x[index]: 1.15 to 1.92 times slower in 23 cases since 2.14.0, because …`"""
        since = self.because.since if self.because and not self.best.release else ""
        said = self.brief + (f" since {since}" if since else "")
        if self.verdict in MISSING:
            reason = " ".join(self.best.reason.split())
            return f"{said}: {short(reason).rstrip('.')}."
        return f"{said}{self._why}."

    @property
    def _why(self) -> str:
        if not self.because:
            return ", unexplained" if self.best.series.varies or self.best.series.unit == "bytes" else ""
        words = replace(self.because, since="").words
        return f", {words}" if self.explained == len(self.rows) else f"; {self.explained} of them {words}"

    def as_data(self) -> dict[str, Any]:
        """As JSON has it; docs/commands.md lists the keys. Rows are [benchmark, parameters]."""
        best, ends = self.best, sorted(self.ratios or (), key=lambda ratio: abs(math.log(ratio)))
        return {
            **{name: getattr(self, name) for name in ("title", "words")},
            **{name: getattr(best.series, name) for name in ("question", "metric")},
            "verdict": self.verdict.words,
            "kind": self.verdict.kind,
            "release": best.release or (self.because.since if self.because else ""),
            "cases": self.cases,
            "least": ends[0] if ends else None,
            "most": ends[-1] if ends else None,
            "nearest": None if math.isinf(best.nearest) else math.exp(best.nearest),
            "because": self.because.words if self.because else "",
            "class": self.code.kind.value if self.code else "",
            "explained": self.explained,
            "rows": [[row.series.benchmark, row.series.plain] for row in self.rows],
        }


def of_changes(
    changes: Iterable[Change], why: Mapping[Series, Because], code: Mapping[Series, WhatChanged] | None = None
) -> list[Finding]:
    """The findings of all that changed, broke or runs again, ranked; `why` ends their sentences."""
    told = [change for change in changes if change.verdict.kind in SAID_FIRST]
    rows = (Row(**vars(one), because=why.get(one.series), code=(code or {}).get(one.series)) for one in told)
    return ranked(group(rows))


def group(rows: Iterable[Row]) -> list[Finding]:
    """`rows` that belong together, in the order of the first of each."""
    found: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[_key(row)].append(row)
    return [_finding(of) for of in found.values()]


def _key(row: Row) -> tuple[object, ...]:
    series = row.series
    if row.verdict in MISSING:
        return series.environment, series.question, row.verdict, row.release, row.variant, row.reason
    common = row.because is not None and row.because.is_common
    belongs = row.because if common else row.variant
    of = series.unit if common and series.unit == "bytes" else series.metric
    return series.environment, series.question, of, row.verdict, row.release, common, belongs


def _finding(rows: Sequence[Row]) -> Finding:
    surest = sorted(rows, key=lambda row: -row.nearest)
    said = [row.because for row in surest if row.because and row.because.basis is not Basis.NOTHING]
    known = Counter([because for because in said if because.basis is not Basis.BESIDE] or said)
    because, explained = known.most_common(1)[0] if known else (None, 0)
    return Finding(tuple(surest), because, explained)


def ranked(found: Iterable[Finding]) -> list[Finding]:
    """What is missing first, then times and memory, then counts, and times of unchanged code last; then by the bound
    nearest to no change, of which the second finding of a question and metric has half, the third a third."""
    places: Counter[tuple[object, ...]] = Counter()
    weighed = []
    for finding in sorted(found, key=lambda finding: -finding.best.nearest):
        series = finding.best.series
        alike = series.environment, series.question, series.metric, finding.verdict in MISSING
        places[alike] += 1
        is_same_code = all(row.code and row.code.kind in SAME_CODE for row in finding.rows)
        of_kind = 2 if finding.verdict.kind == "changed" else 1
        first = 0 if finding.verdict in MISSING else 3 if is_same_code else of_kind
        weighed.append((first, -finding.best.nearest / places[alike], finding))
    return [finding for *_, finding in sorted(weighed, key=lambda one: one[:2])]


def _how(finding: Finding) -> str:
    """By how much, with the interval where there is one row alone."""
    verdict, best, ratios = finding.verdict, finding.best, finding.ratios
    if verdict is Verdict.BROKE:
        return "no longer runs"
    if verdict is Verdict.FIXED:
        return "runs now, and did not before"
    alone, factors = len(finding.rows) == 1, [max(ratio, 1 / ratio) for ratio in ratios or ()]
    if verdict in TIMES and ratios:
        word = "slower" if verdict is Verdict.SLOWER else "faster"
        ends = sorted(1 / of if verdict is Verdict.FASTER else of for of in (best.low, best.high) if of)
        interval = f" ({' to '.join(map(bound, ends))})" if alone and len(ends) == 2 else ""
        return f"{_range(factors)} times {word}{interval}"
    unit = best.series.unit
    numbers = f"{human(best.old, unit)} to {human(best.new, unit)}"
    rose = verdict in (Verdict.HUNGRIER, Verdict.MORE, Verdict.SLOWER)
    word = "more" if rose else "less" if unit == "bytes" else "fewer"
    if not ratios or (unit != "bytes" and times(max(factors)) == UNSEEN):
        return f"{word}, from {numbers}" if alone else f"{word}, such as from {numbers}"
    said = f"{_range(factors, UNSEEN)} times {word}"
    if times(max(factors)) == UNSEEN:
        said = f"{amounts([abs((row.new or 0) - (row.old or 0)) for row in finding.rows if row.ratio])} {word}"
    if alone:
        return f"{said}, from {numbers}"
    alike = _alike_amounts(finding.rows)
    return f"{amounts(alike)} {word} each ({said})" if alike else said


def _alike_amounts(rows: Sequence[Row]) -> list[float]:
    """By how many bytes each row changed, where they are alike and lie closer together than ratios do. Else none."""
    pairs = [(row.old, row.new) for row in rows if row.old and row.new and row.series.unit == "bytes"]
    amounts = [abs(new - old) for old, new in pairs]
    if len(pairs) < len(rows) or min(amounts) < LEAST_AMOUNT:
        return []
    shares = [amount / old for amount, (old, _) in zip(amounts, pairs, strict=True)]
    spread, of_shares = (max(numbers) / min(numbers) for numbers in (amounts, shares))
    return amounts if spread < min(ALIKE, of_shares) else []


def amounts(bytes_of: Sequence[float]) -> str:
    """`7.0 to 8.5 MB`; `64 B to 512 B` where one is less than LEAST_AMOUNT."""
    is_large = min(bytes_of) >= LEAST_AMOUNT
    least, most = (f"{of / 1e6:,.1f}" if is_large else human(of, "bytes") for of in (min(bytes_of), max(bytes_of)))
    return (least if least == most else f"{least} to {most}") + " MB" * is_large


def _range(factors: Sequence[float], unsaid: str = "") -> str:
    """`2.00 to 54`; where the least one is `unsaid`, `up to 54`."""
    least, most = times(min(factors)), times(max(factors))
    if least == most:
        return least
    return f"up to {most}" if least == unsaid else f"{least} to {most}"


def short(reason: str) -> str:
    """A reason of LONGEST_REASON characters at most, cut between words."""
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON].rpartition(' ')[0]} …"
