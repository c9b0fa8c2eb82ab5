"""Which cases are asked of a real GPU, so that a certificate can compare them with the recorder's? For both worlds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

QUESTIONS = ("intersection", "saved_tensors", "batching", "selection")
"""Questions that are asked, in this order, so that where the time ends the last of selection are missing."""

SCALE = "paper"
"""The scale of a size that is left out."""

SLOW = {
    "numpy": "it computes on the host, for half a minute a call",
    "subprocess": "each call starts an interpreter, and another process takes what it allocates",
    "subprocess_start": "each call starts an interpreter",
}
"""Variants that are left out -> why."""

NOT_ASKED = {
    "warm_up": "it calls cuDNN, which the recorder refuses",
    "start_up": "what a start takes is measured on a CPU",
    "models": "some of its models call cuDNN, cuFFT or cuSOLVER, which the recorder refuses",
    "compiling": "its convolutions call cuDNN, which the recorder refuses",
    "products": "its convolutions call cuDNN, which the recorder refuses",
}
"""Questions that are left out -> why."""


class Case(NamedTuple):
    """A variant of a question in one size. `left_out`: why it is not asked, empty where it is."""

    question: str
    variant: str
    size: str
    left_out: str = ""

    @property
    def name(self) -> str:
        """`intersection eager small`."""
        return f"{self.question} {self.variant} {self.size}"


def cases(questions: Mapping[str, tuple[Iterable[str], Iterable[str]]]) -> list[Case]:
    """Every case of `questions` (question -> its variants and its sizes), in the order in which they are asked."""
    ordered = sorted(questions, key=lambda name: QUESTIONS.index(name) if name in QUESTIONS else len(QUESTIONS))
    return [
        Case(question, variant, size, _why_left_out(question, variant, size))
        for question in ordered
        for variant in questions[question][0]
        for size in questions[question][1]
    ]


def _why_left_out(question: str, variant: str, size: str) -> str:
    if question not in QUESTIONS:
        return NOT_ASKED.get(question, "its question is not compared")
    if variant in SLOW:
        return SLOW[variant]
    if size.rpartition(" ")[2] == SCALE:
        return "the smaller size launches the same"
    return ""
