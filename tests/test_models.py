"""Does every model say what NumPy says, its gradients too, and is another result refused?"""

from typing import Any

import pytest

from .torch_here import np, torch

# isort: split

from workloads import Unavailable, WrongResult, compilers, compiling, models

DIMS: dict[str, Any] = {
    "transformer": {"batch": 2, "tokens": 5, "width": 6, "heads": 2},
    "convolutional": {"batch": 3, "side": 6, "channels": (2, 3, 4), "classes": 5},
    "lstm": {"batch": 2, "tokens": 4, "width": 3, "hidden": 5},
    "embedding": {"batch": 7, "fields": 2, "words": 11, "width": 3, "hidden": 4},
    "graph": {"nodes": 6, "edges": 15, "width": 3, "hidden": 4},
    **{"attention": {"batch": 2, "heads": 2, "tokens": 5, "width": 3}, "fourier": {"signals": 3, "samples": 8}},
    **{"systems": {"count": 3, "side": 4, "columns": 2}, "optimizer": {"tensors": 3, "side": 2}},
}
TRAINING = {
    **{"transformer_training": "transformer", "transformer_training_autocast": "transformer"},
    **{"convolutional_training": "convolutional", "convolutional_training_channels_last": "convolutional"},
    **{"convolutional_training_autocast": "convolutional", "lstm_training": "lstm", "embedding_dense": "embedding"},
    **{"embedding_sparse": "embedding", "graph_index_add": "graph", "graph_scatter_add": "graph"},
}
ARGUMENTS = models.Arguments(DIMS, "cpu", 7)


def built(variant: str) -> Any:
    try:
        return models.variants[variant](ARGUMENTS)
    except Unavailable as reason:
        pytest.skip(str(reason))


def called(variant: str) -> Any:
    return built(variant)()


@pytest.mark.parametrize("variant", models.variants)
def test_every_call_has_the_result_that_numpy_has(variant):
    """A step neither moves the weights nor adds to the gradients of the last; one of an optimizer moves them further."""
    call = built(variant)
    for _ in range(3):
        result = call()
        models.check(ARGUMENTS, result)
    assert not variant.endswith(("float16", "bfloat16")) or variant.endswith(str(result.dtype).rpartition(".")[2])


def test_the_table_has_the_gradient_that_its_variant_names():
    assert [called(f"embedding_{kind}").values[1].is_sparse for kind in ("dense", "sparse")] == [False, True]


def test_an_optimizer_that_a_release_lacks_is_unavailable(monkeypatch):
    monkeypatch.setattr(torch.optim, "SGD", lambda parameters, lr, momentum: None)
    with pytest.raises(Unavailable, match=r"torch\.optim\.SGD of torch .* has no fused=True for tensors on a cpu"):
        models.variants["sgd_fused"](ARGUMENTS)


def spoiled(values: tuple, which: int, change: Any) -> tuple:
    values = tuple(of.to_dense().clone() if of.is_sparse else of.detach().clone() for of in values)
    which %= len(values)
    return (*values[:which], change(values[which].contiguous()), *values[which + 1 :])


def one_changed(values: Any) -> Any:
    values.view(-1)[0] += values.abs().max() / 3 + 0.1
    return values


def half_gone(values: Any) -> Any:
    values.view(-1)[: -(-values.numel() // 2)] = 0
    return values


WRONG = {"not a number": lambda one: one * float("nan"), "twice": lambda one: one * 2, "half of it gone": half_gone}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("which", [0, 1, -1])
@pytest.mark.parametrize("variant", TRAINING)
def test_wrong_loss_or_gradient_is_refused(variant, which, wrong):
    result = called(variant)
    with pytest.raises(WrongResult, match=r"loss|gradient"):
        models.check(ARGUMENTS, result._replace(values=spoiled(result.values, which, WRONG[wrong])))
    with pytest.raises(WrongResult, match="has no gradient of its shape"):
        models.check(ARGUMENTS, result._replace(values=result.values[:-1]))


@pytest.mark.parametrize("variant", [name for name in models.variants if name not in TRAINING])
def test_wrong_result_is_refused(variant):
    result = called(variant)
    changes = [WRONG["not a number"], one_changed]
    if result.steps == 0:
        changes += [lambda values: values.unsqueeze(0), lambda values: values.double()]
        with pytest.raises(WrongResult, match="gave 0 results"):
            models.check(ARGUMENTS, result._replace(values=()))
    for change in changes:
        with pytest.raises(WrongResult, match=r"off by|results of"):
            models.check(ARGUMENTS, result._replace(values=spoiled(result.values, -1, change)))


def steps_of(variant: str, monkeypatch: Any) -> list:
    """A sequence of steps, by a torch.compile without the half minute in which it builds C++."""
    offered, made = compilers.compiled, []

    def quick(module: Any, device: str) -> Any:
        made.append(offered(module, device))
        return torch.compile(module, backend="eager")

    monkeypatch.setattr(compiling, "compiled", quick)
    try:
        step = compiling.variants[variant](compiling.Steps(ARGUMENTS))
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert len(made) == variant.endswith("_compiled")
    return [step(number) for number in compiling.Steps(ARGUMENTS)]


@pytest.mark.parametrize("variant", compiling.variants)
def test_every_compiled_step_has_the_loss_and_the_gradients_of_its_model(variant, monkeypatch):
    results = steps_of(variant, monkeypatch)
    compiling.check(compiling.Steps(ARGUMENTS), results)
    for place, expected in enumerate(called(f"{variant.split('_')[0]}_training").values):
        np.testing.assert_allclose(results[-1].values[place].numpy(), expected.numpy(), rtol=1e-4, atol=1e-6)


def test_a_step_that_is_missing_or_has_another_gradient_is_refused(monkeypatch):
    results = steps_of("transformer", monkeypatch)
    with pytest.raises(WrongResult, match="there are 19 results of 20 steps"):
        compiling.check(compiling.Steps(ARGUMENTS), results[1:])
    loss, first, *others = results[4].values
    results[4] = results[4]._replace(values=(loss, first * 2, *others))
    with pytest.raises(WrongResult, match="the gradients of transformer are off by"):
        compiling.check(compiling.Steps(ARGUMENTS), results)
