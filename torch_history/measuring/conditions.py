"""Under which conditions was something measured, and did they disturb it? What cannot be read is left out."""

import bisect
import contextlib
import itertools
import os
import re
import statistics
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .gpu import WatchedGpu, reasons_in_words

SLOW_CONTROL = 1.3
"""A slower control tells a disturbance: on shared cores an interpreter's speed wanders by 10 to 15 % all day."""

STOLEN = 0.05
"""Share of the processors' time that the host of a virtual machine may take away."""

OTHERS = 0.1
"""Share of the processors that others may keep busy beside what is measured: they share cores, caches and memory."""

USUAL_OF = 20
"""Controls before it that say what is usual: a machine that has become slower for good is usual again after so many."""

LEAST_KNOWN = 3
"""Controls that must be known before one can be called slow."""

CONTROL_STEPS, CONTROL_BYTES = 100_000, 32 * 2**20
"""The control: an interpreter's loop of so many steps and a copy of so many bytes, more than a cache holds."""

QUIET_STEPS, QUIET, QUICK = 5_000, 1.3, 0.1
"""A core is quiet when a loop of so many steps (0.1 ms) takes at most 1.3 times as long as what a tenth of the loops so far
keep below: left alone they stay within 1.02, with many neighbours 1.25; where one shares the core they take 1.5 times."""

CALM_LOOKS = 100
"""So often in a row a core must be quiet before what takes no turns is measured: one call may hold many bursts of others."""

THROTTLED = 0.1
"""A GPU whose clocks were held back in more than a tenth of the samples in which it worked was not itself."""


class Watch:
    """The conditions from one `lap` to the next, judged by what was usual in the laps before."""

    def __init__(self, gpu: bool, threads: int = 1) -> None:
        """`gpu`: whether a GPU is measured and watched as long as this lives; `threads` are those that measure."""
        self._gpu = WatchedGpu() if gpu else None
        self._own = threads / (os.cpu_count() or 1)
        self._source, self._target = bytes(CONTROL_BYTES), memoryview(bytearray(CONTROL_BYTES))
        self._usual: deque[dict[str, float]] = deque(maxlen=USUAL_OF)
        self.begin()

    def begin(self) -> None:
        """Begins a lap; what was before is forgotten."""
        self._ticks = processor_ticks()
        self._controls: list[tuple[float, float]] = []
        self._waited = 0.0
        if self._gpu:
            self._gpu.begin()

    def control(self) -> None:
        """Does the fixed work once: a loop of the interpreter, and a copy in memory."""
        looped = _loop(CONTROL_STEPS)
        began = time.perf_counter()
        self._target[:] = self._source
        self._controls.append((looped, time.perf_counter() - began))

    def wait(self, quiet: "Quiet", most: float) -> float:
        """Waits until nothing shares the core, about `most` seconds, and works: the host moves a busy processor."""
        with self.untimed():
            waited = quiet.wait(most, CALM_LOOKS)
        self._waited += waited
        return waited

    @contextlib.contextmanager
    def untimed(self) -> Iterator[None]:
        """Within, nothing is timed, and the lap knows nothing of what keeps processors busy."""
        before = processor_ticks()
        try:
            yield
        finally:
            now = processor_ticks()
            self._ticks = {name: ticks + now[name] - before[name] for name, ticks in self._ticks.items()}

    def lap(self) -> dict[str, Any]:
        """What held since `begin`: `control` in seconds (`interpreter` for the loop, `memory` for the copy), `load`, the
        number of `processors` that what is measured may use, `stolen`, `busy` and, by `others` than what is measured, as
        shares of the processors' time, what `readable` finds, the seconds that it `waited`, and `gpu`: see
        `WatchedGpu.state`. `disturbed` says why that was no fair measurement, and is absent where it was."""
        if not self._controls:
            self.control()
        medians = (float(f"{statistics.median(of):.4g}") for of in zip(*self._controls, strict=True))
        taken = dict(zip(("interpreter", "memory"), medians, strict=True))
        load, processors = round(os.getloadavg()[0], 2), len(os.sched_getaffinity(0))
        found: dict[str, Any] = {"control": taken, "load": load, "processors": processors}
        found |= _shares(self._ticks, processor_ticks(), self._own) | readable()
        if self._waited:
            found["waited"] = round(self._waited, 1)
        if self._gpu:
            found["gpu"] = self._gpu.state()
        if reason := disturbance(found, self._usual):
            found["disturbed"] = reason
        self._usual.append(taken)
        self.begin()
        return found


class Quiet:
    """The moments in which nothing shares the core that this thread is on, told by short loops of an interpreter."""

    def __init__(self, processors: Iterable[int] = ()) -> None:
        """`processors` are those that it may choose from; with none it stays where it is."""
        self._loops: list[float] = []
        self._processors = itertools.cycle(sorted(processors)) if processors else None

    def wait(self, most: float, looks: int = 1) -> float:
        """Works until the core is quiet `looks` times in a row, about `most` seconds; returns those until the first."""
        bisect.insort(self._loops, self._loop())  # later looks of a long wait would make its noise the usual
        began = first = time.monotonic()
        seen = 0
        while seen < looks and time.monotonic() - began < most:
            now = time.monotonic()
            if self._loop() <= QUIET * self._loops[int(QUICK * len(self._loops))]:
                first, seen = first if seen else now, seen + 1
                continue
            seen, first = 0, time.monotonic()
            if self._processors:
                os.sched_setaffinity(0, {next(self._processors)})
        return first - began

    @staticmethod
    def _loop() -> float:
        return min(_loop(QUIET_STEPS), _loop(QUIET_STEPS))


def business() -> str:
    """What keeps this machine busy in the next second, in words; empty where that would disturb nothing."""
    before = processor_ticks()
    time.sleep(1)
    return disturbance(_shares(before, processor_ticks(), 0.0), ())


def _shares(before: Mapping[str, int], now: Mapping[str, int], own: float) -> dict[str, float]:
    """Shares of the ticks between two readings, of which `own` is that of what is measured; empty without ticks."""
    passed = {name: now[name] - before[name] for name in now if name in before}
    total = sum(passed.values())
    if not total:
        return {}
    busy = round(passed["busy"] / total, 3)
    return {"stolen": round(passed["steal"] / total, 4), "busy": busy, "others": round(max(0.0, busy - own), 3)}


def _loop(steps: int) -> float:
    """Seconds of an interpreter's loop."""
    began = time.perf_counter()
    total = 0
    for number in range(steps):
        total += number & 7
    return time.perf_counter() - began


def disturbance(found: Mapping[str, Any], usual: Sequence[Mapping[str, float]]) -> str:
    """Why these conditions were no fair ones, in words that follow `disturbed:`; empty where they were."""
    if found.get("stolen", 0.0) > STOLEN:
        return f"the host took {found['stolen']:.0%} of the processors' time away"
    if found.get("others", 0.0) > OTHERS:
        return f"other processes kept {found['others']:.0%} of the processors busy"
    if len(usual) >= LEAST_KNOWN:
        for name, seconds in found["control"].items():
            ratio = seconds / statistics.median(of[name] for of in usual)
            if ratio > SLOW_CONTROL:
                return f"work without torch ({name}) took {ratio:.2f} times as long as usual"
    gpu = found.get("gpu", {})
    if gpu.get("throttled_share", 0.0) > THROTTLED:
        why = reasons_in_words(gpu["throttled"])
        return f"the GPU held its clocks back for {gpu['throttled_share']:.0%} of its work ({why})"
    return ""


@contextlib.contextmanager
def on_one_processor() -> Iterator[None]:
    """Within, all stay on one processor: one that was idle for a third of a second is slow."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


PRIORITY = -10
"""Where others want the same processor, a process of this priority gets nine tenths of it from one of them."""


@contextlib.contextmanager
def before_others() -> Iterator[None]:
    """Within, this thread and what it starts come before other processes, where the system lets them: root alone may ask."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, min(usual, PRIORITY))
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, usual)


def processor_ticks() -> dict[str, int]:
    """Ticks of all processors together since the start, as Linux counts them. `idle` holds waiting too."""
    fields = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]
    user, nice, system, idle, waiting, hard, soft, steal = (int(field) for field in fields)
    return {"busy": user + nice + system + hard + soft, "idle": idle + waiting, "steal": steal}


def readable() -> dict[str, float]:
    """`megahertz` of the fastest core and `celsius` of the hottest zone, each where this machine tells it."""
    clocks = [float(text) / 1000 for text in texts("/sys/devices/system/cpu", "cpu[0-9]*/cpufreq/scaling_cur_freq")]
    if not clocks:
        said = "".join(texts("/proc", "cpuinfo"))
        clocks = [float(clock) for clock in re.findall(r"^cpu MHz\s*: ([\d.]+)", said, re.MULTILINE)]
    heat = [float(text) / 1000 for text in texts("/sys/class/thermal", "thermal_zone*/temp")]
    return ({"megahertz": round(max(clocks))} if clocks else {}) | ({"celsius": round(max(heat), 1)} if heat else {})


def texts(folder: str, pattern: str) -> list[str]:
    """What those files in a folder hold that can be read."""
    found = []
    for path in sorted(Path(folder).glob(pattern)):
        with contextlib.suppress(OSError):
            found.append(path.read_text(encoding="utf-8"))
    return found
