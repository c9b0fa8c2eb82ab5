"""Is a certificate from anywhere read as what it says, and left out with a sentence where it cannot be?"""

import json
from pathlib import Path
from typing import Any

import pytest

from torch_history.measuring.kit.check import check
from torch_history.store.certificates import certificates_in

from .lab import AXIS

GPU = "NVIDIA H100 80GB HBM3"

TOLD: dict[str, Any] = {
    "here": {"torch": "2.11.0+cu130", "cuda": "13.0", "gpu": GPU, "capability": "sm_90", "multiprocessors": 132},
    "card": "hopper",
    "agreed": ["intersection eager small", "saved_tensors plain product, no gradient small"],
    "differences": [
        {"case": "intersection scripted small", "what": "waits", "gpu": 1, "recorder": 2},
        {"case": "intersection scripted small", "what": f"kernel {'x' * 500}", "gpu": 1, "recorder": 2},
    ],
    "left_out": {"selection mask vector 1 % x 1": "No time was left."},
    "of a newer version": {"deep": [1]},
}


def write(results: Path, told: Any, name: str = "v2.11.0-nvidia-h100") -> Path:
    path = results / "certificates" / f"{name}.certificate"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(told if isinstance(told, str) else json.dumps(told))
    return path


def test_a_certificate_says_which_cases_are_equal_and_which_differ(tmp_path):
    write(tmp_path, {**TOLD, "agreed": 2 * TOLD["agreed"]})
    (found,) = certificates_in(tmp_path)
    assert (found.release, found.here.gpu, found.card) == ("v2.11.0", GPU, "hopper")
    assert found.agreed == TOLD["agreed"]
    assert found.different == {"intersection scripted small": {"waits", "kernels"}}
    assert found.words == f"a real {GPU}'s, certificate of v2.11.0"


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("{", "it is no JSON"),
        ("[]", "it is no JSON object"),
        ({**TOLD, "here": []}, "Expected `object`, got `array` - at `$.here`"),
        ({**TOLD, "here": {**TOLD["here"], "torch": "newest"}}, "`$.here.torch`"),
        ({**TOLD, "here": {**TOLD["here"], "gpu": "x" * 200}}, "`$.here.gpu`"),
        ({**TOLD, "here": {**TOLD["here"], "gpu": "a\nb"}}, "- at `$.here.gpu`"),
        ({**TOLD, "agreed": [["intersection"]]}, "got `array` - at `$.agreed[0]`"),
        ({**TOLD, "agreed": ["intersection"]}, "- at `$.agreed[0]`"),
        ({**TOLD, "differences": ["intersection eager small"]}, "`$.differences[0]`"),
        ({**TOLD, "differences": [{"what": "waits"}]}, "missing required field `case`"),
        ({**TOLD, "agreed": ["intersection scripted small"]}, "that all agrees and that something differs"),
    ],
)
def test_a_damaged_certificate_is_left_out_with_a_sentence_and_found_by_check(told, why, tmp_path, warned):
    bad = write(tmp_path, told, f"bad-{abs(hash(why))}")
    write(tmp_path, TOLD)
    assert [found.release for found in certificates_in(tmp_path)] == ["v2.11.0"]
    (sentence,) = warned
    assert why in sentence
    assert bad.name in sentence
    (problem,) = check(tmp_path, AXIS).problems
    assert why in problem
    assert bad.name in problem


def test_check_asks_for_a_release_of_the_axis_and_for_nothing_else_in_the_folder(tmp_path):
    write(tmp_path, {**TOLD, "here": {**TOLD["here"], "torch": "9.9.9"}})
    (tmp_path / "certificates" / "run.sh").write_text("")
    problems = check(tmp_path, AXIS).problems
    assert len(problems) == 2
    assert "run.sh" in problems[0]
    assert "it is no certificate" in problems[0]
    assert "there is no release v9.9.9 on the axis" in problems[1]


def test_links_are_not_followed(tmp_path, warned):
    elsewhere = write(tmp_path / "elsewhere", TOLD)
    folder = tmp_path / "results" / "certificates"
    folder.mkdir(parents=True)
    (folder / "link.certificate").symlink_to(elsewhere)
    assert certificates_in(tmp_path / "results") == []
    assert "it is a link" in warned[0]
    folder.joinpath("link.certificate").unlink()
    folder.rmdir()
    folder.symlink_to(elsewhere.parent)
    assert certificates_in(tmp_path / "results") == []
