"""Is a detector's score what hand-made series give, and is the data set what its command makes?"""

from __future__ import annotations

import sys
from dataclasses import fields

import numpy as np
import pytest

from tools import yardstick
from tools.yardstick import Record, counts, score, wilson
from torch_history.analysis.series import History


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


def many(changes: list[tuple[int, float]], number: int) -> list[Record]:
    made = [vars(series(changes)) | {"id": str(i), "parameters": [str(i)]} for i in range(number)]
    return [Record(**one) for one in made]


def test_a_setting_is_chosen_by_what_scores_best_on_other_series() -> None:
    records = many([(3, 2.0)], 40)
    assert {one.fold for one in records} == set(range(yardstick.FOLDS))
    lax, strict = ({one.id: places for one in records} for places in ([1, 3, 5], [3]))
    assert yardstick.chosen(records, {"lax": lax, "strict": strict}) == strict
    # right in one fold alone: no other fold tells that, so it is not chosen there
    lucky = {one.id: [3] if one.fold == 0 else [1] for one in records}
    said = yardstick.chosen(records, {"usual": lax, "lucky": lucky})
    assert all(said[one.id] == [1, 3, 5] for one in records if one.fold == 0)


def test_a_setting_that_reports_nothing_is_best_where_nothing_changes() -> None:
    records = many([], 20)
    alarms, silent = ({one.id: places for one in records} for places in ([2], []))
    assert yardstick.chosen(records, {"alarms": alarms, "silent": silent}) == silent


def test_one_leads_only_where_the_interval_of_the_difference_says_so() -> None:
    records = many([(3, 2.0)], 20)
    right, wrong = ({one.id: places for one in records} for places in ([3], [2]))
    nearly = right | {"0": [2]}
    said = {
        words: next(yardstick.led(records, {"ours": mine, "hud": other}, "level"))
        for words, mine, other in (("lead", right, wrong), ("behind", wrong, right), ("equal", nearly, right))
    }
    assert "this program leads" in said["lead"]
    assert "hud leads" in said["behind"]
    assert "nobody is sure to lead" in said["equal"]


def test_the_rule_of_neighbours_and_asv_are_tried_at_each_threshold() -> None:
    data = yardstick.Data([series([(3, 2.0)])])
    for name, thresholds in (("hud", yardstick.HUD_GRID), ("asv", yardstick.ASV_GRID)):
        found = yardstick.settings(name, data, None)
        assert list(found) == [f"{at:.0%}" for at in thresholds]
        assert all(places == {"0": [3]} for places in found.values())
    with pytest.raises(ValueError, match="--others"):
        yardstick.settings("pelt", data, None)


def in_two_sessions(random: np.random.Generator, name: str) -> Record:
    """Of which the second makes every time a fifth slower; the releases are the first of the axis."""
    launches = []
    for place in range(7):
        sessions = ["a"] * (place < 4) + ["b"] * (place > 2)
        made = [(one, turn) for one in sessions for turn in (1, 2, 3)]
        launches.append([(one, turn, float(np.exp(random.normal(0.2 * (one == "b"), 0.005)))) for one, turn in made])
    return Record(name, "sessions l", "l", "q.Q.track_time", [name], "quiet", 0.005, list("abcdefg"), launches, [])


def test_others_read_levels_without_what_sessions_do_to_all_series() -> None:
    random = np.random.default_rng(3)
    data = yardstick.Data([in_two_sessions(random, str(i)) for i in range(15)])
    assert all(max(of) / min(of) < 1.03 for of in data.levels.values())
    assert not any(yardstick.settings("hud", data, None)["5%"].values())
    assert not any(yardstick.ours(data).values())


def test_made_series_have_the_effects_that_their_batch_names() -> None:
    random = np.random.default_rng(4)
    record = in_two_sessions(random, "0")
    history = History({record.series: yardstick.as_history(record, list("abcdefg"))})
    spread = {}
    for kind, effects in {"none": yardstick.Effects(), "large": yardstick.Effects(session=1.0)}.items():
        made = [one for _ in range(20) for one in yardstick.batch(f"{kind} l", history, {}, effects, random)]
        quiet = [one for one in made if not one.changes]
        every = [[launch for of in one.launches for launch in of] for one in quiet]
        sessions = [[np.mean([n for s, _, n in of if s == name]) for name in "ab"] for of in every]
        spread[kind] = np.std(np.diff(np.log(sessions)))
    assert spread["none"] < 0.02
    assert 0.7 < spread["large"] < 2.5


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
