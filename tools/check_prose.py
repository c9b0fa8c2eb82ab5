"""Do the documents and the program read well? Sentence lengths and coined words: `python -m tools.check_prose`.

Prose is what stands in paragraphs and list items. Headings, tables, code, images and HTML are left out, and so is what a
program wrote between `<!-- what follows is written by ... -->` or `<!-- findings: ... -->` and its end mark. Code within a
sentence counts as a word, and so does what is quoted between “ and ”: somebody else said it.

What the program says are the string literals of `torch_history`, without docstrings, but with those of commands, which are
their help. A value that is put into a sentence counts as a word. Exit code 1 where a page or a module fails.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import math
import re
import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[1]

MEDIAN, TAIL = 18, 35
"""Words: the most that the median sentence of a page may have, and the most that its 95th percentile may."""

BANNED = {
    "those come first of which": "say which are measured first, and why",
    "in an order of chance": "in random order",
    "order of chance": "random order",
    "takes so many medians": "say which ratio it is",
    "in half of 361 times": "say the median",
    "where that was disturbed too": "say what happens when the repeat was disturbed as well",
    "asked again": "remeasured",
    "asked anew": "remeasured",
    "measured anew": "remeasured",
    "pulled in": "down-weighted",
    "lent": "borrowed from other series",
    "lends": "shrinkage",
    "hungrier": "uses more memory",
    "cannot be told": "is inconclusive",
    "could not be told": "is inconclusive",
    "could be told": "was detected",
    "can't be told": "is inconclusive",
    "untold": "inconclusive",
    "comes along": "is also measured",
    "left out": "skipped, omitted or excluded",
    "left aside": "ignored",
    "anew": "again",
    "goes on": "continues",
    "going on with": "continuing",
    "lies in": "is in",
    "lie in": "are in",
    "mend": "fix",
    "for want of": "because there was no",
    "so many": "say which ratio it is",
    "where nothing": "if nothing",
    "can not be told": "is inconclusive",
    "not told": "inconclusive",
    "is told": "is reported",
    "are told": "are reported",
    "as told": "as reported",
    "told apart": "distinguished",
    "tell of noise": "estimate the noise",
    "tell each other": "share",
    "beside": "alongside, next to, or besides",
    "goes on with": "continues with",
    "in words": "with a sentence that says why",
    "somebody else's": "another process's",
    "brings along": "also measures",
    "by other ways": "through other allocators",
    "nobody's change": "not a change in the code",
}
"""Words and phrases that were coined here or translated, in lower case -> what to write instead."""

_WRITTEN = re.compile(r"<!-- (?:what follows is written by|findings:).*?-->.*?<!-- end(?: of findings)? -->", re.DOTALL)
_QUOTED = re.compile(r"“[^”]*”")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|vs|etc|approx)\.")
_CODE = "\ufffc"


@dataclass(frozen=True)
class Sentence:
    """One sentence of a page, and the line on which its paragraph begins."""

    line: int
    text: str

    @property
    def words(self) -> int:
        return sum(any(letter.isalnum() or letter == _CODE for letter in word) for word in self.text.split())


@dataclass(frozen=True)
class Page:
    """What was found in one page."""

    name: str
    sentences: tuple[Sentence, ...]

    @property
    def median(self) -> float:
        """Words of the median sentence; 0 where there is none."""
        return statistics.median(each.words for each in self.sentences) if self.sentences else 0

    @property
    def tail(self) -> int:
        """Words of the sentence that 95 % of all are no longer than (nearest rank); 0 where there is none."""
        lengths = sorted(each.words for each in self.sentences)
        return lengths[math.ceil(0.95 * len(lengths)) - 1] if lengths else 0

    def faults(self) -> list[str]:
        """A line for each thing that is wrong, the page's figures first."""
        found = []
        if self.median > MEDIAN:
            found.append(f"the median sentence has {self.median:g} words, more than {MEDIAN}")
        if self.tail > TAIL:
            found.append(f"the 95th percentile is {self.tail} words, more than {TAIL}")
            found += [
                f"line {each.line}, {each.words} words: {shown(each)}" for each in self.sentences if each.words > TAIL
            ]
        for each in self.sentences:
            found += [f'line {each.line}: "{word}", write: {BANNED[word]}: {shown(each)}' for word in banned(each.text)]
        return found


def shown(sentence: Sentence) -> str:
    return sentence.text.replace(_CODE, "`…`")


def banned(text: str) -> list[str]:
    """The entries of BANNED that stand in a text, as whole words; a verdict, in capitals, is none of them."""
    text = text.replace("HUNGRIER", "")
    return [phrase for phrase in BANNED if re.search(rf"\b{re.escape(phrase)}\b", text, re.IGNORECASE)]


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each paragraph of a Markdown page, code replaced by one mark."""
    blanked = _WRITTEN.sub(lambda match: "\n" * match.group().count("\n"), text)
    tokens = MarkdownIt("commonmark").enable("table").parse(blanked)
    for before, token in itertools.pairwise(tokens):
        if before.type == "paragraph_open" and token.type == "inline" and token.map:
            yield token.map[0] + 1, "".join(_plain(token.children or ()))


def _plain(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "text":
            yield token.content
        elif token.type == "code_inline":
            yield _CODE
        elif token.type in ("softbreak", "hardbreak"):
            yield " "


def sentences(text: str) -> tuple[Sentence, ...]:
    """Sentences of a Markdown page. A colon or semicolon does not end one."""
    found = []
    for line, paragraph in prose(text):
        whole = _ABBREVIATION.sub(lambda match: match.group().replace(".", ""), _QUOTED.sub(_CODE, paragraph))
        parts = re.split(rf"""(?<=[.!?])["')\]]*\s+(?=["'(\[]*(?:[A-Z0-9{_CODE}]|v\d))""", whole)
        found += [Sentence(line, part.strip()) for part in parts if any(letter.isalnum() for letter in part)]
    return tuple(found)


def spoken(source: str, says_docstrings: bool = False) -> Iterator[tuple[int, str]]:
    """The line and the text of each string literal of a module that may be a sentence: two words or more. Docstrings are
    left out, but for those of functions where these are the help of commands; so is Python in a string."""
    tree = ast.parse(source)
    silent = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            silent.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            silent |= {id(part) for part in ast.walk(node) if part is not node}
    if says_docstrings:
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list]
        silent -= {id(node.body[0].value) for node in functions if isinstance(node.body[0], ast.Expr)}
    for node in ast.walk(tree):
        if id(node) not in silent and isinstance(node, (ast.Constant, ast.JoinedStr)):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else _CODE for part in parts)
            if len(text.split()) > 1 and not _is_code(text):
                yield node.lineno, text


def _is_code(text: str) -> bool:
    """Whether a text is lines of Python, and so for the interpreter and not for a reader."""
    try:
        return len(ast.parse(text).body) > 1
    except (SyntaxError, ValueError):
        return False


def said(source: str, says_docstrings: bool = False) -> tuple[Sentence, ...]:
    """Sentences that a module of the program says."""
    return tuple(
        Sentence(line + each.line - 1, each.text)
        for line, text in spoken(source, says_docstrings)
        for each in sentences(text)
    )


def pages(root: Path) -> list[Path]:
    """The pages that people write, and those that programs write."""
    docs = sorted(path for path in (root / "docs").rglob("*.md"))
    written = [root / "README.md", root / "CONTRIBUTING.md", root / "results" / "NOTES.md", *docs]
    return [path for path in written if path.exists()]


def read(path: Path, root: Path) -> Page:
    """Raises SyntaxError where a module is no Python."""
    text, name = path.read_text(encoding="utf-8"), str(path.relative_to(root))
    return Page(name, said(text, "cli" in path.parts) if path.suffix == ".py" else sentences(text))


def report(root: Path) -> bool:
    """Prints the figures of every page and module, and what is wrong with it. Whether all are right."""
    right = True
    modules = sorted((root / "torch_history").rglob("*.py"))
    for page in (read(path, root) for path in [*pages(root), *modules]):
        if not page.sentences:
            continue
        faults = page.faults()
        print(f"{page.name}: {len(page.sentences)} sentences, median {page.median:g}, 95th percentile {page.tail}")
        for fault in faults:
            print(f"  {fault}")
        right = right and not faults
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    sys.exit(not report(parser.parse_args().root))


if __name__ == "__main__":
    main()
