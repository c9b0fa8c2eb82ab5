"""What does moving a project to a newer torch bring? Told from its requirements file alone, for the command `upgrade`."""

import gc
import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..system.errors import UserError
from . import suite as suites
from .output import bold, harmless, machine_of

if TYPE_CHECKING:
    from ..releases.axis import Release

SCHEMA = 1
"""Of what --json prints."""

THEN = "Then try your own code:"

WIDTH, INDENT = 80, 14
"""Columns of a line, and where its words begin."""


SUFFIXES = (".in", ".lock", ".toml", ".txt", ".yaml", ".yml")
"""Of files of requirements, by which they are told from files that are measured."""


def move(file: Path, last: str, gpu: str, environment: str, form: str) -> tuple[str, bool]:
    """What moving the torch of `file` to a newer release brings, in words of a `form` (text, json or markdown), and whether
    it can work as the file stands. `last`: a release, or a newer file; `environment`: a lane as results/ names it. Nothing
    is installed, and no network is asked."""
    from ..releases import moving
    from ..releases.requirement_files import read
    from ..releases.wheels import FILE, load

    gc.disable()  # what a short command makes goes with its process
    python = environment.rpartition("-py")[2] if "-py" in environment else suites.DEFAULT_LANE
    wanted, newer = read(file.resolve(), python), read(Path(last).resolve(), python) if Path(last).is_file() else None
    suite = suites.load()
    new = moving.allowed(newer, suite.axis, last)[0][-1] if newer else suite.axis.find(last or "HEAD")
    capability = moving.capability_of(gpu) if gpu else ""
    old, asks = moving.between(wanted, suite.axis, new, file.name)
    rows = moving.rows(old, new, load(suite.list.with_name(FILE)), newer or wanted, capability)
    answer = {
        "schema": SCHEMA,
        "from": old.version,
        "to": new.version,
        "asks": asks,
        "stops": [row.name for row in rows if row.stops],
        "changed_too": [row.name for row in rows if row.changed],
        "rows": {row.name: row.words for row in rows},
        "on_the_way": moving.points(old, new, suite.axis),
        "measured": _measured(suite, environment, old, new),
    }
    own = f"torch-history upgrade mine.py --from {old.version} --to {new.version}"
    answer |= {"recommended": _recommended(answer), "next": "" if answer["stops"] else own}
    words = json.dumps(answer, indent=1, ensure_ascii=False) if form == "json" else _text(answer)
    return harmless(_markdown(answer)) if form == "markdown" else words, not answer["stops"]


def _measured(suite: suites.Suite, environment: str, old: "Release", new: "Release") -> dict[str, Any]:
    """What was measured of both: by this machine, else what the program came with, else by another; or why not."""
    from ..analysis import answer, compare
    from ..measuring.machine import describe
    from ..releases.moving import CONTRACT

    tags, here = (old.tag, new.tag), describe()["machine"]
    if not {*tags} <= compare.releases_of(suite.results, here):
        known = json.loads((CONTRACT / "moves.json").read_text(encoding="utf-8")).get(" ".join(tags), {})
        if known and known["where"].endswith(environment):
            return dict(known)
    try:
        machine = machine_of(suite.results, None, tags, environment)
        return answer.in_short(compare.find(suite.results, machine, environment, *tags))
    except UserError as error:
        return {"why": str(error)}
    except ModuleNotFoundError as error:
        return {"why": f"comparing needs the package {error.name}, which is not installed."}


def _sections(answer: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """What was measured, in order: a heading and its sentences."""
    measured = answer["measured"]
    if why := measured.get("why"):
        return [("Measured", [f"Nothing: {why}"])]
    where = f"By torch-history's own benchmarks, on {measured['where']}. A series is one quantity of one of them."
    said = [("Measured", [where]), *((f"  {name}", [verdict]) for name, verdict in measured["cards"].items())]
    return [*said, ("Findings", measured["findings"] or ["No change was detected."])]


def _recommended(answer: dict[str, Any]) -> str:
    if answer["stops"]:
        return f"As the file stands the move cannot work: see {', '.join(answer['stops'])}."
    too = f"Change {' and '.join(answer['changed_too'])} with it; nothing else" if answer["changed_too"] else "Nothing"
    return f"{too} here keeps you from moving."


def _text(answer: dict[str, Any]) -> str:
    lines = [bold(f"PyTorch {answer['from']} -> {answer['to']}"), *textwrap.wrap(harmless(answer["asks"]), WIDTH), ""]
    on_the_way = [f"{point['release']}: {point['words']} {point['source']}" for point in answer["on_the_way"]]
    rows = [(name, [words]) for name, words in answer["rows"].items()]
    form = textwrap.TextWrapper(WIDTH, subsequent_indent=" " * INDENT, break_on_hyphens=False, break_long_words=False)
    for name, sentences in [*rows, ("On the way", on_the_way), *_sections(answer)]:
        for i, sentence in enumerate(sentences):
            form.initial_indent = f"{'' if i else name:<{INDENT}}"
            lines += form.wrap(harmless(sentence))
    own = f" {THEN} `{answer['next']}`." if answer["next"] else ""
    return "\n".join([*lines, "", *textwrap.wrap(f"{answer['recommended']}{own}", WIDTH)])


def _markdown(answer: dict[str, Any]) -> str:
    from ..analysis.markdown import code, escape

    own = f" {THEN} {code(answer['next'])}" if answer["next"] else ""
    recommended = f"{escape(answer['recommended'])}{own}"
    lines = [f"### torch {answer['from']} → {answer['to']}", "", recommended, "", escape(answer["asks"]), ""]
    lines += [f"- **{escape(name)}** {escape(words)}" for name, words in answer["rows"].items()]
    for point in answer["on_the_way"]:
        lines.append(f"- **{point['release']}** {escape(point['words'])} ([source]({point['source']}))")
    for name, sentences in _sections(answer):
        indent = name[: len(name) - len(name.lstrip())]
        lines += [f"{indent}- **{escape(name.strip())}** {escape(sentence)}" for sentence in sentences]
    return "\n".join(lines)
