"""In which state is the GPU while something is measured? nvidia-smi tells it twice a second, and changes nothing."""

import contextlib
import os
import re
import signal
import statistics
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from contract.children import dies_with_parent

from ..system.files import warn
from .machine import of_measured, told_by_smi

EVERY = 500
"""Milliseconds from one sample to the next."""

NUMBERS = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw", "utilization.gpu")
REASONS = "clocks_event_reasons.active"
"""What nvidia-smi is asked for, and the bits that say why a clock is lower than it could be; drivers from 535 on tell it."""

SETTINGS = {
    "driver_version": "driver",
    "memory.total": "memory_mib",
    "compute_cap": "capability",
    "clocks.max.sm": "most_sm_megahertz",
    "power.limit": "limit_watts",
    "persistence_mode": "persistence",
    "mig.mode.current": "mig",
    "ecc.mode.current": "ecc",
}
"""What nvidia-smi is asked of the card once, and the name that it is stored under."""

PATIENCE = 10.0
"""Seconds for nvidia-smi's first answer: without a process that holds the card it starts the driver's part first."""

IDLE = 0x1
IDLE_OR_SET = IDLE | 0x2
"""Bits that are no throttling: the GPU is idle, or somebody has set its clocks."""

BITS = {
    0x4: "limit of power",
    0x8: "slowdown by the hardware",
    0x10: "clocks kept in step with other GPUs",
    0x20: "heat, by the driver",
    0x40: "heat, by the hardware",
    0x80: "power brake",
    0x100: "clocks of the display",
}

LONGEST = 4096
"""Characters of a line at most; what is longer is cut there."""


class Sample(NamedTuple):
    """Clocks in MHz, degrees Celsius, watts, busy in percent, bits of why a clock is low; None where not told."""

    sm: float | None
    memory: float | None
    celsius: float | None
    watts: float | None
    busy: float | None
    reasons: int | None

    @property
    def works(self) -> bool:
        """Whether the GPU had work to do; so it is taken to be where it does not say."""
        if self.busy is None and self.reasons is None:
            return True
        return bool(self.busy) or (self.reasons is not None and not self.reasons & IDLE)


def sample_of(line: str) -> Sample | None:
    """A line of nvidia-smi's; None where it is anything else."""
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != len(NUMBERS) + 1:
        return None
    numbers = [float(one) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", one) else None for one in fields[:-1]]
    sm, memory, celsius, watts, busy = numbers
    reasons = int(fields[-1], 16) if re.fullmatch("0x[0-9a-fA-F]{1,16}", fields[-1]) else None
    sample = Sample(sm, memory, celsius, watts, busy, reasons)
    return None if sample == Sample(*[None] * len(sample)) else sample


def summary(samples: Sequence[Sample]) -> dict[str, Any]:
    """Of `samples`, and those `working`: median clocks in MHz, why one was low and how often; celsius and watts."""
    working = [sample for sample in samples if sample.works]
    reasons = [(sample.reasons or 0) & ~IDLE_OR_SET for sample in working]
    found = {
        "sm_megahertz": _over(statistics.median, (sample.sm for sample in working)),
        "least_sm_megahertz": _over(min, (sample.sm for sample in working)),
        "memory_megahertz": _over(statistics.median, (sample.memory for sample in working)),
        "celsius": _over(max, (sample.celsius for sample in samples)),
        "watts": _over(max, (sample.watts for sample in samples)),
    }
    told = {name: value for name, value in found.items() if value is not None}
    counts: dict[str, Any] = {"samples": len(samples), "working": len(working)}
    if any(reasons):
        seen = 0
        for each in reasons:
            seen |= each
        counts |= {"throttled": f"{seen:#x}", "throttled_share": round(sum(map(bool, reasons)) / len(reasons), 3)}
    return {**counts, **told}


def _over(what: Callable[[list[float]], float], values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return what(known) if known else None


def reasons_in_words(throttled: str) -> str:
    """The bits of `throttled` as words; those that nobody has named as they are."""
    bits = int(throttled, 16)
    named = [words for bit, words in BITS.items() if bits & bit]
    rest = bits & ~sum(BITS)
    return ", ".join([*named, *([f"{rest:#x}"] if rest else [])])


def card() -> dict[str, str]:
    """What the card that is measured is set to, by the names of SETTINGS; what it does not tell is left out."""
    values = next(iter(told_by_smi(SETTINGS, of_measured(), PATIENCE)), [])
    return {name: value for name, value in zip(SETTINGS.values(), values, strict=False) if value[:1] not in ("", "[")}


class WatchedGpu:
    """What the GPU tells from one `begin` to the next `state`. `say` is told once that a state cannot be had."""

    def __init__(self, say: Callable[[str], None] = warn) -> None:
        self._say: Callable[[str], None] | None = say
        self._told = _Told()
        self._began = time.monotonic()
        self._end: Callable[[], object] = lambda: None
        try:
            process, lines = _started()
        except OSError as error:
            self._told.end(f"nvidia-smi cannot be started ({error.strerror})")
        else:
            self._end = weakref.finalize(self, _end, process)
            threading.Thread(target=self._told.follow, args=(process, lines), daemon=True).start()
        self.settings = card()  # beside the first sample: both wait for the driver's part
        if not self._told.first(PATIENCE):
            self._tell(self._why())

    def begin(self) -> None:
        """Forgets what was told before."""
        self._told.take()
        self._began = time.monotonic()

    def state(self) -> dict[str, Any]:
        """The `summary` of what was told since `begin`, or why nothing was, as `unknown`; and the card's settings."""
        samples = self._told.take()
        card = {"card": self.settings} if self.settings else {}
        if samples:
            return {**summary(samples), **card}
        why = self._why()
        if self._told.why or time.monotonic() - self._began > 5 * EVERY / 1000:
            self._tell(why)
        return {"unknown": why, **card}

    def _why(self) -> str:
        seconds = time.monotonic() - self._began
        return self._told.why or f"nvidia-smi told nothing of it within {seconds:.1f} s{self._told.said}"

    def _tell(self, why: str) -> None:
        if self._say:
            self._say(
                f"The GPU is measured, and its clocks, temperature and throttling meanwhile are unknown: {why}. The results "
                "say so."
            )
            self._say = None


class _Told:
    """What one nvidia-smi told, which a thread reads for a WatchedGpu."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._samples: list[Sample] = []
        self._answered = False
        self.said = ""
        """The last line that was no sample, in words that follow others; empty where there was none."""
        self.why = ""
        """Why there are no samples any more, in words without a full stop; empty while there may be."""

    def first(self, most: float) -> bool:
        """Waits for a sample, at most `most` seconds and not beyond the end of nvidia-smi. Returns whether there was one."""
        with self._changed:
            self._changed.wait_for(lambda: self._answered or self.why, most)
            return self._answered

    def take(self) -> list[Sample]:
        """What was told since the last call."""
        with self._changed:
            samples, self._samples = self._samples, []
            return samples

    def end(self, why: str) -> None:
        with self._changed:
            self.why = why
            self._changed.notify_all()

    def follow(self, process: subprocess.Popen[bytes], file: int) -> None:
        """Reads to the end of nvidia-smi."""
        with open(file, encoding="utf-8", errors="replace") as lines, contextlib.suppress(OSError):
            while line := lines.readline(LONGEST):  # a terminal that nobody writes into any more raises OSError
                sample = sample_of(line)
                with self._changed:
                    if sample is not None:
                        self._samples.append(sample)
                        self._answered = True
                        self._changed.notify_all()
                    elif words := "".join(filter(str.isprintable, line)).strip():
                        self.said = f" and said: {words[:200]}"
        self.end(f"nvidia-smi ended with {process.wait()}{self.said}")


def _started() -> tuple[subprocess.Popen[bytes], int]:
    """A new nvidia-smi, and a terminal's file, into which it writes line by line. Raises OSError."""
    asked = f"--query-gpu={','.join((*NUMBERS, REASONS))}"
    command = ["nvidia-smi", *of_measured(), asked, "--format=csv,noheader,nounits", f"--loop-ms={EVERY}"]
    ours, theirs = os.openpty()
    try:
        # In a group of its own, so that Ctrl+C does not end it before the last lap is told.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=dies_with_parent(),
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return process, ours


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that leads a group, and the group."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
