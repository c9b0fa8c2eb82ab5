"""What does a case ask of a GPU? Counted on the recorder, where no kernel runs, so there is no time and no result.

A case is counted in two processes, with PyTorch's caching allocator and without: see `recorder.counts`. Both are forked
before CUDA was touched, so this process must not have used it.
"""

from __future__ import annotations

import os
import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterable
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


WAITS_ALONE = (
    "mask",
    "masked_select",
    "nonzero_each_time",
    "index_reused",
    "index_select_reused",
    "take_reused",
    "cpp_mask",
    "cpp_index_reused",
)
"""Variants that read from the device how many elements a mask selects. That number is wrong here, and with it every size
behind it; that the host waited for it is not."""


def counts(workload: ModuleType, variant: str, size: str, seed: int) -> dict:
    """The counts of a case by metric, as in `measurement.md`; bytes are those that were asked for.

    Beside them `peak_allocated` and `peak_reserved` (bytes), `kernel_names`, `library_calls`, `copied` (bytes of each copy
    by direction), `assumptions` and `form`: dtype and shape of each tensor of the result; no more of it can be checked.
    Of WAITS_ALONE there are `host_syncs` and nothing else. Raises Refused where a GPU would show something else, and what
    the workload raises where a release cannot run it.
    """
    if variant in WAITS_ALONE:
        return in_process(lambda: _waits(workload, variant, size, seed))
    # Both at a time: neither is timed, and neither knows of the other.
    cached = _started(lambda: _launched(workload, variant, size, seed), caching=True)
    uncached = _started(lambda: _requested(workload, variant, size, seed), caching=False)
    answers = [_answer(*cached), _answer(*uncached)]
    with_cache, without = (_returned(answer) for answer in answers)
    for name in ("kernel_names", "form"):
        if with_cache[name] != without[name]:
            raise Refused(
                f"The case has another {name.replace('_', ' ')} without the caching allocator than with it, so its bytes "
                "and its kernels do not belong together. Leave this case out."
            )
    return {**without, **with_cache}


def numbers(found: dict) -> dict:
    """What of `counts` is a number, by metric; copies as how many there are and the bytes in each direction."""
    if "copied" not in found:
        return {"host_syncs": found["host_syncs"], "host_waits": found["host_syncs"]}
    copied = {way: sum(bytes_of) for way, bytes_of in found["copied"].items()}
    return {
        **{name: number for name, number in found.items() if name not in DETAILS},
        "host_waits": found["host_syncs"],
        "library_calls": len(found["library_calls"]),
        "copies": sum(len(bytes_of) for bytes_of in found["copied"].values()),
        "copied_to_device": copied.get("host to device", 0),
        "copied_to_host": copied.get("device to host", 0),
        "copied_on_device": copied.get("device to device", 0),
    }


DETAILS = ("kernel_names", "library_calls", "copied", "form")
"""What of `counts` is no number."""


def details(found: dict) -> dict:
    """What of `counts` is no number: how often each kernel and each library call, copies by direction as [how many, bytes],
    and the form of the result."""
    if "copied" not in found:
        return {"kernels": {}, "waits_alone": True}
    return {
        "kernels": dict(Counter(found["kernel_names"])),
        "library_calls": dict(Counter(found["library_calls"])),
        "copied": {way: [len(bytes_of), sum(bytes_of)] for way, bytes_of in found["copied"].items()},
        "form": found["form"],
    }


FUSED = re.compile(r"^(CudaCodeGen::)?(kernel\d*|fused_\w+|triton_\w+|tensorexpr_\w*)(\(.*)?$")
"""Names that fusers give to what they compile: nvFuser, the older fuser, Triton and NNC. The wheel's own have namespaces."""


def compiled(kernels: Iterable[str]) -> list:
    """Those of `kernels` that a fuser compiled while the release ran."""
    return [name for name in kernels if FUSED.match(name)]


def card() -> str:
    """The pretended card's key in devices.toml. Raises device.DeviceUnavailable where this process is on no recorder."""
    try:
        return record.card()
    except Refused as refused:
        raise device.DeviceUnavailable(str(refused)) from None


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
            # A group whose guard failed runs operator by operator, and launches no kernel that a fuser compiled.
            told["fusion_groups"] = min(groups, len(compiled(found.kernels)))
    return told


def _waits(workload: ModuleType, variant: str, size: str, seed: int) -> dict:
    call, _ = _warm(workload, variant, size, seed)
    with explained(), record.recording() as recorded:
        call()
    if record.unanswered():
        raise Refused(record.unanswered())
    return {"host_syncs": sum(recorded.waits.values())}


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
    if variant == "compiled":
        _choose_without_timing()
    with explained():
        call = _bound(workload, variant, workload.inputs(size, "cuda", seed))
        for _ in range(getattr(workload, "WARM_UP_CALLS", WARM_UP_CALLS)):
            result = call()
    return call, form(result)


def _choose_without_timing() -> None:
    """Has torch.compile take the first of the block sizes that it would try, where it would take the quickest: on the
    recorder no try takes time. Which kernels there are, and what they read and write, does not depend on it."""
    if not hasattr(torch, "compile"):
        return
    from torch._inductor import config  # here, because importing it takes a second

    if hasattr(config.triton, "autotune_pointwise"):
        config.triton.autotune_pointwise = False


def _bound(workload: ModuleType, variant: str, arguments: Any) -> Callable[[], object]:
    """The variant as a call without arguments; of a question of first calls, a call with the first of its pictures."""
    call = workload.variants[variant](arguments)
    if not hasattr(arguments, "pictures"):
        return call
    return lambda: call(arguments.pictures[0])


def form(result: Any) -> list:
    """Dtype and shape of each tensor in `result`, which may be one or hold them in tuples and lists: ["float32 [2, 3]"]."""
    if isinstance(result, torch.Tensor):
        return ["{} {}".format(str(result.dtype).rpartition(".")[2], list(result.shape))]
    if isinstance(result, (tuple, list)):
        return [text for part in result for text in form(part)]
    return []


def in_process(work: Callable[[], dict], caching: bool = True) -> dict:
    """What `work` returns in a process of its own, with or without the caching allocator; raises what it raises."""
    return _returned(_answer(*_started(work, caching)))


def _started(work: Callable[[], dict], caching: bool) -> tuple:
    """A process that does `work`, and where its answer can be read."""
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
    return child, reader


def _answer(child: int, reader: int) -> Any:
    """What a process that was started returned, or the exception that it raised."""
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    status = os.waitpid(child, 0)[1]
    if status:
        return RuntimeError(f"the process that counted this case ended with status {status} and no answer")
    return pickle.loads(data)


def _returned(answer: Any) -> dict:
    if isinstance(answer, Exception):
        raise answer
    return answer
