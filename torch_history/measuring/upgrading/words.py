"""The answer to `upgrade`: text for a terminal, Markdown for a pull request, JSON for a program."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...analysis.compare import as_json as comparison_as_json
from ...analysis.compare import by, by_case, clause, of_case, sentence, summary
from ...analysis.markdown import escape
from ...analysis.series import Verdict
from ...analysis.verdicts import Change
from ...store.launches import moved_words
from ..budget import left_words
from .upgrade import DRIVING, Answer, Place, Row

SCHEMA = 1
"""Of what the JSON has beside that of `compare`; it grows by one when a key goes or changes its meaning."""

UNCHANGED = "Nothing became slower or faster, or took more or less memory, as far as this can be seen."
UNSURE = "No change is certain."
"""Where no series changed: all numbers told, or some inconclusive."""


def text(found: Answer, failed: Sequence[Change] = ()) -> str:
    """For a terminal; `failed` are the series that --fail-on names."""
    old, new = found.ends
    lines = [f"{found.file}, {old} -> {new}:"]
    lines += [] if found.rows else ["", nothing(found)]
    for row, changes in _cases(found):
        lines += ["", _sentence(found, row, changes)]
        for place in row.places:
            lines.append(f"  {where(place, found.ends)}.")
            lines += [f"  Looked for again: {absent}."] if (absent := found.absent(place)) else []
            lines += [f"  To find the cause: {cause}"] if (cause := found.cause(place)) else []
    lines += ["", *returned] if (returned := found.comparison.returned) else []
    return "\n".join([*lines, "", *rest(found), "", *_notes(found, failed)])


def markdown(found: Answer, failed: Sequence[Change] = ()) -> str:
    """A table of what changed, and a line for each other time and memory. Unchanged counts are in the summary."""
    old, new = found.ends
    lines = [f"### {escape(found.file)}: PyTorch {escape(old)} → {escape(new)}", ""]
    if found.rows:
        lines += ["| change | since |", "|---|---|"]
        for row, changes in _cases(found):
            places = [
                where(place, found.ends) + (f" ({absent})" if (absent := found.absent(place)) else "")
                for place in row.places
            ]
            lines.append(f"| {escape(_sentence(found, row, changes))} | {escape('; '.join(places))} |")
        commands = dict.fromkeys(found.cause(place) for row in found.rows for place in row.places)
        lines += ["", *(f"    {command}" for command in commands if command)]
    else:
        lines.append(nothing(found))
    others = rest(found, lambda change: change.series.margin > 0)
    lines += ["", *(f"- {escape(each)}" for each in [*found.comparison.returned, *others])]
    return "\n".join([*lines, "", *(f"{escape(line)}  " for line in _notes(found, failed))])


def as_json(found: Answer, failed: Sequence[Change] = ()) -> str:
    """The JSON of `compare` for the two ends, with `upgrade`, and `places` in each of its changes."""
    document = json.loads(comparison_as_json(found.comparison, failed))
    places = {row.change.series: [_place(found, place) for place in row.places] for row in found.rows}
    for change, entry in zip(found.comparison.changes, document["changes"], strict=True):
        entry["places"] = places.get(change.series, [])
    document["upgrade"] = {
        "schema": SCHEMA,
        "releases": found.tags,
        **{name: getattr(found, name) for name in ("file", "lane", "measured", "left_out")},
        "finished": not found.unfinished,
        "open": found.is_open,
        "packages": [dict(zip(("name", "old", "new"), row, strict=True)) for row in found.packages or ()],
        "undecided": found.left[0].undecided + found.left[0].hopeless,
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)


FORMS: dict[str, Callable[[Answer, Sequence[Change]], str]] = {"text": text, "markdown": markdown, "json": as_json}


def _place(found: Answer, place: Place) -> dict[str, object]:
    change = place.change
    return {
        "after": place.old,
        "at": place.new,
        "exact": place.is_exact,
        "seen": place.seen,
        "verdict": change.verdict.words,
        **{name: getattr(change, name) for name in ("old", "new", "ratio", "low", "high")},
        "sentence": sentence(change, place.because),
        "explain": found.cause(place),
    }


def _cases(found: Answer) -> list[tuple[Row, list[Change]]]:
    """The rows, with the changes that each tells: those of all metrics that a case lacks for one reason are one."""
    of = {row.change.series: row for row in found.rows}
    return [(of[changes[0].series], changes) for changes in by_case(row.change for row in found.rows)]


def _sentence(found: Answer, row: Row, changes: Sequence[Change]) -> str:
    """What changed between the ends, in a sentence. A cause is told once, at its release."""
    is_told = any(place.because and (place.is_exact or (place.old, place.new) != found.ends) for place in row.places)
    return of_case(changes, replace(found.comparison, why={} if is_told else found.comparison.why))


def where(place: Place, ends: tuple[str, str]) -> str:
    """`at v2.4.0 (after v2.3.1): SLOWER 1.10 times (1.09 to 1.11)`, or between which releases."""
    change, seen = place.change, ""
    if not place.is_exact:
        if (place.old, place.new) == ends:
            return "somewhere between the two"
        at = f"after {place.old}, at {place.new} at the latest"
    else:
        at = f"at {place.new} (after {place.old})"
        if place.seen != (place.old, place.new):
            at, seen = f"probably {at}", f", shown between {place.seen[0]} and {place.seen[1]}"
    return f"{at}{seen}: {change.verdict.shown if None in (change.old, change.new) else clause(change, place.because)}"


def nothing(found: Answer) -> str:
    """What is said where no series changed."""
    every = found.comparison.changes
    if not found.ran:
        return "Nothing ran, so nothing can be compared."
    unsure = sum(change.verdict is Verdict.CANT_TELL for change in every)
    return f"{UNSURE} {unsure} of {len(every)} series are inconclusive, listed below." if unsure else UNCHANGED


def rest(found: Answer, wanted: Callable[[Change], bool] = lambda change: True) -> list[str]:
    """A sentence for each series that did not change for better or worse, with how small a change would have been seen."""
    unchanged = (change for change in found.comparison.changes if change.verdict.kind not in DRIVING and wanted(change))
    return [of_case(changes, found.comparison, seen(changes[0])) for changes in by_case(unchanged)]


def seen(change: Change) -> str:
    """How small a change would have been seen, and that a time is the same only within its margin."""
    if change.verdict is not Verdict.SAME or change.detectable is None:
        return ""
    differs = change.low is not None and change.high is not None and not change.low <= 1 <= change.high
    margin = f", within the margin of {100 * change.series.margin:.0f} %" if differs else ""
    return f"{margin}; a change of {by(change.detectable)} would have been seen"


def _notes(found: Answer, failed: Sequence[Change]) -> list[str]:
    """What was measured, what is left open, with what the verdicts were made, and what --fail-on found."""
    lines = [f"{len(found.measured)} of {len(found.tags)} releases were measured: {', '.join(found.measured)}."]
    lines += [f"{tag} was passed over: {why}" for tag, why in found.left_out.items()]
    lines += [found.reused] if found.reused else []
    lines += [] if found.packages is None else [moved_words(found.packages)]
    if found.unfinished:
        lines.append("This is not finished. The same command continues from here.")
    else:
        unreached = ", ".join(found.left[0].unreached)
        lines += [f"There was no time for {unreached}. Allow it with --budget."] if unreached else []
        spent = "The budget was over before all releases were found. The same command continues from here."
        known = f"More releases would tell more closely. Allow them with --most {len(found.tags)}."
        lines += [spent if found.spent else known] if found.is_open else []
        lines += [said] if (said := left_words(found.left, "The same command with")) else []
    lines += summary(found.comparison)
    return [*lines, f"Failed by --fail-on: {'; '.join(one.series.words for one in failed)}."] if failed else lines
