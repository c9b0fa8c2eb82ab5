"""Does a certificate say everything in which a GPU and the recorder differ? The GPU's side is made up: none was at hand."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from recorder import Refused, certificate
from recorder.build import Built, Wheel
from recorder.cards import cards
from torch_history.cli import main
from torch_history.fitting import answer
from torch_history.releases.axis import Axis
from torch_history.reports.check import check

ROOT = Path(__file__).resolve().parents[1]

HERE = {"torch": "2.15.0", "cuda": "13.2", "gpu": "Tesla T4", "capability": "sm_75", "multiprocessors": 40}
CASE = {
    "peak_allocated": 2_048,
    "peak_reserved": 2_097_152,
    "retained": 512,
    "allocations": 4,
    "kernels": ["void add<float>(float*, int)", "relu"],
    "library_calls": None,
    "copies": {"host to device": 1},
    "waits": 1,
}


def told(**changes: Any) -> dict[str, Any]:
    case = {**copy.deepcopy(CASE), **changes}
    return {"here": HERE, "cases": {"intersection eager": case, "saved_tensors plain": copy.deepcopy(CASE)}}


def recorded(**changes: Any) -> dict[str, Any]:
    return told(**{"kernels": ["add<float>(float*, int)", "relu"], "library_calls": [], **changes})


def compared(gpu: dict[str, Any], recorder: dict[str, Any]) -> certificate.Certificate:
    return certificate.compare(gpu, recorder, cards()["turing"])


def test_two_sides_that_agree_differ_in_nothing() -> None:
    result = compared(told(), recorded())
    assert (result.agreed, result.differences, result.left_out) == (
        ["intersection eager", "saved_tensors plain"],
        [],
        {},
    )


@pytest.mark.parametrize("what", certificate.COMPARED)
def test_every_byte_and_count_that_differs_is_said(what: str) -> None:
    other = {"device to host": 2} if what == "copies" else 7
    result = compared(told(), recorded(**{what: other}))
    assert result.differences == [certificate.Difference("intersection eager", what, CASE[what], other)]
    assert result.agreed == ["saved_tensors plain"]


def test_kernels_are_compared_by_name_where_no_library_launches_any() -> None:
    result = compared(told(), recorded(kernels=["add<float>(float*, int)", "add<float>(float*, int)"]))
    assert [each[1:] for each in result.differences] == [("kernel add<float>", 1, 2), ("kernel relu", 1, 0)]
    assert compared(told(), recorded(kernels=[], library_calls=["cublasSgemm_v2"])).differences == []


def test_a_case_that_one_side_cannot_tell_is_left_out_and_said() -> None:
    recorder = recorded()
    recorder["cases"]["intersection eager"] = {"refused": "It was read back."}
    result = compared(told(), recorder)
    assert result.left_out == {"intersection eager": "recorder: It was read back."}


def test_a_card_that_is_unknown_and_another_wheel_are_refused() -> None:
    with pytest.raises(Refused, match=r"'Titan' .* is no card of recorder/devices\.toml: add it"):
        certificate.card_of({**HERE, "gpu": "Titan"})
    built = Built(Path(), Wheel(Path(), "2.15.0+cu132", (13, 2)), [], [])
    certificate.same_release(HERE, built)
    with pytest.raises(Refused, match=r"2\.15\.0 for CUDA 12\.8, and what is recorded is 2\.15\.0 for CUDA 13\.2"):
        certificate.same_release({**HERE, "cuda": "12.8"}, built)


def test_a_machine_without_a_gpu_gets_no_certificate(results: Path) -> None:
    asked = CliRunner().invoke(main, ["certify", "--python", "/bin/false"])
    assert asked.exit_code == 1
    assert "could not be asked on the GPU" in asked.output
    assert "No certificate was written" in asked.output
    assert not (results / "certificates").exists()


def test_a_certificate_is_written_and_results_read_as_before(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = Built(Path(), Wheel(Path("a/b/c/d"), "2.15.0", (13, 2)), [], [])
    monkeypatch.setattr(answer, "made", lambda *_: built)
    monkeypatch.setattr(certificate, "ask", lambda *_, on_recorder: recorded(waits=9) if on_recorder else told(waits=1))
    axis = Axis.load(ROOT / "releases.toml")
    results.mkdir(parents=True, exist_ok=True)
    before = check(results, axis)
    asked = CliRunner().invoke(main, ["certify"])
    assert asked.exit_code == 3, asked.output
    assert "intersection eager: waits is 1 on the GPU and 9 on the recorder" in asked.output
    (path,) = (results / "certificates").iterdir()
    assert path.name == "v2.15.0-tesla-t4.certificate"
    text = json.loads(path.read_text())
    assert text["differences"] == [{"case": "intersection eager", "what": "waits", "gpu": 1, "recorder": 9}]
    assert check(results, axis).problems == before.problems
