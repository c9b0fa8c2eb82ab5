"""Does a real GPU give what the recorder counts? Compares what `measure/certified.py` asked of a GPU, anywhere and later,
with what it asks of the recorder. A file of a GPU's answers is a stranger's: what it says is never run."""

import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.json import decode, encode, format

from contract.surroundings import ALONE
from torch_history.store.certificates import FOLDER, SUFFIX, Certificate, Count, Difference, Here
from torch_history.system.errors import UserError
from torch_history.system.files import LONGEST_NAME, read_bytes, write_atomically
from torch_history.system.program import SOURCES

from .build import Built, build
from .cards import Card, asked_card, cards

FORMAT = 1
"""Of the file of answers, as in measure/certified.py."""

MOST_SECONDS, TO_END = 1_800.0, 120.0
"""What the recorder's side may take, where it takes four minutes on two processors; and either side to begin and to end."""

Level = Annotated[int, Meta(ge=-(2**62), le=2**62)]
"""A number of bytes that may have fallen below where it began."""

Name = Annotated[str, Meta(pattern=r"^[ -~]{1,20000}\Z")]
Words = Annotated[str, Meta(max_length=20_000)]
Counted = dict[Name, Count]
"""What a stranger's file may name: printable ASCII, as kernels' names are, of which one is some hundreds of characters."""


class Answer(Struct, frozen=True):
    """What one call of a case takes and launches, or why that is not known: `refused` by the recorder, or `failed`. Bytes;
    kernels, library calls and copies are counted by name. A count that one side cannot tell is None."""

    peak_requested: Level | None = None
    retained_requested: Level | None = None
    peak_allocated: Level | None = None
    retained_allocated: Level | None = None
    peak_reserved: Count | None = None
    allocations: Count | None = None
    copies: Counted | None = None
    waits: Count | None = None
    kernels: Counted | None = None
    library_calls: Counted | None = None
    refused: Words = ""
    failed: Words = ""

    @property
    def why(self) -> str:
        """Why nothing is known of the case; empty where something is."""
        return self.refused or self.failed or ("" if self.waits is not None else "the file says nothing of it")


COMPARED = Answer.__struct_fields__[:8]
"""What must be the same on both sides, beside the kernels."""


class Asked(Struct, frozen=True):
    """A file of answers: `cases` by question, variant and size; `left_out`: case -> why it was not asked."""

    format: int
    here: Here
    cases: dict[Name, Answer]
    left_out: dict[Name, Words]
    recorder: bool


def read(path: Path) -> Asked:
    """The answers in a file. Raises UserError where it is none, or another version's."""
    try:
        asked = decode(read_bytes(path), type=Asked)
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path} is no file of a GPU's answers: {error}. `torch-history certify --ask` makes one."
        ) from error
    if asked.format != FORMAT:
        raise UserError(
            f"{path} has the format {asked.format}, and this program reads {FORMAT}: use the version that wrote it."
        )
    return asked


def ask(python: Path, surroundings: Mapping[str, str], path: Path, within: float = MOST_SECONDS) -> Asked:
    """Has an interpreter ask its GPU, or the recorder that it runs on, for `within` seconds, and reads the answers in
    `path`. Its messages go to this process's stderr. Raises UserError where it ends without any."""
    command = [str(python), "-m", "measure.certified", str(path), "--within", str(within)]
    env = {**surroundings, "PYTHONPATH": str(SOURCES), ALONE: "1"}
    try:
        ended = subprocess.run(command, env=env, cwd=SOURCES, timeout=within + TO_END, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{python} could not be asked: {error}.") from error
    if ended.returncode:
        raise UserError("Nothing could be asked, for the reason above.")
    return read(path)


PRETENDED = "asked"
"""The name of a card that devices.toml lacks, and that is pretended as its driver described it."""


def card_of(here: Here) -> Card:
    """The card of devices.toml that the GPU is, else one as its driver described it. Raises UserError where that is not
    there: another card may take other bytes."""
    for card in cards().values():
        if card.title == here.gpu:
            return card
    try:
        return asked_card(PRETENDED, here.properties)
    except UserError as refused:
        raise UserError(
            f"The GPU is '{here.gpu}' ({here.capability}, {here.multiprocessors} multiprocessors), which is no card of "
            f"recorder/devices.toml, and its driver did not describe it: {refused} Ask it again, or add the card there."
        ) from refused


def built_for(card: Card, built: Built, folder: Path) -> Built:
    """`built`, or where it cannot pretend the card one that can, in `folder`."""
    return built if card.key in cards() else build(built.wheel.packages.parents[2], folder, {**cards(), card.key: card})


def described_otherwise(here: Here, card: Card) -> dict[str, list[list[int]]]:
    """Properties of the card of devices.toml that this GPU's driver tells otherwise: name -> [as there, as the driver]."""
    try:
        said = asked_card(PRETENDED, here.properties).values
    except UserError:
        return {}
    return {name: [value, said[name]] for name, value in card.values.items() if said[name] != value}


def same_release(here: Here, built: Built) -> None:
    """Raises UserError where the GPU's torch is not the wheel that is recorded."""
    wheel = built.wheel
    recorded = (wheel.version.partition("+")[0], ".".join(str(part) for part in wheel.cuda))
    if (here.torch, here.cuda) != recorded:
        raise UserError(
            f"The GPU's torch is {here.torch} for CUDA {here.cuda}, and what is recorded is {recorded[0]} for CUDA "
            f"{recorded[1]}: install the package index's default wheel of {recorded[0]} for the GPU."
        )


def compare(gpu: Asked, recorder: Asked, card: Card) -> Certificate:
    """What both sides say of every case that either was asked, compared."""
    compared: dict[str, list[str]] = {}
    differences: list[Difference] = []
    library: dict[str, dict[str, int]] = {}
    refused: dict[str, str] = {}
    for case in sorted({*gpu.cases, *recorder.cases}):
        there, pretended = gpu.cases.get(case, Answer()), recorder.cases.get(case, Answer())
        why = [f"{side}: {of.why}" for side, of in (("GPU", there), ("recorder", pretended)) if of.why]
        if why:
            refused[case] = "; ".join(why)
            continue
        both = [(what, getattr(there, what), getattr(pretended, what)) for what in COMPARED]
        known = [each for each in both if None not in each]
        same = [what for what, one, two in known if one == two]
        other = [Difference(case, what, one, two) for what, one, two in known if one != two]
        kernels, launched_inside = _kernels(case, there, pretended)
        if pretended.kernels is not None and there.kernels is not None and not kernels:
            same.append("kernels")
        if launched_inside:
            library[case] = launched_inside
        differences += other + kernels
        compared[case] = same
    differing = {each.case for each in differences}
    agreed = [case for case in compared if case not in differing]
    otherwise = described_otherwise(gpu.here, card)
    return Certificate(gpu.here, card.key, agreed, differences, otherwise, compared, library, refused, gpu.left_out)


def _kernels(case: str, there: Answer, pretended: Answer) -> tuple[list[Difference], dict[str, int]]:
    """Kernels that differ in how often they are launched. Where the recorder has calls of a library, what the GPU launched
    beyond is that library's, and is returned by itself."""
    if there.kernels is None or pretended.kernels is None:
        return [], {}
    one, other = (_plain(of.kernels or {}) for of in (there, pretended))
    inside = dict(one - other) if pretended.library_calls else {}
    names = sorted(name for name in one | other if one[name] != other[name] and name not in inside)
    return [Difference(case, f"kernel {name}", one[name], other[name]) for name in names], inside


def _plain(kernels: Mapping[str, int]) -> Counter[str]:
    return sum((Counter({plain(name): times}) for name, times in kernels.items()), Counter())


def plain(kernel: str) -> str:
    """A kernel's name without its arguments, what it returns, and spaces, which tools write in different ways."""
    name = kernel.removeprefix("void ").strip()
    if name.endswith(")"):
        depth = 0
        for at in range(len(name) - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(name[at], 0)
            if not depth:
                name = name[:at]
                break
    return re.sub(r"\s+", "", name)


def name_of(here: Here) -> str:
    """The name of a file about a release on a GPU, such as `v2.11.0-nvidia-h100-80gb-hbm3`."""
    gpu = re.sub(r"\W+", "-", here.gpu).strip("-").lower()
    release = re.sub(r"[^\w.]+", "-", here.torch)
    return f"v{release}-{gpu}"[:LONGEST_NAME]


def write(certificate: Certificate, results: Path) -> Path:
    """Writes it into the folder `certificates` of `results`, by release and GPU; an earlier one of both is replaced."""
    path = results / FOLDER / f"{name_of(certificate.here)}{SUFFIX}"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, format(encode(certificate, order="sorted"), indent=1).decode() + "\n")
    return path
