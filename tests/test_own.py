"""Is a file of one's own measured as it is, and is what is wrong with it said in a sentence?"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from .processes import ROOT
from .torch_here import np, torch

# isort: split

from benchmarks import common, own
from workloads import WrongResult

FILE = """
import numpy as np
import torch

def inputs(seed, device):
    return torch.from_numpy(np.random.RandomState(seed).rand(8, 8)), 2

def scaled(x, factor):
    return x * factor

functions = {"scaled": scaled, "summed": lambda x, factor: x + x, "tripled": lambda x, factor: x * 3}
"""
INPUTS = "def inputs(): return 1\n"
LOADED = "import sys, {module}; print('torch._dynamo' in sys.modules)"


def written(folder: Path, text: str) -> Any:
    path = folder / "my-file.py"
    path.write_text(text)
    return own.load(path, path)


def test_functions_of_the_inputs_become_variants(tmp_path):
    workload = written(tmp_path, FILE)
    arguments = workload.inputs("", "cpu", 3)
    want = 2 * np.random.RandomState(3).rand(8, 8)
    assert list(workload.variants) == ["scaled", "summed", "tripled"]
    for name in ("scaled", "summed"):
        result = workload.variants[name](arguments)()
        np.testing.assert_allclose(result.numpy(), want)
        workload.check(arguments, result)
    assert "time" in workload.METRICS
    assert list(workload.sizes) == [""]


def test_first_call_finds_nothing_loaded_that_importing_torch_does_not_load(tmp_path):
    """Where a release loads torch._dynamo in the first call, that call takes the time."""
    (tmp_path / "mine.py").write_text(FILE + "\nMETRICS = ('time', 'first_call')\n")
    variables = {**os.environ, "TORCH_HISTORY_WORKLOAD": str(tmp_path / "mine.py")}
    commands = ([sys.executable, "-c", LOADED.format(module=module)] for module in ("torch", "benchmarks.own"))
    alone, suite = (subprocess.check_output(command, cwd=ROOT, env=variables, text=True) for command in commands)
    assert suite == alone


def test_a_model_beside_the_functions_has_the_same_weights_in_each_process(tmp_path):
    first, second = (written(tmp_path, FILE + "\nMODEL, ARRAY = torch.randn(9), np.random.rand(9)\n") for _ in range(2))
    assert torch.equal(first.MODEL, second.MODEL)
    assert (first.ARRAY == second.ARRAY).all()


def test_file_that_is_gone_is_measured_as_it_was_and_without_the_arguments_of_others(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["asv", "discover"])
    (tmp_path / "kept.py").write_text(FILE + "\nimport sys\nHERE, WORDS = __file__, sys.argv\n")
    workload = own.load(tmp_path / "my-file.py", tmp_path / "kept.py")
    assert workload.WORDS == [workload.HERE]
    assert str(tmp_path / "my-file.py") == workload.HERE
    assert workload.__name__ == "my_file"
    assert "scaled" in workload.variants


@pytest.mark.parametrize(
    ("more", "right", "wrong", "sentence"),
    [
        ("", "summed", "tripled", "from that of the variant `scaled`"),
        ("def expected(x, factor):\n    return x.numpy() * 3\n", "tripled", "scaled", "from that of `expected`"),
        ("def check(inputs, result):\n    return bool(result.max() > 2)\n", "tripled", "scaled", "`check` says that"),
    ],
)
def test_an_expectation_or_a_check_of_its_own_comes_before_the_first_variant(tmp_path, more, right, wrong, sentence):
    workload = written(tmp_path, f"{FILE}\n{more}")
    arguments = workload.inputs("", "cpu", 3)
    workload.check(arguments, workload.variants[right](arguments)())
    with pytest.raises(WrongResult, match=sentence):
        workload.check(arguments, workload.variants[wrong](arguments)())


@pytest.mark.parametrize(
    ("want", "got", "sentence"),
    [
        *(([1.0, 2.0], [1.0, 2.0001], None), ([1.0, 2.0], [1.0, 2.001], "off by 0.001")),
        *(
            ([1.0, 2.0], [1.0], r"shape .*: \[\(1,\)\] and \[\(2,\)\]"),
            ([1.0, float("nan")], [1.0, 2.0], "not a number"),
            ([], [], None),
        ),
    ],
)
def test_what_counts_as_rounding(tmp_path, want, got, sentence):
    expected = f"\ndef expected(x, factor):\n    return torch.tensor({want!r})".replace("nan", "np.nan")
    workload = written(tmp_path, FILE + expected)
    with pytest.raises(WrongResult, match=sentence) if sentence else contextlib.nullcontext():
        workload.check(workload.inputs("", "cpu", 3), torch.tensor(got))


def test_a_result_that_refers_to_itself_is_refused_with_what_to_do(tmp_path):
    workload = written(tmp_path, FILE + "\ndef expected(x, factor):\n    return [1]")
    around: list = []
    around.append(around)
    with pytest.raises(WrongResult, match=r"refers to itself, which cannot be compared. If .* `check = None`"):
        workload.check(workload.inputs("", "cpu", 3), around)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def f(:", "line 1 of my-file.py is no Python"),
        ("import not_there; functions = {}", "cannot be imported: .* 'not_there'. If that is a package"),
        ("open('data.csv'); functions = {}", "'data.csv'. It is not run in its folder: `Path"),
        ("def inputs(): return 1", "my-file.py names nothing to measure"),
        (f"{INPUTS}import sys; sys.exit('stop')", "my-file.py cannot be imported: SystemExit: stop"),
        ("functions = {'f': abs}", "my-file.py has no function `inputs`"),
        (f"{FILE}METRICS = ('tme',)", r"metric `tme`, and there is none. Did you mean `time`\?"),
        (f"{FILE}METRICS = ('process_time',)", "which is of a process, and has no `command`"),
        (f"{FILE}command = 'python x.py'", "command `command` that is no list of words"),
        (f"{INPUTS}functions = {{'f': abs}}; sizes = ('small',)", "has `sizes` that is no dictionary"),
        (f"{INPUTS}def rows(x): yield x\nfunctions = {{'r': rows}}", "has `r` in `functions`, which is a generator"),
        (f"{INPUTS}functions = {{1: abs}}", "has 1 in `functions`, which is no name"),
        (f"{INPUTS}functions = {{'caf\\udce9': abs}}", r"has 'caf\\udce9' in `functions`, which is no name"),
        (f"{INPUTS}functions = {{'x' * 101: abs}}", "which is no name: give it a text of at most 100 printable"),
        (f"{INPUTS}functions = {{'f': abs}}; iterators = {{'f': range}}", "has `f` in `functions` and in `iterators`"),
        (f"{INPUTS}functions = {{'f': abs}}; variants = {{'f': abs}}", "has `f` in `functions` and in `variants`"),
        (f"{INPUTS}functions = {{'f': abs}}; sizes = {{4: {{}}}}", "has 4 in `sizes`, which is no name"),
    ],
)
def test_file_that_cannot_be_used_is_refused_in_a_sentence(tmp_path, text, sentence):
    with pytest.raises(own.WorkloadUnreadable, match=sentence):
        written(tmp_path, text)


def test_a_file_of_tests_and_a_plain_script_are_measured_as_they_are(tmp_path):
    tests = "import torch\n\ndef test_sum():\n    torch.ones(3).sum()\n\ndef test_with(tmp_path):\n    pass\n"
    of_tests = written(tmp_path, tests)
    assert list(of_tests.variants) == ["test_sum"]
    assert of_tests.variants["test_sum"](of_tests.inputs("", "cpu", 1))() is None
    mark = tmp_path / "ran"
    script = f"import torch\ninputs = [1]\nopen({str(mark)!r}, 'w')\n\ndef helper(command):\n    functions = 1\n"
    of_script = written(tmp_path, script)
    assert not mark.exists()
    assert of_script.commands == {"script": ["python", str(of_script.__file__)]}
    assert set(of_script.METRICS) == set(own.METRICS_OF_COMMANDS)


STATE = """
import torch

def inputs(call=0):
    return torch.ones(2 + call)

def setup(x):
    return [], x

def before(seen, x):
    seen.append("before")

def step(seen, x):
    seen.append("step")
    return {"seen": list(seen), "sum": x.sum(), "none": None}

functions = {"step": step}
"""


def test_state_is_made_once_and_something_is_done_before_each_call(tmp_path):
    workload = written(tmp_path, STATE)
    call = workload.variants["step"](workload.inputs("", "cpu", 1))
    for _ in range(2):
        call.before()
        result = call()
    assert result["seen"] == ["before", "step"] * 2
    workload.check(workload.inputs("", "cpu", 1), result)


def test_first_calls_have_inputs_of_their_own_where_they_ask_for_the_call(tmp_path):
    text = "import torch\ndef inputs(call):\n    return torch.ones(2 + call)\nfunctions = {'f': lambda x: len(x)}\n"
    view = own.of_first_calls(written(tmp_path, text + "METRICS = ('time', 'first_call')"))
    arguments = view.inputs("", "cpu", 1)
    call = view.variants["f"](arguments)
    assert [call(argument) for argument in arguments] == list(range(2, 2 + own.CALLS))
    assert view.METRICS == ("first_call",)


def test_an_iterator_is_consumed(tmp_path):
    workload = written(tmp_path, "def inputs():\n    return 5\niterators = {'all': range}\n")
    assert workload.variants["all"](workload.inputs("", "cpu", 1))() == 5


@pytest.mark.parametrize(
    ("once", "answer"),
    [
        *((lambda: "", ""), (lambda: "it failed", "it failed"), (lambda: None, None)),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "its process ended with status -9 and no answer"),
        (lambda: time.sleep(60), ""),
    ],
)
def test_a_trial_ends_and_says_how(once, answer, monkeypatch):
    monkeypatch.setattr(own, "TRIAL_SECONDS", 1.0)
    assert own._tried(once) == answer


def test_what_calls_no_operator_has_no_counts_and_a_failure_stays_one(tmp_path):
    workload = written(tmp_path, FILE)
    found = common._counts(workload, lambda: 1, None, "cpu")
    assert set(found) == {"peak_memory", "retained", "allocations", "operators", "kernels", "host_syncs"}
    assert all("its thread runs no operator" in why["unavailable"] for why in found.values())
    with pytest.raises(RuntimeError, match=r"mat1 and mat2|size mismatch"):
        common._counts(workload, lambda: torch.ones(2, 3) @ torch.ones(2, 3), None, "cpu")
