"""Which library and which instruction set answer a case? oneDNN and MKL say so themselves, where variables ask them to.

They are asked in a process of their own, because what they print takes time: no number comes from it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from . import sequence

VARIABLES = ("ONEDNN_VERBOSE", "DNNL_VERBOSE", "MKL_VERBOSE")
"""What makes them name each call; oneDNN had the second name first. They are read at a process's first call."""

NEITHER = "neither oneDNN nor MKL"
"""What answers a case that neither of them names: loops of PyTorch's own, or a library that does not say."""

_ONEDNN = re.compile(r"^(?:dnnl|onednn)_verbose,(?:v\d+,)?(?:[\d.]+,)?(?:primitive,)?exec,cpu,([^,]+),([^,]*),", re.M)
_MKL = re.compile(r"^MKL_VERBOSE (\w+)\(", re.M)
_MKL_SET = re.compile(r"^MKL_VERBOSE .*\(Intel\(R\) (AVX[\w.-]*|SSE[\w.-]*)\)", re.M)


def answered(cases: Iterable[tuple[str, Callable[[], Callable[[], object]]]]) -> dict[str, str]:
    """Name of a case -> what answered it, such as `oneDNN convolution jit:avx2` or `MKL SGEMM (AVX-512)`, NEITHER where
    nobody said. Each case is a name and what builds its call; one that raises is left out. Where the process ends
    early, all that is there is `""` -> why. This process must not have called either of them."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return sequence._in_a_fork(lambda: _asked(cases, Path(folder, "said")))
        except RuntimeError as error:
            return {"": str(error)}


def named(text: str, mkl_set: str = "") -> str:
    """Who computed by what they printed, each once, in order; `mkl_set` is said behind MKL's. What only moves numbers into
    another layout is left out."""
    found = [f"oneDNN {kind} {how}".strip() for kind, how in _ONEDNN.findall(text) if kind != "reorder"]
    found += [f"MKL {routine}{mkl_set}" for routine in _MKL.findall(text)]
    return ", ".join(dict.fromkeys(found)) or NEITHER


def _asked(cases: Iterable[tuple[str, Callable[[], Callable[[], object]]]], path: Path) -> dict[str, str]:
    """As `answered`, in this process, which ends afterwards; what it prints goes into a file at `path`."""
    import torch

    os.environ.update(dict.fromkeys(VARIABLES, "1"))
    with contextlib.suppress(AttributeError, RuntimeError):  # MKL may have read its variable before
        torch._C._verbose.mkl_set_verbose(1)
    os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND), 1)
    said: dict[str, str] = {}
    for name, build in cases:
        try:
            call = build()
            before = len(_printed(path))
            call()
        except Exception:  # the case itself says why
            continue
        said[name] = _printed(path)[before:]
    header = _MKL_SET.search(_printed(path))
    return {name: named(text, f" ({header[1]})" if header else "") for name, text in said.items()}


def _printed(path: Path) -> str:
    ctypes.CDLL(None).fflush(None)
    return path.read_text(encoding="utf-8", errors="replace")
