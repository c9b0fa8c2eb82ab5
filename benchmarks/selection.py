"""Is a boolean mask slower than an index? See workloads/selection.py for the variants and the claim."""

from workloads import selection

from .common import _Question


class Selection(_Question, workload=selection):
    """Variants x sizes (layout, share, uses of one mask); compare `time` of `mask` and `index_reused` as the uses grow."""
