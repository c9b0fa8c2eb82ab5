"""`run --plan`: what a run would measure and take, what the stored sessions lack, and what finding more would cost."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from ..analysis import design
from ..analysis.power import is_patch, neighbours
from ..cluster.planning import GIGABYTES, Rates, Work, rates
from ..measuring.plan import SHARED, anchored
from ..releases.builds import OTHER_BUILDS
from ..store.launches import files_of, machines_in

if TYPE_CHECKING:
    from ..analysis.levels import Fitted
    from ..analysis.series import History
    from ..releases.axis import Axis, Release

SHARES = (0.8, 0.99)
"""Of changes of one time that are to be found: four of five, and nearly all."""


def machine_with_durations(results: Path, ours: str, tell: Callable[[str], None]) -> str:
    """This machine where anything of it is stored, else the one with most stored; empty where there is none."""
    known = machines_in(results)
    if ours in known or not known:
        return ours if known else ""
    most = max(known, key=lambda name: sum(path.stat().st_size for path in files_of(results / name)))
    tell(f"Nothing of this machine is stored: durations are those of {most}.")
    return most


def show(
    groups: Sequence[Sequence[Release]], anchor: Release | None, work: Work, stored: History, axis: Axis, out: Console
) -> None:
    """Prints the sessions of a run, and what is known of the `stored` ones, those of its lane on one machine."""
    launches = [launch for of in stored.values() for pairs in of.values() for launch, _ in pairs]
    known = rates({id(launch): launch for launch in launches}.values())
    out.print(_sessions(groups, anchor, work, known))
    lanes = {
        environment: {q: fit for (lane, q), fit in stored.fits.items() if lane == environment}
        for environment, _ in stored.fits
    }
    for environment, fits in lanes.items():
        out.print(f"\nThe stored sessions of {environment}", highlight=False)
        for sentence in lacking(fits, axis):
            out.print(sentence, highlight=False)
        with out.status("Reckoning what more rounds would find"):
            every = [
                pair for pair in neighbours(stored, environment, axis) if is_patch(pair) and not {*pair} & OTHER_BUILDS
            ]
            costs = {question: of for question, fit in fits.items() if (of := design.costs(fit, every, SHARES))}
        if costs:
            out.print(_costs(costs, known))


def _sessions(groups: Sequence[Sequence[Release]], anchor: Release | None, work: Work, known: Rates) -> Table:
    every = [[release.tag for release in anchored(group, anchor)] for group in groups]
    minutes = [work.seconds(known, tags) / 60 for tags in every]
    gigabytes = GIGABYTES * len({*itertools.chain(*every)})
    said = (
        f"About {max(1, round(sum(minutes)))} min in all, at most {gigabytes:.0f} GB to install. Nothing was measured."
    )
    if unknown := [question for question in work.questions if question not in known.questions]:
        said += f" No duration of {', '.join(unknown)} is stored, so that of these is a guess."
    table = Table(box=None, caption=said, caption_justify="left")
    for title in ("session", "minutes", "releases"):
        table.add_column(title, justify="right" if title == "minutes" else "left")
    for number, (tags, of_session) in enumerate(zip(every, minutes, strict=True), start=1):
        table.add_row(str(number), f"{of_session:.0f}", ", ".join(tags))
    return table


def lacking(fits: Mapping[str, Fitted], axis: Axis) -> Iterator[str]:
    """What the stored sessions lack, a sentence for the questions that lack the same."""
    alike: dict[design.Ties, list[str]] = {}
    for question, fit in sorted(fits.items()):
        alike.setdefault(design.ties(fit, SHARED), []).append(question)
    for of, questions in alike.items():
        names = ", ".join(questions)
        if of.sessions < 2:
            yield f"{names}: one session has all of it, so nothing ties sessions."
            continue
        yield (
            f"{names}: {of.shares_few} of {of.sessions} sessions share fewer than {SHARED} releases with any other, and "
            f"{of.without_anchor} lack {of.anchor}, which most have."
        )
        if of.once:
            once = sorted(of.once, key=axis.position)
            yield f"Only one session has {', '.join(once)}. A run of these and {of.anchor} ties them."


def _costs(costs: dict[str, list[design.Cost]], known: Rates) -> Table:
    """Minutes of each release in which a change of one time is found in so many of the times."""
    said = "Minutes of a release that find a change of one time between patch releases, while nothing else changes"
    table = Table(box=None, title=said, title_justify="left")
    for title in ("question", "change", "found now", "minutes now", *(f"{share:.0%} found" for share in SHARES)):
        table.add_column(title, justify="left" if title == "question" else "right")
    for question, of_question in sorted(costs.items()):
        minutes = known.usual.get((question, "times"), 0.0) / 60
        for cost in of_question:
            words = [f"{rounds * minutes:.1f}" if rounds else "never" for rounds in cost.needed]
            table.add_row(question, f"{cost.size:.0%}", f"{cost.found:.0%}", f"{cost.rounds * minutes:.1f}", *words)
    if any(None in cost.needed for of_question in costs.values() for cost in of_question):
        table.caption = "Never: rounds of one session do not average out what it does to a release. More sessions do."
        table.caption_justify = "left"
    return table
