"""Does every way to run the network give what NumPy says, and does each run as its name says?"""

import itertools
from typing import Any

import pytest

from .torch_here import np, torch

# isort: split

from workloads import Unavailable, WrongResult, compilers, warm_up

SCRIPTS = ("scripted", "traced", "frozen")


@pytest.fixture
def calls() -> Any:
    """Four calls of two small pictures, one of them wider than high."""
    random = np.random.RandomState(11)
    shapes = [(1, 3, 9, 9), (1, 3, 6, 11)]
    pictures = [torch.from_numpy(random.normal(mean, 1, shape).astype(np.float32)) for mean, shape in enumerate(shapes)]
    return warm_up.Calls(pictures, [0, 1, 0, 1], warm_up.inputs("one shape", "cpu", 3).parameters)


@pytest.mark.parametrize("variant", warm_up.variants)
def test_variant_says_what_numpy_says(variant, calls, monkeypatch):
    def quickly(network: Any, device: str) -> Any:
        """torch.compile without the half minute in which it builds C++."""
        compilers.compiled(network, device)
        return torch.compile(network, backend="eager")

    monkeypatch.setattr(warm_up, "compiled", quickly)
    try:
        call = warm_up.variants[variant](calls)
        results = [call(picture) for picture in calls]
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert not any(result.requires_grad for result in results)
    warm_up.check(calls, results)


@pytest.mark.parametrize("variant", SCRIPTS)
def test_torchscript_runs_its_own_graph_and_frozen_has_no_normalisation_left(variant, calls):
    call = warm_up.variants[variant](calls)
    for picture in calls:
        call(picture)
    graph = str(torch.jit.last_executed_optimized_graph())
    assert "conv" in graph
    assert ("batch_norm" in graph) == (variant != "frozen")


def test_shapes_change_at_every_call_or_never():
    for size, sides in (("one shape", 1), ("changing shapes", 5)):
        calls, again = (warm_up.inputs(size, "cpu", 1) for _ in range(2))
        shapes = [tuple(picture.shape) for picture in calls]
        assert len(shapes) == 50
        assert len(set(shapes)) == sides
        assert all((shape == after) == (sides == 1) for shape, after in itertools.pairwise(shapes))
        assert calls.order == again.order
        for one, other in zip(calls.pictures + calls.parameters, again.pictures + again.parameters, strict=True):
            assert torch.equal(one, other)
            assert one.ne(0).all()


def test_check_refuses_a_result_of_another_picture_or_none(calls):
    call = warm_up.variants["eager"](calls)
    right = one, two, three, four = [call(picture) for picture in calls]
    warm_up.check(calls, right)
    wrong = {
        "3 results of 4 calls": right[:3],
        "call 1 is off by": [two, one, three, four],
        "call 3 is off by nan": [one, two, three * float("nan"), four],
        "call 4 is off by 0.02": [one, two, three, four + 0.02 * four.abs().max()],
        "call 1 is torch.float64": [result.double() for result in right],
        r"call 1 is torch.float32 \(10,\)": [result[0] for result in right],
    }
    for sentence, results in wrong.items():
        with pytest.raises(WrongResult, match=sentence):
            warm_up.check(calls, results)
