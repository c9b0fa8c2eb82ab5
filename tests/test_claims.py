"""Is each claim answered as its numbers say? The numbers are planted here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from torch_history.analysis import claims
from torch_history.analysis.claims import FAILS, HOLDS, PARTLY, UNKNOWN, Numbers, Turn
from torch_history.analysis.steps import Kind, Step
from torch_history.analysis.verdicts import Series, history
from torch_history.releases.axis import Axis
from torch_history.store.launches import Case, Launch

ROOT = Path(__file__).resolve().parents[1]


def of_one_session(values: Mapping[tuple[str, str, str], float]) -> Numbers:
    return Numbers({key: {"s": [value]} for key, value in values.items()})


@pytest.mark.parametrize(("scripted", "word"), [(60.0, HOLDS), (120.0, FAILS), (240.0, FAILS), (None, UNKNOWN)])
def test_scripting_holds_where_the_peak_is_the_result_alone(scripted: float | None, word: str) -> None:
    values = {("peak_memory", "eager", "small"): 240.0}
    if scripted is not None:
        values["peak_memory", "scripted", "small"] = scripted
    answer = claims.intersection(of_one_session(values))
    assert answer.word == word
    said = f"The scripted variant peaks at {scripted or 0:.0f} B, the eager one at 240 B. The result alone takes 60 B."
    assert answer.sentence == (said if scripted else "No number was measured for the scripted variant.")


@pytest.mark.parametrize("differs", [None, "peak_memory", "retained", "gradients"])
def test_disabling_hooks_holds_where_any_byte_or_gradient_differs(differs: str | None) -> None:
    values = {
        (metric, variant, size): 8.0
        for metric in ("peak_memory", "retained", "gradients")
        for variant in ("plain", "hooks_disabled")
        for size in ("loop", "chain")
    }
    if differs:
        values[differs, "hooks_disabled", "chain"] = 7.0
    for size, disabled in (("loop", 0.99), ("chain", 1.03)):
        values["time", "plain", size], values["time", "hooks_disabled", size] = 1.0, disabled
    answer = claims.saved_tensors(of_one_session(values))
    assert answer.word == (HOLDS if differs else FAILS)
    assert ("is 8.0 and 7.0" if differs else "in all 2 scripts. The time is 0.99 to 1.03 times") in answer.sentence
    assert claims.saved_tensors(of_one_session({})).word == UNKNOWN


@pytest.mark.parametrize(
    ("scripted", "eager", "word"), [(50, 2, HOLDS), (3, 2, FAILS), (7, 2, UNKNOWN), (50, 40, UNKNOWN), (12, 2, HOLDS)]
)
def test_torchscript_stalls_where_it_does_and_eager_does_not(scripted: float, eager: float, word: str) -> None:
    ratios = {"scripted": scripted, "traced": 1.5, "eager": eager}
    values = {("worst_over_median", variant, "one shape"): ratio for variant, ratio in ratios.items()}
    assert claims.warm_up(of_one_session(values)).word == word


@pytest.mark.parametrize(
    ("ratios", "word"),
    [
        ((3.0, 9.0), HOLDS),
        ((1.1, 9.0), HOLDS),
        ((1.0, 9.0), PARTLY),
        ((1.1, 0.9), FAILS),
        ((1.1, 1.19), UNKNOWN),
        ((), UNKNOWN),
    ],
)
def test_claim_of_time_needs_a_clear_factor_and_no_size_without_any(ratios: tuple[float, ...], word: str) -> None:
    values: dict[tuple[str, str, str], float] = {}
    for i, ratio in enumerate(ratios):
        values["time", "vstack_rows", f"size {i}"] = ratio
        values["time", "flat_buffer", f"size {i}"] = 1.0
    assert claims.batching(of_one_session(values)).word == word


def test_variants_are_compared_within_a_session() -> None:
    """The machine was slow in `b`, which measured one of them more often: their medians over all are 1.0 and 2.0."""
    numbers = Numbers(
        {("time", "mask", "1"): {"a": [1.0], "b": [2.0, 2.0]}, ("time", "index", "1"): {"a": [1.0] * 2, "b": [2.0]}}
    )
    assert numbers.ratio("time", "1", "mask", "index") == 1.0
    assert numbers("time", "mask", "1") == 2.0
    assert numbers.ratio("time", "1", "mask", "none") is None


def test_selection_is_decided_by_a_hundred_uses_and_shows_the_others() -> None:
    values = {}
    for uses, ratio in (("1", 1.0), ("10", 5.0), ("100", 12.0)):
        values["time", "mask", f"vector 1 % x {uses}"] = ratio
        values["time", "index_reused", f"vector 1 % x {uses}"] = 1.0
    answer = claims.selection(of_one_session(values))
    assert answer.word == HOLDS
    assert answer.sentence == (
        "A mask takes 12.0 (vector 1 % x 100) times as long as an index that is reused. "
        "In other sizes it takes 1.0 (vector 1 % x 1) to 5.0 (vector 1 % x 10) times as long."
    )


def test_document_answers_release_by_release_from_the_medians_of_launches() -> None:
    def launch(release: str, number: int, scripted: float) -> Launch:
        cases = (Case(("'scripted'", "'small'"), value=scripted), Case(("'eager'", "'small'"), value=240.0))
        name = "intersection.Intersection.track_peak_memory"
        return Launch(
            "s", 1, f"{release}{number}", release, "release-py3.11", name, "1", f"2026-01-0{number}", 1.0, {}, cases
        )

    axis = Axis.load(ROOT / "releases.toml")
    launches = [launch("v2.0.1", number, 60.0) for number in (1, 2)] + [launch("v2.1.2", 3, 240.0)]
    text = claims.document({"m": launches}, axis, lambda steps, _, machine: [f"{machine} {step.new}" for step in steps])
    assert "| claim | 2.0.1 | 2.1.2 |" in text
    assert (
        "| [Scripting keeps intermediates out of memory](../questions/intersection.md) | holds | does not hold |"
        in text
    )
    assert "  - v2.0.1 → v2.1.2, from *holds* to *does not hold*. m v2.1.2\n" in text
    assert "On v2.1.2\n\n- **Scripting keeps intermediates out of memory: does not hold.**" in text
    *_, row = claims.findings(history(launches), axis).splitlines()
    assert row == (
        "| [intersection](docs/questions/intersection.md) | Scripting keeps intermediates out of memory | "
        "Holds up to v2.0.1, does not hold since v2.1.2. | "
        "Do not script it to save memory: its peak equals that of eager. Use in-place operations, or compile it. |"
    )


def happened(
    new: str, ratio: float, variant: str = "scripted", metric: str = "peak_memory", until: str = ""
) -> tuple[Step, str]:
    series = Series("release-py3.11", f"intersection.Intersection.track_{metric}", (f"'{variant}'", "'small'"))
    kind = Kind.EXCURSION if until else Kind.STEP
    return Step(series, kind, "", new, until or new, 1.0, ratio, ratio, ratio, ratio), f"{variant} {metric} {ratio}."


def test_an_answer_that_changed_names_what_it_depends_on_the_largest_first() -> None:
    answered = [("v1", HOLDS), ("v2", UNKNOWN), ("v3", FAILS), ("v4", FAILS)]
    found = claims.turns(
        "intersection",
        answered,
        [
            happened("v2", 2.0, "eager"),
            happened("v3", 1 / 4),
            happened("v3", 9.0, "compiled"),
            happened("v3", 9.0, metric="time"),
            happened("v4", 5.0),
        ],
    )
    assert found == [Turn("v1", "v3", HOLDS, FAILS, "scripted peak_memory 0.25. eager peak_memory 2.0.")]


def test_an_answer_that_came_back_names_the_excursion() -> None:
    answered = [("v1", HOLDS), ("v2", FAILS), ("v3", FAILS), ("v4", HOLDS)]
    found = claims.turns("intersection", answered, [happened("v2", 4.0, until="v3")])
    assert [(turn.new, turn.why) for turn in found] == [
        ("v2", "scripted peak_memory 4.0."),
        ("v4", "scripted peak_memory 4.0."),
    ]


def test_an_answer_near_its_border_says_so() -> None:
    (turn,) = claims.turns("intersection", [("v1", HOLDS), ("v2", FAILS)], [])
    assert turn.why == claims.NO_CAUSE


class Asked(Numbers):
    """Has every number, and remembers which were asked for."""

    def __init__(self) -> None:
        self.metrics: set[str] = set()
        self.variants: set[str] = set()

    def __call__(self, metric: str, variant: str, size: str) -> float:
        self.metrics.add(metric)
        self.variants.add(variant)
        return 1.0

    def ratio(self, metric: str, size: str, of: str, to: str) -> float:
        return self(metric, of, size) / self(metric, to, size)

    def sizes(self, metric: str, variant: str) -> list[str]:
        return ["vector 1 % x 100"]


def test_what_a_claim_depends_on_is_what_decides_it() -> None:
    """`decide` asks for no metric and variant that `depends_on` leaves out, save times that are only shown."""
    for question, claim in claims.CLAIMS.items():
        metrics, variants = claim.depends_on
        asked = Asked()
        claim.decide(asked)
        assert asked.variants == set(variants), question
        assert asked.metrics - {"time"} <= set(metrics), question


def test_a_release_without_a_number_of_a_question_is_inconclusive_there() -> None:
    def launch(release: str, benchmark: str, case: Case) -> Launch:
        about = (release, release, "release-py3.11", benchmark, "1", release)
        return Launch("s", 1, *about, 1.0, {}, (case,))

    axis = Axis.load(ROOT / "releases.toml")
    rows = Case(("'vstack_rows'", "'64 x 128'"), samples=(9.0,)), Case(("'flat_buffer'", "'64 x 128'"), samples=(1.0,))
    times = [launch("v2.0.1", "batching.Batching.track_time", case) for case in rows]
    peak = Case(("'vstack_rows'", "'64 x 128'"), value=1.0)
    found = history([*times, launch("v2.1.0", "intersection.Intersection.track_peak_memory", peak)])
    assert {release: answer.word for release, answer in claims.answers(found)["batching"].items()} == {
        "v2.0.1": HOLDS,
        "v2.1.0": UNKNOWN,
    }
    table = claims.findings(found, axis)
    assert "Holds up to v2.0.1, inconclusive since v2.1.0." in table
    assert "TorchScript stalls" not in table
