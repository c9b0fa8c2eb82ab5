"""The answer sheet of a comparison, made of what `compare` found: the same in the command, as data and in Markdown."""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract.metrics import METRICS, SEQUENCE

from .findings import MISSING, Finding, short
from .labels import Say, explained
from .results import summary
from .series import SAID_FIRST, Series, Verdict
from .verdicts import Change

if TYPE_CHECKING:
    from .compare import Comparison

WIDTH = 80  # columns of a terminal that the text keeps to
MOST_FINDINGS = 10  # findings that a page begins with; the worse have half of it where there are so many
MOST_REASONS = 3  # reasons why cases have no number that a card names
UNDECIDED = 0.5  # share of the times from which on inconclusive ones are what is said first where nothing changed
UNJUDGED = (Verdict.CANT_TELL, Verdict.NEVER_RAN)  # all verdicts of a case that was not measured on a release

UNMEASURED = {
    "import and start-up of a process": ("process_time", "start_time"),
    "resident memory": ("resident_memory", "start_resident"),
}
"""What a reader of an upgrade expects -> the metrics that tell it. It is named where no series of a comparison has any."""

_INDENT = 14

_SAID = {
    Verdict.SLOWER: "slower",
    Verdict.FASTER: "faster",
    Verdict.HUNGRIER: "higher",
    Verdict.LEANER: "lower",
    Verdict.MORE: "higher",
    Verdict.FEWER: "lower",
    Verdict.SAME: "the same",
    Verdict.CANT_TELL: "inconclusive",
}
"""Verdict on a number that both releases have -> its word in a count."""


@dataclass(frozen=True)
class Card:
    """One line of the answer: its `name`, what became of its series, and the findings that weigh most either way."""

    name: str
    verdict: str
    worst: Finding | None
    best: Finding | None

    def as_data(self) -> dict[str, Any]:
        worst, best = (finding and f"{finding.brief}." for finding in (self.worst, self.best))
        return {"name": self.name, "verdict": self.verdict, "worst": worst, "best": best}


CARDS = {"Time": False, "First calls": False, "Memory": True, "Counts": True}
"""Name of a card -> whether each of its metrics is said by name."""


def _card_of(series: Series) -> str:
    if series.measure.measured == SEQUENCE:
        return "First calls"
    return "Time" if series.varies else "Memory" if series.unit == "bytes" else "Counts"


def cards(comparison: Comparison) -> list[Card]:
    """The cards of a comparison that have a series, then what broke, and last what became of results."""
    found, changes, findings = [], comparison.changes, comparison.findings
    for name, by_metric in CARDS.items():
        theirs = [change for change in changes if _card_of(change.series) == name and change.verdict in _SAID]
        if theirs:
            of_card = (one for one in findings if _card_of(one.best.series) == name and one.verdict in _SAID)
            first = {one.verdict.kind: one for one in reversed([*of_card])}
            said = _by_metric(theirs) if by_metric else _verdict(theirs)
            found.append(Card(name, said, first.get("worse"), first.get("better")))
    results = [Card("Results", summary(comparison.results), None, None)] if comparison.results else []
    return [*found, _running(changes, findings), *results]


def _verdict(changes: Sequence[Change]) -> str:
    """`47 of 349 series slower, 58 faster, 120 the same, 124 inconclusive.`"""
    tally = Counter(_SAID[change.verdict] for change in changes)
    if len(tally) == 1:
        (word,) = tally
        return f"{word[0].upper()}{word[1:]} in {'all ' * (len(changes) > 1)}{len(changes):,} series."
    (first, count), *rest = [(word, tally[word]) for word in dict.fromkeys(_SAID.values()) if tally[word]]
    return f"{', '.join([f'{count:,} of {len(changes):,} series {first}', *(f'{n:,} {word}' for word, n in rest)])}."


def _by_metric(changes: Sequence[Change]) -> str:
    """`Peak memory: the same in all 277 series. Retained: the same in all 61 series.`"""
    of: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        of[change.series.metric].append(change)
    said = []
    for metric in sorted(of, key=lambda name: list(METRICS).index(name) if name in METRICS else len(METRICS)):
        verdict, words = _verdict(of[metric]), metric.replace("_", " ")
        said.append(f"{words[:1].upper()}{words[1:]}: {verdict[0].lower()}{verdict[1:]}")
    return " ".join(said)


def _running(changes: Sequence[Change], findings: Sequence[Finding]) -> Card:
    """What broke, what runs now, and what ran on neither release and why: by cases, each of one variant and size."""
    of: dict[object, list[Change]] = defaultdict(list)
    for change in changes:
        of[change.series.question, change.series.parameters].append(change)
    ran, never, unknown = list[list[Change]](), list[list[Change]](), list[list[Change]]()
    for each in of.values():
        is_never = all(change.verdict is Verdict.NEVER_RAN for change in each)
        is_lost = all(one.verdict in UNJUDGED and None in (one.old, one.new) for one in each)
        (never if is_never else unknown if is_lost else ran).append(each)
    broke, runs = (sum(any(change.verdict is verdict for change in each) for each in ran) for verdict in MISSING)
    others = [change for each in ran for change in each if change.verdict is Verdict.NEVER_RAN]
    said = [f"{broke} of {len(ran)} cases broke."] if broke else []
    said += [f"Nothing broke in {_many(len(ran), 'case', 'cases')}."] if ran and not broke else []
    said += [f"{runs} run now and did not before."] if runs else []
    for cases, what in ((never, "ran on neither release"), (unknown, "cannot be judged")):
        if cases:
            so_many = _many(len(cases), "more case", "more cases")
            said.append(f"{so_many} {what}: {_reasons([first for first, *_ in cases])}.")
    if others:
        so_many = _many(len(others), "series has", "series have")
        said.append(f"In cases that ran, {so_many} no number on either release: {_reasons(others)}.")
    worst, best = (next((one for one in findings if one.verdict is verdict), None) for verdict in MISSING)
    return Card("Broke", " ".join(said), worst, best)


def _many(count: int, one: str, more: str) -> str:
    return f"{count:,} {one if count == 1 else more}"


def _reasons(changes: Iterable[Change]) -> str:
    """`a copy needs a GPU (9); no compiler (6)`: up to its first semicolon each, the most frequent first."""
    reasons = (short(" ".join(change.reason.split()).partition(";")[0]).rstrip(".") for change in changes)
    tally = Counter(reason or "no reason is stored" for reason in reasons).most_common()
    rest = sum(count for _, count in tally[MOST_REASONS:])
    said = [f"{reason} ({count})" for reason, count in tally[:MOST_REASONS]]
    return "; ".join([*said, f"other reasons ({rest})"] if rest else said)


def unchanged(changes: Iterable[Change]) -> str:
    """What is said where there are no findings, in words that a full stop follows: inconclusive times are no answer."""
    changes = list(changes)
    if seen := sum(change.verdict.kind in SAID_FIRST for change in changes):
        return f"no change is certain: {_many(seen, 'series', 'series')} changed, and not when a cause was looked for"
    if changes and all(change.verdict is Verdict.NEVER_RAN for change in changes):
        return "nothing ran, so nothing can be compared"
    untold, times, is_undecided = inconclusive(changes)
    if not untold:
        return "no change was detected"
    said = f"{untold:,} of {_many(times, 'time', 'times')} {'is' if untold == 1 else 'are'} inconclusive"
    return f"undecided: {said}" if is_undecided else f"no change was detected, but {said}"


def inconclusive(changes: Iterable[Change]) -> tuple[int, int, bool]:
    """How many times are inconclusive, of how many, and whether these are so many that nothing is decided."""
    times = [change.verdict for change in changes if change.series.varies and change.verdict in _SAID]
    untold = times.count(Verdict.CANT_TELL)
    return untold, len(times), 0 < UNDECIDED * len(times) <= untold


def picked(findings: Sequence[Finding], most: int = MOST_FINDINGS) -> list[Finding]:
    """At most so many of ranked `findings`, those that cost first: these have half of the places where there are enough."""
    others = [finding for finding in findings if finding.verdict.kind != "worse"]
    worse = [one for one in findings if one.verdict.kind == "worse"][: max(most - len(others), most // 2)]
    return [*worse, *others[: most - len(worse)]]


def not_measured(comparison: Comparison) -> str:
    """What no verdict here is about."""
    questions = {change.series.question for change in comparison.changes}
    device = {"cpu": ("on a CPU", "; no GPU time"), "recorder": ("by the recorder", "; nothing was timed")}
    where, but = device.get(comparison.device, ("on a GPU", ""))
    threads = {"": "", "1": ", with one thread"}.get(comparison.threads, f", with {comparison.threads} threads")
    said = f"Measured: {len(questions)} question{'' if len(questions) == 1 else 's'} {where}{threads}{but}."
    metrics = {change.series.metric for change in comparison.changes}
    if absent := [words for words, of in UNMEASURED.items() if not metrics & {*of}]:
        said += f" Not measured here: {', '.join(absent)}."
    return " ".join([said, *one_sided(comparison)])


def one_sided(comparison: Comparison) -> list[str]:
    """That some series are not compared; nothing where there are none."""
    were, are = ("was", "is") if comparison.one_sided == 1 else ("were", "are")
    said = f"{comparison.one_sided} series {were} measured on only one of the two releases and {are} not compared."
    return [said] if comparison.one_sided else []


def as_data(comparison: Comparison) -> dict[str, Any]:
    """The sheet as JSON has it."""
    return {
        "cards": [card.as_data() for card in cards(comparison)],
        "sure": comparison.sure,
        "not_measured": not_measured(comparison),
    }


def in_short(comparison: Comparison) -> dict[str, Any]:
    """Where it was measured, what became of the series, and the first findings in sentences."""
    found = {card.name: card.verdict for card in cards(comparison)}
    say = explained()
    findings = [say(finding.words, finding.names) for finding in picked(comparison.findings, MOST_FINDINGS // 2)]
    return {"where": f"{comparison.machine}, {comparison.environment}", "cards": found, "findings": findings}


def text(comparison: Comparison, bold: Callable[[str], str] = str) -> str:
    """The sheet and at most MOST_FINDINGS findings in lines of WIDTH; `bold` sets off what a reader looks for."""
    say = explained()
    where = _wrapped(f"{comparison.machine}, {comparison.environment}", "")
    lines = [bold(f"{comparison.title} {comparison.old} -> {comparison.new}"), *where, ""]
    for card in cards(comparison):
        lines += _labelled(card.name, card.verdict, bold)
        for word, finding in (("worst", card.worst), ("best", card.best)):
            if finding is not None:
                lines += _wrapped(say(f"{word}: {finding.brief}.", finding.names), " " * _INDENT)
    for said in comparison.returned[:-1]:
        lines += _wrapped(said, " " * _INDENT)
    for name, sentences in (
        ("Not again", once(comparison)),
        ("How sure", comparison.sure),
        ("Scope", [not_measured(comparison)]),
        ("Environments", comparison.environments),
    ):
        if sentences:
            lines += _labelled(name, " ".join(sentences), bold)
    return "\n".join([*lines, "", *_listed(comparison, bold, say)])


def _listed(comparison: Comparison, bold: Callable[[str], str], say: Say) -> list[str]:
    findings = comparison.findings
    if not findings:
        said = unchanged(comparison.changes)
        return [bold(f"{said[0].upper()}{said[1:]}.")]
    shown = picked(findings)
    head = "Findings" if len(shown) == len(findings) else f"{len(shown)} of {len(findings)} findings"
    lines = [bold(f"{head}, of {sum(len(finding.rows) for finding in findings)} changed series:")]
    for number, finding in enumerate(shown, 1):
        lines += _wrapped(say(finding.words, finding.names), "    ", f"{number:>2}. ")
    return [*lines, "", *_wrapped("--all lists every series, --json all findings with their rows.", "")]


def once(comparison: Comparison) -> list[str]:
    """What was seen, and not when `explain` looked for its cause."""
    names = [change.series.words for change in comparison.changed if change.series in comparison.unconfirmed]
    return [f"Seen once, and not when `explain` looked for the cause: {'; '.join(names)}."] if names else []


def _labelled(name: str, words: str, bold: Callable[[str], str]) -> list[str]:
    first, *rest = _wrapped(words, " " * _INDENT)
    return [bold(f"{name:<{_INDENT}}") + first[_INDENT:], *rest]


def _wrapped(words: str, indent: str, first: str = "") -> list[str]:
    """In lines of WIDTH; a word that is longer, as a path may be, is broken."""
    return textwrap.wrap(words, WIDTH, initial_indent=first or indent, subsequent_indent=indent, break_on_hyphens=False)
