"""Does a wheel hold code for a GPU?"""

from __future__ import annotations

from collections.abc import Iterable


def runs(capability: str, architectures: Iterable[str]) -> bool:
    """Whether a wheel built for `architectures` runs on `capability` ("sm_90"): binary code of the same major and no later
    minor, or an older `compute_XX`, which the driver compiles; `a` is for that GPU alone, `f` for its major. Source: CUDA
    C++ Programming Guide, binary and PTX compatibility."""
    have = int(capability.split("_")[1])
    for each in architectures:
        kind, number = each.split("_")
        digits = int(number.rstrip("af"))
        is_of_its_major = digits // 10 == have // 10 and not number.endswith("a")
        if digits == have or (digits < have and (is_of_its_major or (kind == "compute" and number.isdigit()))):
            return True
    return False
