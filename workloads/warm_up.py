"""Does TorchScript stall?

A small convolutional network is called 50 times in a fresh process, one picture a call. Compare `worst_over_median` of the
scripted, traced and frozen network with that of `eager` and `libtorch`: a stall is a call slower than 5 medians.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
import torch

from . import WrongResult
from .compilers import compiled, scripted, traced
from .cpp import operators

METRICS = ("first_call", "second_call", "median_call", "worst_call", "worst_over_median", "stalls")

CALLS = 50

sizes: dict[str, dict[str, tuple]] = {
    "one shape": {"sides": (160,)},
    "changing shapes": {"sides": (136, 144, 160, 176, 192)},
}
"""Sides of the square pictures, in pixels. Where there are several, each call's differs from that of the call before."""

CHANNELS = (3, 64, 64, 64)
STRIDES = (2, 2, 1)
CLASSES = 10
EPSILON = 1e-5
"""Added to a variance by batch normalisation, torch's default."""

TOLERANCE = 0.01
"""Share of the largest expected number. A GPU rounds the operands of a convolution to TF32, by 2**-11 each: three
convolutions may be off by 6 x 2**-11 = 0.003. float32 on a CPU is off by 1e-6."""


class Calls:
    """The arguments of a sequence of calls, iterated in order.

    `pictures`: float32 [1, 3, side, side], one per side, each of another colour. `order`: which of them each call gets.
    `parameters`: float32 tensors, the weight, scale, shift, mean and variance of each layer, then the last weight and shift.
    """

    def __init__(self, pictures: list, order: list, parameters: list) -> None:
        self.pictures, self.order, self.parameters = pictures, order, parameters

    def __iter__(self) -> Iterator[torch.Tensor]:
        return (self.pictures[which] for which in self.order)


def inputs(size: str, device: str, seed: int) -> Calls:
    """Pictures, parameters and order, drawn with NumPy, so that every release sees the same numbers."""
    random = np.random.RandomState(seed)
    parameters = _parameters(random)
    pictures = [
        (random.uniform(-1, 1, (1, 3, 1, 1)) + random.uniform(-1, 1, (1, 3, side, side)))
        for side in sizes[size]["sides"]
    ]
    order = [0]
    while len(order) < CALLS:
        step = random.randint(1, len(pictures)) if len(pictures) > 1 else 0
        order.append((order[-1] + int(step)) % len(pictures))
    on_device = [
        [torch.from_numpy(array.astype(np.float32)).to(device) for array in arrays] for arrays in (pictures, parameters)
    ]
    return Calls(on_device[0], order, on_device[1])


def _parameters(random: np.random.RandomState) -> list:
    drawn = []
    for channels, features in zip(CHANNELS, CHANNELS[1:]):
        drawn.append(random.normal(0, (2 / (9 * channels)) ** 0.5, (features, channels, 3, 3)))
        drawn += [random.uniform(low, 1.5, features) for low in (0.5, -0.5, -0.5, 0.5)]
    return [*drawn, random.normal(0, 1, (CLASSES, CHANNELS[-1])), random.normal(0, 1, CLASSES)]


def expected(picture: np.ndarray, parameters: list) -> np.ndarray:
    """What the network says, [CLASSES], of a picture [1, 3, side, side]: float64 by NumPy."""
    x = picture[0].astype(np.float64)
    values = [array.astype(np.float64) for array in parameters]
    for layer, stride in enumerate(STRIDES):
        weight, scale, shift, mean, variance = values[5 * layer : 5 * layer + 5]
        factor = scale / np.sqrt(variance + EPSILON)
        y = _convolution(x, weight * factor[:, None, None, None], stride) + (shift - mean * factor)[:, None, None]
        x = np.maximum(y + x if y.shape == x.shape else y, 0)
    weight, shift = values[-2:]
    return weight @ x.mean((1, 2)) + shift


def _convolution(x: np.ndarray, weight: np.ndarray, stride: int) -> np.ndarray:
    """[channels, height, width] and [features, channels, 3, 3], a border of one zero -> [features, height', width']."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    height, width = ((extent - 1) // stride + 1 for extent in x.shape[1:])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::stride, ::stride]
    columns = windows.transpose(0, 3, 4, 1, 2).reshape(-1, height * width)
    return (weight.reshape(len(weight), -1) @ columns).reshape(-1, height, width)


def check(arguments: Calls, results: list) -> None:
    """Raises WrongResult unless every call's result, float32 [1, CLASSES], is what NumPy says of its picture."""
    if len(results) != len(arguments.order):
        raise WrongResult(f"there are {len(results)} results of {len(arguments.order)} calls")
    parameters = [tensor.cpu().numpy() for tensor in arguments.parameters]
    wanted = [expected(picture.cpu().numpy(), parameters) for picture in arguments.pictures]
    for call, (which, result) in enumerate(zip(arguments.order, results), 1):
        if tuple(result.shape) != (1, CLASSES) or result.dtype != torch.float32:
            raise WrongResult(f"the result of call {call} is {result.dtype} {tuple(result.shape)}, not float32 (1, 10)")
        off = float(np.abs(result.cpu().numpy()[0] - wanted[which]).max() / np.abs(wanted[which]).max())
        if not off <= TOLERANCE:
            raise WrongResult(f"the result of call {call} is off by {off:.3g} of the largest expected number")


class Network(torch.nn.Module):
    """Three convolutions with batch normalisation and ReLU, a shortcut around the third; mean over pixels; linear layer."""

    def __init__(self, parameters: list) -> None:
        super().__init__()
        layers = [
            (
                torch.nn.Conv2d(channels, features, 3, stride, padding=1, bias=False),
                torch.nn.BatchNorm2d(features, EPSILON),
            )
            for channels, features, stride in zip(CHANNELS, CHANNELS[1:], STRIDES)
        ]
        (self.conv1, self.norm1), (self.conv2, self.norm2), (self.conv3, self.norm3) = layers
        self.linear = torch.nn.Linear(CHANNELS[-1], CLASSES)
        names = [name for name in self.state_dict() if not name.endswith("num_batches_tracked")]
        self.load_state_dict(dict(zip(names, parameters)), strict=False)
        self.to(parameters[0].device).eval()

    def forward(self, x):
        x = torch.relu(self.norm1(self.conv1(x)))
        x = torch.relu(self.norm2(self.conv2(x)))
        x = torch.relu(self.norm3(self.conv3(x)) + x)
        return self.linear(x.mean([2, 3]))


def _inference(network: Callable) -> Callable[[torch.Tensor], torch.Tensor]:
    """The network as it is called to infer: without gradients."""

    def call(picture: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return network(picture)

    return call


def eager(arguments: Calls) -> Callable:
    """torch.nn as it is."""
    return _inference(Network(arguments.parameters))


def by_script(arguments: Calls) -> Callable:
    """`torch.jit.script` of it."""
    return _inference(scripted(Network(arguments.parameters)))


def by_trace(arguments: Calls) -> Callable:
    """`torch.jit.trace` of it with the first picture; tracing calls it once."""
    with torch.no_grad():
        return _inference(traced(Network(arguments.parameters), (next(iter(arguments)),)))


def frozen(arguments: Calls) -> Callable:
    """`torch.jit.freeze` of the scripted network, and `torch.jit.optimize_for_inference` of that from torch 1.10 on."""
    network = scripted(Network(arguments.parameters))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        network = torch.jit.freeze(network)
        if hasattr(torch.jit, "optimize_for_inference"):
            network = torch.jit.optimize_for_inference(network)
    return _inference(network)


def by_compile(arguments: Calls) -> Callable:
    """`torch.compile` of it with the default settings."""
    return _inference(compiled(Network(arguments.parameters), arguments.parameters[0].device.type))


def libtorch(arguments: Calls) -> Callable:
    """The same network written in C++, one operator of torch to Python."""
    network, parameters = operators("warm_up").network, arguments.parameters
    return _inference(lambda picture: network(picture, parameters))


variants = {
    "eager": eager,
    "scripted": by_script,
    "traced": by_trace,
    "frozen": frozen,
    "compiled": by_compile,
    "libtorch": libtorch,
}
"""Name of a variant -> what builds its callable of one picture from `inputs`; building is not part of any measurement."""
