"""What does explaining a change ask of a release? `python -m benchmarks.explained FD` does step after step.

The first line of standard input names the case, each further one a step; each answer is a line on the descriptor FD.
A step forks a process that builds the case, warms it up and looks at it, as a measurement's processes do, so that no step
sees what another left. There is no benchmark here.
"""

from __future__ import annotations

import gc
import importlib
import json
import math
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

import torch

from contract.metrics import METRICS, PROCESS, SEQUENCE, START
from contract.request import Request
from contract.words import storable
from measure import THREADS, clock, constants, explain, facts, hot, once, process, sequence, start_up, stopwatch
from measure.beside import answers
from workloads import Unavailable

SEED = 20240229
"""As in common.py, which takes seconds more to import in some releases and has nothing else that is needed here."""


def main() -> None:
    """Reads the case {`workload`, `variant`, `size`, `metric`}, says that it is ready, and answers step by step."""
    answers = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")
    request = json.loads(sys.stdin.readline())
    workload = _workload(request["workload"])
    places = constants.keep()
    gc.collect()
    gc.freeze()
    _say(answers, {"ready": True})
    for line in iter(sys.stdin.readline, ""):
        _say(answers, _in_another_process(workload, request, json.loads(line), places))


def _say(answers: TextIO, answer: dict) -> None:
    answers.write(json.dumps(storable(answer)) + "\n")
    answers.flush()


def _workload(name: str) -> ModuleType:
    """The question of that name, or the own file at that path, as it was when it was read."""
    if not name.endswith(".py"):
        return importlib.import_module(f"workloads.{name}")
    from .own import load

    return load(Path(name), Path(Request.of(os.environ).text or name))


def _in_another_process(workload: ModuleType, request: dict, step: dict, places: list) -> dict:
    """The step's answer, or {"failed": why}."""

    def answered() -> dict:
        try:
            return _done(workload, request, step, places)
        except _REFUSED as error:
            return {"failed": str(error)}

    return dict(answers([("step", answered)], 1, math.inf, math.inf))["step"]


_REFUSED = (Unavailable, once.CannotLook, process.CommandFailed, start_up.Refused)
"""What says in a sentence why a step cannot be done."""


def _done(workload: ModuleType, request: dict, step: dict, places: list) -> dict:
    """Builds the case under the step's settings, warms it up, checks its result and looks. The step may name another case
    than the first line did."""
    torch.set_num_threads(THREADS)
    if "case" in step:
        request = {**request, **step["case"]}
        workload = _workload(request["workload"])
    for name in step.get("set", []):
        explain.SETTINGS[name]()
    if step["do"] == "cases":
        return _cases(workload)
    if step["do"] == "facts":
        return {"environment": facts.environment(), "commit": torch.version.git_version}
    measured = METRICS[request["metric"]].measured
    if measured in _ONCE:
        return _ONCE[measured](workload, request, step)
    arguments = workload.inputs(request["size"], "cpu", SEED)
    call: Any = workload.variants[request["variant"]](arguments)
    result = clock.warm_up(call, "cpu", getattr(workload, "WARM_UP_CALLS", clock.WARM_UP_CALLS))
    workload.check(arguments, result)
    del result
    if request["metric"] == "forward_time":
        call = call.forward
    constants.read(places)
    if step["do"] == "time":
        return explain.seconds(call, step["seconds"])
    if step["do"] == "profile":
        return _profile(call, step)
    if step["do"] == "allocations":
        return explain.by_allocation(call)
    if step["do"] == "left":
        return explain.left(lambda: (getattr(call, "before", stopwatch.nothing)(), call())[1], str(workload.__file__))
    return {"traces": explain.traces(call)}


def _cases(workload: ModuleType) -> dict:
    """Variants with sizes, and whether calls are timed; and, by metric, what is measured of what a process does once."""
    calls = [[variant, size] for variant in workload.variants for size in workload.sizes]
    processes = [[name, ""] for name in getattr(workload, "commands", {})]
    metrics = [name for name in workload.METRICS if METRICS[name].measured in _ONCE]
    once = [
        [metric, *case] for metric in metrics for case in (processes if METRICS[metric].measured == PROCESS else calls)
    ]
    return {"cases": calls, "timed": "time" in workload.METRICS, "once": once}


# --- what a process does once


def _first_calls(workload: ModuleType, request: dict, step: dict) -> dict:
    """Of the first call of this process, of the second or of the slowest after the first, the compilers' caches empty."""
    if hasattr(workload, "IS_OWN"):
        from .own import of_first_calls

        workload = of_first_calls(workload)
    before = {"second_call": 1}.get(request["metric"], 0)
    if request["metric"] == "worst_call":
        before = sequence._in_a_fork(lambda: _worst(workload, request))["before"]
    with sequence.empty_caches():
        arguments = workload.inputs(request["size"], "cpu", SEED)
        call: Any = workload.variants[request["variant"]](arguments)
        each = iter(arguments)
        for _ in range(before):
            call(next(each))
        argument = next(each)
        return _once(step, lambda: call(argument))


def _worst(workload: ModuleType, request: dict) -> dict:
    """`before`: how many calls of a sequence come before the slowest of all but the first."""
    with sequence.empty_caches():
        arguments = workload.inputs(request["size"], "cpu", SEED)
        seconds, _ = sequence.run(workload.variants[request["variant"]](arguments), arguments, "cpu")
    return {"before": max(range(1, len(seconds)), key=seconds.__getitem__)}


def _once(step: dict, call: Any) -> dict:
    """What the step asks of a call that is made once, in this process."""
    if step["do"] == "time":
        return once.timed(call)
    found = once.looked_at(call)
    found["traces"] = ["TorchScript"] if torch.jit.last_executed_optimized_graph() is not None else []
    return found


def _command(workload: ModuleType, request: dict, step: dict) -> dict:
    """Of a command of an own file, started in the file's folder."""
    words = workload.commands[request["variant"]]
    return _by_another(step, lambda look: once.command(words, str(Path(str(workload.__file__)).parent), look))


def _start(workload: ModuleType, request: dict, step: dict) -> dict:
    """Of one step of a start."""
    return _by_another(step, lambda look: once.start(request["workload"], request["variant"], look))


def _by_another(step: dict, ask: Any) -> dict:
    """What the step asks of a new process."""
    return ask(False) if step["do"] == "time" else {**ask(True), "traces": [once.IN_ANOTHER]}


_ONCE = {SEQUENCE: _first_calls, PROCESS: _command, START: _start}
"""How a metric is measured of what a process does once -> what answers a step about it."""


def _profile(call: Any, step: dict) -> dict:
    """Of one call, the profile that the step names."""
    if step["profile"] == "hot":
        return hot.running(call, step["perf"], step["file"])
    if step["profile"] == "symbol":
        return explain.by_symbol(call, step["perf"], step["file"])
    if step["profile"] == "function":
        return explain.by_function(call, step["seconds"], step["sampled"])
    return explain.by_operator(call, step["seconds"])


if __name__ == "__main__":
    main()
