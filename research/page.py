"""How does what a benchmark command prints get into the docs? Between two lines of a page, which name the command."""

from __future__ import annotations

import re
from pathlib import Path


def write_into(page: Path, command: str, text: str) -> None:
    """Replaces what stands in `page` below the line that names `command`. Raises ValueError where there is no such line."""
    begin, end = f"<!-- what follows is written by `{command}` -->\n", "<!-- end -->\n"
    between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    old = page.read_text(encoding="utf-8")
    if not between.search(old):
        raise ValueError(f"{page} has no place for what `{command}` prints")
    page.write_text(between.sub(lambda _: f"{begin}\n{text}\n{end}", old), encoding="utf-8")
