"""Does a compiled step say what the plain one says, is a wrong one refused, and is every step one of a sequence?"""

import sys
from typing import Any

import pytest

from .torch_here import np, torch

# isort: split

from workloads import Unavailable, WrongResult, compilers, compiling, models

DIMS: dict[str, Any] = {
    "transformer": {"batch": 2, "tokens": 5, "width": 6, "heads": 2},
    "convolutional": {"batch": 3, "side": 6, "channels": (2, 3, 4), "classes": 5},
}
ARGUMENTS = compiling.Steps(models.Arguments(DIMS, "cpu", 7))


@pytest.fixture(autouse=True)
def quick_compile(monkeypatch) -> list:
    """torch.compile without the half minute in which it builds C++; what it compiled is in the list."""
    offered, compiled = compilers.compiled, []

    def quick(module: Any, device: str) -> Any:
        offered(module, device)
        compiled.append(module)
        return torch.compile(module, backend="eager")

    monkeypatch.setattr(compiling, "compiled", quick)
    return compiled


def results_of(variant: str) -> list:
    try:
        step = compiling.variants[variant](ARGUMENTS)
    except Unavailable as reason:
        pytest.skip(str(reason))
    return [step(number) for number in ARGUMENTS]


@pytest.mark.parametrize("variant", compiling.variants)
def test_every_step_of_a_variant_has_the_loss_and_the_gradients_of_its_model(variant, quick_compile):
    results = results_of(variant)
    compiling.check(ARGUMENTS, results)
    plain = models._Training(variant.split("_")[0], *models._built(variant.split("_")[0], ARGUMENTS.drawn))()
    for place, expected in enumerate(plain.values):
        np.testing.assert_allclose(results[-1].values[place].numpy(), expected.numpy(), rtol=1e-4, atol=1e-6)
    assert len(quick_compile) == variant.endswith("_compiled")


def test_a_step_that_is_missing_or_has_another_gradient_is_refused():
    results = results_of("transformer")
    with pytest.raises(WrongResult, match="there are 19 results of 20 steps"):
        compiling.check(ARGUMENTS, results[1:])
    loss, first, *others = results[4].values
    results[4] = results[4]._replace(values=(loss, first * 2, *others))
    with pytest.raises(WrongResult, match="the gradients of transformer are off by"):
        compiling.check(ARGUMENTS, results)


def test_where_there_is_no_compiler_a_sentence_says_so():
    if hasattr(torch, "compile") and (sys.version_info < (3, 11) or compilers.release() >= (2, 1)):
        pytest.skip("this release has torch.compile")
    with pytest.raises(Unavailable, match="needs torch >= 2"):
        compiling.variants["transformer_compiled"](ARGUMENTS)
