"""How much of a card's memory does a workload take, and is it enough? Asked on the recorder, so no kernel runs and no
time passes.

Each question is answered in a process of its own, forked before CUDA was touched, from its first allocation on: inputs,
weights, an optimiser's state and everything that the calls leave cached count.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from contract.words import of_error
from recorder import Refused, record
from recorder.record import explained, recording

from . import counted, device

CALLS = 3
"""Calls of a workload: an optimiser makes its state in the first, and the second is the first that runs beside it."""

SEED = 20240229


def batch_of(workload: Any) -> object:
    """The default of the parameter `batch` of the file's `inputs`: 1 where it has none, None where there is no such
    parameter."""
    asked = workload.takes.get("batch")
    if asked is None:
        return None
    return asked.default if isinstance(asked.default, int) else 1


def held(workload: Any, variant: str, size: str, batch: object) -> dict:
    """Bytes that the workload took in `CALLS` calls: `peak_allocated` and `peak_reserved` by the caching allocator,
    `peak_taken` of the card, whoever asked; `out_of_memory`: whether the card had too little; `queries`: how often it was
    asked whether the device had finished, when it need not have. Raises Refused where a GPU would show something else."""
    device.require_code_for(record.capability())
    out_of_memory = False
    with recording() as recorded:
        try:
            with explained():
                _call(workload, variant, size, batch)
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            out_of_memory = True
    recorded.sound(getattr(workload, "READS_BY_DESIGN", ""))
    return {
        "retries": torch.cuda.memory_stats().get("num_alloc_retries", 0),  # how often it gave its cache back for more
        "peak_allocated": torch.cuda.max_memory_allocated(),
        "peak_reserved": torch.cuda.max_memory_reserved(),
        "peak_taken": recorded.peak,
        "queries": sum(recorded.queries.values()),
        "out_of_memory": out_of_memory,
    }


def _call(workload: Any, variant: str, size: str, batch: object) -> None:
    inputs = workload.inputs if batch is None else functools.partial(workload.inputs, batch=batch)
    call: Callable[[], object] = workload.variants[variant](inputs(size, "cuda", SEED))
    result: object = None
    for _ in range(CALLS):
        result = call()
    del result


def _answer(
    workload: Any, unavailable: type[Exception], memory: int, occupied: int, unfinished: bool = False, **case: Any
) -> dict:
    os.environ["RECORDER_MEMORY"], os.environ["RECORDER_OCCUPIED"] = str(memory), str(occupied)
    if unfinished:
        os.environ[record.UNFINISHED] = "1"
    with open("/proc/self/oom_score_adj", "w") as stream:
        stream.write("1000")  # where the host's memory runs out, the system ends this process before any other
    try:
        device.require_fork()
        return held(workload, **case)
    except (Refused, device.DeviceUnavailable, device.NotMeasured) as refused:
        return {"refused": str(refused)}
    except unavailable as error:
        return {"unavailable": str(error)}
    except (Exception, SystemExit) as error:
        return {"failed": of_error(error)}


def main(load: Callable[[str, str], ModuleType], unavailable: type[Exception]) -> None:
    """Answers about the file whose path is named first and whose text second, on the descriptor that is named third; what is
    printed besides goes to standard error. First a line says what can be asked, or why nothing; then one answers each line
    of standard input.

    A question has `variant`, `size`, `batch` (None where the file has no such parameter), `memory` and `occupied` (bytes of
    the card, and of it what something else holds), and perhaps `unfinished`: whether the device finishes only what the host
    waits for. The answer is that of `held`, or has `refused`, `unavailable`, as the file raises it, or `failed`: a sentence.
    """
    path, text, descriptor = sys.argv[1:]
    with os.fdopen(int(descriptor), "w") as answers:
        say = functools.partial(print, file=answers, flush=True)
        sys.stdout = sys.stderr
        try:
            workload = load(path, text)
        except Exception as error:
            say(json.dumps({"unreadable": str(error)}))
            return
        known = {"variants": list(workload.variants), "sizes": list(workload.sizes), "batch": batch_of(workload)}
        say(json.dumps(known))
        for line in sys.stdin:
            try:
                answer = counted.in_process(functools.partial(_answer, workload, unavailable, **json.loads(line)))
            except RuntimeError as error:
                answer = {"failed": f"{error}; where its inputs are made on the host, they need as much memory there"}
            say(json.dumps(answer))
