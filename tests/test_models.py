"""Does every model say what loops in float64 say, its gradients too, and is another result refused?"""

import math
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
OFF = {torch.float32: 2e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}
ARGUMENTS = models.Arguments(DIMS, "cpu", 7)


def built(variant: str) -> Any:
    try:
        return models.variants[variant](ARGUMENTS)
    except Unavailable as reason:
        pytest.skip(str(reason))


def called(variant: str) -> Any:
    return built(variant)()


def normalised(row: Any, factor: Any, bias: Any) -> Any:
    deviation = math.sqrt(sum((x - row.mean()) ** 2 for x in row) / len(row) + 1e-5)
    return (row - row.mean()) / deviation * factor + bias


def attended(q: Any, keys: Any, values: Any) -> Any:
    """One query [width] among keys and values [tokens, width]."""
    powers = np.array([math.exp(sum(q * k) / math.sqrt(len(q))) for k in keys])
    return sum(power * value for power, value in zip(powers, values, strict=True)) / powers.sum()


def block(w: dict, x: Any, causal: bool = False) -> Any:
    heads, (batch, tokens, width) = DIMS["transformer"]["heads"], x.shape
    out = np.zeros_like(x)
    for b in range(batch):
        rows = [w["qkv.weight"] @ normalised(x[b, t], w["norm1.weight"], w["norm1.bias"]) for t in range(tokens)]
        q, k, v = np.array(rows).reshape(tokens, 3, heads, width // heads).transpose(1, 0, 2, 3)
        for t in range(tokens):
            seen = slice(t + 1) if causal else slice(tokens)
            joined = np.concatenate([attended(q[t, h], k[seen, h], v[seen, h]) for h in range(heads)])
            y = x[b, t] + w["out.weight"] @ joined + w["out.bias"]
            up = w["up.weight"] @ normalised(y, w["norm2.weight"], w["norm2.bias"]) + w["up.bias"]
            out[b, t] = y + w["down.weight"] @ np.array([u / (1 + math.exp(-u)) for u in up]) + w["down.bias"]
    return out


def convolutional(w: dict, x: Any) -> Any:
    for layer, stride in ((1, 1), (2, 2)):
        kernel = w[f"conv{layer}.weight"]
        border = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        places = range(0, x.shape[2], stride)
        y = [[[np.tensordot(kernel, of[:, i : i + 3, j : j + 3], 3) for j in places] for i in places] for of in border]
        flat: Any = np.array(y).reshape(-1, len(kernel))
        factor, bias = w[f"norm{layer}.weight"], w[f"norm{layer}.bias"]
        same = [normalised(channel, factor[c], bias[c]) for c, channel in enumerate(flat.T)]
        x = np.maximum(np.array(same).T.reshape(np.shape(y)).transpose(0, 3, 1, 2), 0)
    return x.mean((2, 3)) @ w["linear.weight"].T + w["linear.bias"]


def lstm(w: dict, x: Any) -> Any:
    found = []
    for sequence in x:
        h = c = np.zeros(DIMS["lstm"]["hidden"])
        for token in sequence:
            gates = w["lstm.weight_ih_l0"] @ token + w["lstm.weight_hh_l0"] @ h
            gates += w["lstm.bias_ih_l0"] + w["lstm.bias_hh_l0"]
            i, f, g, o = gates.reshape(4, -1)
            c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
            h = np.tanh(c) / (1 + np.exp(-o))
        found.append(w["linear.weight"] @ h + w["linear.bias"])
    return np.array(found)


def embedding(w: dict, x: Any) -> Any:
    rows = [np.concatenate([w["table.weight"][word] for word in words]) for words in x]
    inner = [np.maximum(w["first.weight"] @ row + w["first.bias"], 0) for row in rows]
    return np.array([w["second.weight"] @ row + w["second.bias"] for row in inner])


def graph(w: dict, x: Any, edges: Any) -> Any:
    sums = [np.zeros(DIMS["graph"]["hidden"]) for _ in x]
    for source, target in edges.T:
        sums[target] = sums[target] + w["first.weight"] @ x[source] + w["first.bias"]
    return np.array([w["second.weight"] @ np.maximum(row, 0) + w["second.bias"] for row in sums])


PREDICTED: dict[str, Any] = {
    **{"transformer": block, "convolutional": convolutional, "lstm": lstm, "embedding": embedding, "graph": graph}
}


def loss(model: str, w: dict, given: list) -> float:
    *x, target = given
    predicted = PREDICTED[model](w, *x)
    if model != "convolutional":
        return sum((a - b) ** 2 for a, b in zip(predicted.flat, target.flat, strict=True)) / target.size
    return -np.mean([row[t] - math.log(sum(map(math.exp, row))) for row, t in zip(predicted, target, strict=True)])


def numbers(model: str, dtype: Any = torch.float32) -> tuple[dict, list]:
    """What a model is given, as `dtype` holds it, in float64."""
    weights, given = models.drawn(model, ARGUMENTS)
    held = {name: torch.from_numpy(array).to(dtype).double().numpy() for name, array in weights.items()}
    return held, [x if x.dtype == np.int64 else torch.from_numpy(x).to(dtype).double().numpy() for x in given]


def near(got: Any, want: Any, dtype: Any = torch.float32) -> bool:
    return np.abs(got.double().numpy() - want).max() <= OFF[dtype] * np.abs(want).max()


@pytest.mark.parametrize("variant", TRAINING)
def test_loss_and_gradients_are_those_of_loops_and_central_differences(variant):
    model, step = TRAINING[variant], built(variant)
    weights, given = numbers(model)
    random = np.random.RandomState(1)
    for _ in range(2):  # a step neither moves the weights nor adds to the gradients of the last
        result = step()
        tolerance = 0.1 if result.dtype == torch.bfloat16 else 1e-4
        want, (said, *gradients) = loss(model, weights, given), result.values
        assert float(said) == pytest.approx(want, rel=tolerance)
        models.check(ARGUMENTS, result)
    module = models.MODULES[model](**DIMS[model])
    for (name, parameter), gradient in zip(module.named_parameters(), gradients, strict=True):
        dense = (gradient.to_dense() if gradient.is_sparse else gradient).double().numpy()
        assert dense.shape == tuple(parameter.shape)
        for at in [np.unravel_index(i, dense.shape) for i in random.choice(dense.size, min(3, dense.size), False)]:
            middle, around = weights[name][at], []
            for side in (1e-6, -1e-6):
                weights[name][at] = middle + side
                around.append(loss(model, weights, given))
            weights[name][at] = middle
            assert abs(dense[at] - (around[0] - around[1]) / 2e-6) <= tolerance * max(np.abs(dense).max(), 0.01)


def test_the_table_has_the_gradient_that_its_variant_names():
    assert [called(f"embedding_{kind}").values[1].is_sparse for kind in ("dense", "sparse")] == [False, True]


@pytest.mark.parametrize("variant", [name for name in models.variants if "inference" in name or "decoding" in name])
def test_block_says_what_loops_say_token_by_token_too(variant):
    result = called(variant)
    weights, (x, _) = numbers("transformer", result.dtype)
    assert variant.endswith(str(result.dtype).rpartition(".")[2]) or result.dtype == torch.float32
    assert result.values[0].dtype == result.dtype
    assert near(result.values[0], block(weights, x, causal="decoding" in variant), result.dtype)
    models.check(ARGUMENTS, result)


@pytest.mark.parametrize("variant", [name for name in models.variants if name.startswith("attention")])
def test_attention_is_that_of_each_query_by_itself(variant):
    result = called(variant)
    drawn = models.drawn_alone("attention", ARGUMENTS)
    q, k, v = (torch.from_numpy(of).to(result.dtype).double().numpy() for of in drawn)
    want = np.array([[[attended(of, k[b, h], v[b, h]) for of in q[b, h]] for h in range(2)] for b in range(2)])
    assert near(result.values[0], want, result.dtype)
    models.check(ARGUMENTS, result)


def test_filter_is_the_sum_over_frequencies():
    result, (x, (real, imaginary)) = called("fourier_filter"), models.drawn_alone("fourier", ARGUMENTS)
    n = x.shape[1]
    turns = np.exp(2j * np.pi * np.outer(np.arange(n // 2 + 1), np.arange(n)) / n)
    spectrum = (x.astype(np.float64) @ turns.conj().T) * (real.astype(np.float64) + 1j * imaginary)
    spectrum[:, [0, -1]] = spectrum[:, [0, -1]].real  # a real signal has no more of these two
    weight = np.array([1, *[2] * (n // 2 - 1), 1]) / n
    assert near(result.values[0], ((spectrum * weight) @ turns).real)
    models.check(ARGUMENTS, result)


def test_solutions_solve_the_systems():
    result, (x, right) = called("linear_systems"), models.drawn_alone("systems", ARGUMENTS)
    for solution in result.values:
        left = np.array([of @ of.T / len(of) + np.eye(len(of)) for of in x.astype(np.float64)])
        assert np.abs(left @ solution.double().numpy() - right).max() < 1e-5
    models.check(ARGUMENTS, result)


def moved(rule: str, start: Any, gradient: Any, steps: int) -> Any:
    """With the same gradient at each step, Adam's moments are that gradient and its square: it moves by its rate each time.
    SGD's momentum is a geometric series."""
    at = start
    for step in range(1, steps + 1):
        if rule == "sgd":
            at = at - 0.01 * gradient * (1 - 0.9**step) / 0.1
        else:
            at = at * (1 - 0.01 * 0.1 if rule == "adamw" else 1) - 0.01 * np.sign(gradient)
    return at


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("variant", [name for name in models.variants if name.startswith(("sgd", "adam"))])
def test_optimizer_moves_the_weights_as_its_rule_says(variant, steps):
    call = built(variant)
    result = [call() for _ in range(steps)][-1]
    start, gradient = (of.astype(np.float64) for of in models.drawn_alone("optimizer", ARGUMENTS))
    want = moved(variant.partition("_")[0], start, gradient, steps)
    assert near(torch.stack(result.values).detach() - torch.from_numpy(start), want - start)
    models.check(ARGUMENTS, result)
    with pytest.raises(WrongResult, match="off by"):
        models.check(ARGUMENTS, result._replace(steps=steps + 1))


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
