"""What does a step of code like people's cost? See workloads/models.py for the models."""

from workloads import models

from .common import _Question


class Models(_Question, workload=models):
    """Models and ways to run them; compare `time` and `peak_memory` between releases, and variants of one model."""
