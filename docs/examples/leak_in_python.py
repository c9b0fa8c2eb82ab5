"""A leak in Python: a cache that nobody empties. `resident_growth` tells it, and by how much each call."""

import torch

seen = []


def inputs():
    return (torch.ones(2**18),)


def leaking(x):
    seen.append(x + 1)
    return x


def clean(x):
    x + 1
    return x


functions = {"clean": clean, "leaking": leaking}
METRICS = ("resident_memory", "resident_growth")
