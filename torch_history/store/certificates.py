"""What did a real GPU give of what the recorder counts? The certificates in `results/certificates/`, read and checked.

They come from anywhere: one that is damaged or says two things of a case is left out with a sentence.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..system.files import LONGEST_NAME, files_in, is_name, read_object, warn

FOLDER = "certificates"
SUFFIX, ASKED = ".certificate", ".asked"
"""Of a certificate, and of the answers of a GPU from which it was made."""


@dataclass(frozen=True)
class Certificate:
    """Of one release on one GPU, pretended by the recorder as `card`. Cases are `intersection eager small`: question,
    variant and size. `equal`: all that was compared of it is the same. `different`: what of it is not, such as `waits`; of
    kernels no names. What is in neither was not compared."""

    release: str
    gpu: str
    card: str
    equal: frozenset[str]
    different: Mapping[str, frozenset[str]]

    @property
    def words(self) -> str:
        """`a real NVIDIA H100 80GB HBM3's, certificate of v2.11.0`"""
        return f"a real {self.gpu}'s, certificate of {self.release}"


def parse(path: Path) -> Certificate:
    """The certificate in a file. Keys that are not known are passed over. Raises ValueError, in words that follow the
    file's name, where it is none."""
    stored = read_object(path)
    here = stored.get("here")
    if not isinstance(here, dict):
        raise ValueError("it does not say on which GPU and release: 'here' is no object")
    release = re.fullmatch(r"(\d+\.\d+\.\d+)(\+\w+)?", _name(here.get("torch"), "here.torch"), re.ASCII)
    if not release:
        raise ValueError("its 'here.torch' is no release, such as 2.11.0")
    equal = frozenset(_cases(stored.get("agreed"), "agreed"))
    different = _differences(stored.get("differences"))
    if both := sorted(equal & different.keys()):
        raise ValueError(f"it says of {both[0]} that all agrees and that something differs")
    gpu, card = _name(here.get("gpu"), "here.gpu"), _name(stored.get("card"), "card")
    return Certificate(f"v{release[1]}", gpu, card, equal, different)


def certificates_in(results: Path) -> list[Certificate]:
    """All certificates of `results` that can be read; of others a warning says why not."""
    found = []
    for path in files_in(results / FOLDER, f"*{SUFFIX}"):
        try:
            found.append(parse(path))
        except ValueError as error:
            warn(f"{str(path)!r} is skipped: {error}.")
    return found


def _name(value: Any, key: str) -> str:
    if not value or not is_name(value):
        raise ValueError(f"its '{key}' is no name of at most {LONGEST_NAME} printable characters")
    return str(value)


def _differences(value: Any) -> dict[str, frozenset[str]]:
    """Case -> what differs. A difference in a kernel is `kernel` and its name, of which only that it is one is kept."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError("its 'differences' are no list of objects")
    found: dict[str, set[str]] = defaultdict(set)
    for case, each in zip(_cases([each.get("case") for each in value], "differences"), value, strict=True):
        what = str(each.get("what")).partition(" ")[0]
        found[case].add("kernels" if what == "kernel" else _name(what, "what"))
    return {case: frozenset(of) for case, of in found.items()}


def _cases(value: Any, key: str) -> Iterable[str]:
    """Names of cases: a list of them, or an object that has them as keys."""
    if not isinstance(value, (list, dict)):
        raise ValueError(f"its '{key}' is no list of cases")
    cases = [_name(case, key) for case in value]
    if wrong := next((case for case in cases if len(case.split(" ", 2)) != 3), None):
        raise ValueError(f"its '{key}' names {wrong}, which is no question, variant and size")
    return cases
