"""A training step of a small transformer, for `torch-history fit`: see docs/recorder.md. Python 3.9, torch 1.8."""

import torch

WORDS, WIDTH, LENGTH = 10_000, 512, 256


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.1)
        self.layers = torch.nn.TransformerEncoder(layer, 4)
        self.next = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, text):
        return self.next(self.layers(self.words(text)))


def inputs(device, batch=8):
    model = Model().to(device).train()
    text = torch.zeros(LENGTH, batch, dtype=torch.int64, device=device)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4), text


def step(model, optimizer, text):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(text).view(-1, WORDS), text.view(-1))
    loss.backward()
    optimizer.step()


def inference(model, optimizer, text):
    with torch.no_grad():
        return model(text)


functions = {"step": step, "inference": inference}
check = None
