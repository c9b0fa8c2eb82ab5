"""What do CPUs, counts of CUDA and GPUs say of a claim? A cell for each basis; none stands in the place of another."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..releases.axis import Axis
from ..store.certificates import Certificate
from ..store.machines import processor_of
from ..system.files import is_name
from .claims import CLAIMS, DECIDED, NEEDS_TIMES, UNMEASURED, Answer, Answers, Setting, Words, in_turn, setting_of
from .series import History

BASES = {"cpu": "CPU measured", "recorder": "CUDA recorded", "cuda": "CUDA measured"}
"""Device of a lane -> the name of its column, in the order of the columns."""


@dataclass(frozen=True)
class Answered:
    """What one lane says of the claims: `answers`, question -> release, oldest first, and their `words`; `newest`, the
    newest release that was measured, else the newest of all, with its answer."""

    subject: str
    machine: str
    environment: str
    setting: Setting
    card: str
    words: Words
    newest: Mapping[str, tuple[str, Answer]]
    answers: Answers


def answered_by(record: Mapping[str, Any], environment: str, found: History, answers: Answers) -> Answered:
    """What a lane says: `record` is its machine's, and `answers` what `claims.answers` says of `found`."""
    asked = {series.question for series in found}
    every = {question: of for question, of in answers.items() if question in asked and of}
    theirs = {question: [(tag, answer.word) for tag, answer in of.items()] for question, of in every.items()}
    newest = {}
    for question, of in theirs.items():
        release = next((tag for tag, word in reversed(of) if word != UNMEASURED), of[-1][0])
        newest[question] = (release, answers[question][release])
    machine, card = str(record["machine"]), str(record.get("card", ""))
    return Answered(_subject(record), machine, environment, setting_of(found), card, theirs, newest, answers)


def _subject(record: Mapping[str, Any]) -> str:
    """`AMD EPYC family 26, model 2`, `Tesla T4`; the machine's name where its record says nothing that can be told."""
    if record.get("device") == "recorder":
        said = str(record.get("cpu", "")).partition(" pretended ")[0]
        return said if said and is_name(said) else str(record["machine"])
    return processor_of(record) or str(record["machine"])


@dataclass(frozen=True)
class Row:
    """One claim on all bases, by device: `cells` in sentences, `bands`, release -> word, and what to do on either."""

    question: str
    words: str
    cells: Mapping[str, str]
    bands: Mapping[str, Mapping[str, str]]
    cpu: str
    gpu: str
    brief: tuple[str, str]
    advised: Mapping[str, tuple[str, str]]

    def as_data(self) -> dict[str, Any]:
        """As the site reads it; docs/site.md lists the keys."""
        told = {name: [of[device] for device in BASES] for name, of in (("cells", self.cells), ("bands", self.bands))}
        return {"question": self.question, "words": self.words, **told, "cpu": self.cpu, "gpu": self.gpu}


def rows(lanes: Iterable[Answered], axis: Axis, certificates: Sequence[Certificate] = ()) -> list[Row]:
    """A row for each claim that was asked; that lane of a device decides in which the newest release was decided."""
    lanes, tags = list(lanes), [release.tag for release in axis.releases]
    nothing = {"cpu": "Not measured.", "recorder": "Not counted.", "cuda": "Not measured."}
    if not any(lane.setting.device == "cuda" for lane in lanes):
        nothing["cuda"] = "No GPU measured yet."
    untimed = "Not known: only times can decide this claim, and none was measured on a GPU."
    found = []
    for question, claim in CLAIMS.items():
        of_question = (lane for lane in lanes if question in lane.words)
        asked = sorted(of_question, key=lambda lane: _place(lane, question, axis))
        if not asked:
            continue
        of = {device: [lane for lane in asked if lane.setting.device == device] for device in BASES}
        histories = {device: _histories(question, of[device]) for device in BASES}
        bands = {device: _merged(words for _, words in each) for device, each in histories.items()}
        cells = {
            device: _cell(question, device, of[device], _told(each, axis), certificates) or nothing[device]
            for device, each in histories.items()
        }
        unknown = cells["cpu"], untimed if claim.needs_times else "Not measured."
        newest, brief = (_advice(question, of, unknown, brief=brief) for brief in (False, True))
        advised = {tag: _advice(question, of, _not_on(tag, newest, unknown), tag) for tag in tags}
        found.append(Row(question, claim.words, cells, bands, *newest, brief, advised))
    return found


def _not_on(tag: str, newest: tuple[str, str], unknown: tuple[str, str]) -> tuple[str, str]:
    """What to do on a release that was not measured on a device: what the `newest` says, if one was."""
    else_of = f"Not measured on {tag}. Where it was: "
    cpu, gpu = (said if said == never else else_of + said for said, never in zip(newest, unknown, strict=True))
    return cpu, gpu


def _place(lane: Answered, question: str, axis: Axis) -> tuple[object, ...]:
    """Lanes are in this order: the newest release that decides first, then the lane in which most do."""
    told = [axis.position(tag) for tag, word in lane.words[question] if word in DECIDED]
    return -max(told, default=-1), -len(told), lane.machine, lane.environment


def _advice(
    question: str, of: Mapping[str, Sequence[Answered]], unknown: tuple[str, str], tag: str = "", brief: bool = False
) -> tuple[str, str]:
    """What to do on a CPU and on a GPU, by the first lane of each that has an answer, else `unknown`. What a GPU
    measured goes before counts, unless both say the same and counts know of another release."""
    told: dict[str, tuple[str, str, str]] = {}
    for device, lanes in of.items():
        for lane in lanes:
            answer = lane.answers[question].get(tag) if tag else lane.newest[question][1]
            if device not in told and answer and answer.word != UNMEASURED:
                release = tag or lane.newest[question][0]
                told[device] = answer.word, release, CLAIMS[question].advice_on(lane.setting, release, answer, brief)
    (*_, cpu), (same, newer, counted), (word, release, gpu) = (told.get(device, ("", "", "")) for device in BASES)
    if word in DECIDED and word == same and release != newer:
        return cpu or unknown[0], f"{counted} A GPU measured the same on {release}."
    return cpu or unknown[0], (gpu if word in DECIDED else counted or gpu) or unknown[1]


def _cell(
    question: str, device: str, lanes: Sequence[Answered], said: list[str], certificates: Sequence[Certificate]
) -> str:
    """What one basis says of one claim, in sentences; empty where it says nothing."""
    if device == "recorder" and CLAIMS[question].needs_times:
        beside = (answer.sentence for answer in (lane.newest[question][1] for lane in lanes) if answer.beside)
        said = [next(beside, NEEDS_TIMES)]
    if said and device == "recorder":
        counted = {(lane.card, tag) for lane in lanes for tag, _ in lane.words[question]}
        said += [certified(each, question) for each in certificates if (each.card, each.release) in counted]
    return " ".join(filter(None, said))


def _histories(question: str, lanes: Sequence[Answered]) -> list[tuple[Answered, dict[str, str]]]:
    """The first lane of each machine with the answers of all its lanes; one that contradicts them is by itself."""
    groups: list[tuple[Answered, dict[str, str]]] = []
    for lane in lanes:
        words = dict(lane.words[question])
        for i, (first, known) in enumerate(groups):
            shared = (tag for tag in words.keys() & known.keys() if {words[tag], known[tag]} <= {*DECIDED})
            if first.machine == lane.machine and all(words[tag] == known[tag] for tag in shared):
                groups[i] = first, _merged((known, words))
                break
        else:
            groups.append((lane, words))
    return [(lane, words) for lane, words in groups if {*words.values()} != {UNMEASURED}]


def _merged(histories: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Of each release the first answer that was measured."""
    merged: dict[str, str] = {}
    for words in histories:
        merged |= {tag: word for tag, word in words.items() if merged.get(tag, UNMEASURED) == UNMEASURED}
    return merged


def _told(histories: Sequence[tuple[Answered, Mapping[str, str]]], axis: Axis) -> list[str]:
    """Each as `Holds from v1.8.0 to v2.15.0 (Tesla T4).`; with the name of the lane where its machine has several."""
    machines = [lane.machine for lane, _ in histories]
    said = []
    for lane, words in histories:
        of_lane = f" in {lane.environment}" if machines.count(lane.machine) > 1 else ""
        history = in_turn(sorted(words.items(), key=lambda item: axis.position(item[0])), lane.setting.unmeasured)
        said.append(f"{history} ({lane.subject}{of_lane}).")
    return said


def certified(certificate: Certificate, question: str) -> str:
    """What a certificate shows of the cases that a claim depends on, whatever their size; empty where it has none."""
    asked = tuple(f"{question} {variant} " for variant in CLAIMS[question].variants)
    equal = sum(case.startswith(asked) for case in certificate.agreed)
    different = [what for case, what in certificate.different.items() if case.startswith(asked)]
    if not equal and not different:
        return ""
    every = equal + len(different)
    cases = "the one case that was" if every == equal == 1 else f"{equal} of {every} cases that were"
    said = f"Matches a real {certificate.here.gpu} in {cases} checked ({certificate.release})"
    what = ", ".join(sorted({*itertools.chain(*different)})).replace("_", " ")
    return f"{said}; others differ in {what}." if different else f"{said}."


def on_a_gpu(lanes: Iterable[tuple[str, Sequence[str]]], axis: Axis) -> str:
    """A sentence that says what of all lanes, each a device and its releases, was measured on a GPU."""
    measured = {tag for device, tags in lanes if device == "cuda" for tag in tags}
    if not measured:
        return "Nothing here was measured on a GPU."
    missing = len(axis.releases) - len(measured)
    tags = ", ".join(sorted(measured, key=axis.position))
    return f"Releases measured on a GPU: {tags}. {missing} other releases were not measured on a GPU."
