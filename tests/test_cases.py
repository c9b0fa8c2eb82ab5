"""Is a case of a user's file measured under its own name, whatever the file lists on a release, and is a failure of the
suite told apart from one of the file? Measured as asv's server does it. Needs torch, NumPy and asv_runner."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .processes import ROOT, ran
from .torch_here import torch  # noqa: F401  without which all here is skipped

SERVE = """
import json, os, sys, tempfile, traceback; _, name, *wanted = sys.argv
channel = tempfile.NamedTemporaryFile("r+")
os.environ["TORCH_HISTORY_CHANNEL"] = channel.name
from asv_runner._aux import update_sys_path
from asv_runner.discovery import disc_benchmarks
from asv_runner.run import _run
folder = os.path.abspath("benchmarks")
update_sys_path(folder)
listed = [b.params for b in disc_benchmarks(folder) if b.name == name]
{before}

def asked(variant):
    channel.seek(0)
    channel.truncate()
    channel.write(json.dumps({{"asked": [repr(variant), "''"]}}) + "\\n")
    channel.flush()
    with tempfile.NamedTemporaryFile("r") as answer:
        child = os.fork()
        if not child:
            os.dup2(2, 1)
            try:
                _run((folder, name + "-0", "{{}}", "None", answer.name))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        number = answer.read()
    channel.seek(0)
    told = [json.loads(line) for line in channel if line.strip()][1:]
    facts = {{key: fact for each in told for key, fact in each["facts"].items()}}
    return [number, facts, sorted({{tuple(each["parameters"]) for each in told}})]

print(json.dumps([listed, [asked(variant) for variant in wanted]]))
"""


def served(
    path: Path, metric: str, *variants: str, before: str = "", **variables: str
) -> tuple[list[list[str]], list[tuple[float | None, dict[str, Any], list[list[str]]]]]:
    """What asv discovers of the file at `path`, and by variant the number, the facts and the parameters that they name."""
    usual = {"TORCH_HISTORY_DEVICE": "cpu", "TORCH_HISTORY_ONLY": "counts", "TORCH_HISTORY_WORKLOAD": str(path)}
    command = (sys.executable, "-c", SERVE.format(before=before), f"{path.stem}.Own.track_{metric}", *variants)
    answer = ran(*command, cwd=ROOT, env={**os.environ, **usual, **variables})
    listed, found = json.loads(answer.stdout.splitlines()[-1])
    numbers = [(json.loads(number) if number else None, facts, named) for number, facts, named in found]
    return listed[0] if listed else [], [(None if n != n else n, *rest) for n, *rest in numbers]


def mine(folder: Path, text: str) -> Path:
    path = folder / "mine.py"
    path.write_text(text)
    return path


BY_RELEASE = """
import os
import torch

def inputs():
    return torch.ones(100)

def calls(x, times):
    for _ in range(times):
        x = x + 1
    return x

functions = {"one": lambda x: calls(x, 1), "three": lambda x: calls(x, 3)}
if os.environ["RELEASE"] == "new":
    functions = {"two": lambda x: calls(x, 2), **functions}
check = None
METRICS = "operators"
"""


def test_functions_of_one_release_are_measured_under_their_names(tmp_path):
    path = mine(tmp_path, BY_RELEASE)
    listed, new = served(path, "operators", "one", "two", "three", RELEASE="new")
    assert listed == [["'two'", "'one'", "'three'"], ["''"]]
    each = new[0][0]
    assert each
    assert [number for number, *_ in new] == [each, 2 * each, 3 * each]
    listed, old = served(path, "operators", "one", "two", "three", RELEASE="old")
    assert listed == [["'one'", "'three'"], ["''"]]
    assert [number for number, *_ in old] == [each, None, 3 * each]
    assert old[1][1]["unavailable"].startswith("mine.py has no `two` on torch ")
    assert [named for *_, named in old] == [[["'one'", "''"]], [["'two'", "''"]], [["'three'", "''"]]]


SAYS_HALF = BY_RELEASE.replace(
    "METRICS", 'def raises(x):\n    raise ValueError(b"caf\\xe9".decode("utf-8", "surrogateescape"))\n\n'
    'functions["raises"] = raises\nMETRICS'
)  # fmt: skip


def test_message_with_half_a_character_costs_no_other_function(tmp_path):
    path = mine(tmp_path, SAYS_HALF)
    _, found = served(path, "operators", "raises", "one", RELEASE="old")
    assert found[0][0] is None
    assert found[1][0]
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import benchmarks.own; benchmarks.own.trial('trial.json')"
    variables = {**os.environ, "TORCH_HISTORY_WORKLOAD": str(path), "TORCH_HISTORY_DEVICE": "cpu", "RELEASE": "old"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=variables, check=True)
    said = json.loads((tmp_path / "trial.json").read_text())
    assert said == {"one": "", "three": "", "raises": "ValueError: caf\\udce9"}
    json.dumps(said, ensure_ascii=False).encode()


POISONS = """
import torch
torch.cuda._is_in_bad_fork = lambda started_in=os.getpid(): os.getpid() != started_in
"""
"""What importing torch 1.12.0 leaves: a process that is forked afterwards cannot use CUDA."""

COUNTED_HERE = """
import os
from measure import counted
{poisons}

def told(*words):
    assert not torch.cuda._is_in_bad_fork(), "Cannot re-initialize CUDA in forked subprocess"
    caching = "PYTORCH_NO_CUDA_MEMORY_CACHING" not in os.environ
    more = {{"kernels": 7, "host_syncs": 0, "copied": {{}}, "library_calls": []}} if caching else {{"peak_memory": 5}}
    return {{"kernel_names": [], "form": [], **more}}

counted._launched = counted._requested = told
counted.card = lambda: "turing"

def inputs():
    return torch.ones(1)

functions = {{"f": lambda x: x}}
METRICS = ("peak_memory", "kernels")
"""
"""A file that is counted by itself, as if on the recorder, which fails in a process that cannot use CUDA."""


@pytest.mark.parametrize("poisons", [POISONS, "import torch"], ids=["no fork can use CUDA", "forks can use CUDA"])
def test_case_is_counted_without_a_fork_where_none_can_use_cuda(tmp_path: Path, poisons: str) -> None:
    path = mine(tmp_path, COUNTED_HERE.format(poisons=poisons))
    _, ((number, facts, _),) = served(path, "peak_memory", "f", TORCH_HISTORY_DEVICE="recorder")
    assert (number, facts["found"]["kernels"], facts["found"]["peak_memory"]) == (5, 7, 5)


CUDA = """
import torch
torch.cuda._is_in_bad_fork = lambda: True
torch.cuda.is_available = lambda: True
"""


def test_gpu_that_no_forked_process_can_use_is_no_failure_of_the_file(tmp_path: Path) -> None:
    path = mine(tmp_path, BY_RELEASE)
    variables = {"TORCH_HISTORY_DEVICE": "cuda", "RELEASE": "old"}
    _, ((number, facts, _),) = served(path, "operators", "one", before=CUDA, **variables)
    assert number is None
    assert facts["unmeasured"].startswith("importing torch ")
    assert "unavailable" not in facts


def test_disk_that_is_full_is_no_failure_of_the_file(tmp_path):
    path = mine(tmp_path, BY_RELEASE)
    full = "from benchmarks import common; common._LAUNCH._file = open('/dev/full', 'ab+', buffering=0)"
    full += "; common._LAUNCH._records = list; common._LAUNCH.first = lambda what: False"
    variables = {"TORCH_HISTORY_DEVICE": "cpu", "TORCH_HISTORY_WORKLOAD": str(path), "RELEASE": "old"}
    command = (sys.executable, "-c", SERVE.format(before=full), "mine.Own.track_operators", "one")
    answer = ran(*command, cwd=ROOT, env={**os.environ, **variables}, code=None)
    last = answer.stderr.strip().splitlines()[-1]
    assert last == "measure.device.NotMeasured: what it found could not be kept: No space left on device"
