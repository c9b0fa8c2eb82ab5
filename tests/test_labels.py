"""Has every variant and size words of code, and are their numbers the workload's?"""

import json
import re

import pytest

from torch_history.analysis.labels import explained, labels, named
from torch_history.analysis.series import Series

from .processes import ROOT

LISTED = json.loads((ROOT / "results" / "benchmarks.json").read_text(encoding="utf-8"))
PARAMS = {name.partition(".")[0]: of["params"] for name, of in LISTED.items() if isinstance(of, dict) and of["params"]}


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+", re.sub(r"(?<=\d)[,_](?=\d)", "", text)))


@pytest.mark.parametrize("question", PARAMS)
def test_every_variant_and_size_has_a_label_whose_numbers_are_the_workloads(question):
    variants, sizes = ([each.strip("'") for each in of] for of in PARAMS[question])
    of = labels()[question]
    assert set(of["variants"]) == set(variants)
    assert set(of["sizes"]) == set(sizes)
    known = numbers((ROOT / "workloads" / f"{question}.py").read_text(encoding="utf-8"))
    for name, words in (*of["variants"].items(), *of["sizes"].items()):
        assert numbers(words) <= known | numbers(name), name


def test_a_series_is_named_in_words_of_code_and_one_without_a_label_by_its_identifiers() -> None:
    known = Series("", "selection.Selection.track_time", ("'take_reused'", "'rows 99 % x 100'"))
    assert named(known) == "`torch.take(x, index)`, index made once (99 % of 5,000 rows, 100 times)"
    assert named(Series("", "mine.Own.track_time", ("'step'", "'large'"))) == "step (large)"
    assert named(Series("", "mine.Own.track_time", ())) == "mine"


def test_an_identifier_has_its_label_where_it_stands_first_and_other_words_are_left_alone() -> None:
    told = explained()
    size = "rows 99 % x 100"
    assert told(f"v2.1.0: selection time, cpp_mask {size}: SLOWER.") == (
        f"v2.1.0: selection time, cpp_mask {size} (`x.index({{mask}})` in C++; 99 % of 5,000 rows, 100 times): SLOWER."
    )
    assert told(f"selection time, mask {size}: SAME.") == f"selection time, mask {size} (`x[mask]`): SAME."
    twice = "selection peak memory, mask and where_product: 2 times more in 2 cases."
    assert told(twice) == twice.replace("product", "product (`x * mask`)")
    assert told("selection mask vector 1 % x 1: BROKE: no kernel (time, operators).").startswith(
        "selection mask vector 1 % x 1 (1 % of 80,000 numbers, once): BROKE"
    )
    said = "Against `take_reused`, `eager` takes 0.10 (vector 50 % x 1, 0.10 to 0.11) times as long."
    assert told(said) == (
        "Against `take_reused` (`torch.take(x, index)`, index made once), `eager` takes 0.10 (vector 50 % x 1, 50 % of "
        "80,000 numbers, once; 0.10 to 0.11) times as long."
    )
    for other in ("a selection by mask, one of mine", "mine time, mask small: SLOWER", "selection time, masked: SAME"):
        assert explained()(other) == other
