"""How is uv asked? The pinned one, as a child that ends with this process and holds what this process has locked."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

from uv import find_uv_bin

from ..children import dies_with_parent

OUT_OF_REACH = re.compile(
    r"dns error|error sending request|failed to fetch|connect|timed out|request failed", re.IGNORECASE
)
"""uv's words where it cannot reach a package index."""


def run_uv(arguments: Sequence[str], stdin: str | None = None, holding: Sequence[int] = ()) -> str:
    """Runs uv and returns what it printed. `holding` are open files that uv, and all that it starts, keep open, and with
    them their locks. Raises CalledProcessError with uv's own words in `stderr`."""
    answer = subprocess.run(
        [find_uv_bin(), "--no-progress", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
        pass_fds=tuple(holding),
        preexec_fn=dies_with_parent(),
    )
    return answer.stdout
