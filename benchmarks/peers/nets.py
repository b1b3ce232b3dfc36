"""The networks of the training benchmark as numbers: shapes, first parameters, a batch.

The same arrays for every peer, so that their losses can be compared.
"""

from __future__ import annotations

import numpy as np

LEARNING_RATE, MOMENTUM = 0.01, 0.9
CLASSES = 10
INPUTS = {"mlp": (784,), "lenet": (1, 28, 28)}
SHAPES = {
    "mlp": {"fc1": (128, 784), "fc2": (64, 128), "fc3": (10, 64)},
    "lenet": {"conv1": (20, 1, 5, 5), "conv2": (50, 20, 5, 5), "fc1": (500, 800), "fc2": (10, 500)},
}


def parameters(net: str) -> dict[str, np.ndarray]:
    """`fc1_weight`, `fc1_bias`, ... in the order of the layers."""
    rng = np.random.RandomState(11)
    found = {}
    for layer, shape in SHAPES[net].items():
        bound = np.sqrt(3.0 / np.prod(shape[1:]))
        found[f"{layer}_weight"] = rng.uniform(-bound, bound, shape).astype(np.float32)
        found[f"{layer}_bias"] = np.zeros(shape[0], np.float32)
    return found


def batch(net: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures (size, ...) and labels (size,) of int64."""
    rng = np.random.RandomState(12)
    pictures = rng.standard_normal((size, *INPUTS[net])).astype(np.float32)
    return pictures, rng.randint(0, CLASSES, size)


def loss(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Mean cross-entropy."""
    picked = probabilities[np.arange(len(labels)), labels]
    return float(-np.log(np.maximum(picked, 1e-30)).mean())


PROOF = 5  # steps after which the losses are compared
