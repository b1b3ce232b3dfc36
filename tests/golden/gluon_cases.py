"""Losses, recurrent layers and networks of Gluon, run alike by the real library and by gnomon.

Every function takes the package, `mx`, and gives numbers and names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

NETWORKS = [
    "alexnet", "densenet121", "densenet161", "densenet169", "densenet201", "inceptionv3",
    *(f"mobilenet{w}" for w in ("0.25", "0.5", "0.75", "1.0")),
    *(f"mobilenetv2_{w}" for w in ("0.25", "0.5", "0.75", "1.0")),
    *(f"resnet{n}_v{v}" for n in (18, 34, 50, 101, 152) for v in (1, 2)),
    "squeezenet1.0", "squeezenet1.1",
    *(f"vgg{n}{bn}" for n in (11, 13, 16, 19) for bn in ("", "_bn")),
]  # fmt: skip


class How(NamedTuple):
    """How a block computes: hybridized or not, in which precision, and in which one before."""

    hybrid: bool = False
    dtype: str = "float32"
    before: str | None = None


PLAIN = How()


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
        params[name].set_data(mx.nd.array(values.astype("f"), dtype=params[name].dtype))


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
    steps = np.random.RandomState(0).normal(size=(2, 6, 4))
    words = np.array([[1, 2, -1], [0, 2, 1]], "d")
    yield "CTC", loss.CTCLoss(), (steps, words)
    yield "CTC of TNC", loss.CTCLoss("TNC", weight=2.0), (steps.swapaxes(0, 1), words)
    yield "CTC of TN", loss.CTCLoss("NTC", "TN"), (steps, words.T, None, [2, 3])
    yield "CTC of lengths", loss.CTCLoss(), (steps, words, [5, 6], [1, 3])


def measured(mx: Any, loss: Any, arrays: tuple[Any, ...], how: How = PLAIN) -> list[Any]:
    """A loss, and the gradients of all that it is called with."""
    loss.hybridize(how.hybrid)
    given = [None if a is None else mx.nd.array(a, dtype=how.dtype) for a in arrays]
    there = [x for x in given if x is not None]
    for x in there:
        x.attach_grad()
    with mx.autograd.record():
        found = loss(*given)
    found.backward()
    numbers = [found.asnumpy(), *(x.grad.asnumpy() for x in there)]
    return [list(found.shape), *(a.astype("d").round(6).ravel().tolist() for a in numbers)]


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


def sequence(mx: Any, layout: str, dtype: str) -> Any:
    """Three sequences of five steps, three numbers each."""
    values = np.random.RandomState(2).normal(size=(3, 5, 3)).astype("f")
    return mx.nd.array(values if layout == "NTC" else values.swapaxes(0, 1), dtype=dtype)


def prepared(mx: Any, block: Any, call: Callable[[str], Any], how: How) -> None:
    """Initialize a block, let it compute as `how` says, and give it numbers of its own.

    `call` calls the block with arrays of a type.
    """
    block.initialize()
    block.cast(how.before or how.dtype)
    if any(0 in param.shape for param in block.collect_params().values()):
        call(how.before or how.dtype)  # which decides shapes
    if how.before:
        call(how.before)
        block.hybridize()
        call(how.before)
        block.hybridize(False)
        block.cast(how.dtype)
    set_params(mx, block)
    block.hybridize(how.hybrid)


def gradients(block: Any) -> list[Any]:
    """Some numbers of the gradient of each parameter."""
    grads = [p.grad().asnumpy() for p in block.collect_params().values()]
    return [a.astype("d").round(4).ravel().tolist()[::7] for a in grads]


def unrolled(
    mx: Any, make: Callable[[], Any], layout: str, valid: bool, how: How = PLAIN
) -> list[Any]:
    """Names of parameters, outputs and final states of a cell, and gradients."""
    cell = make()

    def call(dtype: str) -> Any:
        lengths = mx.nd.array([5, 2, 3], dtype=dtype) if valid else None
        return cell.unroll(5, x.astype(dtype), None, layout, True, lengths)

    x = sequence(mx, layout, how.dtype)
    prepared(mx, cell, call, how)
    x.attach_grad()
    with mx.autograd.record(train_mode=False):
        outputs, states = call(how.dtype)
        total = outputs.sum() + sum(s.sum() for s in states)
    total.backward()
    arrays = [outputs, *states, x.grad]
    begin = len(cell.prefix)
    names = [[n[begin:], list(p.shape)] for n, p in cell.collect_params().items()]
    found = [a.asnumpy().astype("d").round(5).ravel().tolist() for a in arrays]
    return [names, *found, *gradients(cell)]


def run(mx: Any, make: Callable[[], Any], layout: str, how: How = PLAIN) -> list[Any]:
    """Names of parameters, outputs, final states and gradients of a layer."""
    layer, x = make(), sequence(mx, layout, how.dtype)
    prepared(mx, layer, lambda dtype: layer(x.astype(dtype)), how)
    x.attach_grad()
    with mx.autograd.record(train_mode=False):
        outputs, states = layer(x, layer.begin_state(batch_size=3, dtype=how.dtype))
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


def stepped(mx: Any, cell: Any, shape: tuple[int, ...], how: How = PLAIN) -> list[Any]:
    """Two steps of a convolutional cell, and gradients."""

    def states(dtype: str) -> Any:
        return cell.begin_state(batch_size=2, dtype=dtype)

    values = np.random.RandomState(3).normal(size=shape).astype("f")
    x = mx.nd.array(values, dtype=how.dtype)
    prepared(mx, cell, lambda dtype: cell(x.astype(dtype), states(dtype)), how)
    x.attach_grad()
    with mx.autograd.record(train_mode=False):
        output, _ = cell(x, cell(x, states(how.dtype))[1])
    output.backward()
    begin = len(cell.prefix)
    names = [[n[begin:], list(p.shape)] for n, p in cell.collect_params().items()]
    found = [a.asnumpy().astype("d").round(5).ravel().tolist()[::3] for a in (output, x.grad)]
    return [names, *found, *gradients(cell)]


def where_computed(mx: Any, title: str, make: Callable[[], list[Any]]) -> list[Any] | None:
    """What a function gives; None where MXNet refuses that precision."""
    try:
        return make()
    except mx.base.MXNetError as error:
        print(f"{title}: {str(error).splitlines()[-1][:100]}")
        return None


def record(mx: Any) -> dict[str, Any]:
    """All of it.

    In half precision losses alone: MXNet has no product in it on processors.
    """
    half = How(dtype="float16")
    ways = [(layout, valid) for layout in ("NTC", "TNC") for valid in (False, True)]
    return {
        "networks": {name: described(mx, name) for name in NETWORKS},
        "losses": {name: measured(mx, loss, given) for name, loss, given in losses(mx)},
        "half": {
            name: where_computed(mx, name, partial(measured, mx, loss, given, half))
            for name, loss, given in losses(mx)
        },
        "layers": {name: run(mx, make, layout) for name, make, layout in layers(mx)},
        "cells": {
            f"{name} {layout} {valid}": unrolled(mx, make, layout, valid)
            for name, make in cells(mx)
            for layout, valid in ways
            if not (name == "unfused" and valid)
        },
        "images": {name: stepped(mx, cell, shape) for name, cell, shape in images(mx)},
    }
