"""How a number is taken: device, clock, memory, operators. Imported inside each release's environment, before torch.

The number of CPU threads is fixed here, because libraries read it once when they are loaded, and so is when the C library
gives memory back, because processes inherit what an import left of that.
"""

from __future__ import annotations

import ctypes
import os

from contract.request import Request

THREADS = Request.of(os.environ).threads
"""CPU threads of every measurement. With more threads than free cores, threads spin at a barrier while the scheduler has
one of them away, and a product of microseconds takes milliseconds in one process and not in the next."""

for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = str(THREADS)

MMAP_THRESHOLD = 32 * 2**20
TRIM_THRESHOLD = 2 * MMAP_THRESHOLD
"""Bytes from which glibc's malloc maps a block apart, and that may lie free at the heap's end before they go back
(mallopt(3)). Both go up whenever a block that was mapped is freed, to these at most, so what an import happened to free
decides for all processes forked after it whether a result of 256 KiB costs 64 page faults at every call or none. On a
virtual machine a chain of such results takes three times as long with the thresholds where they begin."""

_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -3, -1

_mallopt = ctypes.CDLL(None).mallopt
_mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD)
_mallopt(_M_TRIM_THRESHOLD, TRIM_THRESHOLD)
