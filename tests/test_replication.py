"""Does a change say whether another wheel of the same releases has it, too? Lanes with planted builds."""

import itertools
import json
import shutil
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from torch_history.analysis import replication as replications
from torch_history.analysis.code import same_code
from torch_history.analysis.compare import as_json, find, summary
from torch_history.analysis.replication import OtherPlaces, Place, Standing
from torch_history.analysis.series import ANY_BUILD, BUILDS, Series, Verdict, history
from torch_history.analysis.verdicts import Change, compare_history
from torch_history.site.data import elsewhere_of, lanes
from torch_history.site.told import compared
from torch_history.store.launches import Case, Launch, read_on_axis
from torch_history.store.machines import processor_of

from .lab import AXIS
from .result_files import append, write_machine
from .test_verdicts import launch

pytestmark = pytest.mark.usefixtures("no_code")


@pytest.fixture(autouse=True)
def built_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replications, "same_code", lambda lanes, tag: False)


def test_what_a_lane_says_whose_binaries_nobody_looked_at_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    change = changed(Verdict.SLOWER)
    places = OtherPlaces([Place({}, OTHER, (OLD, NEW), lambda old, new: [change], OTHER)], environment=HERE)
    assert places.of([change], OLD, NEW)[SERIES].words == f"replicated in {OTHER}"
    monkeypatch.setattr(replications, "same_code", lambda lanes, tag: None)
    assert places.of([change], OLD, NEW)[SERIES].words == ""


OLD, NEW = "v2.0.1", "v2.1.2"
HERE, OTHER = "release-py3.11", "release-py3.9"
SERIES = Series(HERE, "selection.Selection.track_time", ("'mask'", "'small'"))


def changed(verdict: Verdict, ratio: float = 1.1, series: Series = SERIES) -> Change:
    return Change(series, verdict, 1.0, ratio, ratio, ratio, ratio)


def test_machines_that_disagree_are_both_told_though_their_processors_have_one_name():
    def place(verdict: Verdict) -> Place:
        return Place({}, HERE, (OLD, NEW), lambda old, new: [changed(verdict)], "EPYC")

    for verdicts_of in ((Verdict.SAME, Verdict.SLOWER), (Verdict.SLOWER, Verdict.SAME)):
        others = OtherPlaces(machines=[place(verdict) for verdict in (Verdict.CANT_TELL, Verdict.BROKE, *verdicts_of)])
        said = others.of([changed(Verdict.SLOWER)], OLD, NEW)
        assert said[SERIES].words == "seen on another machine, too (EPYC), but SAME on a third one (EPYC)"


@pytest.mark.parametrize("cpu", ["two\nlines", "\x1b[31mred", ["a list"], "x" * 10_000, "", None])
def test_a_processor_that_is_no_name_does_not_get_into_a_sentence(cpu):
    assert processor_of({"machine": "there", "cpu": cpu}) == ""


def launches(lane: str, ratios: dict[str, float], seed: int) -> list[Launch]:
    """Six rounds of each variant, whose time changes by its ratio; a launch differs by half a per cent."""
    random, found = np.random.default_rng(seed), []
    for turn, (variant, ratio) in itertools.product(range(1, 7), ratios.items()):
        for release, level in ((OLD, 1.0), (NEW, ratio)):
            case = Case((f"'{variant}'", "'small'"), samples=(level * float(random.lognormal(0, 0.005)),))
            of = {"session": f"s {lane} {seed}", "round": turn, "environment": lane}
            found.append(launch(release, SERIES.benchmark, case, **of))
    return found


@pytest.fixture
def results(tmp_path) -> Path:
    for lane, seed, ratios in (
        (HERE, 1, {"both": 1.3, "here": 1.3, "opposite": 1.2, "small": 1.05, "large": 1.5}),
        (OTHER, 2, {"both": 1.25, "here": 1.0, "opposite": 0.8}),
    ):
        append(tmp_path, *launches(lane, ratios, seed))
    return tmp_path


def test_compare_says_of_each_change_what_the_other_lane_says(results):
    found = find(results, "here", HERE, OLD, NEW)
    told = {series.parameters[0].strip("'"): of.wheels for series, of in found.elsewhere.items()}
    assert {variant: of.standing for variant, of in told.items()} == {
        **{"both": Standing.REPLICATED, "here": Standing.NOT_REPLICATED, "opposite": Standing.NOT_REPLICATED},
        **{"small": Standing.NOT_TESTABLE, "large": Standing.NOT_TESTABLE},
    }
    said = {change.series.parameters[0].strip("'"): found.sentence(change) for change in found.changes}
    assert "replicated in release-py3.9" in said["both"]
    assert "this wheel only: SAME in release-py3.9" in said["here"]
    assert "this wheel only: FASTER in release-py3.9" in said["opposite"]
    assert "that rebuilding the same source can cause" in said["small"]
    assert "wheel" not in said["large"] + said["small"]
    assert "build" not in said["large"]


def machine(results: Path, name: str, about: dict[str, str], ratios: dict[str, float], version: str = "1") -> None:
    write_machine(results / name, **about)
    append(results, *(replace(one, version=version) for one in launches(HERE, ratios, 7)), machine=name)


def test_a_change_says_whether_another_machine_has_it(results):
    machine(results, "here", {"cpu": "Ours"}, {})
    machine(results, "there", {"cpu": "A (large) CPU"}, {"both": 1.6, "here": 1.0, "large": 1.3})
    machine(results, "third", {"cpu": "Another CPU"}, {"both": 1.6})
    found = find(results, "here", HERE, OLD, NEW)
    said = {change.series.parameters[0].strip("'"): found.sentence(change) for change in found.changes}
    assert "replicated in release-py3.9, seen on another machine, too (A large CPU: 1.6" in said["both"]
    assert "this wheel only: SAME in release-py3.9, this machine only: SAME on another one (A" in said["here"]
    assert "machine" not in said["opposite"]
    told = "Of the changed times, held against other machines: 2 replicated, 1 not replicated, 2 not testable."
    assert told in summary(found)
    every = lanes(results, AXIS)
    lane = next(one for one in every if (one.name, one.environment) == ("here", HERE))
    for others in (every, every[::-1]):
        site = compared(lane, lane.every.pairs.index((OLD, NEW)), elsewhere_of(lane, others))
        assert (told in site.sure, site.elsewhere) == (True, found.elsewhere)
    standings = {one["parameters"][0]: one["on_other_machines"] for one in json.loads(as_json(found))["changes"]}
    assert [standings[one] for one in ("large", "here", "small")] == ["replicated", "not replicated", "not testable"]


def test_a_copy_of_a_machines_folder_confirms_nothing(results):
    machine(results, "here", {"cpu": "Ours"}, {})
    shutil.copytree(results / "here", results / "copy")
    (results / "copy" / "machine.json").write_text(json.dumps({"machine": "copy", "cpu": "Ours", "device": "cpu"}))
    found = find(results, "here", HERE, OLD, NEW)
    assert {of.machines.standing for of in found.elsewhere.values()} == {Standing.NOT_TESTABLE}
    lane, other = (one for one in lanes(results, AXIS) if one.environment == HERE)
    assert {lane.name, other.name} == {"here", "copy"}
    assert lane.decided(OLD, NEW)
    assert lane.decided_for(other)(OLD, NEW) == []


@pytest.mark.parametrize(
    ("about", "version"), [({"device": "cuda"}, "1"), ({"threads": "4"}, "1"), ({"device": "recorder"}, "1"), ({}, "2")]
)
def test_a_machine_of_another_kind_or_with_other_benchmarks_says_nothing(results, about, version):
    machine(results, "here", {"cpu": "Ours"}, {})
    machine(results, "there", {"cpu": "Theirs", **about}, {"both": 1.6, "here": 1.0}, version)
    found = find(results, "here", HERE, OLD, NEW)
    assert {of.machines.standing for of in found.elsewhere.values()} == {Standing.NOT_TESTABLE}


@pytest.mark.parametrize(
    ("question", "metric", "ratio", "within"),
    [
        *(("selection", "time", BUILDS["selection"], True), ("selection", "time", 1 / BUILDS["selection"], True)),
        *(("selection", "time", BUILDS["selection"] + 0.001, False), ("own", "time", ANY_BUILD, True)),
        *(("warm_up", "first_call", 1.01, False), ("selection", "peak_memory", 1.01, False)),
    ],
)
def test_only_steady_times_are_held_against_what_two_builds_differ_by(question, metric, ratio, within):
    series = Series(HERE, f"{question}.Any.track_{metric}", ("'mask'", "'small'"))
    verdict = Verdict.SLOWER if ratio > 1 else Verdict.FASTER
    assert changed(verdict, ratio, series).within_builds is within
    assert not changed(Verdict.SAME, ratio, series).within_builds


@pytest.mark.committed
def test_spreads_of_builds_are_those_of_releases_whose_wheels_were_built_apart():
    """BUILDS is the ratio within which 95 % of the steady times of two lanes lie, from a release to the next, where the two
    lanes hold different binaries of one of them; ANY_BUILD that of all questions together."""
    root, machine = Path(__file__).resolve().parents[1], "amd-epyc-family-26-model-2-2-cores"
    apart: dict[str, list[float]] = defaultdict(list)
    for question in BUILDS:
        of = [history(read_on_axis(root / "results", machine, AXIS, lane, (question,))) for lane in (HERE, OTHER)]
        tags = [sorted({tag for one in found.values() for tag in one}, key=AXIS.position) for found in of]
        for pair in set(itertools.pairwise(tags[0])) & set(itertools.pairwise(tags[1])):
            if all(same_code((HERE, OTHER), tag) for tag in pair):
                continue
            here, there = (
                {
                    (change.series.benchmark, change.series.parameters): change.ratio
                    for change in compare_history(found, *pair)
                    if change.series.build is not None and change.confidence is not None and change.ratio
                }
                for found in of
            )
            apart[question] += [abs(np.log(here[key] / there[key])) for key in sorted(here.keys() & there.keys())]
    every = {**apart, "": [number for of_question in apart.values() for number in of_question]}
    for question, used in {**BUILDS, "": ANY_BUILD}.items():
        assert used == pytest.approx(float(np.exp(np.quantile(every[question], 0.95))), abs=0.005)
