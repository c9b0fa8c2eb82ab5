"""Starts one process and writes what it took, as JSON, to a file that is open already: [seconds, seconds of processors,
bytes at the highest point, wait status].

    python started.py FILE_DESCRIPTOR WORD...

It is a small program of its own because the system counts the memory of whoever starts a process as that process's
(ru_maxrss in getrusage(2)), and a process that has loaded torch is large.
"""

import json
import os
import sys
import time

if __name__ == "__main__":
    answer, words = int(sys.argv[1]), sys.argv[2:]
    begin = time.perf_counter()
    try:
        child = os.posix_spawnp(words[0], words, os.environ)
    except OSError as error:
        sys.exit(f"{words[0]} cannot be started: {error.strerror}")
    _, status, used = os.wait4(child, 0)
    seconds = time.perf_counter() - begin
    told = [seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, status]
    os.write(answer, json.dumps(told).encode())
