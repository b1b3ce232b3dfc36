"""Recurrent layers on a GPU give what they give on the processor, and stay there."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, nd
from gnomon.ndarray.remote import way
from gnomon.runtime.devices.cuda.simulated import Simulated
from gnomon.runtime.devices.cuda.simulated_blas import SimulatedBlas
from tests.gpu.moved import close

G, CPU = mx.gpu(0), mx.cpu()
NUMBERS = np.random.RandomState(0)
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
STEPS, BATCH, INPUTS, HIDDEN = 4, 3, 2, 5


def operands(mode, layers=1, bidirectional=False, projection=None, steps=STEPS):
    """Data, parameters and states."""
    count, width = 1 + bidirectional, projection or HIDDEN
    size = 0
    for k in range(layers):
        inputs = INPUTS if k == 0 else count * width
        rows = GATES[mode] * HIDDEN
        size += count * (rows * (inputs + width + 2) + (width * HIDDEN if projection else 0))
    states = (layers * count, BATCH)
    given = [(steps, BATCH, INPUTS), (size,), (*states, width)]
    given += [(*states, HIDDEN)] if mode == "lstm" else []
    return [NUMBERS.uniform(-1, 1, shape) for shape in given]


def computed(ctx, given, options, dtype="float32", lengths=None):
    """Outputs, final states and gradients."""
    arrays = [nd.array(x, ctx=ctx, dtype=dtype) for x in given]
    for x in arrays:
        x.attach_grad("add")
        x.grad[:] = 1
    more = [] if lengths is None else [nd.array(lengths, ctx=ctx, dtype=dtype)]
    mx.random.seed(5)
    with autograd.record():
        found = nd.RNN(*arrays, *more, state_size=HIDDEN, state_outputs=True, **options)
    autograd.backward(list(found), list(found))
    return [x.asnumpy() for x in (*found, *[x.grad for x in arrays])]


@pytest.fixture(autouse=True)
def stays_there(monkeypatch, caplog):
    """No operator may go to the processor, and some product must be cuBLAS's."""
    products = []
    gemm = SimulatedBlas.gemm
    monkeypatch.setattr(SimulatedBlas, "gemm", lambda *a: (products.append(a), gemm(*a))[1])
    monkeypatch.setattr(way, "_told", set())
    with caplog.at_level(logging.WARNING, "gnomon"):
        yield products
    assert "runs on the processor" not in caplog.text
    assert products


def agree(given, options, dtype="float32", rtol=1e-5, lengths=None):
    found = [computed(ctx, given, options, dtype, lengths) for ctx in (G, G, CPU)]
    for first, second, want in zip(*found, strict=True):
        close(first, want, rtol)
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(("layers", "bidirectional"), [(1, False), (2, True)])
@pytest.mark.parametrize("mode", GATES)
def test_layers(mode, layers, bidirectional):
    given = operands(mode, layers, bidirectional)
    agree(given, {"mode": mode, "num_layers": layers, "bidirectional": bidirectional})


@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_sequences_of_several_lengths(mode):
    options = {"mode": mode, "num_layers": 2, "bidirectional": True, "use_sequence_length": True}
    agree(operands(mode, 2, True), options, lengths=[4, 1, 3])


def test_projected_states():
    options = {"mode": "lstm", "num_layers": 2, "projection_size": 3}
    agree(operands("lstm", 2, projection=3), options)


def test_clipped_states():
    limits = {"lstm_state_clip_min": -0.2, "lstm_state_clip_max": 0.2}
    agree(operands("lstm"), {"mode": "lstm", "num_layers": 1, **limits})


def test_dropout_between_layers():
    agree(operands("gru", 2), {"mode": "gru", "num_layers": 2, "p": 0.4})


@pytest.mark.parametrize(("dtype", "rtol"), [("float16", 5e-3), ("float64", 1e-12)])
def test_dtypes(dtype, rtol):
    agree(operands("lstm"), {"mode": "lstm", "num_layers": 1}, dtype, rtol)


def test_one_kernel_for_all_steps(monkeypatch):
    loads = []
    load = Simulated.load
    monkeypatch.setattr(Simulated, "load", lambda *a: (loads.append(a), load(*a))[1])
    counts = []
    for steps in (3, 9):
        loads.clear()
        computed(G, operands("lstm", steps=steps), {"mode": "lstm", "num_layers": 1})
        counts.append(len(loads))
    assert counts[1] <= counts[0]
