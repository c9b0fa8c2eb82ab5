"""Do docs/verdicts.md and docs/commands.md have the constants of the code, and is the first short enough to be one page?"""

import re

import pytest

from contract import metrics
from torch_history.analysis import levels, steps, verdicts

from .processes import ROOT

PAGE = (ROOT / "docs" / "verdicts.md").read_text(encoding="utf-8")
SAID = re.findall(r"`([A-Z_]+)=([\d.e-]+)`", PAGE)

ELSEWHERE = {
    **{"BOUND": "what is printed of an interval that says nothing", "LEAST_STEP": "held with the rounding"},
    **{"STEP": "held with the rounding", "STEPS": "held with the rounding"},
    **{"ROUNDING": "what is taken for an error of the machine's arithmetic"},
    **{"CONFIDENCE": "follows from ERROR_RATE", "NO_GROWTH": "makes a ratio of evidence"},
}
"""Constants of these modules that the page does not name, and why."""


def constants() -> dict[str, float]:
    """Every number by which levels, verdicts, steps and their margins are made."""
    modules = (metrics, levels, verdicts, steps)
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int | float)
    }


@pytest.mark.parametrize(("name", "number"), SAID)
def test_a_constant_in_the_page_is_that_of_the_code(name, number):
    assert float(number) == constants()[name]


def test_the_page_names_every_constant():
    assert {name for name, _ in SAID} == constants().keys() - ELSEWHERE.keys()


def test_usual_deviations_and_the_rounding_in_the_page_are_those_of_the_code():
    words = " ".join(PAGE.split())
    assert f"rounded up to `{verdicts.LEAST_STEP}exp({verdicts.STEP}j)`, j below {verdicts.STEPS}" in words
    for of, usual in (("are", levels.USUAL[True]), ("others", levels.USUAL[False])):
        noise, of_round, session = (f"{100 * part:g} %" for part in (usual.noise, usual.round, usual.session))
        assert re.search(rf"{of} {noise}, {of_round} and {session}[^;]* with w = {usual.freedom:g}[;.]", words)


@pytest.mark.parametrize("name", ["MARGIN", "FALSE_RATE", "ERROR_RATE", "POWER"])
def test_a_share_that_the_json_has_is_in_its_table(name):
    table = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{name.lower()}` \| .*, {re.escape(str(constants()[name]))} \|$", table, re.M)
