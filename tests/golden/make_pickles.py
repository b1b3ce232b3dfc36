"""pickles.json: what MXNet pickles whole, and what it computes or says once it is read again."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
import pickled
from mxnet import gluon
from mxnet.gluon import nn, rnn

X = np.linspace(-1, 1, 8).reshape(2, 4).astype("float32")
LABEL, SCORES = [0, 1, 1, 0], [[0.6, 0.4], [0.3, 0.7], [0.8, 0.2], [0.9, 0.1]]


def network() -> Any:
    """A network of several kinds of layers."""
    net = nn.HybridSequential()
    net.add(nn.Dense(3, activation="tanh", in_units=4), nn.BatchNorm(in_channels=3), nn.Dense(2))
    return net


def symbolic() -> Any:
    """A block of a symbol."""
    x = mx.sym.var("data")
    return gluon.SymbolBlock(mx.sym.FullyConnected(x, num_hidden=2, name="fc"), x)


BLOCKS: dict[str, Callable[[], Any]] = {
    "network": network,
    "symbol": symbolic,
    "loss": lambda: gluon.loss.L1Loss(weight=2),
}
LAYERS: dict[str, Callable[[], Any]] = {
    "lstm": lambda: rnn.LSTM(2, 2, bidirectional=True),
    "projected": lambda: rnn.LSTM(3, projection_size=2),
    "gru": lambda: rnn.GRU(2, layout="NTC"),
    "tanh": lambda: rnn.RNN(2, activation="tanh"),
    "cell": lambda: rnn.LSTMCell(2),
}
METRICS: dict[str, Any] = {
    "f1": mx.metric.F1,
    "f1 of all": lambda: mx.metric.F1(average="micro"),
    "mcc": mx.metric.MCC,
    "mcc of all": lambda: mx.metric.MCC(average="micro"),
    "pcc": mx.metric.PCC,
    "correlation": mx.metric.PearsonCorrelation,
    "correlation of all": lambda: mx.metric.PearsonCorrelation(average="micro"),
}


def _run(name: str, block: Any) -> np.ndarray:
    x = mx.nd.array(X)
    if name == "loss":
        return block(x, x * 0).asnumpy()
    if name == "cell":
        return block(x, block.begin_state(2))[0].asnumpy()
    return block(x.reshape((2, 1, 4)) if name in LAYERS else x).asnumpy()


def _block(name: str, make: Callable[[], Any]) -> dict[str, Any]:
    block = make()
    block.initialize(mx.init.Uniform(1))
    _run(name, block)  # the shapes of all parameters follow from it
    block._clear_cached_op()  # handles cannot be pickled
    data = pickle.dumps(block)
    return {"pickle": base64.b64encode(data).decode(), "output": _run(name, block).tolist()}


def _metric(make: Callable[[], Any]) -> dict[str, Any]:
    metric = make()
    scores = mx.nd.array(SCORES)
    if isinstance(metric, mx.metric.PearsonCorrelation):  # of two arrays of one shape
        scores = scores[:, 1]
    batch = [mx.nd.array(LABEL)], [scores]
    metric.update(*batch)
    data = pickle.dumps(metric)
    metric.reset_local()
    metric.update([1 - batch[0][0]], [scores * scores])
    after = [metric.get()[1], metric.get_global()[1]]
    return {"pickle": base64.b64encode(data).decode(), "after": after}


def make(folder: Path) -> None:
    """Write them."""
    mx.random.seed(1)
    dense = mx.nd.array([[0, 1, 0], [0, 0, 0], [2, 0, 3]])
    kinds = {kind: dense.tostype(kind) for kind in ("csr", "row_sparse")}
    found = {
        "x": X.tolist(),
        "label": LABEL,
        "scores": SCORES,
        "blocks": {name: _block(name, make) for name, make in {**BLOCKS, **LAYERS}.items()},
        "metrics": {name: _metric(make) for name, make in METRICS.items()},
        "dense": dense.asnumpy().tolist(),
        "arrays": {k: base64.b64encode(pickle.dumps(x)).decode() for k, x in kinds.items()},
        "others": {name: _other(name, thing) for name, thing in pickled.made(mx).items()},
        "training": _training(),
        "deferred": base64.b64encode(pickle.dumps(_deferred())).decode(),
    }
    (folder / "pickles.json").write_text(json.dumps(found, indent=1) + "\n")


def _other(name: str, thing: Any) -> dict[str, Any]:
    data = pickle.dumps(thing)
    return {
        "pickle": base64.b64encode(data).decode(),
        "output": pickled.used(mx, name, pickle.loads(data)),
    }


def _training() -> dict[str, Any]:
    """A network and its trainer after two steps, and what it gives after another one."""
    net = nn.Dense(2, in_units=4)
    net.initialize(mx.init.Constant(0.5))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    x = mx.nd.array(X)
    found = {}
    for number in range(3):
        if number == 2:
            found["pickle"] = base64.b64encode(pickle.dumps((net, trainer))).decode()
        with mx.autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(2)
    return {**found, "output": net(x).asnumpy().tolist()}


def _deferred() -> Any:
    """A layer whose parameters wait for their shapes."""
    layer = nn.Dense(2)
    layer.initialize(mx.init.One())
    layer.weight.lr_mult = 3
    return layer
