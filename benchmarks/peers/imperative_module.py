"""Worker: imperative steps of gnomon or of MXNet: `imperative_module.py PACKAGE HOW`.

HOW is `imperative`; `called`, where each operator is computed as it is called; or `executor`, where
a Module computes the same formula.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import imperative_nets as nets
from protocol import Step, serve

PACKAGE, HOW = sys.argv[1:]
mx = importlib.import_module(PACKAGE)
if HOW == "called":
    importlib.import_module(f"{PACKAGE}.config").set("programs", False)

Table = dict[str, Any]


def dense(F: Any, x: Any, p: Table, name: str, size: int) -> Any:
    """A dense layer of the last axis."""
    weight, bias = p[f"{name}_weight"], p[f"{name}_bias"]
    return F.FullyConnected(x, weight, bias, num_hidden=size, flatten=False)


def entropy(F: Any, scores: Any, label: Any) -> Any:
    """The mean cross entropy."""
    return F.mean(-F.pick(F.log_softmax(scores), label, axis=1))


def mlp(F: Any, x: Any, p: Table) -> Any:
    """Layers of 128, 64 and 10."""
    x = F.relu(dense(F, x, p, "fc1", 128))
    x = F.relu(dense(F, x, p, "fc2", 64))
    return dense(F, x, p, "fc3", 10)


def norm(F: Any, x: Any, p: Table, name: str) -> Any:
    """A layer normalization of the last axis."""
    return F.LayerNorm(x, p[f"{name}_gamma"], p[f"{name}_beta"], axis=-1, eps=1e-5)


def block(F: Any, x: Any, p: Table, k: int) -> Any:
    """Attention by 4 heads over 128 numbers, then a dense layer of 512."""
    parts = dense(F, norm(F, x, p, f"n{k}a"), p, f"parts{k}", 384)
    parts = F.reshape(parts, shape=(0, 0, 3, 4, 32))
    parts = F.transpose(parts, axes=(2, 0, 3, 1, 4))
    parts = F.reshape(parts, shape=(3, -1, 64, 32))
    query, key, value = F.split(parts, num_outputs=3, axis=0, squeeze_axis=True)
    weights = F.softmax(F.batch_dot(query, key, transpose_b=True) * 32**-0.5, axis=-1)
    found = F.reshape(F.batch_dot(weights, value), shape=(-4, -1, 4, 0, 0))
    found = F.reshape(F.transpose(found, axes=(0, 2, 1, 3)), shape=(0, 0, -3))
    x = x + dense(F, found, p, f"joined{k}", 128)
    wide = F.LeakyReLU(dense(F, norm(F, x, p, f"n{k}b"), p, f"wide{k}", 512), act_type="gelu")
    return x + dense(F, wide, p, f"narrow{k}", 128)


def transformer(F: Any, x: Any, p: Table) -> Any:
    """Two blocks, and a dense layer of the mean over the sequence."""
    for k in range(2):
        x = block(F, x, p, k)
    return dense(F, F.mean(norm(F, x, p, "last"), axis=1), p, "out", 10)


def lstm(F: Any, x: Any, p: Table) -> Any:
    """A recurrent cell of 128, step by step; its last state is classified."""
    state = memory = None
    for xt in F.split(x, num_outputs=nets.STEPS, axis=1, squeeze_axis=True):
        gates = dense(F, xt, p, "given", 512)
        if state is not None:
            gates = gates + dense(F, state, p, "kept", 512)
        i, f, g, o = F.split(gates, num_outputs=4, axis=1)
        fresh = F.sigmoid(i) * F.tanh(g)
        memory = fresh if memory is None else F.sigmoid(f) * memory + fresh
        state = F.sigmoid(o) * F.tanh(memory)
    return dense(F, state, p, "out", 10)


def conv(F: Any, x: Any, p: Table) -> Any:
    """Two convolutions of 32 channels, each with a pooling."""
    for name in ("c1", "c2"):
        weight, bias = p[f"{name}_weight"], p[f"{name}_bias"]
        x = F.relu(F.Convolution(x, weight, bias, kernel=(3, 3), pad=(1, 1), num_filter=32))
        x = F.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
    return dense(F, F.Flatten(x), p, "out", 10)


NETS = {"mlp": mlp, "transformer": transformer, "lstm": lstm, "conv": conv}


def imperative(net: Any, params: Table, x: Any, label: Any, update: Any) -> tuple[Step, Any]:
    """A step operator by operator."""
    for array in params.values():
        array.attach_grad()
    weights, last = tuple(params.values()), [None]
    keys, grads = tuple(range(len(weights))), tuple(w.grad for w in weights)

    def step() -> None:
        with mx.autograd.record():
            last[0] = loss = entropy(mx.nd, net(mx.nd, x, params), label)
        loss.backward()
        update(keys, grads, weights)

    return step, lambda: last[0]


def bound(net: Any, params: Table, x: Any, label: Any, optimizer: Any) -> tuple[Step, Any]:
    """A step of a Module."""
    variables = {name: mx.sym.Variable(name) for name in params}
    scores = net(mx.sym, mx.sym.Variable("data"), variables)
    loss = mx.sym.MakeLoss(entropy(mx.sym, scores, mx.sym.Variable("label")))
    module = mx.mod.Module(loss, label_names=("label",))
    module.bind([("data", x.shape)], [("label", label.shape)])
    module.init_params(arg_params=params)
    module.init_optimizer(optimizer=optimizer)
    batch = mx.io.DataBatch([x], [label])

    def step() -> None:
        module.forward_backward(batch)
        module.update()

    return step, lambda: module.get_outputs()[0]


def setup(net: str, size: int) -> tuple[Step, Step, dict[str, Any]]:
    """A network with an optimizer; its loss after some steps."""
    x, label = map(mx.nd.array, nets.batch(net, size))
    params = {name: mx.nd.array(value) for name, value in nets.parameters(net).items()}
    kind, settings = nets.OPTIMIZERS[net]
    optimizer = mx.optimizer.create(kind, **settings)
    if HOW == "executor":
        step, last = bound(NETS[net], params, x, label, optimizer)
    else:
        update = mx.optimizer.get_updater(optimizer)
        step, last = imperative(NETS[net], params, x, label, update)
    for _ in range(nets.PROOF):
        step()
    return step, mx.nd.waitall, {"loss": float(last().asnumpy().mean())}


if __name__ == "__main__":
    serve(f"{PACKAGE} {mx.__version__} {HOW}", setup)
