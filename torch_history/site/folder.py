"""Which folder may a publish replace? One that is new, empty, marked as this program's own, or holds such folders alone. An
asv plugin too: asv's own `publish` deletes the folder that it writes into, so it asks here first."""

from pathlib import Path
from typing import Any

from asv import util
from asv.commands.publish import Publish
from asv.config import Config

from ..system.errors import UserError
from ..system.program import SOURCES
from ..system.scratch import MARK, is_own, mark
from .asv_dashboard import publish_dashboard

SCRATCH = ".publishing-"  # how the name of a folder begins that lies beside the site while it is built


def require_replaceable(folder: Path, conf: Config) -> None:
    """Raises UserError, with nothing touched, unless a publish may put a site in the place of `folder`."""
    folder = folder.resolve()
    advice = "Nothing was changed. Name a folder that is new or empty with --html-dir."
    every = [  # what no site may take the place of, in words, and whether none may lie in it either
        (conf.results_dir, "the results", True),
        (conf.env_dir, "the releases' environments", True),
        (conf.benchmark_dir, "the benchmarks", True),
        (Path.cwd(), "the checkout", False),
        (SOURCES, "the checkout", False),
        (Path.home(), "your home folder", False),
    ]
    for path, words, outside_only in every:
        kept = Path(path).resolve()
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
