"""What do cases take and launch here? Asked alike on a GPU and on the recorder, so that a certificate can say where
they differ."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import torch

from recorder import Refused
from recorder.record import explained, recording

from . import counted, profile
from .clock import WARM_UP_CALLS

SCALE = "small"
"""Sizes that are compared: those whose last word this is."""

SEED = 20240229
COPIES = {"HtoD": "host to device", "DtoH": "device to host", "DtoD": "device to device"}
"""How the profiler names a direction -> how the recorder does."""


def facts(call: Callable[[], object], by_design: str, recorded: bool) -> dict:
    """Of one warm call: bytes and allocations by the caching allocator, whose cache was emptied before; and the names of
    kernels, calls of cuBLAS (None on a GPU, where they are kernels), copies by direction and waits of the host.
    Raises Refused."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before, made = torch.cuda.memory_allocated(), torch.cuda.memory_stats()["allocation.all.allocated"]
    result = call()
    torch.cuda.synchronize()
    told = {
        "peak_allocated": torch.cuda.max_memory_allocated() - before,
        "peak_reserved": torch.cuda.max_memory_reserved(),
        "retained": torch.cuda.memory_allocated() - before,
        "allocations": torch.cuda.memory_stats()["allocation.all.allocated"] - made,
    }
    del result
    return {**told, **(_recorded(call, by_design) if recorded else _profiled(call))}


def _recorded(call: Callable[[], object], by_design: str) -> dict:
    with explained(), recording() as found:
        result = call()
    del result
    found.sound(by_design)
    copies: dict = {}
    for copy in found.copies:
        copies[copy.direction] = copies.get(copy.direction, 0) + 1
    waits = sum(found.waits.values())
    return {"kernels": found.kernels, "library_calls": found.library_calls, "copies": copies, "waits": waits}


def _profiled(call: Callable[[], object]) -> dict:
    found = profile._record(call, "cuda")
    kernels: list = []
    copies: dict = {}
    for name in found.launched:
        if name.startswith("Memcpy"):
            direction = COPIES.get(name.split()[1], name)
            copies[direction] = copies.get(direction, 0) + 1
        elif not name.startswith(("Memset", "[memory]")) and name not in set(found.host):
            kernels.append(name)
    waits = sum(name in profile._WAITS for name in found.host)
    return {"kernels": kernels, "library_calls": None, "copies": copies, "waits": waits}


def _answer(workload: Any, variant: str, size: str, recorded: bool) -> dict:
    try:
        with explained() if recorded else contextlib.nullcontext():
            call = workload.variants[variant](workload.inputs(size, "cuda", SEED))
            for _ in range(WARM_UP_CALLS):
                call()
        return facts(call, counted.READS_BY_DESIGN.get(variant, ""), recorded)
    except Refused as refused:
        return {"refused": str(refused)}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def _forked(work: Callable[[], dict]) -> dict:
    try:
        return counted.in_process(work)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def cases(questions: dict) -> list:
    """Question, variant and size of each case that is compared."""
    return [
        (question, variant, size)
        for question, workload in questions.items()
        for variant in workload.variants
        for size in workload.sizes
        if size.rpartition(" ")[2] == SCALE
    ]


def _here() -> dict:
    capability = torch.cuda.get_device_capability()
    return {
        "torch": torch.__version__.partition("+")[0],
        "cuda": torch.version.cuda,
        "gpu": torch.cuda.get_device_name(),
        "capability": "sm_{}{}".format(*capability),
        "multiprocessors": torch.cuda.get_device_properties(0).multi_processor_count,
    }


def main(questions: dict) -> None:
    """Writes what every variant of `questions` (name -> workload) takes, as JSON, to the descriptor that is named
    first; `recorder` as the second argument says that this process runs on the recorder."""
    descriptor, recorded = int(sys.argv[1]), "recorder" in sys.argv[2:]
    told = {"here": _forked(_here), "cases": {}}
    for question, variant, size in cases(questions):
        work = functools.partial(_answer, questions[question], variant, size, recorded)
        told["cases"][f"{question} {variant} {size}"] = _forked(work)
    with os.fdopen(descriptor, "w") as stream:
        json.dump(told, stream)
