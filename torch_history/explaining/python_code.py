"""How does a function of Python differ between two releases that are installed?"""

import ast
import difflib
from pathlib import Path

from contract.bare import bare, definitions

MOST_LINES = 20  # of a difference, those that are shown
CONTEXT = 1  # unchanged lines around a change


def difference(folders: tuple[Path, Path], name: str) -> str:
    """What changed in a function between the environments in `folders`, old and new, as a unified diff of its code without
    docstrings and annotations; `name` is a path below site-packages and a qualified name, as measure/hot.py gives it.
    Empty where either has no such function, or its code is the same."""
    path, _, qualified = name.partition(" ")
    old, new = (_source(folder, path, qualified) for folder in folders)
    if old is None or new is None:
        return ""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=CONTEXT))[2:]
    more = [f"... {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
    return "\n".join([*lines[:MOST_LINES], *more])


def _source(folder: Path, path: str, qualified: str) -> str | None:
    """The code of a function in an environment, written anew from its syntax tree; None where it has none."""
    for file in sorted(folder.glob(f"lib/python*/site-packages/{path}")):
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError):
            return None
        node = dict(definitions(tree)).get(qualified)  # of several the last one, as Python would run it
        return ast.unparse(ast.fix_missing_locations(bare(node))) if node else None
    return None
