"""Is it told right how the results of two releases differ: in their form, beyond rounding, within it, by chance, or not?"""

import json
import re
import struct
from typing import Any

import pytest
from msgspec import convert

from torch_history.analysis.results import results, sentences
from torch_history.analysis.series import history
from torch_history.measuring.upgrading.words import as_json, markdown, text
from torch_history.measuring.values import compare
from torch_history.store.launches import Case, Launch, Returned

from .processes import ROOT
from .test_launches import some_launch
from .test_upgrade import TAGS, Laboratory, asked, said

OLD, MIDDLE, NEW = "v2.9.0", "v2.10.1", "v2.11.0"


def row(digest: str = "a", dtype: str = "float32", shape: Any = (4, 3), strides: Any = (3, 1), **more: int) -> dict:
    return {"dtype": dtype, "shape": shape, "strides": strides, "digest": digest * 16, **more}


def told(*rows: dict, again: Any = (), **differences: Any) -> Returned:
    """`v2_9_0` stands for v2.9.0."""
    of = {name.replace("_", "."): found for name, found in differences.items()}
    return convert({"tensors": rows, "again": again, "differences": of}, Returned)


def launch(tag: str, returned: Returned, **more: Any) -> Launch:
    case = Case(("'scaled'", "''"), samples=(0.1,), returned=returned)
    return some_launch(tag, release=tag, benchmark="mine.Own.track_time", cases=(case,), **more)


A, B = row("a"), row("b")


@pytest.mark.parametrize(
    ("before", "now", "kind", "words"),
    [
        (told(row("")), told(row("", "bfloat16")), "of another dtype", "dtype float32 -> bfloat16"),
        (told(row("")), told(row("")), "the same in form, its numbers not compared", ""),
        (told(A), told(A, v2_9_0=[0.0]), "the same", ""),
        (told(A), told(B, v2_9_0=[1.2e-6]), "different within rounding", ""),
        (told(A), told(B, v2_9_0=[1.4e-6]), "DIFFERENT", "DIFFERENT by 1.4e-06 of its largest number (rounding: 1.3e-06)"),
        (told(A, v2_11_0=[0.5]), told(B), "DIFFERENT", "DIFFERENT by 0.5 of its largest number"),
        (told(A), told(row("b", "bfloat16"), v2_9_0=[0.0015]), "of another dtype", "dtype float32 -> bfloat16"),
        (told(A), told(row("b", "bfloat16"), v2_9_0=[0.02]), "DIFFERENT", "dtype float32 -> bfloat16; DIFFERENT by 0.02"),
        (told(A), told(row(strides=(1, 4)), v2_9_0=[0.0]), "of another layout", "strides (3, 1) -> (1, 4)"),
        (told(row(shape=(1, 3))), told(row(shape=(1, 3), strides=(9, 1)), v2_9_0=[0.0]), "the same", ""),
        (told(A), told(row("b", shape=(3, 4)), v2_9_0=[None]), "of another shape", "shape (4, 3) -> (3, 4)"),
        (told(A), told(A, A), "of another tensors", "tensors 1 -> 2"),
        (told(row(count=3)), told(A, B, row(count=1), v2_9_0=[0, 0.1, 0]), "DIFFERENT", "DIFFERENT by 0.1 of"),
        (told(A), told(B), "the same in form, its numbers not compared", ""),
        (told(A), told(B, again=[0.3], v2_9_0=[0.3]), "different at each call", ""),
        (told(A, again=[1e-7]), told(B, v2_9_0=[0.3]), "DIFFERENT", "DIFFERENT by 0.3"),
        (told(row("a", "int64")), told(row("b", "int64"), v2_9_0=[1e-9]), "DIFFERENT", "DIFFERENT by 1e-09"),
        (told(A), told(row("b", not_finite=2), v2_9_0=[2.0]), "DIFFERENT", "0 numbers were not finite, and 2 are"),
        (told(A), told(row("b", "numpy.float64"), v2_9_0=[1e-6]), "of another dtype", "dtype float32 -> numpy.float64"),
    ],
)  # fmt: skip
def test_result_is_judged_by_its_form_and_what_is_rounding_in_its_dtype(before, now, kind, words):
    (found,) = results(history([launch(OLD, before), launch(NEW, now)]), OLD, NEW)
    assert (found.kind, bool(found.changed)) == (kind, bool(words))
    assert words in found.sentence()
    table = (ROOT / "docs" / "results.md").read_text().partition("### Keys of a result\n")[2].partition("###")[0]
    assert list(found.as_data(())) == re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def test_since_which_release_is_told_from_stored_lines():
    stored = history(
        [
            *(launch("v2.8.1", told(A)), launch(OLD, told(B, v2_8_1=[1e-7])), launch(MIDDLE, told(B, v2_9_0=[0.0]))),
            launch(NEW, told(row("c", "float16"), v2_10_1=[0.01]), session="another"),
        ]
    )
    (found,) = results(stored, "v2.8.1", NEW)
    assert (found.difference, found.rounding, found.since) == (0.01, 1e-3, ((MIDDLE, NEW),))
    said = "dtype float32 -> float16; DIFFERENT by 0.01 of its largest number (rounding: 0.001)"
    assert found.sentence() == f"Result of mine scaled: {said}, between {MIDDLE} and {NEW}."
    assert found.sentence([MIDDLE, NEW]) == f"Result of mine scaled: {said}, since {NEW}."
    assert results(stored, NEW, OLD)[0].forms["dtype"] == ("float16", "float32")
    assert sentences(results(stored, OLD, MIDDLE)) == ["Of 1 result 1 is the same."]


def test_numbers_that_processes_kept_are_compared_and_removed(tmp_path):
    """3 of [1, 2, -4] and 5 are one row of two float32; differences by hand: 0.5 / 4, then 1 / 6, and what is not finite."""
    nan, inf = float("nan"), float("inf")
    kept: dict[str, list[float]] = {
        "0" * 16: [1, 2, -4, 1, 1, 5, 7, 7],
        "1" * 16: [1, 2.5, -4, 1, 1, 6, 7, nan],
        "2" * 16: [nan, 1, 1, nan, 1, 1, inf, 7],
        "3" * 16: [nan, 1, 1, nan, 1, 1, -inf, 7],
        "4" * 16: [0, 0],
    }
    for name, numbers in kept.items():
        (tmp_path / name).write_bytes(struct.pack(f"<{len(numbers)}d", *numbers))
    tensors = [row(shape=[3], strides=[1], count=2), row(shape=[2], strides=[1])]
    facts: dict[str, Any] = {
        f"v2.{i}.0": {"tensors": tensors, "items": [6, 2], "files": [name]} for i, name in enumerate(kept)
    }
    facts["v2.3.0"]["files"] = ["3" * 16, "2" * 16]
    compare(tmp_path, facts)
    assert facts["v2.0.0"]["differences"] == {}
    assert facts["v2.1.0"]["differences"] == {"v2.0.0": (0.167, 2.0)}
    assert facts["v2.2.0"]["differences"]["v2.1.0"] == (2.0, 2.0)
    assert facts["v2.3.0"]["differences"]["v2.2.0"] == facts["v2.3.0"]["again"] == (0.0, 2.0)
    assert facts["v2.4.0"]["differences"]["v2.0.0"] == (None, None)
    assert list(tmp_path.iterdir()) == []


def test_stored_line_comes_back_and_one_without_a_result_stays_as_it_was():
    with_it = launch(NEW, told(row(count=2, not_finite=1), B, again=[None, 1e-9], v2_9_0=[0.25, None]))
    line = with_it.to_json()
    assert Launch.from_json(line) == with_it
    assert json.loads(line)["cases"][0]["returned"]["tensors"][1] == {**B, "shape": [4, 3], "strides": [3, 1]}
    assert "returned" not in some_launch().to_json()
    assert not history([some_launch()]).returned


class Returning(Laboratory):
    """Releases of whose function `f` the result changes at some position, and no number else."""

    def __init__(self, at: int) -> None:
        super().__init__({"f": {}, "still": {}})
        self.at = at

    def _case(self, name: str, metric: str, tag: str) -> Case:
        case = super()._case(name, metric, tag)
        if metric == "peak_memory":
            return case
        is_new = name == "f" and TAGS.index(tag) >= self.at
        older = {one.replace(".", "_"): [0.25] for one in TAGS[: self.at]} if is_new else {}
        return Case(case.parameters, samples=case.samples, returned=told(B if is_new else A, **older))


@pytest.mark.parametrize("at", [1, 13, 29])
def test_upgrade_finds_the_release_since_which_a_result_differs(at):
    laboratory: Any = Returning(at)
    upgrade, found = asked(laboratory)
    assert found.rows == ()
    assert len(laboratory.installed) <= 7
    sentence = f"Result of mine f: DIFFERENT by 0.25 of its largest number (rounding: 1.3e-06), since {TAGS[at]}."
    assert f"\n{sentence}\nOf 2 results 1 is DIFFERENT, 1 is the same.\n" in text(found)
    assert f"- {sentence}".replace("_", "\\_") in markdown(found)
    document = json.loads(as_json(found))
    assert [one["sentence"] for one in document["results"]] == [sentence, ""]
    assert document["results"][0]["since"] == [[TAGS[at - 1], TAGS[at]]]
    assert document["answer"]["cards"][-1]["verdict"] == "Of 2 results 1 is DIFFERENT, 1 is the same."
    assert said(upgrade).is_open is False


@pytest.mark.parametrize(
    "wrong",
    [
        *({"digest": "a" * 15}, {"digest": "A" * 16}, {"dtype": "x" * 61}, {"dtype": "<b>"}, {"dtype": "a\n"}),
        *({"shape": [-1]}, {"shape": [2**60]}, {"shape": [0.5]}, {"shape": [1] * 65}, {"strides": [2**60]}),
        *({"count": 0}, {"not_finite": -1}),
    ],
)
def test_line_with_a_result_that_none_has_is_refused(wrong):
    line = json.loads(launch(NEW, told(A)).to_json())
    line["cases"][0]["returned"]["tensors"][0].update(wrong)
    with pytest.raises(ValueError, match=r"cases.*returned.*tensors"):
        Launch.from_json(json.dumps(line))


@pytest.mark.parametrize("number", ["NaN", "1e999", "2.1", "-0.1", '"1"', "true", "[]"])
def test_line_with_a_difference_that_none_has_is_refused(number):
    line = launch(NEW, told(A, v2_9_0=[0.125])).to_json()
    with pytest.raises(ValueError, match=r"\S"):
        Launch.from_json(line.replace("0.125", number))
