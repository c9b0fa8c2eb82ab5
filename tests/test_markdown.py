"""Does a name stand in Markdown as what it is, whatever it is? Read by a parser of Markdown."""

import itertools
import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tools import document
from tools.pages import coverage
from torch_history.analysis.markdown import code, escape
from torch_history.store.launches import Case, read_launches

from .lab import AXIS
from .result_files import append, write_machine
from .test_launches import some_launch

PARSER = MarkdownIt("gfm-like", {"html": True, "linkify": False})
PIECES = (
    "`", "``", "|", "*", "_", "[", "]", "(", ")", "<", ">", "!", "#", "&", "&lt;", "\\", "~", "$", "@", ":", "-", "+", "=",
    "1.", " ", "\t", "\n", "\r", "a", "b", "é", "https://x.example", "www.x.example", "mailto:a@x.example", "<b>", "<!--",
    "[a](https://x.example)", "![a](x)", "---", "```", "\u202e", "\u200b", "\x00", "\x1b[31m", "{{", "://", "</td>",
)  # fmt: skip
PLAIN = {"text", "text_special", "softbreak"}


def drawn(many: int) -> Iterator[str]:
    chance = random.Random(39)
    for _ in range(many):
        yield "".join(chance.choices(PIECES, k=chance.randrange(1, 9)))


def kinds(text: str) -> list[str]:
    """What a text holds besides text."""
    return [token.type for token in flat(PARSER.parse(text)) if token.type not in PLAIN]


def flat(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from flat(token.children or [])


def test_random_strings_are_text_in_a_list_and_in_a_table_and_what_a_reader_sees():
    in_list, in_table = kinds("- x"), kinds("| h | i |\n|---|---|\n| x | y |")
    for name in drawn(1500):
        assert not escape(name) or kinds(f"- {escape(name)}") == in_list, repr(name)
        assert kinds(f"| h | i |\n|---|---|\n| {escape(name)} | y |") == in_table
        shown = " ".join(name.split())
        if escape(name) and shown.isprintable():
            text = "".join(token.content for token in flat(PARSER.parse(f"- {escape(name)}")) if token.type in PLAIN)
            assert text.replace("\u2060", "") == shown, repr(name)


def test_random_strings_stay_in_their_span_of_code():
    for name in drawn(1500):
        found = flat(PARSER.parse(f"- x {code(name)} y"))
        spans = [(token.type, token.content) for token in found if token.type not in PLAIN]
        inline = [span for span in spans if span[0] not in kinds("- x")]
        assert inline in ([], [("code_inline", name)]), repr(name)
        assert kinds(f"| h | i |\n|---|---|\n| {code(name)} | y |").count("td_open") == 2
    assert code("at::native::kernel<4>") == "`at::native::kernel<4>`"


HOSTILE = "a` | [planted](https://planted.example) <b>planted</b> ![p](x) `"


def test_generated_documents_hold_no_link_and_no_markup_of_a_stranger(tmp_path, warned, monkeypatch):
    """Of results whose machine, environment, variant and reasons are called HOSTILE, as far as a disk allows."""
    machine = HOSTILE.replace("/", "_")
    write_machine(tmp_path / machine, device="recorder", card="turing", cpu=HOSTILE)
    both = itertools.product(enumerate(("v2.0.1", "v2.1.0")), (machine, f"{machine}b"))
    for ((number, release), environment), metric, turn in itertools.product(both, ("host_waits", "operators"), (1, 2)):
        case = Case((repr(HOSTILE), "'small'"), value=1 + number + turn + len(environment))
        cases = (case, Case((repr(f"{HOSTILE}c"), "'small'"), unavailable=HOSTILE))
        which: Any = {"session": f"{HOSTILE}{turn}", "launch": f"{number}{turn}", "round": turn, "cases": cases}
        benchmark = f"question{HOSTILE}.Own.track_{metric}".replace(".example", "")
        one = some_launch(release=release, environment=environment, benchmark=benchmark, **which)
        append(tmp_path, one, machine=machine)
    monkeypatch.setattr(document.compare, "tell", lambda *_: [SimpleNamespace(where=HOSTILE, said=HOSTILE)])
    lanes = {machine: document.by_lane(read_launches(tmp_path, machine))}
    assert lanes[machine]
    pages = {"recorded": document.recorded(tmp_path, lanes, AXIS, []), "coverage": coverage.document(lanes, AXIS)}
    for name, page in pages.items():
        assert "planted" in page
        tokens = list(flat(PARSER.parse(page)))
        links = [token.attrs.get("href") for token in tokens if token.type == "link_open"]
        assert not [link for link in links if "planted" in str(link)], name
        assert not [token.content for token in tokens if token.type in ("html_inline", "html_block", "image")], name
