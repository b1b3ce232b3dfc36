"""Recurrent layers: one operator of many layers here, one node for each layer in ONNX.

MXNet keeps all weights in one vector: those of every layer and direction, then their biases. Gates
stand in another order: LSTM has i f c o here and i o f c there, GRU r z n here and z r n there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.onnx.families.elementwise import cast
from gnomon.onnx.reader import OnnxCall, Reader
from gnomon.onnx.table import Unsupported, reads, writes
from gnomon.onnx.writer import Call, Writer

KINDS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN", "rnn_relu": "RNN"}
THERE = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}  # the gates here, in the order of ONNX
HERE = {"lstm": (0, 2, 3, 1), "gru": (1, 0, 2)}  # the gates of ONNX, in the order here


def ordered(array: Any, order: tuple[int, ...]) -> Any:
    """The rows of a matrix or vector, by gates in another order."""
    return np.concatenate([np.split(array, len(order))[k] for k in order]) if order else array


@writes("RNN", "LSTM GRU RNN Slice Transpose Reshape Concat Cast Unsqueeze")
def write_rnn(w: Writer, x: Call) -> Any:
    op = x.op
    if op.projection_size is not None or op.lstm_state_clip_min is not None:
        raise Unsupported("projection_size, lstm_state_clip_min")
    inputs = dict(zip(op.arguments(), x.inputs, strict=True))
    vector, channels = x.value(1), x.shape()[2]
    if not isinstance(channels, int):
        raise Unsupported("the number of channels is left open")
    layers = op.places(1, 1, channels)
    lengths = ""
    if op.use_sequence_length:
        lengths = w.cast(inputs["sequence_length"], "int32")
    y, finals, d = inputs["data"], [], op.directions
    for level in range(op.num_layers):
        weights = [w.const(a, x.dtype()) for a in _weights(op, vector, layers[level * d :][:d])]
        states = [
            w.slice(inputs[name], [0], [level * d], [(level + 1) * d])
            for name in ("state", "state_cell")[: 1 + op.has_cell]
        ]
        how = {"hidden_size": op.state_size, "direction": "bidirectional" if d == 2 else "forward"}
        if op.mode == "gru":
            how["linear_before_reset"] = 1
        if op.mode == "rnn_relu":
            how["activations"] = ["Relu"] * d
        count = 2 + op.has_cell
        out = w.many(KINDS[op.mode], count, y, *weights, lengths, *states, **how)
        y = w.op("Transpose", out[0], perm=[0, 2, 1, 3])
        y = w.op("Reshape", y, w.const([0, 0, -1]))
        finals.append(out[1:])
    if not op.state_outputs:
        return y
    columns = list(zip(*finals, strict=True))
    return [y, *(w.op("Concat", *c, axis=0) if len(c) > 1 else c[0] for c in columns)]


def _weights(op: Any, vector: Any, places: list[Any]) -> list[Any]:
    """The weights of a layer as ONNX has them: from the input, from the state, and biases."""

    def part(place: Any, name: str) -> Any:
        start, shape = place.starts[name], place.shape(name)
        flat = vector[start : start + int(np.prod(shape))]
        return ordered(flat.reshape(shape), THERE.get(op.mode, ()))

    both = [[part(p, name) for p in places] for name in ("w_in", "w_hid", "b_in", "b_hid")]
    biases = [np.concatenate(pair) for pair in zip(both[2], both[3], strict=True)]
    return [np.stack(both[0]), np.stack(both[1]), np.stack(biases)]


def _mode(n: OnnxCall, kind: str, count: int) -> str:
    """The mode of `RNN` that an operator of ONNX is."""
    usual = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}[kind]
    given = [_text(a) for a in n.attr("activations") or usual * count]
    if kind == "RNN" and given == ["relu"] * count:
        return "rnn_relu"
    if given != usual * count:
        raise Unsupported(f"activations {given}: only {usual}")
    if n.attr("clip") is not None or n.attr("input_forget", 0):
        raise Unsupported("clip, input_forget")
    if kind == "GRU" and not n.attr("linear_before_reset", 0):
        raise Unsupported("linear_before_reset = 0: MXNet resets after the product")
    return {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn_tanh"}[kind]


def _text(value: Any) -> str:
    return (value.decode() if isinstance(value, bytes) else str(value)).lower()


def _parameters(n: OnnxCall, mode: str) -> Any:
    """The vector of all weights."""
    weights, recurrent = n.const(1), n.const(2)
    directions, width, _ = recurrent.shape
    biases = n.const(3, np.zeros((directions, 2 * width), weights.dtype))
    order = HERE.get(mode, ())
    parts = [ordered(a[d], order) for d in range(directions) for a in (weights, recurrent)]
    parts += [ordered(b, order) for d in range(directions) for b in np.split(biases[d], 2)]
    return np.concatenate([p.reshape(-1) for p in parts])


def _read_rnn(kind: str) -> Any:
    def read(r: Reader, n: OnnxCall) -> Any:
        direction = n.attr("direction", "forward")
        count = 2 if direction == "bidirectional" else 1
        mode = _mode(n, kind, count)
        if n.has(7):
            raise Unsupported("peepholes")
        layout, x = n.attr("layout", 0), n.symbol()
        x = r.op("SwapAxis", x, dim1=0, dim2=1) if layout else x
        lengths = [cast(r, n.symbol(4), n.dtype().name)] if n.has(4) else []
        flipped = {"use_sequence_length": bool(lengths)}
        if direction == "reverse":
            x = r.op("SequenceReverse", x, *lengths, **flipped)
        size = n.dims(2)[-1]
        states = [_state(r, n, k, x, count, size, layout) for k in (5, 6)[: 1 + (mode == "lstm")]]
        vector = r.variable(f"{n.value(1).name}_parameters", _parameters(n, mode))
        given = {"state_size": size, "num_layers": 1, "mode": mode, "state_outputs": True}
        given |= {"bidirectional": count == 2, **flipped}
        made = r.op("RNN", x, vector, *states, *lengths, **given)
        return _results(r, n, list(made), count, size, lengths)

    return read


def _state(r: Reader, n: OnnxCall, k: int, x: Any, count: int, size: int, layout: int) -> Any:
    if n.has(k):
        return r.op("SwapAxis", n.symbol(k), dim1=0, dim2=1) if layout else n.symbol(k)
    if r.shape(x)[1] > 0:
        return np.zeros((count, r.shape(x)[1], size), np.float32)
    row = r.op("slice_axis", x, axis=0, begin=0, end=1)  # zeros for each of a batch
    row = r.op("slice_axis", row, axis=2, begin=0, end=1)
    zeros = r.op("zeros_like", row)
    return r.op("broadcast_axis", zeros, axis=(0, 2), size=(count, size))


def _results(r: Reader, n: OnnxCall, made: list[Any], count: int, size: int, lengths: Any) -> Any:
    """The output as (steps, directions, batch, size), and the final states."""
    y, *finals = made
    layout = n.attr("layout", 0)
    if n.attr("direction", "forward") == "reverse":
        y = r.op("SequenceReverse", y, *lengths, use_sequence_length=bool(lengths))
    y = r.op("Reshape", y, shape=(0, 0, count, size))
    y = r.op("transpose", y, axes=(1, 0, 2, 3) if layout else (0, 2, 1, 3))
    if layout:
        finals = [r.op("SwapAxis", f, dim1=0, dim2=1) for f in finals]
    return [y, *finals][: max(n.outputs, 1)]


for _kind in ("LSTM", "GRU", "RNN"):
    reads(_kind)(_read_rnn(_kind))
