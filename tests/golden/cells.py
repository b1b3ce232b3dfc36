"""Cells of `mx.rnn` in every combination, made alike by the real library and by gnomon.

Every function takes the package, `mx`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

MODES = ("rnn_relu", "rnn_tanh", "lstm", "gru")
WAYS = (("NTC", None), ("NTC", True), ("TNC", False))


def fused(mx: Any, mode: str, **more: Any) -> Any:
    """Two layers in one operator."""
    return mx.rnn.FusedRNNCell(4, num_layers=2, mode=mode, prefix="f_", **more)


def stack(mx: Any) -> Any:
    """Cells of several kinds one after the other."""
    cells = mx.rnn.SequentialRNNCell()
    cells.add(mx.rnn.LSTMCell(4, prefix="l0_"))
    cells.add(mx.rnn.DropoutCell(0.3))
    cells.add(mx.rnn.ResidualCell(mx.rnn.GRUCell(4, prefix="l1_")))
    return cells


def both(mx: Any) -> Any:
    """Two directions of different cells."""
    r = mx.rnn
    return r.BidirectionalCell(r.LSTMCell(4, prefix="a_"), r.GRUCell(4, prefix="b_"))


def cells(mx: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names, and functions that make a cell."""
    r = mx.rnn
    yield "rnn", lambda: r.RNNCell(4, activation="relu")
    yield "lstm", lambda: r.LSTMCell(4, forget_bias=2.0)
    yield "gru", lambda: r.GRUCell(4)
    for mode in MODES:
        more = {"bidirectional": mode == "lstm", "get_next_state": mode != "gru", "dropout": 0.2}
        yield f"fused {mode}", lambda mode=mode, more=more: fused(mx, mode, **more)
    yield "unfused lstm", lambda: fused(mx, "lstm", bidirectional=True, dropout=0.2).unfuse()
    yield "unfused gru", lambda: fused(mx, "gru").unfuse()
    yield "unfused relu", lambda: fused(mx, "rnn_relu").unfuse()
    yield "stack", lambda: stack(mx)
    yield "zoneout", lambda: r.ZoneoutCell(r.LSTMCell(4), 0.3, 0.2)
    yield "zoneout of states", lambda: r.ZoneoutCell(r.RNNCell(4), 0.0, 0.2)
    yield "both", lambda: both(mx)
    yield "residual both", lambda: r.ResidualCell(both(mx))
    yield "residual fused", lambda: r.ResidualCell(r.FusedRNNCell(4, prefix="q_"))


def images(mx: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Convolutional cells."""
    for kind in ("ConvRNNCell", "ConvLSTMCell", "ConvGRUCell"):
        yield kind, lambda kind=kind: getattr(mx.rnn, kind)((2, 3, 6, 6), 4, i2h_pad=(0, 1))


def graphs(mx: Any) -> Iterator[tuple[str, list[str]]]:
    """A title, and the lines that describe the graph, for each cell and way of unrolling."""
    steps = [mx.sym.Variable(n, shape=(2, 3, 6, 6)) for n in "ab"]
    ways = [(name, make, mx.sym.Variable("x"), way) for name, make in cells(mx) for way in WAYS]
    ways += [(name, make, steps, (None, None)) for name, make in images(mx)]
    for name, make, inputs, (layout, merge) in ways:
        with mx.name.NameManager():
            cell = make()
            how = {} if layout is None else {"layout": layout, "merge_outputs": merge}
            outputs, states = cell.unroll(2, inputs, **how)
        yield f"{name} {layout} {merge}", lines(mx, [outputs, list(states)])


def lines(mx: Any, outputs: Any) -> list[str]:
    """The shape of nested lists of symbols, and the nodes of their graph."""
    graph = json.loads(mx.sym.Group(flat(mx, outputs)).tojson())
    names = [node["name"] for node in graph["nodes"]]
    rows = [json.dumps([nested(mx, outputs), [[names[h[0]], h[1]] for h in graph["heads"]]])]
    for node in graph["nodes"]:
        inputs = [[names[i[0]], i[1]] for i in node["inputs"]]
        attrs = dict(sorted(node.get("attrs", {}).items()))
        rows.append(json.dumps([node["op"], node["name"], inputs, attrs]))
    return rows


def flat(mx: Any, value: Any) -> list[Any]:
    """The symbols in nested lists."""
    return [value] if isinstance(value, mx.sym.Symbol) else [s for v in value for s in flat(mx, v)]


def nested(mx: Any, value: Any) -> Any:
    """Nested lists with 0 in place of symbols."""
    return 0 if isinstance(value, mx.sym.Symbol) else [nested(mx, v) for v in value]


def packings(mx: Any) -> Iterator[tuple[str, Any, int]]:
    """A title, a fused cell, and the length of its weights for data 3 wide."""
    for mode, gates in zip(MODES, (1, 1, 4, 3), strict=True):
        for sides in (1, 2):
            rows = gates * 4 * sides
            size = rows * (3 + 4 + 2) + rows * (4 * sides + 4 + 2)
            yield f"{mode} {sides}", fused(mx, mode, bidirectional=sides == 2), size


def unpacked(mx: Any) -> dict[str, Any]:
    """For each fused cell the shape, the first and the last number of all its weights."""
    found = {}
    for title, cell, size in packings(mx):
        parts = cell.unpack_weights({"f_parameters": mx.nd.arange(size)})
        found[title] = {
            name: [list(a.shape), *map(float, a.asnumpy().ravel()[[0, -1]])]
            for name, a in sorted(parts.items())
        }
    return found


def begun(mx: Any) -> list[float]:
    """The weights of a fused LSTM as `FusedRNN` initializes them."""
    init = mx.init.FusedRNN(mx.init.Constant(0.5), 4, 2, "lstm", True, forget_bias=3.0)
    size = next(size for title, _, size in packings(mx) if title == "lstm 2")
    weights = mx.nd.zeros((size,))
    init._init_weight(mx.init.InitDesc("f_parameters"), weights)
    return weights.asnumpy().tolist()


def sentences() -> list[list[str]]:
    """Sentences of different lengths."""
    rng = np.random.RandomState(0)
    words = np.array(list("abcdefgh"))
    return [words[rng.randint(0, 8, n)].tolist() for n in rng.randint(1, 9, 40)]


def batches(mx: Any) -> list[Any]:
    """Two epochs of batches of sentences, in both layouts."""
    coded, vocab = mx.rnn.encode_sentences(sentences(), invalid_label=0, start_label=1)
    found: list[Any] = [sorted(vocab.items())]
    for layout in ("NT", "TN"):
        random.seed(1)
        np.random.seed(2)
        source = mx.rnn.BucketSentenceIter(coded, 3, [2, 5, 7], invalid_label=0, layout=layout)
        for _ in range(2):
            source.reset()
            found += [
                [b.bucket_key, b.data[0].asnumpy().tolist(), b.label[0].asnumpy().tolist()]
                for b in source
            ]
            shapes = [*source.provide_data, *source.provide_label]
            found.append([[name, list(shape)] for name, shape in shapes])
    return found
