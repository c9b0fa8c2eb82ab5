"""Does a claim hold on a release? Bytes and counts are exact; a claim of time is decided size by size: it holds where
the whole interval of the ratio of two variants within rounds lies beyond `BORDER`, and fails where it lies within."""

import functools
import itertools
import math
import statistics
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, convert

from contract.metrics import METRICS, STEADY, TIMES

from .labels import coded
from .levels import REPEATED, SINGLE, USUAL, Seen, by_themselves, on_one_thread
from .series import Block, History
from .steps import Kind, Step
from .verdicts import ERROR_RATE, Evidence, human

BORDER = 1.05  # the ratio from which a variant is the slower: two builds of one source differ by less
STALL = 5.0  # the slowest later call in medians from which a sequence has stalled, as measure/sequence.py counts

RESULT_BYTES = {"small": 4 * 30_000 * 500, "paper": 4 * 242_991 * 500}
"""Size of intersection -> bytes of its result, 4 N M: N boxes with M boxes in float32."""

CAUSES = 3  # sentences at most that tell why an answer changed

NO_CAUSE = (
    "No step was found in the numbers that decide it. Either they are close to the limit between two answers, or no session "
    "measured both releases."
)

HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "inconclusive"
UNMEASURED = "not measured"  # the word of a release that has no number which could decide

DECIDED = (HOLDS, PARTLY, FAILS)

NEEDS_TIMES = "Only times can decide this claim; counts cannot."


@dataclass(frozen=True)
class Answer:
    """`word` is HOLDS, PARTLY, FAILS, UNKNOWN or UNMEASURED; `sentence` gives its numbers, `part` where a PARTLY holds,
    `instead` what is quicker than what the claim praises, `beside` what counts say of it without deciding."""

    word: str
    sentence: str
    part: str = ""
    instead: str = ""
    beside: str = ""


Answers = Mapping[str, Mapping[str, Answer]]  # question -> release -> its answer
Words = Mapping[str, Sequence[tuple[str, str]]]  # question -> (release, word) of all releases, oldest first


@dataclass(frozen=True)
class Interval:
    """A ratio and its interval, None of fewer than two rounds with both sides: no evidence of a time."""

    ratio: float
    low: float | None
    high: float | None

    def of(self, what: str) -> str:
        """`3.20 (rows 50 %, 3.10 to 3.30)`, or of one round the ratio alone."""
        if self.low is None or self.high is None:
            return f"{_short(self.ratio)} ({what}, one round)"
        return f"{_short(self.ratio)} ({what}, {_short(self.low)} to {_short(self.high)})"

    def against(self, border: float) -> str:
        """HOLDS where all of it lies above `border`, FAILS where all of it lies below, else UNKNOWN."""
        if self.low is not None and self.low > border:
            return HOLDS
        return FAILS if self.high is not None and self.high < border else UNKNOWN


def _short(number: float) -> str:
    """Three digits at least, so that an end on one side of a border is not printed as the border."""
    return f"{number:.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


Key = tuple[str, str, str]  # a metric, a variant and a size
Values = Mapping[Key, Mapping[Block, float]]  # of one release and question: numbers by session and round

Intervals = Callable[[str, str, str], Mapping[tuple[str, str], Interval]]
"""Of a metric, a variant, and the one that it is divided by, empty for the number itself: (release, size) -> the interval of
how many times as much it takes, where a round measured both sides."""


def intervals(lane: Mapping[str, Values]) -> Intervals:
    """On all releases of a lane, release -> values; each comparison is made once."""

    @functools.cache
    def compared(metric: str, of: str, to: str) -> Mapping[tuple[str, str], Interval]:
        of_size: dict[str, list[Seen]] = defaultdict(list)
        for place, values in enumerate(lane.values()):
            for size, (session, _), logarithm in _logarithms(values, metric, of, to):
                of_size[size].append((place, session, logarithm))
        if not of_size:
            return {}
        steady = METRICS[metric].measured == STEADY
        repeated = (2 if to else 1) * (REPEATED if steady else SINGLE) ** 2
        usual, two = USUAL[steady], math.sqrt(2)
        if to:  # what rounds do to both variants goes out, and each adds what sessions do to it alone and its noise
            usual = usual._replace(noise=two * usual.noise, session=two * usual.session)
        else:
            usual = usual._replace(noise=math.hypot(usual.noise, usual.round))
        found, releases, every = {}, [*lane], by_themselves([*of_size.values()], usual, repeated)
        for (size, seen), levels in zip(of_size.items(), every, strict=True):
            rounds = Counter(place for place, *_ in seen)
            variance, freedom = levels.alone
            # Of two one-sided tests at ERROR_RATE, not shared between sizes: each has to pass (Berger 1982).
            ends = Evidence(levels.level, np.sqrt(variance), freedom).interval(1 - 2 * ERROR_RATE)
            for place, level, low, high in zip(levels.releases, levels.level, *ends, strict=True):
                known = (float(low), float(high)) if rounds[place] > 1 else (None, None)
                found[releases[place], size] = Interval(math.exp(level), *known)
        return found

    return compared


def _logarithms(values: Values, metric: str, of: str, to: str) -> Iterator[tuple[str, Block, float]]:
    """Of one release: a size, a round that measured both sides of a comparison, and the logarithm of their ratio."""
    for (name, variant, size), above in values.items():
        if (name, variant) == (metric, of):
            below = values.get((metric, to, size), {}) if to else dict.fromkeys(above, 1.0)
            both = [block for block in above if below.get(block) and above[block]]
            yield from ((size, block, math.log(above[block] / below[block])) for block in both)


class Numbers:
    """What one release gave for one question, beside the intervals of all of them."""

    def __init__(self, release: str, values: Values, of_all: Intervals) -> None:
        self.release, self._values, self._intervals = release, values, of_all

    def __call__(self, metric: str, variant: str, size: str) -> float | None:
        """The median over all launches, None without any."""
        numbers = list(self._values.get((metric, variant, size), {}).values())
        return statistics.median(numbers) if numbers else None

    def interval(self, metric: str, size: str, of: str, to: str = "") -> Interval | None:
        """How many times as much variant `of` takes as `to`, or the number of `of` itself. None without a round."""
        return self._intervals(metric, of, to).get((self.release, size))

    def sizes(self, metric: str, variant: str) -> list[str]:
        return [size for name, of, size in self._values if (name, of) == (metric, variant)]


def _missing(what: str) -> Answer:
    return Answer(UNMEASURED, f"No number was measured for {what}.")


def _together(parts: Mapping[str, str], sentence: str) -> Answer:
    """The answer of a claim from the words of its parts: PARTLY where they differ, and then it says which is which."""
    words = set(parts.values())
    if len(words) == 1:
        return Answer(words.pop(), sentence)
    if HOLDS not in words:
        return Answer(UNKNOWN, sentence)
    said = {word: [part for part, of in parts.items() if of == word] for word in (HOLDS, FAILS, UNKNOWN)}
    part = "; ".join(f"{word} for {', '.join(of)}" for word, of in said.items() if of)
    return Answer(PARTLY, sentence, part)


def intersection(numbers: Numbers) -> Answer:
    """Scripting keeps intermediates out of memory: the scripted peak has no room for one beside the result, 4 N M bytes."""
    peaks = {size: numbers("peak_memory", "scripted", size) for size in numbers.sizes("peak_memory", "scripted")}
    known = {size: peak for size, peak in peaks.items() if peak is not None and size in RESULT_BYTES}
    if not known:
        return _missing("the peak memory of the scripted variant")
    parts, said = dict[str, str](), list[str]()
    for size, peak in known.items():
        result = RESULT_BYTES[size]
        parts[size] = HOLDS if peak < 2 * result else FAILS
        eager = numbers("peak_memory", "eager", size)
        beside = f", the eager one at {human(eager, 'bytes')}" if eager is not None else ""
        peaked = f"In size {size} the scripted variant peaks at {human(peak, 'bytes')}{beside}"
        said.append(f"{peaked}. The result alone takes {human(result, 'bytes')}.")
    return _together(parts, " ".join(said))


def saved_tensors(numbers: Numbers) -> Answer:
    """Disabling saved-tensor hooks saves memory or keeps results from having gradients."""
    exact, variants = ("peak_memory", "retained", "gradients"), ("plain", "hooks_disabled")
    asked = numbers.sizes("peak_memory", "hooks_disabled")
    sizes = [size for size in asked if None not in (numbers(*of, size) for of in itertools.product(exact, variants))]
    if not sizes:
        return _missing("the peak memory with torch.autograd.graph.disable_saved_tensors_hooks and without")
    parts, differing = dict.fromkeys(sizes, FAILS), []
    for size in sizes:
        for metric in exact:
            plain, disabled = (numbers(metric, variant, size) for variant in variants)
            if plain != disabled:
                parts[size] = HOLDS
                differing.append(f"{metric.replace('_', ' ')} of {size} is {plain} and {disabled}")
    if differing:
        return _together(parts, f"With hooks and without them, {'; '.join(differing)}.")
    known = [found for size in sizes if (found := numbers.interval("time", size, "hooks_disabled", "plain"))]
    said = (
        f"Peak memory, retained bytes and gradients are exactly those of the plain variant in all {len(sizes)} scripts."
    )
    if known:
        least = min(found.low or found.ratio for found in known)
        most = max(found.high or found.ratio for found in known)
        said += f" The intervals of the time lie between {least:.2f} and {most:.2f} times that of the plain variant."
    return Answer(FAILS, said)


def warm_up(numbers: Numbers) -> Answer:
    """Inference as TorchScript stalls where eager does not: its slowest later call takes more than STALL medians."""
    variants = ("scripted", "traced", "eager")
    cases = [(variant, size) for variant in variants for size in numbers.sizes("worst_over_median", variant)]
    known = {case: found for case in cases if (found := numbers.interval("worst_over_median", case[1], case[0]))}
    for variant in variants:
        if not any(of == variant for of, _ in known):
            return _missing(f"the {variant} variant")
    words = {case: interval.against(STALL) for case, interval in known.items()}
    parts = {
        f"{variant} {size}": _beside_eager(word, words.get(("eager", size), UNKNOWN))
        for (variant, size), word in words.items()
        if variant != "eager"
    }
    said = ", ".join(interval.of(f"{variant} {size}") for (variant, size), interval in known.items())
    return _together(
        parts,
        f"A stall takes more than {STALL:.0f} times the median call. "
        f"Slowest later call, in multiples of the median call: {said}.",
    )


def _beside_eager(word: str, eager: str) -> str:
    """Whether TorchScript stalls where eager does not, from whether each of them stalls."""
    if word != HOLDS or eager == FAILS:
        return word
    return FAILS if eager == HOLDS else UNKNOWN


def batching(numbers: Numbers) -> Answer:
    """A tensor per row joined by vstack is slow; one flat buffer is not."""
    ratios = _ratios(numbers, "time", "vstack_rows", "flat_buffer")
    return _by_time(ratios, "One tensor per row", "one flat buffer")


def selection_waits(numbers: Numbers) -> str:
    """How often the host waits for the GPU where a mask is used again, in a sentence; empty where that was not counted."""
    sizes = [size for size in numbers.sizes("host_waits", "mask") if not size.endswith(" x 1")]
    waits = ((numbers("host_waits", "mask", size), numbers("host_waits", "index_reused", size)) for size in sizes)
    known = [(mask, index) for mask, index in waits if mask is not None and index is not None]
    if not known:
        return ""
    ends = ((min(of), max(of)) for of in zip(*known, strict=True))
    mask, index = (" to ".join(dict.fromkeys(f"{end:g}" for end in of)) for of in ends)
    return (
        f"Counted: with a mask that is used again the host waits {mask} times, with an index that is made once {index}."
    )


def selection(numbers: Numbers) -> Answer:
    """Turning the mask into an index once and reusing that saves time; decided at 100 uses, of every share and layout."""
    ratios = _ratios(numbers, "time", "mask", "index_reused")
    deciding = {size: ratio for size, ratio in ratios.items() if size.endswith(" x 100")}
    others = {size: ratio for size, ratio in ratios.items() if size not in deciding}
    return _by_time(deciding, "A mask", "an index that is reused", others)


def quicker(numbers: Numbers, question: str, than: str, rivals: Iterable[str], part: str) -> str:
    """Which of `rivals` surely take less time than `than`, in how many sizes that hold `part`; empty for none."""
    sizes = [size for size in numbers.sizes("time", than) if part in size]
    said = []
    for variant in rivals:
        ratios = {size: numbers.interval("time", size, variant, than) for size in sizes}
        less = {size: of for size, of in ratios.items() if of and of.high is not None and of.high < 1 / BORDER}
        if less:
            often = f"in {len(less)} of {len(sizes)} sizes"
            said.append(f"{coded(question, variant)} takes {_extremes(less)} times as long {often}")
    return f"Against {coded(question, than)}, {'; '.join(said)}." if said else ""


def start_up(numbers: Numbers) -> Answer:
    """A worker that is spawned takes longer to start than one that is forked; the sentence says what the import takes."""
    ratios = _ratios(numbers, "start_time", "spawned_worker", "forked_worker")
    answer = _by_time(ratios, "A spawned worker", "a forked one")
    known = (numbers("start_time", "import_torch", size) for size in numbers.sizes("start_time", "spawned_worker"))
    said = next((f" The import takes {human(one, 'seconds')}." for one in known if one is not None), "")
    return replace(answer, sentence=answer.sentence + said)


def _ratios(numbers: Numbers, metric: str, of: str, to: str) -> dict[str, Interval]:
    """Size -> how many times as much variant `of` takes as `to`, of the sizes in which a round measured both."""
    return {size: found for size in numbers.sizes(metric, of) if (found := numbers.interval(metric, size, of, to))}


def _by_time(
    deciding: Mapping[str, Interval], slow: str, quick: str, others: Mapping[str, Interval] | None = None
) -> Answer:
    """Whether `slow` takes longer than `quick` in the `deciding` sizes; the sentence names the extremes."""
    if not deciding:
        return _missing("this comparison")
    said = f"{slow} takes {_extremes(deciding)} times as long as {quick}."
    said += f" In other sizes it takes {_extremes(others)} times as long." if others else ""
    return _together({size: ratio.against(BORDER) for size, ratio in deciding.items()}, said)


def _extremes(ratios: Mapping[str, Interval]) -> str:
    """`1.30 (rows 50 %, 1.27 to 1.33) to 13.1 (vector 1 %, 12.9 to 13.4)`: the least and the largest with their sizes."""
    least, most = (of(ratios, key=lambda size: ratios[size].ratio) for of in (min, max))
    return " to ".join(ratios[size].of(size) for size in dict.fromkeys((least, most)))


@dataclass(frozen=True)
class Setting:
    """What an answer rests on: the device, `cpu`, `cuda` or `recorder`, and the threads of a CPU."""

    device: str = "cpu"
    threads: int = 1

    @property
    def unmeasured(self) -> str:
        """What is said of a release without a number."""
        return "not counted" if self.device == "recorder" else UNMEASURED

    @property
    def words(self) -> str:
        """`measured on a CPU with one thread`."""
        if self.device == "recorder":
            return "counted, no kernel ran"
        if self.device != "cpu":
            return f"measured on {self.device.upper()}"
        return f"measured on a CPU with {'one thread' if self.threads == 1 else f'{self.threads} threads'}"


def setting_of(found: History) -> Setting:
    """Of the launches of one lane: what the newest of them was measured on. Releases are measured on one device there."""
    every = (launch for of in found.values() for pairs in of.values() for launch, _ in pairs)
    newest = max(every, key=lambda launch: launch.started_at, default=None)
    facts = newest.facts if newest else {}
    return Setting(str(facts.get("device", "cpu")), int(facts.get("threads", 1)))


class Advice(Struct, frozen=True):
    """What to do, in sentences, of which the `first` stands alone."""

    first: str
    more: str = ""

    @property
    def words(self) -> str:
        return f"{self.first} {self.more}".rstrip()


class Shown(Struct, frozen=True):
    """What shows a claim: a metric of some variants, in one of the sizes that hold `size`."""

    metric: str
    variants: tuple[str, ...]
    size: str = ""


class Rivals(Struct, frozen=True):
    """The variant that the advice `praises`, those that may be `quicker` than it, and what the sizes of that advice hold."""

    praises: str
    quicker: tuple[str, ...]
    size: str


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of claims.toml, whose head says what each key is."""

    question: str
    words: str
    metrics: tuple[str, ...]
    variants: tuple[str, ...]
    shown: Shown
    instead: tuple[tuple[str, ...], ...]
    advice: dict[str, Advice]
    rivals: Rivals | None = None

    @property
    def needs_times(self) -> bool:
        """Whether no count decides it."""
        return all(METRICS[metric].kind == TIMES for metric in self.metrics)

    def answer(self, numbers: Numbers, device: str = "cpu") -> Answer:
        """What DECIDE says, with what is quicker than what is praised; the recorder decides no claim of time."""
        if device == "recorder" and self.needs_times:
            beside = selection_waits(numbers) if self.question == "selection" else ""
            return Answer(UNMEASURED, f"{NEEDS_TIMES} {beside}".strip(), beside=beside)
        than = self.rivals
        instead = quicker(numbers, self.question, than.praises, than.quicker, than.size) if than else ""
        return replace(DECIDE[self.question](numbers), instead=instead)

    def advice_on(self, setting: Setting, release: str, answer: Answer, brief: bool = False) -> str:
        """What to do on the device of the answer, and on which release that rests; in `brief` its first sentence."""
        advice = self.advice.get(answer.word) or UNDECIDED[answer.word]
        if brief:
            return f"{advice.first} {'Counted' if setting.device == 'recorder' else 'Measured'} on {release}."
        if answer.word in UNDECIDED:
            return advice.words.format(sentence=answer.sentence)
        told = f"{advice.words} {answer.instead}" if answer.instead else advice.words
        where = f" {setting.words[0].upper()}{setting.words[1:]} ({release})"
        return f"{told}{where}: {answer.part}." if answer.part else f"{told}{where}."


DECIDE: dict[str, Callable[[Numbers], Answer]] = {
    of.__name__: of for of in (intersection, saved_tensors, warm_up, batching, selection, start_up)
}
"""Question -> what decides its claim."""

_ROWS = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))
CLAIMS = {question: convert({"question": question, **row}, Claim) for question, row in _ROWS.items()}
"""Question -> its claim."""

UNDECIDED = {
    UNKNOWN: Advice("The results here are inconclusive.", "{sentence} Measure it on your own machine."),
    UNMEASURED: Advice("{sentence}", "Measure it on your own machine."),
}
"""Word of an answer that decides nothing -> what is said in the place of advice."""


def answers(found: History, measured: Sequence[str]) -> dict[str, dict[str, Answer]]:
    """Question -> each release of those `measured`, in this order -> its answer, UNMEASURED where it has no number."""
    device = setting_of(found).device
    values = _values(found)
    answered = {}
    for question, claim in CLAIMS.items():
        of_question = values.get(question, {})
        of_all = intervals(of_question)
        numbers = [Numbers(release, of_question.get(release, {}), of_all) for release in measured]
        with on_one_thread():
            answered[question] = {of.release: claim.answer(of, device) for of in numbers}
    return answered


def _values(found: History) -> dict[str, dict[str, dict[Key, dict[Block, float]]]]:
    """Question -> release -> what `Numbers` are made of."""
    values: dict[str, dict[str, dict[Key, dict[Block, float]]]] = defaultdict(lambda: defaultdict(dict))
    for series, releases in found.items():
        if len(series.parameters) != 2:
            continue
        variant, size = series.plain
        for release, pairs in releases.items():
            numbers = {(launch.session, launch.round): case.number for launch, case in pairs if case.number is not None}
            if numbers:
                values[series.question][release][series.metric, variant, size] = numbers
    return values


def in_turn(answered: Sequence[tuple[str, str]], unmeasured: str = UNMEASURED) -> str:
    """The answers of all releases, without a full stop: `Holds from v1.8.0 to v2.0.1, does not hold on v2.1.2`. Inconclusive
    ones between two that say the same do not end that; they are named, as are those between that are `unmeasured`."""
    known = [i for i, (_, word) in enumerate(answered) if word != UNMEASURED]
    if not known:
        return unmeasured.capitalize()
    within = answered[known[0] : known[-1] + 1]
    measured = [one for one in within if one[1] != UNMEASURED]
    passed_over = _passed_over(measured)
    gaps = {UNKNOWN: passed_over, unmeasured: [release for release, word in within if word == UNMEASURED]}
    end = "".join(f"; {word} on {', '.join(releases)}" for word, releases in gaps.items() if releases)
    said = []
    told = (one for one in measured if one[0] not in passed_over)
    for word, turn in itertools.groupby(told, key=lambda item: item[1]):
        (first, _), *_, (last, _) = [*turn] * 2
        said.append(f"{word} from {first} to {last}" if first != last else f"{word} on {first}")
    return f"{', '.join(said).capitalize()}{end}"


def _passed_over(answered: Sequence[tuple[str, str]]) -> list[str]:
    """The inconclusive releases between two that say the same."""
    turns = [(word, list(turn)) for word, turn in itertools.groupby(answered, key=lambda item: item[1])]
    passed_over = []
    for (before, _), (word, turn), (after, _) in zip(turns, turns[1:], turns[2:], strict=False):
        if word == UNKNOWN and before == after:
            passed_over += [release for release, _ in turn]
    return passed_over


def turns(
    question: str, answered: Sequence[tuple[str, str]], happened: Iterable[tuple[Step, str]]
) -> list[dict[str, str]]:
    """Where answers, (release, word) oldest first, changed from the last release of one to the first of another, and `why`:
    the largest causes. `happened` are the lane's steps with their sentences."""
    position = {release: i for i, (release, _) in enumerate(answered)}
    claim = CLAIMS[question]
    moves: list[tuple[int, float, str]] = []
    for step, sentence in happened:
        series = step.series
        of_claim = series.question == question and series.metric in claim.metrics and step.new in position
        if of_claim and series.parameters and series.variant in claim.variants:
            size = abs(math.log(step.ratio)) if step.ratio else math.inf
            moves.append((position[step.new], size, sentence))
            if step.kind is Kind.EXCURSION:
                moves.append((position.get(step.until, position[step.new]) + 1, size, sentence))
    told = [(release, word) for release, word in answered if word in DECIDED]
    found = []
    for (old, before), (new, after) in itertools.pairwise(told):
        if before != after:
            between = [move for move in moves if position[old] < move[0] <= position[new]]
            largest = sorted(between, key=lambda move: -move[1])[:CAUSES]
            why = " ".join(sentence for *_, sentence in largest) or NO_CAUSE
            found.append({"old": old, "new": new, "before": before, "after": after, "why": why})
    return found


def as_data(found: History, answered: Answers, happened: Sequence[tuple[Step, str]]) -> list[dict[str, Any]]:
    """Each claim as the site shows it: `answered` are those of all releases, oldest first, `happened` is as in `turns`."""
    setting, data = setting_of(found), []
    for question, claim in CLAIMS.items():
        of = answered[question]
        if not of or not any(series.question == question for series in found):
            continue
        words = [(tag, answer.word) for tag, answer in of.items()]
        advice = {tag: claim.advice_on(setting, tag, answer) for tag, answer in of.items()}
        data.append(
            {
                "question": question,
                "words": claim.words,
                "summary": f"{in_turn(words, setting.unmeasured)}.",
                "turns": turns(question, words, happened),
                "advice": [*advice.values()][-1],
                "picture": _picture(found, question, claim.shown),
                "answers": [
                    {"release": tag, "word": answer.word, "sentence": answer.sentence, "advice": advice[tag]}
                    for tag, answer in of.items()
                ],
            }
        )
    return data


def _picture(found: History, question: str, wanted: Shown) -> dict[str, Any] | None:
    """A benchmark, the size with numbers of most releases, and then the largest change, and its variants."""
    shown: dict[tuple[str, str], dict[str, dict[str, float]]] = defaultdict(dict)
    for series, releases in found.items():
        if (series.question, series.metric) != (question, wanted.metric) or len(series.parameters) != 2:
            continue
        variant, size = series.plain
        numbers = {tag: [case.number for _, case in of if case.number is not None] for tag, of in releases.items()}
        levels = {tag: statistics.median(of) for tag, of in numbers.items() if of}
        if levels and variant in wanted.variants and wanted.size in size:
            shown[series.benchmark, size][variant] = levels
    if not shown:
        return None

    def place(item: tuple[tuple[str, str], dict[str, dict[str, float]]]) -> tuple[int, int, float]:
        (benchmark, _), variants = item
        tags = {tag for levels in variants.values() for tag in levels}
        changed = max(max(of.values()) / min(of.values()) if min(of.values()) > 0 else 1 for of in variants.values())
        return len(benchmark), -len(tags), -changed

    (benchmark, size), variants = min(shown.items(), key=place)
    ordered = [variant for variant in wanted.variants if variant in variants]
    return {"benchmark": benchmark, "size": size, "variants": ordered}


def limits(found: History, releases: Sequence[str]) -> list[dict[str, Any]]:
    """What no variant can do with less: the bytes of the intersection's result, for the releases that measured one."""
    data = []
    for series, of in found.items():
        size = series.size
        asked = (series.question, series.metric, series.parameters[:1]) == ("intersection", "peak_memory", ("'eager'",))
        if asked and size in RESULT_BYTES:
            has_number = (any(case.number is not None for _, case in of.get(tag, [])) for tag in releases)
            about = {"benchmark": series.benchmark, "size": size, "words": "the bytes of the result"}
            data.append({**about, "numbers": [RESULT_BYTES[size] if has else None for has in has_number]})
    return data
