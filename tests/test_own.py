"""Is a file of one's own measured as it is, and is what is wrong with it said in a sentence?

This file needs torch, NumPy and asv_runner and runs in an interpreter that has them, such as a release's; elsewhere it is
skipped in words.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import measure  # noqa: F401

try:
    import numpy as np
    import torch

    from benchmarks import own
except ImportError as _error:
    pytest.skip(f"needs torch, NumPy and asv_runner, and {_error}", allow_module_level=True)

from workloads import WrongResult

FILE = """
import numpy as np
import torch

def inputs(seed, device):
    return torch.from_numpy(np.random.RandomState(seed).rand(8, 8)), 2

def scaled(x, factor):
    return x * factor

functions = {"scaled": scaled, "summed": lambda x, factor: x + x, "wrong": lambda x, factor: x * 3}
"""


def written(folder: Path, text: str) -> Any:
    path = folder / "my-file.py"
    path.write_text(text)
    return own.load(path, path)


def test_functions_of_the_inputs_become_variants(tmp_path: Path) -> None:
    workload = written(tmp_path, FILE)
    arguments = workload.inputs("", "cpu", 3)
    want = 2 * np.random.RandomState(3).rand(8, 8)
    assert list(workload.variants) == ["scaled", "summed", "wrong"]
    for name in ("scaled", "summed"):
        result = workload.variants[name](arguments)()
        np.testing.assert_allclose(result.numpy(), want)
        workload.check(arguments, result)
    assert "time" in workload.METRICS
    assert list(workload.sizes) == [""]


def test_file_that_is_gone_is_measured_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "kept.py").write_text(FILE + "\nHERE = __file__\n")
    workload = own.load(tmp_path / "my-file.py", tmp_path / "kept.py")
    assert str(tmp_path / "my-file.py") == workload.HERE
    assert workload.__name__ == "my_file"
    assert "scaled" in workload.variants


def test_result_that_differs_from_the_first_variants_is_refused(tmp_path: Path) -> None:
    workload = written(tmp_path, FILE)
    arguments = workload.inputs("", "cpu", 3)
    with pytest.raises(WrongResult, match="from that of the variant `scaled`"):
        workload.check(arguments, workload.variants["wrong"](arguments)())


def test_own_expectation_comes_before_the_first_variant(tmp_path: Path) -> None:
    workload = written(tmp_path, FILE + "\ndef expected(x, factor):\n    return x.numpy() * 3\n")
    arguments = workload.inputs("", "cpu", 3)
    workload.check(arguments, workload.variants["wrong"](arguments)())
    with pytest.raises(WrongResult, match="from that of `expected`"):
        workload.check(arguments, workload.variants["scaled"](arguments)())


@pytest.mark.parametrize(
    ("want", "got", "sentence"),
    [
        ([1.0, 2.0], [1.0, 2.0001], None),
        ([1.0, 2.0], [1.0, 2.001], "off by 0.001"),
        ([1.0, 2.0], [1.0], "shape"),
        ([1.0, float("nan")], [1.0, 2.0], "not a number"),
        ([], [], None),
    ],
)
def test_what_counts_as_rounding(tmp_path: Path, want: list, got: list, sentence: str | None) -> None:
    workload = written(
        tmp_path, FILE + f"\ndef expected(x, factor):\n    return torch.tensor({want!r})".replace("nan", "np.nan")
    )
    arguments = workload.inputs("", "cpu", 3)
    if sentence is None:
        workload.check(arguments, (torch.tensor(got),))
    else:
        with pytest.raises(WrongResult, match=sentence):
            workload.check(arguments, torch.tensor(got))


def test_size_is_given_to_inputs_that_ask_for_it(tmp_path: Path) -> None:
    workload = written(
        tmp_path,
        "import torch\nsizes = {'4': {}, '5': {}}\ndef inputs(size):\n    return torch.ones(int(size))\n"
        "functions = {'f': torch.sum}",
    )
    assert [workload.variants["f"](workload.inputs(size, "cpu", 1))().item() for size in workload.sizes] == [4, 5]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def f(:", "line 1 of my-file.py is no Python"),
        ("import nothing_like_this", "my-file.py cannot be imported: ModuleNotFoundError: No module named"),
        ("def inputs(): return 1", "my-file.py names nothing to measure"),
        ("functions = {'f': abs}", "my-file.py has no function `inputs`"),
    ],
)
def test_file_that_cannot_be_used_is_refused_in_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(own.WorkloadUnreadable, match=sentence):
        written(tmp_path, text)


def test_file_that_is_not_there_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(own.WorkloadUnreadable, match="there is no Python file"):
        own.load(tmp_path / "nothing.py", tmp_path / "nothing.py")
