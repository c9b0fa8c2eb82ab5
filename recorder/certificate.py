"""Does a real GPU give what the recorder counts? Runs the same cases on both and says everything that differs.

No certificate exists until somebody with a GPU has run `torch-history certify`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch_history.store.files import write_atomically

from . import Refused
from .build import Built
from .cards import Card, cards

ROOT = Path(__file__).resolve().parents[1]
SUFFIX = ".certificate"
COMPARED = ("peak_allocated", "peak_reserved", "retained", "allocations", "copies", "waits")

PROGRAM = """
from measure import certified
from workloads import intersection, saved_tensors
certified.main({"intersection": intersection, "saved_tensors": saved_tensors})
"""

Told = dict[str, Any]


class Difference(NamedTuple):
    """Where the two sides disagree: a case, what was counted, and what each says."""

    case: str
    what: str
    gpu: Any
    recorder: Any


class Certificate(NamedTuple):
    """`here`: the GPU and the release. `card`: the card that was pretended. `agreed`: cases in which all that was
    compared is the same. `left_out`: cases that one side could not tell, with its sentence."""

    here: dict[str, Any]
    card: str
    agreed: list[str]
    differences: list[Difference]
    left_out: dict[str, str]


def ask(python: Path, surroundings: Mapping[str, str], on_recorder: bool) -> Told:
    """What measure/certified.py says, run by that interpreter. Raises Refused where it ends without an answer."""
    reader, writer = os.pipe()
    command = [str(python), "-c", PROGRAM, str(writer), *(["recorder"] if on_recorder else [])]
    process = subprocess.Popen(
        command,
        env={**surroundings, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=[writer],
        text=True,
    )
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    said = process.communicate()[1].strip().splitlines() or ["it said nothing"]
    told: Told = json.loads(text) if text else {"here": {"failed": said[-1]}}
    if "failed" in told["here"]:
        where = "on the recorder" if on_recorder else "on the GPU"
        raise Refused(f"{python} could not be asked {where}: {told['here']['failed']}")
    return told


def card_of(here: Mapping[str, Any], known: Mapping[str, Card] | None = None) -> Card:
    """The known card that the GPU is. Raises Refused where it is none: another card may take other bytes."""
    for card in (known or cards()).values():
        if card.title == here["gpu"]:
            return card
    raise Refused(
        f"The GPU here is '{here['gpu']}' ({here['capability']}, {here['multiprocessors']} multiprocessors), which is no "
        "card of recorder/devices.toml: add it there with the numbers that deviceQuery prints, so that both sides mean the "
        "same."
    )


def same_release(here: Mapping[str, Any], built: Built) -> None:
    """Raises Refused where the GPU's torch is not the wheel that is recorded."""
    wheel = built.wheel
    recorded = (wheel.version.partition("+")[0], ".".join(str(part) for part in wheel.cuda))
    if (here["torch"], here["cuda"]) != recorded:
        raise Refused(
            f"The GPU's torch is {here['torch']} for CUDA {here['cuda']}, and what is recorded is {recorded[0]} for CUDA "
            f"{recorded[1]}: install the package index's default wheel of {recorded[0]} for the GPU."
        )


def compare(gpu: Told, recorder: Told, card: Card) -> Certificate:
    """What both sides say of every case, compared. Kernels are compared by name where no call of cuBLAS is among them."""
    agreed, differences, left_out = [], [], {}
    for case in sorted({*gpu["cases"], *recorder["cases"]}):
        there, pretended = gpu["cases"].get(case, {}), recorder["cases"].get(case, {})
        why = [
            f"{side}: {told.get('refused') or told.get('failed') or 'the case is not there'}"
            for side, told in (("GPU", there), ("recorder", pretended))
            if "peak_allocated" not in told
        ]
        if why:
            left_out[case] = "; ".join(why)
            continue
        found = [
            Difference(case, what, there[what], pretended[what]) for what in COMPARED if there[what] != pretended[what]
        ]
        found += _kernels(case, there, pretended)
        differences += found
        if not found:
            agreed.append(case)
    return Certificate(gpu["here"], card.key, agreed, differences, left_out)


def _kernels(case: str, there: Told, pretended: Told) -> list[Difference]:
    if pretended["library_calls"]:
        return []
    one, other = (Counter(_plain(name) for name in told["kernels"]) for told in (there, pretended))
    return [
        Difference(case, f"kernel {name}", one[name], other[name])
        for name in sorted(one | other)
        if one[name] != other[name]
    ]


def _plain(kernel: str) -> str:
    """A kernel's name without its arguments and what it returns, which profilers write in different ways."""
    return re.sub(r"^void ", "", re.sub(r"\([^()]*\)$", "", kernel)).strip()


def write(certificate: Certificate, results: Path) -> Path:
    """Writes it into the folder `certificates` of `results`, under the release and the GPU; an earlier one of both is
    replaced."""
    gpu = re.sub(r"\W+", "-", certificate.here["gpu"]).strip("-").lower()
    path = results / "certificates" / f"v{certificate.here['torch']}-{gpu}{SUFFIX}"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = {**certificate._asdict(), "differences": [each._asdict() for each in certificate.differences]}
    write_atomically(path, json.dumps(text, indent=1, sort_keys=True) + "\n")
    return path
