"""Does every way to select give what the mask says, and take the bytes that arithmetic says?"""

from typing import Any

import pytest

from .torch_here import np, torch

# isort: split

from measure import profile
from workloads import Unavailable, WrongResult, selection

CPP = {"cpp_mask": "mask", "cpp_index_reused": "index_reused"}
"""Each variant in C++ and its twin in Python."""


def drawn(rows: int, columns: int, selected: int, uses: int) -> tuple:
    """x, [rows] or [rows, columns], all different; a mask with `selected` true; the uses."""
    random = np.random.RandomState(7)
    x = 1 + random.permutation(rows * columns).astype(np.float32)
    mask = np.zeros(rows, bool)
    mask[random.choice(rows, selected, replace=False)] = True
    return torch.from_numpy(x.reshape(rows, columns) if columns > 1 else x), torch.from_numpy(mask), uses


def called(variant: str, arguments: tuple) -> Any:
    try:
        return selection.variants[variant](arguments)()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("variant", selection.variants)
def test_variant_selects_what_a_loop_selects(variant, columns):
    for selected in (0, 1, 20, 37):
        x, mask, uses = drawn(37, columns, selected, 3)
        result = called(variant, (x, mask, uses))
        pairs = [*zip(x.tolist(), mask.tolist(), strict=True)]
        kept = [value for value, wanted in pairs if wanted]
        if variant == "where_product":
            zero = [0.0] * columns if columns > 1 else 0.0
            kept, result = [value if wanted else zero for value, wanted in pairs], result.values
        assert result.tolist() == kept
        assert result.dtype == torch.float32
        assert tuple(result.shape)[1:] == tuple(x.shape)[1:]


@pytest.mark.parametrize("columns", [1, 16])
def test_bytes_and_allocations_are_what_arithmetic_says(columns):
    rows, selected, uses = 4096, 1000, 5
    x, result, index = 4 * rows * columns, 4 * selected * columns, 8 * selected
    indexed = result + index
    # n bytes of mask become float32 beside the product; masked_select counts in int64 first, and flattens rows
    want = {
        **{"mask": (indexed, 2 * uses), "nonzero_each_time": (indexed, 2 * uses), "index_reused": (indexed, uses + 1)},
        "index_select_reused": (indexed, uses + 1),
        "take_reused": (result + index * columns, uses + 1 if columns == 1 else uses + 5),
        "where_product": (x + 4 * rows, 2 * uses),
        "masked_select": (2 * x + 8, 3 * uses) if columns == 1 else (4 * x + result, 5 * uses),
    }
    for variant, numbers in want.items():
        call = selection.variants[variant](drawn(rows, columns, selected, uses))
        call()
        counted = profile.profile(call, "cpu")
        assert (counted.peak_memory, counted.allocations) == numbers, variant
        assert profile.profile(call, "cpu") == counted, variant


@pytest.mark.parametrize("size", selection.sizes)
def test_inputs_select_exactly_the_share_that_the_name_says(size):
    layout, percent, sign, times, name = size.split()
    x, mask, uses = selection.inputs(size, "cpu", 1)
    again, same, _ = selection.inputs(size, "cpu", 1)
    assert (sign, times, uses) == ("%", "x", int(name))
    assert tuple(x.shape) == ((80_000,) if layout == "vector" else (5_000, 16))
    assert int(mask.sum()) * 100 == int(percent) * len(mask)
    assert all(half.any() for half in mask.chunk(2))
    assert x.min() >= 1
    assert all(map(torch.equal, (x, mask), (again, same)))


def test_check_refuses_what_the_mask_does_not_say():
    for columns in (1, 3):
        x, mask, uses = drawn(50, columns, 20, 1)
        right, zeroed = x[mask], torch.where(mask.reshape(-1, *[1] * (x.dim() - 1)), x, torch.zeros(()))
        selection.check((x, mask, uses), right)
        selection.check((x, mask, uses), selection.Zeroed(zeroed))
        one_off = right.clone()
        one_off[7] += 1
        wrong = {
            "values are not those": [right.flip(0), one_off, selection.Zeroed(x)],
            "not float32": [right[:-1], right.double(), zeroed, right.reshape(1, -1), selection.Zeroed(right)],
        }
        for sentence, result in ((sentence, result) for sentence, of in wrong.items() for result in of):
            with pytest.raises(WrongResult, match=sentence):
                selection.check((x, mask, uses), result)


@pytest.mark.parametrize("variant", CPP)
def test_cpp_takes_the_bytes_of_its_twin_and_one_operator_more(variant):
    arguments = drawn(500, 16, 100, 4)
    assert torch.equal(called(variant, arguments), called(CPP[variant], arguments))
    twin, cpp = (profile.profile(selection.variants[name](arguments), "cpu") for name in (CPP[variant], variant))
    assert cpp == twin._replace(operators=twin.operators + 1)
