"""How much of a script or a style sheet must a page load? All but comments and spaces.

Comments that begin with `/*!` stay: they hold licences. rjsmin takes no template apart that stands in another one, and
ESLint forbids those in our scripts.
"""

from __future__ import annotations

from pathlib import Path

import rcssmin
import rjsmin

KINDS = {".js": rjsmin.jsmin, ".css": rcssmin.cssmin}
"""Ending of a file -> what makes its text smaller."""


def copy_minified(source: Path, folder: Path) -> None:
    """Writes `source` into `folder` under its own name, smaller."""
    text = KINDS[source.suffix](source.read_text(encoding="utf-8"), keep_bang_comments=True)
    (folder / source.name).write_text(f"{text}\n", encoding="utf-8")
