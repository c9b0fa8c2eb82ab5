"""`run --plan` and `fleet run --plan`: what would be measured, and how long that takes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.table import Table

from ..measuring.fleet.planning import GIGABYTES, Rates, Work
from ..store.launches import files_of, machines_in


def machine_with_durations(results: Path, ours: str, tell: Callable[[str], None]) -> str:
    """This machine where anything of it is stored, else the one with most stored; empty where there is none."""
    known = machines_in(results)
    if ours in known or not known:
        return ours if known else ""
    most = max(known, key=lambda name: sum(path.stat().st_size for path in files_of(results / name)))
    tell(f"Nothing of this machine is stored: durations are those of {most}.")
    return most


def sessions(every: Sequence[Sequence[str]], work: Work, known: Rates, what: str) -> Table:
    """The sessions, `what` one is called, and how long each takes by what is `known`; `every` has the tags of each."""
    minutes = [work.seconds(known, tags) / 60 for tags in every]
    gigabytes = GIGABYTES * len({*itertools.chain(*every)})
    said = (
        f"About {max(1, round(sum(minutes)))} min in all, at most {gigabytes:.0f} GB to install. Nothing was measured."
    )
    if unknown := [question for question in work.questions if not any(question == of for of, _ in known)]:
        said += f" No duration of {', '.join(unknown)} is stored, so that of these is a guess."
    table = Table(box=None, caption=said, caption_justify="left")
    for title in (what, "minutes", "releases"):
        table.add_column(title, justify="right" if title == "minutes" else "left")
    for number, (tags, of_session) in enumerate(zip(every, minutes, strict=True), start=what == "session"):
        table.add_row(str(number), f"{of_session:.0f}", ", ".join(tags))
    return table
