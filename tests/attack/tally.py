"""How often was each kind of attack tried, and how often did the program survive it?"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

CLASSES = {
    "killed": "`kill -9` at a random moment while a line is being appended",
    "replaced": "`kill -9` at a random moment while a whole file is being replaced",
    "cut": "A file cut off at a random byte",
    "flipped": "One bit flipped in a file that carries a checksum",
    "flipped without": "One bit flipped in a file without a checksum: no traceback, no hang",
    "names": "A name with markup, an address, a control character, or 250 letters",
    "numbers": "A number at the edge of what a computer can hold, or none at all",
    "no file": "Something else where a file is expected: a device, a pipe, a folder",
    "foreign": "A file of the results that is a pipe, a device, a folder, a link, or JSON nested 100,000 times",
    "asv": "A file in asv's formats with more combinations, keys or letters than asv could take",
    "identity": "A machine's folder copied under another name, or launches of another release than their own",
    "repositories": "A repository, a folder or a link somewhere within the results",
    "memory": "Less memory than a command needs",
    "own files": "A file to be measured that is a pipe or a device, or has the name of a module that measures it",
    "ids": "Two lanes whose names differ in one character only",
    "signals": "Ctrl-C, SIGTERM, SIGHUP and SIGKILL at random moments of `compare` and `publish`",
    "measuring": "Ctrl-C, SIGTERM, SIGHUP and SIGKILL at random moments of a measurement",
    "workloads": "A workload that loops, crashes, exits, forks, allocates 100 GB, floods its output or deletes itself",
    "folders": "A folder given to `publish` that must not be replaced",
    "full disk": "A disk that is full, or a file that may not grow",
}
"""Kind of attack -> what is done, in words for a reader."""

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
BEGIN = "<!-- attacks: by `python -m tests.attack --write` -->"
END = "<!-- end of attacks -->"


@dataclass
class Tally:
    """What was tried and survived by kind of attack. `random` draws the attacks: the same for the same seed."""

    seed: int
    tried: Counter[str] = field(default_factory=Counter)
    survived: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    @contextlib.contextmanager
    def attack(self, kind: str, words: object) -> Iterator[None]:
        """Counts one attack, survived where the block raises nothing. Raises AssertionError that names the attack."""
        assert kind in CLASSES
        self.tried[kind] += 1
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            raise AssertionError(f"not survived ({kind}): {words}: {type(error).__name__}: {error}") from error
        self.survived[kind] += 1

    def table(self) -> str:
        """As Markdown, a row for each kind of attack."""
        return table({kind: (self.tried[kind], self.survived[kind]) for kind in CLASSES})


class Attacks:
    """The attacks of one test: all are tried before those that were not survived fail it."""

    def __init__(self, tally: Tally, kind: str) -> None:
        self.random = random.Random(f"{tally.seed} {kind}")
        self._tally, self._kind = tally, kind
        self._failed: list[str] = []
        self.tried = 0

    @contextlib.contextmanager
    def __call__(self, words: object) -> Iterator[None]:
        self.tried += 1
        try:
            with self._tally.attack(self._kind, words):
                yield
        except AssertionError as error:
            self._failed.append(str(error))

    def all_survived(self) -> None:
        shown = "\n".join(self._failed[:20])
        assert self.tried
        assert not self._failed, f"{len(self._failed)} of {self.tried} attacks were not survived:\n{shown}"


def table(counts: Mapping[str, tuple[int, int]]) -> str:
    rows = [f"| {CLASSES[kind]} | {tried} | {survived} |" for kind, (tried, survived) in counts.items()]
    return "\n".join(["| attack | tried | survived |", "|---|---:|---:|", *rows])


def with_table(page: str, text: str) -> str:
    """The page with `text` between its two marks. Raises ValueError where it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for the table: {BEGIN} and {END} are missing")
    return f"{before}{begin}\n{text}\n{end}{after}"
