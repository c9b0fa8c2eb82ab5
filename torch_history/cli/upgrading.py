"""What `upgrade` does once it knows what is asked: this module imports all that measures."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from rich.console import Console

from ..analysis import compare as said
from ..analysis.series import Verdict
from ..analysis.verdicts import Change
from ..errors import UserError
from ..measuring.budget import effort
from ..measuring.conditions import business
from ..measuring.locks import alone
from ..measuring.machine import asked as surroundings
from ..measuring.machine import describe
from ..measuring.machine_records import use
from ..measuring.plan import measurable
from ..measuring.subjects import OwnWorkload
from ..releases import environments
from ..releases.added import AddingError, Sized
from ..releases.axis import Axis, Release
from ..store.launches import packages_moved
from ..store.skipped import remember
from ..system.files import write_atomically
from ..system.scratch import temporary_files
from ..upgrading import answer as answers
from ..upgrading import reports
from ..upgrading.answer import Answer, text
from ..upgrading.expectation import adding, expected, functions_in, gigabytes_added
from ..upgrading.installed import installed_version
from ..upgrading.room import Room
from ..upgrading.sessions import Sessions
from ..upgrading.upgrade import Upgrade
from . import suite as suites
from .explain import seconds_to_explain
from .explaining import explain_told, minutes_of
from .options import seconds_of
from .output import plain

INSTALLED = "installed"

BUDGET = "3m"
"""For each comparison beyond its first rounds."""

LEAST_ROUNDS = 2
"""A single round is no evidence of a time."""


@dataclass(frozen=True)
class Asked:
    """The options of `upgrade`."""

    workload: Path
    old: str
    new: str | None
    lane: str
    rounds: int
    budget: str | None
    explains: str | None
    again: bool
    most: int | None
    disk: str | None


def upgraded(asked: Asked, show: Callable[[Answer], None]) -> Answer | None:
    """Measures what is not stored, and shows what was found; also what is known so far where that is interrupted or refused,
    which is then raised. Returns the answer, None where nothing is known."""
    own = OwnWorkload.of(asked.workload)
    old = installed_version(os.environ) if asked.old == INSTALLED else asked.old
    seconds = seconds_to_explain(asked.explains, "WORKLOAD") if asked.explains is not None else 0.0
    if asked.rounds < LEAST_ROUNDS:
        raise UserError(f"--rounds {asked.rounds} cannot tell times apart: a single round is no evidence. Ask for 5.")
    suite, out = suites.load(), Console(soft_wrap=True, stderr=True)
    path = on_the_way(suite.axis, old, asked.new, asked.lane, lambda words: out.print(plain(words)))
    laboratory = _laboratory(asked, own, suite, out)
    if seconds and laboratory.device != "cpu":
        raise UserError("--explain works on a CPU only. Leave it out, or set TORCH_HISTORY_DEVICE=cpu.")
    told = adding(_packages(path, laboratory, own))
    laboratory.busy = business()
    of_file = functions_in(own.text)
    costs = expected(path, laboratory.room, asked.rounds, *of_file, _budget(asked), seconds, busy=bool(laboratory.busy))
    busy = laboratory.busy and (
        f"This machine is busy: {laboratory.busy}. More times will stay inconclusive, and those that more rounds cannot "
        "decide get none."
    )
    for line in filter(None, [busy, *costs.sentences, *told, laboratory.room.uncounted]):
        out.print(line, highlight=False)
    tags = tuple(release.tag for release in path)
    upgrade = Upgrade(tags, laboratory, lambda words: out.print(plain(words), highlight=False), asked.most)
    with temporary_files(), alone(suite.env):
        try:
            upgrade.run()
        finally:
            found = _answer(asked, upgrade, laboratory, own)
            is_to_be_explained = bool(seconds and found and upgrade.is_complete)
            if found and not is_to_be_explained:
                show(found)
    if found and is_to_be_explained:
        try:
            _explain(asked.lane, own, found, laboratory, suite, seconds)
        finally:
            upgrade.tell_again()
            found = _answer(asked, upgrade, laboratory, own) or found
            show(found)
    return found


def _explain(
    lane: str, own: OwnWorkload, found: Answer, laboratory: Sessions, suite: suites.Suite, seconds: float
) -> None:
    """Explains what became slower or hungrier for at most so many seconds, and says what is left."""
    places, out = found.unexplained, laboratory.out
    if not places:
        out.print("Nothing that can be explained is left.", highlight=False)
        return
    what = "1 change" if len(places) == 1 else f"{len(places)} changes"
    minutes = min(minutes_of(place.change.series for place in places), seconds / 60)
    out.print(f"To explain: {what}, which takes about {minutes:.0f} minutes.", highlight=False)
    told = [(*place.seen, place.change.series) for place in places]
    say: Callable[[str], None] = lambda words: out.print(plain(words), highlight=False)  # noqa: E731
    # By its whole path: the folder is the suite's by now.
    left = explain_told(told, suite, lane, own.path, seconds, False, out, say, laboratory.install)
    if left:
        out.print(f"Not explained yet: {left} of {what}. The same command continues.", highlight=False)


def _budget(asked: Asked) -> float:
    """Seconds for what is still undecided when all rounds are measured."""
    return seconds_of(asked.budget or BUDGET)


def _packages(path: Sequence[Release], laboratory: Sessions, own: OwnWorkload) -> dict[str, list[Sized]]:
    """What `requirements` add to both ends, of which the room is told. Raises UserError where an end cannot have them: that
    is said before gigabytes are installed."""
    if not own.requirements:
        return {}
    found = {}
    for release in (path[0], path[-1]):
        with laboratory.out.status(f"Resolving {', '.join(own.requirements)} for {release.tag}"):
            try:
                found[release.tag] = laboratory.releases.adding(release)
            except AddingError as error:
                remember(own.folder, laboratory.environment, release.tag, str(error))
                raise UserError(str(error)) from error
    laboratory.room.added = max(map(gigabytes_added, found.values()))
    return found


def _laboratory(asked: Asked, own: OwnWorkload, suite: suites.Suite, out: Console) -> Sessions:
    """What measures; its results are in the folder of the file. Raises UserError where it cannot measure as asked."""
    budget, limit = _budget(asked), gigabytes_of(asked.disk) if asked.disk else None
    conf = suite.config()
    conf.results_dir = str(own.folder / "results")
    request = surroundings()
    request = replace(request, workload=str(own.path), text=str(own.text), threads=own.threads or request.threads)
    record = describe(request)
    if record["device"] == "recorder":
        raise UserError("`upgrade` compares times, and the recorder runs nothing. Set TORCH_HISTORY_DEVICE=cpu.")
    use(record)
    lane = environments.ReleaseEnvironment(conf, asked.lane, {}, {})
    lane.needed = own.requirements
    return Sessions(
        conf=conf,
        axis=suite.axis,
        own=own,
        releases=lane,
        request=replace(request, device=record["device"]),
        machine=record["machine"],
        out=out,
        room=Room(lane.root, asked.lane, limit),
        rounds=asked.rounds,
        budget=budget,
        goes_on=asked.budget is not None,
        again=asked.again,
    )


def _answer(asked: Asked, upgrade: Upgrade, laboratory: Sessions, own: OwnWorkload) -> Answer | None:
    ends = upgrade.tags[0], upgrade.tags[-1]
    left = effort(laboratory.launches(ends, ()), [ends])
    facts = [laboratory.facts(tag) for tag in ends] if own.requirements else []
    packages = packages_moved(facts[0], facts[1], own.packages) if facts and all(facts) else None
    return answers.answer(upgrade, str(asked.workload), asked.lane, left, packages)


def on_the_way(axis: Axis, old: str, new: str | None, lane: str, tell: Callable[[str], None]) -> Sequence[Release]:
    """The releases of a lane from `old` to `new`, the newest where that is None; `tell` is given how many. Raises UserError
    where an end has no wheel there, or `old` is not the older one."""
    first = axis.find(old)
    last = axis.find(new) if new else measurable(list(axis.releases), lane)[0][-1]
    if axis.position(first.tag) >= axis.position(last.tag):
        raise UserError(f"{last.tag} is no upgrade of {first.tag}. Name an older release with --from.")
    between = list(axis.releases[axis.position(first.tag) : axis.position(last.tag) + 1])
    able, skipped = measurable(between, lane)
    for end in (first, last):
        if end not in able:
            raise UserError(
                f"{end.tag} has no wheel for Python {lane}, only for {', '.join(end.pythons)}. Choose one with --lane."
            )
    left_out = f" {len(skipped)} have no wheel for it." if skipped else ""
    tell(f"From {first.tag} to {last.tag} there are {len(able)} releases for Python {lane}.{left_out}")
    return able


def gigabytes_of(text: str) -> float:
    """Of `20GB` or `20`. Raises UserError for what is no amount."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:GB?)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise UserError(f"'{text}' is no amount of disk. Write 20GB.")
    return float(match[1])


def ran(found: Answer | None) -> bool:
    """Whether any function gave a number on a release."""
    return found is not None and any(
        change.verdict is not Verdict.NEVER_RAN and (change.old is not None or change.new is not None)
        for change in found.comparison.changes
    )


def failing(found: Answer | None, limits: dict[str, float]) -> list[Change]:
    """The series that changed as --fail-on says."""
    return said.failing(found.comparison, limits) if found else []


def show(found: Answer, limits: dict[str, float], form: str | None, page: Path | None) -> None:
    """Prints an answer as text, `markdown` or `json`, and writes it to a file where `page` names one."""
    failed = failing(found, limits)
    forms = {"markdown": reports.markdown, "json": reports.as_json}
    click.echo(forms.get(form or "", text)(found, failed))
    if page:
        write_atomically(page, reports.page(found, failed))
