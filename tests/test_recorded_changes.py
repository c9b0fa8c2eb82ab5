"""Do the explanations of what changed on the recorder say what the scripts printed?"""

from __future__ import annotations

import json
import re

import pytest

from tools import recorded_changes

KNOWN = json.loads(recorded_changes.GIVEN.read_text(encoding="utf-8"))
CHANGES = recorded_changes.changes()


def test_page_is_written_from_what_is_kept() -> None:
    assert recorded_changes.PAGE.read_text(encoding="utf-8") == recorded_changes.page(KNOWN)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change["id"])
def test_each_change_was_asked_on_both_releases_and_differs(change: dict) -> None:
    found = KNOWN[change["id"]]
    assert {"old", "new"} <= set(found)
    assert found["old"] != found["new"]
    assert change["source"]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change["id"])
def test_no_number_of_an_explanation_is_typed(change: dict) -> None:
    """Numbers of bytes and counts come from what was printed; releases, settings and code may be written."""
    text = re.sub(r"\{[^}]*\}|`[^`]*`|\b[A-Z_]{4,}=\S+|float\d+|\d+\.\d+(\.\d+)?", "", change["explanation"])
    assert not re.search(r"\d", text), text


def test_bytes_are_readable_and_names_are_code() -> None:
    change = {
        "id": "one",
        "title": "One",
        "releases": ["1.0.0", "2.0.0"],
        "script": "print()",
        "source": "a page",
        "explanation": "It takes {old[peak]} B and {new[peak]} B.",
    }
    known = {"one": {"old": {"peak": "8519680", "kernel": "a"}, "new": {"peak": "0", "kernel": "b"}}}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recorded_changes, "changes", lambda: [change])
        said = recorded_changes.page(known)
    assert "It takes 8,519,680 B and 0 B." in said
    assert "| peak | 8,519,680 | 0 |" in said
    assert "| kernel | `a` | `b` |" in said
