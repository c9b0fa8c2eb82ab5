"""What does `torch.compile` cost a training step, and what does it save?

The transformer's and the convolutional step of `models` are made so many times in a fresh process, as they are and compiled.
Compare `median_call` of a compiled step with that of the plain one, and divide its `compile_time` by what a step saves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import WrongResult, models
from .compilers import compiled

METRICS = ("compile_time", "first_call", "second_call", "median_call", "stalls")

STEPS = 20

sizes = models.sizes


class Steps(NamedTuple):
    """What the steps are drawn from, in which a sequence of calls finds its arguments: the numbers of the steps."""

    drawn: models.Arguments

    def __iter__(self):
        return iter(range(STEPS))


def inputs(size: str, device: str, seed: int) -> Steps:
    """As the models of `models` have them."""
    return Steps(models.inputs(size, device, seed))


def check(arguments: Steps, results: list) -> None:
    """Raises WrongResult unless there is a result of every step, each with the loss and the gradients that NumPy says."""
    if len(results) != STEPS:
        raise WrongResult(f"there are {len(results)} results of {STEPS} steps")
    for result in results:
        models.check(arguments.drawn, result)


def _step(model: str, is_compiled: bool) -> Callable:
    """A builder of a training step, which needs the number of the step for nothing; forward and backward are compiled."""

    def build(arguments: Steps) -> Callable:
        module, given = models._built(model, arguments.drawn)
        step = models._Training(model, compiled(module, arguments.drawn.device) if is_compiled else module, given)
        return lambda number=0: step()

    return build


variants = {
    "transformer": _step("transformer", False),
    "transformer_compiled": _step("transformer", True),
    "convolutional": _step("convolutional", False),
    "convolutional_compiled": _step("convolutional", True),
}
"""Name of a variant -> what builds its callable of a step's number from `inputs`, which is not part of a measurement."""
