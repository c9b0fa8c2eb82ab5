"""Do rows that belong together become one finding, in an order in which no loop over sizes fills the page?"""

from __future__ import annotations

import dataclasses
import re

import pytest

from torch_history.analysis import answer, compare, findings
from torch_history.analysis.series import Series, Verdict
from torch_history.analysis.verdicts import Change, bound

LANE = "release-py3.11"


def changed(
    variant: str, size: str, ratio: float, metric: str = "time", question: str = "selection", sure: float = 0.05
) -> Change:
    series = Series(LANE, f"{question}.Q.track_{metric}", (f"'{variant}'", f"'{size}'"))
    spread = (1 + sure) if series.varies else 1.0
    return Change(series, series.direction(ratio > 1), 1.0, ratio, ratio, ratio / spread, ratio * spread)


def of(*changes: Change, why: dict[Series, str] | None = None) -> list[findings.Finding]:
    return findings.of_changes(changes, why or {})


def test_sizes_of_a_variant_are_one_finding_and_calls_from_cpp_belong_to_it() -> None:
    (found,) = of(changed("take", "a", 1.2), changed("take", "b", 1.5), changed("cpp_take", "a", 1.3))
    assert found.words == "selection time, take: 1.20 to 1.50 times slower in 3 cases, unexplained."
    assert found.best.ratio == 1.5


@pytest.mark.parametrize(
    "other",
    [
        changed("take", "b", 0.8),
        changed("take", "b", 1.2, metric="forward_time"),
        changed("take", "b", 1.2, question="batching"),
        changed("mask", "b", 1.2),
    ],
)
def test_direction_metric_question_and_variant_part_findings(other: Change) -> None:
    assert len(of(changed("take", "a", 1.2), other)) == 2


def test_a_common_cause_joins_variants_and_is_told_with_its_release() -> None:
    rows = [changed("mask", "a", 1.15), changed("index_reused", "b", 1.92), changed("index_reused", "rows", 1.1)]
    cause = "the loop over the elements now calls a function for each index, where it used to read the index itself"
    why = {row.series: f"because {cause} (since 2.14.0)" for row in rows[:2]} | {rows[2].series: "unexplained"}
    joined, alone = of(*rows, why=why)
    assert joined.words == f"Indexing `x[index]`: 1.15 to 1.92 times slower in 2 cases since 2.14.0, because {cause}."
    assert alone.words.startswith("selection time, index_reused rows: 1.10 times slower (1.05 to ")


def test_metrics_in_bytes_of_a_common_cause_are_one_finding_and_others_are_not() -> None:
    cause = "because a workspace is taken for each product (since 2.15.0)"
    rows = [changed("save", "a", 1.2, metric=metric) for metric in ("peak_memory", "peak_reserved", "allocations")]
    joined, counted = of(*rows, why={row.series: cause for row in rows})
    assert joined.title == "selection peak memory and peak reserved, save"
    assert joined.cases == 1
    assert [len(joined.rows), len(counted.rows)] == [2, 1]
    assert len(of(*rows)) == 3


@pytest.mark.parametrize(
    ("factor", "words"),
    [(1.07, "1.07"), (1.003, "1.003"), (0.9971, "0.997"), (1.0004, "1.0004"), (1.0, "1.00"), (10.0, "10")],
)
def test_an_end_of_an_interval_keeps_apart_from_no_change(factor: float, words: str) -> None:
    assert bound(factor) == words


def test_a_change_whose_interval_comes_near_to_no_change_says_how_near() -> None:
    change = changed("take", "a", 1.05)
    near = dataclasses.replace(change, low=1.0031)
    assert "1.05 times slower (1.003 to 1.10)" in of(near)[0].words
    assert "SLOWER 1.05 times (1.003 to 1.10)" in compare.sentence(near)


def of_bytes(size: str, old: float, more: float) -> Change:
    series = Series(LANE, "saved_tensors.Q.track_peak_memory", ("'checkpoint'", f"'{size}'"))
    ratio = (old + more) / old
    return Change(series, Verdict.HUNGRIER, old, old + more, ratio, ratio, ratio)


def test_bytes_that_rise_by_the_same_amount_in_every_size_are_told_as_an_amount() -> None:
    (found,) = of(of_bytes("small", 160_008, 8_519_680), of_bytes("large", 1_200_000_008, 8_519_680))
    assert found.words == (
        "saved tensors peak memory, checkpoint: 8.5 MB more each (1.01 to 54 times more) in 2 cases, unexplained."
    )
    (doubled,) = of(of_bytes("small", 160_008, 160_008), of_bytes("large", 1_200_000_008, 1_200_000_008))
    assert doubled.words == "saved tensors peak memory, checkpoint: 2.00 times more in 2 cases, unexplained."


def test_cause_of_some_rows_is_not_told_of_all() -> None:
    rows = [changed("take", str(size), 1.2) for size in range(3)]
    number = "while the number of operators went from 1 to 2"
    (found,) = of(*rows, why={rows[0].series: number, rows[1].series: "unexplained"})
    assert found.words.endswith(f"in 3 cases; 1 of them {number}.")


def test_cause_that_was_found_is_told_before_numbers_that_moved_beside_more_rows() -> None:
    rows = [changed("take", str(size), 1.2) for size in range(3)]
    number, cause = "while the number of operators went from 1 to 2", "because aten::take holds 95 % of the difference"
    why = {rows[0].series: number, rows[1].series: number, rows[2].series: cause}
    (found,) = of(*rows, why=why)
    assert found.words.endswith(f"in 3 cases; 1 of them {cause}.")


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


def comparison(*changes: Change) -> compare.Comparison:
    return compare.Comparison("machine", LANE, "v2.3.1", "v2.15.0", list(changes), {}, {}, 3, threads="1")


def test_sheet_says_that_memory_is_the_same_and_what_was_not_measured_in_80_columns() -> None:
    same = Series(LANE, "selection.Q.track_peak_memory", ("'take'", "'a'"))
    rows = [changed(f"variant with a long name {i}", "of a long size", 1.2 + i / 100) for i in range(30)]
    text = answer.text(comparison(*rows, Change(same, Verdict.SAME, 8.0, 8.0, 1.0, 1.0, 1.0)))
    assert max(map(len, text.splitlines())) <= answer.WIDTH
    assert "Peak memory: the same in all 1 series." in text
    assert "Nothing broke in 31 cases." in text
    assert "no GPU time, with one thread" in " ".join(text.split())
    assert "Not measured here: import and start-up of a process, resident memory." in " ".join(text.split())
    assert "3 series were measured on only one of the two releases." in " ".join(text.split())
    assert len(re.findall(r"^ ?\d+\. ", text, re.MULTILINE)) == answer.MOST_FINDINGS
    assert "10 of 30 findings, which are 30 changed series:" in text


def test_factors_that_begin_at_none_are_told_by_the_largest() -> None:
    (found,) = of(of_bytes("small", 160_008, 8_519_680), of_bytes("large", 12_000_000_008, 8_519_680))
    assert found.words == (
        "saved tensors peak memory, checkpoint: 8.5 MB more each (up to 54 times more) in 2 cases, unexplained."
    )


def test_cases_without_a_number_on_either_release_are_told_with_the_reasons_why() -> None:
    def never(variant: str, reason: str, metric: str = "time") -> Change:
        return Change(Series(LANE, f"batching.Q.track_{metric}", (variant, "'a'")), Verdict.NEVER_RAN, reason=reason)

    rows = [never(f"'gpu {i}'", "it needs a GPU; here is none") for i in range(3)]
    rows += [never("'a'", "no compiler."), never("'b'", "no disk"), never("'c'", "no time"), never("'d'", "no wish")]
    rows += [changed("take", "a", 1.2), never("'mask'", "there is no backward", "forward_time")]
    rows.append(Change(Series(LANE, "batching.Q.track_time", ("'mask'", "'a'")), Verdict.SAME, 1.0, 1.0, 1.0, 1.0, 1.0))
    (broke,) = (card.verdict for card in answer.cards(rows, of(*rows)) if card.name == "Broke")
    assert broke == (
        "Nothing broke in 2 cases. 7 more cases ran on neither release: it needs a GPU (3); no compiler (1); no disk (1); "
        "other reasons (2). In cases that ran, 1 series has no number on either release: there is no backward (1)."
    )
    (alone,) = (card.verdict for card in answer.cards([never("'a'", "")], []) if card.name == "Broke")
    assert alone == "1 more case ran on neither release: no reason is stored (1)."


def test_what_was_measured_of_a_process_is_not_said_to_be_missing() -> None:
    series = [Series(LANE, f"own.Own.track_{metric}", ("'work'",)) for metric, *_ in answer.UNMEASURED.values()]
    said = answer.not_measured(comparison(*(Change(one, Verdict.SAME, 8.0, 8.0, 1.0, 1.0, 1.0) for one in series)))
    assert "not cover" not in said
