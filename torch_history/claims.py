"""Does a claim hold on a release? Each question answered from what one lane measured, with the numbers in a sentence.

A claim of bytes or counts is exact. A claim of time asks for a factor that noise seldom makes, `CLEARLY`, between two
variants in the medians of the launches; where only some sizes show it the claim holds in part.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from .axis import Axis
from .launches import Launch
from .verdicts import history, human

CLEARLY = 1.2
"""A factor between two variants of one launch: both ran within minutes on one machine, which seldom wanders by a fifth."""

STALL = 5.0
"""The slowest later call in medians from which a sequence has stalled; `measure/sequence.py` counts with the same number."""

HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "can't tell"


@dataclass(frozen=True)
class Answer:
    """`word` is HOLDS, PARTLY, FAILS or UNKNOWN; `sentence` gives the numbers it rests on."""

    word: str
    sentence: str


class Numbers:
    """What one release gave for one question: the median over launches by metric, variant and size, or None."""

    def __init__(self, values: Mapping[tuple[str, str, str], float]) -> None:
        self._values = values

    def __call__(self, metric: str, variant: str, size: str) -> float | None:
        return self._values.get((metric, variant, size))

    def ratio(self, metric: str, size: str, of: str, to: str) -> float | None:
        above, below = self(metric, of, size), self(metric, to, size)
        return above / below if above is not None and below else None

    def sizes(self, metric: str, variant: str) -> list[str]:
        return [size for name, of, size in self._values if (name, of) == (metric, variant)]


def _missing(what: str) -> Answer:
    return Answer(UNKNOWN, f"{what} has no number here.")


def intersection(numbers: Numbers) -> Answer:
    """Scripting keeps intermediates out of memory: the scripted peak is the result alone, a quarter of eager's."""
    sizes = numbers.sizes("peak_memory", "scripted")
    if not sizes:
        return _missing("the scripted variant")
    size = sizes[0]
    scripted, eager = numbers("peak_memory", "scripted", size), numbers("peak_memory", "eager", size)
    if scripted is None or eager is None:
        return _missing("eager or scripted")
    peaks = f"Scripted peaks at {human(scripted, 'bytes')}, eager at {human(eager, 'bytes')}"
    said = f"{peaks}; the result alone is {human(eager / 4, 'bytes')}."
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
                differing.append(f"{metric.replace('_', ' ')} of {size}: {plain} and {disabled}")
    if differing:
        return Answer(HOLDS, f"Plain and with hooks disabled, {'; '.join(differing)}.")
    times = [numbers.ratio("time", size, "hooks_disabled", "plain") for size in sizes]
    known = [ratio for ratio in times if ratio is not None]
    said = f"Peak, retained bytes and gradients are those of plain, to the byte, in all {len(sizes)} scripts"
    return Answer(FAILS, f"{said}; times are {min(known):.2f} to {max(known):.2f} of plain's." if known else f"{said}.")


def warm_up(numbers: Numbers) -> Answer:
    """Inference as TorchScript stalls where eager does not."""
    worst: dict[str, float] = {}
    for variant in ("scripted", "traced", "eager"):
        found = [numbers("worst_over_median", variant, size) for size in numbers.sizes("worst_over_median", variant)]
        known = [ratio for ratio in found if ratio is not None]
        if not known:
            return _missing(variant)
        worst[variant] = max(known)
    said = ", ".join(f"{variant} {ratio:.1f}" for variant, ratio in worst.items())
    script = max(worst["scripted"], worst["traced"])
    stalled = script > 2 * max(STALL, worst["eager"])
    word = HOLDS if stalled else FAILS if script <= STALL else UNKNOWN
    return Answer(word, f"The slowest call after the first takes so many medians: {said}.")


def batching(numbers: Numbers) -> Answer:
    """A tensor per row joined by vstack is slow; one flat buffer is not."""
    ratios = {
        size: numbers.ratio("time", size, "vstack_rows", "flat_buffer") for size in numbers.sizes("time", "vstack_rows")
    }
    return _by_time(ratios, "A tensor per row takes so many times as long as one flat buffer")


def selection(numbers: Numbers) -> Answer:
    """Turning the mask into an index once and reusing that saves time; at 100 uses for every share and layout."""
    ratios = {size: numbers.ratio("time", size, "mask", "index_reused") for size in numbers.sizes("time", "mask")}
    return _by_time(
        {size: ratio for size, ratio in ratios.items() if size.endswith(" x 100")},
        "Selecting by the mask takes so many times as long as by an index that is made once",
        {size: ratio for size, ratio in ratios.items() if not size.endswith(" x 100")},
    )


def _by_time(deciding: dict[str, float | None], words: str, others: dict[str, float | None] | None = None) -> Answer:
    known = {size: ratio for size, ratio in deciding.items() if ratio is not None}
    if not known:
        return _missing("this comparison")
    if all(ratio > CLEARLY for ratio in known.values()):
        word = HOLDS
    else:
        word = FAILS if all(ratio <= CLEARLY for ratio in known.values()) else PARTLY
    shown = {**known, **{size: ratio for size, ratio in (others or {}).items() if ratio is not None}}
    return Answer(word, f"{words}: {', '.join(f'{ratio:.1f} ({size})' for size, ratio in shown.items())}.")


CLAIMS: dict[str, tuple[str, Callable[[Numbers], Answer]]] = {
    "intersection": ("Scripting keeps intermediates out of memory", intersection),
    "saved_tensors": ("Disabling saved-tensor hooks saves memory", saved_tensors),
    "warm_up": ("TorchScript stalls", warm_up),
    "batching": ("A tensor per row is slow", batching),
    "selection": ("A reused index is faster than a mask", selection),
}
"""Question -> the claim in words, and what answers it."""


def answers(launches: Iterable[Launch], environment: str) -> dict[str, dict[str, Answer]]:
    """Question -> release -> its answer, for the releases that `environment` measured."""
    values: dict[tuple[str, str], dict[tuple[str, str, str], float]] = {}
    for series, releases in history(launches).items():
        if series.environment != environment or len(series.parameters) != 2:
            continue
        question, _, metric = series.benchmark.partition(".")
        variant, size = (parameter.strip("'") for parameter in series.parameters)
        for release, pairs in releases.items():
            numbers = [case.number for _, case in pairs if case.number is not None]
            found = values.setdefault((question, release), {})
            if numbers:
                found[metric.rpartition(".")[2].removeprefix("track_"), variant, size] = statistics.median(numbers)
    return {
        question: {release: answer(Numbers(found)) for (of, release), found in values.items() if of == question}
        for question, (_, answer) in CLAIMS.items()
    }


def document(launches_of: Mapping[str, Iterable[Launch]], axis: Axis) -> str:
    """docs/answers.md: each claim release by release, and in a sentence for the newest."""
    parts = [
        "# The claims, release by release\n\nMade from the launches in `results/` by `torch-history document`; not edited "
        "by hand. How each answer is decided stands in `torch_history/claims.py`.\n"
    ]
    for machine, launches in launches_of.items():
        launches = list(launches)
        for environment in sorted({launch.environment for launch in launches}):
            found = answers(launches, environment)
            releases = sorted({r for of in found.values() for r in of if r in axis}, key=axis.position)
            if not releases:
                continue
            parts.append(f"\n## {machine}, {environment}\n\n")
            parts.append("| claim | " + " | ".join(release.removeprefix("v") for release in releases) + " |\n")
            parts.append("|---" * (len(releases) + 1) + "|\n")
            for question, (words, _) in CLAIMS.items():
                cells = [found[question][release].word if release in found[question] else "" for release in releases]
                parts.append(f"| [{words}](questions/{question}.md) | " + " | ".join(cells) + " |\n")
            parts.append(f"\nOn {releases[-1]}:\n\n")
            for question, (words, _) in CLAIMS.items():
                if answer := found[question].get(releases[-1]):
                    parts.append(f"- **{words}: {answer.word}.** {answer.sentence}\n")
    return "".join(parts)
