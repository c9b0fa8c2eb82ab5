"""Where do this program's own files lie: the sources that measure, the axis and its lock, and what it keeps for a user?"""

import os
from pathlib import Path

from .files import write_atomically

PACKAGE = Path(__file__).resolve().parents[1]  # the package torch_history itself

_PACKAGED = PACKAGE / "suite"

SOURCES = _PACKAGED if _PACKAGED.is_dir() else _PACKAGED.parents[1]
"""The suite that this program came with: a folder of the installed package, or the checkout that it runs from."""


def is_installed() -> bool:
    """Whether the program runs from a package, and not from a checkout."""
    return SOURCES == _PACKAGED


def cache() -> Path:
    """The user's folder for what own files took: environments, results and locks."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "torch-history"


def in_cache() -> Path:
    """A copy of the packaged suite in the user's cache, where it may be written to; brought up to this program's files."""
    folder = cache() / "suite"
    for file in sorted(SOURCES.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            text, target = file.read_bytes(), folder / file.relative_to(SOURCES)
            if not target.is_file() or target.read_bytes() != text:
                target.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(target, text)
    return folder
