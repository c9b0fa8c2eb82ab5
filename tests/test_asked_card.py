"""Is a card that nobody described pretended as its driver says it is? The recorder takes the driver's place: pretending a
known card, it answers what that card is, and the card that comes of these answers must be the known one again."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from recorder.cards import Card, asked_card, cards
from torch_history.system.errors import UserError

from .processes import ROOT, ran
from .test_recorder import library


def driver(folder: Path, known: Mapping[str, Card]) -> Path:
    """A folder with a libcuda.so.1 that pretends these cards."""
    (folder / "libcuda.so.1").symlink_to(library(folder, known=known))
    return folder


def ask(folder: Path, card: str) -> Any:
    surroundings = {**os.environ, "RECORDER_CARD": card, "LD_LIBRARY_PATH": str(folder)}
    return json.loads(ran(sys.executable, "-m", "measure.card", cwd=ROOT, env=surroundings).stdout)


@pytest.fixture(scope="module")
def pretended(tmp_path_factory) -> Path:
    return driver(tmp_path_factory.mktemp("driver"), cards())


@pytest.fixture(scope="module")
def answer(pretended) -> dict[str, Any]:
    return ask(pretended, "hopper")


@pytest.mark.parametrize("key", list(cards()))
def test_a_known_card_that_is_asked_is_that_card_again(pretended, key):
    card = asked_card("asked", ask(pretended, key))
    assert (card.key, card.title, card.values) == ("asked", cards()[key].title, cards()[key].values)


def test_a_card_that_was_asked_can_be_pretended_itself(answer, tmp_path):
    """Its numbers are those of no known card, one of them negative, as a card says that has no node of memory."""
    attributes = {**answer["attributes"], "16": 7, "108": 0, "131": -1}
    strange = asked_card("asked", {"name": "NVIDIA Voodoo 5", "memory": 3 * 2**30, "attributes": attributes})
    again = ask(driver(tmp_path, {"asked": strange}), "asked")
    assert again == {"name": "NVIDIA Voodoo 5", "memory": 3 * 2**30, "attributes": attributes}
    assert (strange.capability, strange.memory) == ("sm_90", 3 * 2**30)


def test_what_an_old_driver_does_not_know_is_as_every_card_has_it(answer):
    attributes = {number: value for number, value in answer["attributes"].items() if int(number) < 112}
    assert asked_card("asked", {**answer, "attributes": {**attributes, "120": 1}}).values == cards()["hopper"].values


def test_a_number_that_nobody_gives_is_refused_by_name(answer):
    attributes = {number: value for number, value in answer["attributes"].items() if number != "16"}
    with pytest.raises(UserError, match=r"The driver of 'NVIDIA H100 80GB HBM3' does not say multiProcessorCount"):
        asked_card("asked", {**answer, "attributes": attributes})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        *(({"name": name}, "is no name of a GPU") for name in ('H100"}; int evil(void) { return 1; } //', "H100\\", None)),
        ({"attributes": [1, 2]}, "no attributes are given"),
        ({"memory": "0}; int evil"}, "memory of .* which is no whole number from 1 to"),
        *(({"memory": memory}, "which is no whole number from 1 to") for memory in (0, 2**60)),
        ({"16": "132"}, "multiProcessorCount of .* is 132, which is no whole number"),
        ({"16": True}, "multiProcessorCount of .* is True, which is no whole number"),
        ({"39": 0}, "maxThreadsPerMultiProcessor of .* is 0, which is no whole number from 1 to"),
        ({"81": -1}, "sharedMemPerMultiprocessor of .* is -1, which is no whole number from 0 to"),
        ({"16": 2**31}, "is 2147483648, which is no whole number"),
    ],
)  # fmt: skip
def test_a_strangers_description_is_checked_before_it_is_compiled(answer, change, said):
    numbers = {name: value for name, value in change.items() if name.isdigit()}
    asked = {**answer, **{name: value for name, value in change.items() if not name.isdigit()}}
    if numbers:
        asked["attributes"] = {**answer["attributes"], **numbers}
    with pytest.raises(UserError, match=said):
        asked_card("asked", asked)
