"""Worker: what a bound network holds: `memory_module.py PACKAGE NET BATCH [mirror]`, as JSON."""

from __future__ import annotations

import importlib
import json
import os
import re
import statistics
import sys
import time
from pathlib import Path
from typing import Any

PACKAGE, NET, BATCH, *MIRROR = sys.argv[1:]
if MIRROR:
    os.environ["MXNET_BACKWARD_DO_MIRROR"] = "1"
mx = importlib.import_module(PACKAGE)
STEPS, SIZE, WORDS = 35, 200, 10_000


def mlp() -> Any:
    x = mx.sym.Variable("data")
    for i, width in enumerate((128, 64), 1):
        x = mx.sym.FullyConnected(x, name=f"fc{i}", num_hidden=width)
        x = mx.sym.Activation(x, act_type="relu")
    return mx.sym.FullyConnected(x, name="fc3", num_hidden=10)


def lenet() -> Any:
    x = mx.sym.Variable("data")
    for i, width in enumerate((20, 50), 1):
        x = mx.sym.Convolution(x, name=f"conv{i}", kernel=(5, 5), num_filter=width)
        x = mx.sym.Activation(x, act_type="tanh")
        x = mx.sym.Pooling(x, pool_type="max", kernel=(2, 2), stride=(2, 2))
    x = mx.sym.FullyConnected(mx.sym.Flatten(x), name="fc1", num_hidden=500)
    x = mx.sym.Activation(x, act_type="tanh")
    return mx.sym.FullyConnected(x, name="fc2", num_hidden=10)


def normalized(x: Any, name: str, filters: int, kernel: int, stride: int = 1) -> Any:
    sizes = {"kernel": (kernel, kernel), "stride": (stride, stride), "pad": (kernel // 2,) * 2}
    x = mx.sym.Convolution(x, name=f"{name}_conv", num_filter=filters, no_bias=True, **sizes)
    return mx.sym.BatchNorm(x, name=f"{name}_bn", fix_gamma=False, eps=1e-5, momentum=0.9)


def relu(x: Any) -> Any:
    return mx.sym.Activation(x, act_type="relu")


def resnet(depth: int) -> Any:
    """The residual network of `depth` layers for pictures of 32 by 32, version 1."""
    x, inputs = relu(normalized(mx.sym.Variable("data"), "stem", 16, 3)), 16
    for filters in (16, 32, 64):
        for unit in range((depth - 2) // 6):
            name, stride = f"s{filters}u{unit}", 2 if filters != inputs else 1
            y = relu(normalized(x, f"{name}_a", filters, 3, stride))
            y = normalized(y, f"{name}_b", filters, 3)
            x = normalized(x, f"{name}_short", filters, 1, stride) if stride > 1 else x
            x, inputs = relu(x + y), filters
    x = mx.sym.Pooling(x, pool_type="avg", global_pool=True, kernel=(8, 8))
    return mx.sym.FullyConnected(mx.sym.Flatten(x), name="fc", num_hidden=10)


def lstm() -> Any:
    """Two layers over words, every step classified."""
    x = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=WORDS, output_dim=SIZE, name="embed")
    x = mx.sym.RNN(x, mode="lstm", state_size=SIZE, num_layers=2, name="rnn")
    return mx.sym.FullyConnected(mx.sym.Reshape(x, shape=(-1, SIZE)), num_hidden=WORDS, name="fc")


NETS = {
    "mlp": (mlp, (784,)),
    "lenet": (lenet, (1, 28, 28)),
    "resnet20": (lambda: resnet(20), (3, 32, 32)),
    "resnet110": (lambda: resnet(110), (3, 32, 32)),
    "lstm": (lstm, None),
}


def status(key: str) -> int:
    """A number of /proc/self/status in bytes."""
    found = re.search(rf"{key}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) << 10 if found else 0


def seconds(step: Any) -> float:
    """The median time of a step."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> None:
    """Bind, run, and print what is held."""
    make, shape = NETS[NET]
    before = status("VmRSS")
    shapes = (STEPS, int(BATCH)) if shape is None else (int(BATCH), *shape)
    net = mx.sym.SoftmaxOutput(make(), name="softmax")
    requests = {n: "null" if n in ("data", "softmax_label") else "write"
                for n in net.list_arguments()}  # fmt: skip
    bound = net.simple_bind(mx.cpu(), grad_req=requests, data=shapes)
    for name, array in bound.arg_dict.items():
        array[:] = 0 if name in ("data", "softmax_label") else 0.01

    def step() -> None:
        bound.forward(is_train=True)
        bound.backward()
        mx.nd.waitall()

    step()
    listing = bound.debug_str()
    exact = re.search(r"(\d+) bytes between operators", listing)
    planned = int(exact[1]) if exact else int(re.search(r"Total (\d+) MB", listing)[1]) << 20
    print(json.dumps({"planned": planned, "seconds": seconds(step),
                      "peak": status("VmHWM") - before}))  # fmt: skip


if __name__ == "__main__":
    main()
