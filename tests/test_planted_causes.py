"""Is what `explain` names held against what was planted, and is it found on a real release?"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from research.planted_causes import PLANTS, Plant, explained, is_right, names
from torch_history.explaining.explanation import Found
from torch_history.store.causes import NOT_LOOKED_INTO, Place, Pulled

ROOT = Path(__file__).resolve().parents[1]
BY_NAME = {plant.name: plant for plant in PLANTS}


def found(verdict: Any, words: str) -> Found:
    levers = [Pulled("narrow", "a lever", "", verdict=verdict)]
    place = Place("operator", "aten::planted", 0.0, 1.0, 0.9, 1.1)
    return Found(verdict=verdict, words=words, levers=levers, places=[place])


@pytest.mark.parametrize(
    ("verdict", "words", "planted", "right"),
    [
        ("CAUSE", "because of it: with a lever 90 % of the difference is gone", "narrow", True),
        ("CAUSE", "because of it: with a lever 90 % of the difference is gone", "aten::planted", False),
        ("CAUSE", "because aten::planted holds 99 % of the difference", "aten::planted", True),
        (
            "CAUSE",
            "because of it: with a lever 90 % of the difference is gone, and aten::planted holds 99 % of the difference",
            "aten::planted",
            False,
        ),
        ("UNKNOWN", "cause unknown; the time went to aten::planted (70 %)", "aten::planted", None),
    ],
)
def test_verdict_is_right_where_all_that_it_names_was_planted(
    verdict: Any, words: str, planted: str, right: bool | None
) -> None:
    of = found(verdict, words)
    assert is_right(of, Plant("a", "a cause", (planted,), {})) == right, names(of)


# --- a real release


@pytest.fixture(scope="module")
def python() -> Path:
    """The newest release, installed where it is not."""
    code = (
        "from pathlib import Path; from asv.repo import get_repo;"
        "from torch_history.measuring.session import load_suite;"
        "from torch_history.releases.environments import ReleaseEnvironment;"
        "conf, axis = load_suite(Path.cwd());"
        "ReleaseEnvironment(conf, '3.11', {}, {}).install_project(conf, get_repo(conf), 'v2.15.0')"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    return ROOT / "env" / "v2.15.0-py3.11" / "bin" / "python"


@pytest.mark.alone
@pytest.mark.releases
@pytest.mark.parametrize("name", ["operator", "loop", "copy"])
def test_planted_place_is_found_on_a_real_release(python: Path, name: str) -> None:
    """Four times as much of a cause as `python -m research.planted_causes` plants: tests run beside other work."""
    plant = replace(BY_NAME[name], new={**BY_NAME[name].new, "PLANTED_TIMES": "4"})
    of = explained(plant, python, 0.0)
    assert is_right(of, plant), of.words


@pytest.mark.alone
@pytest.mark.releases
def test_real_release_has_no_cause_against_itself(python: Path) -> None:
    of = explained(BY_NAME["nothing"], python, 0.0)
    assert of.verdict in NOT_LOOKED_INTO, of.words
