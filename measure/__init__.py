"""How a number is taken: device, clock, memory, operators. Imported inside each release's environment, before torch.

The number of CPU threads is fixed here, because libraries read it once when they are loaded.
"""

from __future__ import annotations

import os

THREADS = int(os.environ.get("TORCH_HISTORY_THREADS", "1"))
"""CPU threads of every measurement. With more threads than free cores, threads spin at a barrier while the scheduler has
one of them away, and a product of microseconds takes milliseconds in one process and not in the next."""

for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = str(THREADS)
