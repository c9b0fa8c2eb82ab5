"""What does a workload take of a card on a release? Asked of a process that runs that release on the recorder."""

import contextlib
import enum
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recorder.build import Built
from recorder.cards import Card, cards

from ...system.children import Answering, Ended
from ...system.errors import UserError
from ...system.program import SOURCES

PROGRAM = """
from pathlib import Path
from benchmarks import own
from measure import fits
fits.main(lambda *file: own.load(*map(Path, file)), own.Unavailable)
"""

MIB = 2**20
GB = 10**9

LAZY, EAGER = 1024 * MIB, 2048 * MIB
"""Bytes that a context, the code of kernels and what cuBLAS takes for itself are assumed not to exceed. Since CUDA
11.7 PyTorch loads a kernel's code when it is first launched, before all of it at once. Public reports: 723 MiB for
one number on a GPU in 2020 (discuss.pytorch.org/t/73021), 1,484 MiB beside a tensor on an RTX 3090 with 1.7.1 and
CUDA 11.0 (pytorch #49877)."""

LAZY_FROM = (11, 7)

UNLIMITED = 2**46
"""Bytes of a card that never runs out, to learn what a workload takes where nothing stops it."""

SECRET = {
    "cudnn": "cuDNN",
    "cusolver": "cuSOLVER",
    "cusparse": "cuSPARSE",
    "cufft": "cuFFT",
    "cublasLtMatmulAlgo": "cuBLASLt",
}
"""How a call begins of a library whose workspace is known to nobody but it -> the library."""


class Outcome(enum.Enum):
    """What one try says. UNCLEAR: what was not counted decides."""

    FITS = "fits"
    UNCLEAR = "INCONCLUSIVE"
    TOO_MUCH = "does not fit"


@dataclass(frozen=True)
class Try:
    """One batch: its outcome, and the bytes that it took of the card, 0 where it did not end."""

    outcome: Outcome
    bytes: int = 0


@dataclass(frozen=True)
class Wanted:
    """A known card that is pretended, and its bytes of memory, which may be others than the known card's."""

    card: Card
    memory: int

    @property
    def title(self) -> str:
        """In words: `Tesla T4 (sm_75, 15,843,721,216 bytes)`."""
        like = "" if self.memory == self.card.memory else "a card like "
        return f"{like}{self.card.title} ({self.card.capability}, {self.memory:,} bytes)"


def find(gpu: str, memory: float | None = None) -> Wanted:
    """The card of that name (`RTX 3090`), or the least sold as `24GB`; `memory` in GB replaces its own. Raises UserError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:GB?)?", gpu.strip(), re.IGNORECASE)
    sold = float(match[1]) if match else 0

    def is_meant(card: Card) -> bool:
        names = (card.key, card.title, *card.called)
        return card.sold_with == sold > 0 or _plain(gpu) in map(_plain, names)

    known = min(filter(is_meant, cards().values()), key=lambda card: card.memory, default=None)
    if known is None:
        offered = (f"{(*of.called, of.key)[0]} ({of.sold_with} GB, {of.capability})" for of in cards().values())
        raise UserError(
            f"No card '{gpu}' is known. Name one of these: {', '.join(sorted(offered))}; for another card name one of the "
            "same capability and give its own --memory, or add it to recorder/devices.toml."
        )
    return Wanted(known, int(memory * GB) if memory else known.memory)


def _plain(name: str) -> str:
    return re.sub(r"nvidia|geforce|tesla|[\s_-]", "", name.lower())


class Process(contextlib.AbstractContextManager["Process"]):
    """A release that answers questions about one workload on one card. Use it in a `with` block."""

    def __init__(self, built: Built, wanted: Wanted, workload: Path, text: Path) -> None:
        self.version = built.wheel.version.partition("+")[0]
        self.uncounted = LAZY if built.wheel.cuda >= LAZY_FROM else EAGER
        """Bytes of the card that are not counted, at most."""
        self._wanted = wanted
        environment = {
            **built.surroundings(wanted.card.key),
            "PYTHONPATH": str(SOURCES),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TORCH_HISTORY_DEVICE": "recorder",
        }
        environment.pop("TORCH_HISTORY_WORKLOAD", None)
        python = built.wheel.packages.parents[2] / "bin" / "python"
        self._process = Answering([str(python), "-c", PROGRAM, str(workload.resolve()), str(text)], environment)
        self.offer = self._answer()
        if "unreadable" in self.offer:
            raise UserError(f"The workload cannot be counted on {self.version}: {self.offer['unreadable']}.")

    def __exit__(self, *_: object) -> None:
        self._process.close()

    def held(
        self, variant: str, size: str, batch: int | None, occupied: int, memory: int = 0, *, unfinished: bool = False
    ) -> dict[str, Any]:
        """What measure/fits.py says, on a card of which `occupied` bytes are held. Raises UserError."""
        memory = memory or self._wanted.memory
        question = {"variant": variant, "size": size, "batch": batch, "occupied": occupied, "memory": memory}
        self._process.tell({**question, "unfinished": unfinished})
        answer = self._answer()
        what = f"'{variant}'" + (f" in size '{size}'" if size else "") + (f" with batch {batch}" if batch else "")
        if "unavailable" in answer:
            raise UserError(f"{what} cannot run on {self.version}: {answer['unavailable'].rstrip('.')}.")
        if "refused" in answer:
            raise UserError(f"{what} cannot be counted on {self.version}. {explained(answer['refused'])}")
        if "failed" in answer:
            said = " ".join(answer["failed"].split()).rstrip(" .")
            raise UserError(
                f"{what} failed on {self.version}, on the recorder: {said}. Try it on a CPU. If it runs there, the recorder "
                "is at fault: name another card with --gpu, or leave it out of the file."
            )
        return answer

    def ends(self, *asked: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """As `held`, where the device has always finished, and where it finishes only what the host waits for."""
        finished = self.held(*asked)
        return finished, self.held(*asked, unfinished=True) if finished["queries"] else finished

    def attempt(self, variant: str, size: str, batch: int | None) -> Try:
        """Whether it fits on the wanted card: surely, surely not, or as what was not counted decides. Raises UserError."""
        alone = self.ends(variant, size, batch, 0)
        if all(each["out_of_memory"] for each in alone):
            return Try(Outcome.TOO_MUCH)
        taken = max(each["peak_taken"] for each in alone)
        fits = taken + self.uncounted <= self._wanted.memory and not any(each["out_of_memory"] for each in alone)
        if not fits:
            crowded = self.ends(variant, size, batch, self.uncounted)
            fits = not any(each["out_of_memory"] for each in crowded)
        return Try(Outcome.FITS if fits else Outcome.UNCLEAR, taken)

    def _answer(self) -> dict[str, Any]:
        try:
            return self._process.answer()
        except Ended as ended:
            raise UserError(f"The process of torch {self.version} on the recorder ended: {ended}.") from ended


def explained(refused: str) -> str:
    """The recorder's refusal for a person who asks whether something fits."""
    library = next((name for name in SECRET if refused.startswith(name)), "")
    if library:
        own = " To count PyTorch's own way, set torch.backends.cudnn.enabled = False in the file."
        return (
            f"It asks {SECRET[library]} ({refused.split()[0].rstrip(',')}), which decides by itself how much memory it "
            f"works in, so only a GPU can tell whether it fits.{own if library == 'cudnn' else ''}"
        )
    if "back from the device" in refused:
        return (
            f"{refused.partition(': ')[0]}, so what depends on values is unknown. Leave out `item()` "
            'and prints; where the values decide no size, say so in the file: READS_BY_DESIGN = "the loss is only printed".'
        )
    return refused
