"""Does what a stranger sends, or a flipped bit, leave every other number as it was?"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from torch_history.analysis.series import history
from torch_history.measuring.kit.check import check
from torch_history.site import data
from torch_history.site.data import file_name, lane_id, lanes
from torch_history.store import sources
from torch_history.store.launches import Case, append_launches, machines_in, read_file

from .lab import AXIS
from .processes import ROOT
from .result_files import append
from .test_launches import some_launch

TIME = "intersection.Intersection.track_time"

pytestmark = pytest.mark.usefixtures("warned")  # what is said is no matter here


def launch(**more: Any) -> Any:
    version = sources.versions(ROOT)[TIME]
    cases = (Case(("'eager'", "'small'"), samples=(0.25, 0.5)),)
    return replace(some_launch(), **{"benchmark": TIME, "version": version, "cases": cases, **more})


@pytest.mark.committed
def test_versions_told_from_the_files_are_those_that_asv_was_told():
    listed = json.loads((ROOT / "results" / "benchmarks.json").read_text())
    assert sources.versions(ROOT) == {name: of["version"] for name, of in listed.items() if isinstance(of, dict)}


@pytest.mark.committed
def test_every_newest_launch_is_of_a_version_that_these_sources_would_go_on_with():
    known = {*sources.versions(ROOT).items()}
    newest = sorted((ROOT / "results").glob("*/v2.15.0-release-py3.11.jsonl*"))
    assert newest
    for path in newest:
        assert {(one.benchmark, one.version) for one in read_file(path)} & known, path


def test_ids_of_lanes_differ_and_todays_stays():
    names = [
        ("amd-epyc-family-26-model-2-2-cores", "release-py3.11"),
        ("amd-epyc-family-26-model-2-2", "cores-release-py3.11"),
        ("amd-epyc-family-26-model-2-2-cores", "release-py3-11"),
        ("amd.epyc-family-26-model-2-2-cores", "release-py3.11"),
        ("a" * 150, "release-py3.11.1"),
        *(("a-2-cores", "release-py3.11"), ("a-2", "cores-release-py3.11"), ("a", "release-py3-11")),
        *((name, "release-py3.11") for name in ("a", "a-b", "a.b", "a b", "a_b", "a-", "-a", "é", "ë")),
        *(("a", "b-release-py3.11"), ("a.b-c", "release-py3.11"), ("a.b", "c-release-py3.11")),
    ]
    ids = [lane_id(*of).lower() for of in names]
    assert ids[0] == "amd-epyc-family-26-model-2-2-cores-release-py3-11"
    assert len({*ids}) == len(ids)
    assert len({file_name(name) for name in ("a.b", "a-b", file_name("a.b"))}) == 3


def two_machines(folder: Path, *names: str) -> Path:
    """Results of two machines that differ in their name only."""
    for machine in names:
        append(folder, launch(), machine=machine)
    return folder


def test_second_lane_of_one_id_is_refused_and_the_first_stays(tmp_path, warned):
    (found,) = lanes(two_machines(tmp_path / "results", "Mine", "mine"), AXIS)
    assert found.name == "Mine"
    assert any(said.startswith("mine in ") and "is that of another lane of Mine" in said for said in warned)


def test_lane_that_raises_is_skipped_and_the_others_are_read(tmp_path, warned, monkeypatch):
    results = two_machines(tmp_path / "results", "mine", "strangers")
    read = data.read_environment

    def raising(folder: Path, machine: str, *more: str) -> dict[str, Any]:
        if machine == "strangers":
            raise TypeError("a number where a text belongs")
        return read(folder, machine, *more)

    monkeypatch.setattr(data, "read_environment", raising)
    (found,) = lanes(results, AXIS)
    assert found.name == "mine"
    assert any("strangers" in said and "a number where a text belongs" in said for said in warned)


def test_version_of_the_sources_here_counts_and_not_the_clock(warned):
    later = launch(version="0" * 64, started_at="2099-01-01T00:00:00+00:00", launch="ffffffff")
    (of,) = history([launch(), later]).values()
    assert [one.version for one, _ in of["v2.0.1"]] == [launch().version]
    assert any("two versions" in sentence for sentence in warned)


def test_only_regular_files_are_read(tmp_path, warned):
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "link.jsonl").symlink_to("/dev/zero")
    for name in ("pipe", "link"):
        assert list(read_file(tmp_path / f"{name}.jsonl")) == []
    assert len(warned) == 2


def test_names_of_folders_are_bounded(tmp_path, warned):
    for name in ("here", "a" * 250, "a\x1b[31m"):
        append_launches(tmp_path / name / "a.jsonl", [launch()])
    (tmp_path / "link").symlink_to(tmp_path / "here")
    assert machines_in(tmp_path) == ["here"]
    assert len(warned) == 3


def listed(one: Any, **more: Any) -> str:
    """A line of exclusions.jsonl about a launch."""
    known = dict.fromkeys(("machine", "rule", "reason"), "x") | {"session": one.session, "benchmark": one.benchmark}
    known |= {"environments": [one.environment], "releases": [one.release], "variants": [], "sizes": []}
    when = {"launches": 1, "cases": 1, "first": one.started_at, "last": one.started_at}
    return json.dumps({**known, **when, **more}) + "\n"


def test_exclusions_are_checked_line_by_line(tmp_path):
    (tmp_path / "NOTES.md").write_text("notes")
    (tmp_path / "exclusions.jsonl").write_text(f'{listed(launch())}{{"machine": "x"}}\n[]\nno JSON\n')
    told = [problem.partition(": ")[0][-6:] for problem in check(tmp_path, AXIS).problems]
    assert told == ["line 2", "line 3", "line 4"]


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        *(({}, True), ({"variants": ["eager"], "sizes": ["small", "paper"]}, True)),
        *(({"variants": ["scripted"], "sizes": ["small"]}, False), ({"releases": ["v2.15.0"]}, False)),
        *(({"session": "another"}, False), ({"last": "2026-11-21T04:37:19+00:00"}, False)),
    ],
)
def test_what_is_listed_as_taken_out_may_not_be_among_the_results(tmp_path, more, counts):
    one = launch()
    append(tmp_path, one)
    (tmp_path / "exclusions.jsonl").write_text(listed(one, **more))
    told = check(tmp_path, AXIS).problems
    assert any("line 1: exclusions.jsonl says that it was" in said for said in told) is counts


@pytest.mark.committed
def test_committed_results_are_well_formed():
    assert check(ROOT / "results", AXIS).problems == []
