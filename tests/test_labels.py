"""Has every variant and size words of code, and are their numbers the workload's?"""

import json
import re

import pytest

from torch_history.analysis.labels import labels

from .processes import ROOT

pytestmark = pytest.mark.committed

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
