"""torch and NumPy, for tests that run in an interpreter with them, such as a release's; elsewhere they are skipped in words.
`measure` comes before torch, because it fixes the threads."""

import pytest

import measure  # noqa: F401

try:
    import numpy as np
    import torch
except ImportError as _error:
    pytest.skip(f"needs torch and NumPy, and {_error}", allow_module_level=True)

__all__ = ["np", "torch"]
