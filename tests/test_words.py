"""Can whatever foreign code says be stored and printed?"""

import json
import random

import pytest

from contract.words import LONGEST, of_error, storable
from torch_history.system.files import parse


def test_texts_in_tables_and_lists_are_storable_and_all_else_is_as_it_was():
    assert storable(whole := ["", "An overlap is off.\n  at 3\n", "ü\U0001f600", "\ttab"]) == whole
    value = {"caf\udce9": ["\ud800", 1, 2.5, None, True, {"a": ("\0",)}]}
    assert storable(value) == {"caf\\udce9": ["\\ud800", 1, 2.5, None, True, {"a": ["\\x00"]}]}


@pytest.mark.parametrize("text", ["x" * 10**7, "y\n" * 10**7, "begin" + "\ud800" * 10**6 + "end"])
def test_long_text_loses_its_middle(text):
    said = storable(text)
    assert len(said) <= LONGEST + 100
    assert said[:2] == text[:2]
    assert said[-2:] == text[-2:]


def test_random_texts_can_be_stored():
    draw = random.Random(1)
    for _ in range(2000):
        text = "".join(
            chr(draw.choice((draw.randrange(0x110000), draw.randrange(0xD800, 0xE000), 0))) for _ in range(9)
        )
        assert parse(json.dumps(storable({text: [text]}))) == storable({text: [text]})


class Silent(Exception):
    def __str__(self) -> str:
        raise KeyError("no")


def test_error_is_told_with_its_class_even_where_it_has_no_words():
    assert of_error(ValueError(b"caf\xe9".decode("utf-8", "surrogateescape"))) == "ValueError: caf\\udce9"
    assert of_error(Silent()) == "Silent: its message cannot be told (KeyError)"
