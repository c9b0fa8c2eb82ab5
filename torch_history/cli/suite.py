"""Where is the suite that a command is about? Found upwards from the working folder, and read without asv where possible."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..system.errors import UserError
from ..system.program import SOURCES, in_cache, is_installed

if TYPE_CHECKING:
    from ..releases.axis import Axis

CONFIGURATION = "asv.conf.json"
DEFAULT_LANE = "3.11"


@dataclass(frozen=True)
class Suite:
    """A checkout: its `root`, its `axis`, and what asv.conf.json names: the `list` of releases and two folders."""

    root: Path
    axis: "Axis"
    list: Path
    results: Path
    env: Path

    def config(self) -> Any:
        """asv's own configuration of this suite, its plugins loaded; takes a second, which reading results does without."""
        from ..measuring.session import load_suite

        conf, _ = load_suite(self.root)
        conf.results_dir, conf.env_dir = str(self.results), str(self.env)
        return conf


def find_root(start: Path) -> Path:
    """The suite that `start` lies in, else the program's own, its checkout or a copy in the cache. Raises UserError."""
    for folder in (start, *start.parents, SOURCES):
        if (folder / CONFIGURATION).is_file() and (folder / "releases.toml").is_file():
            return in_cache() if folder == SOURCES and is_installed() else folder
    raise UserError(
        f"There is no torch-history suite here. Neither {start} nor a folder above it contains {CONFIGURATION} and "
        "releases.toml. Go to a clone of torch-history and run the command there."
    )


def load() -> Suite:
    """The suite of the working folder; its root becomes the working folder. Raises UserError where there is none."""
    import json

    from ..releases.axis import Axis

    root = find_root(Path.cwd())
    os.chdir(root)
    try:
        configured = json.loads(Path(CONFIGURATION).read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{CONFIGURATION} is not valid JSON: {error}. Fix that line.") from error
    listed = Path(configured["repo"])
    results, env = (Path(configured.get(f"{name}_dir", name)) for name in ("results", "env"))
    return Suite(root, Axis.load(listed), listed, results, env)
