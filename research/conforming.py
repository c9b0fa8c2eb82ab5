"""Runs PyTorch's own tests on the recorder, inside a release; `conformance.py` starts it. Torch and Python 3.9 alone.

    python conforming.py FILE DESCRIPTOR   answers each line of standard input on the descriptor, in lines of JSON

A line has `wanted`, names of tests of which FILE is asked, or `test`, its class and name, and perhaps `unfinished`. Each is
answered in a process of its own, which was forked before CUDA was touched: importing torch takes longer than most tests.

No kernel runs, so of tensors that are compared shape, type and device count and values do not, and a tensor is true. How
long PyTorch's spinning kernel takes, which it would measure, is given.
"""

import functools
import importlib
import json
import os
import sys
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from measure.counted import in_process
from recorder.record import UNFINISHED, recording, unanswered


def utilities() -> Any:
    return importlib.import_module("torch.testing._internal.common_utils")


def offered(loaded: ModuleType, wanted: list[str]) -> list[tuple[str, str]]:
    """Class and name of each test of that name; where there is none, of those that were made of it with parameters."""
    cases = [
        (name, test)
        for name, case in vars(loaded).items()
        if isinstance(case, type) and issubclass(case, unittest.TestCase) and case.__module__ == loaded.__name__
        for test in dir(case)
        if test.startswith("test_")
    ]
    found = []
    for name in wanted:
        exact = [case for case in cases if case[1] == name]
        found += exact or [case for case in cases if case[1].startswith(name + "_") and case[1] not in wanted]
    return found


def ended(case: unittest.TestCase) -> dict[str, Any]:
    """`outcome`: passed, skipped, failed or raised; `why` in full and `said`, its last line; `unanswered`: what the recorder
    could not answer, in words; `read_backs` and `queries`: how many."""
    of_torch = utilities().TestCase
    compare, holds = of_torch.assertEqual, of_torch.assertTrue

    def equal(self: unittest.TestCase, one: Any, other: Any, *arguments: Any, **named: Any) -> None:
        if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
            one, other = ((each.shape, each.dtype, each.device) for each in (one, other))
        compare(self, one, other, *arguments, **named)

    def true(self: unittest.TestCase, it: Any, *arguments: Any, **named: Any) -> None:
        holds(self, isinstance(it, torch.Tensor) or it, *arguments, **named)

    of_torch.assertEqual, of_torch.assertTrue = equal, true
    result = unittest.TestResult()
    with recording() as recorded:
        case.run(result)
    outcomes = (("skipped", result.skipped), ("failed", result.failures), ("raised", result.errors))
    outcome, why = next(((name, found[0][1]) for name, found in outcomes if found), ("passed", ""))
    said = [line for line in why.strip().splitlines() if line[:1].strip()]
    return {
        "outcome": outcome,
        "why": why,
        "said": next((line for line in said if "Error" in line), "".join(said[-1:])),
        "unanswered": unanswered(),
        "read_backs": len(recorded.read_backs),
        "queries": len(recorded.queries),
    }


def answered(path: str, wanted: list[str], test: list[str], unfinished: bool) -> dict[str, Any]:
    """Which tests are `offered`, or how one ended."""
    if unfinished:
        os.environ[UNFINISHED] = "1"
    utilities().get_cycles_per_ms = lambda: 1_000_000.0
    loaded = importlib.import_module(Path(path).stem)  # its folder is in PYTHONPATH
    return ended(getattr(loaded, test[0])(test[1])) if test else {"offered": offered(loaded, wanted)}


def main() -> None:
    path, descriptor = sys.argv[1:]
    if hasattr(torch.cuda, "_nvml_based_avail"):  # else it asks CUDA for its devices, after which no fork may
        utilities()
    with os.fdopen(int(descriptor), "w") as answers:
        sys.stdout = sys.stderr
        for line in sys.stdin:
            try:
                told = in_process(functools.partial(answered, path, **json.loads(line)))
            except Exception as error:
                told = {"error": str(error)}
            print(json.dumps(told), file=answers, flush=True)


if __name__ == "__main__":
    main()
