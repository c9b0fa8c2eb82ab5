"""Does a claim hold on a release? Each question answered from what one lane measured, with the numbers in a sentence.

A claim of bytes or counts is exact. A claim of time asks for a factor that noise seldom makes, `CLEARLY`, between two
variants of the same session; sizes at which both take as long, up to `LEVEL`, refute it, and those in between do neither.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..releases.axis import Axis
from ..store.launches import Launch
from .compare import escape
from .steps import Kind, Step, of_history
from .verdicts import History, history, human

CLEARLY = 1.2
"""A factor between two variants of one session: both ran within minutes on one machine, which seldom wanders by a fifth."""

LEVEL = 1.05
"""Up to this factor two variants take as long as each other: launches of one release differ by that much. The gap between
the two borders is there so that an answer does not change with the noise of a size that lies on one."""

STALL = 5.0
"""The slowest later call in medians from which a sequence has stalled; `measure/sequence.py` counts with the same number."""

CAUSES = 3
"""Sentences at most that tell why an answer changed."""

NO_CAUSE = (
    "No step was found in the numbers that decide it. Either they are close to the limit between two answers, or no session "
    "measured both releases."
)

HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "inconclusive"


@dataclass(frozen=True)
class Answer:
    """`word` is HOLDS, PARTLY, FAILS or UNKNOWN; `sentence` gives the numbers it rests on."""

    word: str
    sentence: str


class Numbers:
    """What one release gave for one question, by metric, variant and size. `values` are the numbers of its launches by
    their session."""

    def __init__(self, values: Mapping[tuple[str, str, str], Mapping[str, Sequence[float]]]) -> None:
        self._values = values

    def __call__(self, metric: str, variant: str, size: str) -> float | None:
        """The median over all launches, None without any."""
        numbers = [number for of in self._values.get((metric, variant, size), {}).values() for number in of]
        return statistics.median(numbers) if numbers else None

    def ratio(self, metric: str, size: str, of: str, to: str) -> float | None:
        """How many times as much variant `of` takes as `to`: the median over the sessions that measured both, since
        sessions differ by more than variants do. None where none did, or where `to` takes nothing."""
        above, below = (self._values.get((metric, variant, size), {}) for variant in (of, to))
        medians = [
            (statistics.median(above[session]), statistics.median(below[session])) for session in above.keys() & below
        ]
        ratios = [over / under for over, under in medians if under]
        return statistics.median(ratios) if ratios else None

    def sizes(self, metric: str, variant: str) -> list[str]:
        return [size for name, of, size in self._values if (name, of) == (metric, variant)]


def _missing(what: str) -> Answer:
    return Answer(UNKNOWN, f"No number was measured for {what}.")


def intersection(numbers: Numbers) -> Answer:
    """Scripting keeps intermediates out of memory: the scripted peak is the result alone, a quarter of eager's."""
    sizes = numbers.sizes("peak_memory", "scripted")
    if not sizes:
        return _missing("the scripted variant")
    size = sizes[0]
    scripted, eager = numbers("peak_memory", "scripted", size), numbers("peak_memory", "eager", size)
    if scripted is None or eager is None:
        return _missing("eager or scripted")
    peaks = f"The scripted variant peaks at {human(scripted, 'bytes')}, the eager one at {human(eager, 'bytes')}"
    said = f"{peaks}. The result alone takes {human(eager / 4, 'bytes')}."
    return Answer(HOLDS if 4 * scripted <= eager else FAILS, said)


def saved_tensors(numbers: Numbers) -> Answer:
    """Disabling saved-tensor hooks saves memory or keeps results from having gradients."""
    sizes = numbers.sizes("peak_memory", "hooks_disabled")
    if not sizes:
        return _missing("torch.autograd.graph.disable_saved_tensors_hooks")
    differing = []
    for size in sizes:
        for metric in ("peak_memory", "retained", "gradients"):
            plain, disabled = (numbers(metric, variant, size) for variant in ("plain", "hooks_disabled"))
            if plain != disabled:
                differing.append(f"{metric.replace('_', ' ')} of {size} is {plain} and {disabled}")
    if differing:
        return Answer(HOLDS, f"With hooks and without them, {'; '.join(differing)}.")
    times = [numbers.ratio("time", size, "hooks_disabled", "plain") for size in sizes]
    known = [ratio for ratio in times if ratio is not None]
    said = (
        f"Peak memory, retained bytes and gradients are exactly those of the plain variant in all {len(sizes)} scripts."
    )
    ratio = f" The time is {min(known):.2f} to {max(known):.2f} times that of the plain variant." if known else ""
    return Answer(FAILS, f"{said}{ratio}")


def warm_up(numbers: Numbers) -> Answer:
    """Inference as TorchScript stalls where eager does not."""
    worst: dict[str, float] = {}
    for variant in ("scripted", "traced", "eager"):
        found = [numbers("worst_over_median", variant, size) for size in numbers.sizes("worst_over_median", variant)]
        known = [ratio for ratio in found if ratio is not None]
        if not known:
            return _missing(f"the {variant} variant")
        worst[variant] = max(known)
    said = ", ".join(f"{variant} {ratio:.1f}" for variant, ratio in worst.items())
    script = max(worst["scripted"], worst["traced"])
    stalled = script > 2 * max(STALL, worst["eager"])
    word = HOLDS if stalled else FAILS if script <= STALL else UNKNOWN
    return Answer(word, f"Slowest later call, in multiples of the median call: {said}.")


def batching(numbers: Numbers) -> Answer:
    """A tensor per row joined by vstack is slow; one flat buffer is not."""
    ratios = {
        size: numbers.ratio("time", size, "vstack_rows", "flat_buffer") for size in numbers.sizes("time", "vstack_rows")
    }
    return _by_time(ratios, "One tensor per row", "one flat buffer")


def _selection_by_waits(numbers: Numbers) -> Answer:
    """What is left of the claim where nothing ran, so that there is no time: how often the host waits for the GPU."""
    waits = {
        size: (numbers("host_waits", "mask", size), numbers("host_waits", "index_reused", size))
        for size in numbers.sizes("host_waits", "mask")
    }
    known = {size: (mask, index) for size, (mask, index) in waits.items() if mask is not None and index is not None}
    repeated = {size: of for size, of in known.items() if not size.endswith(" x 1")}
    if not repeated:
        return _missing("selecting by a mask")
    least, most = min(repeated.values()), max(repeated.values())
    said = (
        f"By waits of the host alone, for no kernel ran and there is no time: a mask that is used again waits "
        f"{least[0]:g} to {most[0]:g} times, an index that is made once {least[1]:g} to {most[1]:g}."
    )
    fewer = [index < mask for mask, index in repeated.values()]
    return Answer(HOLDS if all(fewer) else PARTLY if any(fewer) else FAILS, said)


def selection(numbers: Numbers) -> Answer:
    """Turning the mask into an index once and reusing that saves time; decided at 100 uses, of every share and layout."""
    ratios = {size: numbers.ratio("time", size, "mask", "index_reused") for size in numbers.sizes("time", "mask")}
    if not ratios and numbers.sizes("host_waits", "mask"):
        return _selection_by_waits(numbers)
    return _by_time(
        {size: ratio for size, ratio in ratios.items() if size.endswith(" x 100")},
        "A mask",
        "an index that is reused",
        {size: ratio for size, ratio in ratios.items() if not size.endswith(" x 100")},
    )


def _by_time(
    deciding: dict[str, float | None], slow: str, quick: str, others: dict[str, float | None] | None = None
) -> Answer:
    """Whether `slow` takes longer than `quick` in the sizes that decide; the sentence names the extremes of them and, after
    them, of the other sizes."""
    known = {size: ratio for size, ratio in deciding.items() if ratio is not None}
    if not known:
        return _missing("this comparison")
    shows = any(ratio > CLEARLY for ratio in known.values())
    refutes = any(ratio <= LEVEL for ratio in known.values())
    word = {(True, False): HOLDS, (True, True): PARTLY, (False, True): FAILS, (False, False): UNKNOWN}[shows, refutes]
    said = f"{slow} takes {_extremes(known)} times as long as {quick}."
    rest = {size: ratio for size, ratio in (others or {}).items() if ratio is not None}
    return Answer(word, f"{said} In other sizes it takes {_extremes(rest)} times as long." if rest else said)


def _extremes(ratios: Mapping[str, float]) -> str:
    """`1.3 (rows 50 %) to 13.1 (vector 1 %)`: the least and the largest with their sizes."""
    least, most = (of(ratios, key=ratios.__getitem__) for of in (min, max))
    return " to ".join(f"{ratios[size]:.1f} ({size})" for size in dict.fromkeys((least, most)))


@dataclass(frozen=True)
class Claim:
    """A claim in `words`, what decides it and of which metrics of which variants that depends, what to do for each word of
    the newest answer, and what shows it: a metric of some variants, in the shortest size with numbers that holds `size`."""

    words: str
    decide: Callable[[Numbers], Answer]
    depends_on: tuple[tuple[str, ...], tuple[str, ...]]
    advice: Mapping[str, str]
    metric: str
    variants: tuple[str, ...]
    size: str = ""


CLAIMS: dict[str, Claim] = {
    "intersection": Claim(
        "Scripting keeps intermediates out of memory",
        intersection,
        (("peak_memory",), ("eager", "scripted")),
        {
            HOLDS: "Script it where memory is short. Check again after an upgrade, because the fuser in the wheel does it.",
            FAILS: "Do not script it to save memory: its peak equals that of eager. Use in-place operations, or compile it.",
        },
        "peak_memory",
        ("eager", "scripted", "compiled", "in_place"),
    ),
    "saved_tensors": Claim(
        "Disabling saved-tensor hooks saves memory",
        saved_tensors,
        (("peak_memory", "retained", "gradients"), ("plain", "hooks_disabled")),
        {
            HOLDS: "It changes what is saved. Check which script and which metric differ before you rely on it.",
            FAILS: "Do not use it to save memory: it forbids hooks, but saves nothing. If no gradient is needed, use "
            "no_grad or inference_mode. Otherwise use a checkpoint or save_on_cpu.",
        },
        "peak_memory",
        ("plain", "hooks_disabled", "no_grad", "checkpoint"),
        "loop",
    ),
    "warm_up": Claim(
        "TorchScript stalls",
        warm_up,
        (("worst_over_median", "worst_call", "second_call"), ("scripted", "traced", "eager")),
        {
            HOLDS: "Warm up every shape before serving, or serve eagerly: eager has no such calls.",
            FAILS: "Stalls are no longer a reason to avoid TorchScript. Warm up with two calls.",
        },
        "worst_over_median",
        ("eager", "scripted", "traced", "frozen"),
        "changing shapes",
    ),
    "batching": Claim(
        "A tensor per row is slow",
        batching,
        (("time",), ("vstack_rows", "flat_buffer")),
        {
            HOLDS: "Gather the rows in NumPy and make one tensor.",
            PARTLY: "Gather the rows in NumPy and make one tensor if rows are many and short.",
            FAILS: "Write what reads best: one tensor per row costs no more.",
        },
        "time",
        ("vstack_rows", "stack_rows", "numpy_stack", "flat_buffer"),
        "4,096 x 64",
    ),
    "selection": Claim(
        "A reused index is faster than a mask",
        selection,
        (("time",), ("mask", "index_reused")),
        {
            HOLDS: "If a mask is used more than once, convert it to an index first.",
            PARTLY: "If a mask is used more than once and selects little, convert it to an index first.",
            FAILS: "Select by the mask: a reused index is no faster.",
        },
        "time",
        ("mask", "masked_select", "nonzero_each_time", "index_reused"),
        "vector 1 % x 100",
    ),
}
"""Question -> its claim."""

UNDECIDED = "The results here are inconclusive. {sentence} Measure it on your own machine."


def answers(found: History) -> dict[str, dict[str, Answer]]:
    """Question -> release -> its answer, for what one environment measured. A release without a number of a question has
    an answer as well: that it is inconclusive there."""
    values: dict[str, dict[str, dict[tuple[str, str, str], dict[str, list[float]]]]]
    values = defaultdict(lambda: defaultdict(dict))
    measured = list(dict.fromkeys(release for of in found.values() for release in of))
    for series, releases in found.items():
        if len(series.parameters) != 2:
            continue
        variant, size = (parameter.strip("'") for parameter in series.parameters)
        for release, pairs in releases.items():
            numbers: dict[str, list[float]] = defaultdict(list)
            for launch, case in pairs:
                if case.number is not None:
                    numbers[launch.session].append(case.number)
            if numbers:
                values[series.question][release][series.metric, variant, size] = numbers
    return {
        question: {release: claim.decide(Numbers(values[question][release])) for release in measured}
        for question, claim in CLAIMS.items()
    }


def in_turn(answered: Sequence[tuple[str, str]]) -> str:
    """The answers of all releases in one sentence: `Holds up to v2.0.1, does not hold since v2.1.2.`"""
    turns = [list(group) for _, group in itertools.groupby(answered, key=lambda item: item[1])]
    if not turns:
        return "No release has an answer."
    if len(turns) == 1:
        first, last = turns[0][0][0], turns[0][-1][0]
        where = f"from {first} to {last}" if first != last else f"on {first}"
        return f"{turns[0][0][1].capitalize()} {where}."
    said = []
    for i, turn in enumerate(turns):
        first, last = turn[0][0], turn[-1][0]
        where = f"up to {last}" if i == 0 else f"since {first}" if i == len(turns) - 1 else f"from {first} to {last}"
        said.append(f"{turn[0][1]} {where if first != last or i in (0, len(turns) - 1) else f'on {first}'}")
    return f"{', '.join(said).capitalize()}."


@dataclass(frozen=True)
class Turn:
    """An answer that changed: `old` is the last release of the answer `before`, `new` the first of `after`; `why` is what
    happened in between to the numbers that the claim depends on, the largest first."""

    old: str
    new: str
    before: str
    after: str
    why: str


def turns(question: str, answered: Sequence[tuple[str, str]], happened: Iterable[tuple[Step, str]]) -> list[Turn]:
    """Where the answers of a claim, (release, word) oldest first, changed; `happened` are the lane's steps with their
    sentences. A release without an answer is passed over."""
    position = {release: i for i, (release, _) in enumerate(answered)}
    metrics, variants = CLAIMS[question].depends_on
    moves: list[tuple[int, float, str]] = []
    for step, sentence in happened:
        series = step.series
        of_claim = series.question == question and series.metric in metrics and step.new in position
        if of_claim and series.parameters and series.parameters[0].strip("'") in variants:
            size = abs(math.log(step.ratio)) if step.ratio else math.inf
            moves.append((position[step.new], size, sentence))
            if step.kind is Kind.EXCURSION:
                moves.append((position.get(step.until, position[step.new]) + 1, size, sentence))
    told = [(release, word) for release, word in answered if word != UNKNOWN]
    found = []
    for (old, before), (new, after) in itertools.pairwise(told):
        if before != after:
            between = [move for move in moves if position[old] < move[0] <= position[new]]
            largest = sorted(between, key=lambda move: -move[1])[:CAUSES]
            why = " ".join(sentence for *_, sentence in largest) or NO_CAUSE
            found.append(Turn(old, new, before, after, why))
    return found


def as_data(
    words: Mapping[str, Sequence[tuple[str, str]]], found: History, happened: Sequence[tuple[Step, str]] = ()
) -> list[dict[str, Any]]:
    """Each claim as the site shows it. `words` are the answers of all releases, question -> (release, word), oldest first;
    `found` has the newest of them, which decides what to do and what is drawn; `happened` as in `turns`."""
    answered = answers(found)
    data = []
    for question, claim in CLAIMS.items():
        asked = any(series.question == question for series in found)
        if not asked or not words.get(question):
            continue
        newest = answered[question][words[question][-1][0]]
        data.append(
            {
                "question": question,
                "words": claim.words,
                "summary": in_turn(words[question]),
                "turns": [asdict(turn) for turn in turns(question, words[question], happened)],
                "advice": claim.advice.get(newest.word) or UNDECIDED.format(sentence=newest.sentence),
                "picture": _picture(found, question, claim),
            }
        )
    return data


def _picture(found: History, question: str, claim: Claim) -> dict[str, Any] | None:
    """What shows a claim: the benchmark, the size and those of its variants that have numbers there."""
    shown: dict[tuple[str, str], list[str]] = defaultdict(list)
    for series, releases in found.items():
        if (series.question, series.metric) != (question, claim.metric) or len(series.parameters) != 2:
            continue
        variant, size = (parameter.strip("'") for parameter in series.parameters)
        numbers = any(case.number is not None for pairs in releases.values() for _, case in pairs)
        if numbers and variant in claim.variants and claim.size in size:
            shown[series.benchmark, size].append(variant)
    if not shown:
        return None
    (benchmark, size), variants = min(shown.items(), key=lambda item: len(item[0][1]))
    ordered = [variant for variant in claim.variants if variant in variants]
    return {"benchmark": benchmark, "size": size, "variants": ordered}


def limits(found: History, releases: Sequence[str]) -> list[dict[str, Any]]:
    """What no variant can do with less: the intersection's result, a quarter of what eager holds at its peak."""
    data = []
    for series, of in found.items():
        if (series.question, series.metric) == ("intersection", "peak_memory") and series.parameters[:1] == (
            "'eager'",
        ):
            peaks = [[case.number for _, case in of.get(tag, []) if case.number is not None] for tag in releases]
            size = " ".join(parameter.strip("'") for parameter in series.parameters[1:])
            numbers = [peak[-1] / 4 if peak else None for peak in peaks]
            data.append(
                {"benchmark": series.benchmark, "size": size, "words": "the bytes of the result", "numbers": numbers}
            )
    return data


def findings(found: History, axis: Axis) -> str:
    """The README's table: each claim, the answers of all releases that one environment measured, and what to do today."""
    words = {
        question: sorted(((tag, of[tag].word) for tag in of if tag in axis), key=lambda item: axis.position(item[0]))
        for question, of in answers(found).items()
    }
    rows = [
        "| [{question}](docs/questions/{question}.md) | {words} | {summary} | {advice} |".format(**claim)
        for claim in as_data(words, found)
    ]
    return "\n".join(["| question | claim | result | advice |", "|---|---|---|---|", *rows])


Tell = Callable[[list[Step], History, str], Sequence[str]]
"""Steps, what they were found in, and its machine -> a sentence for each step."""


def document(launches_of: Mapping[str, Iterable[Launch]], axis: Axis, tell: Tell) -> str:
    """docs/generated/answers.md: each claim release by release, when and why it changed, and a sentence for the newest."""
    parts = [
        "# The claims, release by release\n\n`torch-history document` writes this page from `results/`. Each question's "
        "page in [docs/questions](../questions) says how its answer is decided.\n"
    ]
    for machine, launches in launches_of.items():
        launches = list(launches)
        for environment in sorted({launch.environment for launch in launches}):
            numbers = history(launch for launch in launches if launch.environment == environment)
            found = answers(numbers)
            releases = sorted({r for of in found.values() for r in of if r in axis}, key=axis.position)
            if not releases:
                continue
            parts.append(f"\n## {machine}, {environment}\n\n")
            parts.append("| claim | " + " | ".join(release.removeprefix("v") for release in releases) + " |\n")
            parts.append("|---" * (len(releases) + 1) + "|\n")
            for question, claim in CLAIMS.items():
                cells = [found[question][release].word if release in found[question] else "" for release in releases]
                parts.append(f"| [{claim.words}](../questions/{question}.md) | " + " | ".join(cells) + " |\n")
            steps = of_history(numbers, axis)
            happened = list(zip(steps, tell(steps, numbers, machine), strict=True))
            parts.append("\n### What changed, when and why\n\n")
            for question, claim in CLAIMS.items():
                answered = [(tag, found[question][tag].word) for tag in releases if tag in found[question]]
                parts.append(f"- **{claim.words}.** {in_turn(answered)}\n")
                untold = [tag for tag, word in answered if word == UNKNOWN]
                if untold:
                    parts.append(f"  - {untold[-1]}, {UNKNOWN}: {found[question][untold[-1]].sentence}\n")
                parts += [f"  - {_of_turn(turn)}\n" for turn in turns(question, answered, happened)]
            parts.append(f"\n### On {releases[-1]}\n\n")
            for question, claim in CLAIMS.items():
                if answer := found[question].get(releases[-1]):
                    parts.append(f"- **{claim.words}: {answer.word}.** {answer.sentence}\n")
    return "".join(parts)


def _of_turn(turn: Turn) -> str:
    return f"{turn.old} → {turn.new}, from *{turn.before}* to *{turn.after}*. {escape(turn.why)}"
