"""The code under test: plain PyTorch, one module per question, importable by anyone.

A workload is a module with `METRICS`, `sizes`, `variants`, `inputs` and `check`; `intersection` is the example to read.
"""

from __future__ import annotations


class Unavailable(Exception):
    """This release, Python or device cannot run the variant; the text is one sentence that says why."""


class WrongResult(Exception):
    """A variant computed something else than the independent expected value; the text says what and by how much."""
