"""What does a step of code like people's cost?

Small models as people write them: a training step (forward, backward, SGD), inference, decoding with a cache, an optimizer's
step, attention, a Fourier filter, linear systems. Compare `time` and `peak_memory` of a variant between releases.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.fft

from . import Unavailable, WrongResult
from .dtypes import off, rounded, tried

METRICS = ("time", "peak_memory", "retained", "operators", "allocations", "kernels", "host_syncs")

WARM_UP_CALLS = 1
"""Nothing here is compiled; the first call takes what later ones find ready, such as an optimizer's state."""

sizes: dict = {
    "one batch": {
        "transformer": {"batch": 2, "tokens": 24, "width": 128, "heads": 4},
        "convolutional": {"batch": 4, "side": 16, "channels": (3, 32, 64), "classes": 10},
        "lstm": {"batch": 8, "tokens": 24, "width": 64, "hidden": 128},
        "embedding": {"batch": 256, "fields": 8, "words": 20_000, "width": 32, "hidden": 64},
        "graph": {"nodes": 2_000, "edges": 16_000, "width": 32, "hidden": 32},
        "attention": {"batch": 1, "heads": 4, "tokens": 256, "width": 32},
        "fourier": {"signals": 64, "samples": 4_096},
        "systems": {"count": 16, "side": 64, "columns": 4},
        "optimizer": {"tensors": 256, "side": 32},
    }
}
"""Model -> its dimensions."""

EPSILON = 1e-5
"""Added to a variance by layer and batch normalisation, torch's default."""

TOLERANCE = {torch.float32: 1e-3, torch.float16: 2**-6, torch.bfloat16: 2**-4}
"""Of the largest expected number, by dtype. A transformer block rounds eight times one after another, by 2**-11 each in
float16 and 2**-8 in bfloat16. A GPU rounds what a float32 convolution multiplies to TF32, by 2**-11."""

DIRECTIONS, STEP = 8, 1e-8
ALONG = {torch.float32: 0.01, torch.bfloat16: 0.3}
"""Gradients are compared along random directions, in each of which a weight's is about 1: with half the difference of the
losses a STEP ahead and a STEP back, divided by STEP. In bfloat16 releases without a library's convolution also keep sums of
1,024 products in it, so that a gradient is off by up to a tenth; one that is twice as large is off by a half."""


class Arguments(NamedTuple):
    """What a variant draws its model's numbers from: dimensions by model, the device, and the seed."""

    dims: dict
    device: str
    seed: int


class Outcome(NamedTuple):
    """What a call leaves behind. `values`: a training step's loss and the gradient of each parameter in order; else what was
    computed. `dtype` is the one that it was computed in; `steps` are those that an optimizer has made."""

    model: str
    values: tuple
    dtype: torch.dtype = torch.float32
    steps: int = 0


def inputs(size: str, device: str, seed: int) -> Arguments:
    """Each variant needs other numbers, so that it draws them itself; see `drawn`."""
    return Arguments(sizes[size], device, seed)


# --- the models, as people write them


class Block(torch.nn.Module):
    """A transformer's block, normalisation first: [batch, tokens, width] -> the same. With a `cache`, a list of keys and
    values [batch, heads, tokens so far, width of a head], it attends to those too, and puts its own behind them."""

    def __init__(self, width: int, heads: int, **_: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width, bias=False), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor, cache: Any = None) -> torch.Tensor:
        parts = self.qkv(self.norm1(x)).chunk(3, -1)
        q, k, v = (part.view(*x.shape[:2], self.heads, -1).transpose(1, 2) for part in parts)
        if cache is not None:
            cache[:] = [torch.cat(pair, 2) for pair in zip(cache, (k, v))] if cache else [k, v]
            k, v = cache
        x = x + self.out(attend(q, k, v).transpose(1, 2).reshape(x.shape))
        return x + self.down(torch.nn.functional.silu(self.up(self.norm2(x))))


class Convolutional(torch.nn.Module):
    """Two convolutions with batch normalisation and ReLU, the mean over pixels, a linear layer: pictures -> classes."""

    def __init__(self, channels: tuple, classes: int, **_: int) -> None:
        super().__init__()
        colours, first, second = channels
        self.conv1, self.norm1 = torch.nn.Conv2d(colours, first, 3, 1, 1, bias=False), torch.nn.BatchNorm2d(first)
        self.conv2, self.norm2 = torch.nn.Conv2d(first, second, 3, 2, 1, bias=False), torch.nn.BatchNorm2d(second)
        self.linear = torch.nn.Linear(second, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm1(self.conv1(x)))
        x = torch.relu(self.norm2(self.conv2(x)))
        return self.linear(x.mean((2, 3)))


class Recurrent(torch.nn.Module):
    """An LSTM and a linear layer of its last output: [batch, tokens, width] -> [batch, 1]."""

    def __init__(self, width: int, hidden: int, **_: int) -> None:
        super().__init__()
        self.lstm, self.linear = torch.nn.LSTM(width, hidden, batch_first=True), torch.nn.Linear(hidden, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.lstm(x)[0][:, -1])


class Embedded(torch.nn.Module):
    """A table of words and two linear layers: int64 [batch, fields] -> [batch, 1]."""

    def __init__(self, words: int, fields: int, width: int, hidden: int, sparse: bool = False, **_: int) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(words, width, sparse=sparse)
        self.first, self.second = torch.nn.Linear(fields * width, hidden), torch.nn.Linear(hidden, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(self.table(x).flatten(1))))


class Graph(torch.nn.Module):
    """A layer that sums messages along edges: [nodes, width], int64 [2, edges] -> [nodes, 1]."""

    def __init__(self, width: int, hidden: int, scatters: bool = False, **_: int) -> None:
        super().__init__()
        self.first, self.second, self.scatters = torch.nn.Linear(width, hidden), torch.nn.Linear(hidden, 1), scatters

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        messages = self.first(x)[edges[0]]
        zeros = messages.new_zeros(len(x), messages.shape[1])
        if self.scatters:
            summed = zeros.scatter_add_(0, edges[1][:, None].expand_as(messages), messages)
        else:
            summed = zeros.index_add_(0, edges[1], messages)
        return self.second(torch.relu(summed))


MODULES: dict[str, Any] = {
    "transformer": Block,
    "convolutional": Convolutional,
    "lstm": Recurrent,
    "embedding": Embedded,
    "graph": Graph,
}


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """softmax(q k') v of [batch, heads, tokens, width], scaled, written out."""
    return torch.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, -1) @ v


def drawn(model: str, arguments: Arguments) -> tuple[dict, list]:
    """Weights by their names in the module, and what the model is called with, its target last; float32 and int64 by NumPy.

    A matrix is scaled so that results are as large as inputs, the factor of a normalisation is near 1, and a bias near 0."""
    dims, random = arguments.dims[model], np.random.RandomState(arguments.seed)
    weights = {}
    for name, parameter in sorted(MODULES[model](**dims).named_parameters()):
        shape = tuple(parameter.shape)
        array = random.standard_normal(shape) * (0.1 if len(shape) == 1 else np.prod(shape[1:]) ** -0.5)
        weights[name] = (array + (name.startswith("norm") and name.endswith("weight"))).astype(np.float32)
    given = _GIVEN[model](random, **dims)
    return weights, [array if array.dtype == np.int64 else array.astype(np.float32) for array in given]


_GIVEN: dict[str, Callable[..., list]] = {
    "transformer": lambda random, batch, tokens, width, **_: list(random.standard_normal((2, batch, tokens, width))),
    "convolutional": lambda random, batch, side, channels, classes: [
        random.standard_normal((batch, channels[0], side, side)),
        random.randint(0, classes, batch).astype(np.int64),
    ],
    "lstm": lambda random, batch, tokens, width, **_: [
        random.standard_normal((batch, tokens, width)),
        random.standard_normal((batch, 1)),
    ],
    "embedding": lambda random, batch, fields, words, **_: [
        random.randint(0, words, (batch, fields)).astype(np.int64),
        random.standard_normal((batch, 1)),
    ],
    "graph": lambda random, nodes, edges, width, **_: [
        random.standard_normal((nodes, width)),
        random.randint(0, nodes, (2, edges)).astype(np.int64),
        random.standard_normal((nodes, 1)),
    ],
    "attention": lambda random, batch, heads, tokens, width: list(
        random.standard_normal((3, batch, heads, tokens, width))
    ),
    "fourier": lambda random, signals, samples: [
        random.standard_normal((signals, samples)),
        random.standard_normal((2, samples // 2 + 1)),
    ],
    "systems": lambda random, count, side, columns: [
        random.standard_normal((count, side, side)),
        random.standard_normal((count, side, columns)),
    ],
    "optimizer": lambda random, tensors, side: [
        random.standard_normal((tensors, side, side)),
        random.uniform(0.5, 1.5, (tensors, side, side)) * random.choice((-1, 1), (tensors, side, side)),
    ],
}
"""Model -> what it is called with, drawn from a generator by its dimensions."""


# --- what they should say, in float64 by NumPy


def _linear(x: np.ndarray, weights: dict, name: str) -> np.ndarray:
    return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _normalised(x: np.ndarray, axes: Any, weights: dict, name: str) -> np.ndarray:
    """By mean and variance over `axes`: the last, with a factor and bias of its own, or all but axis 1, which has them."""
    shape = -1 if axes == -1 else (-1, 1, 1)
    factor, bias = (weights[f"{name}.{of}"].reshape(shape) for of in ("weight", "bias"))
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + EPSILON) * factor + bias


def _softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, is_causal: bool = False) -> np.ndarray:
    scores = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    return _softmax(np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf) if is_causal else scores) @ v


def _block(weights: dict, x: np.ndarray, heads: int, is_causal: bool = False) -> np.ndarray:
    batch, tokens, width = x.shape
    qkv = _linear(_normalised(x, -1, weights, "norm1"), weights, "qkv")
    q, k, v = qkv.reshape(batch, tokens, 3, heads, width // heads).transpose(2, 0, 3, 1, 4)
    x = x + _linear(_attended(q, k, v, is_causal).swapaxes(1, 2).reshape(x.shape), weights, "out")
    up = _linear(_normalised(x, -1, weights, "norm2"), weights, "up")
    return x + _linear(up * _sigmoid(up), weights, "down")


def _convolved(x: np.ndarray, weight: np.ndarray, stride: int) -> np.ndarray:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::stride, ::stride]
    return np.moveaxis(np.tensordot(windows, weight, ((1, 4, 5), (1, 2, 3))), 3, 1)


def _classes(weights: dict, x: np.ndarray) -> np.ndarray:
    for layer in ("1", "2"):
        convolved = _convolved(x, weights[f"conv{layer}.weight"], int(layer))
        x = np.maximum(_normalised(convolved, (0, 2, 3), weights, f"norm{layer}"), 0)
    return _linear(x.mean((2, 3)), weights, "linear")


def _remembered(weights: dict, x: np.ndarray) -> np.ndarray:
    matrices = {
        "in.weight": "weight_ih_l0",
        "in.bias": "bias_ih_l0",
        "to.weight": "weight_hh_l0",
        "to.bias": "bias_hh_l0",
    }
    of = {name: weights[f"lstm.{stored}"] for name, stored in matrices.items()}
    h = c = np.zeros((len(x), of["to.weight"].shape[1]))
    for token in x.swapaxes(0, 1):
        i, f, g, o = np.split(_linear(token, of, "in") + _linear(h, of, "to"), 4, -1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
    return _linear(h, weights, "linear")


def _looked_up(weights: dict, x: np.ndarray) -> np.ndarray:
    rows = weights["table.weight"][x].reshape(len(x), -1)
    return _linear(np.maximum(_linear(rows, weights, "first"), 0), weights, "second")


def _messages(weights: dict, x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    sent = _linear(x, weights, "first")
    summed = np.zeros_like(sent)
    np.add.at(summed, edges[1], sent[edges[0]])
    return _linear(np.maximum(summed, 0), weights, "second")


_PREDICTED: dict[str, Callable[..., np.ndarray]] = {
    "convolutional": _classes,
    "lstm": _remembered,
    "embedding": _looked_up,
    "graph": _messages,
}


def loss_of(model: str, arguments: Arguments, weights: dict, given: list) -> float:
    """What a model loses with `weights`: the mean square of what it is off by, and where the target names classes their
    cross entropy."""
    *x, target = given
    if model == "transformer":
        predicted = _block(weights, x[0], arguments.dims[model]["heads"])
    else:
        predicted = _PREDICTED[model](weights, *x)
    if target.dtype == np.int64:
        return -np.log(_softmax(predicted)[np.arange(len(target)), target]).mean()
    return ((predicted - target) ** 2).mean()


def stepped(rule: str, weights: np.ndarray, gradients: np.ndarray, steps: int) -> np.ndarray:
    """`weights` after so many steps of an optimizer, the gradients the same at each."""
    first = second = np.zeros_like(weights)
    rate = SETTINGS[rule]["lr"]
    for step in range(1, steps + 1):
        if rule == "SGD":
            first = gradients if step == 1 else SETTINGS[rule]["momentum"] * first + gradients
            weights = weights - rate * first
            continue
        first, second = 0.9 * first + 0.1 * gradients, 0.999 * second + 0.001 * gradients**2
        weights = weights * (1 - rate * SETTINGS[rule].get("weight_decay", 0))
        weights = weights - rate * first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return weights


def check(arguments: Arguments, result: Outcome) -> None:
    """Raises WrongResult unless the result is what NumPy says in float64, within TOLERANCE; gradients within ALONG."""
    if result.model in OF_TRAINING:
        _check_training(arguments, result)
        return
    values: Any = result.values
    if result.model in SETTINGS:
        values = [torch.stack(values).cpu() - torch.from_numpy(drawn_alone("optimizer", arguments)[0])]
    wanted = _wanted(arguments, result)
    said, types = len(values), sorted({str(of.dtype) for of in values})
    if said != len(wanted) or types != [str(result.dtype)]:
        raise WrongResult(f"{result.model} gave {said} results of {types}, not {len(wanted)} of {result.dtype}")
    for got, want in zip(values, wanted):
        share = off(got, want)
        if not share <= TOLERANCE[result.dtype]:
            raise WrongResult(f"a result of {result.model} is off by {share:.3g} of the largest expected number")


def _wanted(arguments: Arguments, result: Outcome) -> list:
    """What each of the values of a result should be, float64; of an optimizer, by how much the weights should have moved."""
    model = result.model
    if model in ("inference", "decoding"):
        weights, (x, _) = _as_held(*drawn("transformer", arguments), result.dtype)
        return [_block(weights, x, arguments.dims["transformer"]["heads"], model == "decoding")]
    if model in SETTINGS:
        weights, gradients = _as_held({}, drawn_alone("optimizer", arguments), torch.float32)[1]
        return [stepped(model, weights, gradients, result.steps) - weights]
    given = _as_held({}, drawn_alone(model, arguments), result.dtype)[1]
    if model == "attention":
        return [_attended(*given)]
    if model == "fourier":
        return [np.fft.irfft(np.fft.rfft(given[0]) * (given[1][0] + 1j * given[1][1]))]
    positive = given[0] @ given[0].swapaxes(1, 2) / given[0].shape[1] + np.eye(given[0].shape[1])
    return [np.linalg.solve(positive, given[1])] * 2


def drawn_alone(model: str, arguments: Arguments) -> list:
    """What a model without weights is called with, float32 by NumPy."""
    given = _GIVEN[model](np.random.RandomState(arguments.seed), **arguments.dims[model])
    return [array.astype(np.float32) for array in given]


def _as_held(weights: dict, given: list, dtype: torch.dtype) -> tuple[dict, list]:
    """Numbers as `dtype` holds them, float64; whole numbers stay as they are."""
    held = {name: rounded(array, dtype) for name, array in weights.items()}
    return held, [array if array.dtype == np.int64 else rounded(array, dtype) for array in given]


def _check_training(arguments: Arguments, result: Outcome) -> None:
    model, (loss, *gradients) = result.model, result.values
    weights, given = _as_held(*drawn(model, arguments), torch.float32)
    off_by = abs(float(loss) / loss_of(model, arguments, weights, given) - 1)
    if not off_by <= TOLERANCE[result.dtype]:
        raise WrongResult(f"the loss of {model} is off by {off_by:.3g} of itself")
    names = [name for name, _ in MODULES[model](**arguments.dims[model]).named_parameters()]
    dense = (of.to_dense() if of.is_sparse else of for of in gradients)
    found = {name: of.cpu().to(torch.float64).numpy() for name, of in zip(names, dense)}
    for name in names:
        if name not in found or found[name].shape != weights[name].shape or not np.any(found[name]):
            raise WrongResult(f"{name} of {model} has no gradient of its shape that is not zero")
    random = np.random.RandomState(arguments.seed)
    differences = []
    for _ in range(DIRECTIONS):
        along = {name: random.standard_normal(of.shape) / np.linalg.norm(of) for name, of in found.items()}
        ahead, back = (
            loss_of(model, arguments, {name: weights[name] + step * along[name] for name in names}, given)
            for step in (STEP, -STEP)
        )
        told = sum(np.sum(found[name] * along[name]) for name in names)
        differences.append(told - (ahead - back) / (2 * STEP))
    off_by = float(np.sqrt(np.mean(np.square(differences))))
    if not off_by <= ALONG[result.dtype]:
        raise WrongResult(f"the gradients of {model} are off by {off_by:.3g} along directions of about 1 each")


# --- ways to run them


def _built(model: str, arguments: Arguments, dtype: torch.dtype = torch.float32, **more: Any) -> tuple:
    """The module with its weights on the device, and what it is called with, both in `dtype`."""
    weights, given = drawn(model, arguments)
    module = MODULES[model](**arguments.dims[model], **more)
    module.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()}, strict=False)
    tensors = [torch.from_numpy(array).to(arguments.device) for array in given]
    return module.to(arguments.device, dtype), [x.to(dtype) if x.is_floating_point() else x for x in tensors]


class _Training:
    """A call is a step: forward, backward, and SGD at the rate 0, so that the weights stay and each call computes the same.
    `forward` is the forward alone."""

    def __init__(self, model: str, module: torch.nn.Module, given: list, autocast: Callable | None = None) -> None:
        self._model, self._module, (*self._x, self._target) = model, module, given
        self._autocast = autocast or contextlib.nullcontext
        self._dtype = torch.bfloat16 if autocast else torch.float32
        self._parameters = list(module.parameters())
        self._optimizer = torch.optim.SGD(self._parameters, lr=0.0)
        functional = torch.nn.functional
        self._loss = functional.mse_loss if self._target.is_floating_point() else functional.cross_entropy

    def forward(self) -> torch.Tensor:
        with self._autocast():
            return self._loss(self._module(*self._x), self._target)

    def __call__(self) -> Outcome:
        loss = self.forward()
        loss.backward()
        self._optimizer.step()
        gradients = [parameter.grad for parameter in self._parameters]
        self._optimizer.zero_grad(set_to_none=True)
        return Outcome(self._model, (loss.detach(), *gradients), self._dtype)


OF_TRAINING = tuple(MODULES)
"""Models of which a result is a training step's."""


def _training(model: str, **more: Any) -> Callable:
    return lambda arguments: _Training(model, *_built(model, arguments, **more))


def _training_autocast(model: str) -> Callable:
    """A builder of a step whose forward is under autocast to bfloat16; the weights are float32."""

    def build(arguments: Arguments) -> Any:
        if not hasattr(torch, "autocast"):
            raise Unavailable("torch.autocast needs torch >= 1.10")
        dtype = torch.bfloat16
        module, given = _built(model, arguments)
        return tried(_Training(model, module, given, lambda: torch.autocast(arguments.device, dtype)), dtype)

    return build


def _training_channels_last(arguments: Arguments) -> _Training:
    module, (x, target) = _built("convolutional", arguments)
    last = torch.channels_last
    return _Training("convolutional", module.to(memory_format=last), [x.contiguous(memory_format=last), target])


def _inference(dtype: torch.dtype) -> Callable:
    def build(arguments: Arguments) -> Callable[[], Outcome]:
        module, (x, _) = _built("transformer", arguments, dtype)

        def call() -> Outcome:
            with torch.no_grad():
                return Outcome("inference", (module(x),), dtype)

        return tried(call, dtype)

    return build


def _decoding(dtype: torch.dtype) -> Callable:
    """A builder that gives the block one token after another, with a cache of keys and values that begins empty."""

    def build(arguments: Arguments) -> Callable[[], Outcome]:
        module, (x, _) = _built("transformer", arguments, dtype)

        def call() -> Outcome:
            cache: list = []
            with torch.no_grad():
                said = [module(token, cache) for token in x.split(1, 1)]
                return Outcome("decoding", (torch.cat(said, 1),), dtype)

        return tried(call, dtype)

    return build


def _attention(way: Callable, dtype: torch.dtype = torch.float32) -> Callable:
    """A builder of attention by the function that `way` returns."""

    def build(arguments: Arguments) -> Callable[[], Outcome]:
        q, k, v = (torch.from_numpy(of).to(arguments.device, dtype) for of in drawn_alone("attention", arguments))
        function = way()
        return tried(lambda: Outcome("attention", (function(q, k, v),), dtype), dtype)

    return build


def _default() -> Callable:
    if not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        raise Unavailable("torch.nn.functional.scaled_dot_product_attention needs torch >= 2.0")
    return torch.nn.functional.scaled_dot_product_attention


def _math() -> Callable:
    """`scaled_dot_product_attention` held to its plain products; before 2.3 by what was then the only switch."""
    function = _default()
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        held = functools.partial(sdpa_kernel, SDPBackend.MATH)
    except ImportError:
        held = functools.partial(torch.backends.cuda.sdp_kernel, False, True, False)

    def call(*tensors: torch.Tensor) -> torch.Tensor:
        with held():
            return function(*tensors)

    return call


def _fourier(arguments: Arguments) -> Callable[[], Outcome]:
    """A filter: signals to their spectra, a factor for each frequency, and back."""
    x, factors = (torch.from_numpy(of).to(arguments.device) for of in drawn_alone("fourier", arguments))
    factor = torch.complex(factors[0], factors[1])
    return lambda: Outcome("fourier", (torch.fft.irfft(torch.fft.rfft(x) * factor),))


def _systems(arguments: Arguments) -> Callable[[], Outcome]:
    """Linear systems with positive definite matrices, solved by Cholesky's factors and by `torch.linalg.solve`."""
    x, right = (torch.from_numpy(of).to(arguments.device) for of in drawn_alone("systems", arguments))
    matrices = x @ x.transpose(1, 2) / x.shape[1] + torch.eye(x.shape[1], device=x.device)

    def call() -> Outcome:
        by_factors = torch.cholesky_solve(right, torch.linalg.cholesky(matrices))
        return Outcome("systems", (by_factors, torch.linalg.solve(matrices, right)))

    return call


SETTINGS: dict[str, dict] = {
    "SGD": {"lr": 0.01, "momentum": 0.9},
    "Adam": {"lr": 0.01},
    "AdamW": {"lr": 0.01, "weight_decay": 0.1},
}
"""Optimizer of torch.optim -> what it is made with."""


class _Stepping:
    """A call is a step of an optimizer, with the same gradients each time."""

    def __init__(self, rule: str, optimizer: Any) -> None:
        self._rule, self._optimizer, self._steps = rule, optimizer, 0
        self._parameters = tuple(optimizer.param_groups[0]["params"])

    def __call__(self) -> Outcome:
        self._optimizer.step()
        self._steps += 1
        return Outcome(self._rule, self._parameters, steps=self._steps)


def _stepping(rule: str, **way: bool) -> Callable:
    def build(arguments: Arguments) -> _Stepping:
        start, gradients = (torch.from_numpy(of).to(arguments.device) for of in drawn_alone("optimizer", arguments))
        parameters = [torch.nn.Parameter(of.clone()) for of in start]
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient
        try:
            optimizer = getattr(torch.optim, rule)(parameters, **SETTINGS[rule], **way)
        except (TypeError, RuntimeError):
            (name,) = way
            raise Unavailable(
                f"torch.optim.{rule} of torch {torch.__version__} has no {name}=True for tensors on a {arguments.device}"
            ) from None
        return _Stepping(rule, optimizer)

    return build


FLOATS = {"": torch.float32, "_bfloat16": torch.bfloat16, "_float16": torch.float16}

variants = {
    "transformer_training": _training("transformer"),
    "transformer_training_autocast": _training_autocast("transformer"),
    **{f"transformer_inference{name}": _inference(dtype) for name, dtype in FLOATS.items()},
    **{f"transformer_decoding{name}": _decoding(dtype) for name, dtype in FLOATS.items()},
    "convolutional_training": _training("convolutional"),
    "convolutional_training_channels_last": _training_channels_last,
    "convolutional_training_autocast": _training_autocast("convolutional"),
    "lstm_training": _training("lstm"),
    "embedding_dense": _training("embedding"),
    "embedding_sparse": _training("embedding", sparse=True),
    "graph_index_add": _training("graph"),
    "graph_scatter_add": _training("graph", scatters=True),
    **{f"attention_plain{name}": _attention(lambda: attend, dtype) for name, dtype in FLOATS.items()},
    **{f"attention_default{name}": _attention(_default, dtype) for name, dtype in FLOATS.items()},
    "attention_math": _attention(_math),
    "fourier_filter": _fourier,
    "linear_systems": _systems,
    **{
        "_".join((rule.lower(), *way)): _stepping(rule, **way)
        for rule in SETTINGS
        for way in ({}, {"foreach": True}, {"fused": True})
    },
}
"""Name of a variant -> what builds its zero-argument callable from `inputs`; building is not part of any measurement."""
