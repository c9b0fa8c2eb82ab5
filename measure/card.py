"""What does the driver say that a GPU is? Asked of libcuda alone, so that a card that nobody described can be pretended.

    python3 -m measure.card          what it says, as JSON

Needs no torch. A process that asked cannot fork one that uses CUDA, so ask in a process of its own.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from pathlib import Path

PROPERTIES = Path(__file__).resolve().parents[1] / "recorder" / "properties.txt"

NUMBERS = re.compile(r"(?m)^(?!#).* = ([\d ]*\d)")
"""In a line of properties.txt the numbers by which the driver is asked."""


class NoCard(Exception):
    """The driver or the GPU cannot be asked; the text is one sentence that says why."""


def asked() -> dict:
    """What the driver says of the first GPU: `name`, `memory` in bytes, and `attributes`, number of a
    CUdevice_attribute as text -> what cuDeviceGetAttribute answers, for those of properties.txt that this driver knows.
    Raises NoCard."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise NoCard(f"The driver of NVIDIA GPUs cannot be loaded: {error}.") from error
    handle, memory, name = ctypes.c_int(), ctypes.c_size_t(), ctypes.create_string_buffer(256)
    _require(driver, "cuInit", ctypes.c_uint(0))
    _require(driver, "cuDeviceGet", ctypes.byref(handle), ctypes.c_int(0))
    _require(driver, "cuDeviceGetName", name, ctypes.c_int(len(name)), handle)
    _require(driver, "cuDeviceTotalMem_v2", ctypes.byref(memory), handle)
    attributes, value = {}, ctypes.c_int()
    for number in sorted({int(number) for line in NUMBERS.findall(PROPERTIES.read_text()) for number in line.split()}):
        if driver.cuDeviceGetAttribute(ctypes.byref(value), ctypes.c_int(number), handle) == 0:
            attributes[str(number)] = value.value
    return {"name": name.value.decode(errors="replace"), "memory": memory.value, "attributes": attributes}


def _require(driver: ctypes.CDLL, entry: str, *arguments: object) -> None:
    error = getattr(driver, entry)(*arguments)
    if error:
        raise NoCard(f"{entry} of the driver failed with CUDA's error {error}: no GPU can be used here.")


if __name__ == "__main__":
    try:
        print(json.dumps(asked()))
    except NoCard as refused:
        sys.exit(str(refused))
