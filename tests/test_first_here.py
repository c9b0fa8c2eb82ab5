"""What a person has just measured comes first, and where there is none of what was asked it is said whose results are shown.

Beside the results of tests/lab.py lie those of a machine of one's own: two releases and one question, without a change.
"""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from asv.commands.compare import Compare
from asv.config import Config
from asv.machine import Machine
from click.testing import CliRunner, Result

from torch_history.analysis.compare import choose_machine
from torch_history.cli import main
from torch_history.measuring import machine_records
from torch_history.releases import repository  # noqa: F401  asv finds the axis by it

from . import lab as laboratory
from .lab import MACHINE, write_lab

OWN = "a-box-of-ones-own"


@pytest.fixture(scope="module")
def both(lab: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that commands take for a checkout, with the results of both machines."""
    folder, own = (tmp_path_factory.mktemp(name) for name in ("both", "own"))
    shutil.copytree(lab, folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laboratory, "MACHINE", OWN)
        patch.setattr(laboratory, "RELEASES", {"release-py3.11": ("2.14.1", "2.15.0")})
        patch.setattr(laboratory, "SIZES", {"intersection": ("small",)})
        shutil.copytree(write_lab(own) / OWN, folder / "results" / OWN)
    return folder


@pytest.fixture
def command(both: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
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


def test_where_nothing_changed_here_the_longest_history_follows_under_its_name(command):
    lines = command("regressions", "--largest").stdout.splitlines()
    assert lines[0] == f"On {OWN} in release-py3.11: nothing."
    assert f"Results of {MACHINE}, which has the longest history:" in lines
    assert lines[-1].startswith(f"On {MACHINE} in release-py3.11: ")
    named = command("regressions", "--largest", "--machine", OWN).stdout.splitlines()
    assert named == lines[:1], "who names a machine is told of that one"


@pytest.mark.parametrize(("here", "machine"), [(OWN, OWN), ("a-machine-without-results", MACHINE)])
def test_asv_compares_on_this_machine_if_it_has_results(both, monkeypatch, capsys, here, machine):
    monkeypatch.chdir(both)
    monkeypatch.setattr(Machine, "hardcoded_machine_name", here)
    conf = Config.load("asv.conf.json")
    machine_records._compare_on_one(Compare, conf, "v2.14.1", "v2.15.0", factor=1.1)
    table = capsys.readouterr().out
    assert ("selection.Selection" in table) == (machine == MACHINE)
    assert "intersection.Intersection.track_time('eager', 'small')" in table


@pytest.fixture(scope="module")
def own_site(
    both: Path, tmp_path_factory: pytest.TempPathFactory, publish: Callable[..., subprocess.CompletedProcess[str]]
) -> tuple[Path, str]:
    """The site as the owner of the machine publishes it, and what the command said."""
    folder = tmp_path_factory.mktemp("own site") / "html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_HISTORY_MACHINE", OWN)
        answer = publish(folder, "--results-dir", str(both / "results"))
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return folder, answer.stdout


def test_publish_says_that_the_site_opens_on_this_machine(own_site):
    html, said = own_site
    assert f"It opens on the newest results, those of this machine, {OWN}, first." in said
    index = json.loads((html / "data" / "index.json").read_text())
    assert index["here"] == OWN
    assert [lane["machine"] for lane in index["lanes"]] == [OWN, MACHINE, MACHINE]
    assert json.loads((html / "asv" / "index.json").read_text())["params"]["machine"] == [OWN, MACHINE]
