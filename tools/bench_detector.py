"""Do steps, excursions and drifts agree with the verdicts, how often do quiet series alarm, and are planted steps found?

`python -m tools.bench_detector --others PYTHON --write` reads results/ and writes docs/generated/steps.md; PYTHON has NumPy,
apache-otava and ruptures. Without --others only this program and asv are compared.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from unittest import mock

import numpy as np
from msgspec.structs import replace

from tools.detectors import ROOT, asv_places, elsewhere, large, left, ordered, shown, stored_lanes
from torch_history.analysis import steps, verdicts
from torch_history.analysis.series import History, Series, Verdict
from torch_history.analysis.steps import CARRIED, CHANGED, HISTORY_ERROR, Chain, Kind, Step, chains
from torch_history.analysis.verdicts import verdicts_of
from torch_history.releases.axis import Axis
from torch_history.store.launches import Case, Launch

PAGE = ROOT / "docs" / "generated" / "steps.md"
SEED = 20261123
OURS = "this program"
TITLE = "# How often steps, excursions and drifts are right"
LEAD = f"`python -m tools.bench_detector --others PYTHON --write` writes this page, with the seed {SEED}."

REPEATS = 4
"""Copies of each series: with one copy a share of a hundred is uncertain by a whole percentage point."""

SIZES = (0.1, 0.2, 0.5, 1.0)
"""Of planted steps. The two larger ones are for single calls, whose margin is 25 %."""

QUIET = 0.03
"""Quiet series that may alarm where another method is made as strict as it must be."""

CHOICES = (0.05, 0.03, 0.02)
"""Values of HISTORY_ERROR that were tried."""

CONTRADICTIONS = """## Agreement with the verdicts

These are the reported changes of the committed results. *Contradict* counts those that a verdict on two releases denies:

- a step whose pair is SAME or opposite;
- an excursion that did not leave, or did not come back;
- a drift without a step inside that is SAME from end to end, and any whose pairs together point elsewhere, of which one pair
  carries half, or within which an opposite change was decided but not reported.

The last columns count neighbours between which a time is called changed.
"""

FOUND = """## Quiet and planted series

Every time of the committed results is put on one level, in its own rounds. Its noise is drawn from what releases and
rounds leave of its own launches: of the same session, or of all its sessions. A step is planted at one release of each.
It is found if it is reported at exactly this release, upwards. *Alarm* counts quiet series in which anything is reported.
Steady series are times that a process can repeat, with a margin of 4 %. Single calls have a margin of 25 %.
"""

CHOSEN = f"""## How strict it is

`HISTORY_ERROR` is {HISTORY_ERROR}. It was lowered from 0.05 after both lanes had been seen, so neither lane is an independent
check of it. The aim is that at most 3 % of the quiet series alarm. Each series is drawn {REPEATS} times, and a share
of alarms is uncertain by about half a percentage point.
"""  # noqa: E501  a line of the page

OTHERS = """## Other methods on the same series

The others read the median of each release, less what sessions do to all series of a question, which this program
estimates. Their changes below 2 % are dropped, as this program's are. The second three numbers are for the laxest
strictness with which at most 3 % of the quiet series alarm in that setting, which favours the others. Only steady
series count.
"""


@dataclass(frozen=True)
class Told:
    """What is told of a time on a chain of releases that rounds tie together."""

    chain: Chain
    steps: list[Step]

    @property
    def jumps(self) -> set[int]:
        """The pairs at which steps and excursions begin and excursions end."""
        place = self.chain.tags.index
        sudden = [step for step in self.steps if step.kind is not Kind.DRIFT]
        ends = {place(step.until) for step in sudden if step.kind is Kind.EXCURSION}
        return {place(step.old) for step in sudden} | ends

    @property
    def without_place(self) -> list[int]:
        """The pairs whose verdict is a change, and that neither a step nor an excursion tells."""
        return [k for k, verdict in enumerate(self.chain.verdicts) if verdict in CHANGED and k not in self.jumps]


def told_of(found: History, axis: Axis, told: list[Step]) -> Iterator[Told]:
    """The steps of each chain of times."""
    of_series: dict[Series, list[Step]] = defaultdict(list)
    for step in told:
        of_series[step.series].append(step)
    for fit in found.fits.values():
        for chain in chains(fit, axis):
            yield Told(chain, [step for step in of_series[chain.series] if step.old in chain.tags])


def contradictions(found: History, axis: Axis, told: list[Step]) -> Iterator[str]:
    """A sentence for each told change of a time that a verdict on two releases contradicts."""
    judged: dict[tuple[str, str, str], dict[Series, list[Verdict | None]]] = {}
    for each in told_of(found, axis, told):
        series, tags = each.chain.series, each.chain.tags
        for step in each.steps:
            if step.kind is Kind.DRIFT and not is_slow(each, step):
                yield f"{series.words}: drift from {step.old} to {step.new}"
            for one, two, wrong in asked_of(each, step):
                key = series.question, tags[one], tags[two]
                if key not in judged:
                    judged[key] = verdicts_of(found.fits[series.environment, series.question], [key[1:]])
                if judged[key][series][0] in wrong:
                    yield f"{series.words}: {step.kind.value} at {step.new}, {key[1]} against {key[2]}"


def asked_of(told: Told, step: Step) -> list[tuple[int, int, tuple[Verdict, ...]]]:
    """Pairs of places of releases, and the verdicts on each that contradict a told change."""
    tags = told.chain.tags
    old, new, until = (tags.index(tag) for tag in (step.old, step.new, step.until))
    rise, fall = CHANGED if step.verdict is Verdict.SLOWER else CHANGED[::-1]
    if step.kind is Kind.STEP:
        return [(old, new, (Verdict.SAME, fall))]
    if step.kind is Kind.EXCURSION:
        after = until + 1
        back = [(old, place, (Verdict.SAME, fall)) for place in range(new, after)]
        back += [(place, after, (Verdict.SAME, rise)) for place in range(new, after)]
        return [(old, after, CHANGED), *back]
    inside = [k for k in range(old, new) if k in told.jumps]
    ends = [] if inside else [(old, new, (Verdict.SAME, fall))]
    return ends + [(k, k + 1, (fall,)) for k in range(old, new) if k not in inside]


def is_slow(told: Told, step: Step) -> bool:
    """Whether no pair carries CARRIED of a drift, and all that no step tells go its way together."""
    old, new = (told.chain.tags.index(tag) for tag in (step.old, step.new))
    moved, total = np.diff(told.chain.level)[old:new], math.log(step.ratio or 1)
    slowly = sum(of for k, of in enumerate(moved, old) if k not in told.jumps)
    return bool(np.abs(moved).max() < CARRIED * abs(total) and slowly * total > 0)


def resampled(
    history: History, per_session: bool, size: float, random: np.random.Generator
) -> tuple[History, dict[Series, str]]:
    """Every time at one level with its own noise in its own rounds, and a step planted in each at one of its releases.

    Noise is what a session's rounds and releases leave of a logarithm, widened by what these took from it; drawn from the
    same session, or from all sessions of the series."""
    found, places = History(), {}
    for series, releases in history.items():
        sessions: dict[str, list[tuple[str, int, float]]] = {}
        for tag, pairs in releases.items():
            for launch, case in pairs:
                if case.number:
                    sessions.setdefault(launch.session, []).append((tag, launch.round, math.log(case.number)))
        noise = {session: left(of) for session, of in sessions.items()}
        usual = np.concatenate([*noise.values()]) if noise else np.zeros(0)
        if not usual.any():
            continue
        tags = [tag for tag, pairs in releases.items() if any(case.number for _, case in pairs)]
        if len(tags) < 2:
            continue
        place = tags[int(random.integers(1, len(tags)))]
        after, places[series] = set(tags[tags.index(place) :]), place
        made: dict[str, list[tuple[Launch, Case]]] = {}
        for tag in tags:
            made[tag] = []
            for launch, case in releases[tag]:
                if case.number:
                    own = noise[launch.session]
                    drawn = random.choice(own if per_session and own.any() else usual)
                    number = math.exp(drawn) * (1 + size if tag in after else 1)
                    made[tag].append((launch, replace(case, samples=(number,))))
        found[series] = made
    return found, places


Places = dict[Series, list[int]]
"""Where a method sees a rise or, in a quiet series, anything at all: places of releases."""


@dataclass(frozen=True)
class Setting:
    """Series made from one lane. `size` is that of the planted step, 0 for none."""

    environment: str
    per_session: bool
    size: float

    @property
    def words(self) -> str:
        return f"{self.environment} | {'its session' if self.per_session else 'all sessions'}"


@dataclass
class Tally:
    """Of steady series and of single calls apart: how many there were, and in how many there was a hit."""

    series: list[int]
    hits: list[int]

    @classmethod
    def empty(cls) -> Tally:
        return cls([0, 0], [0, 0])

    def add(self, single_call: bool, hit: bool) -> None:
        self.series[single_call] += 1
        self.hits[single_call] += hit

    def share(self, *kinds: int) -> str:
        """Of steady series (0), single calls (1) or both."""
        return f"{sum(self.hits[kind] for kind in kinds) / max(sum(self.series[kind] for kind in kinds), 1):.1%}"


def ours(made: History, axis: Axis, quiet: bool, error: float = HISTORY_ERROR) -> Places:
    """What this program tells, with another HISTORY_ERROR if asked."""
    found: Places = defaultdict(list)
    with mock.patch.object(steps, "HISTORY_ERROR", error):
        told = steps.of_history(made, axis)
    for step in told:
        if quiet or (step.ratio or 0) > 1:
            found[step.series].append(list(made[step.series]).index(step.new))
    return found


def others(made: History, python: str | None, quiet: bool) -> dict[tuple[str, int], Places]:
    """What others tell of the steady series, by their name and the number of the strictness, 0 for the usual one."""
    names = [series for series in made if series.margin <= verdicts.MARGIN]
    levels = [shown(made, series) for series in names]
    found: dict[tuple[str, int], Places] = defaultdict(dict)
    for series, of in zip(names, levels, strict=True):
        found["asv", 0][series] = large(of, asv_places(of), quiet)
    if python:
        for series, of, said in zip(names, levels, elsewhere(python, levels), strict=True):
            for name, by_strictness in said.items():
                for number, at in enumerate(by_strictness):
                    found[name, number][series] = large(of, at, quiet)
    return found


def tallies(
    histories: Mapping[str, History], axis: Axis, repeats: int, python: str | None
) -> dict[tuple[Setting, str, int], Tally]:
    """Of each setting, method and strictness: alarms of quiet series, or steps that were found."""
    random = np.random.default_rng(SEED)
    found: dict[tuple[Setting, str, int], Tally] = defaultdict(Tally.empty)
    asked = itertools.product(histories, (False, True), (0.0, *SIZES), range(repeats))
    for environment, per_session, size, _ in asked:
        setting = Setting(environment, per_session, size)
        history = histories[environment]
        if size > 0.2:
            history = history.only(lambda series: series.margin > verdicts.MARGIN)
        made, planted = resampled(history, per_session, size, random)
        said = {(OURS, 0): ours(made, axis, not size)}
        if not size:
            said |= {(OURS, number): ours(made, axis, True, error) for number, error in enumerate(CHOICES, 1)}
        if size <= 0.2:
            said |= others(made, python, not size)
        for (method, strictness), places in said.items():
            for series in made if method == OURS else places:
                at = places.get(series, [])
                hit = list(made[series]).index(planted[series]) in at if size else bool(at)
                found[setting, method, strictness].add(series.margin > verdicts.MARGIN, hit)
    return found


def agreement(histories: Mapping[str, History], axis: Axis) -> Iterator[str]:
    yield "| lane | steps | excursions | drifts | contradict | changed pairs | that no step or excursion tells |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for environment, history in histories.items():
        told = steps.of_history(history, axis)
        kinds = [sum(step.kind is kind for step in told) for kind in Kind]
        against = list(contradictions(history, axis, told))
        times = list(told_of(history, axis, told))
        changed = sum(verdict in CHANGED for each in times for verdict in each.chain.verdicts)
        alone = sum(len(each.without_place) for each in times)
        yield f"| {environment} | {' | '.join(map(str, kinds))} | {len(against)} | {changed} | {alone} |"


def shares(found: Mapping[tuple[Setting, str, int], Tally], histories: Mapping[str, History]) -> Iterator[str]:
    yield (
        "| lane | noise drawn from | series | alarm | steady: found 10 % | 20 % | single calls: found 10 % | 20 % | 50 % | "
        "100 % |"
    )
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for environment, per_session in itertools.product(histories, (False, True)):
        quiet, *planted = (found[Setting(environment, per_session, size), OURS, 0] for size in (0.0, *SIZES))
        cells = [str(sum(quiet.series)), quiet.share(0, 1), *(each.share(0) for each in planted[:2])]
        cells += [each.share(1) for each in planted]
        yield f"| {Setting(environment, per_session, 0.0).words} | {' | '.join(cells)} |"


def choice(found: Mapping[tuple[Setting, str, int], Tally], histories: Mapping[str, History]) -> Iterator[str]:
    yield f"| lane | noise drawn from | {' | '.join(f'alarm with {error}' for error in CHOICES)} |"
    yield "|---|---|" + "---:|" * len(CHOICES)
    for environment, per_session in itertools.product(histories, (False, True)):
        setting = Setting(environment, per_session, 0.0)
        cells = [found[setting, OURS, number].share(0, 1) for number in range(1, len(CHOICES) + 1)]
        yield f"| {setting.words} | {' | '.join(cells)} |"


def beside(found: Mapping[tuple[Setting, str, int], Tally], histories: Mapping[str, History]) -> Iterator[str]:
    yield "| lane | noise drawn from | method | alarm | found 10 % | 20 % | alarm, made strict | found 10 % | 20 % |"
    yield "|---|---|---|---:|---:|---:|---:|---:|---:|"
    methods = dict.fromkeys(method for _, method, _ in found)
    for environment, per_session, method in itertools.product(histories, (False, True), methods):
        settings = [Setting(environment, per_session, size) for size in (0.0, 0.1, 0.2)]
        numbers = sorted(
            number
            for setting, name, number in found
            if (setting, name) == (settings[0], method) and not (method == OURS and number)
        )
        quiet = {number: found[settings[0], method, number] for number in numbers}
        strict = [number for number in numbers if quiet[number].hits[0] <= QUIET * quiet[number].series[0]]
        rows = [[found[setting, method, number].share(0) for setting in settings] for number in (0, *strict[:1])]
        cells = [*rows[0], *(rows[1] if strict else ["never so strict", "", ""])]
        yield f"| {settings[0].words} | {method} | {' | '.join(cells)} |"


def page(repeats: int, python: str | None) -> str:
    """Markdown."""
    axis = Axis.load(ROOT / "releases.toml")
    stored = stored_lanes()
    times = {environment: ordered(history, axis) for environment, history in stored.items()}
    counted = tallies(times, axis, repeats, python)
    tables = [
        (CONTRADICTIONS, agreement(stored, axis)),
        (FOUND, shares(counted, times)),
        (CHOSEN, choice(counted, times)),
        (OTHERS, beside(counted, times)),
    ]
    parts = ["\n".join([words, *table]) for words, table in tables]
    return "\n\n".join([TITLE, LEAD, *parts]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=REPEATS, help="resampled copies of each series per setting")
    parser.add_argument("--others", metavar="PYTHON", help="a Python that has NumPy, apache-otava and ruptures")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args()
    text = page(asked.repeats, asked.others)
    print(text)
    if asked.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
