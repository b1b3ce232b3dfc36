"""Worker: what a bound network holds: `memory_module.py PACKAGE NET BATCH [mirror]`, as JSON."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys

import nets
import symbols
from memory_status import held, held_later, seconds, status

PACKAGE, NET, BATCH, *MIRROR = sys.argv[1:]
if MIRROR:
    os.environ["MXNET_BACKWARD_DO_MIRROR"] = "1"
mx = importlib.import_module(PACKAGE)
SHAPES = {**nets.INPUTS, "resnet110": nets.INPUTS["resnet20"]}


def main() -> None:
    """Bind, run, and print what is held."""
    size = int(BATCH)
    before, held_before = status("VmRSS"), held()
    shapes = (nets.STEPS, size) if NET == "words" else (size, *SHAPES[NET])
    net = mx.sym.SoftmaxOutput(getattr(symbols, NET)(mx, size), name="softmax")
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
    later = held_later() - held_before
    print(json.dumps({"planned": planned, "later": later, "seconds": seconds(step),
                      "peak": status("VmHWM"), "more": status("VmHWM") - before}))  # fmt: skip


if __name__ == "__main__":
    main()
