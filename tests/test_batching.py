"""Do the ways to make one tensor of many rows give the rows, and do the counts agree with arithmetic?"""

from typing import Any

import pytest

from .torch_here import np, torch

# isort: split

from measure import profile
from workloads import WrongResult, batching

ONTO_DEVICE = ["rows_to_device", "batch_to_device", "batch_to_device_pinned"]
JOINED = [name for name in batching.variants if name not in ONTO_DEVICE]


def rows(count: int, columns: int) -> list:
    """The numbers 1, 2, 3, ... row by row, each row in memory of its own."""
    return [np.arange(1 + i * columns, 1 + (i + 1) * columns, dtype=np.float32) for i in range(count)]


@pytest.mark.parametrize("variant", JOINED)
def test_rows_one_below_the_other_in_memory_of_the_result(variant):
    arguments = rows(3, 2), "cpu"
    result = batching.variants[variant](arguments)()
    arguments[0][1][:] = -1
    assert result.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert result.dtype == torch.float32
    assert result.is_contiguous()


@pytest.mark.parametrize("variant", JOINED)
def test_memory_is_the_result_and_taken_once(variant):
    call = batching.variants[variant]((rows(100, 30), "cpu"))
    call()
    got = profile.profile(call, "cpu")
    seen = 0 if variant == "numpy_stack" else 1  # NumPy's own memory is none of PyTorch's allocator
    assert (got.peak_memory, got.retained, got.allocations) == (seen * 4 * 100 * 30, seen * 4 * 100 * 30, seen)


def test_inputs_are_separate_arrays_without_zeros_the_same_for_a_seed():
    (first, device), (again, _), (other, _) = (batching.inputs("4,096 x 64", "cpu", seed) for seed in (1, 1, 2))
    assert device == "cpu"
    assert len(first) == 4096
    assert {(row.shape, row.dtype.name, row.base is None, bool(row.all())) for row in first} == {
        ((64,), "float32", True, True)
    }
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def one_changed(result: Any) -> Any:
    result[-1, -1] += 1
    return result


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (one_changed, "1 of 20 numbers of the result are not those of the rows"),
        (lambda result: result.roll(1, 0), "20 of 20 numbers"),
        (lambda result: result * float("nan"), "20 of 20 numbers"),
        (lambda result: result.t(), r"float32 \(4, 5\) on cpu, not torch\.float32 \(5, 4\) on cpu"),
        (lambda result: result.double(), r"the result is torch\.float64 \(5, 4\)"),
        (lambda result: result.to("meta"), "on meta, not"),
    ],
)
def test_wrong_result_is_refused_in_a_sentence(wrong, sentence):
    arguments = rows(5, 4), "cpu"
    right = torch.tensor([[float(number) for number in row] for row in arguments[0]])
    batching.check(arguments, right)
    with pytest.raises(WrongResult, match=sentence):
        batching.check(arguments, wrong(right.clone()))
