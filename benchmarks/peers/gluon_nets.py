"""Networks by Gluon of the package that the first argument of the program names."""

from __future__ import annotations

import importlib
import sys
from typing import Any

mx = importlib.import_module(sys.argv[1])
gluon, nn = mx.gluon, mx.gluon.nn


def deep() -> Any:
    """Twenty small layers, of which a step is mostly what is around them."""
    net = nn.HybridSequential()
    net.add(*(nn.Dense(8, activation="relu") for _ in range(19)), nn.Dense(4))
    return net


def mlp() -> Any:
    """Layers of 128, 64 and 10."""
    net = nn.HybridSequential()
    net.add(nn.Dense(128, activation="relu"), nn.Dense(64, activation="relu"), nn.Dense(10))
    return net


def lenet() -> Any:
    """Two convolutions with pooling, two dense layers."""
    net = nn.HybridSequential()
    net.add(
        *(nn.Conv2D(20, 5, activation="tanh"), nn.MaxPool2D()),
        *(nn.Conv2D(50, 5, activation="tanh"), nn.MaxPool2D()),
        *(nn.Dense(500, activation="tanh"), nn.Dense(10)),
    )
    return net


class Recurrent(gluon.HybridBlock):
    """Two recurrent layers of 200, whose last output is classified."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = gluon.rnn.LSTM(200, 2, input_size=200)
        self.out = nn.Dense(10, in_units=200)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        steps = self.rnn(F.swapaxes(x, dim1=0, dim2=1))
        return self.out(F.squeeze(F.slice_axis(steps, axis=0, begin=-1, end=None), axis=0))


class Layer(gluon.HybridBlock):
    """Attention by 4 heads over 64 numbers, then a dense layer of 256."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.parts = nn.LayerNorm(), nn.Dense(192, flatten=False, in_units=64)
        self.joined = nn.Dense(64, flatten=False, in_units=64)
        self.norm2, self.wide = nn.LayerNorm(), nn.Dense(256, flatten=False, in_units=64)
        self.narrow = nn.Dense(64, flatten=False, in_units=256)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        parts = F.split(self.parts(self.norm1(x)), num_outputs=3, axis=2)
        query, key, value = (
            p.reshape((0, 0, 4, -1)).transpose((0, 2, 1, 3)).reshape((-3, 0, 0)) for p in parts
        )
        weights = F.softmax(F.batch_dot(query, key, transpose_b=True) * 0.25, axis=2)
        found = F.batch_dot(weights, value).reshape((-4, -1, 4, 0, 0)).transpose((0, 2, 1, 3))
        x = x + self.joined(found.reshape((0, 0, -3)))
        return x + self.narrow(F.relu(self.wide(self.norm2(x))))


def transformer() -> Any:
    """Two layers of attention, and a dense one of all steps."""
    net = nn.HybridSequential()
    net.add(Layer(), Layer(), nn.Dense(10))
    return net


def resnet18() -> Any:
    """The network of the zoo, with a stem of 3x3."""
    return gluon.model_zoo.vision.resnet18_v1(classes=10, thumbnail=True)
