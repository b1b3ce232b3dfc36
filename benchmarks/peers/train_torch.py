"""Worker: training steps by PyTorch, `train_torch.py eager` or `train_torch.py compile`."""

from __future__ import annotations

import os
import sys
from typing import Any

import nets
import torch
from protocol import Step, serve
from torch import nn

COMPILE = sys.argv[1] == "compile"
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
    )


def lenet() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 20, 5), nn.Tanh(), nn.MaxPool2d(2)),
        *(nn.Conv2d(20, 50, 5), nn.Tanh(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(800, 500), nn.Tanh(), nn.Linear(500, 10)),
    )


def setup(net: str, size: int) -> tuple[Step, Step, dict[str, Any]]:
    """A model with an optimizer; its loss after some steps."""
    pictures, labels = map(torch.from_numpy, nets.batch(net, size))
    model = {"mlp": mlp, "lenet": lenet}[net]()
    with torch.no_grad():
        for parameter, values in zip(
            model.parameters(), nets.parameters(net).values(), strict=True
        ):
            parameter.copy_(torch.from_numpy(values))
    optimizer = torch.optim.SGD(
        model.parameters(), nets.LEARNING_RATE, nets.MOMENTUM, foreach=not COMPILE
    )
    entropy = nn.functional.cross_entropy

    def objective() -> torch.Tensor:
        return entropy(model(pictures), labels)

    def update() -> None:
        optimizer.step()

    if COMPILE:
        objective, update = torch.compile(objective), torch.compile(update)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        objective().backward()
        update()

    for _ in range(nets.PROOF):
        step()
    with torch.no_grad():
        probabilities = model(pictures).softmax(1).numpy()
    return step, lambda: None, {"loss": nets.loss(probabilities, labels.numpy())}


if __name__ == "__main__":
    serve(f"PyTorch {torch.__version__}", setup)
