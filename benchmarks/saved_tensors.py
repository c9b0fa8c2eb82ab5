"""Does disabling saved-tensor hooks save memory or time? See workloads/saved_tensors.py for the variants and the claim."""

from workloads import saved_tensors

from .common import _Question


class SavedTensors(_Question, workload=saved_tensors):
    """Modes x scripts; compare each mode's `peak_memory`, `retained`, `gradients` and times with plain's."""
