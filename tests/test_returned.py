"""Is what a call returns described as it is, and are its numbers kept?"""

import hashlib
import itertools
from typing import Any

import pytest

from .torch_here import np, torch

# isort: split

from contract.metrics import ROUNDING
from measure import returned


def of(tmp_path: Any, result: Any) -> tuple:
    """Rows, and the numbers that were kept."""
    found, name = returned.described(result, tmp_path)
    numbers = np.frombuffer((tmp_path / name).read_bytes(), "<f8")
    assert sum(found["items"]) == len(numbers)
    return found["tensors"], numbers.tolist()


def digest(*numbers: float, dtype: str = "<f8") -> str:
    return hashlib.sha256(np.array(numbers, dtype).tobytes()).hexdigest()[:16]


def test_tensors_are_described_wherever_they_lie_in_a_fixed_order(tmp_path):
    x = torch.arange(6.0).reshape(2, 3)
    result = {"b": (x.t(), [x.t()]), "a": torch.tensor([3, 4]), "c": {"left out": "text", "also": None, "kept": 0.5}}
    rows, numbers = of(tmp_path, result)
    assert [(row["dtype"], tuple(row["shape"]), tuple(row["strides"]), row["count"]) for row in rows] == [
        *(("int64", (2,), (1,), 1), ("float32", (3, 2), (1, 3), 2), ("float", (), (), 1))
    ]
    columns = [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
    assert numbers == [3.0, 4.0, *columns, *columns, 0.5]
    assert [row["digest"] for row in rows] == [digest(3, 4, dtype="<i8"), digest(*columns, *columns), digest(0.5)]


def test_every_dtype_is_kept_exactly(tmp_path):
    values = {
        "bfloat16": torch.tensor([1.5, float("nan")]).bfloat16(),
        "complex64": torch.tensor([1 + 2j]),
        "bool": torch.tensor([True]),
        "numpy.int16": np.array([7], np.int16),
    }
    rows, numbers = of(tmp_path, list(values.values()))
    assert [row["dtype"] for row in rows] == list(values)
    assert [row["not_finite"] for row in rows] == [1, 0, 0, 0]
    assert [numbers[0], *numbers[2:]] == [1.5, 1.0, 2.0, 1.0, 7.0]


def test_of_a_large_result_every_nth_number_is_kept_and_all_are_in_the_digest(tmp_path):
    x = torch.zeros(2_000_000)
    x[0], x[-2] = 5.0, 1.0
    rows, numbers = of(tmp_path, x)
    assert 8 * len(numbers) <= returned.MOST_BYTES
    assert (numbers[0], max(numbers[1:])) == (5.0, 0.0)
    assert rows[0]["digest"] == hashlib.sha256(x.double().numpy().tobytes()).hexdigest()[:16]


def test_a_result_of_many_forms_has_few_rows(tmp_path):
    rows, numbers = of(tmp_path, [torch.ones(n) for n in range(1, 101)])
    assert (len(rows), rows[-1]["dtype"], rows[-1]["count"]) == (returned.MOST_ROWS, "others", 1)
    assert len(numbers) == 100 * 101 / 2


def test_call_that_changes_its_state_is_made_on_equal_inputs_and_one_of_chance_is_told(tmp_path):
    def counting() -> Any:
        state = itertools.count()
        return lambda: torch.tensor([next(state)])

    by_chance = iter(range(9))
    files = [returned.told(build, tmp_path)["files"] for build in (counting, lambda: lambda: next(by_chance))]
    assert [len({*each}) for each in files] == [1, 2]


def test_rounding_is_what_torch_testing_allows():
    known = getattr(getattr(torch.testing, "_comparison", None), "_DTYPE_PRECISIONS", None)
    if known is None:
        pytest.skip("this release has no such table")
    of_torch = {str(dtype).rpartition(".")[2]: relative for dtype, (relative, _) in known.items()}
    assert {name: of_torch[name] for name in ROUNDING if name not in ("float", "complex")}.items() <= ROUNDING.items()


def test_forms_alone_are_told_as_the_numbers_are(tmp_path):
    result = [torch.ones(2, 3), torch.ones(2, 3), torch.ones(()).bfloat16(), torch.arange(4)]
    rows, _ = of(tmp_path, result)
    alike = [{**row, "strides": [], "digest": ""} for row in rows]
    found = returned.of_forms(["float32 [2, 3]", "float32 [2, 3]", "bfloat16 []", "int64 [4]"])["tensors"]
    assert [{**row, "shape": tuple(row["shape"]), "not_finite": 0} for row in found] == alike
