"""The networks of the training benchmark as numbers: layers, first parameters, a batch, work.

The same arrays for every peer, so that their losses can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

LEARNING_RATE, MOMENTUM = 0.01, 0.9
EPS = 1e-5  # of batch normalization
CLASSES = 10
STEPS, HIDDEN, RECURRENT = 35, 200, 2  # of the recurrent network: in time, numbers, layers
INPUTS = {
    "mlp": (784,),
    "lenet": (1, 28, 28),
    "resnet20": (3, 32, 32),
    "resnet50": (3, 224, 224),
    "lstm": (STEPS, HIDDEN),
}
PROOF = 5  # steps after which the losses are compared


class Layer(NamedTuple):
    """What has parameters: `places` is how often its weight is applied to an example."""

    kind: str  # "dense", "conv", "norm", or "cell"
    name: str
    shape: tuple[int, ...]
    places: int = 1
    bias: bool = True


class Block(NamedTuple):
    """Two convolutions of a residual network around a shortcut."""

    name: str
    inputs: int
    filters: int
    stride: int
    size: int  # of its pictures, along each side


def blocks(depth: int = 20) -> Iterator[Block]:
    """Those of a residual network, version 1; a block that changes sizes has a convolution as
    shortcut."""
    inputs = 16
    for stage, filters in enumerate((16, 32, 64), 1):
        for unit in range(1, (depth - 2) // 6 + 1):
            stride = 2 if filters != inputs else 1
            yield Block(f"stage{stage}_unit{unit}", inputs, filters, stride, 64 * 8 // filters)
            inputs = filters


def bottlenecks() -> Iterator[Block]:
    """Those of a residual network of 50 layers, version 1.5: the first of each stage has a
    convolution as shortcut."""
    inputs, size = 64, 56
    for stage, units in enumerate((3, 4, 6, 3), 1):
        for unit in range(1, units + 1):
            stride = 2 if unit == 1 and stage > 1 else 1
            size //= stride
            yield Block(f"stage{stage}_unit{unit}", inputs, 32 << stage, stride, size)
            inputs = 128 << stage


def normalized(name: str, shape: tuple[int, ...], size: int) -> list[Layer]:
    """A convolution without bias, and its normalization."""
    found = Layer("conv", f"{name}_conv", shape, size * size, bias=False)
    return [found, Layer("norm", f"{name}_bn", shape[:1])]


def resnet20() -> Iterator[Layer]:
    yield from normalized("stem", (16, 3, 3, 3), 32)
    for name, inputs, filters, stride, size in blocks():
        yield from normalized(f"{name}_a", (filters, inputs, 3, 3), size)
        yield from normalized(f"{name}_b", (filters, filters, 3, 3), size)
        if stride > 1:
            yield from normalized(f"{name}_short", (filters, inputs, 1, 1), size)
    yield Layer("dense", "fc", (10, 64))


def resnet50() -> Iterator[Layer]:
    yield from normalized("stem", (64, 3, 7, 7), 112)
    for name, inputs, filters, stride, size in bottlenecks():
        yield from normalized(f"{name}_a", (filters, inputs, 1, 1), size * stride)
        yield from normalized(f"{name}_b", (filters, filters, 3, 3), size)
        yield from normalized(f"{name}_c", (4 * filters, filters, 1, 1), size)
        if inputs != 4 * filters:
            yield from normalized(f"{name}_short", (4 * filters, inputs, 1, 1), size)
    yield Layer("dense", "fc", (CLASSES, 2048))


LAYERS = {
    "mlp": [
        *(Layer("dense", "fc1", (128, 784)), Layer("dense", "fc2", (64, 128))),
        Layer("dense", "fc3", (10, 64)),
    ],
    "lenet": [
        Layer("conv", "conv1", (20, 1, 5, 5), 24 * 24),
        Layer("conv", "conv2", (50, 20, 5, 5), 8 * 8),
        *(Layer("dense", "fc1", (500, 800)), Layer("dense", "fc2", (10, 500))),
    ],
    "resnet20": list(resnet20()),
    "resnet50": list(resnet50()),
    "lstm": [
        *(Layer("cell", f"rnn_l{i}", (4 * HIDDEN, HIDDEN), STEPS) for i in range(RECURRENT)),
        Layer("dense", "fc", (10, HIDDEN)),
    ],
}


def parameters(net: str) -> dict[str, np.ndarray]:
    """`fc1_weight`, `fc1_bias`, `stem_bn_gamma`, ... in the order of the layers."""
    rng = np.random.RandomState(11)
    found = {}
    for kind, layer, shape, _, bias in LAYERS[net]:
        if kind == "norm":
            found[f"{layer}_gamma"] = np.ones(shape, np.float32)
            found[f"{layer}_beta"] = np.zeros(shape, np.float32)
            continue
        bound = np.sqrt(3.0 / np.prod(shape[1:]))
        parts = [f"{layer}_i2h", f"{layer}_h2h"] if kind == "cell" else [layer]
        for part in parts:
            found[f"{part}_weight"] = rng.uniform(-bound, bound, shape).astype(np.float32)
        for part in parts if bias else ():
            found[f"{part}_bias"] = np.zeros(shape[0], np.float32)
    return found


def packed(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same with what belongs to recurrent layers in one vector: weights, then biases."""
    own = {k: v for k, v in values.items() if k.startswith("rnn_")}
    if not own:
        return values
    order = sorted(own, key=lambda name: name.endswith("_bias"))
    rest = {k: v for k, v in values.items() if k not in own}
    return {"rnn_parameters": np.concatenate([own[k].ravel() for k in order]), **rest}


def states(net: str) -> dict[str, np.ndarray]:
    """The moving averages of normalizations, `stem_bn_moving_mean` and so on."""
    norms = [layer for layer in LAYERS[net] if layer.kind == "norm"]
    means = {f"{n.name}_moving_mean": np.zeros(n.shape, np.float32) for n in norms}
    return means | {f"{n.name}_moving_var": np.ones(n.shape, np.float32) for n in norms}


def batch(net: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures (size, ...) and labels (size,) of int64."""
    rng = np.random.RandomState(12)
    pictures = rng.standard_normal((size, *INPUTS[net])).astype(np.float32)
    return pictures, rng.randint(0, CLASSES, size)


def loss(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Mean cross-entropy."""
    picked = probabilities[np.arange(len(labels)), labels]
    return float(-np.log(np.maximum(picked, 1e-30)).mean())


def flops(net: str, size: int, train: bool) -> int:
    """Floating point operations of the matrix products and convolutions of a step.

    Training takes them three times, but no gradient of the pictures.
    """
    each = [
        2 * layer.places * int(np.prod(layer.shape)) * (2 if layer.kind == "cell" else 1)
        for layer in LAYERS[net]
        if len(layer.shape) > 1
    ]
    return size * (3 * sum(each) - each[0] if train else sum(each))
