"""Does a changed time get the cause that was planted, and none where there is none?"""

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from torch_history.analysis import causes
from torch_history.analysis.causes import FOUND, Cause, Known, evidence, in_words, moved, of_ends
from torch_history.analysis.compare import compared
from torch_history.analysis.series import History, Series, Verdict, history
from torch_history.analysis.verdicts import Change
from torch_history.store.launches import read_environment, read_launches

from .lab import AXIS
from .processes import ROOT

CASE = ("'mask'", "'small'")
OLD: dict[str, Any] = {
    **{"torch": "2.0.1", "cuda": "11.7", "onednn": "2.6.0", "mkl": "2022.2", "fuses_on_cpu": True, "python": "3.11.7"},
    **{"numpy": "1.26.4", "packages": ["triton==2.0.0"]},
}


def why(*asked: Any, **named: Any) -> dict[Series, str]:
    """As `causes.why`, in words."""
    return {series: because.words for series, because in causes.why(*asked, **named).items()}


def change(
    metric: str,
    old: float | None,
    new: float | None,
    verdict: Verdict,
    case: tuple[str, ...] = CASE,
    question: str = "saved_tensors.SavedTensors",
) -> Change:
    ratio = new / old if old and new is not None else None
    return Change(Series("release-py3.11", f"{question}.track_{metric}", case), verdict, old, new, ratio)


SLOWER = change("time", 1.0, 1.09, Verdict.SLOWER)
FASTER = change("time", 1.0, 0.9, Verdict.FASTER)


def said(time: Change, *beside: Change, new: dict[str, Any] | None = None, known: Sequence[Known] = ()) -> str:
    return why([*beside, time], OLD, OLD if new is None else new, known)[time.series]


@pytest.mark.parametrize(
    ("time", "beside", "clause"),
    [
        (SLOWER, [("kernels", 1, 9)], "while the number of kernels went from 1 to 9"),
        (FASTER, [("allocations", 9, 1)], "while the number of allocations went from 9 to 1"),
        (SLOWER, [("peak_memory", 0, 200)], "while its peak memory went from 0 B to 200 B"),
        (SLOWER, [("fusion_groups", 1, 0)], "because it is no longer fused"),
        (FASTER, [("fusion_groups", 0, 2)], "because it is fused now"),
        (SLOWER, [("fusion_groups", 1, 3)], "while the number of fused groups went from 1 to 3"),
        (SLOWER, [("allocations", 2, 4), ("kernels", 1, 9), ("operators", 3, 5)],
         "while the number of kernels went from 1 to 9, the number of operators from 3 to 5 "
         "and the number of allocations from 2 to 4"),
        (SLOWER, [("operators", 38, 53), ("fusion_groups", 1, 0)], "because it is no longer fused"),
        # A number that came from none is no fusion, which would be named alone.
        (SLOWER, [("kernels", 0, 9), ("operators", 3, 5)],
         "while the number of kernels went from 0 to 9 and the number of operators from 3 to 5"),
        # What moved the other way cannot have cost time.
        (SLOWER, [("operators", 9, 1)], "although the number of operators went from 9 to 1: unexplained"),
        (FASTER, [("fusion_groups", 1, 0)], "although it is no longer fused: unexplained"),
        (SLOWER, [("operators", 9, 1), ("allocations", 1, 2)], "while the number of allocations went from 1 to 2"),
        # One operator more among thousands is no cause of 9 %.
        (SLOWER, [("operators", 27_000, 27_001)], "unexplained"),
        (SLOWER, [("operators", 50, 51)], "unexplained"),
        (SLOWER, [("gradients", 1, 2)], "unexplained"),
        (SLOWER, [], "unexplained"),
    ],
)  # fmt: skip
def test_cause_is_what_moved_in_the_case(time: Change, beside: list[tuple[str, float, float]], clause: str) -> None:
    def verdict(metric: str, old: float, new: float) -> Verdict:
        rose = Verdict.HUNGRIER if metric == "peak_memory" else Verdict.MORE
        return rose if new > old else Verdict.FEWER

    assert said(time, *(change(*number, verdict(*number)) for number in beside)) == clause


def test_number_of_another_case_or_that_varies_between_launches_is_no_cause() -> None:
    for other in (("'mask'", "'large'"), ("'index'", "'small'")):
        assert said(SLOWER, change("operators", 1, 9, Verdict.MORE, other)) == "unexplained"
    assert said(SLOWER, change("operators", 1, 9, Verdict.CANT_TELL)) == "unexplained"


def test_environment_that_moved_is_no_cause_of_a_row() -> None:
    new = {**OLD, "onednn": "3.1.1", "torch": "2.1.2", "packages": [], "cuda": "12.1", "numpy": "2.0.0"}
    assert said(SLOWER, new=new) == "unexplained"
    assert said(SLOWER, new={}) == "unexplained"
    scripted = change("time", 1.0, 1.09, Verdict.SLOWER, ("'scripted'", "'small'"))
    assert said(scripted, new={**OLD, "fuses_on_cpu": False}) == "unexplained"


def test_another_library_that_answers_a_case_is_the_cause_of_its_time_and_of_no_other() -> None:
    """As a product in float16 that fell back to reference code."""
    fast, slow = "oneDNN matmul brg:avx512_core_amx", "oneDNN matmul ref:any"
    case = ("'float16'", "'square'")
    slower = change("time", 1.0, 1385.0, Verdict.SLOWER, case, "products.Products")
    other = change("time", 1.0, 2.0, Verdict.SLOWER, ("'float32'", "'square'"), "products.Products")
    more = change("peak_memory", 1.0, 2.0, Verdict.HUNGRIER, case, "products.Products")
    old, new = ({**OLD, "libraries": {"products float16 square": who}} for who in (fast, slow))
    found = why([slower, other, more], old, new)
    assert found == {slower.series: f"because {slow} answers it, and {fast} did before", other.series: "unexplained"}
    assert why([slower], old, {**NEW, **old}) == why([slower], OLD, new) == {slower.series: "unexplained"}


def test_environment_that_moved_is_said_of_a_comparison() -> None:
    new = {**OLD, "onednn": "3.1.1", "cuda": "12.1", "mkl": "2024.2", "compiler": "known of one of them"}
    assert in_words(moved(OLD, new, "cpu")) == "oneDNN went from 2.6.0 to 3.1.1 and MKL from 2022.2 to 2024.2"
    assert in_words(moved(OLD, new, "cuda")).endswith(" and CUDA from 11.7 to 12.1")
    assert in_words(moved(OLD, {**OLD, "fuses_on_cpu": False}, "cpu")) == "the wheel no longer fuses on a CPU"


NEW = {**OLD, "torch": "2.2.0"}


def known(
    old: str = "v2.0.1",
    new: str = "v2.2.0",
    ratio: float = 1.1,
    verdict: str = "CAUSE",
    words: str = "because aten::index holds 95 % of the difference",
    case: tuple[str, ...] = CASE,
) -> Known:
    return Known("release-py3.11", "saved_tensors.SavedTensors.track_time", case, old, new, ratio, verdict, words)


def test_evidence_of_the_same_series_and_releases_is_told() -> None:
    assert said(SLOWER, new=NEW, known=[known()]) == "because aten::index holds 95 % of the difference"
    operators = change("operators", 1, 9, Verdict.MORE)
    assert said(SLOWER, operators, new=NEW, known=[known()]) == "because aten::index holds 95 % of the difference"


def test_slow_change_is_explained_by_evidence_of_both_its_ends_and_not_by_that_of_a_part_of_the_way() -> None:
    whole, part = known("v2.0.1", "v2.2.0"), known("v2.1.0", "v2.1.1")
    told = of_ends(SLOWER, "v2.0.1", "v2.2.0", [part, whole])
    assert told
    assert told.words == whole.words
    assert of_ends(SLOWER, "v2.0.1", "v2.2.0", [part, whole._replace(verdict="UNKNOWN")]) is None


@pytest.mark.parametrize(
    "other",
    [
        *(known(case=("'mask'", "'large'")), known("v2.0.0", "v2.2.0"), known("v2.0.1", "v2.3.0"), known(ratio=0.9)),
        *(known(ratio=1.02), known()._replace(environment="installed-py3.9")),
        known()._replace(benchmark="saved_tensors.SavedTensors.track_forward_time"),
    ],
    ids=["another size", "begins before", "ends after", "the other way", "too small", "another lane", "another metric"],
)
def test_evidence_of_something_else_is_not_told(other: Known) -> None:
    assert said(SLOWER, new=NEW, known=[other]) == "unexplained"


def test_evidence_of_another_lane_with_the_same_binary_is_told_and_says_where_it_was_seen() -> None:
    other = known()._replace(environment="release-py3.9")
    assert said(SLOWER, new=NEW, known=[other]).endswith("; seen in release-py3.9, which has the same binary")
    assert "seen in" not in said(SLOWER, new=NEW, known=[other, known()])


def test_evidence_of_growth_from_none_is_told() -> None:
    grew = replace(change("kept_objects", 0, 1, Verdict.HUNGRIER, question="mine.Memory"), difference=(1.0, 1.0))
    of = known(ratio=1000.0)._replace(benchmark=grew.series.benchmark)
    assert why([grew], OLD, NEW, [of]) == {grew.series: of.words}
    assert not why([grew], OLD, NEW, [of._replace(ratio=0.001)])


def test_a_cause_that_is_gone_does_not_explain_what_is_left_between_ends_further_apart() -> None:
    """1.13.1 to 2.0.1 differ by 1.09, although 2.0.0 between them is 25,034 times slower."""
    assert said(SLOWER, new=NEW, known=[known("v2.1.0", "v2.1.1", 25_034)]) == "unexplained"
    doubled = change("time", 1.0, 2.0, Verdict.SLOWER)
    assert said(doubled, new=NEW, known=[known("v2.1.0", "v2.1.1", 2.2)]).endswith("(from v2.1.0 to v2.1.1)")


def test_a_change_back_to_the_level_before_is_told_with_what_had_changed_it() -> None:
    back = change("time", 25_034, 1.02, Verdict.FASTER)
    came = known("v1.13.1", "v2.0.1", 25_034, words="in part because of it")
    assert said(back, new=NEW, known=[came]) == "as before v2.0.1, which had changed it in part because of it"
    for other in (came._replace(new="v2.0.0"), came._replace(ratio=20_000.0), came._replace(ratio=1.001), known()):
        assert said(back, new=NEW, known=[other]) == "unexplained"


def test_cause_is_told_before_a_part_and_a_part_before_what_is_unknown() -> None:
    part, unknown = known(verdict="PART", words="in part"), known(verdict="UNKNOWN", words="cause unknown", ratio=1.2)
    assert said(SLOWER, new=NEW, known=[unknown, part, known()]).startswith("because")
    assert said(SLOWER, new=NEW, known=[unknown, part]) == "in part"
    assert said(SLOWER, new=NEW, known=[unknown]) == "cause unknown"


LISTS = ("'tensor_of_lists'", "'64 x 128'")
BY_HAND = "because every element is checked for being a symbolic number (since 2.0.0)"


def test_evidence_of_this_machine_is_told_before_what_was_found_by_hand_and_that_before_other_evidence() -> None:
    time = change("time", 1.0, 4.0, Verdict.SLOWER, LISTS, "batching.Batching")
    here = known("v1.13.1", "v2.0.0", 4.0, words="because of it", case=LISTS)
    here = here._replace(benchmark=time.series.benchmark, by_lever=True)
    elsewhere = here._replace(words="because of that", seen_on="a processor")
    unknown = here._replace(words="cause unknown", verdict="UNKNOWN")
    for of, words in (([], BY_HAND), ([elsewhere], BY_HAND), ([unknown], BY_HAND), ([elsewhere, here], here.words)):
        assert why([time], {"torch": "1.13.1"}, {"torch": "2.0.0"}, of)[time.series] == words


def test_fusion_of_the_case_is_told_before_evidence_of_another_machine_and_after_that_of_this_one() -> None:
    fusion = change("fusion_groups", 1, 0, Verdict.FEWER)
    here = known(words="because of it")._replace(by_lever=True)
    elsewhere = known(words="because of that")._replace(seen_on="a processor")
    assert said(SLOWER, fusion, new=NEW, known=[elsewhere]) == "because it is no longer fused"
    assert said(SLOWER, fusion, new=NEW, known=[elsewhere, here]) == "because of it"


each_found = pytest.mark.parametrize("cause", FOUND, ids=lambda of: f"{of.question}-{of.variants[0]}-{of.release}")


@each_found
def test_every_cause_found_by_hand_names_the_item_of_the_page_that_says_how(cause: Cause) -> None:
    text = " ".join((ROOT / cause.link).read_text(encoding="utf-8").replace("*", "").split())
    assert cause.item
    metric, *others = cause.metrics
    assert not cause.title or (not others and (metric == "time" or metric.replace("_", " ") in cause.title))
    assert text.count(f" - {cause.item}") == 1


LISTED = ("batching.Batching", LISTS, BY_HAND)
SIZE, OTHER_SIZE = "'vector 99 % x 10'", "'rows 99 % x 10'"
PLACED = "because the same instructions are at a different address (since 2.6.0)"
PLACED_APART = ("selection.Selection", ("'index_select_reused'", SIZE), PLACED)
LOOP = "because the loop over the elements now calls a function for each index"
LOOPS = [("selection.Selection", ("'index_reused'", size), LOOP) for size in (SIZE, OTHER_SIZE)]


@pytest.mark.parametrize(
    ("looked_at", "ratio", "old", "new", "is_told"),
    [
        *((LISTED, 4.0, "1.13.1+cu117", "2.0.0+cu117", True), (LISTED, 4.0, "1.8.1", "2.10.0", True)),
        *((LISTED, 4.0, "2.0.0", "2.0.1", False), (LISTED, 4.0, "2.0.0", "1.13.1", False)),
        *((LISTED, 4.0, "", "2.0.0", False), (LISTED, 0.25, "1.13.1", "2.0.0", False)),
        *((PLACED_APART, 1.2, "2.5.1", "2.6.0", True), (PLACED_APART, 1.2, "2.2.0", "2.7.1", True)),
        *((PLACED_APART, 1.2, "2.5.1", "2.8.0", False), (PLACED_APART, 1.2, "2.1.2", "2.6.0", False)),
        *((LOOPS[0], 2.0, "2.13.0", "2.14.0", True), (LOOPS[1], 2.0, "2.13.0", "2.14.0", False)),
    ],
)
def test_cause_found_by_hand_is_told_of_its_sizes_its_way_and_what_spans_its_release_while_it_is_there(
    looked_at: tuple[str, tuple[str, ...], str], ratio: float, old: str, new: str, is_told: bool
) -> None:
    benchmark, case, words = looked_at
    time = change("time", 1.0, ratio, Verdict.SLOWER if ratio > 1 else Verdict.FASTER, case, benchmark)
    told = why([time], {"torch": old} if old else {}, {"torch": new})[time.series]
    assert (words in told) is is_told


@functools.cache
def known_of(machine: str, lane: str, question: str) -> tuple[History, dict[str, Any], str, list[Known]]:
    """What `compared` needs of a question of the committed results."""
    folder = ROOT / "results"
    found = history(read_launches(folder, machine, lane, [question]))
    facts = {tag: read_environment(folder, machine, tag, lane) for tag in {tag for of in found.values() for tag in of}}
    return found, facts, "recorder" if machine.startswith("recorded") else "cpu", [*evidence(folder, machine)]


@pytest.mark.committed
@each_found
def test_cause_that_was_looked_for_is_that_of_a_change_in_the_results(cause: Cause) -> None:
    old, new = AXIS.releases[AXIS.position(AXIS.find(cause.release).tag) - 1 :][:2]
    on_gpu = "on a GPU" in cause.title
    machine = "recorded-turing-sm75-no-kernel-ran" if on_gpu else "amd-epyc-family-26-model-2-2-cores"
    lanes = [f"release-py{python}" for python in ("3.11", "3.9") if python in old.pythons and python in new.pythons]
    found = [compared(machine, lane, old.tag, new.tag, *known_of(machine, lane, cause.question)) for lane in lanes]
    told = [words for comparison in found for words in map(comparison.because, comparison.why)]
    assert any(cause.words in words for words in told), f"{old.tag} -> {new.tag}: {told}"


def test_memory_and_counts_are_explained_by_fusion_alone() -> None:
    peak = change("peak_memory", 60, 240, Verdict.HUNGRIER)
    operators = change("operators", 38, 53, Verdict.MORE)
    fusion = change("fusion_groups", 1, 0, Verdict.FEWER)
    same = change("time", 1.0, 1.0, Verdict.SAME)
    found = why([peak, operators, fusion, same], OLD, {**OLD, "onednn": "3.1.1"})
    assert found == {peak.series: "because it is no longer fused", operators.series: "because it is no longer fused"}
    assert why([peak, operators], OLD, {}) == {}


LEVER = "because of a lever"


@pytest.mark.parametrize(("worst", "expected"), [(0.05, LEVER), (0.5, "unexplained"), (2.0, "unexplained")])
def test_the_worst_call_over_the_median_has_the_cause_of_that_call_where_it_makes_the_ratio(worst, expected):
    way = Verdict.FASTER if worst < 1 else Verdict.SLOWER
    call, ratio = change("worst_call", 1.0, worst, way), change("worst_over_median", 1.0, 0.04, Verdict.FASTER)
    ends = {"old": "v2.0.0", "new": "v2.0.1", "ratio": worst, "verdict": "CAUSE", "words": LEVER}
    known = Known(call.series.environment, call.series.benchmark, CASE, **ends)
    assert why([call, ratio], {**OLD, "torch": "2.0.0"}, OLD, [known])[ratio.series] == expected
