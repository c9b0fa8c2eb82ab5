"""Do the pages about the recorder say what the scripts printed on it?"""

import json
import re

import pytest

from research import explained, recorded

KNOWN = json.loads(recorded.ASKED.read_text(encoding="utf-8"))
CHANGES = recorded.read("recorded_changes")


def test_pages_are_written_from_what_is_kept():
    assert recorded.PAGE.read_text(encoding="utf-8") == recorded.page(KNOWN, CHANGES)
    reports = json.loads(recorded.GIVEN.read_text(encoding="utf-8"))
    assert recorded.table(reports) in recorded.TABLE.read_text(encoding="utf-8")


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change["id"])
def test_each_change_was_asked_on_both_releases_and_differs(change):
    found = KNOWN[change["id"]]
    assert {"old", "new"} <= set(found)
    assert found["old"] != found["new"]
    assert change["source"]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change["id"])
def test_no_number_of_an_explanation_is_typed(change):
    """Numbers of bytes and counts come from what was printed; releases, settings and code may be written."""
    text = re.sub(r"\{[^}]*\}|`[^`]*`|\b[A-Z_]{4,}=\S+|float\d+|\d+\.\d+(\.\d+)?", "", change["explanation"])
    assert not re.search(r"\d", text), text


def test_numbers_of_real_gpus_are_given_on_their_releases():
    given = json.loads(recorded.GIVEN.read_text(encoding="utf-8"))
    for report in recorded.read("public_reports"):
        measured = {**report.get("measured", {}), **dict.fromkeys(report.get("then", ()), report.get("published"))}
        found = given[str(report["issue"])]
        assert {release: found[release]["bytes"] for release in measured if release in found} == {
            release: numbers for release, numbers in measured.items() if release in found
        }


# --- what the program says of reports whose threads name a cause


def test_the_table_of_explained_reports_says_what_the_program_said():
    said = json.loads(explained.SAID.read_text(encoding="utf-8"))
    assert explained.table(said) in explained.PAGE.read_text(encoding="utf-8")
    assert {str(report["issue"]) for report in explained.reports()} == set(said)


@pytest.mark.parametrize(
    ("verdict", "words", "since", "right"),
    [
        ("CAUSE", "because aten::sort is new", "2.1.0", (True, True)),
        ("PART", "in part because aten::sort is new", "2.1.1", (False, True)),
        ("CAUSE", "because aten::mm is new", "2.1.0", (True, False)),
        ("UNKNOWN", "cause unknown; the time went to aten::sort", "2.1.0", (True, False)),
    ],
)
def test_a_cause_is_right_where_it_has_the_name_that_the_thread_has(verdict, words, since, right):
    said = {"time": {"changed": {since: "SLOWER 2"}, "verdict": verdict, "words": words}}
    assert explained.is_right({"changed": "2.1.0", "cause": "sort"}, said) == right
