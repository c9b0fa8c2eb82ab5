"""Which torch has the caller's own environment? The one that `python` stands for where the command is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from packaging.version import InvalidVersion, Version

from ...system.errors import UserError

MOST_SECONDS = 120
"""In which an interpreter must have imported torch."""


def installed_version(surroundings: Mapping[str, str]) -> str:
    """The public part of `torch.__version__` (2.3.1 of 2.3.1+cu121) in the active virtual environment, else of the `python`
    on PATH. Raises UserError where there is none."""
    path, active = surroundings.get("PATH", os.defpath), surroundings.get("VIRTUAL_ENV")
    python = str(Path(active, "bin", "python")) if active else shutil.which("python", path=path)
    python = python or shutil.which("python3", path=path)
    if python is None:
        raise UserError("`--from installed` found no `python` on PATH. Name the release, such as --from 2.3.1.")
    # Without the caller's folder, where a file torch.py would be taken for the package.
    command = [python, "-I", "-c", "import torch; print(torch.__version__)"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, check=True)
        return Version(answer.stdout.strip().splitlines()[-1]).public
    except subprocess.CalledProcessError as error:
        why = (error.stderr.strip().splitlines() or ["it ended without a message"])[-1]
    except (OSError, InvalidVersion, IndexError, subprocess.TimeoutExpired) as error:
        why = str(error)
    raise UserError(
        f"`--from installed` asked {python} for its torch, and {why}. Activate the environment that has torch, or name the "
        "release, such as --from 2.3.1."
    )
