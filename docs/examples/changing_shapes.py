"""A new shape at each call, as a tokenizer gives them: `inputs` takes the number of the call."""

import torch


def inputs(call):
    return torch.ones(8, 100 + call), torch.ones(64, 8)


def eager(x, weight):
    return (weight @ x).relu().sum(0)


scripted = torch.jit.script(eager)
functions = {"eager": eager, "scripted": scripted}
METRICS = ("first_call", "second_call", "median_call", "worst_call", "stalls")
