"""What does `torch.compile` cost a training step, and save? See workloads/compiling.py for the steps."""

from workloads import compiling

from .common import _Question


class Compiling(_Question, workload=compiling):
    """Steps as they are and compiled; compare `median_call` of both, and `compile_time` between releases."""
