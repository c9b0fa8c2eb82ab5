"""Does a process that measures have the variables of its own list, and are numbers with others kept apart?"""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from contract import surroundings
from recorder import certificate
from recorder.build import Built, Wheel
from torch_history.analysis.replication import alike
from torch_history.analysis.series import Verdict
from torch_history.measuring import machine
from torch_history.measuring.recording import RecordedResults
from torch_history.releases import environments

from .test_verdicts import NEW, OLD, counted, only, timed

SHELL = {
    **{"PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "XDG_CACHE_HOME": "/c", "CUDA_VISIBLE_DEVICES": "1", "CC": "gcc"},
    **{"PYTORCH_JIT": "0", "MALLOC_ARENA_MAX": "1", "OMP_PROC_BIND": "close", "LD_LIBRARY_PATH": "/x"},
    "SECRET_TOKEN": "s",
    **{"GLIBC_TUNABLES": "glibc.malloc.check=3", "TORCH_HISTORY_THREADS": "2", "CFLAGS": "-O0", "PYTHONHASHSEED": "1"},
}


def test_only_what_is_listed_is_inherited_and_what_alters_and_is_lost_is_told(warned):
    having = {"PATH", "HOME", "LC_ALL", "XDG_CACHE_HOME", "CUDA_VISIBLE_DEVICES", "CC", "TORCH_HISTORY_THREADS"}
    for _ in range(2):
        found = environments.for_measuring(SHELL)
    assert found == {name: SHELL[name] for name in having} | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    (sentence,) = warned
    assert sentence.startswith(
        "These variables are set here and are not passed on to what is measured: CFLAGS, GLIBC_TUNABLES, LD_LIBRARY_PATH, "
        "MALLOC_ARENA_MAX, OMP_PROC_BIND, PYTHONHASHSEED, PYTORCH_JIT. "
    )
    assert "TORCH_HISTORY_KEEP" in sentence
    assert surroundings.kept(SHELL) == {}


def test_what_a_person_names_is_inherited_and_recorded_and_no_secret_is(warned):
    keep = {surroundings.KEEP: "OMP_*, LD_LIBRARY_PATH SECRET_TOKEN,PATH"}
    chosen = {**SHELL, **keep, "LD_LIBRARY_PATH": "/x" * 100}
    found = environments.for_measuring(chosen)
    assert (found["OMP_PROC_BIND"], found["SECRET_TOKEN"]) == ("close", "s")
    told = [(name, said.partition(":")[0]) for name, said in surroundings.kept(chosen).items()]
    assert told == [("LD_LIBRARY_PATH", "sha256"), ("OMP_PROC_BIND", "close"), ("SECRET_TOKEN", "sha256")]


def test_both_halves_of_a_certificate_inherit_the_same(tmp_path, monkeypatch):
    """Whatever a person names: on the GPU's machine it may be another than on the recorder's."""
    for name, value in {**SHELL, surroundings.KEEP: "PYTORCH_*"}.items():
        monkeypatch.setenv(name, value)
    built = Built(tmp_path, Wheel(tmp_path, "2.9.0", (12, 8)), [], [])
    recorded = built.surroundings().keys() - built.variables().keys()
    gpu = surroundings.inherited(os.environ, surroundings.PLACES).keys()
    assert gpu - recorded <= {"CUDA_VISIBLE_DEVICES", *surroundings.PLACES}
    assert "PYTORCH_JIT" not in gpu | recorded
    seen: list[Any] = []

    def ask(command: list[str], env: dict[str, str], timeout: float, **_: Any) -> Any:
        seen.extend((env, timeout))
        raise OSError

    monkeypatch.setattr(certificate.subprocess, "run", ask)
    with pytest.raises(certificate.UserError):
        certificate.ask(Path(sys.executable), {}, tmp_path / "x", 7200.0)
    assert surroundings.ALONE in seen[0]  # so that it does not start itself again
    assert seen[1] > 7200.0  # it ends by itself, with what it knows


def test_numbers_with_variables_set_are_kept_in_a_folder_of_their_own(monkeypatch):
    monkeypatch.delenv("TORCH_HISTORY_MACHINE", raising=False)
    monkeypatch.setenv("PYTORCH_JIT", "0")
    without = machine.describe(machine.Request(device="cpu"))
    monkeypatch.setenv(surroundings.KEEP, "PYTORCH_JIT")
    record = machine.describe(machine.Request(device="cpu"))
    assert "set" not in without
    assert record == {**without, "machine": f"{without['machine']}-with-pytorch-jit-0", "set": "PYTORCH_JIT=0"}
    assert machine.describe(machine.Request(device="recorder"))["machine"].endswith("-no-kernel-ran-with-pytorch-jit-0")
    assert not alike(record, without)
    assert alike(record, record)
    monkeypatch.setenv("PYTORCH_A", "x" * 59)
    monkeypatch.setenv(surroundings.KEEP, "PYTORCH_*")
    assert len(machine.describe(machine.Request(device="cpu"))["machine"]) < len(without["machine"]) + 25


def test_each_launch_says_what_was_set(monkeypatch):
    results = RecordedResults({"machine": "a"}, {}, "v2.0.1", 0, "3.11", "release-py3.11", {})
    monkeypatch.setenv("OMP_PROC_BIND", "close")
    assert "set" not in results._circumstances()
    monkeypatch.setenv(surroundings.KEEP, "OMP_PROC_*")
    assert results._circumstances()["set"] == {"OMP_PROC_BIND": "close"}


@pytest.mark.parametrize("setting", [{"PYTORCH_JIT": "0"}, "a stranger's text", ["A"]])
def test_launches_that_differ_in_a_variable_are_not_compared(setting, warned):
    facts: dict[str, Any] = {"facts": {"set": setting}}
    plain = timed(OLD, [1.0, 1.0, 1.0]) + timed(NEW, [1.0, 1.0, 1.0])
    mixed = timed(OLD, [1.0] * 3) + timed(NEW, [2.0] * 3, **facts)
    assert only(mixed).verdict is Verdict.CANT_TELL
    assert only(mixed).reason == "it was not measured"
    (sentence,) = warned
    assert sentence.startswith("3 launches in release-py3.11 were measured with ")
    assert "are skipped" in sentence
    more = timed(OLD, [1.0] * 3, session="t", **facts) + timed(NEW, [2.0] * 3, session="t", **facts)
    assert only(plain + more).verdict is Verdict.SAME  # what was measured with none counts
    assert only(more).verdict is Verdict.SLOWER  # and each by itself
    bytes_ = counted(OLD, [8]) + counted(NEW, [8]) + counted(NEW, [16], session="t", round=2, **facts)
    assert only(bytes_).verdict is Verdict.SAME
