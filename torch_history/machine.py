"""On which machine was this measured? A record that makes numbers of different machines, devices or threads incomparable.

asv keeps a folder of results per machine name; the name says the kind of machine, so that two of a kind share theirs.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

from asv import util
from asv.machine import Machine, MachineCollection


def describe() -> dict[str, str]:
    """This machine as asv records it: asv's own fields, and device, threads, and of a GPU its name and driver.

    TORCH_HISTORY_MACHINE overrides the name, TORCH_HISTORY_DEVICE and TORCH_HISTORY_THREADS what is measured with.
    """
    device = os.environ.get("TORCH_HISTORY_DEVICE") or ("cuda" if gpus() else "cpu")
    threads = os.environ.get("TORCH_HISTORY_THREADS") or "1"
    record = {
        "os": platform.system(),
        "arch": platform.machine(),
        "cpu": cpu(),
        "num_cpu": str(os.cpu_count()),
        "ram": f"{round(util.get_memsize() / 2**30)} GiB",
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
    """The processor's name, as Linux tells it; elsewhere as Python does."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def gpus() -> list[tuple[str, str]]:
    """(name, driver version) of each NVIDIA GPU, asked of the driver's own tool; none where that is absent."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [line.split(", ") for line in answer.splitlines() if ", " in line]
    return [(name.strip(), driver.strip()) for name, driver in rows]


def setup() -> None:
    """asv calls this when it loads the plugin: without `--machine`, results are recorded under this machine's record."""
    record = describe()
    Machine.hardcoded_machine_name = record["machine"]
    MachineCollection.save(record["machine"], record)
