"""A question from outside the repository: the file that TORCH_HISTORY_WORKLOAD names, completed with what it leaves out.

Such a file needs `inputs` and `functions` (name -> a function of the inputs); docs/own-workload.md tells the rest. Without
the variable this module holds no benchmark.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from contract.metrics import metrics_of
from contract.request import Request
from workloads import WrongResult

METRICS = ("time", "peak_memory", "operators", "allocations", "kernels")

TOLERANCE = 1e-4
"""Largest difference that counts as rounding, as a share of the largest expected number: float32 sums of some thousand terms
in another order differ by less. The file's own TOLERANCE replaces it."""


class WorkloadUnreadable(Exception):
    """The file cannot be used; the text is a sentence that says why."""


def load(path: Path, text: Path) -> ModuleType:
    """The module of the file at `path`, with all that a workload has; its source is read from `text`, which is that file or
    a copy. Raises WorkloadUnreadable."""
    name = re.sub(r"\W", "_", path.stem)
    spec = importlib.util.spec_from_file_location(name, text)
    if spec is None or spec.loader is None or not text.exists():
        raise WorkloadUnreadable(f"there is no Python file {text}")
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise WorkloadUnreadable(f"line {error.lineno} of {path.name} is no Python: {error.msg}") from None
    except Exception as error:
        raise WorkloadUnreadable(f"{path.name} cannot be imported: {type(error).__name__}: {error}") from None
    return complete(module)


def complete(module: ModuleType) -> ModuleType:
    """Gives a module with `inputs` and `functions` or `variants` what a workload has besides. Raises WorkloadUnreadable."""
    of_file: Any = module
    name = Path(str(module.__file__)).name
    functions = dict(getattr(of_file, "functions", {}))
    builders = {label: functools.partial(_bound, function) for label, function in functions.items()}
    of_file.variants = {**builders, **getattr(of_file, "variants", {})}
    if not of_file.variants:
        raise WorkloadUnreadable(
            f"{name} names nothing to measure: give it `functions`, name -> a function of the inputs"
        )
    if not callable(getattr(of_file, "inputs", None)):
        raise WorkloadUnreadable(f"{name} has no function `inputs` that returns what its functions are called with")
    of_file.METRICS = tuple(getattr(of_file, "METRICS", METRICS))
    of_file.sizes = dict(getattr(of_file, "sizes", {"": {}}))
    of_file.takes = inspect.signature(of_file.inputs).parameters
    of_file.inputs = functools.partial(_inputs, of_file.inputs)
    if not hasattr(of_file, "check"):
        of_file.check = functools.partial(_check, of_file)
    return module


def _bound(function: Callable, arguments: tuple) -> Callable[[], object]:
    return functools.partial(function, *arguments)


def _inputs(function: Callable, size: str, device: str, seed: int, batch: Any = None) -> tuple:
    """What `function` returns, as a tuple with tensors on `device`; it is given what it asks for of size, device, seed, and
    batch where there is one."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    offered = {"size": size, "device": device, "seed": seed, **({} if batch is None else {"batch": batch})}
    asked = inspect.signature(function).parameters
    arguments = function(**{name: value for name, value in offered.items() if name in asked})
    arguments = arguments if isinstance(arguments, tuple) else (arguments,)
    return tuple(value.to(device) if isinstance(value, torch.Tensor) else value for value in arguments)


def _check(module: Any, arguments: tuple, result: object) -> None:
    """Compares with the file's `expected(*inputs)`, or where it has none with what its first variant returns."""
    if hasattr(module, "expected"):
        want, source = module.expected(*arguments), "`expected`"
    else:
        first, builder = next(iter(module.variants.items()))
        want, source = builder(arguments)(), f"the variant `{first}`"
    wanted, got = _numbers(want), _numbers(result)
    if [value.shape for value in wanted] != [value.shape for value in got]:
        shapes = " and ".join(str([value.shape for value in values]) for values in (got, wanted))
        raise WrongResult(f"the result's shape differs from that of {source}: {shapes}")
    allowed = getattr(module, "TOLERANCE", TOLERANCE)
    for value, other in zip(got, wanted):
        if not np.array_equal(np.isnan(value), np.isnan(other)):
            raise WrongResult(f"the result is not a number in other places than that of {source}")
        worst = float(np.nanmax(np.abs(value - other), initial=0.0))
        largest = float(np.nanmax(np.abs(other), initial=0.0))
        if worst > allowed * largest:
            raise WrongResult(
                f"the result is off by {worst:.3g} from that of {source}, whose largest number is {largest:.3g}"
            )


def _numbers(value: object) -> list:
    """Every number in a tensor, an array, or tuples and lists of them, as float64 arrays."""
    if isinstance(value, (tuple, list)):
        return [array for part in value for array in _numbers(part)]
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().double().numpy()
    return [np.asarray(value, dtype=np.float64)]


_ASKED = Request.of(os.environ)

if _ASKED.workload:
    # Only here: who wants nothing but `load` needs no asv, and what common.py imports may ask for a GPU.
    from .common import _Question

    _workload = load(Path(_ASKED.workload), Path(_ASKED.text or _ASKED.workload))

    class Own(_Question, workload=_workload):
        """The functions of an own file x its sizes."""

    for _metric in metrics_of(_workload.METRICS):
        getattr(Own, f"track_{_metric}").benchmark_name = f"{_workload.__name__}.Own.track_{_metric}"
