"""Is the right cause found of a changed number of bytes or operators? What launches answer is made here, so it is known."""

import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torch_history.explaining import counting
from torch_history.explaining.counting import table
from torch_history.explaining.explanation import Found
from torch_history.explaining.launching import CannotExplain, Side, Subject
from torch_history.explaining.levers import Lever
from torch_history.explaining.places import LEFT

from .test_explain import SIDES

FUSER = Lever("fuser off", "TorchScript's fuser off", "of what TorchScript fuses", "", set=("fuser_off",))
COLLECTOR = Lever("collector off", "the collector off", "of the collector", "", set=("collector_off",))

Rows = dict[str, dict[str, Any]]

UNFUSED: Rows = {
    "aten::maximum": {"operators": 2, "allocations": 2, "peak_memory": 120},
    "aten::sub": {"operators": 2, "allocations": 2, "peak_memory": 120},
}
FUSED: Rows = {"fused_max_sub": {"allocations": 1, "peak_memory": 60}}


def explained(
    old: Rows, new: Rows, metric: str = "peak_memory", wander: int = 0, levers: tuple[Lever, ...] = (FUSER, COLLECTOR)
) -> Found:
    """Of launches that count the rows of their side, or under the fuser lever UNFUSED on both."""
    opened = itertools.count(1)

    def open(side: Side, subject: Subject) -> Any:
        number, place = next(opened), SIDES.index(side)

        def ask(step: Mapping[str, Any]) -> dict[str, Any]:
            rows = UNFUSED if "fuser_off" in step.get("set", ()) else (old, new)[place]
            summed = {metric: sum(row.get(metric, 0) for row in rows.values()) for metric in counting.COUNTED}
            counts = {**summed, "rows": rows, "peak_memory": summed["peak_memory"] + wander * number}
            facts = {"environment": {"torch": str(place)}, "commit": f"{place:040}"}
            others: dict[str, dict[str, Any]] = {"facts": facts, "traces": {"traces": ["TorchScript"]}}
            return others.get(step["do"], counts)

        return SimpleNamespace(ask=ask, close=lambda: None)

    subject = Subject(Path(), "question", "variant", "small", metric)
    return counting.explain(subject, SIDES, levers, lambda words: None, open)


def test_lever_that_makes_both_count_alike_is_the_cause() -> None:
    found = explained(FUSED, UNFUSED)
    gone = "because of what TorchScript fuses: with TorchScript's fuser off 100 % of the difference is gone"
    assert (found.verdict, found.words, found.ratio.ratio) == ("CAUSE", gone, 4.0)
    levers = [("fuser off", "CAUSE"), ("collector off", "CLEARED")]
    assert [(lever.name, lever.verdict) for lever in found.levers] == levers


def test_operator_that_takes_more_is_the_cause() -> None:
    more = {**UNFUSED, "aten::copy_": {"operators": 1, "allocations": 1, "peak_memory": 60}}
    for metric, number in (("peak_memory", 60), ("allocations", 1), ("operators", 1)):
        found = explained(UNFUSED, more, metric)
        assert found.verdict == "CAUSE"
        assert "aten::copy_ holds 100 % of the difference (calls: 1, before: 0)" in found.words
        assert (found.places[0].name, found.places[0].new - found.places[0].old) == ("aten::copy_", number)


def test_operator_that_is_new_and_calls_the_one_that_takes_the_bytes_is_named() -> None:
    within = {"operators": 1, "callers": {"aten::_safe_softmax": 1}}
    softmax: Rows = {"aten::_safe_softmax": {"operators": 1}, "aten::eq": within}
    where = {**within, "allocations": 1, "peak_memory": 60}
    found = explained(UNFUSED, {**UNFUSED, **softmax, "aten::where": where}, levers=())
    assert found.words.startswith("because aten::where holds 100 % of the difference")
    assert found.words.endswith("; aten::_safe_softmax is new")


def test_where_bytes_are_is_no_cause_if_another_operator_is_no_longer_called() -> None:
    """Gradients that were set to zero lived before the call; those that are set to None are made anew in it."""
    made: dict[str, Any] = {"aten::mm": {"operators": 2, "allocations": 2, "peak_memory": 10}}
    zeroed = {**made, "aten::zero_": {"operators": 9, "callers": {"aten::zeros": 1}}, "aten::zeros": {"operators": 1}}
    found = explained(zeroed, {"aten::mm": {**made["aten::mm"], "peak_memory": 100}}, levers=())
    assert found.verdict == "PART"
    assert found.words == (
        "in part because aten::zero_ and aten::zeros are no longer called; the difference is in aten::mm (100 %)"
    )


def test_rows_add_up_to_the_difference() -> None:
    old = {f"aten::op{number}": {"peak_memory": number} for number in range(40)}
    new = {f"aten::op{number}": {"peak_memory": 2 * number} for number in range(40)}
    rows = table("peak_memory", old, new)
    assert len(rows) == 13
    assert rows[-1].name == LEFT
    assert sum(row.new - row.old for row in rows) == sum(range(40))
    assert sum(row.old for row in rows) == sum(range(40))
    assert {row.verdict for row in rows} <= {"UNKNOWN", "CLEARED"}


def test_equal_counts_are_no_difference() -> None:
    found = explained(UNFUSED, UNFUSED)
    assert (found.verdict, found.words) == ("NOT THERE", "the difference is not there: both count 240")


BOTH: Rows = {"mine.py:9": {"kept_objects": 1, "of dict": 1, "at mine.py:9": 64}}
TENSOR = {"kept_objects": 1, "of Tensor of float32 (1000,)": 1, "resident_growth": 4450, "at torch/x.py:3": 4450}
MORE: Rows = {**BOTH, "mine.py:12": TENSOR}
TWICE: Rows = {"mine.py:9": {"kept_objects": 2, "of dict": 2, "at mine.py:9": 128}}
LEAKS: Rows = {**BOTH, "what no line of Python made": {"kept_objects": 9}}
AT = "made at mine.py:12 (torch/x.py:3)"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (BOTH, MORE, f"because each call leaves 1 Tensor of float32 (1000,), {AT}, and none before"),
        (MORE, BOTH, f"because each call left 1 Tensor of float32 (1000,), {AT}, and leaves none now"),
        (BOTH, TWICE, "because each call leaves 2 dicts, made at mine.py:9, and 1 dict before"),
        (BOTH, MORE, f"because each call leaves 4,450 B with 1 Tensor of float32 (1000,), {AT}, and none before"),
        (BOTH, LEAKS, "cause unknown; no line of Python made what differs"),
        (MORE, MORE, "cause unknown; asked again, calls leave as much in both"),
    ],
)
def test_what_one_release_alone_leaves_is_told(old: Rows, new: Rows, words: str) -> None:
    found = explained(old, new, "resident_growth" if " B with " in words else "kept_objects")
    assert (found.verdict, found.words, found.levers) == ("UNKNOWN" if "unknown" in words else "CAUSE", words, [])


@pytest.mark.parametrize(
    ("new", "wander", "words"),
    [(FUSED, 1, "Launches of v1.0.0 count 241 and 242"), ({}, 0, "v2.0.0 counts 0, so there ")],
)
def test_a_count_that_varies_or_is_none_is_refused(new: Rows, wander: int, words: str) -> None:
    with pytest.raises(CannotExplain, match=re.escape(words)):
        explained(UNFUSED, new, wander=wander)
