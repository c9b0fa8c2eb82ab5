"""What exactly was measured? The libraries in a wheel and the packages around it, so that environments can be compared."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import sys
from importlib import metadata

import numpy
import torch

from . import THREADS

ALLOCATOR_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "CUBLAS_WORKSPACE_CONFIG", "LD_PRELOAD")
"""Variables that change where memory comes from; one that is not set is not recorded."""

MARK = "torch-history.json"
"""The file in an environment that `torch-history` has built, by which it says what it installed."""


def environment() -> dict:
    """Versions of torch and of what its wheel holds, of Python, NumPy and every package; None for what is absent.

    `fuses_on_cpu`: whether TorchScript's fuser has a compiler for the CPU in this wheel (LLVM). CUDA is not started.
    """
    shown = torch.__config__.show()
    settings = dict(re.findall(r"(\w+)=([^,\n]*)", shown))
    llvm = getattr(torch._C, "_llvm_enabled", None)
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": settings.get("CUDNN_VERSION"),
        "onednn": _found(r"MKL-DNN v(\S+)|oneDNN v(\S+)", shown),
        "mkl": _found(r"Math Kernel Library Version ([\d.]+)", shown),
        "compiler": _found(r"- (GCC \S+|clang \S+)", shown),
        "cpu_capability": _found(r"CPU capability usage: (.+)", shown),
        "fuses_on_cpu": bool(llvm()) if llvm else None,
        "architectures": torch._C._cuda_getArchFlags().split() if hasattr(torch._C, "_cuda_getArchFlags") else [],
        "threads": THREADS,
        # Of a path the file's name: where it lies is this machine's matter.
        "allocator": {name: os.path.basename(os.environ[name]) for name in ALLOCATOR_VARIABLES if name in os.environ},
        "python": platform.python_version(),
        "libc": " ".join(platform.libc_ver()),
        "numpy": numpy.__version__,
        "packages": _packages(),
        **_installation(),
    }


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return next(group for group in match.groups() if group) if match else None


def mark() -> dict:
    """What the environment of this process says of itself; empty where it carries no mark that can be read."""
    try:
        with open(os.path.join(sys.prefix, MARK), encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _installation() -> dict:
    """`origin`: in words where these packages came from and whether their files were checked; `installed`: a digest of the
    files of all of them. Without a mark nobody knows."""
    found = mark()
    if not {"digests", "origin"} <= found.keys():
        return {"origin": "unknown, not checked", "installed": None}
    digests = json.dumps(found["digests"], sort_keys=True)
    return {"origin": str(found["origin"]), "installed": hashlib.sha256(digests.encode()).hexdigest()[:16]}


def _packages() -> list[str]:
    """name==version of every package that this interpreter can import, sorted. The copies that setuptools brings for itself,
    in a folder that it puts on the path when it is imported, are none."""
    found: dict[str, str] = {}
    folders = [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    for distribution in metadata.distributions(path=folders):
        name = (distribution.metadata["Name"] or "").lower().replace("_", "-")
        found.setdefault(name, distribution.version)
    return sorted(f"{name}=={version}" for name, version in found.items() if name)
