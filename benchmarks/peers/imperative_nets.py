"""What the workers of `imperative.py` share: batches, parameters and optimizers."""

from __future__ import annotations

from typing import Any

import numpy as np

PROOF = 8  # steps whose loss is compared
STEPS = 20  # of the recurrent network
SHAPES = {"mlp": (784,), "transformer": (64, 128), "lstm": (STEPS, 128), "conv": (3, 64, 64)}
OPTIMIZERS: dict[str, tuple[str, dict[str, float]]] = {
    "mlp": ("sgd", {"learning_rate": 0.05, "momentum": 0.9, "wd": 0.0}),
    "transformer": ("adam", {"learning_rate": 1e-3, "wd": 0.0}),
    "lstm": ("adam", {"learning_rate": 1e-3, "wd": 0.0}),
    "conv": ("sgd", {"learning_rate": 0.05, "momentum": 0.9, "wd": 0.0}),
}
DENSE = {
    "mlp": [("fc1", 784, 128), ("fc2", 128, 64), ("fc3", 64, 10)],
    "transformer": [
        *((f"parts{k}", 128, 384) for k in range(2)),
        *((f"joined{k}", 128, 128) for k in range(2)),
        *((f"wide{k}", 128, 512) for k in range(2)),
        *((f"narrow{k}", 512, 128) for k in range(2)),
        ("out", 128, 10),
    ],
    "lstm": [("given", 128, 512), ("kept", 128, 512), ("out", 128, 10)],
    "conv": [("out", 8192, 10)],
}
CONVOLUTIONS = {"conv": [("c1", 3, 32), ("c2", 32, 32)]}  # 3 by 3
NORMS = {"transformer": [f"n{k}{part}" for k in range(2) for part in "ab"] + ["last"]}


def batch(net: str, size: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Inputs and their labels."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(size, *SHAPES[net])).astype("float32")
    return x, draw.integers(0, 10, size).astype("float32")


def parameters(net: str) -> dict[str, np.ndarray[Any, Any]]:
    """Weights by name."""
    draw = np.random.default_rng(1)
    found = {}
    for name, inputs, outputs in DENSE[net]:
        found[f"{name}_weight"] = draw.normal(size=(outputs, inputs)) * inputs**-0.5
        found[f"{name}_bias"] = np.zeros(outputs)
    for name, inputs, outputs in CONVOLUTIONS.get(net, ()):
        found[f"{name}_weight"] = draw.normal(size=(outputs, inputs, 3, 3)) * (9 * inputs) ** -0.5
        found[f"{name}_bias"] = np.zeros(outputs)
    for name in NORMS.get(net, ()):
        found[f"{name}_gamma"], found[f"{name}_beta"] = np.ones(128), np.zeros(128)
    return {name: value.astype("float32") for name, value in found.items()}
