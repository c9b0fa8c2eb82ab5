"""Processes that tests start, programs that are played, and waiting for what happens meanwhile."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
"""The checkout."""


def ran(*words: object, code: int | None = 0, **more: Any) -> subprocess.CompletedProcess[str]:
    """What a process said that has ended with `code`, or in whatever way where that is None."""
    answer = subprocess.run([*map(str, words)], capture_output=True, text=True, **more)
    assert code in (None, answer.returncode), answer.stdout + answer.stderr
    return answer


def torch_history(*words: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """What the command said, as `ran` has it; in this checkout, unless `cwd` and `env` name another."""
    return ran(sys.executable, "-c", "from torch_history.cli import main; main()", *words, **{"cwd": ROOT, **more})


def program(path: Path, text: str) -> Path:
    """A program at `path`: a shell's, unless the text begins with an interpreter of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def compiled(path: Path, code: str, *options: str) -> Path:
    """A program at `path` of this C, or with `-shared` a library."""
    source = path.with_suffix(".c")
    source.write_text(code, encoding="utf-8")
    subprocess.run(["gcc", "-w", "-fPIC", *options, "-o", str(path), str(source)], check=True)
    return path


def listing(folder: Path) -> dict[str, bytes]:
    """What the files of a folder hold, by their paths in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def until(true: Callable[[], Any], seconds: float = 60.0) -> None:
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, f"nothing happened within {seconds:g} s"
        time.sleep(0.02)


def lives(process: int | str) -> bool:
    """Whether a process runs; a zombie that nobody has waited for yet is dead."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
