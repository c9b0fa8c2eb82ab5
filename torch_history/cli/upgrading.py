"""What `upgrade` does once it knows what is asked: this module imports all that measures."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from recorder.environments import packages as packages_of

from ..measuring.conditions import business
from ..measuring.machine import asked as surroundings
from ..measuring.machine import describe
from ..measuring.machine_records import use
from ..measuring.plan import measurable
from ..measuring.progress import minutes
from ..measuring.subjects import OwnWorkload as OwnWorkload
from ..measuring.subjects import RecorderEnvironment
from ..measuring.subjects import installed_version as installed_version
from ..measuring.upgrading import fits
from ..measuring.upgrading.room import Room, adding, forecast, gigabytes_added
from ..measuring.upgrading.sessions import Sessions
from ..measuring.upgrading.upgrade import Answer, Upgrade
from ..measuring.upgrading.words import FORMS as FORMS
from ..releases import environments
from ..releases.added import AddingError
from ..releases.axis import Axis, Release
from ..store.launches import packages_moved
from ..store.own import remember
from ..system.errors import UserError
from ..system.locks import alone
from ..system.scratch import temporary_files
from . import suite as suites
from .explaining import Context, Say, explain_told, minutes_of
from .output import plain

BUDGET = 300.0
"""Seconds to measure in, where nobody says how many."""


@dataclass(frozen=True)
class Asked:
    """What `upgrade` is asked: `file` as the user named it, seconds, and gigabytes of `disk`."""

    file: str
    own: OwnWorkload
    old: str
    new: str | None
    lane: str
    budget: float | None
    explaining: float
    again: bool
    most: int | None
    disk: float | None

    @property
    def seconds(self) -> float:
        return BUDGET if self.budget is None else self.budget


def upgraded(asked: Asked, show: Callable[[Answer], None]) -> Answer | None:
    """Measures what is not stored, and shows what is known, also if interrupted. Returns the answer or None."""
    suite, out = suites.load(), Console(soft_wrap=True, stderr=True)
    say: Say = lambda words: out.print(plain(words), highlight=False)  # noqa: E731
    path = on_the_way(suite.axis, asked, say)
    laboratory = _laboratory(asked, suite, out)
    say("\n".join(_forecast(asked, path, laboratory)))
    upgrade = Upgrade(tuple(release.tag for release in path), laboratory, say, asked.most)
    with temporary_files(), alone(laboratory.room.root):
        try:
            upgrade.run()
        finally:
            if laboratory.measured:
                say(f"Measuring took {minutes(laboratory.measured)} of {minutes(asked.seconds)}.")
            found = _answer(asked, upgrade)
            if found and not (asked.explaining and upgrade.is_complete):
                show(found)
    if not found:
        say("No number was measured in that time. Give more, such as --budget 10m.")
    if found and asked.explaining:
        try:
            _explain(asked, found, laboratory, suite, say)
        finally:
            upgrade.tell_again()
            found = _answer(asked, upgrade) or found
            show(found)
    return found


def _forecast(asked: Asked, path: Sequence[Release], laboratory: Sessions) -> list[str]:
    """What it will cost, in sentences. Raises UserError where an end cannot have the `requirements`."""
    added = []
    for release in (path[0], path[-1]) if asked.own.requirements else ():
        try:
            with laboratory.out.status(f"Resolving {', '.join(asked.own.requirements)} for {release.tag}"):
                packages = laboratory.releases.adding(release)
        except AddingError as error:
            remember(asked.own.folder, laboratory.environment, release.tag, str(error))
            raise UserError(str(error)) from error
        added.append(adding(release.tag, packages))
        laboratory.room.added = max(laboratory.room.added, gigabytes_added(packages))
    busy = business() if laboratory.device != "recorder" else ""
    lines = [f"This machine is busy: {busy}. More times will stay inconclusive."] if busy else []
    return [*lines, *forecast(path, laboratory.room, asked.seconds, asked.explaining, asked.most), *added]


def _explain(asked: Asked, found: Answer, laboratory: Sessions, suite: suites.Suite, say: Say) -> None:
    """Explains what became slower or hungrier for so long as is asked, and says what is left."""
    places = found.unexplained
    if not places:
        say("Nothing that can be explained is left.")
        return
    what = "1 change" if len(places) == 1 else f"{len(places)} changes"
    minutes = min(minutes_of(place.change.series for place in places), asked.explaining / 60)
    say(f"To explain: {what}, which takes about {minutes:.0f} minutes.")
    told = [(*place.seen, place.change.series) for place in places]
    context = Context.of(suite, asked.lane, asked.own, prepare=laboratory.install)
    left = explain_told(told, context, asked.explaining, laboratory.out, say)
    if left:
        say(f"Not explained yet: {left} of {what}. The same command continues.")


def _laboratory(asked: Asked, suite: suites.Suite, out: Console) -> Sessions:
    """What measures; its results are in the folder of the file. Raises UserError where it cannot measure as asked."""
    own, conf, request = asked.own, suite.config(), surroundings()
    conf.results_dir = str(own.folder / "results")
    request = replace(request, workload=str(own.path), text=str(own.text), threads=own.threads or request.threads)
    record = describe(request)
    if asked.explaining and record["device"] != "cpu":
        raise UserError("--explain works on a CPU only. Leave it out, or set TORCH_HISTORY_DEVICE=cpu.")
    use(record)
    lane = environments.ReleaseEnvironment(conf, asked.lane, {}, {})
    lane.needed = own.requirements
    request, room = replace(request, device=record["device"]), Room(lane.root, asked.lane, asked.disk)
    if request.device == "recorder":
        lane = RecorderEnvironment(conf, asked.lane, request.card, own)
        each = fits.GIGABYTES_EACH
        room = replace(room, root=lane.root, asked=functools.partial(packages_of, python=asked.lane), each=each)
    subject = conf, suite.axis, own, lane, request, record["machine"], out, room
    return Sessions(*subject, left=asked.seconds, goes_on=asked.budget is not None, again=asked.again)


def _answer(asked: Asked, upgrade: Upgrade) -> Answer | None:
    ends, laboratory = (upgrade.tags[0], upgrade.tags[-1]), upgrade.laboratory
    facts = [laboratory.facts(tag) for tag in ends] if asked.own.requirements else []
    packages = packages_moved(facts[0], facts[1], asked.own.packages) if facts and all(facts) else None
    return upgrade.answer(asked.file, asked.lane, packages)


def on_the_way(axis: Axis, asked: Asked, say: Say) -> Sequence[Release]:
    """The releases of a lane from the old to the new or newest one. Raises UserError where an end does not fit."""
    lane, first = asked.lane, axis.find(asked.old)
    last = axis.find(asked.new) if asked.new else measurable(list(axis.releases), lane)[0][-1]
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
    say(f"From {first.tag} to {last.tag} there are {len(able)} releases for Python {lane}.{left_out}")
    return able
