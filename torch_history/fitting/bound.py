"""What does a GPU need beside what the recorder counts? Nobody can tell without one, so an upper bound is assumed."""

from __future__ import annotations

MIB = 2**20

LAZY, EAGER = 1024 * MIB, 2048 * MIB
"""Bytes that a context, the code of kernels and what cuBLAS takes for itself are assumed not to exceed. Since CUDA
11.7 PyTorch loads a kernel's code when it is first launched, before all of it at once. Public reports: 723 MiB for
one number on a GPU in 2020 (discuss.pytorch.org/t/73021), 1,484 MiB beside a tensor on an RTX 3090 with 1.7.1 and
CUDA 11.0 (pytorch #49877)."""

LAZY_FROM = (11, 7)


def not_counted(cuda: tuple[int, int]) -> int:
    """Bytes of the card that are not counted, at most, with a wheel that was built with that version of CUDA."""
    return LAZY if cuda >= LAZY_FROM else EAGER
