"""What does a case ask of a GPU? Counted on the recorder, where no kernel runs, so there is no time and no result.

A case is counted in two processes, with PyTorch's caching allocator and without: see `recorder.counts`. Both are forked
before CUDA was touched, so this process must not have used it.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from recorder import Refused, record
from recorder.counts import launched, requested
from recorder.record import NO_CACHING, explained

from . import device
from .clock import WARM_UP_CALLS
from .profile import fusion_groups

READS_BY_DESIGN = {
    "save_on_cpu": "what was saved for the backward is copied back, whatever its values",
    "save_on_cpu_pinned": "what was saved for the backward is copied back, whatever its values",
}
"""Variants that read back from the device by design -> why the values decide nothing."""


def counts(workload: ModuleType, variant: str, size: str, seed: int) -> dict:
    """The counts of a case by metric, as in `measurement.md`; bytes are those that were asked for.

    Beside them `peak_allocated` and `peak_reserved` (bytes), `kernel_names`, `library_calls`, `copied` (bytes of each copy
    by direction), `assumptions` and `form`: dtype and shape of each tensor of the result; no more of it can be checked.
    Raises Refused where a GPU would show something else, and what the workload raises where a release cannot run it.
    """
    with_cache = _in_process(lambda: _launched(workload, variant, size, seed), caching=True)
    without = _in_process(lambda: _requested(workload, variant, size, seed), caching=False)
    for name in ("kernel_names", "form"):
        if with_cache[name] != without[name]:
            raise Refused(
                f"The case has another {name.replace('_', ' ')} without the caching allocator than with it, so its bytes "
                "and its kernels do not belong together. Leave this case out."
            )
    return {**without, **with_cache}


def _launched(workload: ModuleType, variant: str, size: str, seed: int) -> dict:
    call, form = _warm(workload, variant, size, seed)
    found = launched(call, READS_BY_DESIGN.get(variant, ""))
    told = {
        "kernels": len(found.kernels),
        "host_syncs": found.waits,
        "peak_allocated": found.peak_allocated,
        "peak_reserved": found.peak_reserved,
        "kernel_names": found.kernels,
        "library_calls": found.library_calls,
        "copied": found.copied,
        "assumptions": found.assumptions,
        "form": form,
    }
    if "gradients" in workload.METRICS:
        told["gradients"] = call.gradients
    if "fusion_groups" in workload.METRICS:
        groups = fusion_groups(call)
        if groups is not None:
            told["fusion_groups"] = groups
    return told


def _requested(workload: ModuleType, variant: str, size: str, seed: int) -> dict:
    call, form = _warm(workload, variant, size, seed)
    by_design = READS_BY_DESIGN.get(variant, "")
    found = requested(call, by_design)
    forward = getattr(call, "forward", None)
    retained = requested(forward, by_design).retained if forward else found.retained
    return {
        "peak_memory": found.peak,
        "retained": retained,
        "allocations": found.allocations,
        "kernel_names": found.kernels,
        "form": form,
    }


def _warm(workload: ModuleType, variant: str, size: str, seed: int) -> tuple:
    """The case's call, after its warm-up, and the form of its result.

    Raises device.DeviceUnavailable where the wheel holds no code for the card.
    """
    device.require_code_for(record.capability())
    with explained():
        call = workload.variants[variant](workload.inputs(size, "cuda", seed))
        for _ in range(getattr(workload, "WARM_UP_CALLS", WARM_UP_CALLS)):
            result = call()
    return call, form(result)


def form(result: Any) -> list:
    """Dtype and shape of each tensor in `result`, which may be one or hold them in tuples and lists: ["float32 [2, 3]"]."""
    if isinstance(result, torch.Tensor):
        return ["{} {}".format(str(result.dtype).rpartition(".")[2], list(result.shape))]
    if isinstance(result, (tuple, list)):
        return [text for part in result for text in form(part)]
    return []


def _in_process(work: Callable[[], dict], caching: bool) -> dict:
    """What `work` returns in a process of its own, with or without the caching allocator; raises what it raises."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            if not caching:
                os.environ[NO_CACHING] = "1"
            try:
                answer: object = work()
            except Exception as error:
                answer = error
            with os.fdopen(writer, "wb") as stream:
                pickle.dump(answer, stream)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    status = os.waitpid(child, 0)[1]
    if status:
        raise RuntimeError(f"the process that counted this case ended with status {status} and no answer")
    told = pickle.loads(data)
    if isinstance(told, Exception):
        raise told
    return told
