"""Is the rate at which planted causes are found counted right, and are some found on a real release?"""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tools import explain_largest
from tools.explain_largest import in_order, kind_of, largest, table, with_evidence
from tools.planted_causes import NOTHING, Redrawn, Tally, calibrated, explained, judge, planted, there, told, whole_run
from torch_history.analysis.causes import FOUND, Cause
from torch_history.analysis.series import Series, history
from torch_history.analysis.steps import Kind, Step
from torch_history.explaining.explanation import Found
from torch_history.explaining.launching import Side
from torch_history.explaining.levers import Lever
from torch_history.releases.axis import Axis
from torch_history.store import causes
from torch_history.store.causes import NOT_LOOKED_INTO, Place, Pulled
from torch_history.store.launches import Case, Launch

from .test_evidence import BENCHMARK, EVIDENCE

ROOT = Path(__file__).resolve().parents[1]
SIDES = Side("v1.0.0", Path("python")), Side("v2.0.0", Path("python"), {"PLANTED_CAUSE": "loop"})


def kept(old: float, new: float, chance: random.Random) -> dict[str, list[Any]]:
    """What eight turns answered, of calls that take so many seconds."""

    def of_side(seconds: float) -> dict[str, list[Any]]:
        times = [seconds * chance.gauss(1, 0.01) for _ in range(2)]
        rows = {"aten::same": [1e-3, 1.0], "aten::planted": [max(seconds - 1e-3, 1e-9), 1.0]}
        profile = {"seconds": seconds, "cpu": seconds, "plain": seconds, "rows": rows}
        return {
            '{"do": "facts"}': [{"environment": {}, "commit": ""}],
            '{"do": "traces"}': [{"traces": []}],
            '{"do": "time", "seconds": 0.3}': [{"wall": each, "cpu": each} for each in times],
            '{"do": "profile", "perf": 0.7, "profile": "operator", "sampled": 0.5, "seconds": 0.15}': [profile],
        }

    return {"[]": [(of_side(old), of_side(new)) for _ in range(8)]}


def redrawn(turns: Any, levers: list[Lever], itself: bool = False, tries: int = 20) -> list[Found]:
    drawn = [Redrawn(SIDES, turns, random.Random(seed), itself) for seed in range(tries)]
    return [explained(SIDES, each.open, levers, each.read, 60.0) for each in drawn]


def test_cause_of_which_turns_were_kept_is_found_in_turns_that_are_drawn() -> None:
    found = redrawn(kept(1.2e-3, 2.2e-3, random.Random(1)), [])
    tally = Tally()
    for each in found:
        tally.add(each, ["aten::planted"])
    assert (tally.tries, tally.right, tally.wrong) == (20, 20, 0)


def test_release_with_itself_has_no_cause() -> None:
    found = redrawn(kept(1.2e-3, 1.2e-3, random.Random(1)), [], itself=True)
    assert {each.verdict for each in found} == {"NOT THERE"}


def test_lever_that_was_not_pulled_is_not_tried_in_turns_that_are_drawn() -> None:
    lever = Lever("a lever", "a lever", "of it", "", variables={"A": "1"})
    found = redrawn(kept(1.2e-3, 2.2e-3, random.Random(1)), [lever], tries=1)
    assert found[0].levers[0].refused == "it was not pulled when launches were kept."


def launch(release: str, round: int, seconds: float) -> Launch:
    case = Case(parameters=("'mask'", "'small'"), samples=(seconds,))
    return Launch(
        "a session", round, f"{release}{round}", release, "release-py3.11", BENCHMARK, "", "", 1.0, {}, (case,)
    )  # fmt: skip


def test_release_is_compared_with_itself_by_the_rounds_of_a_calibration() -> None:
    chance = random.Random(1)
    names = ("first", "second", "longer")
    launches = [launch(name, round, chance.gauss(1, 0.01)) for name in names for round in range(1, 9)]
    turns = calibrated([*launches, launch("first", 9, 1.0)])
    assert [len(of) for of in turns.values()] == [8]
    assert there(turns, 100, random.Random(1)) <= 2


@pytest.mark.parametrize(
    ("verdict", "words", "expected", "right", "wrong"),
    [
        ("CAUSE", "because of it: with a lever 90 % of the difference is gone", ["narrow"], 1, 0),
        ("CAUSE", "because of it: with a lever 90 % of the difference is gone", ["aten::planted"], 0, 1),
        ("CAUSE", "because aten::planted holds 99 % of the difference", ["aten::planted"], 1, 0),
        (
            "CAUSE",
            "because of it: with a lever 90 % of the difference is gone, and aten::planted holds 99 % of the difference",
            ["aten::planted"],
            0,
            1,
        ),
        ("UNKNOWN", "cause unknown; the time went to aten::planted (70 %)", ["aten::planted"], 0, 0),
    ],
)
def test_verdict_is_right_where_all_that_it_names_was_planted(
    verdict: Any, words: str, expected: list[str], right: int, wrong: int
) -> None:
    levers = [Pulled("narrow", "a lever", "", verdict=verdict)]
    place = Place("operator", "aten::planted", 0.0, 1.0, 0.9, 1.1)
    found = Found(verdict=verdict, words=words, levers=levers, places=[place])
    tally = Tally()
    tally.add(found, expected)
    assert (tally.right, tally.wrong) == (right, wrong), told(found)


# --- the largest changes


def step(variant: str, ratio: float, old: str = "v2.13.0", new: str = "v2.14.0", metric: str = "time") -> Step:
    series = Series("release-py3.11", f"selection.Selection.track_{metric}", (repr(variant), "'vector 50 % x 10'"))
    return Step(series, Kind.STEP, old, new, new, 1.0, ratio, ratio, ratio, ratio)


def test_largest_change_of_each_variant_is_listed_and_pairs_with_most_come_first() -> None:
    steps = [
        step("a", 1.2),
        step("a", 0.5, "v2.0.0", "v2.0.1"),
        step("b", 1.5),
        step("c", 1.1),
        step("c", 9.0, metric="stalls"),
    ]
    rows = largest(steps)
    assert [(row.series.parameters[0], row.ratio) for row in rows] == [
        ("'a'", 0.5),
        ("'b'", 1.5),
        ("'c'", 1.1),
    ]
    assert [row.pair for row in in_order(rows)] == [("v2.13.0", "v2.14.0")] * 2 + [("v2.0.0", "v2.0.1")]


def test_evidence_of_any_machine_stands_beside_its_change(tmp_path: Path) -> None:
    causes.write(tmp_path, "there", EVIDENCE)
    found = with_evidence(largest([step("mask", 2.0), step("other", 2.0)]), tmp_path)
    assert [row.evidence[0] if row.evidence else "" for row in found] == ["there", ""]
    assert "Of the 2 largest changes 1 were looked for." in table(found)


LANES = ("release-py3.11", "release-py3.9")


def of_lane(environment: str, ratios: dict[str, float]) -> Iterator[Launch]:
    """Three releases of which the last takes so many times as long as the others."""
    for tag, round in itertools.product(("v2.12.0", "v2.13.0", "v2.14.0"), range(6)):
        cases = [
            Case(
                (f"'{variant}'", "'vector'"), samples=(1e-3 * (ratio if tag == "v2.14.0" else 1) * (1 + round / 1000),)
            )
            for variant, ratio in ratios.items()
        ]
        benchmark = "selection.Selection.track_time"
        yield Launch("a session", round, f"{tag}{round}", tag, environment, benchmark, "", "", 1.0, {}, tuple(cases))


BY_HAND = Cause(
    "2.14.0", "selection", ("index_reused",), ("time",), "SLOWER", "a call per element", "docs/questions/selection.md"
)


@pytest.mark.parametrize(
    ("lanes", "found"),
    [
        ([{}, {"index_reused": 1.5}], ("release-py3.9", 1.5)),
        ([{"index_reused": 1.3}, {"index_reused": 1.5}], ("release-py3.11", 1.3)),
        ([{"index_reused": 0.5, "mask": 1.5}, {"mask": 1.5}], None),
    ],
)
def test_cause_found_by_hand_is_looked_for_in_the_first_lane_that_has_its_change(
    monkeypatch: pytest.MonkeyPatch, lanes: list[dict[str, float]], found: tuple[str, float] | None
) -> None:
    monkeypatch.setattr(explain_largest, "FOUND", [BY_HAND])
    axis = Axis.load(ROOT / "releases.toml")
    histories = [history(of_lane(environment, ratios)) for environment, ratios in zip(LANES, lanes, strict=True)]
    ((_, row),) = explain_largest.found_by_hand(histories, axis)
    assert bool(row) == bool(found)
    if row and found:
        assert (row.series.environment, row.old, row.new) == (found[0], "v2.13.0", "v2.14.0")
        assert row.ratio == pytest.approx(found[1], rel=0.01)


@pytest.mark.parametrize(
    ("because", "known"),
    [
        ("because aten::index holds 95 % of the difference", "CAUSE"),
        ("in part because aten::index holds 45 % of the difference; seen on another machine (a CPU)", "PART"),
        ("cause unknown; the time went to aten::mm (40 %)", "UNKNOWN"),
        (f"because {FOUND[0].words} (since 1.12.0)", "found by hand"),
        ("because it is no longer fused", "fused groups"),
        ("while the number of operators went from 17 to 15", "a number"),
        ("unexplained", "unexplained"),
        ("", "unexplained"),
    ],
)
def test_share_of_a_cause_is_counted_by_how_it_is_known(because: str, known: str) -> None:
    assert kind_of(because).startswith(known)


# --- a real release


@pytest.fixture(scope="module")
def python() -> Path:
    """The newest release, installed where it is not."""
    code = (
        "from pathlib import Path; from asv.repo import get_repo;"
        "from torch_history.measuring.session import load_suite;"
        "from torch_history.releases.environments import ReleaseEnvironment;"
        "conf, axis = load_suite(Path.cwd());"
        "ReleaseEnvironment(conf, '3.11', {}, {}).install_project(conf, get_repo(conf), 'v2.15.0')"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    return ROOT / "env" / "v2.15.0-py3.11" / "bin" / "python"


@pytest.mark.alone
@pytest.mark.releases
@pytest.mark.parametrize("name", ["operator", "loop", "copy"])
def test_planted_place_is_found_on_a_real_release(python: Path, tmp_path: Path, name: str) -> None:
    """Four times as much of a cause as `python -m tools.planted_causes` plants: tests run beside other work."""
    plant = next(each for each in planted(tmp_path) if each.name == name)
    plant = replace(plant, new={**plant.new, "PLANTED_TIMES": "4"})
    whole = whole_run(plant, python, 0.0)
    tally = judge(plant, python, whole.kept, 20)
    assert whole.verdict in ("CAUSE", "PART"), whole.words
    assert tally.right >= 19
    assert not tally.wrong


@pytest.mark.alone
@pytest.mark.releases
def test_real_release_has_no_cause_against_itself(python: Path) -> None:
    whole = whole_run(NOTHING, python, 0.0)
    tally = judge(NOTHING, python, whole.kept, 50)
    assert whole.verdict in NOT_LOOKED_INTO, whole.words
    assert "CAUSE" not in tally.verdicts
