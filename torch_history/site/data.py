"""What did a machine measure in one environment, over all releases? A lane. docs/site.md lists the keys of its data."""

import functools
import hashlib
import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..analysis import claims, compare, steps
from ..analysis.causes import Known, evidence, unconfirmed
from ..analysis.replication import NO_PLACES, OtherPlaces, Place, held_against
from ..analysis.series import History, Pairs, Series, disturbed, history
from ..analysis.verdicts import Change
from ..releases.axis import Axis, Release
from ..store.causes import moved_alike
from ..store.launches import Launch, machines_in, read_environment, read_on_axis
from ..store.machines import record_of
from ..system.files import LONGEST_NAME, WRONG_DATA, warn
from . import pairs, typical
from .rivals import Rivals, rivals, sentence

SCHEMA = 4  # of the site's data; it grows by one when a key goes or changes its meaning, not when one is added


@dataclass(frozen=True)
class Lane:
    """A machine in an environment: `found` are its launches, `releases` the tags that it measured, oldest first, `facts`
    their environments, `evidence` that of causes, `unconfirmed` as in analysis/causes.py, `every` two releases compared."""

    machine: dict[str, Any]
    environment: str
    found: History
    releases: list[str]
    facts: dict[str, dict[str, Any]]
    evidence: Sequence[Known]
    unconfirmed: Mapping[tuple[str, str], Collection[Series]]
    every: pairs.EveryPair

    @functools.cached_property
    def place(self) -> dict[Series, int]:
        """That of each series in all lists of them."""
        return {series: i for i, series in enumerate(self.found)}

    @functools.cached_property
    def rivals(self) -> Mapping[str, Rivals]:
        """What may be done instead, on each release."""
        return rivals(self.found, self.releases)

    @functools.cached_property
    def advice(self) -> dict[str, list[tuple[int, str]]]:
        """What to do instead of each series on each release, in a sentence."""
        rivals = self.rivals.items()
        return {tag: [(self.place[one], sentence([one], known, tag)) for one in known] for tag, known in rivals}

    @functools.cached_property
    def main(self) -> dict[str, list[str]]:
        """The benchmarks of the main `times` and of the `memory` of its questions."""
        of = {"times": typical.TIMES, "memory": typical.MEMORY}
        return {name: sorted(typical.main(self.found, metrics)) for name, metrics in of.items()}

    def changes(self, old: str, new: str) -> dict[str, Any]:
        """What a release changed against the `old` one before: `tally` by verdict, and the places of what `changed`."""
        changes = self.decided(old, new)
        tally = Counter(change.verdict.words for change in changes)
        changed = [self.place[one.series] for one in changes if one.verdict.kind in compare.SAID_FIRST]
        return {"old": old, "tally": tally, "changed": changed}

    @functools.cached_property
    def answers(self) -> dict[str, dict[str, claims.Answer]]:
        """The answers to the claims: question -> release, oldest first -> answer."""
        return claims.answers(self.found, self.releases)

    def decided(self, old: str, new: str) -> list[Change]:
        """What became of each series from one of its releases to a newer one."""
        return [*self.every.changes(self.every.pairs.index((old, new)))]

    def decided_for(self, other: "Lane") -> Callable[[str, str], list[Change]]:
        """`decided` for another machine: nothing of releases in whose sessions it was measured itself, as a copy holds."""

        def decided(old: str, new: str) -> list[Change]:
            is_copied = self.name != other.name and self.found.is_copied(other.found, old, new)
            return [] if is_copied else self.decided(old, new)

        return decided

    @property
    def name(self) -> str:
        return str(self.machine["machine"])

    @property
    def id(self) -> str:
        """In addresses and names of files."""
        return lane_id(self.name, self.environment)

    @property
    def device(self) -> str:
        return str(self.machine.get("device", "cpu"))

    @property
    def threads(self) -> str:
        return str(self.machine.get("threads", ""))

    @property
    def words(self) -> str:
        """As a person says it: `AMD EPYC, 2 cores, CPU, 1 thread, Python 3.11`."""
        record = self.machine
        subject = record.get("gpu") or record.get("cpu") or self.name
        cores = f"{record['num_cpu']} cores" if record.get("num_cpu") and not record.get("gpu") else ""
        threads = self.threads
        said = f"{threads} thread{'' if threads == '1' else 's'}" if threads and self.device == "cpu" else ""
        lane = re.sub(r"^release-py", "Python ", self.environment)
        if self.device == "recorder":
            return f"{str(subject).partition(' pretended ')[0]}, simulated (memory counted, nothing ran), {lane}"
        device = {"cuda": "GPU"}.get(self.device, self.device.upper())
        return ", ".join(str(part) for part in (subject, cores, device, said, lane) if part)


def file_name(machine: str) -> str:
    """A name of files for what is about all of a machine, of which no other machine has the same."""
    plain = re.fullmatch(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*", machine) and not re.search(r"-x[0-9a-f]{16}$", machine)
    return machine if plain else _with_digest(machine)


def lane_id(machine: str, environment: str) -> str:
    """Of a machine's lane, whatever characters the names have: letters, digits and dashes. No two lanes have the same one:
    where the last three words are the environment it can be read back, all others end in a digest."""
    if file_name(machine) == machine and re.fullmatch(r"(release|installed)-py\d+\.\d+", environment):
        return f"{machine}-{environment.replace('.', '-')}"
    return _with_digest(machine, environment)


def _with_digest(*names: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9]+", "-", "-".join(names)).strip("-")[:LONGEST_NAME]
    return f"{plain}-x{hashlib.sha256(json.dumps(names).encode()).hexdigest()[:16]}"


def lanes(results_dir: Path, axis: Axis, here: str = "") -> list[Lane]:
    """Every lane of every machine, those with the newest release first: of these those of the machine `here`, then the lane
    with most releases and series. A lane that cannot be read, or whose id another has, is left out with a warning."""
    found: dict[str, Lane] = {}
    for name in machines_in(results_dir):
        launches: dict[str, list[Launch]] = defaultdict(list)
        for launch in read_on_axis(results_dir, name, axis):
            launches[launch.environment].append(launch)
        for environment in sorted(launches):
            try:
                lane = _lane(results_dir, name, environment, history(launches.pop(environment)), axis)
            except WRONG_DATA as error:
                left_out(name, environment, unreadable(error))
                continue
            other = found.setdefault(lane.id.lower(), lane)
            if other is not lane:
                left_out(name, environment, f"its id, {lane.id}, is that of another lane of {other.name}")
    return sorted(
        found.values(),
        key=lambda lane: (
            -axis.position(lane.releases[-1]),
            lane.name != here,
            -len(lane.releases),
            lane.device == "recorder",  # of those with as many releases one on which something ran comes first
            -len(lane.found),
            lane.id,
        ),
    )


def _lane(results_dir: Path, name: str, environment: str, found: History, axis: Axis) -> Lane:
    tags = found.tags(axis)
    if not tags:
        raise ValueError("its launches hold no case")
    facts = {tag: read_environment(results_dir, name, tag, environment) for tag in tags}
    missed = unconfirmed(results_dir, name, found)
    every = pairs.EveryPair(found, tags)
    known = evidence(results_dir, name)
    return Lane(record_of(results_dir / name), environment, found, tags, facts, known, missed, every)


def unreadable(error: Exception) -> str:
    """Why a lane is left out. Results come from anywhere: whatever one raises must not keep the others from the site."""
    return f"it cannot be read ({type(error).__name__}: {error})"


def left_out(machine: str, environment: str, why: str) -> None:
    warn(f"{machine} in {environment} is not published: {why}. `torch-history check` names the lines.")


def newest(lane: Lane, elsewhere: OtherPlaces = NO_PLACES) -> compare.Comparison | None:
    """The newest release of a lane against the one before it, if any, held against what was measured `elsewhere`."""
    if len(lane.releases) < 2:
        return None
    old, new = lane.releases[-2:]
    of = (lane.name, lane.environment, old, new, lane.found, lane.facts, lane.device, lane.evidence, lane.threads)
    return compare.compared(*of).beside(lane.unconfirmed, elsewhere)


def elsewhere_of(lane: Lane, others: Iterable[Lane]) -> OtherPlaces:
    """Those of `others` that measured the same as `lane`."""
    places = (Place(one.machine, one.environment, one.releases, one.decided_for(lane)) for one in others)
    return held_against(lane.machine, lane.environment, places)


def numbers(lane: Lane, axis: Axis) -> dict[str, Any]:
    """All that was measured: docs/site.md lists the keys."""
    position = {tag: i for i, tag in enumerate(lane.releases)}
    rounds: dict[tuple[str, int], int] = {}
    reasons: dict[str, int] = {}
    patterns: dict[tuple[tuple[int, int], ...], int] = {}
    rows = []
    for series, releases in lane.found.items():
        known = [
            (position[tag], launch, case.number)
            for tag in sorted(releases, key=position.__getitem__)
            for launch, case in releases[tag]
            if case.number is not None
        ]
        where = [(at, rounds.setdefault((launch.session, launch.round), len(rounds))) for at, launch, _ in known]
        rows.append(
            {
                "key": pairs.key(series),
                **{name: getattr(series, name) for name in ("question", "metric", "benchmark")},
                "parameters": series.plain,
                **{name: getattr(series, name) for name in ("variant", "size", "unit")},
                "pattern": patterns.setdefault(tuple(where), len(patterns)),
                "numbers": [number for _, _, number in known],
                "disturbed": [i for i, (_, launch, _) in enumerate(known) if disturbed(launch)],
                "missing": _missing(releases, position, reasons),
            }
        )
    return {
        "releases": [_about(axis.releases[axis.position(tag)], lane.facts[tag]) for tag in lane.releases],
        "rounds": list(rounds),
        "reasons": list(reasons),
        "patterns": list(patterns),
        "series": rows,
        "limits": claims.limits(lane.found, lane.releases),
    }


def _missing(releases: Mapping[str, Pairs], position: Mapping[str, int], reasons: dict[str, int]) -> list[list[int]]:
    """Of each release without a number its position, the place of its reason, and 1 if it failed, 2 if not measured."""
    missing = []
    for tag in sorted(releases, key=position.__getitem__):
        if all(case.number is None for _, case in releases[tag]):
            case = releases[tag][-1][1]
            reason = reasons.setdefault(case.reason, len(reasons))
            missing.append([position[tag], reason, 1 if case.failed else 2 if case.unmeasured else 0])
    return missing


def _about(release: Release, facts: Mapping[str, Any]) -> dict[str, Any]:
    about = {"tag": release.tag, "date": release.date.isoformat(), "estimated": release.date_source == "estimated"}
    return {**about, "yanked": release.yanked, "facts": facts}


def lane_data(lane: Lane, axis: Axis, elsewhere: OtherPlaces = NO_PLACES) -> dict[str, Any]:
    """What of a lane is about all its releases, held against what was measured `elsewhere`: docs/site.md lists the keys."""
    happened = steps.of_history(lane.found, axis)
    told = compare.told_findings(happened, lane.found, lambda tag, _: lane.facts[tag], lane.evidence, elsewhere)
    said = list(zip(happened, compare.one_by_one(told), strict=True))
    sentences = [(step, each.sentence) for step, each in said]
    return {
        "schema": SCHEMA,
        **{name: getattr(lane, name) for name in ("id", "machine", "environment", "words")},
        "series": [pairs.key(series) for series in lane.found],
        "evidence": [_evidence(one) for one in lane.evidence if one.environment == lane.environment],
        "unconfirmed": [[[one.benchmark, *one.plain], *pair] for pair, of in lane.unconfirmed.items() for one in of],
        "changes": [None, *itertools.starmap(lane.changes, itertools.pairwise(lane.releases))],
        "steps": [
            {
                "series": lane.place[step.series],
                "kind": step.kind.value,
                "verdict": step.verdict.words,
                **{name: getattr(step, name) for name in ("old", "new", "until", "ratio")},
                "where": each.release,
                **{name: getattr(each, name) for name in ("own", "net", "sentence")},
            }
            for step, each in said
        ],
        "regressions": [
            {"steps": each.places, "title": each.headline, "sentence": each.evidence, "words": each.words}
            for each in told
            if each.verdict.kind == "worse"
        ],
        "claims": claims.as_data(lane.found, lane.answers, sentences),
    }


def _evidence(one: Known) -> dict[str, Any]:
    """Of a cause as pages read it, its numbers as they are shown."""
    return {
        **one._asdict(),
        "ratio": typical.rounded(one.ratio),
        "reproduced": one.reproduced and [*map(typical.rounded, one.reproduced)],
        "confirmed": moved_alike(one.reproduced, one.ratio),
    }


def lines(lane: Lane, claim: Mapping[str, Any]) -> dict[str, Any] | None:
    """The picture of a claim as `lane_data` has it, with the numbers of each variant on each release of the lane, None where
    there is none; None where the lane has nothing to draw."""
    picture = claim["picture"]
    if not picture:
        return None
    of = {one.parameters: one for one in lane.found if one.benchmark == picture["benchmark"]}
    series = {variant: of[repr(variant), repr(picture["size"])] for variant in picture["variants"]}
    known = next(iter(series.values()))
    numbers = {variant: [_number(lane, one, tag) for tag in lane.releases] for variant, one in series.items()}
    about = {"lane": lane.id, "releases": lane.releases, "metric": known.metric, "unit": known.unit}
    return about | picture | {"numbers": numbers}


def _number(lane: Lane, series: Series, tag: str) -> float | None:
    """A time less what its sessions do to the whole question, the newest of exact numbers; None where there is none."""
    numbers = [case.number for _, case in lane.found[series].get(tag, ()) if case.number is not None]
    if not numbers:
        return None
    fit = lane.found.fits.get((series.environment, series.question)) if series.varies else None
    return typical.rounded(fit.shown(series, tag)) if fit else numbers[-1]
