"""What is the card that is measured set to, and how does it stay ready from one process to the next?

Where no process has its device file open, the driver lets go of the card, and the next process pays for its start. Nothing
here changes a setting of the card.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .machine import of_measured

SETTINGS = {
    "driver_version": "driver",
    "memory.total": "memory_mib",
    "compute_cap": "capability",
    "clocks.max.sm": "most_sm_megahertz",
    "power.limit": "limit_watts",
    "persistence_mode": "persistence",
    "mig.mode.current": "mig",
    "ecc.mode.current": "ecc",
}
"""What nvidia-smi is asked of the card once, and the name that it is stored under."""

PATIENCE = 10.0
"""Seconds for nvidia-smi's first answer: without a process that holds the card it starts the driver's part first."""

DEVICES = Path("/dev")
DRIVER = Path("/proc/driver/nvidia/gpus")


def card() -> tuple[dict[str, str], str]:
    """What the card that is measured is set to, by the names of SETTINGS, as nvidia-smi words it; and its place on the bus.
    What it does not tell is left out, and the place empty."""
    names = {"pci.bus_id": "bus", **SETTINGS}
    answer = _asked(list(names))
    if answer == []:  # it refused a name that it does not know
        answer = [value for name in names for value in (_asked([name]) or [""])]
    found = {
        name: value for name, value in zip(names.values(), answer or (), strict=False) if value[:1] not in ("", "[")
    }
    bus = found.pop("bus", "")
    return found, bus


def _asked(fields: Sequence[str]) -> list[str] | None:
    """nvidia-smi's answers on the card that is measured; empty where it refuses, None where it is not there or blocks."""
    command = ["nvidia-smi", *of_measured(), f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=PATIENCE)
    except (OSError, subprocess.SubprocessError):
        return None
    values = [value.strip() for line in answer.stdout.splitlines()[:1] for value in line.split(",")]
    return values if answer.returncode == 0 and len(values) == len(fields) else []


def hold_open(bus: str) -> tuple[list[int], str]:
    """Opens the device files of the card at that place on the bus. Returns the open files, and a sentence where that cannot
    be done, else an empty one. Opening starts the driver's part for that card, which stays until the last file is closed."""
    later = "so the GPU is not held open, and each process may take longer to start on it"
    name = device_file(bus)
    if name is None:
        return [], f"There is no device file of the GPU in {DEVICES}, {later}."
    files: list[int] = []
    try:
        for path in (DEVICES / "nvidiactl", name):
            files.append(os.open(path, os.O_RDONLY))
    except OSError as error:
        return files, f"{error.filename} cannot be opened ({error.strerror}), {later}."
    return files, ""


def device_file(bus: str) -> Path | None:
    """The device file of the card at that place on the bus, as nvidia-smi writes it; else the only one that is there."""
    place = bus.lower().removeprefix("0000")  # nvidia-smi writes the domain with eight digits, Linux with four
    if place:
        with contextlib.suppress(OSError):
            for line in (DRIVER / place / "information").read_text(encoding="utf-8", errors="replace").splitlines():
                name, _, minor = line.partition(":")
                if name.strip() == "Device Minor" and minor.strip().isdecimal():
                    return DEVICES / f"nvidia{minor.strip()}"
    found = sorted(DEVICES.glob("nvidia[0-9]*"))
    return found[0] if len(found) == 1 else None
