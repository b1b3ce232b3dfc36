"""control.json and control.npz: networks with loops and choices, their files and what they give."""

import json

import control
import mxnet as mx
import numpy as np
from inputs import draw


def inputs(name, symbol, shapes):
    """The arrays of a network's inputs."""
    sizes = symbol.infer_shape_partial(**shapes)[0]
    return {
        n: np.full(s, control.VALUES[n], "f")
        if n in control.VALUES
        else draw(f"{name}:{n}", ["u", list(s), -1, 1])
        for n, s in zip(symbol.list_arguments(), sizes, strict=True)
    }


def run(name, symbol, values, wanted):
    """Outputs of training with its gradients, or of prediction."""
    args = {k: mx.nd.array(v) for k, v in values.items()}
    grads = {k: mx.nd.zeros(v.shape) for k, v in values.items()} if wanted else None
    bound = symbol.bind(mx.cpu(), args, grads, "write" if wanted else "null")
    outputs = bound.forward(is_train=wanted)
    found = {f"out{k}": o.asnumpy() for k, o in enumerate(outputs)}
    if wanted:
        heads = [draw(f"{name}:head{k}", ["n", list(o.shape)]) for k, o in enumerate(outputs)]
        bound.backward(list(map(mx.nd.array, heads)))
        found.update((f"grad:{k}", v.asnumpy()) for k, v in grads.items())
    return found


def make(folder) -> None:
    """Record all networks."""
    files, arrays = {}, {}
    for function, shapes in control.NETS.items():
        name, symbol = function.__name__, function(mx)
        files[name] = json.loads(symbol.tojson())
        values = inputs(name, symbol, shapes)
        try:
            found = run(name, symbol, values, wanted=True)
        except mx.MXNetError as error:  # loops in loops, and what a condition alone reads
            print(f"{name}: no gradient: {str(error).strip().splitlines()[-1]}")
            found = run(name, symbol, values, wanted=False)
        arrays.update((f"{name}/{k}", v) for k, v in found.items())
    (folder / "control.json").write_text(json.dumps(files, separators=(",", ":")) + "\n")
    np.savez_compressed(folder / "control.npz", **arrays)
    print(f"{len(files)} networks with control flow")
