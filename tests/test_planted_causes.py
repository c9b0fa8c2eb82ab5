"""Does `explain` name what was planted into a real release, and nothing in the release itself?"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from torch_history.explaining import counting
from torch_history.explaining.explanation import Explanation, Found
from torch_history.explaining.launching import Side, Subject
from torch_history.store.causes import NOT_LOOKED_INTO

from .processes import ROOT
from .test_releases import install

WORKLOAD = Path(__file__).with_name("planted") / "call.py"

PLACES = {
    "operator": ("aten::relu", "aten::clamp_min", "slow_relu", "clamp"),
    "loop": ("release.py checks",),
    "copy": ("aten::copy_", "aten::clone", "Tensor.clone", "release.py entered", "copy", "memcpy", "memmove"),
}
"""Cause in tests/planted/release.py -> parts of the names of the places where its time may go."""


@pytest.fixture(scope="module")
def python() -> Path:
    """The newest release, installed where it is not."""
    install("v2.15.0", "3.11")
    return ROOT / "env" / "v2.15.0-py3.11" / "bin" / "python"


def explained(python: Path, new: Mapping[str, str], folder: Path) -> Found:
    """What is said of the planted call where the new release has these variables; no lever is pulled."""
    subject = Subject(ROOT, str(WORKLOAD), "mixed", "one", "time")
    sides = Side("v1.0.0", python, {}), Side("v2.0.0", python, new)
    return Explanation(subject, sides, [], folder, lambda words: None).explain()


@pytest.mark.alone
@pytest.mark.releases
@pytest.mark.parametrize("cause", PLACES)
def test_planted_place_is_found_on_a_real_release(python, cause, tmp_path):
    found = explained(python, {"PLANTED_CAUSE": cause}, tmp_path)
    words = found.words.partition("; of ")[0].replace(", with what it calls,", "")
    held = [place.name for place in found.places if f"{place.name} holds " in words]
    assert found.verdict in ("CAUSE", "PART"), found.words
    assert any(part in words for part in PLACES[cause]), found.words
    assert all(any(part in name for part in PLACES[cause]) for name in held), found.words


def left(python: Path, *causes: str) -> Found:
    old, new = (Side(f"v{i}.0.0", python, {"PLANTED_CAUSE": cause}) for i, cause in enumerate(causes))
    subject = Subject(ROOT, str(WORKLOAD), "mixed", "one", "kept_objects")
    return counting.explain(subject, (old, new), [], lambda words: None)


@pytest.mark.releases
@pytest.mark.parametrize(("of", "what"), [("tensor", "1 Tensor of float32 (256, 256)"), ("dict", "1 dict and 1 list")])
def test_what_calls_leave_is_found_on_a_real_release(python, of, what):
    line = WORKLOAD.with_name("release.py").read_text().partition("KEPT.append")[0].count("\n") + 1
    made = f"{what}, made at release.py:{line}, and"
    assert left(python, "nothing", of).words == f"because each call leaves {made} none before"
    assert left(python, of, "nothing").words == f"because each call left {made} leaves none now"
    assert left(python, of, of).verdict == "UNKNOWN"


@pytest.mark.alone
@pytest.mark.releases
def test_real_release_has_no_cause_against_itself(python, tmp_path):
    found = explained(python, {"PLANTED_CAUSE": "nothing"}, tmp_path)
    assert found.verdict in NOT_LOOKED_INTO, found.words
