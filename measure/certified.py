"""What does each case take and launch on this GPU? Asked by any interpreter that has torch, and written into one small file.

    python3 -m measure.certified FILE [--within SECONDS]

Installs nothing, reaches nothing and needs nothing but torch, NumPy and this folder. The recorder is asked by the same
program, where a process runs on it, so that a certificate can say where the two differ. Each case has a process and a time
limit of its own. What is known is written every ten cases. No time is taken, so cases run beside each other.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import functools
import importlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

try:
    import torch
except ImportError as _error:
    sys.exit(f"{sys.executable} has no torch ({_error}). Name the interpreter whose torch sees the GPU, with --python.")

from contract.certified import NOT_ASKED, QUESTIONS, Case, cases
from contract.surroundings import ALONE, PLACES, inherited
from contract.words import of_error
from recorder import Refused
from recorder.counts import agreed, empty_cache, recorded
from recorder.record import explained, recording

from . import card, counted, device
from .beside import answers
from .clock import WARM_UP_CALLS
from .launched import launched

FORMAT = 1
"""Of the file; a reader refuses another."""

SEED = 20240229
WITHIN = 240.0
EACH = 90.0
"""Seconds for all cases and for one."""

BESIDE = 16
BYTES_OF_ONE = 4 * 2**30
"""How many run at the same time at most, as the processors and the GPU's memory allow: each holds a context of half a
gigabyte, and what its case takes."""


def bytes_of(call: Callable[[], object]) -> dict:
    """Bytes and allocations of one warm call by PyTorch's own counters, its caching allocator's cache emptied before:
    `requested` by tensors, None before torch 2.0, `allocated` in blocks, of both the peak above the beginning and what
    is retained while the result is alive; `peak_reserved` of the whole process."""
    empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()
    result = call()
    torch.cuda.synchronize()
    after = torch.cuda.memory_stats()
    del result
    told: dict = {}
    for name, counter in (("requested", "requested_bytes"), ("allocated", "allocated_bytes")):
        known = f"{counter}.all.current" in before
        start = before.get(f"{counter}.all.current", 0)
        told[f"peak_{name}"] = after[f"{counter}.all.peak"] - start if known else None
        told[f"retained_{name}"] = after[f"{counter}.all.current"] - start if known else None
    told["peak_reserved"] = after["reserved_bytes.all.peak"]
    told["allocations"] = after["allocation.all.allocated"] - before["allocation.all.allocated"]
    return told


def _recorded(call: Callable[[], object], by_design: str) -> dict:
    found = recorded(call, by_design)
    return {
        "kernels": dict(Counter(found.kernels)),
        "library_calls": dict(Counter(found.library_calls)),
        "copies": dict(Counter(copy.direction for copy in found.copies)),
        "waits": sum(found.waits.values()),
    }


def _answer(case: Case, workload: Any, on_recorder: bool) -> dict:
    """What a case takes and launches. Raises what the workload raises, and Refused."""
    with explained() if on_recorder else contextlib.nullcontext():
        if case.variant == "compiled":
            counted._choose_without_timing()
        call = counted._bound(workload, case.variant, workload.inputs(case.size, "cuda", SEED))
        for _ in range(getattr(workload, "WARM_UP_CALLS", WARM_UP_CALLS)):
            call()
    if not on_recorder:
        told, found = bytes_of(call), launched(call)
        of_call = {"kernels": dict(Counter(found.kernels)), "copies": found.copies, "waits": found.waits}
        return {**told, **of_call, "library_calls": None}  # on a GPU the calls of a library are kernels
    if case.variant in counted.WAITS_ALONE:
        with explained(), recording() as seen:
            call()
        return {"waits": sum(seen.waits.values())}
    by_design = counted.READS_BY_DESIGN.get(case.variant, "")
    return agreed(lambda: {**bytes_of(call), **_recorded(call, by_design)})


def asked(case: Case, workload: Any, on_recorder: bool) -> dict:
    """As `_answer`, or {"refused": why} or {"failed": what was raised}."""
    try:
        device.require_fork()
        return _answer(case, workload, on_recorder)
    except (Refused, device.NotMeasured) as refused:
        return {"refused": str(refused)}
    except Exception as error:
        return {"failed": of_error(error)[:2000]}


def here() -> dict:
    """Which torch, CUDA and GPU these answers are of, and what torch says of the GPU."""
    of = torch.cuda.get_device_properties(0)
    return {
        "torch": torch.__version__.partition("+")[0],
        "cuda": torch.version.cuda,
        "gpu": torch.cuda.get_device_name(0),
        "capability": "sm_{}{}".format(*torch.cuda.get_device_capability(0)),
        "multiprocessors": of.multi_processor_count,
        "memory": of.total_memory,
        "properties": _properties(),
    }


def _properties() -> dict:
    """What the driver says of the GPU, by which one that devices.toml lacks can be pretended, or why nothing."""
    try:
        return card.asked()
    except Exception as error:
        return {"unknown": of_error(error)}


def _write(known: dict, path: str) -> None:
    """Replaces the file as a whole, so that it is never half of it."""
    scratch = f"{path}.{os.getpid()}"
    with open(scratch, "w", encoding="utf-8") as stream:
        json.dump(known, stream, indent=1, sort_keys=True)
        stream.write("\n")
    os.replace(scratch, path)


def main() -> None:
    """Asks, writes, and says on stderr how far it is. Exits with 1 and a sentence where there is no usable GPU."""
    parser = argparse.ArgumentParser(description="Asks this machine's GPU what each case takes and launches.")
    parser.add_argument("file", help="where the answers go")
    parser.add_argument("--within", type=float, default=WITHIN, help="seconds for all cases")
    options = parser.parse_args()
    if ALONE not in os.environ:  # anew, with what it inherits alone: torch may have read more already
        kept = {**inherited(os.environ, PLACES), ALONE: "1"}
        os.execve(sys.executable, [sys.executable, "-m", "measure.certified", *sys.argv[1:]], kept)
    began = time.monotonic()
    # A process that asked CUDA could not fork the ones that use it, so this question is one of another process too.
    about = dict(answers([("here", here)], 1, EACH, EACH))["here"]
    if "failed" in about:
        why = about["failed"].splitlines()[0].rstrip(".")
        sys.exit(f"The torch of {sys.executable} sees no GPU here. {why}.")
    on_recorder = hasattr(ctypes.CDLL(None), "recorder_count")
    workloads = {name: importlib.import_module(f"workloads.{name}") for name in (*QUESTIONS, *NOT_ASKED)}
    listed = cases({name: (of.variants, of.sizes) for name, of in workloads.items()})
    wanted = [case for case in listed if not case.left_out]
    left_out = {case.name: case.left_out for case in listed if case.left_out}
    found: dict[str, dict] = {}
    known = {"format": FORMAT, "here": about, "cases": found, "left_out": left_out, "recorder": on_recorder}
    work = [(case.name, functools.partial(asked, case, workloads[case.question], on_recorder)) for case in wanted]
    try:
        beside = max(1, min(BESIDE, os.cpu_count() or 1, about["memory"] // BYTES_OF_ONE))
        left = options.within - (time.monotonic() - began)
        for number, (name, answer) in enumerate(answers(work, beside, EACH, left), 1):
            found[name] = answer
            if number % 10 == 0:
                _write(known, options.file)
                seconds = time.monotonic() - began
                left = min(seconds / number * (len(work) - number), max(0.0, options.within - seconds))
                said = f"{number} of {len(work)} cases after {seconds:.0f} s, about {left:.0f} s are left"
                print(said, file=sys.stderr, flush=True)
    finally:
        _write(known, options.file)


if __name__ == "__main__":
    main()
