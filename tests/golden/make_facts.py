"""facts.json: values of metrics, extent and spread of initial values, initializers as text."""

import json
import sys
from pathlib import Path

import mxnet as mx
import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from golden import facts


def spread(name):
    """Least, greatest, mean and standard deviation, and the initializer as JSON has it."""
    values = facts.initialize(mx, name)
    create = facts.INITIALIZERS[name][0]
    numbers = [values.min(), values.max(), values.mean(), values.std()]
    return {"values": [float(n) for n in numbers], "text": create(mx.init).dumps()}


def make(folder) -> None:
    """Write them."""
    mx.random.seed(3)
    np.random.seed(3)
    found = {
        "metrics": {name: facts.measure(mx, name) for name in facts.METRICS},
        "initializers": {name: spread(name) for name in facts.INITIALIZERS},
    }
    (folder / "facts.json").write_text(json.dumps(found, indent=1) + "\n")
