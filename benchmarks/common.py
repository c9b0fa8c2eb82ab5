"""How does a workload become asv benchmarks? A subclass of `_Question` names its workload and gets every metric of it.

    class Intersection(_Question, workload=intersection):
        '''Variants x sizes.'''

A metric is a method `track_<metric>` with the parameters variant and size, strings both. One process of a launch builds,
checks and measures a case, which is one variant in one size; the processes of its other metrics read what that one found.
A variant that cannot run here is skipped and a wrong result fails, each with a sentence kept beside the result.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import functools
import gc
import hashlib
import importlib
import inspect
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import torch
from asv_runner.benchmarks.mark import SkipNotImplemented

from contract.metrics import (
    COUNTS,
    HAS_RECORDED,
    METRICS,
    NEVER_RECORDED,
    PROCESS,
    RECORDED,
    RESIDENT,
    SEQUENCE,
    START,
    STEADY,
    TIMES,
    Metric,
    metrics_of,
)
from contract.own_file import NEEDED
from contract.request import ASKED, ASKED_ONLY, CHANNEL, ONLY, Request
from contract.words import of_error, storable
from measure import (
    THREADS,
    clock,
    constants,
    counted,
    device,
    facts,
    launched,
    libraries,
    planted,
    process,
    profile,
    resident,
    returned,
    sequence,
    shared,
    start_up,
    stopwatch,
    turns,
)
from workloads import Unavailable

from . import unforked

_CHANNEL = os.environ.pop(CHANNEL, "")
_TOLD = os.open(_CHANNEL, os.O_RDWR | os.O_APPEND) if _CHANNEL else None
"""Where facts go: a file of the program that started this process, gone from the surroundings before a workload is imported,
so that what a workload prints is never taken for a fact. None where nobody asked for facts."""


def _asked() -> dict:
    """The case that this process was started for, and what of it; nothing where nobody says."""
    first = os.pread(_TOLD, 2**16, 0).partition(b"\n")[0] if _TOLD is not None else b""
    return json.loads(first) if first.startswith(b'{"' + ASKED.encode()) else {}


def _names_first_calls(own: Request) -> bool:
    """Whether a user's file names a metric of first calls: what a first call loads is a part of it then."""
    path = Path(own.text or own.workload)
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return any(name in text for name, metric in METRICS.items() if metric.measured == SEQUENCE)


if hasattr(torch, "compile") and device.is_cpu() and not _names_first_calls(Request.of(os.environ)):
    # The profiler and every compiled variant load it; once before the fork saves a second in each of hundreds of processes.
    # Where CUDA is measured it stays away: after torch 2.3's, no process that is forked can use CUDA. So it does where a
    # user's first call may be slow because it loads it, as making an optimizer does since 2.1.
    import torch._dynamo

_CONSTANTS = constants.keep()
gc.collect()
gc.freeze()
"""What importing made is out of the garbage collector's sight in the processes forked from here: it would walk through
100,000 objects of torch, more in newer releases, in some calls of a variant that makes many tensors and not in others."""
atexit.register(gc.unfreeze)

SEED = 20240229
"""Every release draws its inputs from this seed, with NumPy."""


class CaseFailed(Exception):
    """The case went wrong in the process that measured it; the text is that process's last words."""


def _steady(workload: ModuleType, variant: str, size: str, on: str) -> dict:
    """Metrics of a call that is made again and again: a number each, or a list of samples."""
    if on == "recorder":
        return _counted(workload, variant, size)
    began = time.perf_counter()
    arguments, call, result = _built(workload, variant, size, on)
    built = time.perf_counter() - began
    before = getattr(call, "before", stopwatch.nothing)
    _check(workload, arguments, result, on)
    del result
    call = planted.into(call, f"{variant} {size}", on)
    forward = getattr(call, "forward", None)

    def again() -> Any:
        return planted.into(_built(workload, variant, size, on)[1], f"{variant} {size}", on)

    anew = None if getattr(workload, "IS_OWN", False) else turns.Anew(again, built)
    found: dict[str, Any] = {}
    if device.wanted("times"):
        constants.read(_CONSTANTS)
        if "time" in workload.METRICS:
            found["time"] = _samples(call, on, anew, before)
        if "cpu_time" in workload.METRICS:
            found["cpu_time"] = _samples(call, on, anew, before, busy=True)
        if forward and "forward_time" in workload.METRICS:
            constants.read(_CONSTANTS)
            found["forward_time"] = _samples(forward, on, anew and anew.of("forward"), stopwatch.nothing)
        _say(**planted.told(call, f"{variant} {size}"))
    if device.wanted("counts") and any(METRICS[name].kind == COUNTS for name in workload.METRICS):
        before()
        # On a GPU the profiler calls twice, so what has to be done before each call is counted there.
        found.update(_counts(workload, call if on == "cpu" else _with(before, call), forward, on))
    return found


def _built(workload: ModuleType, variant: str, size: str, on: str) -> tuple:
    """Arguments, the call of a variant on them, and the result of the last of those calls that warm it up."""
    arguments = workload.inputs(size, on, SEED)
    call = workload.variants[variant](arguments)
    both = _with(getattr(call, "before", stopwatch.nothing), call)
    return arguments, call, clock.warm_up(both, on, getattr(workload, "WARM_UP_CALLS", clock.WARM_UP_CALLS))


def _samples(
    call: Callable[[], object], on: str, anew: turns.Anew | None, before: Callable[[], object], busy: bool = False
) -> Any:
    """Samples of a warm call, or those with the turns that it took among other releases, without what is done `before`: in
    seconds, or in seconds that processors were kept `busy`."""
    if turns.wanted():
        return turns.measured(call, on, anew, None if before is stopwatch.nothing else before, busy)
    if busy:
        return stopwatch.cpu_samples(call, before)
    return clock.samples(call, on) if before is stopwatch.nothing else stopwatch.samples(call, before, on)


def _with(before: Callable[[], object], call: Callable[[], object]) -> Callable[[], object]:
    """`call`, with what has to be done before each."""

    def both() -> object:
        before()
        return call()

    return call if before is stopwatch.nothing else both


def _counts(workload: ModuleType, call: Any, forward: Callable[[], object] | None, on: str) -> dict:
    """What one warm call counts, by metric."""
    try:
        found: dict[str, Any] = profile.profile(call, on)._asdict()
    except RuntimeError as error:
        # Code of a user's own may call no operator at all. Anything else that is raised here is a failure.
        if not getattr(workload, "IS_OWN", False) or not str(error).endswith("recorded nothing"):
            raise
        return {name: {"unavailable": f"its thread runs no operator: {error}"} for name in profile.Profile._fields}
    if on != "cuda":
        del found["kernels"], found["host_syncs"]
    elif not profile._record(lambda: torch.ones(1, device=on), on).launched:
        blind = {"unavailable": f"the profiler of torch {torch.__version__} shows nothing of this GPU"}
        found["kernels"] = found["host_syncs"] = blind
    else:
        # Fused kernels, too, which `profile` leaves out where they have their host's name. On a CPU nothing is launched, so
        # that file, which says what a count is there, stays as it is.
        found["kernels"] = len(launched.launched(call).kernels)
    if forward and "retained" in workload.METRICS:
        found["retained"] = profile.profile(forward, on).retained
    if "fusion_groups" in workload.METRICS and (groups := profile.fusion_groups(call)) is not None:
        found["fusion_groups"] = groups
    if "gradients" in workload.METRICS:
        found["gradients"] = call.gradients
    return found


def _check(workload: ModuleType, arguments: Any, result: Any, on: str) -> None:
    """Raises what the workload's check does. A check may fetch its inputs from the GPU, and where no kernel runs it compares
    zeros with zeros: so on a GPU kernels must run. Raises DeviceUnavailable where they do not."""
    if on == "cuda":
        device.require_kernels()
    workload.check(arguments, result)


def _counted(workload: ModuleType, variant: str, size: str) -> dict:
    """Metrics of a warm call on the recorder, where no kernel runs. Raises Refused where it cannot tell them."""
    count = (shared if variant in shared.VARIANTS else counted).counts
    found = count(workload, variant, size, SEED)
    _say(recorded=counted.details(found))
    if found.get("form"):
        _say(returned=returned.of_forms(found["form"]))
    return counted.numbers(found)


def _sequence(workload: ModuleType, variant: str, size: str, on: str) -> dict:
    """Metrics of the first calls of a process: a number each by process, and of stalls the least, since a busy machine adds
    some; the variant is called with one argument after another."""

    def once() -> dict:
        with sequence.empty_caches():
            arguments = workload.inputs(size, on, SEED)
            call = planted.into_each(workload.variants[variant](arguments), f"{variant} {size}")
            constants.read(_CONSTANTS)
            seconds, results = sequence.run(call, arguments, on)
        workload.check(arguments, results)
        numbers = sequence.summary(seconds)
        compiling = max(numbers["first_call"] - numbers["median_call"], CLOCK_SECONDS)
        return {**numbers, "compile_time": compiling} if "compile_time" in workload.METRICS else numbers

    found = sequence.in_fresh_processes(once, on)
    stalls = min(each["stalls"] for each in found)
    return {name: stalls if name == "stalls" else [each[name] for each in found] for name in found[0]}


CLOCK_SECONDS = 1e-7
"""What a reading of the clock takes, the least time that a difference of two is given as."""


def _resident(workload: ModuleType, variant: str, size: str, on: str) -> dict:
    """Metrics of the memory that a process holds which does nothing but call."""

    def once() -> dict:
        arguments = workload.inputs(size, on, SEED)
        call = workload.variants[variant](arguments)
        call = _with(getattr(call, "before", stopwatch.nothing), call)
        workload.check(arguments, call())
        found = resident.on_device(call) if on == "cuda" and device.wanted("counts") else {}
        return {**found, **(resident.measured(call) if device.wanted("times") else {})}

    return sequence.in_fresh_processes(once, on)[0]


def _kept_on_recorder(workload: ModuleType, variant: str, size: str, on: str) -> dict:
    """What calls leave on the device, where no kernel runs. Raises Refused where the recorder cannot tell it."""

    def once() -> dict:
        with counted.explained(), counted.record.recording() as recorded:
            found = resident.on_device(workload.variants[variant](workload.inputs(size, "cuda", SEED)))
        recorded.sound()
        return found

    return counted.in_process(once)


def _process(workload: ModuleType, variant: str, size: str, on: str) -> dict:
    """Metrics of a whole process, started in the folder of the file."""
    return process.measured(workload.commands[variant], str(Path(str(workload.__file__)).parent))


def _start(workload: ModuleType, variant: str, size: str, on: str) -> dict:
    """Metrics of one step of a new process. Raises Refused where it cannot be made."""
    return start_up.measured(workload.__name__.rpartition(".")[2], variant)


ON_CPU_ONLY = "what a start takes is measured on a CPU; --device cpu measures it on a machine with a GPU as well"

_MEASURED_BY = {STEADY: _steady, SEQUENCE: _sequence, RESIDENT: _resident, PROCESS: _process, START: _start}


def _measured_by(metric: Metric, on: str) -> Callable:
    """What measures a case of that metric; the recorder counts every question in one way, but what calls leave."""
    if on == "recorder":
        return _kept_on_recorder if metric.measured == RESIDENT else _steady
    return _MEASURED_BY[metric.measured]


class _Question:
    """The metrics of one workload over its variants and sizes; see the module's text for how to make one."""

    _workload: ModuleType
    params: list
    param_names = ["variant", "size"]

    def __init__(self) -> None:
        """Where one case is asked for, asv finds that one here and no other, whatever the workload lists in this process."""
        asked = _asked()
        if asked.get(ASKED):
            self.params = [[ast.literal_eval(parameter)] for parameter in asked[ASKED]]
        if asked.get(ASKED_ONLY):
            os.environ[ONLY] = asked[ASKED_ONLY]

    def __init_subclass__(cls, workload: ModuleType) -> None:
        cls._workload = workload
        kinds = {METRICS[name].measured for name in workload.METRICS}
        if len(kinds) != 1:
            raise TypeError(
                f"the metrics of {workload.__name__} are of steady calls and of sequences: make two workloads"
            )
        cls.params = [list(workload.variants), list(workload.sizes)]
        recorded = RECORDED if kinds <= HAS_RECORDED else ()
        for name in (*metrics_of(workload.METRICS), *recorded):
            setattr(cls, f"track_{name}", _benchmark(cls.__name__, workload, METRICS[name]))


def _benchmark(question: str, workload: ModuleType, metric: Metric) -> Callable:
    """The method that asv calls for one metric; asv reads its attributes."""
    name = metric.name

    def track(self, variant, size):
        _CASE[:] = [f"track_{name}", [repr(variant), repr(size)]]
        value = _found(workload, variant, size, metric)[name]
        if isinstance(value, dict):
            for kind in ("unavailable", "unmeasured"):
                if kind in value:
                    _skip(kind, value[kind])
            if "samples" in value:
                _say(turns=value.get("turns", []))
                return {"samples": value["samples"], "number": 1}
            _say(detectable=value["detectable"])
            return value["value"]
        return {"samples": value, "number": 1} if isinstance(value, list) else value

    read_by_asv: Any = track
    read_by_asv.__name__ = f"track_{name}"
    read_by_asv.unit = metric.unit
    read_by_asv.version = version(workload, importlib.import_module(f"measure.{metric.source}"))
    read_by_asv.pretty_name = f"{question}: {metric.words}"
    return track


def _found(workload: ModuleType, variant: str, size: str, metric: Metric) -> dict:
    """What this launch found for the case: by metric a number, a list of samples, {"samples": them, "turns": seconds of each
    turn}, {"value": number, "detectable": the least that would have been told}, {"unavailable": why}, or {"unmeasured": why}
    where the suite is at fault.

    Skips what nobody asked for; raises CaseFailed where it went wrong before.
    """
    on = Request.of(os.environ).device
    if metric.source == "counted" and on != "recorder":
        _skip("not_asked", metric.missing)
    if metric.kind == TIMES and on == "recorder":
        _skip("unavailable", NEVER_RECORDED)
    if not device.wanted(metric.kind):
        _skip("not_asked", f"{metric.kind} were not asked for: TORCH_HISTORY_ONLY names something else")
    scale = size.rpartition(" ")[2]
    if scale in device.DEFAULT_SIZES.values() and scale not in device.asked_sizes():
        _skip("not_asked", f"size {size} was not asked for: set TORCH_HISTORY_SIZES={scale}")
    _say(torch=torch.__version__, python=sys.version.split()[0], threads=THREADS)
    if _LAUNCH.first("environment"):
        # The recorder keeps what a process ever asked of CUDA, so this question is one of another process.
        with unforked.counting():
            _say(environment=counted.in_process(facts.environment) if on == "recorder" else facts.environment())
    is_named = getattr(workload, "NAMES_LIBRARIES", False) and on == "cpu" and device.wanted(COUNTS)
    if is_named and _LAUNCH.first("libraries"):
        _say(libraries=libraries.answered(_calls(workload)))

    def measured() -> dict:
        kind, reason = "unavailable", ""
        try:
            _require(workload, variant, size)
            device.require_own(workload.__name__.rpartition(".")[2], variant, size, on)
            ready = _ready_for(workload, variant, metric)
            began = time.perf_counter()
            with unforked.counting(*unforked.case(workload, variant, size)):
                numbers = _measured_by(metric, on)(workload, variant, size, ready)
            if metric.measured == STEADY and on != "recorder" and time.perf_counter() - began < LATEST:
                _say_returned(workload, variant, size, ready)
        except (Unavailable, device.DeviceUnavailable, counted.Refused, start_up.Refused) as error:
            numbers, reason = {}, str(error)
        except device.NotMeasured as error:
            numbers, kind, reason = {}, "unmeasured", str(error)
        finally:
            with contextlib.suppress(OSError):  # asv hands on what a case prints, in a time that grows as its square
                if os.fstat(1).st_size > MOST_PRINTED:
                    os.ftruncate(1, MOST_PRINTED)
                    os.lseek(1, 0, os.SEEK_END)
        named = metrics_of(workload.METRICS)
        asked = (*named, *RECORDED) if on == "recorder" else named
        found = {of: numbers.get(of, {kind: reason or _missing(of, on)}) for of in asked}
        _say(found=found)
        return found

    with contextlib.suppress(device.DeviceUnavailable):
        _say(device=device.name())
        if on == "recorder":
            _say(card=counted.card())
    return _LAUNCH.answer(f"{workload.__name__} {variant} {size} {metric.measured}", metric.name, measured)


MOST_PRINTED = 2**20
LATEST = 100.0
"""Seconds of a case after which it is not called again for what it returns: asv ends its process after 300."""


def _say_returned(workload: ModuleType, variant: str, size: str, on: str) -> None:
    """Tells what the case returns, on inputs that are drawn anew, where somebody asks for that. What it returns is looked at
    when every number is taken, so what cannot be told is left out, and why is said on standard error."""

    def build() -> Callable[[], object]:
        torch.manual_seed(SEED)
        call = workload.variants[variant](workload.inputs(size, on, SEED))
        return _with(getattr(call, "before", stopwatch.nothing), call)

    if folder := Request.of(os.environ).values:
        try:
            found = returned.told(build, Path(folder))
            _say(**({"returned": found} if found["tensors"] else {}))
        except Exception as error:
            print(f"What it returns cannot be told: {of_error(error)}", file=sys.stderr)


def _calls(workload: ModuleType) -> Iterator[tuple[str, Callable[[], Any]]]:
    """`question variant size` and what builds its call on the CPU, for each case of a question."""

    def call(variant: str, size: str) -> Any:
        return workload.variants[variant](workload.inputs(size, "cpu", SEED))

    question = workload.__name__.rpartition(".")[2]
    for variant, size in itertools.product(workload.variants, workload.sizes):
        yield f"{question} {variant} {size}", functools.partial(call, variant, size)


def _require(workload: ModuleType, variant: str, size: str) -> None:
    """Raises Unavailable where a workload that differs between releases has no such case on this one."""
    name = Path(str(workload.__file__)).name
    for each, known in ((variant, workload.variants), (size, workload.sizes)):
        if each not in known:
            raise Unavailable(f"{name} has no `{each}` on torch {torch.__version__}")


def _missing(metric: str, on: str) -> str:
    """Why a case that ran on that device has no such number."""
    row = METRICS[metric]
    if on != "recorder" or metric == "fusion_groups":
        return row.missing
    if on in row.devices:
        return SIZED_BY_VALUES
    return NEVER_RECORDED if row.kind == TIMES else "the recorder does not count this"


SIZED_BY_VALUES = (
    "the host reads back from the device how much is selected, and no kernel ran: of this case only the waits are known"
)


def _ready() -> str:
    """Prepares this process to measure and returns the device's name."""
    with contextlib.suppress(OSError):
        # Where memory runs out, the system ends this process and not the ones that keep the results.
        Path("/proc/self/oom_score_adj").write_text("900", encoding="ascii")
    name = device.name()
    device.ready(name)
    return name


def _ready_for(workload: ModuleType, variant: str, metric: Metric) -> str:
    """`_ready`. Raises DeviceUnavailable where the GPU is too old for a variant of the suite, and Unavailable where the
    metric is not measured on one, before CUDA is started."""
    if metric.measured == START and device.name() != "cpu":
        raise Unavailable(ON_CPU_ONLY)
    name = _ready()
    if name == "cuda" and not getattr(workload, "IS_OWN", False):
        device.require_capability(workload.__name__.rpartition(".")[2], variant)
    return name


@contextlib.contextmanager
def _files_of_ours() -> Iterator[None]:
    """Raises NotMeasured where a file of this suite, and none of a workload, cannot be written: the disk may be full."""
    try:
        yield
    except OSError as error:
        raise device.NotMeasured(f"what it found could not be kept: {error.strerror}") from None


class _Launch:
    """What the processes of one launch tell each other, through a nameless file that is open before asv's server forks them.
    One that is spawned opens a file of its own."""

    def __init__(self) -> None:
        with _files_of_ours():
            self._file = tempfile.TemporaryFile()  # noqa: SIM115

    def first(self, what: str) -> bool:
        """Whether nobody has asked for `what` yet."""
        known = any(case == what for case, _, _, _ in self._records())
        self._write(what, "", 0, None)
        return not known

    def answer(self, case: str, asker: str, measured: Callable[[], dict]) -> dict:
        """What `measured` returns, measured once for all askers; the nth time that one asks it is measured for the nth time.
        Raises CaseFailed where the process that measured it raised or was ended."""
        records = [record for record in self._records() if record[0] == case]
        turn = sum(by == asker for _, by, _, _ in records)
        answers = {of: answer for _, by, of, answer in records if not by}
        began = any(of == turn for _, by, of, _ in records if by)
        self._write(case, asker, turn, None)
        if not began:
            try:
                answers[turn] = measured()
            except Exception as error:
                self._write(case, "", turn, {"failed": of_error(error)})
                raise
            self._write(case, "", turn, answers[turn])
        answer = answers.get(turn, {"failed": "the process that measured this case ended before it could answer"})
        if "failed" in answer:
            raise CaseFailed(answer["failed"])
        return answer

    def _records(self) -> list:
        file = self._file.fileno()
        return [json.loads(line) for line in os.pread(file, os.fstat(file).st_size, 0).splitlines()]

    def _write(self, case: str, asker: str, turn: int, answer: dict | None) -> None:
        with _files_of_ours():
            os.write(self._file.fileno(), json.dumps([case, asker, turn, answer]).encode() + b"\n")


_LAUNCH = _Launch()


def version(workload: ModuleType, metric: ModuleType) -> str:
    """The identity of what is measured: a digest of the workload's source in Python and C++, of the modules of `workloads`
    that it uses, of the data that an own file needs, of the metric's module and of the seed. An edit changes it, another
    torch does not."""
    package = workload.__name__.rpartition(".")[0]
    owners = [inspect.getmodule(value) or value for value in vars(workload).values()]
    used = {owner for owner in owners if package and getattr(owner, "__name__", "").startswith(package + ".")}
    digest = hashlib.sha256(repr(SEED).encode())
    for module in [*sorted(used | {workload}, key=lambda module: module.__name__), metric]:
        source = Path(str(module.__spec__.origin if module.__spec__ else module.__file__))  # an own file's kept text
        for path in (source, source.with_suffix(".cpp"), source.with_suffix(NEEDED)):
            if path.exists():
                digest.update(path.read_bytes())
    return digest.hexdigest()


def _skip(kind: str, sentence: str) -> NoReturn:
    _say(**{kind: sentence})
    raise SkipNotImplemented(sentence)


_CASE: list = []
"""The metric and the parameters of the one case that this process measures."""


def _say(**facts) -> None:
    """Tells whoever started this process something about the measurement."""
    if _TOLD is None:
        return
    metric, parameters = _CASE
    record = {"metric": metric, "parameters": parameters, "process": os.getpid(), "facts": storable(facts)}
    with _files_of_ours():
        os.write(_TOLD, b"\n" + json.dumps(record).encode() + b"\n")
