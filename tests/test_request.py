"""Does what a process is asked for survive its one translation to variables and back?"""

import pytest

from contract.request import DEVICES, PREFIX, Request
from torch_history.measuring.machine import asked, checked
from torch_history.measuring.recording import RecordedResults
from torch_history.system.errors import SessionError, UserError

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
