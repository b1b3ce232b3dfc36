"""states.json: optimizer states as MXNet pickles them, and the next update from there."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "momentum": ("sgd", {"momentum": 0.9}),
    "schedule": ("adam", {"lr_scheduler": mx.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.1)}),
    "ftml": ("ftml", {}),
    "float16": ("adam", {"multi_precision": True}),
    "steps": (
        "nag",
        {"momentum": 0.9, "lr_scheduler": mx.lr_scheduler.MultiFactorScheduler([2, 3], 0.5)},
    ),
    "large batches": ("lbsgd", {"momentum": 0.9}),
}


def case(name: str, arguments: dict[str, Any], rng: np.random.RandomState) -> dict[str, Any]:
    """States after three updates, without and with the optimizer, and the fourth update."""
    dtype = "float16" if arguments.get("multi_precision") else "float32"
    updater = mx.optimizer.get_updater(mx.optimizer.create(name, **arguments))
    weight = mx.nd.array([1.0, -2.0, 3.0], dtype=dtype)
    grads = [mx.nd.array(rng.randn(3), dtype=dtype) for _ in range(4)]
    for grad in grads[:3]:
        updater(0, grad, weight)
    found = {
        "optimizer": name,
        "dtype": dtype,
        "before": weight.asnumpy().tolist(),
        "grad": grads[3].asnumpy().tolist(),
        "states": base64.b64encode(updater.get_states()).decode(),
        "with_optimizer": base64.b64encode(updater.get_states(True)).decode(),
    }
    updater(0, grads[3], weight)
    return {**found, "after": weight.asnumpy().tolist()}


def make(folder: Path) -> None:
    """Write them."""
    rng = np.random.RandomState(0)
    found = {name: case(*of, rng) for name, of in CASES.items()}
    (folder / "states.json").write_text(json.dumps(found, indent=1) + "\n")
