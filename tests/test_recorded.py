"""Is the recorder a device like the others: asked for, recorded under a name that says so, told apart, and never timed?"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from contract.metrics import METRICS, RECORDED
from contract.request import Request
from torch_history.analysis.compare import CannotCompare, choose_machine
from torch_history.measuring.kit import check
from torch_history.measuring.machine import describe
from torch_history.store.details import add_details, read_details

from .processes import ROOT, ran, torch_history
from .result_files import cases, write_machine


def test_name_of_the_folder_says_the_card_and_that_no_kernel_ran(monkeypatch):
    monkeypatch.delenv("TORCH_HISTORY_MACHINE", raising=False)
    record = describe(Request(device="recorder"))
    assert record["machine"] == "recorded-turing-sm75-no-kernel-ran"
    assert (record["device"], record["card"], record["capability"]) == ("recorder", "turing", "sm_75")
    assert "no kernel ran" in record["cpu"]
    assert describe(Request(device="recorder", card="hopper"))["machine"] == "recorded-hopper-sm90-no-kernel-ran"


def test_no_time_and_no_operator_is_a_metric_of_the_recorder():
    counted = {name: metric.kind for name, metric in METRICS.items() if "recorder" in metric.devices}
    assert "times" not in counted.values()
    assert "operators" not in counted
    assert {*RECORDED, "peak_memory", "kernels", "host_syncs"} <= counted.keys()


DETAIL: dict[str, Any] = {"kernels": {"a": 2, "b": 1}, "library_calls": {}, "copied": {}, "form": ["float32 [2]"]}


def test_details_survive_their_file_and_those_of_the_last_launch_stay(tmp_path):
    path = tmp_path / "v2.0.1-release-py3.11.recorded"
    add_details(path, "one", {"q 'eager' 'small'": DETAIL})
    add_details(path, "one", {"q 'eager' 'small'": DETAIL, "q 'other' 'small'": DETAIL})
    assert read_details(path)["q 'eager' 'small'"] == {**DETAIL, "session": "one"}
    add_details(path, "two", {"q 'eager' 'small'": {**DETAIL, "kernels": {"a": 1}}})
    found = read_details(path)
    assert found["q 'eager' 'small'"] == {**DETAIL, "kernels": {"a": 1}, "session": "two"}
    assert found["q 'other' 'small'"] == {**DETAIL, "session": "one"}


def test_damaged_details_are_refused_by_name(tmp_path):
    path = tmp_path / "v2.recorded"
    path.write_text('{"names": [], "cases": {"q": {"kernels": [[3, 1]]}}}')
    with pytest.raises(ValueError, match=r"it holds no details"):
        read_details(path)
    assert check.CHECKS[path.suffix] is read_details


def test_machine_that_nobody_named_is_the_one_that_measured_more_releases_and_then_more_of_each(tmp_path):
    def measures(name: str, lines: int, *tags: str, device: str = "cpu") -> None:
        write_machine(tmp_path / name, device=device)
        for tag in tags:
            (tmp_path / name / f"{tag}-release-py3.11.jsonl").write_text("{}\n" * lines)

    measures("a", 1, "v2.0.1", "v2.1.0")
    measures("b", 3, "v2.0.1", "v2.1.0")
    measures("c", 9, "v2.1.0")
    measures("recorded", 9, "v2.0.1", "v2.1.0", "v2.2.0", device="recorder")
    assert choose_machine(tmp_path, None, "elsewhere") == "b", "nothing ran on the recorder"
    assert choose_machine(tmp_path, "recorded", "elsewhere") == "recorded"
    measures("a", 3, "v2.0.1", "v2.1.0")
    with pytest.raises(CannotCompare, match="Name one with --machine: a, b, c"):
        choose_machine(tmp_path, None, "elsewhere")
    assert choose_machine(tmp_path, None, "a") == "a"


@pytest.fixture(scope="module")
def counted(tmp_path_factory) -> Path:
    """A copy of the suite in which one release was counted by the command, in two launches."""
    suite = tmp_path_factory.mktemp("suite") / "suite"
    left_out = shutil.ignore_patterns(".git", ".venv", "env", "results", "html", "__pycache__")
    shutil.copytree(ROOT, suite, ignore=left_out)
    surroundings = {**os.environ, "HOME": str(suite), "PYTHONPATH": str(suite), "CUDA_VISIBLE_DEVICES": "-1"}
    asked = ["run", "2.0.1", "--device", "recorder", "--rounds", "2", "--question", "intersection"]
    torch_history(*asked, "--question", "selection", cwd=suite, env=surroundings)
    return suite


def numbers(suite: Path) -> dict[tuple[str, ...], list[Any]]:
    """(metric, variant, size) -> the numbers of all launches, or the reasons."""
    found: dict[tuple[str, ...], list[Any]] = {}
    for launch, case in cases(suite / "results", "recorded-turing-sm75-no-kernel-ran"):
        key = launch.benchmark.rpartition("track_")[2], *(text.strip("'") for text in case.parameters)
        found.setdefault(key, []).append(case.reason if case.value is None else case.value)
    return found


@pytest.mark.releases
def test_a_session_on_the_recorder_counts_what_a_release_asks_of_cuda(counted):
    found = numbers(counted)
    assert found["peak_memory", "eager", "small"] == [240_000_000] * 2
    assert found["peak_memory", "scripted", "small"] == [60_000_000] * 2
    assert found["kernels", "scripted", "small"] == [1] * 2
    assert found["fusion_groups", "scripted", "small"] == [1] * 2
    assert found["host_waits", "mask", "vector 1 % x 10"] == [10] * 2
    assert found["host_waits", "index_reused", "vector 1 % x 10"] == [1] * 2
    assert all("only the waits are known" in reason for reason in found["peak_memory", "mask", "vector 1 % x 10"])
    assert not {metric for metric, *_ in found} & {"time", "forward_time", "operators"}


@pytest.mark.releases
def test_groups_whose_fall_back_ran_are_not_counted_as_fused(counted):
    """2.0.1 has a graph with a group for the stacked form, and launches the kernels of eager."""
    found = numbers(counted)
    assert found["fusion_groups", "stacked_scripted", "small"] == [0] * 2
    assert found["kernels", "stacked_scripted", "small"] == [5] * 2


@pytest.mark.releases
def test_upgrade_on_the_recorder_finds_other_kernels_and_another_dtype(counted, tmp_path):
    """As if the newer of two releases returned float64: a row of 3 numbers of 8 bytes, and a kernel that converts them."""
    file = tmp_path / "norms.py"
    file.write_text(
        "import torch\n\n\ndef inputs():\n    return torch.ones(3)\n\n\ndef doubled(x):\n"
        "    return (x + x).to(torch.float64 if torch.__version__ >= '2.1' else x.dtype)\n\n\n"
        "functions = {'doubled': doubled}\n"
    )
    surroundings = {**os.environ, "HOME": str(counted), "PYTHONPATH": str(counted), "TORCH_HISTORY_DEVICE": "recorder"}
    asked = ["upgrade", file, "--from", "2.0.1", "--to", "2.1.0", "--json"]
    found = json.loads(torch_history(*asked, cwd=counted, env=surroundings).stdout)
    (result,) = found["results"]
    assert result["forms"] == {"dtype": ["float32", "float64"]}
    assert {row["metric"]: (row["old"], row["new"]) for row in found["changes"]}["kernels"] == (1, 2)


KERNELS_DO_NOT_RUN = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
from benchmarks import common
from measure import device
from workloads import intersection
arguments = intersection.inputs("small", "cuda", 1)
intersection.check(arguments, torch.zeros(30_000, 500, device="cuda"))
try:
    common._check(intersection, arguments, torch.zeros(30_000, 500, device="cuda"), "cuda")
except device.DeviceUnavailable as error:
    print(error)
"""


@pytest.mark.releases
def test_zeros_are_no_result_where_no_kernel_ran(counted):
    """The workload's own check fetches its inputs from the device, and compares zeros with zeros there."""
    from recorder.build import build

    environment = counted / "env" / "recorder" / "v2.0.1-py3.11"
    surroundings = build(environment).surroundings()
    ended = ran(environment / "bin" / "python", "-c", KERNELS_DO_NOT_RUN, ROOT, env=surroundings)
    assert ended.stdout.startswith("kernels do not run on this GPU")
