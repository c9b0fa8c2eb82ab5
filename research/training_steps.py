"""Training steps of six architectures, whose memory `training_peaks.py` asks for. A workload, for torch 2.

A size is an architecture with its optimizer. Where it ends with ", no cuDNN", PyTorch's own convolutions or LSTM are used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import torch
from torch import nn
from torch.optim import Adam, AdamW
from torch.utils.checkpoint import checkpoint


class Again(nn.TransformerEncoderLayer):
    """A block that is computed again in the backward pass."""

    def forward(self, data):
        return checkpoint(super().forward, data, use_reentrant=False, preserve_rng_state=False)


class Recurrent(nn.LSTM):
    """The outputs of all steps, without the last state."""

    def forward(self, data):
        return super().forward(data)[0]


class Graph(nn.Module):
    """Each node of [nodes, width] adds what it is sent along `edges`, [2, so many]."""

    def __init__(self, width: int, edges: torch.Tensor) -> None:
        super().__init__()
        self.own, self.sent = nn.Linear(width, width), nn.Linear(width, width)
        self.register_buffer("edges", edges)

    def forward(self, data):
        messages = self.sent(data).index_select(0, self.edges[0])
        return torch.relu(self.own(data).index_add(0, self.edges[1], messages))


def transformer(block: type, first: nn.Module, width: int, classes: int) -> list:
    blocks = [block(width, width // 64, 4 * width, 0.0, batch_first=True, norm_first=True) for _ in range(12)]
    return [first, *blocks, nn.Linear(width, classes)]


def words(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int64)


def text() -> tuple:
    layers = transformer(nn.TransformerEncoderLayer, nn.Embedding(16_000, 768), 768, 16_000)
    return layers, words(1, 32), partial(AdamW, foreach=True)


def vision() -> tuple:
    return transformer(Again, nn.Linear(768, 384), 384, 100), torch.zeros(1, 49, 768), partial(AdamW, fused=True)


def convolutional() -> tuple:
    steps = [
        (nn.Conv2d(inside, out, 3, 2, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU())
        for inside, out in pairwise((3, 64, 128, 256, 512))
    ]
    last = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1_000)
    return [*sum(steps, ()), *last], torch.zeros(4, 3, 224, 224), Adam


def recurrent(**how: bool) -> tuple:
    layers = [nn.Embedding(10_000, 650), Recurrent(650, 650, 2), nn.Linear(650, 10_000)]
    return layers, words(35, 10), partial(Adam, **how)


def perceptron() -> tuple:
    layers = [layer for _ in range(3) for layer in (nn.Linear(4_096, 4_096), nn.ReLU())]
    return [*layers, nn.Linear(4_096, 1_000)], torch.zeros(64, 4_096), partial(Adam, foreach=False)


def graph() -> tuple:
    layers = [Graph(256, words(2, 100_000)) for _ in range(3)]
    return [*layers, nn.Linear(256, 40)], torch.zeros(10_000, 256), AdamW


sizes: dict[str, Callable[[], tuple]] = {
    "transformer, AdamW foreach, bfloat16": text,
    "vision transformer, AdamW fused, bfloat16, checkpointing": vision,
    **dict.fromkeys(("convolutional network, Adam", "convolutional network, Adam, no cuDNN"), convolutional),
    **dict.fromkeys(("LSTM, Adam", "LSTM, Adam, no cuDNN"), recurrent),
    "LSTM, Adam for-loop, no cuDNN": partial(recurrent, foreach=False),
    "perceptron, Adam for-loop": perceptron,
    "graph network, AdamW": graph,
}
"""Name -> what makes the layers, the data and the optimizer."""


def inputs(device, size):
    torch.backends.cudnn.enabled = not size.endswith("no cuDNN")
    layers, data, optimizer = sizes[size]()
    model = nn.Sequential(*layers)
    if torch.get_default_device().type != device:  # fake modules cannot be moved, not even to where they are
        model.to(device)
    return model, optimizer(model.parameters()), data.to(device), "bfloat16" in size


def step(model, optimizer, data, autocast):
    """The loss takes all outputs for classes, of which each is 0."""
    optimizer.zero_grad()
    with torch.amp.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
        outputs = model(data).flatten(0, -2)
        loss = nn.functional.cross_entropy(outputs, outputs.new_zeros(len(outputs), dtype=torch.int64))
    loss.backward()
    optimizer.step()


functions = {"step": step}
