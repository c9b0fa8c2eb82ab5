"""Do the three bases of a claim stand side by side, each with its own answer, and is advice given for each device?"""

from collections.abc import Mapping
from typing import Any

import pytest

from tools.document import by_lane
from tools.pages import claims as reports
from torch_history.analysis import bases, claims
from torch_history.analysis.bases import Answered, Row
from torch_history.analysis.claims import RESULT_BYTES
from torch_history.analysis.series import history
from torch_history.store.certificates import Certificate, Difference, Here
from torch_history.store.launches import Case, Launch
from torch_history.store.sources import versions

from .lab import AXIS
from .processes import ROOT
from .result_files import append, write_machine
from .test_verdicts import launch as of_release

PEAK = "intersection.Intersection.track_peak_memory"
TIME = "batching.Batching.track_time"
GPU = "NVIDIA H100 80GB HBM3"

CPU_RECORD = {"machine": "here", "cpu": "AMD EPYC (family 26, model 2)", "device": "cpu", "threads": "1"}
GPU_RECORD = {"machine": "nvidia-h100-80gb-hbm3", "cpu": "Xeon", "gpu": GPU, "device": "cuda"}
RECORDED = {
    card: {
        **{"machine": f"recorded-{card}-no-kernel-ran", "cpu": f"{name} pretended by the recorder, no kernel ran"},
        **{"device": "recorder", "card": card},
    }
    for card, name in (("turing", "Tesla T4"), ("hopper", GPU))
}


def launch(
    release: str, benchmark: str, cases: Mapping[tuple[str, str], float | None], device: str, lane: str, turn: int = 1
) -> Launch:
    """One launch; a case without a number is not available."""
    found = (
        Case((repr(variant), repr(size)), **({"value": number} if number else {"unavailable": "no"}))
        for (variant, size), number in cases.items()
    )
    facts = {"device": device, "threads": 1, "torch": release}
    which = {"environment": lane, "version": versions(ROOT)[benchmark], "round": turn, "facts": facts}
    return of_release(f"v{release}", benchmark, *found, **which)


def peaks(
    device: str, scripted: Mapping[str, float | None], lane: str = "release-py3.11", sizes: tuple[str, ...] = ("small",)
) -> list[Launch]:
    """Launches of the intersection: the scripted peak of each release in results, the eager one is four times it."""

    def found(many: float | None) -> dict[tuple[str, str], float | None]:
        each = ("eager", 4.0), ("scripted", many)
        return {(variant, size): times and times * RESULT_BYTES[size] for size in sizes for variant, times in each}

    return [launch(release, PEAK, found(many), device, lane) for release, many in scripted.items()]


def of(record: Mapping[str, Any], launches: list[Launch]) -> list[Answered]:
    told = []
    for lane in dict.fromkeys(each.environment for each in launches):
        found = history(each for each in launches if each.environment == lane)
        told.append(bases.answered_by(record, lane, found, claims.answers(found, found.tags(AXIS))))
    return told


def row(*lanes: Answered, certificates: tuple[Certificate, ...] = ()) -> Row:
    (found,) = bases.rows(lanes, AXIS, certificates)
    return found


def cells(found: Row) -> list[str]:
    return [found.cells[device] for device in bases.BASES]


CPU = of(CPU_RECORD, peaks("cpu", {"2.0.1": 1.0, "2.1.2": 4.0, "2.15.0": 4.0}))
TURING = of(
    RECORDED["turing"],
    peaks("recorder", {"1.13.1": 1.0, "2.0.1": 1.0, "2.1.2": 1.0, "2.15.0": 1.0}, sizes=("small", "paper")),
)
HOPPER = of(RECORDED["hopper"], peaks("recorder", {"2.1.2": 1.0, "2.11.0": 1.0, "2.15.0": 1.0}))
H100 = of(GPU_RECORD, peaks("cuda", {"2.11.0": 1.0}, "installed-py3.12"))


def test_each_basis_has_its_own_cell_and_each_device_its_own_advice():
    found = row(*CPU, *TURING)
    assert cells(found) == [
        "Holds on v2.0.1, does not hold from v2.1.2 to v2.15.0 (AMD EPYC family 26, model 2).",
        "Holds from v1.13.1 to v2.15.0 (Tesla T4).",
        "No GPU measured yet.",
    ]
    assert found.cpu.startswith("Do not script it to save memory")
    assert found.cpu.endswith("Measured on a CPU with one thread (v2.15.0).")
    assert found.gpu.startswith("Script it where memory is short.")
    assert found.gpu.endswith("Counted, no kernel ran (v2.15.0).")
    cpu, gpu = found.advised["v2.0.1"]
    assert cpu.startswith("Script it where memory is short.")
    assert cpu.endswith("Measured on a CPU with one thread (v2.0.1).")
    assert gpu.endswith("Counted, no kernel ran (v2.0.1).")
    assert found.advised["v1.13.1"][0] == f"Not measured on v1.13.1. Where it was: {found.cpu}"
    assert row(*CPU, *TURING, *H100).brief == (
        "Do not script it to save memory: its peak equals that of eager. Measured on v2.15.0.",
        "Script it where memory is short. Counted on v2.15.0. A GPU measured the same on v2.11.0.",
    )


@pytest.mark.parametrize(
    ("measured", "cell", "advice"),
    [
        (
            1.0,
            f"Holds on v2.11.0 ({GPU}).",
            ("Script it where memory is short.", "A GPU measured the same on v2.11.0."),
        ),
        (4.0, f"Does not hold on v2.11.0 ({GPU}).", ("Do not script it to save memory", "Measured on CUDA (v2.11.0).")),
        (None, "Not measured.", ("Script it where memory is short.", "Counted, no kernel ran (v2.15.0).")),
    ],
)
def test_a_gpu_fills_its_column_and_decides_the_advice_where_it_has_a_number(measured, cell, advice):
    found = row(*CPU, *TURING, *of(GPU_RECORD, peaks("cuda", {"2.11.0": measured}, "installed-py3.12")))
    assert cells(found) == [*cells(row(*CPU, *TURING))[:2], cell]
    assert (found.gpu.startswith(advice[0]), found.gpu.endswith(advice[1])) == (True, True)


def test_pythons_of_a_machine_are_one_history_and_machines_are_told_one_after_another():
    old = of(RECORDED["turing"], peaks("recorder", {"1.8.1": 1.0, "1.12.0": None, "1.12.1": 1.0}, "release-py3.9"))
    assert cells(row(*TURING, *old, *HOPPER))[1] == (
        f"Holds from v1.8.1 to v2.15.0; not counted on v1.12.0 (Tesla T4). Holds from v2.1.2 to v2.15.0 ({GPU})."
    )


def test_machines_and_lanes_that_contradict_each_other_are_told_apart():
    other = {**CPU_RECORD, "machine": "there", "cpu": "Another processor"}
    contradicts = of(other, peaks("cpu", {"2.1.2": 1.0}))
    assert cells(row(*CPU, *contradicts))[0] == (
        "Holds on v2.0.1, does not hold from v2.1.2 to v2.15.0 (AMD EPYC family 26, model 2). "
        "Holds on v2.1.2 (Another processor)."
    )
    lanes = of(CPU_RECORD, peaks("cpu", {"2.0.1": 4.0}, "release-py3.9"))
    assert cells(row(*CPU, *lanes))[0].endswith(
        "(AMD EPYC family 26, model 2 in release-py3.11). "
        "Does not hold on v2.0.1 (AMD EPYC family 26, model 2 in release-py3.9)."
    )


def of_times(record: Mapping[str, Any], lane: str, slow: Mapping[str, tuple[float, ...]]) -> list[Answered]:
    """What a lane answers whose rounds of each release took so many times as long with a tensor per row."""
    cases = [
        ({("vstack_rows", "64 x 128"): times or None, ("flat_buffer", "64 x 128"): 1.0}, tag, turn)
        for tag, of_tag in slow.items()
        for turn, times in enumerate(of_tag, 1)
    ]
    return of(record, [launch(tag, TIME, case, "cpu", lane, turn) for case, tag, turn in cases])


def test_an_inconclusive_answer_is_drawn_as_it_is_told_whatever_other_lanes_have_of_it():
    nine, unsure, none = (9.0, 9.0, 9.0), (0.5, 2.0, 1.0), (0.0,)
    first = of_times(CPU_RECORD, "release-py3.11", {"2.10.0": nine, "2.11.0": unsure, "2.12.0": nine, "2.13.0": none})
    other = {**CPU_RECORD, "machine": "there", "cpu": "Another"}
    decided = of_times(CPU_RECORD, "release-py3.9", {"2.11.0": nine})
    not_measured = of_times(other, "release-py3.11", {"2.11.0": none})
    for lanes in (decided, not_measured):
        found = row(*lanes, *first)
        drawn = {"v2.10.0": "holds", "v2.11.0": "inconclusive", "v2.12.0": "holds", "v2.13.0": "not measured"}
        assert found.bands["cpu"] == drawn
        assert cells(found)[0].startswith("Holds from v2.10.0 to v2.12.0; inconclusive on v2.11.0 (AMD EPYC family 26")


def certificate(equal: set[str], different: set[str], release: str = "v2.11.0") -> Certificate:
    here = Here(release[1:], "13.0", GPU, "sm_90", 132)
    differences = [Difference(case, what, 1, 2) for case in different for what in ("waits", "peak_requested")]
    return Certificate(here, "hopper", [*equal], differences)


@pytest.mark.parametrize(
    ("equal", "different", "said"),
    [
        (
            {"intersection scripted small", "intersection scripted paper"},
            set(),
            f" Matches a real {GPU} in 2 of 2 cases that were checked (v2.11.0).",
        ),
        (
            {"intersection scripted paper"},
            {"intersection scripted small"},
            f" Matches a real {GPU} in 1 of 2 cases that were checked (v2.11.0); others differ in peak requested, "
            "waits.",
        ),
        ({"intersection eager small"}, {"intersection in_place small"}, ""),
        (set(), set(), ""),
    ],
)
def test_a_certificate_says_what_it_showed_of_the_cases_that_a_claim_rests_on(equal, different, said):
    shown = certificate(equal, different)
    found = row(*TURING, *HOPPER, *H100, certificates=(shown,))
    plain = row(*TURING, *HOPPER, *H100)
    assert cells(found) == [cells(plain)[0], cells(plain)[1] + said, cells(plain)[2]]


def test_a_certificate_of_another_card_or_release_says_nothing():
    shown = certificate({"intersection scripted small"}, set())
    assert "Matches" not in cells(row(*TURING, certificates=(shown,)))[1]
    other = certificate({"intersection scripted small"}, set(), "v2.14.1")
    assert "Matches" not in cells(row(*HOPPER, certificates=(other,)))[1]


def test_tables_of_the_readme_and_of_a_question_hold_the_row_and_hostile_names_stay_text(tmp_path):
    hostile = {**CPU_RECORD, "cpu": "a | b `c` <img src=x> [x](y)"}
    machines = {
        "here": (hostile, peaks("cpu", {"2.0.1": 4.0})),
        GPU_RECORD["machine"]: (GPU_RECORD, peaks("cuda", {"2.11.0": 1.0}, "installed-py3.12")),
    }
    for name, (record, launches) in machines.items():
        write_machine(tmp_path / name, **record)
        append(tmp_path, *launches, machine=name)
    lanes = reports.lanes(tmp_path, {name: by_lane(launches) for name, (_, launches) in machines.items()}, AXIS)
    found = bases.rows([told for told, _ in lanes], AXIS)
    *_, line = reports.table(found, "docs/questions").splitlines()
    assert line.count(" | ") == 4
    assert not {"<img", "`c`", "[x]"} & {part for part in ("<img", "`c`", "[x]") if part in line}
    text = reports.of_questions(found)["intersection"]
    assert text.splitlines()[0] == "| CPU measured | CUDA recorded | CUDA measured |"
    assert f"Holds on v2.11.0 ({GPU})." in text
