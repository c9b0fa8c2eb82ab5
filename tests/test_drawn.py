"""Are a case's inputs drawn once for all processes and cases, and does the device get the same copies? Tensors are
played."""

import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from .processes import ROOT


class Tensor:
    """A tensor that notes where it was copied."""

    log: list[str] = []

    def __init__(self, numbers: np.ndarray, requires_grad: bool = False, device: str = "cpu") -> None:
        self.numbers, self.requires_grad, self.device = numbers, requires_grad, device

    def detach(self) -> "Tensor":
        return Tensor(self.numbers, device=self.device)

    def numpy(self) -> np.ndarray:
        assert self.device == "cpu"
        return self.numbers

    def to(self, device: str) -> "Tensor":
        if device != self.device:
            self.log.append(f"{self.numbers.shape} to {device}")
        return Tensor(self.numbers, device=device)

    def requires_grad_(self, needs: bool) -> "Tensor":
        self.requires_grad = needs
        return self


class Arguments(NamedTuple):
    script: str
    tensors: tuple[Tensor, ...]


def inputs(size: str, device: str, seed: int) -> Arguments:
    """As workloads/saved_tensors.py: draws each tensor, and copies it to the device."""
    Tensor.log.append(f"drawn {size} {seed}")
    arrays = [np.random.RandomState(seed).uniform(size=shape).astype(np.float32) for shape in ((900, 7), (3,))]
    return Arguments("chain", tuple(Tensor(array).to(device).requires_grad_(array.ndim == 2) for array in arrays))


WORKLOAD: Any = ModuleType("workloads.saved_tensors")
vars(WORKLOAD).update(inputs=inputs, variants={"plain": len}, METRICS=("kernels",), sizes={"large": 2, "small": 1})


@pytest.fixture
def drawn(monkeypatch) -> ModuleType:
    """measure/drawn.py by itself: its package needs torch, of which it uses one function."""
    Tensor.log.clear()
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_numpy=Tensor))
    module = ModuleType("drawn")
    monkeypatch.setitem(sys.modules, "drawn", module)
    exec((ROOT / "measure" / "drawn.py").read_text(), vars(module))
    return module


def test_inputs_are_drawn_once_and_copied_as_often_as_they_are_asked_for(drawn):
    expected = inputs("small", "cpu", 7)
    Tensor.log.clear()
    for case in range(3):
        once = drawn.once(WORKLOAD, "small", 7)
        assert Tensor.log == (["drawn small 7"] if case == 0 else [])
        for _ in range(2):
            given = once.inputs("small", "cuda", 7)
            assert given.script == "chain"
            assert [(of.device, of.requires_grad) for of in given.tensors] == [("cuda", True), ("cuda", False)]
            for of, right in zip(given.tensors, expected.tensors, strict=True):
                np.testing.assert_array_equal(of.numbers, right.numbers)
        assert Tensor.log[-4:] == ["(900, 7) to cuda", "(3,) to cuda"] * 2
        assert (once.variants, once.METRICS) == (WORKLOAD.variants, WORKLOAD.METRICS)
        Tensor.log.clear()


def test_without_files_in_memory_each_case_draws_for_itself_and_so_does_an_own_file(drawn, monkeypatch):
    monkeypatch.setattr(drawn, "_FILES", [])
    for _ in range(2):
        assert drawn.once(WORKLOAD, "small", 7).inputs("small", "cuda", 7).script == "chain"
    assert Tensor.log.count("drawn small 7") == 2
    assert drawn.once(own := ModuleType("saved_tensors"), "small", 7) is own


def test_other_size_and_other_seed_are_drawn_anew(drawn):
    for size, seed in (("small", 7), ("large", 7), ("small", 8), ("large", 7)):
        drawn.once(WORKLOAD, size, seed)
    assert Tensor.log == ["drawn small 7", "drawn large 7", "drawn small 8"]


def test_what_a_forked_case_drew_is_there_for_the_next_one(drawn):
    child = os.fork()
    if child == 0:
        try:
            drawn.once(WORKLOAD, "small", 7)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    drawn.once(WORKLOAD, "small", 7)
    assert Tensor.log == []
