"""What would a release allocate, launch, copy and wait for on a GPU? A stand-in for CUDA that counts and runs nothing:
docs/recorder.md. `build` makes it for an environment, `record` reads it inside a process that runs on it."""

from __future__ import annotations


class Refused(Exception):
    """What was asked cannot be told without a GPU, or not from here. One or two sentences: what, why, and what to do."""
