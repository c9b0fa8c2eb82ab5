"""What did one machine measure in one environment, over all releases? A lane: all that the site shows, from its launches.

A lane is written in parts of some releases. What a part holds, and what each file of launches is about, is remembered beside
the environments, so publishing again reads only what is new, and a thousand releases need no more memory than a part.
docs/site.md lists the keys.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from contract.metrics import metric_of

from ..analysis import bases, claims, compare, steps
from ..analysis.answer import UNMEASURED
from ..analysis.causes import Known, evidence, unconfirmed
from ..analysis.levels import on_one_thread
from ..analysis.replication import Measured, OtherPlaces, held_against
from ..analysis.series import WORDS, History, Series, disturbed, history
from ..analysis.verdicts import Change, compare_history
from ..releases.axis import Axis, Release
from ..store.launches import (
    ENVIRONMENTS,
    Case,
    Launch,
    files_of,
    machines_in,
    node_of,
    of_file,
    read_environment,
    read_file,
)
from ..store.machines import record_of
from ..store.sources import that_count
from ..system.files import LONGEST_NAME, WRONG_DATA, read_bytes, warn, write_atomically
from . import pack, pairs
from .processes import at_once

SCHEMA = 2
"""Of the site's data; it grows by one when a key goes or changes its meaning, not when one is added."""

PUBLISHED = "published"
"""Folder in `env/` that remembers what was read of the results."""

INDEX = "index"
"""What is remembered of a machine's files, beside the parts that were made of them: a digest, and on the next line JSON."""

PACKED, ANSWERS, PAIRS = SCRIPTS = (".packed", ".answers", ".pairs")
"""Endings of what a part's scripts hold, beside its JSON: all that was measured as pack.py writes it, the answers to claims,
and what pairs.py says of all pairs of its releases."""

PART = 64
"""Releases of a part: all of PyTorch's so far are one, and of a thousand one new release changes a sixteenth."""


@dataclass(frozen=True)
class Part:
    """Some neighbouring releases of a lane as the pages read them: `file` is its JSON, with SCRIPTS beside it, `series` the
    keys of what is in it, and `words` the answers to the claims, question -> (release, word)."""

    file: Path
    series: list[Sequence[str]]
    words: dict[str, list[tuple[str, str]]]


@dataclass(frozen=True)
class Lane:
    """One machine in one environment: `releases` are the tags that it measured, oldest first, in `parts`, `changes` what
    each changed against the one before it, None of the first, `facts` their environments, and `evidence` that of causes."""

    machine: dict[str, Any]
    environment: str
    releases: list[str]
    parts: list[Part]
    changes: list[dict[str, Any] | None]
    facts: dict[str, dict[str, Any]]
    files: _Files
    evidence: Sequence[Known] = ()

    @functools.cached_property
    def unconfirmed(self) -> list[tuple[Series, str, str]]:
        """As `causes.unconfirmed`, of this lane."""
        folder = self.files.folder
        return unconfirmed(folder.parent, folder.name, self.found)

    @functools.cached_property
    def found(self) -> History:
        """The launches of the newest releases, as many as steps are looked for in; read when it is asked for first."""
        return self.files.history(self.environment, self.releases[-PART:])

    @functools.cached_property
    def answers(self) -> dict[str, dict[str, claims.Answer]]:
        """The answers to the claims on the newest releases: question -> release -> answer."""
        return claims.answers(self.found)

    @functools.cached_property
    def words_of(self) -> dict[str, list[tuple[str, str]]]:
        """The word of each answer: question -> (release, word) of every release, oldest first."""
        words: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for part in self.parts:
            for question, of_part in part.words.items():
                words[question] += [(tag, word) for tag, word in of_part]
        return words

    @property
    def answered(self) -> bases.Answered:
        """What it says of the claims, to be set beside other lanes."""
        return bases.answered_by(self.machine, self.environment, self.words_of, self.found, self.answers)

    def decided(self, old: str, new: str) -> list[Change]:
        """The changes of times from one release to another that have a verdict: between neighbours as remembered."""
        of = self.changes[self.releases.index(new)]
        if of and of["old"] == old:
            keys = [(Series(self.environment, key[0], tuple(key[1:])), *said) for key, *said in of["decided"]]
            return [Change(series, WORDS[verdict], ratio=ratio) for series, verdict, ratio in keys]
        try:
            return compare_history(self.found, old, new)
        except WRONG_DATA:
            return []  # said where this lane is published itself

    def decided_for(self, other: Lane) -> Callable[[str, str], list[Change]]:
        """`decided` for another machine: nothing of releases in whose sessions it was measured itself, of which one holds a
        copy."""

        def decided(old: str, new: str) -> list[Change]:
            copied = self.name != other.name and any(self.sessions(tag) & other.sessions(tag) for tag in (old, new))
            return [] if copied else self.decided(old, new)

        return decided

    def sessions(self, tag: str) -> set[str]:
        """That measured a release."""
        return self.files.sessions(self.environment, tag)

    @property
    def rank(self) -> tuple[bool, int]:
        """Of lanes with as many releases the one is shown first on which something ran, and which measured more of each."""
        return self.device == "recorder", -max(len(part.series) for part in self.parts)

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
    def words(self) -> str:
        """As a person says it: `AMD EPYC, 2 cores, CPU, 1 thread, Python 3.11`."""
        record = self.machine
        subject = record.get("gpu") or record.get("cpu") or self.name
        cores = f"{record['num_cpu']} cores" if record.get("num_cpu") and not record.get("gpu") else ""
        threads = record.get("threads")
        said = f"{threads} thread{'' if threads == '1' else 's'}" if threads and self.device == "cpu" else ""
        lane = re.sub(r"^release-py", "Python ", self.environment)
        if self.device == "recorder":
            return f"{str(subject).partition(' pretended ')[0]}, counted without a GPU, {lane}"
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


def lanes(results_dir: Path, axis: Axis, memory: Path, here: str = "") -> list[Lane]:
    """Every lane of every machine: those of the machine `here` first, then the newest release, and of these the lane with
    most releases and series. What was read is remembered in the folder `memory`. A lane that cannot be read, or whose id
    another has, is left out with a warning."""
    found: dict[str, Lane] = {}
    for name in machines_in(results_dir):
        try:
            for lane in _of_machine(results_dir, name, axis, memory):
                other = found.setdefault(lane.id.lower(), lane)
                if other is not lane:
                    left_out(lane.name, lane.environment, f"its id, {lane.id}, is that of another lane of {other.name}")
        except WRONG_DATA as error:
            # Results come from anywhere: whatever they raise must not keep the other machines from being published.
            left_out(name, "all its environments", f"it cannot be read ({type(error).__name__}: {error})")
    return sorted(
        found.values(),
        key=lambda lane: (
            lane.name != here,
            -axis.position(lane.releases[-1]),
            -len(lane.releases),
            *lane.rank,
            lane.id,
        ),
    )


def left_out(machine: str, environment: str, why: str) -> None:
    warn(f"{machine} in {environment} is not published: {why}. `torch-history check` names the lines.")


# --- reading


@dataclass(frozen=True)
class _Head:
    """That a file holds launches of some releases of one version of a benchmark in one environment, the last at `last`;
    `sessions` are those of each release."""

    environment: str
    benchmark: str
    version: str
    last: str
    sessions: dict[str, list[str]]


class _Files:
    """The files of launches of one machine. `stamps` tell whether a file is the one that was read, `heads` what is in it."""

    def __init__(self, folder: Path, remembered: Mapping[str, Any]) -> None:
        self.folder = folder
        self._launches = functools.lru_cache(2 * PART)(lambda name: list(read_file(folder / name)))
        self.stamps: dict[str, list[int]] = {}
        self.heads: dict[str, list[_Head]] = {}
        for path in files_of(folder):
            beside = path.with_name(f"{'-'.join(filter(None, of_file(path)))}{ENVIRONMENTS}")
            self.stamps[path.name] = [*_stamp(path), *_stamp(beside)]
            kept = remembered.get(path.name, {})
            same = kept.get("stamp") == self.stamps[path.name]
            self.heads[path.name] = [_Head(*head) for head in kept["heads"]] if same else _heads(read_file(path))
        every = [head for heads in self.heads.values() for head in heads]
        self.newest = that_count((head.environment, head.benchmark, head.version, head.last) for head in every)
        self._of: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        self._sessions: dict[tuple[str, str], set[str]] = defaultdict(set)
        for name, heads in self.heads.items():
            for head in heads:
                if self.newest[head.environment, head.benchmark] == head.version:
                    for release, sessions in head.sessions.items():
                        names = self._of[head.environment][release]
                        names += [name] if name not in names else []
                        self._sessions[head.environment, release].update(sessions)

    def of_environments(self) -> dict[str, dict[str, list[str]]]:
        """Environment -> release -> the files with launches of it, of the newest version of their benchmark."""
        return {environment: dict(of) for environment, of in self._of.items()}

    def sessions(self, environment: str, tag: str) -> set[str]:
        """That measured a release."""
        return self._sessions.get((environment, tag), set())

    def history(self, environment: str, tags: Collection[str]) -> History:
        """What `verdicts.history` gives of all files, of these releases."""
        names = dict.fromkeys(name for tag in tags for name in self._of[environment][tag])
        return history(
            launch
            for name in names
            for launch in self._launches(name)
            if launch.environment == environment
            and launch.release in tags
            and self.newest[environment, launch.benchmark] == launch.version
        )

    def digest(self, environment: str, tags: Sequence[str], axis: Axis, explained: str) -> str:
        """Of all that decides what these releases have in this environment, and how it is `explained`."""
        releases = [repr(axis.releases[axis.position(tag)]) for tag in tags]
        stamps = [[tag, name, self.stamps[name]] for tag in tags for name in self._of[environment][tag]]
        versions = sorted(item for item in self.newest.items() if item[0][0] == environment)
        return hashlib.sha256(json.dumps([environment, releases, stamps, versions, explained]).encode()).hexdigest()[
            :32
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            name: {"stamp": stamp, "heads": [list(vars(head).values()) for head in self.heads[name]]}
            for name, stamp in self.stamps.items()
        }


def _stamp(path: Path) -> list[int]:
    if not path.exists():
        return [0, 0]
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _heads(launches: Iterable[Launch]) -> list[_Head]:
    apart: dict[tuple[str, str, str], list[Launch]] = defaultdict(list)
    for launch in launches:
        apart[launch.environment, launch.benchmark, launch.version].append(launch)
    return [_Head(*key, max(launch.started_at for launch in of), _sessions_of(of)) for key, of in apart.items()]


def _sessions_of(launches: Iterable[Launch]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for launch in launches:
        found[launch.release].add(launch.session)
    return {release: sorted(sessions) for release, sessions in found.items()}


@functools.cache
def _made_by() -> str:
    """Digest of this package, another version of which makes everything anew."""
    sources = b"".join(path.read_bytes() for path in sorted(Path(__file__).parents[1].rglob("*.py")))
    return hashlib.sha256(sources).hexdigest()


@dataclass(frozen=True)
class _Task:
    """A part to be made in a process of its own: `tags` with the facts of all releases, written to `path`, and compared with
    each other and with the last release `before` them, as `known` and `missed` explain it."""

    files: _Files
    environment: str
    tags: Sequence[str]
    before: Sequence[str]
    path: Path
    facts: Mapping[str, Mapping[str, Any]]
    axis: Axis
    known: Sequence[Known]
    missed: pairs.Missed

    def make(self) -> dict[str, Any]:
        """What is remembered of the part: its series, the words of its answers, what each release changed, and a digest."""
        found = self.files.history(self.environment, {*self.before, *self.tags})
        with on_one_thread():
            of_pairs, changes = pairs.packed(
                pairs.EveryPair(found, self.before, self.tags), self.facts, self.known, self.missed
            )
            own = {series: {tag: of[tag] for tag in of if tag in self.tags} for series, of in found.items()}
            data = _part(History({one: of for one, of in own.items() if of}), self.tags, self.facts, self.axis)
        write_atomically(self.path, _dumped(data))
        write_atomically(self.path.with_suffix(PACKED), _dumped(pack.part(data)))
        write_atomically(self.path.with_suffix(ANSWERS), _dumped(data["answers"]))
        write_atomically(self.path.with_suffix(PAIRS), _dumped(pack.deflated(_dumped(of_pairs))))
        words = {
            question: [(answer["release"], answer["word"]) for answer in answers]
            for question, answers in data["answers"].items()
        }
        return {
            "series": [row["key"] for row in data["series"]],
            "words": words,
            "changes": changes,
            "digest": _digest_of(self.path),
        }


def _of_machine(results_dir: Path, name: str, axis: Axis, memory: Path) -> Iterator[Lane]:
    folder = (results_dir / name).resolve()
    own = memory / hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    own.mkdir(parents=True, exist_ok=True)
    known = _remembered(own / INDEX)
    files = _Files(folder, known.get("files", {}))
    parts: dict[str, Any] = known.get("parts", {})
    proven = evidence(results_dir, name)
    lanes: list[tuple[Lane, list[str]]] = []
    tasks: list[_Task] = []
    for environment, names in sorted(files.of_environments().items()):
        if not (tags := _on_axis(names, axis, folder)):
            continue
        facts = {tag: read_environment(results_dir, name, tag, environment) for tag in tags}
        of_lane = [one for one in proven if one.environment == environment]
        lane = Lane(record_of(results_dir / name), environment, tags, [], [], facts, files, of_lane)
        try:
            missed = lane.unconfirmed
        except WRONG_DATA as error:
            left_out(name, environment, f"it cannot be read ({type(error).__name__}: {error})")
            continue
        keys = []
        for first in range(0, len(tags), PART):
            batch, before = tags[first : first + PART], tags[max(first - 1, 0) : first]
            keys.append(files.digest(environment, [*before, *batch], axis, repr((of_lane, sorted(missed)))))
            path = own / f"{keys[-1]}.json"
            if keys[-1] not in parts or not _is_whole(path, parts[keys[-1]]["digest"]):
                tasks.append(_Task(files, environment, batch, before, path, facts, axis, of_lane, missed))
        lanes.append((lane, keys))
    made = at_once([functools.partial(_made, task) for task in tasks])
    parts.update({task.path.stem: part for task, part in zip(tasks, made, strict=True) if not isinstance(part, str)})
    wrong = {task.environment: part for task, part in zip(tasks, made, strict=True) if isinstance(part, str)}
    for lane, keys in lanes:
        if lane.environment in wrong:
            left_out(name, lane.environment, wrong[lane.environment])
            continue
        changes = {new: change for key in keys for new, change in parts[key]["changes"].items()}
        yield replace(
            lane,
            parts=[Part(own / f"{key}.json", parts[key]["series"], parts[key]["words"]) for key in keys],
            changes=[changes.get(tag) for tag in lane.releases],
        )
    used = {key: parts[key] for lane, keys in lanes if lane.environment not in wrong for key in keys}
    _remember(own, {"made_by": _made_by(), "files": files.to_json(), "parts": used})


def _made(task: _Task) -> dict[str, Any] | str:
    """What is remembered of a part, or why it cannot be read. Results come from anywhere: whatever they raise must not keep
    the other lanes from being published."""
    try:
        return task.make()
    except WRONG_DATA as error:
        return f"it cannot be read ({type(error).__name__}: {error})"


def _brief(change: Mapping[str, Any]) -> dict[str, Any]:
    """What is published of what a release changed."""
    return {key: change[key] for key in ("old", "tally", "changed")}


def _on_axis(names: Iterable[str], axis: Axis, folder: Path) -> list[str]:
    """Those of `names` that are releases, oldest first; a warning says which others launches are named by."""
    others = sorted(tag for tag in names if tag not in axis)
    if others:
        warn(f"{folder}: launches of {', '.join(others)} are skipped: there is no such release on the axis.")
    return sorted((tag for tag in names if tag in axis), key=axis.position)


def _remembered(path: Path) -> dict[str, Any]:
    """What the last publish wrote to `path`; empty where it was damaged, or written by other sources."""
    known: dict[str, Any] = {}
    with contextlib.suppress(FileNotFoundError, ValueError):
        digest, _, kept = read_bytes(path).partition(b"\n")
        known = msgspec.json.decode(kept) if digest == _digest(kept) else {}
    return known if known.get("made_by") == _made_by() else {}


def _remember(folder: Path, known: dict[str, Any]) -> None:
    """Writes the index of `folder`, and removes the parts that it no longer names."""
    kept = msgspec.json.encode(known)
    write_atomically(folder / INDEX, _digest(kept) + b"\n" + kept)
    for path in folder.iterdir():
        if path.stem not in known["parts"] and path.name != INDEX:
            path.unlink()


def _digest(kept: bytes) -> bytes:
    return hashlib.sha256(kept).hexdigest().encode()


def _dumped(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


def _digest_of(path: Path) -> str:
    """Of a part and of what its scripts hold."""
    found = hashlib.sha256()
    for suffix in (path.suffix, *SCRIPTS):
        found.update(path.with_suffix(suffix).read_bytes())
    return found.hexdigest()


def _is_whole(path: Path, digest: str) -> bool:
    """Whether a part that was remembered is still what was written."""
    try:
        return _digest_of(path) == digest
    except FileNotFoundError:
        return False


# --- what the pages are given


NOWHERE = OtherPlaces(())


def newest(lane: Lane, elsewhere: OtherPlaces = NOWHERE) -> compare.Comparison | None:
    """The newest release of a lane against the one before it, held against what was measured `elsewhere`; None where there
    is no other."""
    if len(lane.releases) < 2:
        return None
    old, new = lane.releases[-2:]
    found = compare.compared(
        lane.name,
        lane.environment,
        old,
        new,
        lane.found,
        lane.facts,
        lane.device,
        known=lane.evidence,
        threads=str(lane.machine.get("threads", "")),
    )
    return replace(found, elsewhere=elsewhere.of(found.changes, old, new))


def elsewhere_of(lane: Lane, others: Iterable[Lane]) -> OtherPlaces:
    """Those of `others` that measured the same as `lane`."""
    measured = [Measured(one.machine, one.environment, one.releases, one.decided_for(lane)) for one in others]
    return held_against(lane.machine, lane.environment, measured)


def _part(found: History, tags: Sequence[str], facts: Mapping[str, Any], axis: Axis) -> dict[str, Any]:
    """Some releases of a lane as the pages read them: docs/site.md lists the keys."""
    position = {tag: i for i, tag in enumerate(tags)}
    setting = claims.setting_of(found)
    rounds: dict[tuple[str | int, ...], int] = {}
    reasons: dict[str, int] = {}
    patterns: dict[tuple[tuple[int, int], ...], int] = {}
    rows = []
    for series, releases in found.items():
        known = [
            (position[tag], launch, case.number)
            for tag in sorted(releases, key=position.__getitem__)
            for launch, case in releases[tag]
            if case.number is not None
        ]
        where = [(at, rounds.setdefault(_block(launch), len(rounds))) for at, launch, _ in known]
        plain = [parameter.strip("'") for parameter in series.parameters]
        rows.append(
            {
                "key": pairs.key(series),
                "question": series.question,
                "metric": series.metric,
                "benchmark": series.benchmark,
                "parameters": plain,
                "variant": "".join(plain[:1]),
                "size": " ".join(plain[1:]),
                "unit": series.unit,
                "pattern": patterns.setdefault(tuple(where), len(patterns)),
                "numbers": [number for _, _, number in known],
                "disturbed": [i for i, (_, launch, _) in enumerate(known) if disturbed(launch)],
                "missing": _missing(releases, position, reasons),
            }
        )
    return {
        "releases": [_about(axis.releases[axis.position(tag)], facts[tag]) for tag in tags],
        "rounds": list(rounds),
        "reasons": list(reasons),
        "patterns": list(patterns),
        "series": rows,
        "answers": {
            question: [
                {
                    "release": tag,
                    "word": of[tag].word,
                    "sentence": of[tag].sentence,
                    "advice": claims.CLAIMS[question].advice_on(setting, of[tag]),
                }
                for tag in tags
                if tag in of
            ]
            for question, of in claims.answers(found).items()
        },
        "limits": claims.limits(found, tags),
    }


def _block(launch: Launch) -> tuple[str | int, ...]:
    """The session and the round, and the node of a fleet, which is one for all of a session."""
    node = node_of(launch)
    return (launch.session, launch.round, node) if node else (launch.session, launch.round)


def _missing(
    releases: Mapping[str, Sequence[tuple[Launch, Case]]], position: Mapping[str, int], reasons: dict[str, int]
) -> list[list[int]]:
    """Of each release without a number its position, the place of the reason in `reasons`, and 1 if it failed, 2 if it was
    not measured."""
    missing = []
    for tag in sorted(releases, key=position.__getitem__):
        if all(case.number is None for _, case in releases[tag]):
            case = releases[tag][-1][1]
            reason = reasons.setdefault(case.reason, len(reasons))
            missing.append([position[tag], reason, 1 if case.failed else 2 if case.unmeasured else 0])
    return missing


def _about(release: Release, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "tag": release.tag,
        "date": release.date.isoformat(),
        "estimated": release.date_source == "estimated",
        "yanked": release.yanked,
        "facts": facts,
    }


def lane_data(lane: Lane, axis: Axis, elsewhere: OtherPlaces = NOWHERE) -> dict[str, Any]:
    """What of a lane is about all its releases, held against what was measured `elsewhere`: docs/site.md lists the keys."""
    happened = steps.of_history(lane.found, axis)
    told = compare.told_findings(happened, lane.found, lambda tag, _: lane.facts[tag], lane.evidence, elsewhere)
    sentences = {i: said for each in told for i, said in zip(each.places, each.sentences, strict=True)}
    said = [sentences[i] for i in range(len(happened))]
    keys = sorted({tuple(key) for part in lane.parts for key in part.series})
    series = {key: i for i, key in enumerate(keys)}
    return {
        "schema": SCHEMA,
        "id": lane.id,
        "machine": lane.machine,
        "environment": lane.environment,
        "words": lane.words,
        "parts": [f"{lane.id}.{number}" for number in range(len(lane.parts))],
        "series": list(series),
        "evidence": [_evidence(one) for one in lane.evidence],
        "unconfirmed": [
            [[part.strip("'") for part in pairs.key(series)], old, new] for series, old, new in lane.unconfirmed
        ],
        "changes": [
            change and {**_brief(change), "changed": [series[tuple(key)] for key in change["changed"]]}
            for change in lane.changes
        ],
        "steps": [
            {
                "series": series[tuple(pairs.key(step.series))],
                "kind": step.kind.value,
                "old": step.old,
                "new": step.new,
                "until": step.until,
                "verdict": step.verdict.words,
                "ratio": step.ratio,
                "sentence": sentence,
            }
            for step, sentence in zip(happened, said, strict=True)
        ],
        "regressions": [
            {"steps": each.places, "title": each.brief, "sentence": each.evidence, "words": each.finding.words}
            for each in told
            if each.finding.verdict.kind == "worse"
        ],
        "claims": claims.as_data(lane.words_of, lane.found, lane.answers, list(zip(happened, said, strict=True))),
    }


def _evidence(one: Known) -> dict[str, Any]:
    """Of a cause as pages read it, its numbers as they are shown."""
    return {
        **one._asdict(),
        "ratio": _shown(one.ratio),
        "reproduced": one.reproduced and [*map(_shown, one.reproduced)],
    }


def _shown(number: float) -> float:
    """With five digits."""
    return float(f"{number:.5g}")


def costs(data: Mapping[str, Any], device: str) -> list[list[str]]:
    """Of what `lane_data` gives: the releases of each step that stayed and costs memory of a GPU that was counted without
    one, or on a CPU what a process takes once. The newest first, with the words of the first finding of each pair."""
    of_process = {name for told in UNMEASURED.values() for name in told}
    first = [(data["steps"][found["steps"][0]], found["words"]) for found in data["regressions"]]
    found: list[list[str]] = []
    told: set[tuple[str, str]] = set()
    for step, words in first:
        name, pair = data["series"][step["series"]][0], (step["old"], step["new"])
        is_cost = metric_of(name).shown_unit == "bytes" if device == "recorder" else metric_of(name).name in of_process
        if is_cost and step["kind"] == steps.Kind.STEP.value:
            found.append([*pair, "" if pair in told else words])
            told.add(pair)
    return found
