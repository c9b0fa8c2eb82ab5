"""What is followed over releases, and what was seen of it? Series, their launches, and the words that a verdict may be."""

import enum
import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from contract.metrics import COUNTS, STEADY, Metric, metric_of

from ..releases.axis import Axis
from ..store.launches import Case, Launch, Returned
from ..store.sources import that_count
from ..system.files import warn

if TYPE_CHECKING:
    from .levels import Fitted

BUILDS = {"batching": 1.08, "intersection": 1.17, "saved_tensors": 1.07, "selection": 1.31}
ANY_BUILD = 1.18
"""Question -> the ratio that holds 95 % of steady times of two builds: tests/test_replication.py checks it."""


class Verdict(enum.Enum):
    """A verdict as stored in JSON and in addresses, with the word of its class; `shown` is what a person reads."""

    FASTER = ("FASTER", "better")
    SLOWER = ("SLOWER", "worse")
    LEANER = ("LEANER", "better")
    HUNGRIER = ("HUNGRIER", "worse")
    FEWER = ("FEWER", "changed")
    MORE = ("MORE", "changed")
    SAME = ("SAME", "same")
    CANT_TELL = ("CAN'T TELL", "can't tell")
    BROKE = ("BROKE", "worse")
    FIXED = ("FIXED", "better")
    NEVER_RAN = ("NEVER RAN", "never ran")

    def __init__(self, words: str, kind: str) -> None:
        self.words = words
        self.kind = kind

    @property
    def shown(self) -> str:
        return SHOWN.get(self.words, self.words)


SHOWN = {"CAN'T TELL": "INCONCLUSIVE", "NEVER RAN": "NO NUMBER"}
"""Stored verdict -> what a person reads in its place, here and on the site."""

KINDS = {verdict.words: verdict.kind for verdict in Verdict}  # the words of every verdict, in their order -> its kind

TIMES = (Verdict.SLOWER, Verdict.FASTER)  # verdicts on a time that changed

RANK = {"worse": 0, "better": 1, "changed": 2, "can't tell": 3, "same": 4, "never ran": 5}
"""Order of kinds of verdicts where they are listed."""

SAID_FIRST = ("worse", "better", "changed")  # kinds of verdicts that have a sentence each; the rest is counted

Name = tuple[str, str]  # a question, and the identifier of one of its variants or sizes


class _Key(NamedTuple):
    environment: str
    benchmark: str
    parameters: tuple[str, ...]


class Series(_Key):
    """What is followed over releases: one benchmark with one set of parameters in one environment. A tuple is hashed and
    compared without a call of Python, and series are keys throughout."""

    @functools.cached_property
    def question(self) -> str:
        return self.benchmark.partition(".")[0]

    @functools.cached_property
    def measure(self) -> Metric:
        """All that is known of its metric."""
        return metric_of(self.benchmark)

    @functools.cached_property
    def metric(self) -> str:
        return self.measure.name

    @functools.cached_property
    def words(self) -> str:
        """As a person says it: `intersection peak memory, eager small`."""
        question, metric = self.question, self.metric.replace("_", " ")
        return f"{question.replace('_', ' ')} {metric}, {self.case}".rstrip()

    @functools.cached_property
    def plain(self) -> list[str]:
        """Its parameters as a person writes them: variant and size."""
        return [parameter.strip("'") for parameter in self.parameters]

    @functools.cached_property
    def variant(self) -> str:
        """Empty where it has no parameters."""
        return "".join(self.plain[:1])

    @functools.cached_property
    def size(self) -> str:
        """Empty where it has one parameter at most."""
        return " ".join(self.plain[1:])

    @functools.cached_property
    def case(self) -> str:
        """Its variant and size: `eager small`."""
        return " ".join(self.plain).rstrip()

    @functools.cached_property
    def names(self) -> list[Name]:
        """Its question with each of its parameters."""
        return [(self.question, parameter) for parameter in self.plain]

    @functools.cached_property
    def unit(self) -> str:
        return self.measure.shown_unit

    @functools.cached_property
    def varies(self) -> bool:
        """Whether launches of the same release differ: times do, counts and bytes do not."""
        return self.measure.varies

    @functools.cached_property
    def is_counted(self) -> bool:
        """Whether it is a count or bytes, which are taken once. Stalls are counted in every launch."""
        return self.measure.kind == COUNTS

    def direction(self, rose: bool) -> Verdict:
        """The verdict on a number that rose, or fell."""
        more, less = self.measure.more_and_less
        return Verdict[more if rose else less]

    @functools.cached_property
    def margin(self) -> float:
        """Within which a time is called the same."""
        return self.measure.margin

    @functools.cached_property
    def is_steady(self) -> bool:
        """Whether a process can repeat its calls, and does not make them only once."""
        return self.measure.measured == STEADY

    @functools.cached_property
    def build(self) -> float | None:
        """The ratio within which two builds of one source lie, None of exact numbers and of calls that are made once."""
        return BUILDS.get(self.question, ANY_BUILD) if self.varies and self.is_steady else None


Pairs = list[tuple[Launch, Case]]


class History(dict[Series, dict[str, Pairs]]):
    """Series -> release -> its launches in order of time: a whole lane, since its series tell each other of noise and
    of sessions. `returned`: each case, as a series of its own -> release -> what it returned there."""

    returned: dict[Series, dict[str, Returned]] = {}

    def tags(self, axis: Axis) -> list[str]:
        """The releases of the axis that it has, oldest first."""
        return sorted({tag for of in self.values() for tag in of if tag in axis}, key=axis.position)

    @functools.cached_property
    def sessions(self) -> Mapping[str, set[str]]:
        """Release -> those that measured it. Another machine that has one holds a copy, which confirms nothing."""
        found: dict[str, set[str]] = defaultdict(set)
        for of in self.values():
            for tag, pairs in of.items():
                found[tag].update(launch.session for launch, _ in pairs)
        return found

    def is_copied(self, other: "History", *tags: str) -> bool:
        """Whether it shares a session of one of `tags` with another machine."""
        return any(self.sessions.get(tag, set()) & other.sessions.get(tag, set()) for tag in tags)

    @functools.cached_property
    def fits(self) -> "Mapping[tuple[str, str], Fitted]":
        """(environment, question) -> the levels of its times."""
        from .levels import fitted  # what is followed is known without it

        return fitted(self)


def disturbed(launch: Launch) -> bool:
    """Whether it was measured although the machine was disturbed."""
    return "disturbed" in launch.facts.get("conditions", {})


def history(launches: Iterable[Launch]) -> History:
    """Series -> release -> its launches in order of time, those that `that_count` and `of_one_setting` tell. A round is
    one launch, however often it asked for a case: samples are pooled, the undisturbed alone if there are any."""
    launches = of_one_setting(sorted(launches, key=lambda launch: launch.started_at))
    counts = that_count((one.environment, one.benchmark, one.version, one.started_at) for one in launches)
    found: dict[tuple[str, str], dict[tuple[str, ...], _Releases]] = defaultdict(dict)
    returned: dict[Series, dict[str, Returned]] = defaultdict(dict)
    for launch in launches:
        benchmark = launch.environment, launch.benchmark
        if counts[benchmark] == launch.version:
            key = (launch.session, launch.round) if launch.round else launch.launch
            of_benchmark = found[benchmark]
            for case in launch.cases:
                of_release = of_benchmark.setdefault(case.parameters, {}).setdefault(launch.release, {})
                before = of_release.get(key)
                of_release[key] = (launch, case) if before is None else _again(before, (launch, case))
                if case.returned:
                    question = launch.benchmark.rpartition(".track_")[0]
                    of_case = returned[Series(launch.environment, f"{question}.track_result", case.parameters)]
                    of_case[launch.release] = _merged(of_case.get(launch.release), case.returned)
    every = {Series(*of, parameters): releases for of, by in found.items() for parameters, releases in by.items()}
    for releases in every.values():
        if any(case.turns for of_release in releases.values() for _, case in of_release.values()):
            from . import turned  # what is followed is known without it

            turned.compare(releases)
    told = History((one, {tag: [*of.values()] for tag, of in every[one].items()}) for one in sorted(every))
    told.returned = dict(sorted(returned.items()))
    return told


def _merged(before: Returned | None, now: Returned) -> Returned:
    """What a release returned in two sessions: the last one's, held against the releases of both where it is the same."""
    if before is None or before.tensors != now.tensors:
        return now
    return structs.replace(now, differences={**before.differences, **now.differences})


def of_one_setting(launches: list[Launch]) -> list[Launch]:
    """Those with no variables set, else with those of an environment's newest launch; a warning tells the others."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for launch in launches:
        found[launch.environment][_set(launch)] += 1
    last = {launch.environment: _set(launch) for launch in launches}
    counts = {environment: "" if "" in of else last[environment] for environment, of in found.items()}
    for environment, of in found.items():
        for words in of.keys() - {counts[environment]}:
            warn(
                f"{of[words]} launches in {environment} were measured with {words or 'no variables'} set, and are skipped: "
                f"they are not compared with those with {counts[environment] or 'none'} set."
            )
    return [launch for launch in launches if _set(launch) == counts[launch.environment]]


def _set(launch: Launch) -> str:
    """The variables with which it was measured because a person named them, in words; empty where there were none."""
    found = launch.facts.get("set") or {}
    if not isinstance(found, dict):
        return "what nobody can read"
    return " ".join(f"{name}={value}" for name, value in sorted(found.items()))


_Releases = dict[str, dict[object, tuple[Launch, Case]]]


def _again(before: tuple[Launch, Case], now: tuple[Launch, Case]) -> tuple[Launch, Case]:
    """What counts of a case that was asked for again in the same round."""
    (before_launch, before_case), (launch, case) = before, now
    if case.unmeasured:
        return before
    if not before_case.samples or (disturbed(before_launch) and not disturbed(launch)):
        return now
    if disturbed(launch) and not disturbed(before_launch):
        return before
    return launch, structs.replace(before_case, samples=before_case.samples + case.samples)


Block = tuple[str, int]  # a session and a round of it


class Observation(NamedTuple):
    """One launch's number of one series, and the `variance` of its logarithm by its own turns, 0 where it took none."""

    release: str
    block: Block
    number: float
    disturbed: bool
    variance: float = 0.0


def observations(releases: Mapping[str, Pairs], *tags: str) -> list[Observation]:
    """Those of `tags`."""
    return [
        Observation(tag, (launch.session, launch.round), number, disturbed(launch), getattr(case, "variance", 0.0))
        for tag in tags
        for launch, case in releases.get(tag, [])
        if (number := case.number)
    ]
