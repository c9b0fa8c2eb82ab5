"""What does a workload take on a release? Asked of a process that runs that release on the recorder."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from recorder.build import Built

from ..errors import UserError
from ..system.children import dies_with_parent
from ..system.program import SOURCES
from .bound import Bound, not_counted
from .cards import Wanted
from .search import Outcome, Try

PROGRAM = """
from pathlib import Path
from benchmarks import own
from measure import fits
fits.main(lambda path: own.load(Path(path), Path(path)))
"""

UNLIMITED = 2**46
"""Bytes of a card that never runs out, to learn what a workload takes where nothing stops it."""

SECRET = ("cudnn", "cusolver", "cusparse", "cufft", "cublasLtMatmulAlgo")
"""Libraries whose workspaces are known to nobody but them."""


class Process:
    """A release that answers questions about one workload on one card. Use it in a `with` block."""

    def __init__(self, built: Built, wanted: Wanted, workload: Path) -> None:
        self.version = built.wheel.version.partition("+")[0]
        self.bound: Bound = not_counted(built.wheel.cuda)
        self._wanted = wanted
        reader, writer = os.pipe()
        environment = {
            **built.surroundings(wanted.card.key),
            "PYTHONPATH": str(SOURCES),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TORCH_HISTORY_DEVICE": "recorder",
        }
        environment.pop("TORCH_HISTORY_WORKLOAD", None)
        python = built.wheel.packages.parents[2] / "bin" / "python"
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [str(python), "-c", PROGRAM, str(workload.resolve()), str(writer)],
            stdin=subprocess.PIPE,
            stdout=self._errors,
            stderr=self._errors,
            env=environment,
            pass_fds=[writer],
            text=True,
            preexec_fn=dies_with_parent(),
        )
        os.close(writer)
        self._answers = os.fdopen(reader)
        self.offer = self._answer()
        if "unreadable" in self.offer:
            raise UserError(f"The workload cannot be counted on {self.version}: {self.offer['unreadable']}.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._answers.close()
        self._errors.close()

    def held(self, variant: str, size: str, batch: int | None, occupied: int, memory: int = 0) -> dict[str, Any]:
        """What measure/fits.py says, on a card of which something else holds `occupied` bytes; on the wanted card's
        memory where none is named. Raises UserError where it cannot be counted."""
        question = {
            "variant": variant,
            "size": size,
            "batch": batch,
            "occupied": occupied,
            "memory": memory or self._wanted.memory,
        }
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # it has ended, and `_answer` says how
            print(json.dumps(question), file=self._process.stdin, flush=True)
        answer = self._answer()
        what = f"'{variant}'" + (f" in size '{size}'" if size else "") + (f" with batch {batch}" if batch else "")
        if "refused" in answer:
            raise UserError(f"{what} cannot be counted on {self.version}. {explained(answer['refused'])}")
        if "failed" in answer:
            said = " ".join(answer["failed"].split()).rstrip(" .")
            raise UserError(
                f"{what} failed on {self.version}, on the recorder: {said}. Try it on a CPU. If it runs there, the recorder "
                "is at fault: name another card with --gpu, or leave it out with --function."
            )
        return answer

    def attempt(self, variant: str, size: str, batch: int | None) -> Try:
        """Whether it fits on the wanted card: surely, surely not, or as what was not counted decides. Raises UserError."""
        with_least = self.held(variant, size, batch, self.bound.least)
        if with_least["out_of_memory"]:
            return Try(Outcome.TOO_MUCH)
        taken = with_least["peak_taken"]
        if taken + self.bound.most <= self._wanted.memory:
            return Try(Outcome.FITS, taken)
        with_most = self.held(variant, size, batch, self.bound.most)
        return Try(Outcome.UNCLEAR if with_most["out_of_memory"] else Outcome.FITS, taken)

    def _answer(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            last = (self._errors.read().strip().splitlines() or ["it ended without a word"])[-1]
            raise UserError(f"The process of torch {self.version} on the recorder ended: {last}.")
        answer: dict[str, Any] = json.loads(line)
        return answer


def explained(refused: str) -> str:
    """The recorder's refusal for a person who asks whether something fits."""
    library = next((name for name in SECRET if refused.startswith(name)), "")
    names = {
        "cudnn": "cuDNN",
        "cusolver": "cuSOLVER",
        "cusparse": "cuSPARSE",
        "cufft": "cuFFT",
        "cublasLtMatmulAlgo": "cuBLASLt",
    }
    if library:
        return (
            f"It asks {names[library]} ({refused.split()[0].rstrip(',')}), which decides by itself how much memory it works "
            "in, so only a GPU can tell whether it fits."
            + (
                " To count PyTorch's own way, set torch.backends.cudnn.enabled = False in the file."
                if library == "cudnn"
                else ""
            )
        )
    if "back from the device" in refused:
        return (
            f"{refused.partition(': ')[0]}, and no kernel ran, so what depends on values is unknown. Leave out `item()` "
            'and prints; where the values decide no size, say so in the file: READS_BY_DESIGN = "the loss is only printed".'
        )
    return refused
