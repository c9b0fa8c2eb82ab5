"""Which folder may a publish replace? One that is new, empty, marked as this program's own, or holds such folders alone. An
asv plugin too: asv's own `publish` deletes the folder that it writes into, so it asks here first."""

from pathlib import Path
from typing import Any

from asv import util
from asv.commands.publish import Publish
from asv.config import Config

from ..system.errors import UserError
from ..system.scratch import MARK, is_own, mark
from .asv_dashboard import publish_dashboard

ROOT = Path(__file__).resolve().parents[2]

SCRATCH = ".publishing-"
"""How the name of a folder begins that lies beside the site while it is built."""


def require_replaceable(folder: Path, conf: Config) -> None:
    """Raises UserError, with nothing touched, unless a publish may put a site in the place of `folder`."""
    folder = folder.resolve()
    advice = "Nothing was changed. Name a folder that is new or empty with --html-dir."
    for kept, words, outside_only in _kept(conf):
        if kept.is_relative_to(folder):
            verb = "is" if kept == folder else "holds"
            raise UserError(f"A site cannot take the place of {folder}, which {verb} {words}. {advice}")
        if outside_only and folder.is_relative_to(kept):
            raise UserError(f"A site cannot take the place of {folder}, which lies within {words}, {kept}. {advice}")
    if ".git" in folder.parts:
        raise UserError(f"A site cannot take the place of {folder}, which lies within a folder of git's. {advice}")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UserError(f"A site cannot take the place of {folder}, which is no folder. {advice}")
    if not is_own(folder) and not all(is_own(each) and not each.is_symlink() for each in folder.iterdir()):
        raise UserError(
            f"A site cannot take the place of {folder}: it holds files, and none named {MARK} that says torch-history made "
            f"them. {advice} Where it is a site that an older torch-history published, remove it yourself first."
        )


def _kept(conf: Config) -> list[tuple[Path, str, bool]]:
    """What no site may take the place of, in words, and whether no site may lie in it either."""
    roots = dict.fromkeys((Path.cwd().resolve(), ROOT))
    return [
        (Path(conf.results_dir).resolve(), "the results", True),
        (Path(conf.env_dir).resolve(), "the releases' environments", True),
        (Path(conf.benchmark_dir).resolve(), "the benchmarks", True),
        *[(root, "the checkout", False) for root in roots],
        (Path.home().resolve(), "your home folder", False),
    ]


def _publish_guarded(cls: type[Publish], conf: Config, *args: Any, **kwargs: Any) -> None:
    folder = Path(conf.html_dir)
    try:
        require_replaceable(folder, conf)
        try:
            publish_dashboard(conf, *args, **kwargs)
        finally:
            # Also of a publish that failed: what lies there now is asv's.
            if folder.is_dir():
                mark(folder)
    except UserError as error:
        raise util.UserError(str(error)) from error  # which asv prints as a sentence


def setup() -> None:
    """asv's hook: called when it loads this module as a plugin."""
    Publish.run = classmethod(_publish_guarded)
