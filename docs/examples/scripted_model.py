"""Inference of a scripted model, beside the same model that is not."""

import torch


def model():
    torch.manual_seed(0)
    layers = [
        torch.nn.Conv2d(3, 16, 3, padding=1),
        torch.nn.BatchNorm2d(16),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
    ]
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(16, 10)).eval()


def inputs(seed):
    return (torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(seed)),)


def eager(arguments):
    made = model()
    return lambda: made(*arguments).detach()


def scripted(arguments):
    made = torch.jit.freeze(torch.jit.script(model()))
    return lambda: made(*arguments).detach()


variants = {"eager": eager, "scripted": scripted}
