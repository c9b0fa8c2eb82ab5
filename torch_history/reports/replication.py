"""Do changes replicate? What the wheels of two lanes say of the same two releases, and what two builds differ by."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..analysis.calibration import per_cent
from ..analysis.markdown import escape
from ..analysis.replication import LANES, TOLD
from ..analysis.series import ANY_BUILD, BUILDS, History, Verdict, history
from ..analysis.verdicts import Change, compare_history
from ..releases.axis import Axis
from ..store.launches import Launch

HEADER = """\
# Do changes replicate?

Made from the launches in `results/` by `torch-history document`; not edited by hand. A release is built once for each
Python, so two lanes hold two builds of the same sources. Below are all neighbours that two lanes measured. A change
**fails** where one lane tells it and the other says SAME or the opposite. Only changes that the other lane decides count.
"""

WITHIN = 0.95
"""Share of ratios of two builds that `BUILDS` holds."""

SIZES = ((1.06, "under 6 %"), (1.1, "6 to 10 %"), (1.2, "10 to 20 %"), (1.5, "20 to 50 %"), (math.inf, "50 % and more"))
"""Ratio up to which a change is of a size -> its words."""

RESAMPLES = 1000

MOST_FAILING = 0.02
"""Aim: the share of told changes beyond the spread that another lane denies."""

MOST_NAMED = 5
"""Places of failing changes that are named."""


@dataclass(frozen=True)
class Pair:
    """One series from one release to the next in two lanes: the change that one of them says, and the other."""

    old: str
    new: str
    here: Change
    there: Change

    @property
    def question(self) -> str:
        return self.here.series.question

    @property
    def told(self) -> bool:
        """Whether `here` is a change of a time that `there` decides."""
        return self.here.verdict in TOLD and self.there.verdict in (*TOLD, Verdict.SAME)

    @property
    def fails(self) -> bool:
        return self.here.verdict is not self.there.verdict

    @property
    def size(self) -> str:
        ratio = self.here.ratio or 1.0
        return next(words for most, words in SIZES if max(ratio, 1 / ratio) < most)

    @property
    def apart(self) -> float:
        """By how much the two lanes differ, as a logarithm."""
        assert self.here.ratio is not None
        assert self.there.ratio is not None
        return abs(math.log(self.here.ratio / self.there.ratio))


def document(launches_of: Mapping[str, Iterable[Launch]], axis: Axis) -> str:
    """The page: for each machine with two lanes what replicates, what two builds differ by, and the patch releases."""
    parts = [HEADER]
    read = {machine: list(launches) for machine, launches in launches_of.items()}
    every = {machine: _lanes(launches, axis) for machine, launches in read.items()}
    sessions = {machine: {launch.session for launch in launches} for machine, launches in read.items()}
    for machine, found in every.items():
        pairs = both_ways(found)
        if pairs:
            parts.append(f"\n## {escape(machine)}\n\n{_replicated(pairs)}\n{_builds(pairs)}\n{_patches(found, axis)}")
    parts += _across_machines(every, sessions)
    return "".join(parts) if len(parts) > 1 else f"{HEADER}\nNo two lanes measured the same neighbours.\n"


def _lanes(launches: Iterable[Launch], axis: Axis) -> dict[str, Neighbours]:
    """Lane of a machine -> its neighbours."""
    lanes: dict[str, list[Launch]] = defaultdict(list)
    for launch in launches:
        if launch.environment.startswith(LANES) and launch.release in axis:
            lanes[launch.environment].append(launch)
    return {lane: neighbours(history(of), axis) for lane, of in sorted(lanes.items())}


def _across_machines(every: Mapping[str, Mapping[str, Neighbours]], sessions: Mapping[str, set[str]]) -> list[str]:
    """What two machines say of the same wheels, in a table; nothing where no two measured the same. Two that share a session
    are one and its copy."""
    rows = []
    for one, other in itertools.combinations(every, 2):
        for lane in sorted(every[one].keys() & every[other].keys()) if not sessions[one] & sessions[other] else ():
            told = [pair for pair in both_ways({one: every[one][lane], other: every[other][lane]}) if pair.told]
            failing = sum(pair.fails for pair in told)
            if told:
                names = " | ".join(map(escape, (one, other, lane)))
                rows.append(f"| {names} | {len(told)} | {failing} | {per_cent(failing / len(told))} |")
    if not rows:
        return []
    head = ["| machine | other machine | lane | told | fail | share |", "|---|---|---|---:|---:|---:|"]
    said = (
        "Changes that one machine tells and another one decides, from the side of each. The wheels are the same, and the "
        "processors are not. Each change says in its sentence what the other machine found."
    )
    return ["\n".join(["\n## Across machines\n", f"{said}\n", *head, *rows]) + "\n"]


Neighbours = dict[tuple[str, str], list[Change]]
"""Two neighbouring releases -> the changes from one to the other."""


def neighbours(found: History, axis: Axis) -> Neighbours:
    """Of one lane: the changes of times from each of its releases to the next."""
    times = found.only(lambda series: series.varies)
    tags = sorted({tag for of in times.values() for tag in of}, key=axis.position)
    return {(old, new): compare_history(times, old, new) for old, new in itertools.pairwise(tags)}


def both_ways(found: Mapping[str, Neighbours]) -> list[Pair]:
    """Every series of every two neighbours that two lanes compared, once from the side of each lane."""
    pairs = []
    for (_, one), (_, other) in itertools.permutations(found.items(), 2):
        for releases in one.keys() & other.keys():
            there = {(change.series.benchmark, change.series.parameters): change for change in other[releases]}
            for change in one[releases]:
                match = there.get((change.series.benchmark, change.series.parameters))
                if match and change.confidence is not None and match.confidence is not None:
                    pairs.append(Pair(*releases, change, match))
    return sorted(pairs, key=lambda pair: (pair.here.series, pair.old))


def within(pairs: Sequence[Pair]) -> float:
    """The ratio that WITHIN of the differences between two lanes stay below."""
    return math.exp(float(np.quantile([pair.apart for pair in pairs], WITHIN)))


def uncertainty(pairs: Sequence[Pair]) -> tuple[float, float]:
    """The middle 95 % of `within` when releases are drawn again with replacement: series of one release are one build."""
    of: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        of[pair.new].append(pair.apart)
    releases, random = list(of.values()), np.random.default_rng(0)
    drawn = [
        np.quantile(np.concatenate([releases[i] for i in random.integers(len(releases), size=len(releases))]), WITHIN)
        for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return math.exp(float(low)), math.exp(float(high))


def _steady(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """Question -> its pairs of steady times, each once."""
    of: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        if pair.here.series.build is not None and pair.here.series < pair.there.series:
            of[pair.question].append(pair)
    return of


def marked_without(pairs: Sequence[Pair]) -> set[int]:
    """Positions of told pairs within what two builds differ by, as the other releases tell it: without the pair's own."""
    limits: dict[tuple[str, str], float] = {}
    for question, of in _steady(pairs).items():
        for new in {pair.new for pair in of}:
            others = [pair for pair in of if pair.new != new]
            limits[question, new] = math.log(within(others)) if others else math.inf
    return {
        i
        for i, pair in enumerate(pairs)
        if pair.here.series.build is not None
        and abs(math.log(pair.here.ratio or 1.0)) <= limits.get((pair.question, pair.new), 0.0)
    }


def _replicated(pairs: Sequence[Pair]) -> str:
    marked = marked_without(pairs)
    told = [(pair, i in marked) for i, pair in enumerate(pairs) if pair.told]
    ways: tuple[tuple[str, Callable[[Pair], str]], ...] = (
        ("size", lambda pair: pair.size),
        ("question", lambda pair: pair.question),
        ("lane", lambda pair: pair.here.series.environment),
    )
    lines = [
        "Every change has its standing in the sentence that tells it: replicated, or this wheel only. So none of these "
        "fails without saying so. The last columns are for releases that one lane alone measured: what fails among changes "
        "beyond "
        "the spread of two builds, estimated without the pair's own releases.\n",
        "| | told | fail | share | beyond the spread | fail | share |",
        "|---|---:|---:|---:|---:|---:|---:|",
        _row("all", told),
    ]
    for what, key in ways:
        names = [words for _, words in SIZES] if what == "size" else sorted({key(pair) for pair, _ in told})
        lines += [_row(f"{what}: {name}", [item for item in told if key(item[0]) == name]) for name in names]
    return "\n".join([*lines, "", *_aim([pair for pair, within in told if not within])]) + "\n"


def _aim(beyond: Sequence[Pair]) -> list[str]:
    """How many of the changes beyond the spread fail, against the aim, and where these are."""
    failing = [pair for pair in beyond if pair.fails]
    share = len(failing) / len(beyond) if beyond else 0.0
    said = f"Aim: of changes beyond the spread at most {MOST_FAILING:.0%} fail. {per_cent(share)} do"
    if share <= MOST_FAILING:
        return [f"{said}."]
    places = Counter((pair.question, pair.here.series.parameters[0].strip("'"), pair.new) for pair in failing)
    most = places.most_common(MOST_NAMED)
    return [
        f"{said}: it is **missed**. Two builds differ by more than noise would: where code and data lie moves all sizes of "
        f"one variant together. The {len(failing)} that fail are in {len(places)} places, each a variant at a release. "
        "A wider spread would not tell them from what replicates, so only a second lane does. Most of them are in:",
        "",
        *(f"- {escape(question)}, {escape(variant)}, at {new}: {count}" for (question, variant, new), count in most),
        "",
    ]


def _row(words: str, told: Sequence[tuple[Pair, bool]]) -> str:
    beyond = [pair for pair, marked in told if not marked]
    counts = [(len(of), sum(pair.fails for pair in of)) for of in ([pair for pair, _ in told], beyond)]
    cells = [f"{all_of} | {failing} | {per_cent(failing / all_of) if all_of else ''}" for all_of, failing in counts]
    return f"| {escape(words)} | {' | '.join(cells)} |"


def _builds(pairs: Sequence[Pair]) -> str:
    """What two builds differ by; empty where no steady time was compared."""
    steady = _steady(pairs)
    if not steady:
        return ""
    lines = [
        "\nWhat two builds of one source differ by: the ratio of two lanes' ratios that 95 % stay within, with the interval "
        "that holds it in 95 % when releases are drawn again. It holds the noise of the launches too, so it errs upwards. "
        "`used` is the number in `torch_history/analysis/verdicts.py`.\n",
        "| question | steady times compared | 95 % within | interval | used |",
        "|---|---:|---:|---:|---:|",
    ]
    for question, of in sorted(steady.items()):
        low, high = uncertainty(of)
        used = BUILDS.get(question, ANY_BUILD)
        lines.append(f"| {escape(question)} | {len(of)} | {within(of):.3f} | {low:.3f} to {high:.3f} | {used:.2f} |")
    return "\n".join(lines) + "\n"


def _patches(found: Mapping[str, Neighbours], axis: Axis) -> str:
    """How many times patch releases are told to change, by question and lane."""
    decided: Counter[tuple[str, str]] = Counter()
    changed: Counter[tuple[str, str]] = Counter()
    beyond: Counter[tuple[str, str]] = Counter()
    for lane, of in found.items():
        for (old, new), changes in of.items():
            if _line(old) != _line(new):
                continue
            for change in changes:
                if change.confidence is not None:
                    decided[change.series.question, lane] += 1
                    changed[change.series.question, lane] += change.verdict in TOLD
                    beyond[change.series.question, lane] += change.verdict in TOLD and not change.within_builds
    lines = [
        "\nPatch releases, such as 2.1.0 to 2.1.1, hardly touch a loop. Of their times with an interval:\n",
        "| question | lane | times | told as changed | of them beyond what two builds differ by |",
        "|---|---|---:|---:|---:|",
    ]
    for key in sorted(decided):
        shares = [per_cent(counted[key] / decided[key]) for counted in (changed, beyond)]
        lines.append(f"| {escape(key[0])} | {escape(key[1])} | {decided[key]} | {' | '.join(shares)} |")
    return "\n".join(lines) + "\n"


def _line(tag: str) -> str:
    """`v2.1` of v2.1.2."""
    return tag.rpartition(".")[0]
