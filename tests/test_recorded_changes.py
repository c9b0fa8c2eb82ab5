"""Do the pages about the recorder say what the scripts printed on it?"""

import json
import re

import pytest

from research import explained, recorded, training_peaks

KNOWN = json.loads(recorded.ASKED.read_text(encoding="utf-8"))
CHANGES = recorded.read("recorded_changes")

GIVEN = json.loads(recorded.GIVEN.read_text(encoding="utf-8"))


def test_pages_are_written_from_what_is_kept():
    assert recorded.PAGE.read_text(encoding="utf-8") == recorded.page(KNOWN, CHANGES)
    assert recorded.table(GIVEN) in recorded.TABLE.read_text(encoding="utf-8")


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
    for report in recorded.read("public_reports"):
        measured = {**report.get("measured", {}), **dict.fromkeys(report.get("then", ()), report.get("published"))}
        found = GIVEN[str(report["issue"])]
        assert all(found[release]["bytes"] == of for release, of in measured.items() if release in found)


def test_the_table_of_explained_reports_says_what_the_program_said():
    said = json.loads(explained.SAID.read_text(encoding="utf-8"))
    assert explained.table(said) in explained.PAGE.read_text(encoding="utf-8")
    assert {str(report["issue"]) for report in recorded.read(explained.REPORTS)} == set(said)


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


def test_peaks_of_training_steps_are_told_with_a_reason_for_each_that_others_say_otherwise():
    known = json.loads(training_peaks.KEPT.read_text(encoding="utf-8"))
    assert training_peaks.PAGE.read_text(encoding="utf-8") == training_peaks.page(known)
    assert {"2.6.0", "2.14.1"} <= set(known)
    for sizes in known.values():
        counted = {size: by["recorder"] for size, by in sizes.items() if "refused" not in by["recorder"]}
        assert len({size.partition(",")[0] for size in counted}) == 6
        ends = [of[name] for of in counted.values() for name in training_peaks.NAMES]
        assert all(of[-1] <= 1.05 * of[0] for of in ends)
        # Weights, gradients, Adam's two states and the largest weight's intermediate are there at once.
        layers = [4_096 * 4_096] * 3 + [4_096 * 1_000, *[4_096] * 3, 1_000]
        (perceptron,) = (of["allocated"][0] for size, of in counted.items() if size.startswith("perceptron"))
        assert perceptron > 4 * (4 * sum(layers) + layers[0])
