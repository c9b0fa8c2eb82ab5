"""Starts one process and writes what it took, as JSON, to a file that is open already: [seconds, seconds of processors,
bytes at the highest point, wait status].

    python started.py FILE_DESCRIPTOR WORD...

It is a small program of its own because the system counts the memory of whoever starts a process as that process's
(ru_maxrss in getrusage(2)), and a process that has loaded torch is large.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time

PR_SET_PDEATHSIG = 1


def start(words: list) -> int:
    """Starts a process that ends with this one, and returns its number. It ends with status 127 where there is no such
    program."""
    prctl = ctypes.CDLL(None).prctl
    child = os.fork()
    if child == 0:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        try:
            os.execvp(words[0], words)
        except OSError as error:
            os.write(2, f"{words[0]} cannot be started: {error.strerror}\n".encode())
            os._exit(127)
    return child


if __name__ == "__main__":
    answer = int(sys.argv[1])
    begin = time.perf_counter()
    _, status, used = os.wait4(start(sys.argv[2:]), 0)
    seconds = time.perf_counter() - begin
    told = [seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, status]
    os.write(answer, json.dumps(told).encode())
