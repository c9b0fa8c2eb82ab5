"""How often was each kind of attack tried, and how often did the program survive it?"""

import contextlib
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tools.pages import between

SEED = int(os.environ.get("ATTACK_SEED", "19"))
"""The attacks are the same in every run; ATTACK_SEED draws others."""

CLASSES = {
    "killed": "`kill -9` at a random moment while a line is being appended",
    "replaced": "`kill -9` at a random moment while a whole file is being replaced",
    "cut": "A file cut off at a random byte",
    "flipped": "One bit flipped in a file that carries a checksum",
    "flipped without": "One bit flipped in a file without a checksum: no traceback, no hang",
    "names": "A name with markup, an address, a control character, or 250 letters",
    "numbers": "A number at the edge of what a computer can hold, or none at all",
    "foreign": "A file of the results that is a pipe, a device, a folder, a link, or JSON nested 100,000 times",
    "asv": "A file in asv's formats with more combinations, keys or letters than asv could take",
    "identity": "A machine's folder copied under another name, or launches of another release than their own",
    "repositories": "A repository, a folder or a link somewhere within the results",
    "memory": "Less memory than a command needs",
    "own files": "A file to be measured that is a pipe or a device, or has the name of a module that measures it",
    "signals": "Ctrl-C, SIGTERM, SIGHUP and SIGKILL at random moments of `compare` and `publish`",
    "measuring": "Ctrl-C, SIGTERM, SIGHUP and SIGKILL at random moments of a measurement",
    "workloads": "A workload that loops, crashes, exits, forks, allocates 100 GB, floods its output or deletes itself",
    "full disk": "A disk that is full, or a file that may not grow",
}
"""Kind of attack -> what is done, in words for a reader."""

TRIED: Counter[str] = Counter()
SURVIVED: Counter[str] = Counter()
"""Kind of attack -> how many of this run."""

PAGE = Path(__file__).resolve().parents[2] / "docs" / "generated" / "attacks.md"
BEGIN = "<!-- attacks: by `python -m tests.attack --write` -->"
END = "<!-- end of attacks -->"


class Attacks:
    """The attacks of one kind in one test: all are tried before those that were not survived fail it."""

    def __init__(self, kind: str) -> None:
        assert kind in CLASSES
        self.random = random.Random(f"{SEED} {kind}")
        self._kind = kind
        self._failed: list[str] = []
        self.tried = 0

    @contextlib.contextmanager
    def __call__(self, words: object) -> Iterator[None]:
        """One attack, survived where the block raises nothing."""
        self.tried += 1
        TRIED[self._kind] += 1
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            self._failed.append(f"{self._kind}: {words}: {type(error).__name__}: {error}")
        else:
            SURVIVED[self._kind] += 1

    def all_survived(self) -> None:
        shown = "\n".join(self._failed[:20])
        assert self.tried
        assert not self._failed, f"{len(self._failed)} of {self.tried} attacks were not survived:\n{shown}"


def page() -> str:
    rows = [f"| {words} | {TRIED[kind]} | {SURVIVED[kind]} |" for kind, words in CLASSES.items()]
    table = "\n".join(["| attack | tried | survived |", "|---|---:|---:|", *rows])
    return between(PAGE, (BEGIN, END, table))
