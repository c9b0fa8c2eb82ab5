"""Does scripting keep intermediates out of memory? See workloads/intersection.py for the variants and the claim."""

from workloads import intersection

from .common import _Question


class Intersection(_Question, workload=intersection):
    """Variants x sizes; compare `peak_memory` with the result's own bytes, 4 N M."""
