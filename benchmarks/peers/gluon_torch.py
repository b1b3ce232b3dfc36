"""Worker: the networks of `gluon_module.py` by PyTorch: `gluon_torch.py torch eager|compile`."""

from __future__ import annotations

import os
import sys
from typing import Any

import gluon_data
import torch
from protocol import Step, serve
from torch import nn

KIND = sys.argv[2]
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))


def deep() -> nn.Module:
    layers = [part for _ in range(19) for part in (nn.Linear(8, 8), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(8, 4))


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


class Recurrent(nn.Module):
    """Two recurrent layers of 200, whose last output is classified."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(200, 200, 2, batch_first=True)
        self.out = nn.Linear(200, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.rnn(x)[0][:, -1])


class Layer(nn.Module):
    """Attention by 4 heads over 64 numbers, then a dense layer of 256."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.parts, self.joined = (
            nn.LayerNorm(64),
            nn.Linear(64, 192),
            nn.Linear(64, 64),
        )
        self.norm2, self.wide, self.narrow = (
            nn.LayerNorm(64),
            nn.Linear(64, 256),
            nn.Linear(256, 64),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.parts(self.norm1(x)).chunk(3, 2)
        heads = [p.unflatten(2, (4, 16)).transpose(1, 2) for p in parts]
        found = nn.functional.scaled_dot_product_attention(*heads)
        x = x + self.joined(found.transpose(1, 2).flatten(2))
        return x + self.narrow(torch.relu(self.wide(self.norm2(x))))


def transformer() -> nn.Module:
    return nn.Sequential(Layer(), Layer(), nn.Flatten(), nn.Linear(32 * 64, 10))


class Block(nn.Module):
    """Two convolutions around a shortcut."""

    def __init__(self, inputs: int, filters: int, stride: int) -> None:
        super().__init__()
        self.a = nn.Conv2d(inputs, filters, 3, stride, 1, bias=False)
        self.norm_a = nn.BatchNorm2d(filters)
        self.b = nn.Conv2d(filters, filters, 3, 1, 1, bias=False)
        self.norm_b = nn.BatchNorm2d(filters)
        short = nn.Conv2d(inputs, filters, 1, stride, bias=False), nn.BatchNorm2d(filters)
        self.short = nn.Sequential(*short) if stride > 1 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.norm_b(self.b(torch.relu(self.norm_a(self.a(x)))))
        return torch.relu(found + self.short(x))


def resnet18() -> nn.Module:
    blocks, inputs = [], 64
    for filters in (64, 128, 256, 512):
        blocks += [Block(inputs, filters, 1 + (filters > 64)), Block(filters, filters, 1)]
        inputs = filters
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)
    return nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), *blocks, *head)


NETS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "deep": (deep, (8,)),
    "mlp": (mlp, (784,)),
    "lenet": (lenet, (1, 28, 28)),
    "lstm": (Recurrent, (35, 200)),
    "transformer": (transformer, (32, 64)),
    "resnet18": (resnet18, (3, 32, 32)),
}


def started(name: str) -> nn.Module:
    """A network whose weights follow from their order, its biases 0."""
    net = NETS[name][0]()
    params = list(net.named_parameters())
    weights = [p for _, p in params if p.ndim > 1]
    values = gluon_data.weights([p.shape for p in weights])
    with torch.no_grad():
        for param, value in zip(weights, values, strict=True):
            param.copy_(torch.from_numpy(value))
        for key, param in params:
            if param.ndim == 1 and "bias" in key:
                param.zero_()
    return net


def setup(net: str, size: int, train: bool) -> tuple[Step, Step, dict[str, Any]]:
    """A network with an optimizer; its loss after some steps."""
    pictures, labels = map(torch.from_numpy, gluon_data.batch(size, NETS[net][1]))
    model, labels = started(net), labels.long()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, 0.9)
    entropy = nn.functional.cross_entropy

    def objective() -> torch.Tensor:
        return entropy(model(pictures), labels)

    def update() -> None:
        optimizer.step()

    if KIND == "compile":
        objective, update = torch.compile(objective), torch.compile(update)
    last = [torch.zeros(())]

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        last[0] = loss = objective()
        loss.backward()
        update()

    def predict() -> None:
        with torch.no_grad():
            last[0] = objective()

    model.train(train)
    chosen = step if train else predict
    for _ in range(gluon_data.PROOF):
        chosen()
    loss_then = last[0].item()
    for _ in range(gluon_data.WARM):
        chosen()
    return chosen, lambda: None, {"loss": loss_then}


if __name__ == "__main__":
    serve(f"PyTorch {torch.__version__} {KIND}", setup)
