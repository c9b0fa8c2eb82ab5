"""Does a certificate say everything in which a GPU and the recorder differ? Most GPUs here are made up, or the recorder."""

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from recorder import certificate
from recorder.build import Built, Wheel
from recorder.cards import Card, cards, members
from recorder.certificate import Answer, Asked
from torch_history.cli import main
from torch_history.measuring.kit.check import check
from torch_history.measuring.upgrading import fits as answer
from torch_history.store.certificates import UNEXPLAINED, Certificate, Difference, Here
from torch_history.system.errors import UserError
from torch_history.system.files import read_object

from .lab import AXIS
from .processes import ROOT, ran

GOOD = {"torch": "2.15.0", "cuda": "13.2", "gpu": "Tesla T4", "capability": "sm_75", "multiprocessors": 40}

HERE = Here(torch="2.15.0", cuda="13.2", gpu="Tesla T4", capability="sm_75", multiprocessors=40)
CASE = Answer(
    peak_requested=2_000,
    retained_requested=500,
    peak_allocated=2_048,
    retained_allocated=512,
    peak_reserved=2_097_152,
    allocations=4,
    copies={"host to device": 1},
    waits=1,
    kernels={"void add<float>(float*, std::array<char*, 2ul> (*)(int))": 1, "relu": 1},
)


def told(**changes: Any) -> Asked:
    known = {"intersection eager small": replace(CASE, **changes), "saved_tensors plain chain": CASE}
    return Asked(1, HERE, known, {"saved_tensors numpy chain": "slow"}, recorder=False)


def recorded(**changes: Any) -> Asked:
    return told(**{"kernels": {"add<float>(float*, int)": 1, "relu": 1}, "library_calls": {}, **changes})


def compared(gpu: Asked, recorder: Asked) -> Certificate:
    return certificate.compare(gpu, recorder, cards()["turing"])


@pytest.mark.parametrize("what", certificate.COMPARED)
def test_every_byte_and_count_that_differs_is_said(what):
    other = {"device to host": 2} if what == "copies" else 7
    result = compared(told(), recorded(**{what: other}))
    told_ = (what, getattr(CASE, what), other, UNEXPLAINED)
    assert result.differences == [Difference("intersection eager small", *told_)]
    assert result.agreed == ["saved_tensors plain chain"]


def test_what_a_library_launches_is_told_apart_and_what_pytorch_launches_is_still_compared():
    gpu = told(kernels={"relu": 1, "sm90_gemm": 2})
    inside = compared(gpu, recorded(kernels={"relu": 1}, library_calls={"cublasSgemm_v2": 2}))
    assert (inside.differences, inside.library_kernels["intersection eager small"]) == ([], {"sm90_gemm": 2})
    lacking = compared(gpu, recorded(kernels={"relu": 3}, library_calls={"cublasSgemm_v2": 2}))
    assert [(each.what, each.gpu, each.recorder) for each in lacking.differences] == [("kernel relu", 1, 3)]


def test_a_case_that_one_side_cannot_tell_is_said_with_its_side():
    recorder = Asked(1, HERE, {"intersection eager small": Answer(refused="It was read back.")}, {}, True)
    assert compared(told(), recorder).refused["intersection eager small"] == "recorder: It was read back."


def test_a_card_that_is_unknown_and_another_wheel_are_refused():
    with pytest.raises(UserError, match=r"'Titan' .* is no card of recorder/devices\.toml, and its driver did not"):
        certificate.card_of(replace(HERE, gpu="Titan"))
    built = Built(Path(), Wheel(Path(), "2.15.0+cu132", (13, 2)), [], [])
    certificate.same_release(HERE, built)
    with pytest.raises(UserError, match=r"2\.15\.0 for CUDA 12\.8, and what is recorded is 2\.15\.0 for CUDA 13\.2"):
        certificate.same_release(replace(HERE, cuda="12.8"), built)


def described(card: Card, name: str) -> dict[str, Any]:
    numbers = {
        str(number): value
        for member in members()
        if member.attributes
        for number, value in zip(member.attributes, card.values[member.name], strict=True)
    }
    return {"name": name, "memory": card.memory, "attributes": numbers}


def test_a_card_that_nobody_described_is_pretended_as_its_driver_says():
    hopper = cards()["hopper"]
    card = certificate.card_of(replace(HERE, gpu="NVIDIA H999", properties=described(hopper, "NVIDIA H999")))
    assert (card.title, card.capability, card.memory) == ("NVIDIA H999", "sm_90", hopper.memory)


def test_a_known_card_that_its_driver_describes_otherwise_is_said():
    turing = cards()["turing"]
    other = turing._replace(values={**turing.values, "l2CacheSize": [1]})
    here = replace(HERE, properties=described(other, "Tesla T4"))
    assert certificate.described_otherwise(here, turing) == {"l2CacheSize": [turing.values["l2CacheSize"], [1]]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "truncated"),
        ("[]", "Expected `object`"),
        ('{"format": 1, "here": {}, "cases": {}, "left_out": {}, "recorder": false}', "missing required field `torch`"),
        ("[" * 100_000, "no file of a GPU's answers"),
        *(
            (json.dumps({"format": 1, "here": {**GOOD, **wrong}, "cases": {}, "left_out": {}, "recorder": False}), words)
            for wrong, words in (
                ({"gpu": "../../x"}, "$.here.gpu"),
                ({"gpu": ""}, "$.here.gpu"),
                ({"gpu": "Tesla\x1b]0;title\x07"}, "$.here.gpu"),
                ({"gpu": "\U0001f600" * 90}, "$.here.gpu"),
                ({"torch": "2.11.0\n"}, "$.here.torch"),
                ({"torch": "../../x"}, "$.here.torch"),
                ({"capability": "\x1b[31m"}, "$.here.capability"),
                ({"multiprocessors": -(10**30)}, "no file of a GPU's answers"),
            )
        ),
        (json.dumps({"format": 9, "here": GOOD, "cases": {}, "left_out": {}, "recorder": False}), "has the format 9"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused_in_words(tmp_path, text, words):
    path = tmp_path / "gpu.json"
    path.write_text(text)
    with pytest.raises(UserError, match=re.escape(words)):
        certificate.read(path)


def test_a_certificate_is_written_and_results_read_as_before(results, monkeypatch, tmp_path):
    built = Built(Path(), Wheel(Path("a/b/c/d"), "2.15.0", (13, 2)), [], [])
    monkeypatch.setattr(answer, "made", lambda *_: built)
    monkeypatch.setattr(certificate, "read", lambda _: told(waits=1))
    monkeypatch.setattr(certificate, "ask", lambda *_: recorded(waits=9))
    results.mkdir(parents=True, exist_ok=True)
    before = check(results, AXIS)
    asked = CliRunner().invoke(main, ["certify", str(tmp_path / "gpu.json")])
    assert asked.exit_code == 3, asked.output
    assert "intersection eager small: waits is 1 on the GPU and 9 on the recorder (unexplained)" in asked.output
    (path,) = (results / "certificates").iterdir()
    assert path.name == "v2.15.0-tesla-t4.certificate"
    text = read_object(path)
    assert [(each["what"], each["gpu"], each["recorder"]) for each in text["differences"]] == [("waits", 1, 9)]
    assert check(results, AXIS).problems == before.problems


WORKS = """
import json, multiprocessing as processes, os, sys, time
from measure.beside import answers

work = [
    ("quick", lambda: {"waits": 1}), ("slow", lambda: time.sleep(60)),
    ("killed", lambda: os.kill(os.getpid(), 9)), ("closed", lambda: (os.closerange(3, 99), time.sleep(60))),
    ("torn", lambda: (os.write(processes.current_process()._args[1].fileno(), bytes([0, 0, 0, 9, 1])), os._exit(1))),
    ("exits", lambda: sys.exit(3)), ("chooses", lambda: {"chose": processes.set_start_method("spawn")}),
    ("large", lambda: {"kernels": {"k" * 300_000: 1}}),
]
print(json.dumps([dict(answers(work, 2, 1.5, 30)), dict(answers(work[:1], 1, 1.0, 0.0))]))
"""


def test_each_case_has_its_process_and_its_time_and_the_others_go_on():
    began, said = time.monotonic(), ran(sys.executable, "-c", WORKS, cwd=ROOT).stdout
    assert time.monotonic() - began < 15
    found, late = json.loads(said)
    assert (found["quick"], found["chooses"]) == ({"waits": 1}, {"chose": None})
    assert found["slow"]["failed"].startswith("it took longer than the 2 seconds")
    ended = "its process ended with status {} and no answer".format
    assert [found[name]["failed"] for name in ("killed", "closed", "torn")] == [*map(ended, (-9, -9, 1))]
    assert found["exits"]["failed"] == "SystemExit: 3"
    assert len(json.dumps(found["large"])) > 300_000
    assert late == {"quick": {"failed": "the time for all cases was over before it was asked"}}


@pytest.mark.committed
def test_listed_cases_are_those_that_a_real_card_was_asked():
    listed = CliRunner().invoke(main, ["certify", "--list"]).output.splitlines()
    answers = read_object(ROOT / "results/certificates/v2.11.0-nvidia-h100-80gb-hbm3.asked")
    assert sorted(line for line in listed if ": not asked, " not in line) == sorted(answers["cases"])
    left_out = dict(line.split(": not asked, ") for line in listed if ": not asked, " in line)
    assert answers["left_out"].items() <= left_out.items()
