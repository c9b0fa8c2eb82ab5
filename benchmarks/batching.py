"""Is it slow to build many small tensors and join them? See workloads/batching.py for the variants and the claim."""

from workloads import batching

from .common import _Question


class Batching(_Question, workload=batching):
    """Variants x sizes; compare `time` with that of `flat_buffer`, which copies every row once into one tensor."""
