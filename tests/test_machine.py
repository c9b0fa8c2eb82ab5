"""Does the record of a machine tell apart what must not be compared? The driver's tool `nvidia-smi` is played."""

import json
from pathlib import Path

import pytest
from asv import util
from asv.machine import Machine

from contract.request import Request
from torch_history.measuring import machine, machine_records
from torch_history.store.machines import record_of
from torch_history.system.errors import UserError

from .processes import program

CPUINFO = """\
processor	: 0
vendor_id	: GenuineIntel
model		: 143
model name	: Intel(R) Xeon(R) Platinum 8480+ @ 2.00GHz
stepping	: 8

processor	: 1
model name	: Intel(R) Xeon(R) Platinum 8480+ @ 2.00GHz
"""


@pytest.fixture(autouse=True)
def box(tmp_path, monkeypatch) -> Path:
    """The machine to be described: a folder with its tools, and with `cpuinfo`."""
    (tmp_path / "cpuinfo").write_text(CPUINFO)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("MACHINE", "DEVICE", "THREADS"):
        monkeypatch.delenv(f"TORCH_HISTORY_{name}", raising=False)
    monkeypatch.setattr(machine, "Path", lambda path: tmp_path / "cpuinfo" if path == "/proc/cpuinfo" else Path(path))
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 16)
    monkeypatch.setattr(machine.os, "sysconf", {"SC_PHYS_PAGES": 2**25 - 1300, "SC_PAGE_SIZE": 4096}.__getitem__)
    monkeypatch.setattr(machine.platform, "system", lambda: "Linux")
    monkeypatch.setattr(machine.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(Machine, "hardcoded_machine_name", None)
    return tmp_path


CPU_RECORD = {
    **{"machine": "intel-r-xeon-r-platinum-8480-2-00ghz-16-cores", "os": "Linux", "arch": "x86_64", "num_cpu": "16"},
    **{"cpu": "Intel(R) Xeon(R) Platinum 8480+ @ 2.00GHz", "ram": "128 GiB", "device": "cpu", "threads": "1"},
}
GPU_RECORD = {**CPU_RECORD, "machine": "nvidia-h200", "device": "cuda", "gpu": "NVIDIA H200", "driver": "570.86.15"}
H200 = "echo 'NVIDIA H200, 570.86.15'"


@pytest.mark.parametrize(
    ("script", "device", "record"),
    [
        *(("", "", CPU_RECORD), (H200, "", GPU_RECORD), (H200, "cpu", CPU_RECORD)),
        ("echo 'NVIDIA-SMI has failed because it could not communicate with the driver.'; exit 9", "", CPU_RECORD),
        *(("echo 'No devices were found'", "", CPU_RECORD), ("exit 127", "", CPU_RECORD)),
    ],
)
def test_machine_is_named_after_what_measures_on_it(box, monkeypatch, script, device, record):
    if script:
        program(box / "nvidia-smi", script)
    if device:
        monkeypatch.setenv("TORCH_HISTORY_DEVICE", device)
    assert machine.describe() == record


def test_more_threads_are_another_machine(monkeypatch):
    monkeypatch.setenv("TORCH_HISTORY_THREADS", "4")
    record = machine.describe()
    assert (record["threads"], record["machine"]) == ("4", CPU_RECORD["machine"] + "-4-threads")


def test_processor_whose_number_is_hidden_is_told_by_family_and_model(box):
    (box / "cpuinfo").write_text(
        "cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\ncpu family\t: 0\nmodel\t: 0\n"
    )
    assert machine.describe()["machine"] == "amd-epyc-family-26-model-2-16-cores"


def test_gpu_that_nothing_names_gets_a_folder_of_its_own_or_none(monkeypatch):
    monkeypatch.setenv("TORCH_HISTORY_DEVICE", "cuda")
    with pytest.raises(UserError, match=r"nvidia-smi reports none .* name a folder with TORCH_HISTORY_MACHINE"):
        machine.describe()
    monkeypatch.setenv("TORCH_HISTORY_MACHINE", "unnamed")
    record = machine.describe()
    assert (record["machine"], record["device"]) == ("unnamed", "cuda")
    assert "gpu" not in record


@pytest.mark.parametrize("name", [".lab", "a/b", "lab h100", "-lab", "x" * 151, "caf\xe9", "code", "benchmarks.json"])
def test_a_name_that_no_folder_of_results_or_archive_may_have_is_refused_before_anything_is_measured(monkeypatch, name):
    monkeypatch.setenv("TORCH_HISTORY_MACHINE", name)
    for device in ("cpu", "recorder"):
        with pytest.raises(UserError, match="cannot be the name of a folder in results/"):
            machine.describe(Request(device=device))


@pytest.mark.parametrize(
    ("visible", "name"), [("1", "Tesla T4"), ("1,0", "Tesla T4"), ("GPU-0", "NVIDIA H200"), ("", None), ("-1", None)]
)
def test_gpu_that_is_recorded_is_the_first_that_may_be_used_if_any(box, monkeypatch, visible, name):
    ids = f'*--id=1*) echo "Tesla T4, 570.86.15";; *--id=GPU-0*) {H200};; *--id*) exit 6;; *) {H200};;'
    program(box / "nvidia-smi", f'case "$*" in {ids} esac')
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    record = machine.describe()
    assert (record["device"], record.get("gpu")) == ("cuda" if name else "cpu", name)


@pytest.mark.parametrize(
    ("there", "measured", "said"),
    [
        ({"machine": "elsewhere"}, {}, "of another machine: elsewhere, and here"),
        ({}, {"device": "cuda"}, "on another device: cpu, and cuda"),
        ({}, {"set": "PYTORCH_JIT=0"}, "with others set: none, and PYTORCH_JIT=0"),
        ({"set": "PYTORCH_JIT=0"}, {}, "with others set: PYTORCH_JIT=0, and none"),
    ],
)
def test_a_folder_keeps_its_machine_its_device_and_what_was_set(tmp_path, monkeypatch, there, measured, said):
    path = tmp_path / "results" / "here" / "machine.json"

    def save(**more: str) -> None:
        monkeypatch.setattr(machine_records, "describe", lambda: {"machine": "here", "device": "cpu", **more})
        machine_records.setup()
        Machine.load(interactive=False).save(str(tmp_path / "results"))

    for _ in range(2):
        save()
    path.write_text(json.dumps({**json.loads(path.read_text()), **there}))
    kept = path.read_bytes()
    with pytest.raises(util.UserError, match=f"record of results {said} was to be measured. Rename that folder"):
        save(**measured)
    assert path.read_bytes() == kept
    path.write_text("{ half")
    save(**measured)
    assert record_of(path.parent) == {"machine": "here", "device": "cpu", **measured, "version": 1}
