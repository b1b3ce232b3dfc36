"""Worker: steps by PyTorch, `train_torch.py eager` or `train_torch.py compile`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
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


def normalized(inputs: int, filters: int, kernel: int, stride: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inputs, filters, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(filters, nets.EPS),
    )


class Block(nn.Module):
    """Two convolutions around a shortcut."""

    def __init__(self, name: str, inputs: int, filters: int, stride: int, size: int) -> None:
        super().__init__()
        self.a = normalized(inputs, filters, 3, stride)
        self.b = normalized(filters, filters, 3)
        self.short = normalized(inputs, filters, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.short(x) + self.b(torch.relu(self.a(x))))


def resnet20() -> nn.Module:
    blocks = [Block(*block) for block in nets.blocks()]
    head = nn.AvgPool2d(8), nn.Flatten(), nn.Linear(64, 10)
    return nn.Sequential(normalized(3, 16, 3), nn.ReLU(), *blocks, *head)


class Bottleneck(nn.Module):
    """A convolution of few channels between two that change how many there are, and a shortcut."""

    def __init__(self, name: str, inputs: int, filters: int, stride: int, size: int) -> None:
        super().__init__()
        self.a, self.b = normalized(inputs, filters, 1), normalized(filters, filters, 3, stride)
        self.c, same = normalized(filters, 4 * filters, 1), inputs == 4 * filters
        self.short = nn.Identity() if same else normalized(inputs, 4 * filters, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.relu(self.b(torch.relu(self.a(x))))
        return torch.relu(self.short(x) + self.c(inner))


def resnet50() -> nn.Module:
    blocks = [Bottleneck(*block) for block in nets.bottlenecks()]
    stem = normalized(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
    return nn.Sequential(*stem, *blocks, nn.AvgPool2d(7), nn.Flatten(), nn.Linear(2048, 10))


class Lstm(nn.Module):
    """Recurrent layers, whose last output is classified."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(nets.HIDDEN, nets.HIDDEN, nets.RECURRENT, batch_first=True)
        self.fc = nn.Linear(nets.HIDDEN, nets.CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.rnn(x)[0][:, -1])


NETS = {"mlp": mlp, "lenet": lenet, "resnet20": resnet20, "resnet50": resnet50, "lstm": Lstm}


def loaded(net: str) -> nn.Module:
    """The network with its first parameters."""
    model = NETS[net]()
    with torch.no_grad():
        pairs = zip(model.parameters(), nets.parameters(net).values(), strict=True)
        for parameter, values in pairs:
            parameter.copy_(torch.from_numpy(values))
    return model


def setup(net: str, size: int, train: bool) -> tuple[Step, Step, dict[str, Any]]:
    """A model, with an optimizer to `train`; the loss of its last step of some."""
    pictures, labels = map(torch.from_numpy, nets.batch(net, size))
    model = loaded(net)
    if train:
        step = training(model, pictures, labels)
        last = [step() for _ in range(nets.PROOF)][-1].item()
    else:
        step = prediction(model, pictures)
        last = [nets.loss(step().numpy(), labels.numpy()) for _ in range(nets.PROOF)][-1]
    return step, lambda: None, {"loss": last}


def training(
    model: nn.Module, pictures: torch.Tensor, labels: torch.Tensor
) -> Callable[[], torch.Tensor]:
    """A step that gives the loss before its update."""
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

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = objective()
        loss.backward()
        update()
        return loss.detach()

    return step


def prediction(model: nn.Module, pictures: torch.Tensor) -> Callable[[], torch.Tensor]:
    """A step that gives the probabilities."""
    model.eval()

    def probabilities() -> torch.Tensor:
        return model(pictures).softmax(1)

    if COMPILE:
        probabilities = torch.compile(probabilities)

    def step() -> torch.Tensor:
        with torch.inference_mode():
            return probabilities()

    return step


if __name__ == "__main__":
    serve(f"PyTorch {torch.__version__}", setup)
