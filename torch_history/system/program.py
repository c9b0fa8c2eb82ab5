"""Where do this program's own files lie: the sources that measure, the axis and its lock, and what it keeps for a user?"""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
"""The package torch_history itself."""

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
            _copy(file, folder / file.relative_to(SOURCES))
    return folder


def _copy(file: Path, target: Path) -> None:
    text = file.read_bytes()
    if target.is_file() and target.read_bytes() == text:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_name(f".{target.name}.{os.getpid()}")
    made.write_bytes(text)
    made.replace(target)
