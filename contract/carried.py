"""Which cases does a carried release (docs/machines.md) not answer? Those that call a library of the machine's CUDA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CARRIED = "carried"
"""What the mark of an environment has of it: `cuda` of the machine; `library_calls`, case -> what the recorder saw it
call of NVIDIA's libraries; `known`, the questions whose cases the recorder counted."""


def case_of(question: str, variant: str, size: str) -> str:
    """The name of a case in `library_calls`."""
    return f"{question} {variant} {size}"


def refusal(carried: Mapping[str, Any], question: str, variant: str, size: str, device: str) -> str:
    """Why releases on the libraries of a machine do not answer a case there, without a full stop; empty where they do."""
    if variant == "compiled":
        return (
            "a carried release has no Triton of its own, which torch.compile needs, and the one of this machine belongs to "
            "another release"
        )
    if device != "cuda":
        return ""
    of_machine = f"on a carried release that is a library of this machine's CUDA {carried['cuda']}"
    if calls := carried["library_calls"].get(case_of(question, variant, size)):
        return f"it calls {', '.join(calls)}, and {of_machine}: its time and its bytes would say nothing of the release"
    if question not in carried["known"]:
        return f"it may call libraries such as cuDNN, which the recorder does not count, and {of_machine}"
    return ""
