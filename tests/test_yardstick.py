"""Is a detector's score what hand-made series give, and is the data set what its command makes?"""

from dataclasses import fields

import numpy as np
import pytest

from research import data_set, yardstick
from research.data_set import Record
from research.yardstick import counts, score


def series(changes: list[tuple[int, float]], name: str = "0") -> Record:
    levels = [[("s", 1, 2.0 if changes and place >= changes[0][0] else 1.0)] for place in range(6)]
    return Record(name, "b", "l", "q.Q.track_time", [name], "step", 0.01, list("abcdef"), levels, changes)


def test_counts_and_score_are_those_of_hand_made_series():
    assert counts(series([(3, 2.0)]), [3, 5]) == (1, 1, 0)
    assert counts(series([(3, 2.0)]), [2]) == (0, 1, 1)
    assert counts(series([]), []) == (0, 0, 0)
    assert score([series([(3, 2.0)], "0"), series([(3, 2.0)], "1")], {"0": [3, 5], "1": []}) == (0.5, 0.5, 0.5)


def test_a_setting_is_chosen_by_what_scores_best_on_other_series():
    records = [series([(3, 2.0)], str(i)) for i in range(40)]
    assert {one.fold for one in records} == set(range(data_set.FOLDS))
    lax, strict = ({one.id: places for one in records} for places in ([1, 3, 5], [3]))
    assert yardstick.chosen(records, {"lax": lax, "strict": strict}) == strict
    # right in one fold alone: no other fold tells that, so it is not chosen there
    lucky = {one.id: [3] if one.fold == 0 else [1] for one in records}
    said = yardstick.chosen(records, {"usual": lax, "lucky": lucky})
    assert all(said[one.id] == [1, 3, 5] for one in records if one.fold == 0)


def in_two_sessions(random: np.random.Generator, name: str) -> Record:
    """Of which the second makes every time a fifth slower; the releases are the first of the axis."""
    launches = []
    for place in range(7):
        sessions = ["a"] * (place < 4) + ["b"] * (place > 2)
        made = [(one, turn) for one in sessions for turn in (1, 2, 3)]
        launches.append([(one, turn, float(np.exp(random.normal(0.2 * (one == "b"), 0.005)))) for one, turn in made])
    return Record(name, "sessions l", "l", "q.Q.track_time", [name], "quiet", 0.005, list("abcdefg"), launches, [])


def test_others_read_levels_without_what_sessions_do_to_all_series(monkeypatch):
    read: dict[str, list[float]] = {}
    monkeypatch.setattr(yardstick, "outside", lambda levels: read.update(levels) or {})
    random = np.random.default_rng(3)
    said = yardstick.everyone([in_two_sessions(random, str(i)) for i in range(15)])
    assert all(max(of) / min(of) < 1.03 for of in read.values())
    assert not any(said["hud"]["5%"].values())
    assert not any(said["ours"]["its own"].values())


@pytest.mark.committed
def test_the_data_set_is_valid_and_its_readme_names_its_fields():
    records = data_set.read()
    assert len({one.id for one in records}) == len(records)
    assert {one.kind for one in records} == {"quiet", "step", "excursion", "A/A", "planted pair"}
    for one in records:
        assert len(one.launches) == len(one.releases)
        assert all(0 < place < len(one.releases) for place, _ in one.changes)
    readme = (data_set.DATA.parent / "README.md").read_text()
    assert [line.split("`")[1] for line in readme.splitlines() if line.startswith("| `")] == [
        field.name for field in fields(Record)
    ]


@pytest.mark.committed
def test_the_pairs_made_again_are_those_of_the_file():
    stored = [one for one in data_set.read() if one.kind in data_set.PAIRS.values()]
    for old, new in zip(stored, data_set.calibrated(), strict=True):
        assert data_set.line_of(Record(**{**vars(new), "id": old.id})) == data_set.line_of(old)
