"""What does one step of a start take? Time, time of processors and memory of what a new process does once.

    python start_up.py WORKLOAD VARIANT ANSWER

measures one step in the process that is started so, and writes what it took to the file ANSWER. This file is imported there
before torch is, so whatever the measuring process alone needs is imported within its functions.
"""

from __future__ import annotations

import os
import sys
import time

PROCESSES = 3
"""Processes in each launch. The first is not counted: it reads from the disk what the others find in memory."""

SECONDS = 20.0
"""No further process is started after so many seconds, once one was counted."""

_SUITE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Refused(Exception):
    """The release or the machine cannot run the step; the text says why."""


def measured(workload: str, variant: str) -> dict:
    """What a step of `workloads/<workload>.py` takes, of each process that was counted, one after another.

    `start_time` and `start_cpu_time` are lists of seconds; `start_memory` and `start_resident` the least numbers of bytes.
    What torch's compilers keep is out of reach. Raises Refused, and CommandFailed where a process fails.
    """
    answers: list = []
    began = time.perf_counter()
    while len(answers) < 2 or (len(answers) < PROCESSES and time.perf_counter() - began < SECONDS):
        answers.append(_in_a_process(workload, variant))
    counted = answers[1:]
    return {
        "start_time": [answer["seconds"] for answer in counted],
        "start_cpu_time": [answer["busy"] for answer in counted],
        "start_memory": min(answer["memory"] for answer in counted),
        "start_resident": min(answer["resident"] for answer in counted),
    }


def _in_a_process(workload: str, variant: str) -> dict:
    """What a new process says of the step. Raises Refused and CommandFailed."""
    import json

    from . import process, sequence

    with sequence.empty_caches() as folder:
        os.environ["TMPDIR"] = folder
        answer = os.path.join(folder, "answer.json")
        process._one([sys.executable, "-I", os.path.abspath(__file__), workload, variant, answer], folder)
        with open(answer, encoding="utf-8") as stream:
            told = json.load(stream)
    if "unavailable" in told:
        raise Refused(told["unavailable"])
    return told


# --- in the process that is started


def look() -> tuple:
    """Bytes of this process: its own, which neither a file nor another process shares, and all that are resident."""
    own = resident = None
    with open("/proc/self/smaps_rollup", encoding="ascii") as stream:
        for line in stream:
            name, _, words = line.partition(":")
            if name == "Private_Dirty":
                own = int(words.split()[0]) * 1024
            elif name == "Rss":
                resident = int(words.split()[0]) * 1024
    if own is None or resident is None:
        raise RuntimeError("this system does not say what memory a process holds: see /proc/self/smaps_rollup")
    return own, resident


def used() -> float:
    """Seconds that processors worked for this process and for all that it started and that ended."""
    import resource

    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(of.ru_utime + of.ru_stime for of in both)


def used_below() -> float:
    """Seconds that processors worked for what this process started and that still runs. The system tells hundredths. To ask
    takes milliseconds, so it is asked outside what is measured."""
    return _of_descendants() / os.sysconf("SC_CLK_TCK")


def _of_descendants() -> int:
    """Ticks of the clock that processes below this one have worked, with those that they waited for."""
    parents, ticks = {}, {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as stream:
                fields = stream.read().rpartition(b")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(name)] = int(fields[1])
        ticks[int(name)] = sum(map(int, fields[11:15]))
    below, found = {os.getpid()}, 0
    while below:
        below = {process for process, parent in parents.items() if parent in below}
        found += sum(ticks[process] for process in below)
    return found


def _main(workload: str, variant: str, answer: str) -> None:
    sys.path.insert(0, _SUITE)
    name = f"workloads.{workload}"
    __import__(name)
    module = sys.modules[name]
    try:
        step = module.variants[variant](look)
        below = used_below()
        before, begin = used(), time.perf_counter()
        result, seen = step()
        seconds = time.perf_counter() - begin
    except module.Unavailable as unavailable:
        _tell({"unavailable": str(unavailable)}, answer)
        return
    worked = used() - before
    worked += used_below() - below
    memory, resident = seen or look()
    module.check(variant, result)
    _tell({"seconds": seconds, "busy": worked, "memory": memory, "resident": resident}, answer)


def _tell(told: dict, answer: str) -> None:
    import json

    with open(answer, "w", encoding="utf-8") as stream:
        json.dump(told, stream)


if __name__ == "__main__":
    _main(*sys.argv[1:])
