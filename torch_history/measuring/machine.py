"""On which machine was this measured? A record that makes numbers of different machines, devices or threads incomparable.

There is a folder of results per machine name; the name says the kind of machine, so that two of a kind share theirs.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

from ..errors import UserError

DEVICES = ("cpu", "cuda")


def describe() -> dict[str, str]:
    """This machine as asv records it: asv's own fields, and device, threads, and of a GPU its name and driver.

    TORCH_HISTORY_MACHINE overrides the name, TORCH_HISTORY_DEVICE and TORCH_HISTORY_THREADS what is measured with. Raises
    UserError where the device is none.
    """
    device = os.environ.get("TORCH_HISTORY_DEVICE") or ("cuda" if gpus() else "cpu")
    if device not in DEVICES:
        raise UserError(
            f"TORCH_HISTORY_DEVICE is '{device}', and a session measures on {' or '.join(DEVICES)}. Counts of CUDA "
            "without a GPU are taken by the recorder: docs/recorder.md."
        )
    threads = os.environ.get("TORCH_HISTORY_THREADS") or "1"
    record = {
        "os": platform.system(),
        "arch": platform.machine(),
        "cpu": cpu(),
        "num_cpu": str(os.cpu_count()),
        "ram": f"{round(os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30)} GiB",
        "device": device,
        "threads": threads,
    }
    if device == "cuda" and gpus():
        record["gpu"], record["driver"] = gpus()[0]
    subject = record.get("gpu") or f"{record['cpu']} {record['num_cpu']} cores"
    words = f"{subject} {threads} threads" if threads != "1" else subject
    slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    return {"machine": os.environ.get("TORCH_HISTORY_MACHINE") or slug, **record}


def cpu() -> str:
    """The processor's name, as Linux tells it; elsewhere as Python does. A virtual machine's may lack the number that tells
    processors of one maker apart (`AMD EPYC`), which differ by half in what they take: family and model stand for it."""
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


def gpus() -> list[tuple[str, str]]:
    """(name, driver version) of each NVIDIA GPU, asked of the driver's own tool; none where that is absent."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [line.split(", ") for line in answer.splitlines() if ", " in line]
    return [(name.strip(), driver.strip()) for name, driver in rows]
