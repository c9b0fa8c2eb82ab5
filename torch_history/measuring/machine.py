"""On which machine was this measured? A machine's name, and so its folder of results, says its kind."""

import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from contract.request import Request
from contract.surroundings import kept
from recorder.cards import Card, cards

from ..system.errors import UserError

FOLDER_NAME = r"[A-Za-z0-9][\w.+-]{0,149}"
"""What a machine may be called: as a pattern of ASCII."""

LONGEST_SET = 60
"""Characters of the variables in a folder's name; in place of more stands their digest."""


def asked() -> Request:
    """What this process's surroundings ask for. Raises UserError where that cannot be measured."""
    try:
        return checked(Request.of(os.environ))
    except ValueError as error:
        raise UserError(f"{error}.") from error


def checked(request: Request) -> Request:
    """`request` as it is. Raises UserError where it cannot be measured."""
    if request.problem:
        raise UserError(f"{request.problem}.")
    return request


def decided(request: Request) -> Request:
    """`request` with the device that it leaves open. Raises UserError as `describe` does."""
    return replace(request, device=describe(request)["device"])


def describe(request: Request | None = None) -> dict[str, str]:
    """This machine as asv records it: asv's own fields, and device, threads, the variables that a person keeps set, and of a
    GPU its name and driver. Without a `request` the surroundings say with what is measured. Raises UserError where the
    device is none, or is a GPU that nothing names."""
    request = checked(request) if request else asked()
    named = os.environ.get("TORCH_HISTORY_MACHINE", "")
    if named and not re.fullmatch(rf"(?!(certificates|code|benchmarks\.json)\Z){FOLDER_NAME}", named, re.ASCII):
        raise UserError(
            f"TORCH_HISTORY_MACHINE is {named!r}, which cannot be the name of a folder in results/. Write letters, digits, "
            "'_', '.', '+' and '-', beginning with a letter or a digit."
        )
    found = gpus() if request.device in ("", "cuda") else []
    device = request.device or ("cuda" if found else "cpu")
    if device == "recorder":
        return _pretended(request, named)
    threads = str(request.threads)
    record = {
        "os": platform.system(),
        "arch": platform.machine(),
        "cpu": cpu(),
        "num_cpu": str(os.cpu_count()),
        "ram": f"{round(os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30)} GiB",
        "device": device,
        "threads": threads,
        **_kept_set(),
    }
    if device == "cuda" and found:
        record["gpu"], record["driver"] = found[0]
    elif device == "cuda" and not named:
        raise UserError(
            "A GPU was requested, but nvidia-smi reports none that may be used. Its results would be in the processor's "
            "folder. Install nvidia-smi and check CUDA_VISIBLE_DEVICES, or name a folder with TORCH_HISTORY_MACHINE."
        )
    subject = record.get("gpu") or f"{record['cpu']} {record['num_cpu']} cores"
    words = f"{subject} {threads} threads" if threads != "1" else subject
    return {"machine": named or _slug(words) + _suffix(record), **record}


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def _kept_set() -> dict[str, str]:
    """`set`: the variables besides the usual ones with which is measured, in words; nothing where there are none."""
    words = " ".join(f"{name}={value}" for name, value in kept(os.environ).items())
    return {"set": words} if words else {}


def _suffix(record: Mapping[str, str]) -> str:
    """What keeps numbers that were measured with some variables set out of the folder of those without."""
    words = record.get("set", "")
    if len(words) > LONGEST_SET:
        words = hashlib.sha256(words.encode()).hexdigest()[:16]
    return f"-with-{_slug(words)}" if words else ""


def card_of(key: str) -> Card:
    """A card by its key in devices.toml, the default one where it is empty. Raises UserError where there is none."""
    known = cards()
    if not key:
        return next(iter(known.values()))
    if key not in known:
        raise UserError(f"There is no card '{key}' to imitate; there are {', '.join(known)}. Choose one with --card.")
    return known[key]


def _pretended(request: Request, named: str) -> dict[str, str]:
    """The record of what the recorder pretends: the card, and nothing of the processor, on which nothing counted depends."""
    card = card_of(request.card)
    kept = _kept_set()
    slug = f"recorded-{card.key}-{card.capability.replace('_', '')}-no-kernel-ran{_suffix(kept)}"
    return {
        "machine": named or slug,
        "os": platform.system(),
        "arch": platform.machine(),
        "cpu": f"{card.title} pretended by the recorder, no kernel ran",
        "num_cpu": "",
        "ram": f"{card.memory} bytes",
        "device": "recorder",
        "threads": "1",
        "card": card.key,
        "capability": card.capability,
        "multiprocessors": str(card.values["multiProcessorCount"][0]),
        **kept,
    }


def of_visible() -> list[str]:
    """nvidia-smi's option for the first GPU that CUDA_VISIBLE_DEVICES leaves; empty where it leaves all."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [] if visible is None else [f"--id={visible.partition(',')[0].strip() or 'none'}"]


def of_measured() -> list[str]:
    """The option by which nvidia-smi tells of the one GPU that is measured: the first that may be used."""
    return of_visible() or ["--id=0"]


def cpu() -> str:
    """The processor's name; with family and model where no number in it tells a maker's processors apart."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    pairs = (line.partition(":") for line in reversed(lines))
    fields = {name.strip(): value.strip() for name, _, value in pairs}
    name = fields.get("model name") or platform.machine()
    if re.search(r"\d", name) or not {"cpu family", "model"} <= fields.keys():
        return name
    return f"{name} (family {fields['cpu family']}, model {fields['model']})"


def told_by_smi(fields: Iterable[str], options: Sequence[str], seconds: float = 60.0) -> list[list[str]]:
    """What the driver's own tool says of each NVIDIA GPU within some seconds, without units; nothing where it is absent."""
    command = ["nvidia-smi", *options, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [[value.strip() for value in line.split(",")] for line in said.stdout.splitlines() if "," in line]


def gpus() -> list[tuple[str, str]]:
    """(name, driver version) of each NVIDIA GPU that CUDA_VISIBLE_DEVICES leaves. The first is the one that is measured."""
    return [(", ".join(name), driver) for *name, driver in told_by_smi(("name", "driver_version"), of_visible())]
