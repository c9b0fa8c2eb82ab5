"""What did a real GPU give of what the recorder counts? A damaged certificate is left out with a sentence."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, ValidationError, convert

from ..system.files import LONGEST_NAME, files_in, read_object, readable

FOLDER = "certificates"
SUFFIX, ASKED = ".certificate", ".asked"
"""Of a certificate, and of the answers of a GPU from which it was made."""

Name = Annotated[str, Meta(pattern=rf"\A[ -~]{{1,{LONGEST_NAME}}}\Z")]
Case = Annotated[str, Meta(pattern=r"\A[!-~]+ [!-~]+ [ -~]*\Z", max_length=LONGEST_NAME)]  # question, variant and size


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


class _Here(Struct):
    torch: Annotated[str, Meta(pattern=r"\A[0-9]+(\.[0-9]+){2}(\+[0-9A-Za-z_]+)?\Z")]
    gpu: Name


class _Difference(Struct):
    case: Case
    what: Annotated[str, Meta(pattern=r"\A[!-~]{1,200}( |\Z)")]
    """A kernel is `kernel` and its name, of which only that it is one is kept."""


class _Stored(Struct):
    """What is read of a file; keys that are not here are passed over."""

    here: _Here
    card: Name
    agreed: list[Case]
    differences: list[_Difference]


def parse(path: Path) -> Certificate:
    """The certificate in a file. Raises ValueError, in words that follow the file's name, where it is none."""
    try:
        stored = convert(read_object(path), _Stored)
    except ValidationError as error:
        raise ValueError(f"it is no certificate: {error}") from error
    equal = frozenset(stored.agreed)
    different: dict[str, frozenset[str]] = {}
    for each in stored.differences:
        what = each.what.partition(" ")[0]
        different[each.case] = different.get(each.case, frozenset()) | {"kernels" if what == "kernel" else what}
    if both := sorted(equal & different.keys()):
        raise ValueError(f"it says of {both[0]} that all agrees and that something differs")
    release = stored.here.torch.partition("+")[0]
    return Certificate(f"v{release}", stored.here.gpu, stored.card, equal, different)


def certificates_in(results: Path) -> list[Certificate]:
    """All certificates of `results` that can be read; of others a warning says why not."""
    every = (readable(path, parse) for path in files_in(results / FOLDER, f"*{SUFFIX}"))
    return [found for found in every if found]
