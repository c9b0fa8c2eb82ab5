"""How a number is taken: device, clock, memory, operators. Imported inside each release's environment, before torch.

The number of CPU threads is fixed here, because libraries read it once when they are loaded.
"""

from __future__ import annotations

import os

THREADS = int(os.environ.get("TORCH_HISTORY_THREADS", "1"))
"""CPU threads of every measurement. With more threads than free cores a barrier waits for the scheduler: on a shared
machine of 2 cores the median of one small product was 6 us in one process and 8 ms in the next."""

for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = str(THREADS)
