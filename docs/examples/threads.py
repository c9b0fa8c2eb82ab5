"""A product with two threads. Without `threads` a workload has one."""

import torch


def inputs(seed):
    return (torch.randn(512, 512, generator=torch.Generator().manual_seed(seed)),)


functions = {"product": lambda x: x @ x}
threads = 2
METRICS = ("time", "cpu_time")
