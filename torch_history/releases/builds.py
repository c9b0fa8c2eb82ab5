"""Which wheels hold the same code? What comparing the bytes of their libtorch_cpu.so showed, for those who ask what chance
does: a difference between two that hold the same is none of PyTorch's."""

from __future__ import annotations

ONE_BINARY = frozenset(
    "v1.13.1 v2.1.0 v2.1.1 v2.1.2 v2.2.2 v2.4.0 v2.4.1 v2.5.0 v2.6.0 v2.8.0".split()  # noqa: SIM905
)
"""Releases whose wheels for Python 3.9 and 3.11 hold the same libtorch_cpu.so, byte for byte at the same address. Found by
comparing both files of twelve releases; the other two are OTHER_BUILDS. No other release was looked at."""

OTHER_BUILDS = frozenset({"v2.0.0", "v2.0.1"})
"""Releases whose wheels for Python 3.9 and 3.11 were built apart, so that their libtorch_cpu.so differ. Found with
ONE_BINARY."""

NOTHING_NEW = frozenset({("v2.3.0", "v2.3.1"), ("v2.5.0", "v2.5.1"), ("v2.12.0", "v2.12.1"), ("v2.14.0", "v2.14.1")})
"""A release and its patch release, whose libtorch_cpu.so have the same functions. Found by comparing the bytes of `.text`,
function by function: 2.3.1 and 2.5.1 differ in no function, 2.12.1 and 2.14.1 in three that tell the version."""
