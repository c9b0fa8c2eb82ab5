"""In which state is the GPU while something is measured on it? One process of nvidia-smi's tells it twice a second."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import statistics
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..system.children import dies_with_parent
from ..system.files import warn
from .card import PATIENCE, card, hold_open
from .machine import of_measured

EVERY = 500
"""Milliseconds from one sample to the next."""

NUMBERS = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw", "utilization.gpu")
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
"""What nvidia-smi is asked for, and the names of the bits that say why a clock is lower than it could be: a driver of 535 or
later knows the first, an older one the second."""

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

STARTS = 4
"""Times that nvidia-smi is started where it has told something and ended."""

RUBBISH = 100
"""Lines after which it is ended where none of them was a sample."""

LONGEST = 4096
"""Bytes of a line at most; what is longer is cut there."""


class Sample(NamedTuple):
    """What was told at one moment: clocks in MHz, degrees Celsius, watts, the share of time with work in percent, and the
    bits of why a clock is low; None for each that the card does not tell."""

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
    sm, memory, celsius, watts, busy = (_number(field) for field in fields[:-1])
    reasons = int(fields[-1], 16) if re.fullmatch("0x[0-9a-fA-F]{1,16}", fields[-1]) else None
    sample = Sample(sm, memory, celsius, watts, busy, reasons)
    return None if sample == Sample(*[None] * len(sample)) else sample


def _number(field: str) -> float | None:
    return float(field) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", field) else None


def summary(samples: Sequence[Sample]) -> dict[str, Any]:
    """What some `samples` say together: how many they are, and in how many the GPU was `working`. Of those the median of the
    clocks in MHz and the least of the multiprocessors', and as `throttled` all bits of why a clock was low, with the share
    of samples that had one. Of all the highest temperature in degrees Celsius and power in W."""
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


class WatchedGpu:
    """The GPU that is measured: what it tells from one `begin` to the next `state`, and held open as long as this lives.

    `say` is told once, in a sentence, that a state cannot be had. It costs a measurement nothing but that knowledge."""

    def __init__(self, say: Callable[[str], None] = warn) -> None:
        self._say = say
        self._said = False
        self._stream = _Stream()
        self._stream.start()
        self.settings, bus = card()
        files, problem = hold_open(bus)
        self._end = weakref.finalize(self, _close, files, self._stream)
        if problem:
            say(problem)
        self._began = time.monotonic()
        if not self._stream.first(PATIENCE):
            self._tell(self._why(PATIENCE))

    def begin(self) -> None:
        """Forgets what was told before. Starts nvidia-smi again where it told something and ended."""
        self._stream.take()
        self._stream.restart()
        self._began = time.monotonic()

    def state(self) -> dict[str, Any]:
        """The `summary` of what was told since `begin`, or why nothing was, as `unknown`; and the card's settings."""
        seconds = time.monotonic() - self._began
        samples = self._stream.take()
        card = {"card": self.settings} if self.settings else {}
        if samples:
            return {**summary(samples), **card}
        why = self._why(seconds)
        if self._stream.ended or seconds > 5 * EVERY / 1000:
            self._tell(why)
        return {"unknown": why, **card}

    def close(self) -> None:
        """Ends nvidia-smi and lets go of the card, as the end of this object does."""
        self._end()

    def _why(self, seconds: float) -> str:
        said = self._stream.said
        return self._stream.why or f"nvidia-smi told nothing of it within {seconds:.1f} s{said}"

    def _tell(self, why: str) -> None:
        if not self._said:
            self._said = True
            self._say(
                f"The GPU is measured, and its clocks, temperature and throttling meanwhile are unknown: {why}. The results "
                "say so."
            )


class _Stream:
    """The lines of one nvidia-smi after the other, read by a thread; shared between that and a WatchedGpu."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._samples: list[Sample] = []
        self.said = ""
        """The last line that was no sample, in words that follow others; empty where there was none."""
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._starts = 0
        self._answered = False  # whether there ever was a sample
        self._closed = False
        self.why = ""
        """Why there are no samples any more, in words without a full stop; empty while there may be."""

    @property
    def ended(self) -> bool:
        return self._thread is None or not self._thread.is_alive()

    def start(self) -> None:
        self._starts += 1
        self._thread = threading.Thread(target=self._follow_any, name="nvidia-smi", daemon=True)
        self._thread.start()

    def restart(self) -> None:
        if self.ended and self._answered and not self._closed and self._starts < STARTS:
            self.start()

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

    def close(self) -> None:
        with self._changed:
            self._closed = True
            if self._process is not None:
                _end(self._process)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(5)

    def _follow_any(self) -> None:
        """Reads until nvidia-smi ends; asks under the other name where it did not answer to the first."""
        with self._changed:
            self.why = self.said = ""
        try:
            for reasons in REASONS:
                status, sampled = self._follow(reasons)
                if sampled or self._closed:
                    break
            why = f"nvidia-smi ended with {status}{self.said}"
        except OSError as error:
            why = f"nvidia-smi cannot be started ({error.strerror or error})"
        with self._changed:
            self.why = why
            self._changed.notify_all()

    def _follow(self, reasons: str) -> tuple[int, bool]:
        """Reads one nvidia-smi to its end. Returns its exit status, and whether it told a sample."""
        sampled = False
        process, file = self._started(reasons)
        try:
            for number, line in enumerate(_lines(file)):
                sampled |= self._note(line)
                if not sampled and number >= RUBBISH:
                    break
        finally:
            os.close(file)
            with self._changed:
                self._process = None
                _end(process)  # nobody reads it any more
            status = process.wait()
        return status, sampled

    def _started(self, reasons: str) -> tuple[subprocess.Popen[bytes], int]:
        """A new nvidia-smi, which ends with this thread, and the file that its lines come out of. Raises OSError."""
        asked = f"--query-gpu={','.join((*NUMBERS, reasons))}"
        command = ["nvidia-smi", *of_measured(), asked, "--format=csv,noheader,nounits", f"--loop-ms={EVERY}"]
        ours, theirs = _line_by_line()
        try:
            with self._changed:
                if self._closed:
                    raise OSError("nobody asks any more")
                # In a group of its own, so that Ctrl+C does not end it before the last lap is told.
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=theirs,
                    stderr=theirs,
                    process_group=0,
                    preexec_fn=dies_with_parent(),
                )
                return self._process, ours
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)

    def _note(self, line: str) -> bool:
        """Keeps what a line tells; returns whether that was a sample."""
        sample = sample_of(line)
        with self._changed:
            if sample is None:
                if words := "".join(character for character in line if character.isprintable()).strip():
                    self.said = f" and said: {words[:200]}"
                return False
            self._samples.append(sample)
            self._answered = True
            self._changed.notify_all()
        return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that leads a group, and the group."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _close(files: Sequence[int], stream: _Stream) -> None:
    stream.close()
    for file in files:
        os.close(file)


def _line_by_line() -> tuple[int, int]:
    """Two ends of a channel, to read from and to write to: a terminal's, into which any program writes line by line; where
    there is none, a pipe."""
    try:
        return os.openpty()
    except OSError:
        return os.pipe()


def _lines(file: int) -> Iterator[str]:
    """What comes out of `file`, line by line, to its end."""
    rest = b""
    while True:
        try:
            chunk = os.read(file, 4096)
        except OSError:  # as a terminal says that nobody writes into it any more
            chunk = b""
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in lines)
        if rest and (not chunk or len(rest) > LONGEST):
            yield rest.decode("utf-8", "replace")
            rest = b""
        if not chunk:
            return
