"""Do rows that belong together become one finding, in an order in which no loop over sizes fills the page?"""

from dataclasses import replace

import pytest

from torch_history.analysis import answer, findings
from torch_history.analysis.causes import FOUND, Basis, Because
from torch_history.analysis.series import Series, Verdict
from torch_history.analysis.verdicts import Change

LANE = "release-py3.11"

UNEXPLAINED = Because("unexplained", Basis.NOTHING)


def changed(
    variant: str, size: str, ratio: float, metric: str = "time", question: str = "selection", sure: float = 0.05
) -> Change:
    series = Series(LANE, f"{question}.Q.track_{metric}", (f"'{variant}'", f"'{size}'"))
    spread = (1 + sure) if series.varies else 1.0
    return Change(series, series.direction(ratio > 1), 1.0, ratio, ratio, ratio / spread, ratio * spread)


def of(*changes: Change, why: dict[Series, Because] | None = None) -> list[findings.Finding]:
    return findings.of_changes(changes, why or {})


def test_sizes_of_a_variant_are_one_finding_and_calls_from_cpp_belong_to_it() -> None:
    (found,) = of(changed("take", "a", 1.2), changed("take", "b", 1.5), changed("cpp_take", "a", 1.3))
    assert found.words == "selection time, take: 1.20 to 1.50 times slower in 3 cases, unexplained."
    assert found.best.ratio == 1.5


@pytest.mark.parametrize(
    "other",
    [
        *(changed("take", "b", 0.8), changed("take", "b", 1.2, metric="forward_time")),
        *(changed("take", "b", 1.2, question="batching"), changed("mask", "b", 1.2)),
    ],
)
def test_direction_metric_question_and_variant_part_findings(other: Change) -> None:
    assert len(of(changed("take", "a", 1.2), other)) == 2


def test_a_common_cause_joins_variants_and_is_told_with_its_release() -> None:
    rows = [changed("mask", "a", 1.15), changed("index_reused", "b", 1.92), changed("index_reused", "rows", 1.1)]
    by_hand = next(cause for cause in FOUND if cause.title == "Indexing `x[index]` and `x[mask]`, in C++ too")
    cause = Because(f"because {by_hand.words}", Basis.BY_HAND, "2.14.0", (by_hand,))
    why = dict.fromkeys([row.series for row in rows[:2]], cause) | {rows[2].series: UNEXPLAINED}
    joined, alone = of(*rows, why=why)
    assert joined.words == f"{by_hand.title}: 1.15 to 1.92 times slower in 2 cases since 2.14.0, {cause.clause}."
    assert alone.words.startswith("selection time, index_reused rows: 1.10 times slower (1.05 to ")


def test_metrics_in_bytes_of_a_common_cause_are_one_finding_and_others_are_not() -> None:
    cause = Because("because a workspace is taken for each product", Basis.BY_HAND, "2.15.0")
    metrics, names = ("peak_memory", "peak_reserved", "allocations"), ("save", "pack", "keep", "hold", "drop")
    rows = [changed(name, "a", 1.2, metric=metric) for name in names for metric in metrics]
    joined, counted = of(*rows, why={row.series: cause for row in rows})
    assert joined.title == "selection peak memory and peak reserved, save, pack, keep and 2 others"
    assert [joined.cases, len(joined.names), len(joined.rows), len(counted.rows)] == [5, 3, 10, 5]
    assert len(of(*rows)) == len(rows)


def test_cause_that_was_found_is_told_before_numbers_that_moved_beside_more_rows() -> None:
    rows = [changed("take", str(size), 1.2) for size in range(3)]
    number = Because("while the number of operators went from 1 to 2", Basis.BESIDE)
    cause = Because("because aten::take holds 95 % of the difference", Basis.EVIDENCE)
    why = {rows[0].series: number, rows[1].series: number, rows[2].series: cause}
    (found,) = of(*rows, why=why)
    assert found.words.endswith(f"in 3 cases; 1 of them {cause.words}.")


def test_rank_is_the_bound_nearest_to_no_change_and_one_question_does_not_fill_the_page() -> None:
    unsure = changed("call", "", 3.0, question="warm_up", sure=1.9)
    many = [changed(f"variant {i}", "", 1.5, question="selection") for i in range(5)]
    other = changed("cat", "", 1.3, question="batching")
    order = [found.best.series.question for found in of(unsure, *many, other)]
    assert order[:2] == ["selection", "batching"]
    assert order[-1] == "warm_up"


def test_what_broke_is_told_first_and_counts_last() -> None:
    broken = [
        Change(Series(LANE, f"selection.Q.track_{metric}", ("'f'", "''")), Verdict.BROKE, old=1.0, reason="No. Really.")
        for metric in ("time", "peak_memory")
    ]
    found = of(changed("take", "a", 9.0, metric="operators"), changed("take", "a", 1.1), *broken)
    assert [one.verdict for one in found] == [Verdict.BROKE, Verdict.SLOWER, Verdict.MORE]
    assert found[0].words == "selection, f: no longer runs: No. Really."
    assert found[0].cases == 1


def test_half_of_what_is_shown_first_is_what_costs() -> None:
    rows = [changed(f"slow {i}", "", 1.2) for i in range(8)] + [changed(f"fast {i}", "", 0.2) for i in range(20)]
    shown = answer.picked(of(*rows))
    assert [one.verdict for one in shown] == [Verdict.SLOWER] * 5 + [Verdict.FASTER] * 5
    few = answer.picked(of(*rows[:7], rows[-1]))
    assert len(few) == 8


def test_a_count_that_a_factor_does_not_tell_is_told_by_its_numbers() -> None:
    more = replace(changed("take", "a", 1.003, metric="operators"), old=1000.0, new=1003.0)
    (found,) = of(more)
    assert found.words == "selection operators, take a: more, from 1,000 to 1,003."


def test_one_series_is_not_told_as_all_of_them() -> None:
    one, other = changed("take", "a", 1.2), changed("take", "b", 1.2)
    assert answer._verdict([one]) == "Slower in 1 series."
    assert answer._verdict([one, other]) == "Slower in all 2 series."
