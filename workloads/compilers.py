"""PyTorch's compilers as variants use them: each compiles a function, or says in one sentence why it cannot here."""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Callable

import torch

from . import Unavailable


def release() -> tuple[int, int]:
    """(2, 5) for any torch 2.5.x that is imported, whatever stands behind the numbers."""
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def scripted(function: Callable) -> Callable:
    """`torch.jit.script(function)` without its warning of deprecation (2.10 on), or Unavailable where Python has none."""
    _need_torchscript()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(function)


def traced(function: Callable, arguments: tuple) -> Callable:
    """`torch.jit.trace(function, arguments)`, or Unavailable where this Python has none."""
    _need_torchscript()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(function, arguments, check_trace=False)


def compiled(function: Callable, device: str) -> Callable:
    """`torch.compile(function)`, or Unavailable where this release, Python or machine cannot."""
    if release() < (2, 0):
        raise Unavailable("torch.compile needs torch >= 2.0")
    if sys.version_info >= (3, 11) and release() < (2, 1):
        raise Unavailable("torch.compile needs torch >= 2.1 on Python 3.11")
    if device == "cpu" and not (shutil.which("g++") or shutil.which("clang++")):
        raise Unavailable("torch.compile needs a C++ compiler on a CPU, and neither g++ nor clang++ is installed")
    return torch.compile(function)


def _need_torchscript() -> None:
    if sys.version_info >= (3, 14):
        raise Unavailable("TorchScript is not supported on Python 3.14 and later")
