"""Are a case's inputs drawn once for all processes, and does the device get the same copies?

There is no torch here: tensors are played.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]


class Tensor:
    """A tensor that notes where it was copied."""

    def __init__(self, name: str, log: list[str], requires_grad: bool = False, device: str = "cpu") -> None:
        self.name, self.log, self.requires_grad, self.device = name, log, requires_grad, device

    def detach(self) -> Tensor:
        return Tensor(self.name, self.log, device=self.device)

    def to(self, device: str) -> Tensor:
        if device != self.device:
            self.log.append(f"{self.name} to {device}")
        return Tensor(self.name, self.log, device=device)

    def requires_grad_(self, needs: bool) -> Tensor:
        self.requires_grad = needs
        return self


class Arguments(NamedTuple):
    script: str
    tensors: tuple[Tensor, ...]


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def workload(log: list[str]) -> ModuleType:
    """As workloads/saved_tensors.py: draws each tensor, and copies it to the device."""

    def inputs(size: str, device: str, seed: int) -> Arguments:
        log.append(f"drawn {size} {seed}")
        tensors = [Tensor(name, log).to(device).requires_grad_(name != "x") for name in ("x", "w")]
        return Arguments("chain", tuple(tensors))

    made: Any = ModuleType("workloads.saved_tensors")
    made.inputs, made.variants, made.METRICS = inputs, {"plain": len}, ("kernels",)
    return made


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """measure/drawn.py by itself: its package needs torch."""
    spec = importlib.util.spec_from_file_location("drawn", ROOT / "measure" / "drawn.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "drawn", module)
    spec.loader.exec_module(module)
    return module


def test_inputs_are_drawn_once_and_copied_as_often_as_they_are_asked_for(
    drawn: ModuleType, workload: ModuleType, log: list[str]
) -> None:
    once = drawn.once(workload, "small", 7)
    assert log == ["drawn small 7"]
    for _ in range(2):
        given = once.inputs("small", "cuda", 7)
        assert (given.script, [of.name for of in given.tensors]) == ("chain", ["x", "w"])
        assert [(of.device, of.requires_grad) for of in given.tensors] == [("cuda", False), ("cuda", True)]
    assert log == ["drawn small 7", *["x to cuda", "w to cuda"] * 2]
    assert (once.variants, once.METRICS) == (workload.variants, workload.METRICS)


def test_other_workloads_are_left_alone(drawn: ModuleType, workload: ModuleType, log: list[str]) -> None:
    workload.__name__ = "workloads.batching"
    assert drawn.once(workload, "small", 7) is workload
    assert log == []
