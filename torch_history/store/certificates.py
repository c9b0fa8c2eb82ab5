"""What did a real GPU give of what the recorder counts? A damaged certificate is left out with a sentence."""

from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import replace

from ..system.files import LONGEST_NAME, files_in, read_object, readable

FOLDER = "certificates"
SUFFIX, ASKED = ".certificate", ".asked"
"""Of a certificate, and of the answers of a GPU from which it was made."""

UNEXPLAINED = "unexplained"

Count = Annotated[int, Meta(ge=0, le=2**62)]
Name = Annotated[str, Meta(pattern=rf"\A[ -~]{{1,{LONGEST_NAME}}}\Z")]
Case = Annotated[str, Meta(pattern=r"\A[!-~]+ [!-~]+ [ -~]*\Z", max_length=LONGEST_NAME)]  # question, variant and size


class Here(Struct, frozen=True):
    """Which torch, CUDA and GPU the answers are of; `memory` in bytes, `properties` as the driver told them."""

    torch: Annotated[str, Meta(pattern=r"\A[0-9]{1,4}(\.[0-9]{1,4}){2}[0-9A-Za-z_]{0,20}(\+[0-9A-Za-z_]{1,20})?\Z")]
    cuda: Annotated[str, Meta(pattern=r"\A[0-9]{1,4}\.[0-9]{1,4}\Z")]
    gpu: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][ -~]{0,99}\Z")]
    capability: Annotated[str, Meta(pattern=r"\Asm_[0-9]{2,4}\Z")]
    multiprocessors: Count
    memory: Count = 0
    properties: dict[str, Any] = {}


class Difference(Struct, frozen=True):
    """Where the two sides disagree: a case, what was counted (of a kernel `kernel` and its name), what each says, and why,
    UNEXPLAINED where nobody knows."""

    case: Case
    what: Annotated[str, Meta(pattern=r"\A[!-~]{1,200}( |\Z)")]
    gpu: Any
    recorder: Any
    why: str = UNEXPLAINED


class Certificate(Struct, frozen=True):
    """Of one release on one GPU. Cases are `intersection eager small`: question, variant and size.

    `here`: the GPU and the release. `card`: the card that was pretended; `described_otherwise`: what of it this GPU's
    driver tells otherwise, name -> [pretended, as the driver]. `agreed`: cases of which all that was compared is the same.
    `compared`: case -> what of it is the same. `library_kernels`: case -> the kernels that the GPU launched for library
    calls, which the recorder does not know. `refused`: case -> the side that could not tell it, and its sentence.
    `left_out`: case -> why it was not asked. What is in none of these was not compared."""

    here: Here
    card: Name
    agreed: list[Case]
    differences: list[Difference]
    described_otherwise: dict[str, list[list[int]]] = {}
    compared: dict[str, list[str]] = {}
    library_kernels: dict[str, dict[str, int]] = {}
    refused: dict[str, str] = {}
    left_out: dict[str, str] = {}

    @property
    def release(self) -> str:
        return f"v{self.here.torch.partition('+')[0]}"

    @property
    def different(self) -> dict[str, set[str]]:
        """Case -> what of it is not the same, such as `waits`; of kernels no names."""
        found: dict[str, set[str]] = {}
        for each in self.differences:
            what = each.what.partition(" ")[0]
            found.setdefault(each.case, set()).add("kernels" if what == "kernel" else what)
        return found

    @property
    def words(self) -> str:
        """`a real NVIDIA H100 80GB HBM3's, certificate of v2.11.0`"""
        return f"a real {self.here.gpu}'s, certificate of {self.release}"


def parse(path: Path) -> Certificate:
    """The certificate in a file. Raises ValueError, in words that follow the file's name, where it is none."""
    try:
        found = convert(read_object(path), Certificate)
    except ValidationError as error:
        raise ValueError(f"it is no certificate: {error}") from error
    if both := sorted({*found.agreed} & found.different.keys()):
        raise ValueError(f"it says of {both[0]} that all agrees and that something differs")
    return replace(found, agreed=[*dict.fromkeys(found.agreed)])  # a case that is named twice is one


def certificates_in(results: Path) -> list[Certificate]:
    """All certificates of `results` that can be read; of others a warning says why not."""
    every = (readable(path, parse) for path in files_in(results / FOLDER, f"*{SUFFIX}"))
    return [found for found in every if found]
