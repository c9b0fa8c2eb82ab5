"""Which torch has the caller's own environment? The one that `python` stands for where the command is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from packaging.version import InvalidVersion, Version

from ..errors import UserError

MOST_SECONDS = 120
"""In which an interpreter must have imported torch."""


def installed_version(surroundings: Mapping[str, str]) -> str:
    """The public part of `torch.__version__` (2.3.1 of 2.3.1+cu121) in the active virtual environment, else of the `python`
    on PATH. Raises UserError where there is none."""
    python = _python(surroundings)
    # In another folder, where a file torch.py or the torch of a checkout beside the caller is not taken for the package.
    command = [python, "-I", "-c", "import torch; print(torch.__version__)"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, check=True)
        return Version(answer.stdout.strip().splitlines()[-1]).public
    except subprocess.CalledProcessError as error:
        why = (error.stderr.strip().splitlines() or ["it ended without a message"])[-1]
    except subprocess.TimeoutExpired:
        why = f"it had not imported torch after {MOST_SECONDS} s"
    except (OSError, InvalidVersion, IndexError) as error:
        why = str(error)
    raise UserError(
        f"`--from installed` asked {python} for its torch, and {why}. Activate the environment that has torch, or name the "
        "release, such as --from 2.3.1."
    )


def _python(surroundings: Mapping[str, str]) -> str:
    active = surroundings.get("VIRTUAL_ENV")
    if active:
        return str(Path(active, "bin", "python"))
    found = shutil.which("python", path=surroundings.get("PATH", os.defpath)) or shutil.which(
        "python3", path=surroundings.get("PATH", os.defpath)
    )
    if found is None:
        raise UserError("`--from installed` found no `python` on PATH. Name the release, such as --from 2.3.1.")
    return found
