"""Has every variant and size words of code, and are their numbers the workload's?"""

import json
import re

import pytest

from torch_history.analysis.labels import explained, labels
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


def test_a_sentence_ends_with_the_labels_of_what_it_names_first() -> None:
    say = explained()
    series = Series("", "selection.Selection.track_time", ("'cpp_mask'", "'rows 99 % x 100'"))
    words = "cpp_mask: `x.index({mask})` in C++; rows 99 % x 100: 99 % of 5,000 rows, 100 times"
    assert say(f"{series.words}: SLOWER.", series.names) == f"{series.words}: SLOWER. ({words}.)"
    assert say("Once more.", series.names) == "Once more."
    assert say("Another.", [("selection", "mask"), *series.names]) == "Another. (mask: `x[mask]`.)"
    assert say("One of mine.", [("mine", "mask"), ("selection", "unknown")]) == "One of mine."
