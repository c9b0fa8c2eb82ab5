"""On which machine was this measured? A record that makes numbers of different machines, devices or threads incomparable.

asv keeps a folder of results per machine name; the name says the kind of machine, so that two of a kind share theirs.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from asv import util
from asv.console import log
from asv.machine import Machine, MachineCollection

from .environments import write_atomically
from .stored import is_text, read_object, set_aside, warn

RECORD = "machine.json"


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


def record_of(folder: Path) -> dict[str, Any]:
    """The record of the machine whose results lie in `folder`. The folder names it: where its record is missing or damaged
    nothing else is known of it, and a warning says so, as it does where the record is another machine's."""
    path = folder / RECORD
    try:
        record = read_object(path)
        if not is_text(record.get("machine")):
            raise ValueError("it names no machine")
    except ValueError as error:
        warn(f"{path}: {error}, so nothing is known of that machine but its name.")
        record = {"machine": folder.name}
    if record["machine"] != folder.name:
        warn(f"{path} is the record of another machine, {record['machine']}: the folder's name is what counts.")
    return {**record, "machine": folder.name}


def save_record(machine: Machine, results_dir: str) -> None:
    """asv's `Machine.save` in one step. Raises UserError where the folder holds another machine's results."""
    path = Path(results_dir) / machine.machine / RECORD
    with contextlib.suppress(ValueError):
        other = read_object(path).get("machine")
        if other not in (machine.machine, None):
            raise util.UserError(
                f"{path} is the record of another machine, {other}: rename that folder to {other}, or give this machine "
                "another name with TORCH_HISTORY_MACHINE."
            )
    _write(path, vars(machine), Machine.api_version)


def remember(name: str, record: dict[str, str], _path: str | None = None) -> None:
    """asv's `MachineCollection.save` in one step; a damaged collection, which other suites share, is kept beside."""
    path = Path(_path or MachineCollection.get_machine_file_path())
    try:
        known = read_object(path) if path.exists() else {}
    except ValueError as error:
        log.warning(f"{path} is kept as {set_aside(path)} and begun anew: {error}.")
        known = {}
    _write(path, {**known, name: record}, MachineCollection.api_version)


def _write(path: Path, data: dict[str, Any], version: int) -> None:
    """As asv writes JSON, but so that two commands at once never read half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps({**data, "version": version}, indent=4, sort_keys=True))


def setup() -> None:
    """asv calls this when it loads the plugin: without `--machine`, results are recorded under this machine's record."""
    record = describe()
    Machine.hardcoded_machine_name = record["machine"]
    Machine.save, MachineCollection.save = save_record, staticmethod(remember)
    MachineCollection.save(record["machine"], record)
