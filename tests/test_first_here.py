"""What a person has just measured comes first, and where there is none of what was asked it is said whose results are
shown."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from torch_history.analysis.compare import choose_machine
from torch_history.cli import main
from torch_history.releases import repository  # noqa: F401  asv finds the axis by it

from .lab import MACHINE, write_lab

OWN = "a-box-of-ones-own"


@pytest.fixture(scope="module")
def both(lab, tmp_path_factory) -> Path:
    """A folder that commands take for a checkout, with the results of both machines."""
    folder, own = (tmp_path_factory.mktemp(name) for name in ("both", "own"))
    shutil.copytree(lab, folder, dirs_exist_ok=True)
    results = write_lab(own, {"release-py3.11": ("2.14.1", "2.15.0")}, {"intersection": ("small",)}, [OWN])
    shutil.copytree(results / OWN, folder / "results" / OWN)
    return folder


@pytest.fixture
def command(both, monkeypatch) -> Callable[..., Result]:
    monkeypatch.chdir(both)
    monkeypatch.setenv("HOME", str(both))
    monkeypatch.setenv("TORCH_HISTORY_MACHINE", OWN)
    return lambda *words: CliRunner().invoke(main, words)


def test_own_results_are_compared_first_and_said_to_be_own(command):
    answer = command("compare", "2.14.1", "2.15.0")
    assert f"Results of {OWN}, this machine: 2 releases." in answer.stderr
    assert f"\n{OWN}, release-py3.11\n" in answer.stdout


@pytest.mark.parametrize(
    ("words", "lacks"),
    [
        (("2.14.1", "2.15.0", "--question", "selection"), "of selection on v2.14.1 and v2.15.0 in release-py3.11"),
        (("2.0.1", "2.15.0"), "on v2.0.1 and v2.15.0 in release-py3.11"),
        (("2.1.0", "2.5.1", "--lane", "3.9"), "on v2.1.0 and v2.5.1 in release-py3.9"),
    ],
)
def test_what_this_machine_lacks_is_shown_of_another_that_is_named(command, words, lacks):
    answer = command("compare", *words)
    assert answer.exit_code == 0, answer.output
    assert f"Results of {MACHINE}, which has the longest history: " in answer.stderr
    assert f"This machine, {OWN}, has none {lacks}." in answer.stderr
    assert f"\n{MACHINE}, release-py3" in answer.stdout


def test_a_question_in_one_of_two_releases_is_not_had(both):
    chosen = choose_machine(both / "results", None, OWN, ["v2.14.1"], questions=["intersection", "selection"])
    assert chosen == MACHINE
    assert choose_machine(both / "results", None, OWN, questions=["intersection"]) == OWN
