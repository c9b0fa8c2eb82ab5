"""How much of a script or a style sheet must a page load? What the browser runs, without comments and long local names.

Comments that begin with `/*!` stay: they hold licences.
"""

from __future__ import annotations

from pathlib import Path

KINDS = {".js": "application/javascript", ".css": "text/css"}
"""Ending of a file -> the media type that the minifier knows it by."""


def copy_minified(source: Path, folder: Path) -> None:
    """Writes `source` into `folder` under its own name, smaller. Raises MinifyError where it is no valid script."""
    import minify  # loads a library that starts threads: after the processes of a publish were forked

    text = minify.string(KINDS[source.suffix], source.read_text(encoding="utf-8"))
    (folder / source.name).write_text(f"{text}\n", encoding="utf-8")
