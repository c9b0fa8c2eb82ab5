"""How long does a whole process take, and how much memory? A `command` of an own file, started again and again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contract.request import PREFIX

from . import children

RUNS = 3
"""Processes in each launch, the first of which is not counted: it reads from the disk what the others find in memory."""

SECONDS = 20.0
"""No further process is started after so many seconds, once one was counted."""

PYTHONS = ("python", "python3")
"""A first word that stands for the interpreter of the release."""


STARTER = str(Path(__file__).with_name("started.py"))


class CommandFailed(Exception):
    """A process ended with another status than 0; the text is its last line."""


def measured(command: Sequence[str], folder: str) -> dict[str, Any]:
    """`process_time` and `process_cpu_time`, seconds of each process, and `process_peak_memory`, the least of their highest
    numbers of bytes. The command is started in `folder`. Raises CommandFailed and OSError."""
    words = [sys.executable if command[0] in PYTHONS else command[0], *command[1:]]
    wall: list[float] = []
    cpu: list[float] = []
    peaks: list[int] = []
    began = time.perf_counter()
    while len(wall) < 2 or (len(wall) < RUNS and time.perf_counter() - began < SECONDS):
        seconds, busy, peak = _one(words, folder)
        wall.append(seconds)
        cpu.append(busy)
        peaks.append(peak)
    return {"process_time": wall[1:], "process_cpu_time": cpu[1:], "process_peak_memory": min(peaks[1:])}


def _one(words: Sequence[str], folder: str) -> tuple[float, float, int]:
    """Seconds, seconds of processors, and bytes at the highest point of one process and of those that it started."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as told:
        starter = [sys.executable, "-I", "-S", STARTER, str(told.fileno()), *words]
        ended = subprocess.run(
            starter,
            cwd=folder,
            env=variables,
            pass_fds=[told.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            preexec_fn=children.dies_with_parent(),
        )
        told.seek(0)
        said.seek(0)
        seconds, busy, peak, status = json.loads(told.read() or "[0, 0, 0, -1]")
        if ended.returncode or status:
            lines = said.read().decode(errors="replace").strip().splitlines() or ["it printed nothing"]
            code = os.waitstatus_to_exitcode(status) if status > 0 else ended.returncode
            raise CommandFailed(f"`{' '.join(words)[:60]}` ended with status {code}: {lines[-1][:300]}")
    return seconds, busy, peak
