"""Record what MXNet's device store makes of gradients that it compresses; run by MXNet's Python."""

import json
from pathlib import Path

import mxnet as mx
import numpy as np

ROUNDS, SHAPE = 6, (3, 3)


def rounds(devices, threshold):
    """The values of each round, one a device, and what is pulled after they were pushed."""
    store = mx.kv.create("device")
    store.set_gradient_compression({"type": "2bit", "threshold": threshold})
    store.init("w", mx.nd.zeros(SHAPE))
    draw, out, found = np.random.RandomState(devices), mx.nd.zeros(SHAPE), []
    for _ in range(ROUNDS):
        values = [draw.randn(*SHAPE).round(2).astype("f4") for _ in range(devices)]
        store.push("w", [mx.nd.array(v, ctx=mx.cpu(i)) for i, v in enumerate(values)])
        store.pull("w", out=out)
        found.append([[v.tolist() for v in values], out.asnumpy().tolist()])
    return found


cases = [
    {"devices": devices, "threshold": threshold, "rounds": rounds(devices, threshold)}
    for devices in (1, 2, 3)
    for threshold in (0.5, 0.75)
]
Path(__file__).with_name("compression.json").write_text(json.dumps(cases) + "\n")
