"""What script.py measures."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=10)
asked = parser.parse_args()
model = torch.nn.Linear(512, 512)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(asked.steps):
    optimizer.zero_grad()
    model(torch.ones(64, 512)).sum().backward()
    optimizer.step()
