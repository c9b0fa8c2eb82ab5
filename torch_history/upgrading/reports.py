"""The answer to `upgrade` for others: Markdown for a pull request, JSON for a program, an HTML file for a browser."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path

from ..analysis.compare import as_json as comparison_as_json
from ..analysis.markdown import escape
from ..analysis.verdicts import Change
from .answer import Answer, Place, Row, failure, notes, rest, where

SCHEMA = 1
"""Of what the JSON has beside that of `compare`; it grows by one when a key goes or changes its meaning."""


def as_json(found: Answer, failed: Sequence[Change] = ()) -> str:
    """The JSON of `compare` for the two ends, with `upgrade`, and `places` in each of its changes."""
    document = json.loads(comparison_as_json(found.comparison, failed))
    places = {row.change.series: [_place(found, place) for place in row.places] for row in found.rows}
    for change, entry in zip(found.comparison.changes, document["changes"], strict=True):
        entry["places"] = places.get(change.series, [])
    document["upgrade"] = {
        "schema": SCHEMA,
        "file": found.file,
        "lane": found.lane,
        "releases": found.tags,
        "measured": found.measured,
        "left_out": found.left_out,
        "finished": not found.unfinished,
        "open": found.is_open,
        "packages": [dict(zip(("name", "old", "new"), row, strict=True)) for row in found.packages or ()],
        "undecided": found.effort.undecided + found.effort.hopeless,
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)


def _place(found: Answer, place: Place) -> dict[str, object]:
    change = place.change
    return {
        "after": place.old,
        "at": place.new,
        "exact": place.is_exact,
        "seen": place.seen,
        "verdict": change.verdict.words,
        "old": change.old,
        "new": change.new,
        "ratio": change.ratio,
        "low": change.low,
        "high": change.high,
        "sentence": place.sentence,
        "explain": found.cause(place),
    }


def markdown(found: Answer, failed: Sequence[Change] = ()) -> str:
    """A table of what changed and a line for each other time and memory of a process. Unchanged counts are in the
    summary alone."""
    old, new = found.ends
    lines = [f"### {escape(found.file)}: PyTorch {escape(old)} → {escape(new)}", ""]
    if found.rows:
        lines += ["| series | change | since |", "|---|---|---|"]
        lines += [f"| {' | '.join(map(escape, _cells(found, row)))} |" for row in found.told]
        lines += ["", *(f"    {command}" for command in causes(found))]
    else:
        lines.append(found.nothing)
    lines += ["", *(f"- {escape(sentence)}" for sentence in rest(found, only_times=True))]
    lines += ["", *(f"{escape(line)}  " for line in [*notes(found), *failure(failed)])]
    return "\n".join(lines)


def _cells(found: Answer, row: Row) -> tuple[str, str, str]:
    series, _, said = row.sentence.partition(": ")
    places = (
        where(place, found.ends) + (f" ({found.absent(place)})" if found.absent(place) else "") for place in row.places
    )
    return series, said.rstrip("."), "; ".join(places)


def causes(found: Answer) -> list[str]:
    """The commands that look for the causes, each once."""
    commands = (found.cause(place) for row in found.told for place in row.places)
    return list(dict.fromkeys(filter(None, commands)))


_STYLE = Path(__file__).with_name("report.css")


def page(found: Answer, failed: Sequence[Change] = ()) -> str:
    """One HTML file that asks for no other: no script, no font, no picture."""
    old, new = found.ends
    title = html.escape(f"{found.file}: PyTorch {old} → {new}")
    cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(found, row)) for row in found.told]
    rows = "\n".join(
        f'<tr class="{row.change.verdict.kind}">{of_row}</tr>' for row, of_row in zip(found.told, cells, strict=True)
    )
    changed = (
        f"<table>\n<tr><th>Series</th><th>Change</th><th>Since</th></tr>\n{rows}\n</table>"
        if found.rows
        else f"<p>{found.nothing}</p>"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
{_STYLE.read_text(encoding="utf-8")}</style>
</head>
<body>
<h1>{title}</h1>
{changed}
{_listed("To find the causes", [f"<code>{html.escape(command)}</code>" for command in causes(found)])}
{_listed("The rest", [html.escape(sentence) for sentence in rest(found)])}
{_listed("How this was measured", [html.escape(line) for line in [*notes(found), *failure(failed)]], "notes")}
</body>
</html>
"""


def _listed(heading: str, items: Sequence[str], of: str = "") -> str:
    if not items:
        return ""
    lines = "\n".join(f"<li>{item}</li>" for item in items)
    return f'<h2>{heading}</h2>\n<ul class="{of}">\n{lines}\n</ul>'
