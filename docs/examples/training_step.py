"""A training step whose result changes at each call: state of its own, and something to do before each step."""

import torch


def inputs(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(64, 128, generator=generator), torch.randn(64, 10, generator=generator)


def setup(x, target):
    model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4), x, target


def before(model, optimizer, x, target):
    optimizer.zero_grad()


def step(model, optimizer, x, target):
    loss = torch.nn.functional.mse_loss(model(x), target)
    loss.backward()
    optimizer.step()


functions = {"step": step}
check = None
METRICS = ("time", "cpu_time", "peak_memory", "resident_growth")
