"""Are a case's inputs drawn once for all processes and cases, and does the device get the same copies? Tensors are
played."""

import importlib.util
import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from .processes import ROOT


class Tensor:
    """A tensor that notes where it was copied."""

    def __init__(self, numbers: np.ndarray, log: list[str], requires_grad: bool = False, device: str = "cpu") -> None:
        self.numbers, self.log, self.requires_grad, self.device = numbers, log, requires_grad, device

    def detach(self) -> "Tensor":
        return Tensor(self.numbers, self.log, device=self.device)

    def numpy(self) -> np.ndarray:
        assert self.device == "cpu"
        return self.numbers

    def to(self, device: str) -> "Tensor":
        if device != self.device:
            self.log.append(f"{self.numbers.shape} to {device}")
        return Tensor(self.numbers, self.log, device=device)

    def requires_grad_(self, needs: bool) -> "Tensor":
        self.requires_grad = needs
        return self


class Arguments(NamedTuple):
    script: str
    tensors: tuple[Tensor, ...]


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def workload(log) -> ModuleType:
    """As workloads/saved_tensors.py: draws each tensor, and copies it to the device."""

    def inputs(size: str, device: str, seed: int) -> Arguments:
        log.append(f"drawn {size} {seed}")
        arrays = [np.random.RandomState(seed).uniform(size=shape).astype(np.float32) for shape in ((900, 7), (3,))]
        tensors = [Tensor(array, log).to(device).requires_grad_(array.ndim == 2) for array in arrays]
        return Arguments("chain", tuple(tensors))

    made: Any = ModuleType("workloads.saved_tensors")
    made.inputs, made.variants, made.METRICS = inputs, {"plain": len}, ("kernels",)
    made.sizes = {"large": 2, "small": 1}
    return made


@pytest.fixture
def drawn(monkeypatch, log) -> ModuleType:
    """measure/drawn.py by itself: its package needs torch, of which it uses one function."""
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_numpy=lambda array: Tensor(array, log)))
    spec = importlib.util.spec_from_file_location("drawn", ROOT / "measure" / "drawn.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "drawn", module)
    spec.loader.exec_module(module)
    return module


def test_inputs_are_drawn_once_and_copied_as_often_as_they_are_asked_for(drawn, workload, log):
    expected = workload.inputs("small", "cpu", 7)
    log.clear()
    for case in range(3):
        once = drawn.once(workload, "small", 7)
        assert log == (["drawn small 7"] if case == 0 else [])
        for _ in range(2):
            given = once.inputs("small", "cuda", 7)
            assert given.script == "chain"
            assert [(of.device, of.requires_grad) for of in given.tensors] == [("cuda", True), ("cuda", False)]
            for of, right in zip(given.tensors, expected.tensors, strict=True):
                np.testing.assert_array_equal(of.numbers, right.numbers)
        assert log[-4:] == ["(900, 7) to cuda", "(3,) to cuda"] * 2
        assert (once.variants, once.METRICS) == (workload.variants, workload.METRICS)
        log.clear()


def test_other_size_and_other_seed_are_drawn_anew(drawn, workload, log):
    for size, seed in (("small", 7), ("large", 7), ("small", 8), ("large", 7)):
        drawn.once(workload, size, seed)
    assert log == ["drawn small 7", "drawn large 7", "drawn small 8"]


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="only Linux has files in memory")
def test_what_a_forked_case_drew_is_there_for_the_next_one(drawn, workload, log):
    child = os.fork()
    if child == 0:
        try:
            drawn.once(workload, "small", 7)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    drawn.once(workload, "small", 7)
    assert log == []
