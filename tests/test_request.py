"""Does what a process is asked for survive its one translation to variables and back, and what it says that to JSON?"""

import json
import random

import pytest

from contract.request import DEVICES, PREFIX, Request
from contract.words import LONGEST, of_error, storable
from torch_history.measuring.machine import asked, checked
from torch_history.measuring.recording import RecordedResults
from torch_history.system.errors import SessionError, UserError
from torch_history.system.files import parse

FULL = Request("cuda", ("small", "paper"), "counts", 4, "peak", "/a file.py", "/its text.py", "/proc/1/fd/3", "hopper")


@pytest.mark.parametrize("request_", [Request(), FULL])
def test_request_survives_its_variables(request_):
    assert Request.of(request_.variables()) == request_


def test_variables_leave_nothing_to_be_inherited():
    assert Request.of({**FULL.variables(), **Request().variables()}) == Request()


@pytest.mark.parametrize("threads", ["0", "many", "-1", "1.5"])
def test_threads_are_a_number(threads, monkeypatch):
    with pytest.raises(ValueError, match=f"THREADS is '{threads}', and threads are a whole number"):
        Request.of({PREFIX + "THREADS": threads})
    monkeypatch.setenv(PREFIX + "THREADS", threads)
    with pytest.raises(UserError, match="whole number"):
        asked()


def test_device_is_one_that_exists():
    assert [Request(device=device).problem for device in DEVICES] == ["", "", ""]
    with pytest.raises(UserError, match=r"'banana' is no device.*choose one with --device"):
        checked(Request(device="banana"))


@pytest.mark.parametrize("what", ["device", "card"])
def test_process_that_measured_on_something_else_is_refused(what):
    results = RecordedResults({"machine": "here", what: "one"}, {}, "v2.0.1", 0, "3.11", "release-py3.11", {})
    results._refuse_another_device({what: "one"})
    results._refuse_another_device({})
    with pytest.raises(SessionError, match=f"measured on the {what} 'other', and the record of this machine says 'one"):
        results._refuse_another_device({what: "other"})


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
        codes = (draw.choice((draw.randrange(0x110000), draw.randrange(0xD800, 0xE000), 0)) for _ in range(9))
        text = "".join(map(chr, codes))
        assert parse(json.dumps(storable({text: [text]}))) == storable({text: [text]})


class Silent(Exception):
    def __str__(self) -> str:
        raise KeyError("no")


def test_error_is_told_with_its_class_even_where_it_has_no_words():
    assert of_error(ValueError(b"caf\xe9".decode("utf-8", "surrogateescape"))) == "ValueError: caf\\udce9"
    assert of_error(Silent()) == "Silent: its message cannot be told (KeyError)"
