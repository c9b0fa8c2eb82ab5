"""How long does torch.compile take for a small model, the caches empty? And TorchScript?"""

import torch


def inputs(seed):
    return (torch.randn(32, 64, generator=torch.Generator().manual_seed(seed)),)


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).eval()


def compiled(arguments):
    made = torch.compile(model())
    return lambda: made(*arguments)


def scripted(arguments):
    made = torch.jit.script(model())
    return lambda: made(*arguments)


variants = {"scripted": scripted, "compiled": compiled}
METRICS = ("first_call", "second_call", "compile_time", "median_call")
