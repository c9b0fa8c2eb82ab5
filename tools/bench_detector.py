"""Do steps, excursions and drifts agree with the verdicts, how often do quiet series alarm, and are planted steps found?

`python -m tools.bench_detector --write` reads results/ and puts what it prints into docs/steps.md.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from torch_history.analysis import steps, verdicts
from torch_history.analysis.steps import CARRIED, Kind, Lane, Step
from torch_history.analysis.verdicts import History, Verdict
from torch_history.releases.axis import Axis
from torch_history.store.launches import Case, Launch, machines_in, read_launches

from .page import write_into

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "generated" / "steps.md"
PLANTED = (0.05, 0.1, 0.2)


def contradictions(lane: Lane, found: list[Step]) -> Iterator[str]:
    """A sentence for each told change that a verdict on two releases measured together contradicts."""
    for step in found:
        tags = lane.tags[step.series]
        old, new, until = (tags.index(tag) for tag in (step.old, step.new, step.until))
        rise, fall = (
            (Verdict.SLOWER, Verdict.FASTER) if step.verdict is Verdict.SLOWER else (Verdict.FASTER, Verdict.SLOWER)
        )
        asked: list[tuple[str, str, tuple[Verdict, ...]]] = []
        if step.kind is Kind.STEP:
            asked = [(step.old, step.new, (Verdict.SAME, fall))]
        elif step.kind is Kind.EXCURSION:
            after = tags[until + 1]
            asked = [(step.old, after, (Verdict.SLOWER, Verdict.FASTER))]
            for tag in tags[new : until + 1]:
                asked += [(step.old, tag, (Verdict.SAME, fall)), (tag, after, (Verdict.SAME, rise))]
        else:
            ratios = [
                lane.evidence(one, two)[0][step.series].shift for one, two in itertools.pairwise(tags[old : new + 1])
            ]
            total = math.log(step.ratio or 1)
            if max(map(abs, ratios)) >= CARRIED * abs(total) or sum(ratios) * total <= 0:
                yield f"{step.series.words}: drift from {step.old} to {step.new}"
            asked = [(step.old, step.new, (Verdict.SAME, fall))]
        for one, two, wrong in asked:
            if lane.together(step.series, one, two) and lane.verdict(step.series, one, two) in wrong:
                yield f"{step.series.words}: {step.kind.value} at {step.new}, {one} against {two}"


def disagreeing(lane: Lane, history: History) -> tuple[int, int]:
    """Verdicts on neighbours that `compare_history` gives otherwise, and how many were asked."""
    pairs = sorted({pair for tags in lane.tags.values() for pair in itertools.pairwise(tags)})
    wrong = asked = 0
    for old, new in pairs[::4]:
        for change in verdicts.compare_history(history, old, new):
            if change.confidence is not None:
                asked += 1
                wrong += lane.verdict(change.series, old, new) is not change.verdict
    return wrong, asked


def resampled(
    history: History, per_session: bool, size: float, random: np.random.Generator
) -> tuple[History, dict[verdicts.Series, str]]:
    """Every time at one level with its own noise in its own rounds, and a step planted in each at one of its releases.

    Noise is what a session's rounds and releases leave of a logarithm, widened by what these took from it; drawn from the
    same session, or from all sessions of the series."""
    found, places = {}, {}
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
        tags = list(releases)
        place = tags[int(random.integers(1, len(tags)))] if len(tags) > 1 else tags[0]
        after, places[series] = set(tags[tags.index(place) :]), place
        made: dict[str, list[tuple[Launch, Case]]] = {}
        for tag, pairs in releases.items():
            made[tag] = []
            for launch, case in pairs:
                if case.number:
                    own = noise[launch.session]
                    drawn = random.choice(own if per_session and own.any() else usual)
                    number = math.exp(drawn) * (1 + size if tag in after else 1)
                    made[tag].append((launch, replace(case, samples=(number,))))
        found[series] = made
    return found, places


def left(of: list[tuple[str, int, float]]) -> np.ndarray:
    """What releases and rounds leave of the logarithms of a session."""
    tags, rounds = (sorted({one[i] for one in of}, key=str) for i in (0, 1))
    freedom = len(of) - len(tags) - len(rounds) + 1
    if freedom < 1:
        return np.zeros(0)
    design = np.array(
        [[tag == each for each in tags] + [turn == each for each in rounds] for tag, turn, _ in of], float
    )
    logarithms = np.array([one[2] for one in of])
    fitted = design @ np.linalg.lstsq(design, logarithms, rcond=None)[0]
    return np.asarray((logarithms - fitted) * math.sqrt(len(of) / freedom))


def ordered(history: History, axis: Axis) -> History:
    """The times of a lane, releases in the axis' order."""
    return {
        series: {tag: of[tag] for tag in sorted((tag for tag in of if tag in axis), key=axis.position)}
        for series, of in history.items()
        if series.varies
    }


def report(repeats: int) -> Iterator[str]:
    """Lines of Markdown."""
    axis = Axis.load(ROOT / "releases.toml")
    random = np.random.default_rng(20261123)
    histories = []
    for machine in machines_in(ROOT / "results"):
        found = verdicts.history(read_launches(ROOT / "results", machine))
        for environment in sorted({series.environment for series in found}):
            of = {series: each for series, each in found.items() if series.environment == environment}
            histories.append((environment, ordered(of, axis)))
    yield "| lane | steps | excursions | drifts | contradict a verdict | verdicts not those of `compare` |"
    yield "|---|---|---|---|---|---|"
    for environment, history in histories:
        lane, told = Lane.of(history, axis), steps.of_history(history, axis)
        kinds = [sum(step.kind is kind for step in told) for kind in Kind]
        wrong, asked = disagreeing(lane, history)
        against = list(contradictions(lane, told))
        yield f"| {environment} | {' | '.join(map(str, kinds))} | {len(against)} | {wrong} of {asked} |"
    yield ""
    yield "| lane | noise drawn from | planted | series | alarm beside it | found | of those not of single calls |"
    yield "|---|---|---|---|---|---|---|"
    for (environment, history), per_session, size in itertools.product(histories, (False, True), (0.0, *PLANTED)):
        series = alarms = hits = repeated = of_repeated = 0
        for _ in range(repeats):
            made, places = resampled(history, per_session, size, random)
            by_series: dict[verdicts.Series, list[Step]] = {one: [] for one in made}
            for step in steps.of_history(made, axis):
                by_series[step.series].append(step)
            for one, changes in by_series.items():
                right = [step for step in changes if size and step.new == places[one] and (step.ratio or 0) > 1]
                series += 1
                hits += bool(right)
                repeated += one.margin <= verdicts.MARGIN
                of_repeated += bool(right) and one.margin <= verdicts.MARGIN
                alarms += len(changes) > len(right) if not size or right else False
        what = "nothing" if not size else f"{100 * size:.0f} %"
        share = f"{hits / series:.1%} | {of_repeated / repeated:.1%}" if size else " | "
        yield (
            f"| {environment} | {'its session' if per_session else 'all sessions'} | {what} | {series} | "
            f"{alarms / series:.1%} | {share} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1, help="resampled copies of each series per setting")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args()
    text = "\n".join(report(asked.repeats)) + "\n"
    print(text)
    if asked.write:
        write_into(PAGE, "python -m tools.bench_detector --write", text)


if __name__ == "__main__":
    main()
