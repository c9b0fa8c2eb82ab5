"""What do CPUs, counts of CUDA and GPUs each say of a claim? A row per claim, with a cell for each basis side by side.

A basis is a device: what was measured on a CPU, what the recorder counted, what was measured on a GPU. None stands in the
place of another, and advice is given for a CPU and for a GPU apart. What a certificate has shown equal to a GPU's says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..releases.axis import Axis
from ..store.certificates import Certificate
from ..store.machines import processor_of
from ..system.files import is_name
from .claims import (
    CLAIMS,
    DECIDED,
    NEEDS_TIMES,
    UNKNOWN,
    UNMEASURED,
    Answer,
    Setting,
    in_turn,
    setting_of,
)
from .series import History

BASES = {"cpu": "CPU measured", "recorder": "CUDA recorded", "cuda": "CUDA measured"}
"""Device of a lane -> the name of its column, in the order of the columns."""

NO_GPU = "No GPU measured yet."

NO_TIMES_ON_A_GPU = "Not known: only times can decide this claim, and none was measured on a GPU."


@dataclass(frozen=True)
class Answered:
    """What one lane says of the claims. `subject` is its processor or GPU in words, `card` what the recorder pretended.
    `words` has the answers of all releases, question -> (release, word), oldest first; `newest` the newest release that
    was measured, else the newest of all, with its answer; `sizes` those of the variants that the claim depends on."""

    subject: str
    machine: str
    environment: str
    setting: Setting
    card: str
    words: Mapping[str, Sequence[tuple[str, str]]]
    newest: Mapping[str, tuple[str, Answer]]
    sizes: Mapping[str, Sequence[str]]


def answered_by(
    record: Mapping[str, Any],
    environment: str,
    words: Mapping[str, Sequence[tuple[str, str]]],
    found: History,
    answers: Mapping[str, Mapping[str, Answer]],
) -> Answered:
    """What a lane says: `record` is its machine's, `words` as in Answered, `found` its newest releases, and `answers` what
    `claims.answers` says of these."""
    asked = {series.question for series in found}
    theirs = {question: of for question, of in words.items() if question in asked and of}
    newest = {}
    for question, of in theirs.items():
        release = next(
            (tag for tag, word in reversed(of) if word != UNMEASURED and tag in answers[question]), of[-1][0]
        )
        newest[question] = (release, answers[question][release])
    return Answered(
        _subject(record),
        str(record["machine"]),
        environment,
        setting_of(found),
        str(record.get("card", "")),
        theirs,
        newest,
        {question: _sizes(found, question) for question in theirs},
    )


def _subject(record: Mapping[str, Any]) -> str:
    """`AMD EPYC family 26, model 2`, `Tesla T4`; the machine's name where its record says nothing that can be told."""
    if record.get("device") == "recorder":
        said = str(record.get("cpu", "")).partition(" pretended ")[0]
        return said if said and is_name(said) else str(record["machine"])
    return processor_of(record) or str(record["machine"])


def _sizes(found: History, question: str) -> list[str]:
    """The sizes in which the variants have a number that the claim of a question depends on."""
    variants = CLAIMS[question].depends_on[1]
    sizes = {
        series.parameters[1].strip("'")
        for series, of in found.items()
        if series.question == question
        and len(series.parameters) == 2
        and series.parameters[0].strip("'") in variants
        and any(case.number is not None for pairs in of.values() for _, case in pairs)
    }
    return sorted(sizes)


@dataclass(frozen=True)
class Cell:
    """What one basis says of one claim: `words` in sentences, empty where it says nothing; `by` is the lane whose newest
    answer decides, None where no lane decides."""

    words: str = ""
    by: Answered | None = None


@dataclass(frozen=True)
class Row:
    """One claim on all bases: `cells` by device in the order of BASES, and what to do on a `cpu` and on a `gpu`."""

    question: str
    words: str
    cells: Mapping[str, Cell]
    cpu: str
    gpu: str

    def as_data(self) -> dict[str, Any]:
        """As the site reads it; docs/site.md lists the keys."""
        return {
            "question": self.question,
            "words": self.words,
            "cells": [self.cells[device].words for device in BASES],
            "cpu": self.cpu,
            "gpu": self.gpu,
        }


def rows(lanes: Iterable[Answered], axis: Axis, certificates: Sequence[Certificate] = ()) -> list[Row]:
    """A row for each claim that any lane was asked about."""
    lanes = list(lanes)
    devices = {lane.setting.device for lane in lanes}
    nothing = {
        "cpu": "Not measured.",
        "recorder": "Not counted.",
        "cuda": "Not measured." if "cuda" in devices else NO_GPU,
    }
    found = []
    for question, claim in CLAIMS.items():
        asked = sorted((lane for lane in lanes if question in lane.words), key=_best_first(question, axis))
        if not asked:
            continue
        cells = {}
        for device in BASES:
            told = _cell(
                question, [lane for lane in asked if lane.setting.device == device], device, axis, certificates
            )
            cells[device] = told if told.words else Cell(nothing[device])
        cpu = _advice(question, cells["cpu"]) or cells["cpu"].words
        found.append(Row(question, claim.words, cells, cpu, _advice_on_a_gpu(question, cells)))
    return found


def _best_first(question: str, axis: Axis) -> Callable[[Answered], tuple[object, ...]]:
    """The order of lanes: the newest release that decides first, then the lane in which most do."""

    def place(lane: Answered) -> tuple[object, ...]:
        told = [axis.position(tag) for tag, word in lane.words[question] if word in DECIDED]
        return -max(told, default=-1), -len(told), lane.machine, lane.environment

    return place


# --- a cell


def _cell(
    question: str, lanes: Sequence[Answered], device: str, axis: Axis, certificates: Sequence[Certificate]
) -> Cell:
    claim = CLAIMS[question]
    if device == "recorder" and claim.needs_times:
        told = next((answer for answer in (lane.newest[question][1] for lane in lanes) if answer.beside), None)
        return Cell(_with_certificates(question, told.sentence, lanes, certificates) if told else NEEDS_TIMES)
    groups = [group for group in _groups(question, lanes, axis) if group.told]
    if not groups:
        return Cell()
    said = " ".join(_in_words(question, group, groups) for group in groups)
    first = groups[0].lanes[0]
    decides = first if first.newest[question][1].word in (*DECIDED, UNKNOWN) else None
    return Cell(_with_certificates(question, said, lanes, certificates) if device == "recorder" else said, decides)


@dataclass
class _Group:
    """Lanes that contradict each other on no release, the best first, and their answers in one history."""

    lanes: list[Answered]
    history: list[tuple[str, str]]

    @property
    def told(self) -> bool:
        return any(word != UNMEASURED for _, word in self.history)


def _groups(question: str, lanes: Iterable[Answered], axis: Axis) -> list[_Group]:
    """Lanes of one machine are one history where they do not contradict each other; those of others join it where they
    decided some release alike."""
    groups: list[_Group] = []
    for lane in lanes:
        words = dict(lane.words[question])
        for group in groups:
            known = dict(group.history)
            shared = [tag for tag in words if words[tag] in DECIDED and known.get(tag) in DECIDED]
            alike = all(words[tag] == known[tag] for tag in shared)
            if alike and (shared or any(other.machine == lane.machine for other in group.lanes)):
                joined = {**words, **{tag: word for tag, word in known.items() if word != UNMEASURED}}
                group.lanes.append(lane)
                group.history = sorted(joined.items(), key=lambda item: axis.position(item[0]))
                break
        else:
            groups.append(_Group([lane], list(lane.words[question])))
    return groups


def _in_words(question: str, group: _Group, groups: Sequence[_Group]) -> str:
    """`Holds from v1.8.0 to v2.15.0 (Tesla T4; NVIDIA H100 80GB HBM3 from v2.1.0 to v2.15.0).`"""
    machines = dict.fromkeys(lane.machine for lane in group.lanes)
    elsewhere = {lane.machine for other in groups if other is not group for lane in other.lanes}
    who: list[str] = []
    for machine in machines:
        lanes = [lane for lane in group.lanes if lane.machine == machine]
        within = f" in {' and '.join(lane.environment for lane in lanes)}" if machine in elsewhere else ""
        said = {tag for lane in lanes for tag, word in lane.words[question] if word != UNMEASURED}
        told = [tag for tag, _ in group.history if tag in said]
        if told:
            where = f" on {told[0]}" if len(told) == 1 else f" from {told[0]} to {told[-1]}"
            who.append(f"{lanes[0].subject}{within}{where if who else ''}")
    history = in_turn(group.history, group.lanes[0].setting.unmeasured)
    return f"{history.removesuffix('.')} ({'; '.join(who)})."


def _with_certificates(question: str, said: str, lanes: Sequence[Answered], certificates: Sequence[Certificate]) -> str:
    """`said` of what was counted, with what certificates of the same cards show of its cases."""
    told = [said]
    for certificate in certificates:
        sizes = next((lane.sizes[question] for lane in lanes if _is_of(certificate, lane, question)), [])
        told += certified(certificate, question, sizes)
    return " ".join(told)


def _is_of(certificate: Certificate, lane: Answered, question: str) -> bool:
    return lane.card == certificate.card and any(tag == certificate.release for tag, _ in lane.words[question])


def certified(certificate: Certificate, question: str, sizes: Sequence[str]) -> list[str]:
    """What a certificate shows of the cases that a claim depends on, in those of `sizes` that it has: equal where all of
    its variants are, and different where one is."""
    cases = {size: {f"{question} {variant} {size}" for variant in CLAIMS[question].depends_on[1]} for size in sizes}
    equal = [size for size, of in cases.items() if of <= certificate.equal]
    different = [size for size, of in cases.items() if of & certificate.different.keys()]
    what = {each for of in cases.values() for case in of for each in certificate.different.get(case, ())}
    differ = f": {' and '.join(sorted(what)).replace('_', ' ')} differ"
    return [
        f"{_in_sizes(of, sizes, word)} {certificate.words}{more}."
        for word, of, more in (("equal to", equal, ""), ("not equal to", different, differ))
        if of
    ]


def _in_sizes(some: Sequence[str], every: Sequence[str], word: str) -> str:
    """`Equal to`; where it is so of some sizes alone `In size small equal to`."""
    if len(some) == len(every):
        return word.capitalize()
    return f"In size {some[0]} {word}" if len(some) == 1 else f"In {len(some)} of {len(every)} sizes {word}"


# --- advice


def _advice(question: str, cell: Cell) -> str:
    """What to do by what one basis says; empty where it says nothing."""
    if cell.by is None:
        return ""
    return CLAIMS[question].advice_on(cell.by.setting, cell.by.newest[question][1])


def _advice_on_a_gpu(question: str, cells: Mapping[str, Cell]) -> str:
    """By what was measured on a GPU where that decides, else by counts, which the sentence says."""
    measured, counted = (cells[device].by for device in ("cuda", "recorder"))
    if measured and measured.newest[question][1].word in DECIDED:
        return f"{_advice(question, cells['cuda'])}{_beside(question, measured, counted)}"
    if counted:
        return _advice(question, cells["recorder"])
    if measured:
        return _advice(question, cells["cuda"])
    return NO_TIMES_ON_A_GPU if CLAIMS[question].needs_times else "Not measured."


def _beside(question: str, measured: Answered, counted: Answered | None) -> str:
    """What counts say of a release that was not measured, or where they say something else."""
    if counted is None:
        return ""
    (of_gpu, gpu), (of_counts, counts) = measured.newest[question], counted.newest[question]
    if of_gpu == of_counts and gpu.word == counts.word:
        return ""
    return f" On {of_counts}, counted, no kernel ran: {counts.word}."


# --- what there is


def on_a_gpu(lanes: Iterable[tuple[str, Sequence[str]]], axis: Axis) -> str:
    """A sentence that says what of all lanes, each a device and its releases, was measured on a GPU."""
    lanes = list(lanes)
    measured = {tag for device, tags in lanes if device == "cuda" for tag in tags}
    counted = {tag for device, tags in lanes if device == "recorder" for tag in tags}
    if not measured and counted:
        return (
            f"Nothing here was measured on a GPU yet. What {len(counted)} releases ask of a GPU was recorded; no kernel "
            "ran for those numbers."
        )
    if not measured:
        return "Nothing here was measured on a GPU."
    missing = len(axis.releases) - len(measured)
    tags = ", ".join(sorted(measured, key=axis.position))
    return (
        f"Releases measured on a GPU: {tags}. The axis has {missing} more." if missing else "On a GPU: every release."
    )
