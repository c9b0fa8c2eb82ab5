"""Inference of a model of torchvision, with random weights."""

import numpy as np
import torch
import torchvision

requirements = ["torchvision"]


def inputs():
    return torch.from_numpy(np.random.default_rng(1).random((1, 3, 64, 64), dtype=np.float32))


def setup(image):
    return torchvision.models.squeezenet1_1(num_classes=10).eval(), image


def inference(model, image):
    with torch.no_grad():
        return model(image)


functions = {"inference": inference}
