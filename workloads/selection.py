"""Is a boolean mask slower than an index?

Elements of a vector, or rows of a matrix, are selected once or many times by one mask. Compare `mask` with `index_reused`
at 1 use and at 100: the gap per use is what turning the mask into an index costs. `where_product` selects nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from . import WrongResult
from .cpp import operators

METRICS = ("time", "peak_memory", "operators", "allocations", "kernels", "host_syncs")

WARM_UP_CALLS = 1
"""Nothing here is compiled at its first calls."""

ELEMENTS = 80_000
"""Elements of x in either layout, 320,000 bytes. Where one mask of 51,200 is used all the time, `masked_select` at 50 %
takes a third of the time per element, as if the processor foresaw its branches; at 80,000 most of that is gone."""

sizes = {
    f"{layout} {percent} % x {uses}": {"columns": columns, "percent": percent, "uses": uses}
    for layout, columns in (("vector", 1), ("rows", 16))
    for percent in (1, 50, 99)
    for uses in (1, 10, 100)
}
"""Layout, share selected and uses of one mask. `vector`: x is [80,000]; `rows`: x is [5,000, 16], rows are taken whole."""


class Zeroed(NamedTuple):
    """What selects nothing: x's shape, float32, zero wherever the mask is false."""

    values: torch.Tensor


def inputs(size: str, device: str, seed: int) -> tuple[torch.Tensor, torch.Tensor, int]:
    """x, float32 [n] or [n, 16] in [1, 2); the mask, bool [n], true in exactly the share at random places; the uses.

    Drawn with NumPy, so that every release sees the same numbers.
    """
    columns, percent, uses = (sizes[size][name] for name in ("columns", "percent", "uses"))
    random = np.random.RandomState(seed)
    count = ELEMENTS // columns
    x = random.uniform(1, 2, (count, columns) if columns > 1 else count).astype(np.float32)
    mask = np.zeros(count, bool)
    mask[random.permutation(count)[: count * percent // 100]] = True
    return torch.from_numpy(x).to(device), torch.from_numpy(mask).to(device), uses


def expected(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The elements or rows of x where the mask is true, in order, float64."""
    return np.compress(mask, x.astype(np.float64), axis=0)


def check(arguments: tuple, result: torch.Tensor | Zeroed) -> None:
    """Raises WrongResult where `result`, the last use's, is not exactly what the mask says: copies are not rounded."""
    x, mask = (tensor.cpu().numpy() for tensor in arguments[:2])
    if isinstance(result, Zeroed):
        want, got = np.where(mask.reshape(-1, *[1] * (x.ndim - 1)), x.astype(np.float64), 0), result.values
    else:
        want, got = expected(x, mask), result
    if tuple(got.shape) != want.shape or got.dtype != torch.float32:
        raise WrongResult(f"the result is {got.dtype} {tuple(got.shape)}, not float32 {want.shape}")
    wrong = int((got.cpu().numpy() != want).sum())
    if wrong:
        raise WrongResult(f"{wrong} of the result's {want.size} values are not those that the mask selects")


def _last(uses: int, use: Callable) -> torch.Tensor:
    """The last of `uses` results; each is dropped before the next is made, so that memory holds one."""
    result = None
    for _ in range(uses):
        result = None
        result = use()
    return result


def _index(mask: torch.Tensor) -> torch.Tensor:
    """bool [n] -> the positions that are true, int64 [selected]."""
    return mask.nonzero().squeeze(1)


def _as_wide_as(x: torch.Tensor, per_row: torch.Tensor) -> torch.Tensor:
    """[n] -> [n], or [n, 1] where x is a matrix: a view that broadcasts against x."""
    return per_row[:, None] if x.dim() == 2 else per_row


def by_mask(x: torch.Tensor, mask: torch.Tensor, uses: int) -> torch.Tensor:
    """The mask at every use."""
    return _last(uses, lambda: x[mask])


def by_masked_select(x: torch.Tensor, mask: torch.Tensor, uses: int) -> torch.Tensor:
    """The mask at every use, by `torch.masked_select`, which flattens: rows are put back into shape."""
    wide = _as_wide_as(x, mask)
    if x.dim() == 1:
        return _last(uses, lambda: torch.masked_select(x, wide))
    return _last(uses, lambda: torch.masked_select(x, wide).view(-1, x.shape[1]))


def by_nonzero_each_time(x: torch.Tensor, mask: torch.Tensor, uses: int) -> torch.Tensor:
    """The mask turned into an index by hand at every use."""
    return _last(uses, lambda: x[_index(mask)])


def by_index(x: torch.Tensor, mask: torch.Tensor, uses: int) -> torch.Tensor:
    """The mask turned into an index once: the note's advice."""
    index = _index(mask)
    return _last(uses, lambda: x[index])


def by_index_select(x: torch.Tensor, mask: torch.Tensor, uses: int) -> torch.Tensor:
    """The same index with `torch.index_select`."""
    index = _index(mask)
    return _last(uses, lambda: torch.index_select(x, 0, index))


def by_take(x: torch.Tensor, mask: torch.Tensor, uses: int) -> torch.Tensor:
    """`torch.take` of positions in flattened x, computed once: [selected], or [selected, columns] for rows."""
    positions = _index(mask)
    if x.dim() == 2:
        positions = positions[:, None] * x.shape[1] + torch.arange(x.shape[1], device=x.device)
    return _last(uses, lambda: torch.take(x, positions))


def by_product(x: torch.Tensor, mask: torch.Tensor, uses: int) -> Zeroed:
    """No selection: what is not wanted becomes zero and the shape stays."""
    wide = _as_wide_as(x, mask)
    return Zeroed(_last(uses, lambda: x * wide))


def _bound(function: Callable, arguments: tuple) -> Callable:
    return lambda: function(*arguments)


variants = {
    "mask": lambda arguments: _bound(by_mask, arguments),
    "masked_select": lambda arguments: _bound(by_masked_select, arguments),
    "nonzero_each_time": lambda arguments: _bound(by_nonzero_each_time, arguments),
    "index_reused": lambda arguments: _bound(by_index, arguments),
    "index_select_reused": lambda arguments: _bound(by_index_select, arguments),
    "take_reused": lambda arguments: _bound(by_take, arguments),
    "where_product": lambda arguments: _bound(by_product, arguments),
    "cpp_mask": lambda arguments: _bound(operators("selection").mask, arguments),
    "cpp_index_reused": lambda arguments: _bound(operators("selection").index_reused, arguments),
}
"""Name of a variant -> what builds its zero-argument callable from `inputs`; building is not part of any measurement."""
