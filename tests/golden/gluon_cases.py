"""Losses, recurrent layers and networks of Gluon, run alike by the real library and by gnomon.

Every function takes the package, `mx`, and gives numbers and names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

NETWORKS = [
    "alexnet", "densenet121", "densenet161", "densenet169", "densenet201", "inceptionv3",
    *(f"mobilenet{w}" for w in ("0.25", "0.5", "0.75", "1.0")),
    *(f"mobilenetv2_{w}" for w in ("0.25", "0.5", "0.75", "1.0")),
    *(f"resnet{n}_v{v}" for n in (18, 34, 50, 101, 152) for v in (1, 2)),
    "squeezenet1.0", "squeezenet1.1",
    *(f"vgg{n}{bn}" for n in (11, 13, 16, 19) for bn in ("", "_bn")),
]  # fmt: skip
# name of a network -> keyword arguments, and the shape of an input that it computes
SMALL = {
    "resnet18_v1": ({"thumbnail": True}, (2, 3, 16, 16)),
    "resnet18_v2": ({"thumbnail": True}, (2, 3, 16, 16)),
    "mobilenet0.25": ({}, (2, 3, 32, 32)),
    "mobilenetv2_0.25": ({}, (2, 3, 32, 32)),
}
# the same of all others, which take longer, each in the smallest size that its poolings allow
SIZES = {"alexnet": 80, "densenet": 224, "inception": 299, "mobile": 32, "squeeze": 224, "vgg": 32}
LARGE = {
    name: (
        {"thumbnail": True} if name.startswith("resnet") else {},
        (2, 3, *[next((size for kind, size in SIZES.items() if name.startswith(kind)), 16)] * 2),
    )
    for name in NETWORKS
    if name not in SMALL
}


def described(mx: Any, name: str) -> list[Any]:
    """Names and shapes of parameters, names in files, and operators of a network of the zoo."""
    net = mx.gluon.model_zoo.vision.get_model(name)
    symbol = net(mx.sym.Variable("data"))
    size = 299 if name == "inceptionv3" else 224
    args, outs, auxs = symbol.infer_shape(data=(1, 3, size, size))
    names = symbol.list_arguments(), symbol.list_auxiliary_states()
    shapes = {**dict(zip(names[0], args)), **dict(zip(names[1], auxs))}  # noqa: B905
    begin = len(net.prefix)
    params = [[n[begin:], list(shapes[n])] for n in net.collect_params() if n in shapes]
    nodes = json.loads(symbol.tojson())["nodes"]
    operators = [
        [n["op"], {k: v for k, v in sorted(n.get("attrs", {}).items()) if k[0] != "_"}]
        for n in nodes
        if n["op"] != "null"
    ]
    return [params, list(net._collect_params_with_prefix()), operators, [list(o) for o in outs]]


def set_params(mx: Any, net: Any, scale: float = 0.5) -> None:
    """Give parameters, in the order of their names, numbers that both libraries draw alike."""
    rng = np.random.RandomState(0)
    params = net.collect_params()
    for name in sorted(params, key=lambda n: n[len(net.prefix) :]):
        shape = params[name].shape
        values = rng.uniform(-scale, scale, shape)
        if name.endswith(("gamma", "var")):
            values = np.abs(values) + 0.5
        params[name].set_data(mx.nd.array(values.astype("f")))


def outputs(mx: Any, name: str, hybrid: bool) -> list[Any]:
    """What a network gives, and a small one in training too, with gradients of two parameters."""
    more, shape = {**SMALL, **LARGE}[name]
    net = mx.gluon.model_zoo.vision.get_model(name, classes=5, **more)
    net.initialize()
    x = mx.nd.array(np.random.RandomState(1).normal(size=shape).astype("f"))
    net(x)
    set_params(mx, net, 0.1)
    if hybrid:
        net.hybridize()
    seen = net(x).asnumpy()
    if name in LARGE or name.startswith("mobile"):  # the last are normalized over two numbers
        return [seen.astype("d").round(5).ravel().tolist()]
    with mx.autograd.record():
        y = net(x)
    y.backward()
    params = list(net.collect_params().values())
    trained = [p for p in params if p.grad_req != "null"]
    grads = [trained[k].grad().asnumpy().ravel()[:12] for k in (0, -1)]
    return [a.astype("d").round(5).ravel().tolist() for a in (seen, y.asnumpy(), *grads)]


# --- losses ---------------------------------------------------------------------------------------


def losses(mx: Any) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Titles, losses, and what they are called with."""
    rng = np.random.RandomState(0)
    loss = mx.gluon.loss
    p, q = rng.normal(size=(4, 3)), rng.rand(4, 3)
    bits, signs = (rng.rand(4, 3) > 0.5) * 1.0, np.sign(rng.normal(size=(4, 3)))
    classes, pairs = rng.randint(0, 3, 4), np.sign(rng.normal(size=4))
    weight, positive = rng.rand(4, 1), rng.rand(1, 3)
    counts, chances = rng.poisson(2, (4, 3)), np.exp(p) / np.exp(p).sum(1, keepdims=True)
    cube, logs = rng.rand(2, 3, 4), np.log(rng.rand(2, 3, 4))
    yield "L2", loss.L2Loss(), (p, q)
    yield "L2 weighted", loss.L2Loss(weight=3.0), (p, q, weight)
    yield "L1", loss.L1Loss(batch_axis=1), (p, q)
    yield "BCE", loss.SigmoidBCELoss(), (p, bits)
    yield "BCE weighted", loss.SigmoidBCELoss(), (p, bits, weight, positive)
    yield "BCE of chances", loss.SigmoidBCELoss(from_sigmoid=True), (q, bits)
    yield "BCE of chances, weighted", loss.SigmoidBCELoss(True), (q, bits, weight, positive)
    yield "CE", loss.SoftmaxCELoss(), (p, classes)
    yield "CE dense", loss.SoftmaxCELoss(sparse_label=False, axis=0), (p, chances)
    yield "CE of logits", loss.SoftmaxCELoss(from_logits=True), (np.log(chances), classes, weight)
    yield "KL", loss.KLDivLoss(), (np.log(chances), q)
    yield "KL of scores", loss.KLDivLoss(from_logits=False, axis=0), (p, q)
    yield "KL of 3 axes", loss.KLDivLoss(batch_axis=1, axis=0), (logs, cube)
    yield "Huber", loss.HuberLoss(rho=0.5), (p, q)
    yield "hinge", loss.HingeLoss(), (p, signs)
    yield "squared hinge", loss.SquaredHingeLoss(margin=2), (p, signs, weight)
    yield "logistic", loss.LogisticLoss(), (p, signs)
    yield "logistic of bits", loss.LogisticLoss(label_format="binary", weight=2.0), (p, bits)
    yield "triplet", loss.TripletLoss(weight=2.0, margin=0.1), (p, q, bits)
    yield "Poisson", loss.PoissonNLLLoss(), (p, counts)
    yield "Poisson of means", loss.PoissonNLLLoss(from_logits=False), (q, counts, weight)
    yield "cosine", loss.CosineEmbeddingLoss(margin=0.1), (p, q, pairs)
    yield "cosine weighted", loss.CosineEmbeddingLoss(weight=2.0), (p, q, pairs, weight)
    yield "SDML", loss.SDMLLoss(0.1, weight=2.0), (p, q)


def measured(mx: Any, loss: Any, arrays: tuple[Any, ...], dtype: str = "float32") -> list[Any]:
    """A loss, and the gradient of what it is called with first."""
    given = [mx.nd.array(a, dtype=dtype) for a in arrays]
    given[0].attach_grad()
    with mx.autograd.record():
        found = loss(*given)
    found.backward()
    pair = found.asnumpy(), given[0].grad.asnumpy()
    return [list(found.shape), *(a.astype("d").round(6).ravel().tolist() for a in pair)]


# --- recurrent layers and cells -------------------------------------------------------------------


def layers(mx: Any) -> Iterator[tuple[str, Callable[[], Any], str]]:
    """Titles, functions that make a layer, and the layout of its inputs."""
    rnn = mx.gluon.rnn
    yield "RNN", lambda: rnn.RNN(4, 2, input_size=3), "TNC"
    yield "RNN tanh", lambda: rnn.RNN(4, 1, "tanh", layout="NTC"), "NTC"
    yield "LSTM", lambda: rnn.LSTM(4, 2, bidirectional=True), "TNC"
    yield "LSTM NTC", lambda: rnn.LSTM(4, layout="NTC", dropout=0.3), "NTC"
    yield "GRU", lambda: rnn.GRU(4, 2, bidirectional=True, layout="NTC"), "NTC"


def cells(mx: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Titles, and functions that make a cell."""
    rnn, more = mx.gluon.rnn, mx.gluon.contrib.rnn
    yield "RNNCell", lambda: rnn.RNNCell(4, "relu")
    yield "LSTMCell", lambda: rnn.LSTMCell(4)
    yield "GRUCell", lambda: rnn.GRUCell(4, input_size=3)
    yield (
        "both",
        lambda: rnn.BidirectionalCell(rnn.LSTMCell(4, prefix="a_"), rnn.GRUCell(4, prefix="b_")),
    )
    yield "zoneout", lambda: rnn.ZoneoutCell(rnn.LSTMCell(4), 0.3, 0.2)
    yield "dropout", lambda: more.VariationalDropoutCell(rnn.LSTMCell(4), 0.1, 0.2, 0.3)
    yield "LSTMP", lambda: more.LSTMPCell(4, 2)
    yield "stack", lambda: stack(mx, rnn.HybridSequentialRNNCell())
    yield "sequence", lambda: stack(mx, rnn.SequentialRNNCell())
    yield "unfused", lambda: rnn.LSTM(4, 2, bidirectional=True, dropout=0.2)._unfuse()


def stack(mx: Any, cells: Any) -> Any:
    """Three cells one after the other."""
    rnn = mx.gluon.rnn
    with cells.name_scope():
        cells.add(rnn.LSTMCell(4))
        cells.add(rnn.DropoutCell(0.3))
        cells.add(rnn.ResidualCell(rnn.GRUCell(4)))
    return cells


def sequence(mx: Any, layout: str) -> Any:
    """Three sequences of five steps, three numbers each."""
    values = np.random.RandomState(2).normal(size=(3, 5, 3)).astype("f")
    return mx.nd.array(values if layout == "NTC" else values.swapaxes(0, 1))


def gradients(block: Any) -> list[Any]:
    """Some numbers of the gradient of each parameter."""
    grads = [p.grad().asnumpy() for p in block.collect_params().values()]
    return [a.astype("d").round(4).ravel().tolist()[::7] for a in grads]


def unrolled(
    mx: Any, make: Callable[[], Any], layout: str, valid: bool, hybrid: bool = False
) -> list[Any]:
    """Names of parameters, outputs and final states of a cell, and gradients."""
    cell = make()
    cell.initialize()
    lengths = mx.nd.array([5, 2, 3]) if valid else None
    x = sequence(mx, layout)
    how = {"layout": layout, "merge_outputs": True, "valid_length": lengths}
    cell.unroll(5, x, **how)
    set_params(mx, cell)
    if hybrid:
        cell.hybridize()
    x.attach_grad()
    with mx.autograd.record(train_mode=False):
        outputs, states = cell.unroll(5, x, **how)
        total = outputs.sum() + sum(s.sum() for s in states)
    total.backward()
    arrays = [outputs, *states, x.grad]
    begin = len(cell.prefix)
    names = [[n[begin:], list(p.shape)] for n, p in cell.collect_params().items()]
    found = [a.asnumpy().astype("d").round(5).ravel().tolist() for a in arrays]
    return [names, *found, *gradients(cell)]


def run(mx: Any, make: Callable[[], Any], layout: str, hybrid: bool = False) -> list[Any]:
    """Names of parameters, outputs, final states and gradients of a layer."""
    layer = make()
    layer.initialize()
    x = sequence(mx, layout)
    layer(x)
    set_params(mx, layer)
    if hybrid:
        layer.hybridize()
    x.attach_grad()
    with mx.autograd.record(train_mode=False):
        outputs, states = layer(x, layer.begin_state(batch_size=3))
        total = outputs.sum() + sum((s * s).sum() for s in states)
    total.backward()
    begin = len(layer.prefix)
    names = [[n[begin:], list(p.shape)] for n, p in layer.collect_params().items()]
    arrays = [outputs, *states, x.grad]
    found = [a.asnumpy().astype("d").round(5).ravel().tolist() for a in arrays]
    return [names, *found, *gradients(layer)]


def images(mx: Any) -> Iterator[tuple[str, Any, tuple[int, ...]]]:
    """Titles, convolutional cells, and the shape of an input."""
    shapes = {1: (3, 7), 2: (3, 6, 5), 3: (3, 4, 5, 4)}
    for dims, shape in shapes.items():
        for kind in ("RNN", "LSTM", "GRU"):
            make = getattr(mx.gluon.contrib.rnn, f"Conv{dims}D{kind}Cell")
            yield f"{dims} {kind}", make(shape, 2, 3, 3, i2h_pad=1), (2, *shape)


def stepped(mx: Any, cell: Any, shape: tuple[int, ...], hybrid: bool = False) -> list[Any]:
    """Two steps of a convolutional cell, and gradients."""
    cell.initialize()
    set_params(mx, cell)
    if hybrid:
        cell.hybridize()
    x = mx.nd.array(np.random.RandomState(3).normal(size=shape).astype("f"))
    x.attach_grad()
    with mx.autograd.record(train_mode=False):
        _, states = cell(x, cell.begin_state(batch_size=2))
        output, states = cell(x, states)
    output.backward()
    begin = len(cell.prefix)
    names = [[n[begin:], list(p.shape)] for n, p in cell.collect_params().items()]
    found = [a.asnumpy().astype("d").round(5).ravel().tolist()[::3] for a in (output, x.grad)]
    return [names, *found, *gradients(cell)]


def record(mx: Any) -> dict[str, Any]:
    """All of it."""
    ways = [(layout, valid) for layout in ("NTC", "TNC") for valid in (False, True)]
    return {
        "networks": {name: described(mx, name) for name in NETWORKS},
        "outputs": {name: outputs(mx, name, False) for name in (*SMALL, *LARGE)},
        "losses": {name: measured(mx, loss, given) for name, loss, given in losses(mx)},
        "layers": {name: run(mx, make, layout) for name, make, layout in layers(mx)},
        "cells": {
            f"{name} {layout} {valid}": unrolled(mx, make, layout, valid)
            for name, make in cells(mx)
            for layout, valid in ways
            if not (name == "unfused" and valid)
        },
        "images": {name: stepped(mx, cell, shape) for name, cell, shape in images(mx)},
    }
