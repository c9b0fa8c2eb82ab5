"""Is it slow to build many small tensors and join them?

B rows of N floats, each in memory of its own, become one tensor [B, N] on the device. A tensor per row pays per row, one
buffer pays per byte: compare times with `flat_buffer`. Lower is better; the limit of the memory is the result, 4 B N.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch

from . import Unavailable, WrongResult
from .cpp import operators

METRICS = ("time", "peak_memory", "operators", "allocations", "kernels", "host_syncs")

WARM_UP_CALLS = 1

sizes = {
    "64 x 128": {"rows": 64, "columns": 128},
    "4,096 x 64": {"rows": 4_096, "columns": 64},
    "65,536 x 16": {"rows": 65_536, "columns": 16},
}


def inputs(size: str, device: str, seed: int) -> tuple:
    """B NumPy arrays of N float32, each in memory of its own as a user holds them, and the device that shall have them."""
    shape = sizes[size]["rows"], sizes[size]["columns"]
    numbers = np.random.RandomState(seed).uniform(1, 2, shape).astype(np.float32)
    return [row.copy() for row in numbers], device


def expected(rows: list) -> np.ndarray:
    """The rows one below the other, float64 [B, N]."""
    return np.concatenate(rows).astype(np.float64).reshape(len(rows), -1)


def check(arguments: tuple, result: torch.Tensor) -> None:
    """Raises WrongResult where `result`, float32 [B, N] on the device, is not the rows to the last bit: nothing is computed,
    and float32 to float64 and back is exact."""
    rows, device = arguments
    want = expected(rows)
    if tuple(result.shape) != want.shape or result.dtype != torch.float32 or result.device.type != device:
        got = f"{result.dtype} {tuple(result.shape)} on {result.device.type}"
        raise WrongResult(f"the result is {got}, not torch.float32 {want.shape} on {device}")
    wrong = int((result.cpu().numpy() != want).sum())
    if wrong:
        raise WrongResult(f"{wrong} of {want.size} numbers of the result are not those of the rows")


def tensors(rows: list) -> list:
    """A tensor per row, in the row's own memory as with C++'s from_blob: B of float32 [N]."""
    return [torch.from_numpy(row) for row in rows]


def vstack_rows(rows: list) -> torch.Tensor:
    return torch.vstack(tensors(rows))


def stack_rows(rows: list) -> torch.Tensor:
    return torch.stack(tensors(rows))


def cat_rows(rows: list) -> torch.Tensor:
    return torch.cat(tensors(rows)).view(len(rows), -1)


def numpy_stack(rows: list) -> torch.Tensor:
    """The tensor takes over NumPy's memory, which PyTorch's allocator never sees."""
    return torch.from_numpy(np.stack(rows))


def flat_buffer(rows: list) -> torch.Tensor:
    """One copy of every row into the memory of one tensor, by one call of NumPy."""
    batch = torch.empty(len(rows), len(rows[0]))
    np.concatenate(rows, out=batch.numpy().reshape(-1))
    return batch


def preallocated(rows: list) -> torch.Tensor:
    """One tensor that the rows are copied into one by one."""
    batch = torch.empty(len(rows), len(rows[0]))
    for index, row in enumerate(rows):
        batch[index] = torch.from_numpy(row)
    return batch


def _joined(join: Callable) -> Callable:
    """A builder of `join` on the CPU followed by one copy onto the device, which a CPU does not need."""

    def build(arguments: tuple) -> Callable[[], torch.Tensor]:
        rows, device = arguments
        return lambda: join(rows).to(device)

    return build


def _tensor_of_lists(arguments: tuple) -> Callable[[], torch.Tensor]:
    """For a user who holds B lists of N Python floats."""
    rows, device = arguments
    lists = [row.tolist() for row in rows]
    return lambda: torch.tensor(lists).to(device)


def _tensor_of_arrays(arguments: tuple) -> Callable[[], torch.Tensor]:
    rows, device = arguments
    warnings.filterwarnings("ignore", message="Creating a tensor from a list of numpy.ndarrays is extremely slow")
    return lambda: torch.tensor(rows).to(device)


def _rows_to_device(arguments: tuple) -> Callable[[], torch.Tensor]:
    """A copy onto the device per row, joined there."""
    rows, device = _on_gpu(arguments)
    return lambda: torch.stack([row.to(device) for row in tensors(rows)])


def _batch_to_device(arguments: tuple) -> Callable[[], torch.Tensor]:
    """Rows gathered in a buffer that is kept from call to call, then one copy of it onto the device."""
    rows, device = _on_gpu(arguments)
    return _through(torch.empty(len(rows), len(rows[0])), rows, device)


def _batch_to_device_pinned(arguments: tuple) -> Callable[[], torch.Tensor]:
    """As _batch_to_device, with a buffer that the system cannot move, so that the GPU reads it without another copy."""
    rows, device = _on_gpu(arguments)
    return _through(torch.empty(len(rows), len(rows[0])).pin_memory(), rows, device)


def _through(buffer: torch.Tensor, rows: list, device: str) -> Callable[[], torch.Tensor]:
    """The copy is waited for, because the next call writes over `buffer`."""

    def call() -> torch.Tensor:
        np.concatenate(rows, out=buffer.numpy().reshape(-1))
        return buffer.to(device)

    return call


def _on_gpu(arguments: tuple) -> tuple:
    if arguments[1] == "cpu":
        raise Unavailable("a copy onto the device needs a GPU; on a CPU the rows are there already")
    return arguments


def _in_cpp(name: str) -> Callable:
    """A builder of an operator of batching.cpp, which is given where the rows lie in NumPy's memory and copies them from
    there, so that rows in Python and rows in C++ are the same bytes."""

    def build(arguments: tuple) -> Callable[[], torch.Tensor]:
        rows, device = arguments
        join = getattr(operators("batching"), name)
        addresses = torch.tensor([row.data_ptr() for row in tensors(rows)])
        return lambda: join(addresses, len(rows[0])).to(device)

    return build


variants = {
    "vstack_rows": _joined(vstack_rows),
    "stack_rows": _joined(stack_rows),
    "cat_rows": _joined(cat_rows),
    "tensor_of_lists": _tensor_of_lists,
    "tensor_of_arrays": _tensor_of_arrays,
    "numpy_stack": _joined(numpy_stack),
    "flat_buffer": _joined(flat_buffer),
    "preallocated": _joined(preallocated),
    "rows_to_device": _rows_to_device,
    "batch_to_device": _batch_to_device,
    "batch_to_device_pinned": _batch_to_device_pinned,
    "cpp_vstack_rows": _in_cpp("vstack_rows"),
    "cpp_flat_buffer": _in_cpp("flat_buffer"),
}
"""Name of a variant -> what builds its zero-argument callable from `inputs`; building is not part of any measurement."""
