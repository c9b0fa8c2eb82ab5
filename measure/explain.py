"""Where does the time of one call go? Seconds of a warm call, and what of them belongs to operators, functions and symbols.

Each takes a call that is already warm. What it finds is evidence of causes and changes no version of a benchmark.
"""

from __future__ import annotations

import contextlib
import cProfile
import ctypes
import gc
import itertools
import os
import pstats
import re
import signal
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import torch

from . import clock, once, resident

LEAST_STRETCHES = 3

PATIENCE = 5.0

MOST_EVENTS = 20_000
"""Events of the profiler that are looked at together: some releases take seconds for a table of more."""

SAMPLING_SECONDS = 0.0007
"""Between two looks at Python's functions: a look takes some millionths of a second."""

PERF_HERTZ = 2_999
"""Samples a second: no divisor of the scheduler's own rate, so that the two do not keep step."""

OF_THE_CLOCK = ("<built-in method time.perf_counter>", "<built-in method time.process_time>")


def seconds(call: Callable[[], object], length: float) -> dict:
    """The quickest stretch, as in clock.py, within `length` seconds of the processor, in seconds a call: `wall`, and `cpu`
    of all threads."""
    calls = calls_within(call, clock.BLOCK_SECONDS["cpu"])
    goes_on = _for_so_long(length)
    stretches: list = []
    while len(stretches) < LEAST_STRETCHES or goes_on():
        stretches.append([statistics.median(each) / calls for each in zip(*_stretch(call, calls))])
    wall, cpu = map(min, zip(*stretches))
    return {"wall": wall, "cpu": cpu}


def _for_so_long(length: float) -> Callable[[], bool]:
    """Whether this process has not had `length` seconds of the processor yet; one that waits, or is kept waiting by others,
    gets at most PATIENCE times as long."""
    cpu, wall = time.process_time() + length, time.perf_counter() + PATIENCE * length
    return lambda: time.process_time() < cpu and time.perf_counter() < wall


def calls_within(call: Callable[[], object], length: float) -> int:
    """How many calls take `length` seconds, at least one."""
    calls = 1
    while True:
        taken = _block(call, calls)[0]
        if taken >= length:
            return calls
        calls = max(calls + 1, int(calls * min(10.0, 1.2 * length / max(taken, 1e-9))))


def _stretch(call: Callable[[], object], calls: int) -> list:
    blocks = [_block(call, calls)]
    while sum(one[0] for one in blocks) < clock.STRETCH_SECONDS:
        blocks.append(_block(call, calls))
    return blocks


def _block(call: Callable[[], object], calls: int) -> tuple:
    """Seconds that pass, and seconds of the processor, while `calls` calls are made."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in itertools.repeat(None, calls):
        call()
    return time.perf_counter() - wall, time.process_time() - cpu


def by_operator(call: Callable[[], object], length: float) -> dict:
    """Operators by the profiler: `seconds` of a profiled call, those of the processor that it takes (`cpu`), the same
    without the profiler (`plain`), and `rows`, name -> [own seconds a call, calls a call]."""
    events = max(1, len(_profiled(call, 1)[0]))
    calls = max(1, min(calls_within(call, length), MOST_EVENTS // events))
    plain = _block(call, calls)[1]
    found, (taken, cpu) = _profiled(call, calls)
    rows: dict = {}
    for event in found:
        row = rows.setdefault(event.name, [0.0, 0.0])
        row[0] += event.self_cpu_time_total * 1e-6 / calls
        row[1] += 1.0 / calls
    if not rows:
        raise once.CannotLook(f"the profiler of torch {torch.__version__} recorded nothing")
    return {"seconds": taken / calls, "cpu": cpu / calls, "plain": plain / calls, "rows": rows}


def _profiled(call: Callable[[], object], calls: int) -> tuple:
    """The host's events of `calls` calls, and what `_block` says of these."""
    with torch.autograd.profiler.profile() as profiler:
        taken = _block(call, calls)
    return list(profiler.function_events or []), taken


def by_function(call: Callable[[], object], length: float, sampled: float) -> dict:
    """Functions by Python's own profiler, those written in C included: as `by_operator`. It makes Python's code slow, so
    `samples` says the same of `sampled` seconds of calls that are interrupted now and then: name -> seconds a call, where
    the time of what is written in C is its caller's."""
    calls = calls_within(call, length)
    plain = _block(call, calls)[1]
    profiler = cProfile.Profile()
    profiler.enable()
    taken, cpu = _block(call, calls)
    profiler.disable()
    rows: dict = {}
    for (path, _, name), (_, count, own, _, _) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        if path == __file__ or "_lsprof" in name or name in OF_THE_CLOCK:
            continue
        row = rows.setdefault(_function(path, name), [0.0, 0.0])
        row[0] += own / calls
        row[1] += count / calls
    found = {"seconds": taken / calls, "cpu": cpu / calls, "plain": plain / calls, "rows": rows}
    return {**found, "samples": _sampled(call, sampled)}


def _sampled(call: Callable[[], object], length: float) -> dict:
    """Name of a function -> seconds a call in it, by an alarm every SAMPLING_SECONDS."""
    seen: dict = {}

    def look(number: int, frame: Any) -> None:
        if frame is not None and frame.f_code.co_filename != __file__:
            name = _function(frame.f_code.co_filename, frame.f_code.co_name)
            seen[name] = seen.get(name, 0) + 1

    before = signal.signal(signal.SIGALRM, look)
    calls, goes_on, began = 0, _for_so_long(length), time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, SAMPLING_SECONDS, SAMPLING_SECONDS)
    try:
        while goes_on():
            call()
            calls += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    each = (time.perf_counter() - began) / calls / max(1, sum(seen.values()))
    return {name: count * each for name, count in seen.items()}


def _function(path: str, name: str) -> str:
    """A function's name that two releases share: no line, and of the path what lies within its package."""
    if path == "~":
        method = re.match(r"<method '(\w+)' of 'torch._C._?TensorBase' objects>", name)
        return f"Tensor.{method[1]}" if method else name.split(" at 0x")[0]
    return once._function(path, name)


def by_symbol(call: Callable[[], object], length: float, file: str) -> dict:
    """Has `perf` write into `file` where the processor was while calls were made for `length` seconds; gives the `calls`.

    Raises CannotLook where perf is missing or not allowed to look.
    """
    command = ["perf", "record", "-e", "cpu-clock", "-F", str(PERF_HERTZ), "-N", "-o", file, "-p", str(os.getpid())]
    try:
        perf = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except FileNotFoundError as error:
        raise once.CannotLook("perf is not installed: on Debian and Ubuntu the package linux-perf has it") from error
    ends = time.monotonic() + 10
    while perf.poll() is None and not os.path.exists(file) and time.monotonic() < ends:
        time.sleep(0.02)
    time.sleep(0.1)  # perf samples within milliseconds once it has opened its file
    calls, goes_on = 0, _for_so_long(length)
    while goes_on():
        call()
        calls += 1
    perf.send_signal(signal.SIGINT)
    said = perf.communicate()[1].decode(errors="replace").strip()
    if not os.path.exists(file) or not os.path.getsize(file):
        raise once.CannotLook(f"perf recorded nothing: {' '.join(said.split())[:200]}")
    return {"calls": calls}


TAKES_MEMORY = re.compile(r"aten::(new_)?(empty|resize)\w*$")
"""Operators that take memory for another one, whose memory it is."""

NOBODY = "what lived before the call"


def by_allocation(call: Callable[[], object]) -> dict:
    """What one call dispatches and allocates, as profile.py counts it, and `rows`: operator -> its share of each of these
    four numbers, and caller -> calls of its `callers`. Its share of `peak_memory` and `retained` are bytes that it took and
    that live then.

    The profiler tells a freed block's size and not its operator: the youngest block of that size is taken to be it.
    """
    rows: dict = {}
    counted = {"peak_memory": 0, "retained": 0, "allocations": 0, "operators": 0}
    stack: list = []
    holders: dict = {}  # size -> operators that took a block of it, the youngest last
    live: dict = {}
    at_peak: dict = {}
    level = peak = 0
    for kind, name, size in _in_order(call):
        if kind == "push":
            if "::" in name:
                _add(rows, counted, name, "operators", 1)
                callers = rows[name].setdefault("callers", {})
                callers.update({each: callers.get(each, 0) + 1 for each in {*stack} - {name}})
            stack.append(name)
        elif kind == "pop":
            del stack[-1:]
        elif kind == "memory_alloc":
            if size > 0:
                holder = next((each for each in reversed(stack) if not TAKES_MEMORY.match(each)), "outside operators")
                holders.setdefault(size, []).append(holder)
                _add(rows, counted, holder, "allocations", 1)
            else:
                holder = holders[-size].pop() if holders.get(-size) else NOBODY
            live[holder] = live.get(holder, 0) + size
            level += size
            if level > peak:
                peak, at_peak = level, dict(live)
    for metric, held in (("peak_memory", at_peak), ("retained", live)):
        for name, size in held.items():
            _add(rows, counted, name, metric, size)
    return {**counted, "rows": rows}


def _add(rows: dict, counted: dict, name: str, metric: str, number: int) -> None:
    row = rows.setdefault(name, {})
    row[metric] = row.get(metric, 0) + number
    counted[metric] += number


def _in_order(call: Callable[[], object]) -> list:
    """(kind, name, bytes) of each of the older profiler's records, the only ones whose order is exact in every release."""
    try:
        from torch.autograd.profiler_legacy import profile  # here, because torch 1.8 and 1.9 have none
    except ImportError:
        from torch.autograd.profiler import profile
    config = profile(profile_memory=True).config()
    torch.autograd._enable_profiler_legacy(config)
    try:
        result = call()
    finally:
        records = [record for thread in torch.autograd._disable_profiler_legacy() for record in thread]
    del result
    found = []
    for record in records:
        kind = record.kind()
        size = record.cpu_memory_usage() if kind == "memory_alloc" else 0
        found.append((kind, re.sub(r"_\d{9,}$", "", record.name()) if kind == "push" else "", size))
    return found


LOOKS, CALLS, FRAMES = 7, 5, 50
"""Looks at what so many calls leave, each up to so far above an allocation for the line of the user's file."""


def left(call: Callable[[], object], path: str) -> dict:
    """What each call leaves, by metric as resident.py counts it, and `rows`: line of the file at `path` or of one beside it
    that led to it -> the same metrics, `of TYPE` -> objects and `at LINE` -> bytes made there, if they rise evenly."""
    _block(call, resident.WARM_UP_CALLS)
    gc.freeze()  # what is there before takes long to look at
    tracemalloc.start(FRAMES)
    looks = [_living(call, os.path.dirname(path)) for _ in range(LOOKS)]
    tracemalloc.stop()
    rows: dict = {}
    for line, column in looks[-1]:
        by = resident.kept([look.get((line, column), 0) for look in looks])[0] / CALLS
        rows.setdefault(line, {}).update({column: by} if by else {})
    found = {name: told.get("value", 0) for name, told in resident.measured(call).items() if name != "resident_memory"}
    rest = {name: found[name] - sum(row.get(name, 0) for row in rows.values()) for name in found}
    return {**found, "rows": {**rows, "what no line of Python made": rest}}


def _living(call: Callable[[], object], folder: str) -> dict:
    """After calls (line, column) of `left` -> how much was made there since tracemalloc began and is still there."""
    gc.collect()  # which empties free lists: what is taken from these has no traceback of its own
    _block(call, CALLS)
    gc.collect()
    seen: dict = {}
    storages: set = set()

    def add(trace: Any, numbers: dict, size: int) -> None:
        if trace[-1].filename not in (__file__, tracemalloc.__file__):
            lines = [(one.filename, f"{_function(one.filename, '').strip()}:{one.lineno}") for one in trace]
            own = [line for path, line in lines if os.path.dirname(path) == folder] or ["outside the file"]
            sizes = dict.fromkeys(("kept_bytes", "resident_growth", f"at {lines[-1][1]}"), size)
            for name, number in {**numbers, **sizes}.items():
                seen[own[-1], name] = seen.get((own[-1], name), 0) + number

    for each in gc.get_objects():
        trace = _made(each)
        if trace:
            add(trace, *_what(each, storages))
    for block in tracemalloc.take_snapshot().traces:
        add(block.traceback, {"kept_blocks": 1}, block.size)
    return seen


def _made(each: Any) -> Any:
    """An object's traceback, nothing of an older one. Python 3.11 misses those whose attributes stand before them."""
    found = tracemalloc.get_object_traceback(each)
    if found or sys.version_info[:2] != (3, 11) or not type(each).__flags__ & 1 << 4:  # Py_TPFLAGS_MANAGED_DICT
        return found
    ask = ctypes.pythonapi._PyTraceMalloc_GetTraceback
    ask.restype, ask.argtypes = ctypes.py_object, (ctypes.c_uint, ctypes.c_size_t)
    return tracemalloc.Traceback(ask(0, id(each) - 32) or ())


def _what(each: Any, storages: set) -> tuple:
    """What an object counts as, and the bytes of a tensor whose storage is none of `storages`, which gets it: about 360 in
    C++ beside its numbers."""
    kind, size = type(each), 0
    name = f"{kind.__module__}.{kind.__qualname__}".replace("builtins.", "").replace("torch.Tensor", "Tensor")
    if issubclass(kind, torch.Tensor):
        with contextlib.suppress(Exception):  # one without shape or storage
            storage = getattr(each, "untyped_storage", each.storage)()  # torch 1 has none that is untyped
            size = 0 if storage.data_ptr() in storages else 360 + storage.size() * storage.element_size()
            storages.add(storage.data_ptr())
            name = f"{name} of {str(each.dtype)[len('torch.') :]} {tuple(each.shape)}"
    return {"kept_objects": 1, f"of {name}": 1}, size


def _fuser_off() -> None:
    torch._C._jit_set_texpr_fuser_enabled(False)
    torch._C._jit_override_can_fuse_on_cpu(False)


SETTINGS: dict[str, Callable[[], object]] = {
    "collector_off": gc.disable,
    "onednn_off": lambda: torch.backends.mkldnn.set_flags(False),
    "fuser_off": _fuser_off,
    "one_thread": lambda: torch.set_num_threads(1),
}
"""What a lever may set within the process, before the case is built; levers.toml names them."""


def traces(call: Callable[[], object]) -> list:
    """What the call uses, as far as it can be asked: names of its operators, `TorchScript` where a graph of it ran,
    `torch.compile` where Inductor has made code, `garbage collection` where Python's collector ran, and `several threads`
    where there are some for it."""
    before, ends = _collections(), time.perf_counter() + COLLECTING_SECONDS
    call()
    while time.perf_counter() < ends:
        call()
    collected = _collections() > before
    events, _ = _profiled(call, 1)
    used = {
        "TorchScript": torch.jit.last_executed_optimized_graph() is not None,
        "torch.compile": "torch._inductor.graph" in sys.modules,
        "garbage collection": collected,
        "several threads": torch.get_num_threads() > 1,
    }
    return sorted({event.name for event in events} | {name for name, is_used in used.items() if is_used})


COLLECTING_SECONDS = 0.1
"""For which calls are made to see whether Python's collector runs: far longer than the stretches that are timed."""


def _collections() -> int:
    """How often Python's garbage collector has run."""
    return sum(each["collections"] for each in gc.get_stats())
