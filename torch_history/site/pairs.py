"""What do all pairs of releases of a lane say? Verdicts, causes and findings, made once, for pages that only draw them.

A pair is compared as `torch-history compare` does it, by the same functions. It is two releases in their order. Pairs are
numbered like `itertools.combinations`, series as in the lane. What a page must know of 435 pairs are a few lists of numbers,
which verdicts.js reads.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..analysis import causes, claims, compare, findings
from ..analysis.code import CodePair, WhatChanged, of_times
from ..analysis.power import alone_in, tied
from ..analysis.series import RANK, History, Pairs, Series
from ..analysis.verdicts import (
    ERROR_RATE,
    TOLD,
    Change,
    Evidence,
    bounded,
    error_rates,
    evidence_between,
    in_steps,
    of_steps,
    ratios_of,
    untied,
)

Pair = tuple[str, str]
Missed = Collection[tuple[Series, str, str]]
"""Series and releases between which `explain` looked for a change and did not see it again."""


@dataclass(frozen=True)
class Timed:
    """A time on all pairs: `code`, `half` and `confidence` as `Judged` has them, the `ratio` with its ends, and how often it
    was looked at (pairs); and its level on each release, fitted (`level`, logarithms) and `shown`, NaN where it has none."""

    code: Any
    half: Any
    confidence: Any
    ratio: Any
    low: Any
    high: Any
    looks: Any
    level: Any
    shown: Any


class EveryPair:
    """All comparisons of the releases `tags` of one lane, oldest first."""

    def __init__(self, found: History, tags: Sequence[str]) -> None:
        self.found, self.tags, self.series = found, [*tags], [*found]
        self.pairs: list[Pair] = [*itertools.combinations(self.tags, 2)]
        self.rates: dict[str, list[float]] = {}
        self.shifts: dict[str, dict[str, float]] = {}
        self.timed: dict[Series, Timed] = {}
        known: list[tuple[list[Series], Evidence]] = []
        for (_, question), fit in found.fits.items():
            evidence = evidence_between(fit, self.pairs)
            known.append((list(fit.levels), evidence))
            rates = error_rates(evidence)
            said, looks = evidence.judged(rates), np.broadcast_to(evidence.looks, evidence.shift.shape)
            self.rates[question] = rates.tolist()
            self.shifts[question] = dict(zip(fit.sessions, fit.shifts.tolist(), strict=True))
            shift, half = evidence.shift, of_steps(said.half)
            ends = (bounded(shift), bounded(shift - half), bounded(shift + half))
            of_pairs: list[Any] = [said.code, said.half, said.confidence, *ends, looks]
            for i, (series, of) in enumerate(fit.levels.items()):
                level, shown = np.full((2, len(self.tags)), math.nan, np.float32)
                for place, logarithm in zip(of.releases, of.level, strict=True):
                    tag = fit.releases[place]
                    level[self.tags.index(tag)], shown[self.tags.index(tag)] = logarithm, fit.shown(series, tag)
                self.timed[series] = Timed(*[*(of[i] for of in of_pairs), level, shown])
        self.untied = {series: _States(found, series, self.tags) for series in self.series}
        self.alone = [
            alone_in((tied(*of, number) for of in known), {*found}).words for number in range(len(self.pairs))
        ]
        self._rows = [(series, self.timed.get(series), self.untied[series]) for series in self.series]
        self._moving = [row for row in self._rows if row[1] is not None or row[2].count > 1]

    def changes(self, number: int, kinds: Collection[str]) -> Iterator[Change]:
        """What `compare_history` says of each series on a pair, by its number in `pairs`, where the verdict is of one of
        these kinds; of times without the counts of launches."""
        old, new = self.pairs[number]
        a, b = self.tags.index(old), self.tags.index(new)
        for series, timed, states in self._rows if "same" in kinds else self._moving:
            if timed is not None and (verdict := TOLD[timed.code[number]]):
                if verdict.kind not in kinds:
                    continue
                yield Change(
                    series,
                    verdict,
                    float(timed.shown[a]),
                    float(timed.shown[b]),
                    float(timed.ratio[number]),
                    float(timed.low[number]),
                    float(timed.high[number]),
                    confidence=float(timed.confidence[number]),
                )
            elif (change := states.change(a, b)) and change.verdict.kind in kinds:
                yield change


class _States:
    """The different things that were seen of a series on releases: of two that are the same, any third is judged alike."""

    def __init__(self, found: History, series: Series, tags: Sequence[str]) -> None:
        self._found, self._series, self._tags = found, series, tags
        places: dict[Hashable, int] = {}
        of = found[series]
        self.of_release = [
            places.setdefault(_seen(series, of[tag]), len(places)) if of.get(tag) else None for tag in tags
        ]
        self._changes: dict[tuple[int, int], Change] = {}
        self.count = len(places)

    def change(self, a: int, b: int) -> Change | None:
        """From the release at place `a` to that at `b`; None where one was not measured."""
        states = self.of_release[a], self.of_release[b]
        if states[0] is None or states[1] is None:
            return None
        found = self._changes.get((states[0], states[1]))
        if found is None or (self._series.varies and (found.old or found.new)):  # at the levels of these two releases
            found = untied(self._found, self._series, self._tags[a], self._tags[b])
            self._changes[states[0], states[1]] = found
        return found

    def outcomes(self) -> list[list[Change]]:
        """From each state to each."""
        first = {state: at for at, state in reversed([*enumerate(self.of_release)]) if state is not None}
        every = [first[state] for state in range(self.count)]
        tags = [self._tags[at] for at in every]
        return [[untied(self._found, self._series, old, new) for new in tags] for old in tags]


def _seen(series: Series, pairs: Pairs) -> Hashable:
    """All that `judge` sees of a release; of a time that has numbers, that it has them, and whether there is one alone."""
    launch, case = pairs[-1]
    numbers = tuple(case.number for _, case in pairs if case.number is not None)
    if numbers:
        return ("single" if len(numbers) == 1 else "several") if series.varies else numbers
    device = launch.facts.get("device")
    named = launch.release if case.unmeasured or device == "recorder" else ""
    return case.reason, case.unmeasured, case.failed, case.unavailable, device, named


# --- as the pages read it


def packed(
    every: EveryPair,
    facts: Mapping[str, Mapping[str, Any]],
    known: Iterable[causes.Known],
    missed: Missed,
    code_of: Callable[[str, str], CodePair | None] = lambda old, new: None,
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """All pairs as verdicts.js reads them: the `releases`; `timed` as `_timed` has it and `states` as `_states` has them;
    question -> the `rates` of errors, pair by pair, before the penalty for looking again; question -> session -> the
    logarithm of what it does to the whole question (`shifts`); pair by pair the sentence that says which changes of one time
    `alone` would be found, and what is `told`, whose causes are places among the `clauses`; and release by release what
    another variant would take `instead`. And what each release changed against the one before it, release -> `old`,
    `tally` by verdict, and the places of the series that `changed`."""
    place = {series: i for i, series in enumerate(every.series)}
    by_series: dict[tuple[str, str, tuple[str, ...]], list[causes.Known]] = defaultdict(list)
    for one in known:
        by_series[one.environment, one.benchmark, one.parameters].append(one)
    clauses: dict[str, int] = {}
    told: list[list[int]] = []
    of_neighbours: dict[str, dict[str, Any]] = {}
    neighbours = {*itertools.pairwise(every.tags)}
    for number, (old, new) in enumerate(every.pairs):
        changes = [*every.changes(number, RANK if (old, new) in neighbours else compare.SAID_FIRST)]
        if (old, new) in neighbours:
            of_neighbours[new] = {
                "old": old,
                "tally": Counter(change.verdict.words for change in changes),
                "changed": [place[one.series] for one in changes if one.verdict.kind in compare.SAID_FIRST],
            }
        changed = sorted((one for one in changes if one.verdict.kind in compare.SAID_FIRST), key=compare.place)
        code = of_times(changed, code_of(old, new))
        why = causes.why(changed, facts[old], facts[new], _fitting(by_series, changed), code)
        unseen = {series for series, *pair in missed if pair == [old, new]}
        told.append(_told(changed, why, code, unseen, place, clauses))
    return {
        "releases": every.tags,
        "timed": _timed(every, place),
        "rates": every.rates,
        "shifts": every.shifts,
        "alone": every.alone,
        "states": _states(every),
        "clauses": list(clauses),
        "told": told,
        "instead": _instead(every, place),
    }, of_neighbours


def _fitting(
    by_series: Mapping[tuple[str, str, tuple[str, ...]], list[causes.Known]], changed: Iterable[Change]
) -> list[causes.Known]:
    keys = ((one.series.environment, one.series.benchmark, one.series.parameters) for one in changed)
    return [known for key in keys for known in by_series.get(key, ())]


def key(series: Series) -> list[str]:
    """What a series is called within a lane; sorts as series do."""
    return [series.benchmark, *series.parameters]


def _told(
    changed: Sequence[Change],
    why: Mapping[Series, str],
    code: Mapping[Series, WhatChanged],
    unseen: Collection[Series],
    place: Mapping[Series, int],
    clauses: dict[str, int],
) -> list[int]:
    """Of each finding, as ranked, its number of rows, the clause that is its cause and how many rows have it, and
    of each row its series and clause. Clauses count from one. Last what `explain` did not see again, as rows of none."""

    def clause(words: str) -> int:
        return clauses.setdefault(words, len(clauses)) + 1 if words else 0

    def rows(series: Iterable[Series]) -> list[int]:
        return [number for one in series for number in (place[one], clause(why.get(one, "")))]

    numbers: list[int] = []
    for finding in findings.of_changes([one for one in changed if one.series not in unseen], why, code):
        numbers += [len(finding.rows), clause(finding.because), finding.explained]
        numbers += rows(row.series for row in finding.rows)
    left = [one.series for one in changed if one.series in unseen]
    return [*numbers, 0, *rows(left)]


def _instead(every: EveryPair, place: Mapping[Series, int]) -> list[list[int]]:
    """Of each release: each series that another may stand for, that one plus one or 0 where none takes surely
    less, and of a time half of the interval plus one, of a number that does not vary 0."""
    alike: dict[tuple[str, tuple[str, ...]], list[Series]] = defaultdict(list)
    for series in every.series:
        alike[series.benchmark, series.parameters[1:]].append(series)
    found: list[list[int]] = [[] for _ in every.tags]
    for members in alike.values():
        for variants in claims.INSTEAD.get(members[0].question, ()):
            group = [one for one in members if one.parameters and one.parameters[0].strip("'") in variants]
            for own in group:
                rivals = [one for one in group if one != own]
                for at, best, half in _best(every, own, rivals):
                    found[at] += [
                        place[own],
                        0 if best is None else place[rivals[best]] + 1,
                        *([] if best is None else [half]),
                    ]
    return found


def _best(every: EveryPair, own: Series, rivals: Sequence[Series]) -> Iterator[tuple[int, int | None, int]]:
    """Of each release on which a rival of a series was measured, its place, which rival takes surely least, if any takes
    less by more than BORDER, and half of that interval."""
    fit = every.found.fits.get((own.environment, own.question)) if own.varies else None
    if fit is not None and {own, *rivals} <= fit.levels.keys() and rivals:
        evidence = ratios_of(fit, own, rivals)
        count = (~np.isnan(evidence.shift)).sum(axis=0)
        halves = in_steps(evidence.half(1 - 2 * ERROR_RATE / np.maximum(count, 1))).astype(int)
        shift, half, tags = evidence.shift, of_steps(halves), fit.releases
        halves += 1
    else:
        shift = np.array([[_less(every.found, own, rival, tag) for tag in every.tags] for rival in rivals])
        halves, half, tags = np.zeros(shift.shape, int), np.zeros(shift.shape), every.tags
    for column, tag in enumerate(tags):
        if rivals and tag in every.tags and not np.isnan(shift[:, column]).all():
            best = int(np.nanargmin(shift[:, column] + half[:, column]))
            is_less = shift[best, column] + half[best, column] < -math.log(claims.BORDER)
            yield every.tags.index(tag), best if is_less else None, int(halves[best, column])


def _less(found: History, own: Series, rival: Series, tag: str) -> float:
    """The logarithm of how many times as much a rival takes on a release, of numbers that do not vary; NaN without both."""
    numbers = [[case.number for _, case in found[one].get(tag, []) if case.number] for one in (own, rival)]
    return math.log(numbers[1][-1] / numbers[0][-1]) if all(numbers) and not own.varies else math.nan


def _timed(every: EveryPair, place: Mapping[Series, int]) -> dict[str, Any]:
    """Lists of the times, row by row, a row for each of `series`. Pair by pair: `codes` (places in `verdicts`, of which null
    says that no rounds tie the two releases), `halves` of the interval of the ratio's logarithm as `of_steps` reads them,
    and how often they were looked at (`looks`). Release by release: `levels`, logarithms of which a difference is that of a
    ratio, and the level as it is `shown`, in numbers of 32 bits, None where it was not measured."""
    rows = list(every.timed.values())

    def together(name: str) -> Any:
        return np.array([getattr(row, name) for row in rows]).reshape(-1)

    def shown(name: str) -> list[float | None]:
        return [None if np.isnan(number) else float(str(number)) for number in together(name)]

    codes = together("code")
    return {
        "series": [place[series] for series in every.timed],
        "verdicts": [verdict and verdict.words for verdict in TOLD],
        "codes": codes.tolist(),
        "halves": np.where(codes > 0, together("half"), 0).tolist(),
        "looks": together("looks").tolist(),
        "levels": shown("level"),
        "shown": shown("shown"),
    }


def _states(every: EveryPair) -> dict[str, Any]:
    """`of_series` is the place in `rows` of each series; a row is the state of each release, of which -1 is none, and for
    each pair of states, row by row, a verdict and a reason, by their places in `verdicts` and `reasons`."""
    verdicts: dict[str, int] = {}
    reasons: dict[str, int] = {}
    rows: dict[tuple[Any, ...], int] = {}
    of_series = []
    for series in every.series:
        states = every.untied[series]
        outcomes = [
            (
                verdicts.setdefault(change.verdict.words, len(verdicts)),
                reasons.setdefault(change.reason, len(reasons)),
            )
            for changes in states.outcomes()
            for change in changes
        ]
        of_release = tuple(-1 if state is None else state for state in states.of_release)
        of_series.append(rows.setdefault((of_release, *itertools.chain(*outcomes)), len(rows)))
    return {
        "of_series": of_series,
        "rows": [[list(row[0]), list(row[1:])] for row in rows],
        "verdicts": list(verdicts),
        "reasons": list(reasons),
    }
