"""Is a detector's score what hand-made series give, and is the data set what its command makes?"""

from __future__ import annotations

import sys
from dataclasses import fields

import numpy as np
import pytest

from tools import yardstick
from tools.yardstick import Record, counts, score, wilson


def series(changes: list[tuple[int, float]], judged: list[int] | None = None) -> Record:
    levels = [[("s", 1, 2.0 if changes and place >= changes[0][0] else 1.0)] for place in range(6)]
    return Record("0", "b", "l", "q.Q.track_time", [], "step", 0.01, list("abcdef"), levels, changes, judged)


def test_counts_and_score_are_those_of_hand_made_series() -> None:
    assert counts(series([(3, 2.0)]), [3, 5]) == (1, 1, 0)
    assert counts(series([(3, 2.0)]), [2]) == (0, 1, 1)
    assert counts(series([]), []) == (0, 0, 0)
    assert counts(series([(3, 2.0)], judged=[3]), [1, 3]) == (1, 0, 0)
    assert score(np.array([[1, 1, 0], [0, 0, 1]])) == (0.5, 0.5, 0.5)


def test_wilson_is_the_published_interval() -> None:
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-3)


def test_hud_compares_neighbours() -> None:
    assert yardstick.hud([1.0, 1.04, 1.2, 1.2], 0.05) == [2]


def test_others_are_shown_at_the_strictness_that_scores_best() -> None:
    records = [series([(3, 2.0)])]
    lax, strict = {"0": [1, 3, 5]}, {"0": [3]}
    said = {"ours": {"0": [1, 3]}}
    *_, row = yardstick.best_of(records, said, {"hud": {"5%": lax, "7%": strict}, "pelt": {"as usual": lax}})
    assert row == "| 1 to 3 % | 66.7% | 100.0% (7%) | 50.0% (as usual) |"


def test_the_rule_of_neighbours_is_tried_at_each_threshold() -> None:
    strict = yardstick.grid([series([(3, 2.0)])], None)
    assert list(strict["hud"]) == [f"{at:.0%}" for at in yardstick.HUD_GRID]
    assert all(places == {"0": [3]} for places in strict["hud"].values())


def test_a_command_gets_no_labels_and_must_answer_every_series(tmp_path) -> None:
    program = tmp_path / "detector.py"
    program.write_text(
        "import json, sys\nfor line in sys.stdin:\n    one = json.loads(line)\n"
        "    assert not one.keys() & {'kind', 'noise', 'changes', 'judged'}\n    print([3])\n"
    )
    assert yardstick.command(f"{sys.executable} {program}", [series([(3, 2.0)])]) == {"0": [3]}
    program.write_text("")
    with pytest.raises(ValueError, match="one list of positions per series"):
        yardstick.command(f"{sys.executable} {program}", [series([])])


@pytest.mark.committed
def test_the_data_set_is_valid_and_its_readme_names_its_fields() -> None:
    records = yardstick.read()
    assert len({one.id for one in records}) == len(records)
    assert {one.kind for one in records} == {"quiet", "step", "excursion", "A/A", "planted pair", "replicated"}
    for one in records:
        assert len(one.launches) == len(one.releases)
        assert all(0 < place < len(one.releases) for place, _ in one.changes)
    readme = (yardstick.DATA.parent / "README.md").read_text()
    assert [line.split("`")[1] for line in readme.splitlines() if line.startswith("| `")] == [
        field.name for field in fields(Record)
    ]


@pytest.mark.committed
def test_the_pairs_made_anew_are_those_of_the_file() -> None:
    stored = [one for one in yardstick.read() if one.kind in ("A/A", "planted pair")]
    for old, new in zip(stored, yardstick.calibrated(), strict=True):
        assert yardstick.line_of(Record(**{**vars(new), "id": old.id})) == yardstick.line_of(old)
