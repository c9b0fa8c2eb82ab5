"""Does TorchScript stall? See workloads/warm_up.py for the variants and the claim."""

from workloads import warm_up

from .common import _Question


class WarmUp(_Question, workload=warm_up):
    """Variants x sizes; compare `worst_over_median` of TorchScript with that of `eager` and `libtorch`."""
