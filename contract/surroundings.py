"""Which variables has a process that measures? Those that any program needs, and those that a person names for it. All that
starts what measures asks here, both halves of a certificate too."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

KEEP = "TORCH_HISTORY_KEEP"
"""The variable by which a person names further ones, separated by commas or spaces: `LD_LIBRARY_PATH, NCCL_*`."""

INHERITED = (
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TEMP", "TMP", "TZ", "LANG", "LANGUAGE", "LC_*", "XDG_*"),
    "KRB5CCNAME",
    *("CC", "CXX", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_VERSION"),
    *("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_REQUIRE_*"),
    "TORCH_HISTORY_*",
)
"""Names, or patterns of names: where a program finds its files and its user, compilers and CUDA's own files, which GPU it
may use, and what it is asked."""

ALONE = "TORCH_HISTORY_ALONE"
"""Set where a process was started with what it inherits alone."""

PLACES = ("LD_LIBRARY_PATH", "PYTHONPATH")
"""Where the GPU's driver and torch lie on some machines. A certificate's GPU is asked with them: it compares no times, and
asks of torch itself which version it is."""

ALTERING = re.compile(
    r"(AOTI|AOT_|AT_|ATEN_|BLIS_|C10_|CAFFE2_|CUBLAS|CUDA_|CUDNN|CUFFT|CUPTI|CUSOLVER|CUSPARSE|DNNL_|FX_|GLIBC_|GOMP_|GOTO_|"
    r"HSA_|HIP_|INDUCTOR_|JEMALLOC|KINETO|KMP_|LD_|LIBOMP|LRU_CACHE|MALLOC|MIMALLOC|MKL|NCCL_|NPY_|NUMEXPR|NVFUSER|NVIDIA_|"
    r"NVTE_|OMP_|ONEDNN|OPENBLAS|PYTORCH|TBB_|TCMALLOC|THP_MEM|TORCH(?!_HISTORY)|TRITON|VECLIB|XNNPACK|"
    r"ASV_PYTHONPATH$|PYTHON(DEVMODE|GIL|HASHSEED|HOME|JIT|MALLOC|OPTIMIZE|PERF|TRACEMALLOC)|"
    r"(C|CPP|CXX|LD)FLAGS$|(C_INCLUDE_|CPLUS_INCLUDE_|LIBRARY_|COMPILER_|C)PATH$)\w*"
)
"""Variables that torch, its libraries, the C library, Python or a compiler reads and that can alter a number. One that is
missing here is not inherited either; it is only not told."""

LONGEST = 60
"""Characters of a value that is told as it is; in place of a longer one stands its digest."""


def inherited(variables: Mapping[str, str], further: Iterable[str] = ()) -> dict[str, str]:
    """Those of `variables` that are INHERITED, or that a name or a pattern of `further` fits."""
    patterns = (*INHERITED, *further)
    return {name: value for name, value in variables.items() if _fits(name, patterns)}


def for_measuring(variables: Mapping[str, str]) -> dict[str, str]:
    """What a measuring process inherits of `variables`: see `inherited`, with what a person names in KEEP, and GPUs in
    nvidia-smi's order, so that a number means the same GPU in both."""
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **inherited(variables, _named(variables))}


def kept(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of `variables` that a process that measures has only because a person names them in KEEP, in order, with their
    values, or the digests of long ones. Where these differ numbers are not compared."""
    named = _named(variables)
    chosen = sorted(name for name in variables if _fits(name, named) and not _fits(name, INHERITED))
    return {name: _told(name, variables[name]) for name in chosen}


def lost(variables: Mapping[str, str]) -> list[str]:
    """The names of those that could alter a number and are not inherited."""
    there = for_measuring(variables)
    return sorted(name for name in variables if name not in there and ALTERING.match(name))


def _named(variables: Mapping[str, str]) -> list[str]:
    return re.split(r"[,\s]+", variables.get(KEEP, "").strip())


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _told(name: str, value: str) -> str:
    """The value, or its digest where it is long or may be a secret, such as the key of a service."""
    if ALTERING.match(name) and len(value) <= LONGEST and value.isprintable() and " " not in value:
        return value
    return "sha256:" + hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()[:16]
